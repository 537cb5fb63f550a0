"""Integers that would not hold a run's numbers are widened, or the run is refused beforehand."""

from dataclasses import replace
from types import SimpleNamespace

import networkx as nx
import numpy as np
import pytest

import banditmesh as bm
from banditmesh.machine import memory
from banditmesh.sim import limits
from banditmesh.sim.compiled import engine, replicates
from banditmesh.sim.compiled.crew import Stop, Stopped
from banditmesh.sim.compiled.kernels.special import USUAL
from banditmesh.sim.compiled.linkcounts import LinkCounts
from banditmesh.sim.compiled.merging import Merge
from banditmesh.sim.compiled.packing import pack
from banditmesh.sim.compiled.plans import make_plan
from banditmesh.sim.compiled.spreading import Spread
from banditmesh.sim.compiled.walking import Walk
from cases import common_arms, normal_tape


class Kept(Exception):
    """Carries a run out of `simulate`."""


def a_run(problem, protocol, **settings):
    def keep(run, *given):
        raise Kept(run)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("banditmesh.sim.engine._pick", keep)
        with pytest.raises(Kept) as kept:
            bm.simulate(problem, protocol, seed=0, **settings)
    return kept.value.args[0]


PATH = common_arms(nx.path_graph(3))


def test_horizons_end_where_counts_of_pulls_do():
    assert np.iinfo(np.int32).max == limits.MAX_ROUNDS
    settings = {"horizon": limits.MAX_ROUNDS, "record_every": 2**30}
    assert a_run(PATH, bm.IRS(), **settings).horizon == limits.MAX_ROUNDS
    with pytest.raises(bm.InputError, match="horizon must be an integer of at least 1 and at most 2147483647, got"):
        bm.simulate(PATH, bm.IRS(), horizon=limits.MAX_ROUNDS + 1, record_every=2**30)


@pytest.mark.parametrize("before", [2**29, 2**31 - 4, 2**31 - 1, 2**40])
def test_counts_along_a_tree_pass_32_bits(before):
    run = a_run(PATH, bm.TreeAggregation(emission=bm.Growth(0.0)), horizon=6)
    counts = []
    for start in (1, before):
        one = Merge(pack(run), USUAL, 0, None, Stop())
        # Each of three agents in a row has pulled each arm so often, and has told its neighbours what it knows.
        one._merged.counts[:] = 3 * start
        one._merged.told_counts[:] = np.array([2, 1, 1, 2])[:, None] * start
        one._merged.sent_counts[:] = np.array([1, 2, 2, 1])[:, None] * start
        one.advance(7)
        counts.append((one._merged.counts, one._merged.told_counts, one.state.sums[:, 0]))
    (few, few_told, few_learned), (many, many_told, many_learned) = counts
    assert np.array_equal(many - few, np.full_like(few, 3 * (before - 1)))
    assert np.array_equal(many_told - few_told, np.broadcast_to([[2], [1], [1], [2]], few_told.shape) * (before - 1))
    assert np.array_equal(many_learned, few_learned)


@pytest.mark.parametrize(
    ("sizes", "what"),
    [
        ((1, 2**31, 0, 1), "arms of all agents together, got 2147483648; use fewer agents or arms"),
        ((2**20, 1, 0, 2**11), "messages under way .* use fewer agents or a shorter ttl"),
        ((1, 1, 2**31, 1), "links, counted in both directions, got 2147483648; use fewer links"),
    ],
)
def test_sizes_beyond_32_bits_are_refused(sizes, what):
    with pytest.raises(bm.InputError, match=what):
        limits.check_sizes(*sizes)
    limits.check_sizes(2**20, 2**31 - 1, 2**31 - 1, 2**11 - 1)


def test_traffic_beyond_64_bits_is_refused_by_what_the_plan_says():
    run = a_run(PATH, bm.Flooding(2), horizon=2**31 - 1, record_every=2**30)
    plan = make_plan(len(PATH.arm_indices), 2)
    most = 2**63 // (3 * 24 * run.horizon)
    plan.records[:, -1] = most - 1
    limits.check_traffic(run, plan)
    plan.records[:, -1] = most + 1
    with pytest.raises(bm.InputError, match=r"at most 9.2e\+18 bytes, and this one may send 9.2e\+18; use a shorter"):
        limits.check_traffic(run, plan)
    limits.check_traffic(replace(run, every=np.array([1, 2, 1])), plan)


# How far messages get


@pytest.mark.parametrize(
    "protocol", [bm.Flooding(32768), bm.FwA(32768), bm.Gossip(32768), bm.ProbabilisticFlooding(32768)], ids=repr
)
@pytest.mark.parametrize(
    "graph", [nx.path_graph(10), nx.cycle_graph(10), nx.empty_graph(10)], ids=["path", "cycle", "none"]
)
def test_a_ttl_that_no_message_lives_for_takes_no_memory_and_changes_nothing(protocol, graph, rules):
    arms = [[v % 3, 3] for v in range(10)]
    problem = bm.Problem(graph, arms, [bm.arms.Gaussian(0.1 * arm, 1.0) for arm in range(4)])
    needed = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(memory, "check", lambda n_bytes, what, remedy: needed.append(n_bytes))
        results = [
            bm.simulate(problem, protocol, horizon=40, seed=0, rules=rules, engine=name)
            for name in ("compiled", "reference")
        ]
    assert results[0] == results[1]
    assert max(needed) < 2**20


def test_reach_is_the_least_of_ttl_horizon_agents_and_distances():
    def reach(graph, protocol, **settings):
        problem = common_arms(graph)
        run = a_run(problem, protocol, **settings)
        return pack(run).traits.reach

    assert reach(nx.path_graph(100), bm.Flooding(4), horizon=1000) == 4
    assert reach(nx.path_graph(100), bm.Flooding(4000), horizon=20) == 20
    assert reach(nx.path_graph(100), bm.Gossip(4000), horizon=1000) == 101
    assert reach(nx.star_graph(99), bm.Flooding(4000), horizon=1000) <= 6
    # Everybody has every arm, so that nobody relays.
    assert reach(nx.path_graph(100), bm.FwA(4000), horizon=1000) == 1
    forgetful = bm.Faults(outages=bm.Outages(0.1, 0.5, memory=False))
    assert reach(nx.path_graph(10), bm.Flooding(4000), horizon=1000, faults=forgetful) == 1000


# Stopping


@pytest.mark.parametrize(
    ("delivery", "protocol", "settings"),
    [
        (Spread, bm.NoCooperation(), {}),
        (Spread, bm.Gossip(2), {}),
        (Spread, bm.Gossip(2), {"faults": bm.Faults(outages=bm.Outages(0.1, 0.5))}),
        (Walk, bm.FwA(2), {"rules": "published"}),
        (Merge, bm.TreeAggregation(), {}),
    ],
    ids=["plan", "spread", "outages", "walk", "merge"],
)
def test_a_replicate_that_is_asked_to_stop_does_nothing_more(delivery, protocol, settings):
    run = a_run(PATH, protocol, horizon=10, **settings)
    stop = Stop()
    one = delivery(pack(run), USUAL, 0, None, stop)
    one.advance(3)
    pulled = one.state.pulls.sum()
    stop.set()
    with pytest.raises(Stopped):
        one.advance(9)
    assert one.state.pulls.sum() == pulled > 0
    assert one.t == 3


def test_link_counts_are_kept_by_record_and_not_by_round():
    counts = LinkCounts(3, np.array([1000]))
    for t in range(1, 1000):
        counts.add(t, np.array([0, 1, 2, 2]), np.array([1, 0], dtype=np.int32), np.array([1, 2]))
        assert sum(len(codes) for codes, _ in counts._parts) <= 4
    counts.add(1000, np.array([0, 0, 1, 2]), np.array([2, 1], dtype=np.int32), np.array([5, 7]))
    links, traffic = counts.arrays()
    assert links.tolist() == [[0, 1], [1, 0], [1, 2], [2, 1]]
    assert traffic.tolist() == [[999, 1998, 5, 7]]


def test_link_counts_keep_nothing_of_rounds_without_links():
    counts = LinkCounts(2, np.array([1000, 1001]))
    for t in range(1, 1000):
        up = t in (3, 500)
        counts.add(t, np.array([0, up, up]), np.zeros(int(up), dtype=np.int32) + 1, np.full(int(up), t))
        assert len(counts._parts) <= 2
    for t in (1000, 1001):
        counts.add(t, np.array([0, 0, 0]), np.zeros(0, dtype=np.int32), np.zeros(0, dtype=np.int64))
    links, traffic = counts.arrays()
    assert links.tolist() == [[0, 1]]
    assert traffic.tolist() == [[503], [0]]


# Long horizons: many chunks


ONE = bm.Problem(nx.empty_graph(1), [[0, 1]], [bm.arms.Gaussian(m, 1.0) for m in (0.0, 0.5)])
CHANGING = bm.Problem(bm.networks.EdgeMarkovian(nx.path_graph(4), 0.3, 0.3), [[0, 1], [0], [1], [0, 1]], ONE.laws)
N_CHUNKS = 600
LONG_RUNS = {
    "one agent": (ONE, bm.NoCooperation(), {}),
    "dynamic": (CHANGING, bm.FwA(2), {}),
    "dynamic, links": (CHANGING, bm.Gossip(2), {"link_traffic": True, "record_every": 250}),
    "published": (CHANGING, bm.FwA(2), {"rules": "published"}),
    "tape": (PATH, bm.Flooding(2), {"rewards": normal_tape(PATH, N_CHUNKS)}),
    "outages": (PATH, bm.Flooding(2), {"faults": bm.Faults(loss=0.1, outages=bm.Outages(0.1, 0.5))}),
    "forgetful": (PATH, bm.FwA(2), {"faults": bm.Faults(outages=bm.Outages(0.1, 0.5, memory=False))}),
    "record_every": (PATH, bm.IRS(), {"record_every": 7, "agents": True}),
    "growth": (PATH, bm.Flooding(2, emission=bm.Growth(0.1, echoes=1)), {"every": [1, 2, 3]}),
    "tree": (PATH, bm.TreeAggregation(), {}),
}


@pytest.mark.parametrize("name", LONG_RUNS)
def test_a_run_of_many_quick_chunks_is_that_of_few(name, monkeypatch):
    problem, protocol, settings = LONG_RUNS[name]
    arguments = {"horizon": N_CHUNKS, "seed": 0, "engine": "compiled", "threads": 1, **settings}
    few = bm.simulate(problem, protocol, **arguments)
    # Chunks of one round that take no time: what doubled or quadrupled with each would be beyond all floats.
    monkeypatch.setattr(engine, "time", SimpleNamespace(perf_counter=lambda: 0.0))
    monkeypatch.setattr(replicates, "LONGEST_CHUNK", 1)
    monkeypatch.setattr(replicates, "LONGEST_WINDOW", 1)
    assert bm.simulate(problem, protocol, **arguments) == few


def test_recording_every_agent_in_every_round_goes_on_for_long():
    problem = bm.Problem.paper("er", seed=0)
    result = bm.simulate(problem, bm.FwA(4), horizon=1000, agents=True, seed=0, engine="compiled")
    assert np.allclose(result.agent_regret_curve[0].sum(axis=1), result.regret[0])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("problem", "protocol", "horizon", "settings"),
    [
        (ONE, bm.NoCooperation(), 20_000_000, {}),
        (ONE, bm.NoCooperation(), 3_000_000, {"faults": bm.Faults(outages=bm.Outages(0.1, 0.5))}),
        (CHANGING, bm.Flooding(2), 300_000, {}),
        (CHANGING, bm.Flooding(2), 200_000, {"link_traffic": True}),
        (PATH, bm.FwA(2), 1_000_000, {"rewards": normal_tape(PATH, 1_000_000)}),
    ],
    ids=["one agent", "outages", "dynamic", "links", "tape"],
)
def test_long_horizons(problem, protocol, horizon, settings):
    arguments = {"horizon": horizon, "seed": 0, "record_every": 10_000, "engine": "compiled", **settings}
    result = bm.simulate(problem, protocol, **arguments)
    assert result.rounds[-1] == horizon
    assert np.isfinite(result.regret).all()
