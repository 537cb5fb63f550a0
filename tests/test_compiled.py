"""The compiled engine equals the reference engine, bit for bit, and says clearly what it does not run."""

import ast
import ctypes
import itertools
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
import warnings
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numba.core import event

import banditmesh as bm
from banditmesh.sim import engine, reference, support
from banditmesh.sim.compiled import crew, kernels, packing, plans, quiet, replicates
from cases import dynamic_networks, emitting_protocols, examples, graphs, normal_tape, problems

HORIZON = 12
all_problems = problems(st.one_of(graphs(max_agents=8), dynamic_networks(HORIZON)))


def run_both(problem, protocol, **arguments):
    return tuple(bm.simulate(problem, protocol, engine=name, **arguments) for name in ("compiled", "reference"))


def assert_equal(compiled, reference):
    """Every array of the result, with `==`; the parts are compared first so that a failure names one."""
    assert np.array_equal(compiled.regret, reference.regret)
    assert np.array_equal(compiled.transmissions, reference.transmissions)
    assert np.array_equal(compiled.pulls, reference.pulls)
    for name, counts in reference.traffic.items():
        assert np.array_equal(compiled.traffic[name], counts), name
    assert compiled.links == reference.links
    assert compiled == reference
    assert (compiled.engine, reference.engine) == ("compiled", "reference")


@settings(max_examples=examples(200))
@given(
    all_problems,
    emitting_protocols(),
    st.sampled_from(["sound", "published"]),
    st.integers(0, 5),
    st.integers(1, 4),
    st.booleans(),
    st.booleans(),
    st.sampled_from([1, 2, HORIZON]),
    st.integers(1, 3),
    st.sampled_from([None, bm.Faults(loss=0.3), bm.Faults(loss=0.1, outages=bm.Outages(0.2, 0.4, memory=False))]),
)
def test_engines_agree_on_small_problems(
    problem, protocol, rules, seed, record_every, link_traffic, taped, horizon, pause, faults
):
    assume(rules == "sound" or not (faults and faults.outages and protocol.emission.cumulative))
    assume(rules == "sound" or not protocol.emission.n_echoes)
    arguments = {"horizon": horizon, "replicates": 2, "seed": seed, "rules": rules, "record_every": record_every}
    arguments["faults"] = faults
    arguments["every"] = [1 + v % pause for v in range(problem.n_agents)]
    arguments["policy"] = [bm.UCB(alpha=1.0 + v % 2) for v in range(problem.n_agents)]
    if taped:
        # Few different values, so that published ids collide.
        arguments["rewards"] = np.random.default_rng(seed).integers(0, 3, (horizon, problem.n_agents, problem.n_arms))
    assert_equal(*run_both(problem, protocol, link_traffic=link_traffic, **arguments))


AXES = {
    "protocol": ("none", "irs", "gossip", "probabilistic", "fwa", "flooding", "centralised"),
    "rules": ("sound", "published"),
    "network": ("static", "edge-markovian", "sequence", "churn"),
    "law": ("gaussian", "bernoulli", "beta", "mixed"),
    "rewards": ("draws", "tape", "tape per replicate"),
    "every": ("each round", "asynchronous"),
    "link_traffic": (False, True),
    "record_every": (1, 7),
    "ttl": (1, 2, 5),
    "alpha": ("one", "per agent"),
    "emission": ("every pull", "growth", "echoes", "contested"),
    "faults": ("none", "loss", "outages", "loss and outages without memory"),
}


def pairwise(axes):
    """Rows that together hold every pair of values of every two axes, found greedily."""
    names = list(axes)
    missing = {((a, x), (b, y)) for a, b in itertools.combinations(names, 2) for x in axes[a] for y in axes[b]}
    rng = np.random.default_rng(0)
    rows = []
    while missing:
        candidates = []
        for _ in range(50):
            row = {name: axes[name][rng.integers(len(axes[name]))] for name in names}
            covers = {pair for pair in itertools.combinations(row.items(), 2) if pair in missing}
            candidates.append((len(covers), len(candidates), row, covers))
        _, _, row, covers = max(candidates)
        if covers:
            rows.append(row)
            missing -= covers
    return rows


ROWS = pairwise(AXES)


def test_covering_array_holds_every_pair():
    held = {pair for row in ROWS for pair in itertools.combinations(row.items(), 2)}
    assert len(ROWS) < 60
    assert all(((a, x), (b, y)) in held for a, b in itertools.combinations(AXES, 2) for x in AXES[a] for y in AXES[b])


def make_problem(row, horizon):
    graph = nx.connected_watts_strogatz_graph(14, 4, 0.3, seed=1)
    network = {
        "static": lambda: graph,
        "edge-markovian": lambda: bm.networks.EdgeMarkovian(graph, 0.05, 0.3),
        "sequence": lambda: bm.networks.GraphSequence([nx.gnp_random_graph(14, 0.2, seed=t) for t in range(horizon)]),
        "churn": lambda: bm.networks.Churn(graph, 0.3, 0.5),
    }[row["network"]]()
    means = [0.1, 0.3, 0.5, 0.55, 0.7, 0.9]
    gaussian, bernoulli, beta = (
        [bm.arms.Gaussian(mean, 0.5) for mean in means],
        [bm.arms.Bernoulli(mean) for mean in means],
        [bm.arms.Beta(1 + 4 * mean, 5 - 4 * mean) for mean in means],
    )
    laws = {
        "gaussian": gaussian,
        "bernoulli": bernoulli,
        "beta": beta,
        "mixed": [gaussian[0], bernoulli[1], beta[2], bm.arms.Uniform(0.0, 1.0), gaussian[4], bernoulli[5]],
    }[row["law"]]
    return bm.Problem(network, bm.arms.uniform_sets(14, 6, 3, seed=2), laws)


def make_protocol(row):
    ttl = row["ttl"]
    emission = {
        "every pull": bm.EveryPull(),
        "growth": bm.Growth(0.3),
        "echoes": bm.Growth(0.3, echoes=1),
        "contested": bm.Contested(),
    }[row["emission"]]
    return {
        "none": lambda: bm.NoCooperation(emission=emission),
        "irs": lambda: bm.IRS(emission=emission),
        "gossip": lambda: bm.Gossip(ttl, fanout=2, emission=emission),
        "probabilistic": lambda: bm.ProbabilisticFlooding(ttl, stop=0.3, emission=emission),
        "fwa": lambda: bm.FwA(ttl, emission=emission),
        "flooding": lambda: bm.Flooding(ttl, emission=emission),
        "centralised": bm.Centralised,
    }[row["protocol"]]()


FAULTS = {
    "none": None,
    "loss": bm.Faults(loss=0.2),
    "outages": bm.Faults(outages=bm.Outages(down=0.1, up=0.3)),
    "loss and outages without memory": bm.Faults(loss=0.1, outages=bm.Outages(down=0.1, up=0.5, memory=False)),
}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: "-".join(str(value) for value in row.values()))
def test_engines_agree_on_every_pair_of_axes(row):
    horizon = 40
    problem = make_problem(row, horizon)
    protocol = make_protocol(row)
    arguments = {"rules": row["rules"], "faults": FAULTS[row["faults"]]}
    if row["rewards"] != "draws":
        tapes = np.stack([normal_tape(problem, horizon, seed) for seed in range(2)])
        arguments["rewards"] = tapes if row["rewards"] == "tape per replicate" else tapes[0]
    if row["every"] == "asynchronous":
        arguments["every"] = [1 + v % 3 for v in range(14)]
    if row["alpha"] == "per agent":
        arguments["policy"] = [bm.UCB(alpha=1.0 + 0.5 * (v % 4)) for v in range(14)]
    forgetful = (row["emission"], row["faults"]) == ("growth", list(FAULTS)[-1])
    if row["rules"] == "published" and protocol.sends_messages and (forgetful or row["emission"] == "echoes"):
        # A restarted origin counts from zero again, and its ids with it; an echo may be what was sent before.
        with pytest.raises(bm.errors.UnsupportedError, match="ids come twice"):
            bm.simulate(problem, protocol, engine="compiled", horizon=horizon, replicates=2, seed=5, **arguments)
        return
    assert_equal(
        *run_both(
            problem,
            protocol,
            horizon=horizon,
            replicates=2,
            seed=5,
            link_traffic=row["link_traffic"],
            record_every=row["record_every"],
            **arguments,
        )
    )


@pytest.mark.parametrize(
    "name",
    ["er", "dynamic-er", *(pytest.param(name, marks=pytest.mark.slow) for name in ("ba", "sbm"))],
)
@pytest.mark.parametrize(
    "protocol",
    [
        bm.Gossip(4),
        bm.ProbabilisticFlooding(4),
        bm.FwA(4),
        *(pytest.param(one, marks=pytest.mark.slow) for one in (bm.NoCooperation(), bm.IRS(), bm.Flooding(4))),
    ],
    ids=lambda protocol: protocol.name,
)
def test_engines_agree_on_the_papers_networks(name, protocol, rules):
    problem = bm.Problem.paper(name, seed=3)
    # Beyond the 20 first pulls, so that the policy matters; and once the horizon cuts messages' lives short.
    assert_equal(*run_both(problem, protocol, horizon=25 if name == "er" else 7, seed=1, rules=rules))


def test_plan_and_spreading_one_by_one_agree(monkeypatch):
    problem = bm.Problem.paper("ba", seed=0)
    planned = bm.simulate(problem, bm.FwA(4), horizon=120, seed=0)
    monkeypatch.setattr(plans, "PLAN_BUDGET", 0)
    assert bm.simulate(problem, bm.FwA(4), horizon=120, seed=0) == planned


def test_plans_made_in_parts_that_do_not_fit_at_first_are_the_same(monkeypatch):
    problem = bm.Problem.paper("ba", seed=0)
    whole = bm.simulate(problem, bm.FwA(4), horizon=60, seed=0)
    monkeypatch.setattr(plans, "_SMALL", 1)
    monkeypatch.setattr(plans, "_GENEROUS", 0.001)
    assert bm.simulate(problem, bm.FwA(4), horizon=60, seed=0) == whole


def spread_beforehand(monkeypatch, problem, protocol):
    """How many messages are spread in a run other than by its rounds, call by call."""
    settings = {"horizon": 30, "seed": 0, "engine": "compiled"}
    bm.simulate(problem, protocol, **settings)
    spread, kernel = [], plans.spread_slots
    monkeypatch.setattr(plans, "spread_slots", lambda *taken: spread.append(len(taken[3])) or kernel(*taken))
    bm.simulate(problem, protocol, **settings)
    return spread


def test_a_small_plan_is_made_without_an_estimate(monkeypatch):
    assert spread_beforehand(monkeypatch, bm.Problem.paper("er", seed=0), bm.FwA(4)) == []


def test_an_estimate_spreads_a_part_of_all_messages(monkeypatch):
    problem = bm.Problem.paper("er", seed=0)
    n_spread = sum(spread_beforehand(monkeypatch, problem, bm.Gossip(4)))
    assert 0 < n_spread <= len(problem.arm_indices) // 8


def test_replicates_far_apart_in_time_share_clocks(monkeypatch):
    problem = bm.Problem(nx.path_graph(3), [[0, 1]] * 3, [bm.arms.Gaussian(m, 1.0) for m in (0.0, 1.0)])
    arguments = {"horizon": 3000, "replicates": 3, "seed": 0}
    plain = bm.simulate(problem, bm.FwA(2), threads=1, **arguments)
    monkeypatch.setattr(packing, "CLOCK_BLOCK", 16)
    monkeypatch.setattr(packing, "CLOCK_BLOCKS", 3)
    monkeypatch.setattr(packing, "CLOCK_BUDGET", 0)
    assert bm.simulate(problem, bm.FwA(2), threads=3, **arguments) == plain


def test_replicates_of_a_long_run_read_each_clock_once():
    rounds = []

    class Counting(bm.UCB):
        name = "counting"

        @staticmethod
        def clock(t, parameter):
            rounds.append(t)
            return bm.UCB.clock(t, parameter)

    problem = bm.Problem(nx.empty_graph(1), [[0]], [bm.arms.Gaussian(0.0, 1.0)])
    settings = {"policy": Counting(), "horizon": 20_000, "replicates": 2, "record_every": 20_000, "threads": 1}
    bm.simulate(problem, bm.NoCooperation(), seed=0, engine="compiled", **settings)
    # The small run that makes kernels ready reads the first ones.
    assert len([t for t in rounds if t > 100]) == 20_000 - 100


def test_chunks_do_not_matter(monkeypatch):
    problem = bm.Problem.paper("dynamic-er", seed=0)
    results = []
    for longest in (1, 7, 256):
        monkeypatch.setattr(replicates, "LONGEST_WINDOW", longest)
        results.append(bm.simulate(problem, bm.FwA(4), horizon=40, seed=0, link_traffic=True))
    assert results[0] == results[1] == results[2]


@pytest.mark.parametrize("name", ["er", "dynamic-er"])
def test_threads_do_not_matter(name, rules):
    problem = bm.Problem.paper(name, seed=0)
    one, two, many = (
        bm.simulate(problem, bm.FwA(4), horizon=60, replicates=5, seed=0, rules=rules, threads=threads)
        for threads in (1, 2, 9)
    )
    assert one == two == many


@pytest.mark.parametrize("policy", [bm.UCB(), bm.KLUCB(), bm.ThompsonSampling()], ids=lambda policy: policy.name)
def test_replicates_in_which_nothing_travels_are_simulated_together(policy, monkeypatch):
    # Three at a time, of coins and others, so that whatever one leaves behind would show in the next.
    monkeypatch.setattr(quiet, "MAX_PULLS", 3 * 60 * 3)
    laws = [bm.arms.Bernoulli(0.2), bm.arms.Gaussian(0.5, 1.0), bm.arms.Bernoulli(0.6), bm.arms.Gaussian(0.3, 0.5)]
    problem = bm.Problem(nx.path_graph(3), [[0, 1, 2], [2, 3], [1]], laws)
    settings = {"policy": policy, "horizon": 60, "replicates": 8, "seed": 3, "record_every": 7, "every": [1, 2, 1]}
    calls = []
    together = quiet.Quiet.together
    monkeypatch.setattr(quiet.Quiet, "together", lambda one, some: calls.append(some) or together(one, some))
    one, other = run_both(problem, bm.NoCooperation(), **settings, threads=2)
    assert sorted(calls, key=min) == [range(3), range(3, 6), range(6, 8)]
    assert_equal(one, other)


def test_replicates_that_are_watched_by_agent_are_simulated_one_by_one(monkeypatch):
    monkeypatch.delattr(quiet.Quiet, "together")
    problem = bm.Problem(nx.path_graph(3), [[0, 1], [1], [0]], [bm.arms.Gaussian(0.2, 1.0), bm.arms.Gaussian(0.5, 1.0)])
    results = run_both(problem, bm.NoCooperation(), horizon=20, replicates=3, seed=0, agents=True)
    assert_equal(*results)


def test_published_rules_forget_and_accept_again_on_both_engines():
    # A small memory beside many messages: fewer ids fit than are accepted before late copies come.
    rng = np.random.default_rng(0)
    graph = nx.gnp_random_graph(16, 0.25, seed=4)
    sets = [sorted(rng.choice(8, size=2, replace=False).tolist()) for _ in range(16)]
    sets[0] = list(range(8))
    problem = bm.Problem(graph, sets, [bm.arms.Gaussian(0.1 * arm, 1.0) for arm in range(8)])
    assert_equal(*run_both(problem, bm.FwA(9), horizon=60, replicates=2, seed=0, rules="published"))


# What users bring


class DegreeShy(bm.Protocol):
    """Hubs relay less: a pure rule that draws."""

    name = "degree-shy"
    random = True

    @staticmethod
    def relay(has_arm, ttl, degree, u, parameter):
        return bm.RELAY if u * degree < 2.0 else bm.STOP


class LeavesAbsorb(bm.Protocol):
    """A pure rule that does not draw but looks at the degree and the hops left."""

    name = "leaves-absorb"

    @staticmethod
    def relay(has_arm, ttl, degree, u, parameter):
        if degree <= 2 or (has_arm and ttl == 1):
            return bm.ABSORB
        return bm.RELAY


class NoisyGreedy(bm.Policy):
    """An index that draws and uses the count."""

    name = "noisy-greedy"
    random = True

    @staticmethod
    def index(mean, count, inv_root, clock, sigma, law, u, parameter):
        return mean + sigma * (u - 0.5) / (1 + count)


class Sneaky(bm.Protocol):
    """A rule that Python can run and numba cannot compile."""

    name = "sneaky"
    random = True

    @staticmethod
    def relay(has_arm, ttl, degree, u, parameter):
        return globals()["bm"].RELAY


@pytest.mark.parametrize(
    "name, protocol",
    [
        ("er", DegreeShy(3)),
        ("dynamic-er", LeavesAbsorb(3)),
        # Each compiles its rule anew.
        pytest.param("er", LeavesAbsorb(3), marks=pytest.mark.slow),
        pytest.param("dynamic-er", DegreeShy(3), marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_a_users_own_protocol_runs_compiled(protocol, name, rules):
    problem = bm.Problem.paper(name, seed=0)
    assert_equal(*run_both(problem, protocol, horizon=12, seed=0, rules=rules))


def test_a_users_own_policy_runs_compiled():
    problem = bm.Problem.paper("er", seed=0)
    assert_equal(*run_both(problem, bm.IRS(), policy=NoisyGreedy(), horizon=40, seed=0))


def test_a_short_run_is_not_worth_compiling_a_users_rule_for():
    problem = bm.Problem(nx.path_graph(3), [[0]] * 3, [bm.arms.Gaussian(0.0, 1.0)])
    assert bm.simulate(problem, OtherShy(3), horizon=3, seed=0).engine == "reference"


class OtherShy(DegreeShy):
    @staticmethod
    def relay(has_arm, ttl, degree, u, parameter):
        return bm.RELAY


def test_a_rule_that_does_not_compile_falls_back_to_the_reference(monkeypatch):
    monkeypatch.setattr(engine, "SHORT_RUN", 0.0)
    problem = bm.Problem.paper("er", seed=0)
    assert bm.simulate(problem, Sneaky(2), horizon=3, seed=0).engine == "reference"
    # It is not tried again.
    with (
        event.install_recorder("numba:compile") as heard,
        pytest.raises(bm.errors.UnsupportedError, match=r"'sneaky' .*does not compile"),
    ):
        bm.simulate(problem, Sneaky(2), horizon=3, seed=0, engine="compiled")
    assert not heard.buffer


class Lazy(bm.Policy):
    name = "lazy"

    def choose(self, t, estimates, draw):
        return 0


def test_what_is_not_supported_is_refused_with_its_reason():
    problem = bm.Problem.paper("er", seed=0)
    with pytest.raises(bm.errors.UnsupportedError, match=r"overrides choose\(\).*use engine=\"auto\""):
        bm.simulate(problem, bm.IRS(), policy=Lazy(), horizon=3, engine="compiled")
    with pytest.raises(bm.errors.UnsupportedError, match="event log"):
        bm.simulate(problem, bm.IRS(), horizon=3, trace=True, engine="compiled")
    assert bm.simulate(problem, bm.IRS(), policy=Lazy(), horizon=3, seed=0).engine == "reference"


def test_a_long_fallback_warns_with_an_estimate():
    problem = bm.Problem.paper("er", seed=0)
    with pytest.warns(UserWarning, match=r"the reference engine will take about [\d,]+ s"), pytest.raises(Stop):
        bm.simulate(problem, bm.Flooding(4), policy=Lazy(), horizon=100_000, seed=0, progress=stop_at_once)


class Stop(Exception):
    pass


def stop_at_once(done, total):
    raise Stop


def test_support_is_printed_as_one_row_per_combination(capsys):
    bm.support()
    first, second, third = (table.splitlines() for table in capsys.readouterr().out.split("\n\n"))
    assert first[0].split()[:4] == ["rules", "network", "rewards", "none"]
    assert len(first) == 1 + 2 * 2 * 7
    assert second[0].split()[:2] == ["part", "name"]
    kinds = [line.split()[0] for line in second[1:]]
    assert kinds == sorted(kinds, key=["emission", "policy", "memory", "first", "fault"].index)
    assert {"every-pull", "growth", "contested", "ucb", "loss"} <= {line.split()[1] for line in second}
    assert {"gosine", "dducb", "odc"} <= {line.split()[0] for line in third}


# Further policies have kernels of their own, which only the contracts of policies compile among the quick tests.
@pytest.mark.parametrize("kind", ["emission", "fault", pytest.param("policy", marks=pytest.mark.slow)])
def test_support_of_every_part_agrees_with_what_runs(kind):
    table = {(row["part"], row["name"]): row for row in support.parts_table()}
    for (part, name), where, runs in support._part_runs():
        if part != kind:
            continue
        engines = set()
        for run in runs:
            settings = {"policy": run.policies[0], "faults": run.faults, "rules": run.rules.name, "horizon": 5}
            try:
                bm.simulate(run.problem, run.protocol, seed=0, engine="compiled", **settings)
                engines.add("compiled")
            except bm.errors.UnsupportedError:
                engines.add("reference")
        said = table[part, name][where]
        assert engines == ({"compiled", "reference"} if said == "partly" else {said}), (part, name, where)


# Replaying has kernels of its own, of which test_replay.py compiles some.
@pytest.mark.parametrize("replays", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_support_agrees_with_what_runs(replays):
    for (rules, network, rewards), run in support._runs():
        if (rewards == "replayed") != replays:
            continue
        row = next(
            row
            for row in support.support_table()
            if (row["rules"], row["network"], row["rewards"]) == (rules, network, rewards)
        )
        arguments = {"horizon": 5, "seed": 0, "rules": rules, "engine": "compiled"}
        if row[run.protocol.name] == "-":
            with pytest.raises(bm.InputError, match="static network"):
                bm.simulate(run.problem, run.protocol, **arguments)
        elif row[run.protocol.name] == "compiled":
            assert bm.simulate(run.problem, run.protocol, **arguments).engine == "compiled"
        else:
            with pytest.raises(bm.errors.UnsupportedError):
                bm.simulate(run.problem, run.protocol, **arguments)


# A good neighbour


@pytest.mark.parametrize(
    "law", [bm.arms.Beta(0.1, 0.1), bm.arms.Gaussian(1e17, 1.0), bm.arms.Empirical([0.0, 1.0, 3.0])], ids=repr
)
def test_rewards_that_may_repeat_are_left_to_the_reference_by_the_published_rules(law):
    problem = bm.Problem(nx.path_graph(4), [[0]] * 4, [law])
    assert bm.simulate(problem, bm.Flooding(3), horizon=30, seed=0, rules="published").engine == "reference"
    assert_equal(*run_both(problem, bm.Flooding(3), horizon=30, seed=0, rules="sound"))


class Nobody(bm.Flooding):
    n_targets = 0


class Forgetful(bm.Flooding):
    @staticmethod
    def relay(has_arm, ttl, degree, u, parameter):
        pass


class TwoParameters(bm.UCB):
    parameter = (1.0, 2.0)


@pytest.mark.parametrize("engine_name", ["reference", "auto"])
def test_rules_that_make_no_sense_are_refused_on_either_engine(engine_name):
    problem = bm.Problem(nx.path_graph(3), [[0, 1]] * 3, [bm.arms.Gaussian(m, 1.0) for m in (0.0, 1.0)])
    arguments = {"horizon": 5, "seed": 0, "engine": engine_name}
    with pytest.raises(bm.InputError, match="n_targets of protocol 'flooding' must be an integer of at least 1, got 0"):
        bm.simulate(problem, Nobody(2), **arguments)
    with pytest.raises(bm.InputError, match="'flooding' must return RELAY, ABSORB or STOP, got None"):
        bm.simulate(problem, Forgetful(2), **arguments)
    with pytest.raises(bm.InputError, match="the parameter of policy 'ucb' must be a finite number"):
        bm.simulate(problem, bm.IRS(), policy=TwoParameters(), **arguments)


class Fading(bm.networks.DynamicNetwork):
    """A network of a user's own that ends without saying so beforehand."""

    names = (0, 1, 2)
    n_rounds = None

    def rounds(self, draws, births_first=False):
        for _ in range(3):
            yield np.array([[0, 1]], dtype=np.int32)


@pytest.mark.parametrize("engine_name", ["reference", "compiled"])
def test_a_network_that_ends_unannounced_is_an_error_on_both_engines(engine_name):
    problem = bm.Problem(Fading(), [[0]] * 3, [bm.arms.Gaussian(0.0, 1.0)])
    with pytest.raises(bm.errors.NetworkError, match="must last for all 8 rounds, got 3"):
        bm.simulate(problem, bm.Flooding(2), horizon=8, seed=0, engine=engine_name)


def test_estimates_count_rounds_in_which_nobody_pulls():
    problem = bm.Problem.paper("er", seed=0)
    estimates = []

    def keep(run):
        estimates.append(reference.estimated_seconds(run))

    for every in (1, 7):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(engine, "_pick", lambda run, *given: keep(run) or "reference")
            bm.simulate(problem, bm.IRS(), horizon=21, every=every, seed=0)
    assert 0 < estimates[1] < estimates[0]
    assert estimates[1] > estimates[0] / 100


def test_a_pause_does_not_make_an_estimate_long(monkeypatch):
    pauses = itertools.chain([0.0, 0.0, 0.9], itertools.repeat(0.0))
    clock = [0.0]

    def pausing_step(stepper, step=reference.Stepper.step):
        clock[0] += 0.001 + next(pauses)
        return step(stepper)

    monkeypatch.setattr(reference.Stepper, "step", pausing_step)
    monkeypatch.setattr(reference.time, "thread_time", lambda: clock[0])
    estimates = []
    monkeypatch.setattr(
        engine, "_pick", lambda run, *given: estimates.append(reference.estimated_seconds(run)) or given[0]
    )
    bm.simulate(bm.Problem.paper("er", seed=0), bm.IRS(), horizon=50, seed=0, engine="reference")
    assert estimates == [pytest.approx(0.05)]


def test_memory_that_would_not_suffice_is_refused_before_the_run():
    problem = bm.Problem.paper("er", seed=0)
    began = time.monotonic()
    with pytest.raises(bm.errors.InsufficientMemoryError, match=r"would need [\d,.]+ GiB .* record_every"):
        bm.simulate(problem, bm.FwA(4), horizon=10**6, replicates=10**6)
    assert time.monotonic() - began < 30


def test_progress_counts_all_rounds_of_all_replicates():
    seen = []
    bm.simulate(
        bm.Problem.paper("er", seed=0),
        bm.FwA(4),
        horizon=50,
        replicates=3,
        seed=0,
        progress=lambda done, total: seen.append((done, total)),
    )
    assert seen == sorted(seen)
    assert seen[-1] == (150, 150)


def test_a_slow_progress_callback_misses_no_rounds():
    seen = []

    def slowly(done, total):
        time.sleep(0.03)
        seen.append(done)

    bm.simulate(
        bm.Problem.paper("er", seed=0), bm.FwA(4), horizon=4000, replicates=4, seed=0, threads=2, progress=slowly
    )
    assert seen[-1] == 16000


def test_an_error_in_the_progress_callback_stops_the_run():
    with pytest.raises(Stop):
        bm.simulate(bm.Problem.paper("ba", seed=0), bm.FwA(4), horizon=10**6, record_every=1000, progress=stop_at_once)


def script(text, **environment):
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(text)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
        # Tests may run where interrupts are ignored, as behind nohup; programs inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def test_all_that_a_run_needs_is_compiled_before_it_begins():
    # Each in a process that has compiled and read nothing.
    process = script(
        """
        import os
        import banditmesh as bm
        from banditmesh.sim.compiled import engine as compiled
        from banditmesh.sim.compiled.kernels.spread import spread_slots

        def run_all(run, *settings, **more):
            outcomes = original(run, *settings, **more)
            kernels = (*compiled.kernels_of(run)[:4], spread_slots)
            counts.append([len(kernel.signatures) for kernel in kernels])
            return outcomes

        counts = []
        original, compiled.run_all = compiled.run_all, run_all
        problem = bm.Problem(bm.networks.path(3), [[0]] * 3, [bm.arms.Uniform(0, 1)])
        for protocol, counts_links in (("fwa(2)", False), ("fwa(2)", True), ("none", False), ("gossip(2)", False)):
            child = os.fork()
            if not child:
                bm.simulate(problem, protocol, link_traffic=counts_links, engine="compiled", horizon=5, seed=0)
                warmed, finished = counts
                print(protocol, warmed == finished, sum(warmed) > 0, flush=True)
                os._exit(0)
            os.waitpid(child, 0)
        """
    )
    out, error = process.communicate(timeout=300)
    expected = [f"{protocol} True True" for protocol in ("fwa(2)", "fwa(2)", "none", "gossip(2)")]
    assert out.splitlines() == expected, error


def test_control_c_ends_what_does_not_look_whether_to_stop():
    """As numba does not, while it compiles: another thread is at it, and the one that hears Ctrl-C waits for it."""
    begun, ended = threading.Event(), []

    def compile_forever():
        begun.set()
        try:
            while True:
                time.sleep(0.01)
        finally:
            ended.append(threading.get_ident())

    def interrupt():
        if begun.is_set():
            raise KeyboardInterrupt

    stop = crew.Stop()
    with pytest.raises(KeyboardInterrupt):
        crew.work([compile_forever], 1, stop, interrupt)
    assert len(ended) == 1
    assert stop.flag.tolist() == [1]
    # The next crew is not disturbed.
    assert crew.alone(lambda: 1 + 1, crew.Stop()) == 2


def test_a_thread_that_is_ended_where_c_drops_exceptions_says_nothing(monkeypatch):
    dropped, begun = [], threading.Event()
    monkeypatch.setattr(sys, "unraisablehook", dropped.append)

    @ctypes.CFUNCTYPE(None)
    def spin():
        begun.set()
        while True:
            time.sleep(0.001)

    def interrupt():
        if begun.is_set():
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        crew.work([spin], 1, crew.Stop(), interrupt)
    assert dropped == []
    assert sys.unraisablehook == dropped.append


def test_control_c_stops_a_long_run_at_once():
    process = script(
        """
        import banditmesh as bm
        problem = bm.Problem.paper("er", seed=0)
        bm.simulate(problem, bm.FwA(4), horizon=10, seed=0)
        print("ready", flush=True)
        try:
            bm.simulate(problem, bm.FwA(4), horizon=4 * 10**7, record_every=10**5, replicates=2, seed=0)
        except KeyboardInterrupt:
            print("stopped", flush=True)
        """
    )
    assert process.stdout.readline() == "ready\n"
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    out, error = process.communicate(timeout=60)
    assert out == "stopped\n", error


@pytest.mark.parametrize(
    ("what", "network", "run"),
    [
        (
            "planning",
            "bm.networks.sparse_er(20_000, 20.0, seed=0)",
            "bm.Flooding(9), horizon=10**6, record_every=10**6",
        ),
        pytest.param(
            "spreading",
            "nx.random_regular_graph(20, 20_000, seed=0)",
            "bm.Flooding(9), faults=bm.Faults(loss=0.01), horizon=3",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            "walking", "nx.complete_graph(1000)", "bm.FwA(4), rules='published', horizon=60", marks=pytest.mark.slow
        ),
        pytest.param(
            "telling everyone", "nx.empty_graph(400_000)", "bm.Centralised(), horizon=3", marks=pytest.mark.slow
        ),
    ],
)
def test_control_c_stops_a_run_in_the_middle_of_a_round(what, network, run):
    # Each round, or the plan, takes minutes.
    process = script(
        f"""
        import networkx as nx
        import banditmesh as bm

        def problem(network):
            n_agents = network.shape[0] if hasattr(network, "shape") else len(network)
            arms = [[0, 1 + v % 2] for v in range(n_agents)]
            return bm.Problem(network, arms, [bm.arms.Gaussian(0.1 * arm, 1.0) for arm in range(3)])

        bm.simulate(problem(nx.path_graph(3)), {run.replace("10**6", "3")}, seed=0, engine="compiled")
        large = problem({network})
        print("ready", flush=True)
        try:
            bm.simulate(large, {run}, seed=0, engine="compiled")
        except KeyboardInterrupt:
            print("stopped", flush=True)
        """
    )
    assert process.stdout.readline() == "ready\n"
    time.sleep(2.0)
    process.send_signal(signal.SIGINT)
    try:
        out, error = process.communicate(timeout=30)
    except subprocess.TimeoutExpired:
        process.kill()
        raise
    assert out == "stopped\n", error


# test_kernel_cache.py compiles a kernel as small as can be there.
@pytest.mark.slow
def test_a_machine_without_any_place_for_a_cache_is_no_error():
    process = script(
        """
        from numba.core import caching
        caching.CompileResultCacheImpl._locator_classes = []
        caching.CacheImpl._locator_classes = []
        import banditmesh as bm
        from banditmesh.sim.compiled.kernels import planned
        assert not planned.plan_rounds.stats.cache_path
        problem = bm.Problem(bm.networks.path(3), [[0]] * 3, [bm.arms.Uniform(0, 1)])
        print(bm.simulate(problem, bm.NoCooperation(), horizon=3, seed=0).engine)
        """
    )
    out, error = process.communicate(timeout=300)
    assert out == "compiled\n", error
    assert "compiling the engine" in error


def test_no_warning_is_given_where_the_compiled_engine_runs():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        bm.simulate(bm.Problem.paper("er", seed=0), bm.Flooding(4), horizon=2000, seed=0)


def test_no_kernel_is_too_long_to_read_or_takes_too_many_arguments():
    for path in Path(kernels.__file__).parent.glob("*.py"):
        for function in ast.walk(ast.parse(path.read_text())):
            if isinstance(function, ast.FunctionDef):
                assert function.end_lineno - function.lineno + 1 < 150, function.name
                assert len(function.args.args) < 15, function.name
