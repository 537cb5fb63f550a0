"""Arms that change: what they pay, what regret is then, on both engines, in files, specs and on the command line."""

import hashlib
import math
from statistics import NormalDist

import networkx as nx
import numpy as np
import pytest

import banditmesh as bm
from banditmesh.arms.world import MAX_CHANGES, MAX_ROUNDS, World
from banditmesh.cli import main
from banditmesh.draws import Draws
from banditmesh.errors import ArmError, BanditmeshError, FileError, InputError
from oracles import pulls_without_messages

A = bm.arms
GRAPH = nx.Graph([(0, 1), (1, 2), (2, 3), (3, 4), (4, 0), (1, 4), (5, 2)])
SETS = [[0, 1, 2], [1, 3], [2, 3, 4], [0, 4, 5], [5, 1, 3], [0, 2, 5]]
HORIZON = 60


def gaussian(mean):
    return A.Gaussian(mean, 1.0)


WORLDS = {
    "every kind": [
        gaussian(0.1),
        A.Switching(A.Uniform(0.0, 1.0), 0.05, 0.0, 1.0),
        A.Wandering(A.Bernoulli(0.5), 0.1, 0.0, 1.0, hold=3),
        A.Seasonal(gaussian(0.0), 1.0, 10),
        A.Drifting(A.Uniform(0.0, 1.0), A.Uniform(1.0, 2.0), 3, 30),
        A.Piecewise({1: gaussian(0.3), 21: A.Gaussian(0.9, 2.0)}),
    ],
    "coins": [
        A.Bernoulli(0.3),
        A.Switching(A.Bernoulli(0.5), 0.1, 0.0, 1.0),
        A.Wandering(A.Bernoulli(0.5), 0.3, 0.2, 0.8),
        A.Seasonal(A.Bernoulli(0.5), 0.5, 7),
        A.Piecewise({1: A.Bernoulli(0.3), 10: A.Bernoulli(0.6)}),
        A.Drifting(A.Bernoulli(0.5), A.Bernoulli(1.0), 1, 50),
    ],
    "other kinds": [
        A.Beta(1.0, 2.0),
        A.Piecewise({1: A.Beta(1.0, 2.0), 21: A.Beta(3.0, 2.0)}),
        A.Switching(gaussian(0.0), 0.1, -1.0, 1.0),
        A.Bernoulli(0.5),
        A.Piecewise({1: A.Empirical([0.0, 1.0]), 31: A.Empirical([1.0, 2.0])}),
        gaussian(0.2),
    ],
}


def problem(world):
    return bm.Problem(GRAPH, SETS, WORLDS[world])


# --- By hand: Philox and the documented keys, written down once more.


def key(purpose, seed, replicate):
    digest = hashlib.blake2b(f"banditmesh {purpose} {seed} {replicate}".encode(), digest_size=8).digest()
    return [int.from_bytes(digest[:4], "little"), int.from_bytes(digest[4:], "little")]


def drawn(purpose, seed, replicate, *counter):
    words, keys = [*counter, 0, 0], key(purpose, seed, replicate)
    for _ in range(10):
        first, second = 0xD2511F53 * words[0], 0xCD9E8D57 * words[2]
        words = [
            (second >> 32) ^ words[1] ^ keys[0],
            second % 2**32,
            (first >> 32) ^ words[3] ^ keys[1],
            first % 2**32,
        ]
        keys = [(keys[0] + 0x9E3779B9) % 2**32, (keys[1] + 0xBB67AE85) % 2**32]
    return ((words[0] // 64) * 2**26 + words[1] // 64 + 0.5) / 2**52


def reflected(mean, low, high):
    while not low <= mean <= high:
        mean = 2 * low - mean if mean < low else 2 * high - mean
    return mean


def means_by_hand(seed, replicate, horizon):
    """Two arms that switch, one that wanders, and a fixed one."""
    means = np.zeros((horizon, 4))
    now = [0.2, 0.5, 0.4, 0.6]
    for t in range(1, horizon + 1):
        for arm in (0, 1):
            if t > 1 and drawn("change", seed, replicate, arm, t) < 0.08:
                now[arm] = drawn("mean", seed, replicate, arm, t)
        if t > 1 and (t - 1) % 4 == 0:
            step = NormalDist().inv_cdf(drawn("mean", seed, replicate, 2, t))
            now[2] = reflected(now[2] + 0.7 * step, 0.3, 0.6)
        means[t - 1] = now
    return means


BY_HAND = bm.Problem(
    GRAPH,
    [[0, 1, 2], [1, 3], [2, 3], [0, 3], [1, 2], [0, 2, 3]],
    [
        A.Switching(gaussian(0.2), 0.08, 0.0, 1.0),
        A.Switching(gaussian(0.5), 0.08, 0.0, 1.0),
        A.Wandering(gaussian(0.4), 0.7, 0.3, 0.6, hold=4),
        gaussian(0.6),
    ],
)


@pytest.mark.parametrize("replicate", [0, 3])
def test_random_means_are_those_drawn_by_the_documented_keys(replicate):
    expected = means_by_hand(7, replicate, 150)
    found = [BY_HAND.means_at(t, seed=7, replicate=replicate) for t in range(1, 151)]
    np.testing.assert_allclose(found, expected, atol=1e-12)
    assert (np.diff(expected[:, 0]) != 0).sum() > 4


@pytest.mark.parametrize(
    "name, protocol", [("none", bm.NoCooperation()), ("fwa", bm.FwA(3)), ("flooding", bm.Flooding(3))]
)
def test_brute_force_gives_the_same_pulls_and_regret(name, protocol, engine):
    seed, replicate = 11, 2
    means = means_by_hand(seed, replicate, HORIZON)
    normals = [
        [NormalDist().inv_cdf(drawn("reward", seed, replicate, agent, t)) for agent in range(6)]
        for t in range(1, HORIZON + 1)
    ]
    tape = means[:, None, :] + np.array(normals)[:, :, None]
    expected = pulls_without_messages(BY_HAND, name, 0 if name == "none" else 3, tape, HORIZON)
    regret, pulls = np.zeros((HORIZON, 6)), np.zeros((6, 4), dtype=int)
    for (t, agent), arm in expected.items():
        held = BY_HAND.arm_set(agent).tolist()
        regret[t - 1, agent] = max(means[t - 1, a] for a in held) - means[t - 1, arm]
        pulls[agent, arm] += 1
    result = bm.simulate(
        BY_HAND, protocol, horizon=HORIZON, replicates=range(2, 3), seed=seed, engine=engine, agents=True
    )
    np.testing.assert_array_equal(result.pulls[0], pulls)
    np.testing.assert_allclose(result.regret[0], regret.sum(axis=1).cumsum(), atol=1e-9)
    np.testing.assert_allclose(result.agent_regret_curve[0], regret.cumsum(axis=0), atol=1e-9)
    np.testing.assert_allclose(result.agent_regret[0], regret.sum(axis=0), atol=1e-9)
    jumps = 2 + np.flatnonzero((np.diff(means[:, :2], axis=0) != 0).any(axis=1))
    assert result.changes[0].tolist() == jumps.tolist()


# --- Both engines.

FAULTY = bm.Faults(loss=0.2, outages=bm.Outages(0.1, 0.5, memory=False))
WAYS = {
    "quiet": ("none", {}),
    "plan": ("fwa(3)", {"agents": True}),
    "spread": ("gossip(3)", {"every": [1, 2, 1, 3, 1, 1], "record_every": 7}),
    "outages": ("flooding(2)+growth(0.25)", {"faults": FAULTY}),
    "walk": ("fwa(3)", {"rules": "published"}),
    "published": ("flooding(3)", {"rules": "published"}),
    "tree": ("tree", {"link_traffic": True}),
    "everyone": ("centralised", {}),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("world", WORLDS)
def test_engines_agree(world, way):
    protocol, settings = WAYS[way]
    if world == "other kinds" and settings.get("rules") == "published":
        protocol = "none"  # others of these do not run compiled by the published rules
    given = {"horizon": HORIZON, "replicates": 2, "seed": 3, "policy": bm.UCB(), **settings}
    reference, compiled = (
        bm.simulate(problem(world), protocol, engine=engine, **given) for engine in ("reference", "compiled")
    )
    assert reference == compiled
    assert all(len(rounds) for rounds in reference.changes)


def test_threads_that_share_a_round_agree_with_one():
    from banditmesh.sim.arguments import read_run
    from banditmesh.sim.compiled import engine
    from banditmesh.sim.engine import settings_of
    from banditmesh.sim.result import assemble

    settings = dict.fromkeys(("policy", "rewards", "every", "faults")) | {"link_traffic": False, "trace": False}
    settings |= {"horizon": 40, "replicates": 1, "seed": 0, "rules": "sound", "agents": True, "record_every": 1}
    run = read_run(problem("every kind"), "fwa(2)", **settings)
    one, two = (
        assemble(run, "compiled", engine.run_all(run, 1, lambda *_: None, threads_each=n), settings_of(run))
        for n in (1, 2)
    )
    assert one == two


def test_replicates_meet_their_own_worlds_whatever_the_protocol():
    both = bm.simulate(BY_HAND, "irs", horizon=40, replicates=3, seed=1)
    last = bm.simulate(BY_HAND, "none", horizon=40, replicates=range(2, 3), seed=1)
    assert both.changes[2].tolist() == last.changes[0].tolist() != both.changes[0].tolist()
    np.testing.assert_array_equal(
        bm.simulate(BY_HAND, "irs", horizon=40, replicates=range(2, 3), seed=1).regret[0], both.regret[2]
    )


def test_a_tape_beside_changing_laws_is_judged_by_the_means_of_each_round(engine):
    changing = bm.Problem(GRAPH, SETS, [A.Seasonal(gaussian(m), 0.5, 20, 3.0 * m) for m in range(6)])
    means = np.array([changing.means_at(t) for t in range(1, HORIZON + 1)])
    rng = np.random.default_rng(0)
    tape = means[:, None, :] + rng.normal(size=(HORIZON, 6, 6))
    settings = {"horizon": HORIZON, "seed": 0, "rewards": tape, "engine": engine}
    fixed = bm.Problem(GRAPH, SETS, [gaussian(float(m)) for m in range(6)])
    by_laws, given = bm.simulate(changing, "irs", **settings), bm.simulate(fixed, "irs", **settings, means=means)
    np.testing.assert_array_equal(by_laws.regret, given.regret)
    np.testing.assert_array_equal(by_laws.agent_regret, given.agent_regret)
    with pytest.warns(bm.BanditmeshWarning, match="rewards contradict the arms' laws"):
        bm.simulate(changing, "irs", **{**settings, "rewards": tape + 5.0})


def test_stepping_gives_the_gaps_of_the_round():
    simulation = bm.Simulation(problem("every kind"), "fwa(2)", horizon=HORIZON, seed=4)
    total = 0.0
    for t in range(1, HORIZON + 1):
        means, seen = problem("every kind").means_at(t, seed=4), simulation.step()
        expected = {v: max(means[SETS[v]]) - means[arm] for v, arm in seen.choices.items()}
        assert seen.gaps == pytest.approx(expected)
        total += seen.regret
    assert simulation.run().regret[0, -1] == pytest.approx(total)


# --- Laws.


def test_laws_of_each_round():
    law = A.Piecewise({1: A.Beta(1, 1), 4: A.Beta(3, 1), 9: A.Beta(1, 3)})
    assert [law.at(t) for t in (1, 3, 4, 8, 9, 100)] == [A.Beta(1, 1)] * 2 + [A.Beta(3, 1)] * 2 + [A.Beta(1, 3)] * 2
    drift = A.Drifting(gaussian(1.0), gaussian(3.0), 5, 9)
    assert [drift.at(t).mean for t in (1, 5, 6, 7, 9, 50)] == [1.0, 1.0, 1.5, 2.0, 3.0, 3.0]
    swing = A.Seasonal(A.Uniform(0.0, 2.0), 0.5, 12, 3)
    assert swing.at(3).mean == pytest.approx(1.0)
    for t in range(1, 40):
        expected = 1.0 + 0.5 * math.sin(2 * math.pi * (t + 3) / 12)
        assert (swing.at(t).low, swing.at(t).high) == pytest.approx((expected - 1.0, expected + 1.0))
    assert gaussian(2.0).at(7) == gaussian(2.0)


@pytest.mark.parametrize("world", WORLDS)
def test_rounds_of_a_world_are_those_of_its_laws(world):
    rows = World(WORLDS[world], Draws(1, 0)).rows(1, 300)
    for arm, law in enumerate(WORLDS[world]):
        if isinstance(law, A.RandomLaw):
            continue
        for t in (1, 2, 10, 21, 64, 65, 193, 299):
            assert rows.means[t - 1, arm] == law.at(t).mean
            if law.kernel is not None:
                assert (law.code, rows.a[t - 1, arm], rows.b[t - 1, arm]) == law.at(t).kernel


def test_sigma_is_the_largest_of_all_rounds_and_a_half_for_coins():
    worlds = WORLDS["every kind"]
    assert [law.sigma for law in worlds] == [1.0, A.Uniform(0, 1).sigma, 0.5, 1.0, A.Uniform(0, 1).sigma, 2.0]
    assert {law.sigma for law in WORLDS["coins"][1:]} == {0.5}
    assert [law.code for law in worlds] == [
        law.at(1).code if not isinstance(law, A.RandomLaw) else law.law.code for law in worlds
    ]


@pytest.mark.parametrize("law", [law for laws in WORLDS.values() for law in laws], ids=repr)
def test_laws_are_described_and_made_again(law):
    assert A.from_description(law.describe()) == law


def test_blocks_of_a_world_do_not_grow_with_the_horizon():
    world = World([A.Seasonal(gaussian(0.0), 1.0, 30), gaussian(1.0)], Draws(0, 0))
    for t in range(1, 5000, 100):
        assert world.rows(t, t + 1).means.base.shape[0] <= MAX_ROUNDS
    first = world.means(3).tolist()
    assert first == World([A.Seasonal(gaussian(0.0), 1.0, 30), gaussian(1.0)], Draws(0, 0)).means(3).tolist()


def test_at_most_a_thousand_rounds_of_change_are_kept():
    law = A.Switching(gaussian(0.5), 1.0, 0.0, 1.0)
    found = World([law], Draws(0, 0)).changes(1500)
    assert found.tolist() == list(range(2, MAX_CHANGES + 2))


def test_own_laws_change_too(engine):
    class Fading(A.ChangingLaw):
        def at(self, t):
            return A.Bernoulli(0.2 + 0.8 / t)

    class Coin(A.RandomLaw):
        law, low, high = A.Bernoulli(0.5), 0.0, 1.0

        def walk(self, whether, what):
            t = 1
            yield 0.5
            while True:
                t += 1
                yield what(t) if whether(t) < 0.5 else 0.25

    own = bm.Problem(GRAPH, [[0, 1]] * 6, [Fading(), Coin()])
    expected = [drawn("mean", 3, 0, 1, t) if drawn("change", 3, 0, 1, t) < 0.5 else 0.25 for t in range(2, 20)]
    assert [own.means_at(t, seed=3)[1] for t in range(2, 20)] == pytest.approx(expected)
    result = bm.simulate(own, "irs", horizon=30, seed=3, engine=engine, policy=bm.UCB())
    assert result == bm.simulate(own, "irs", horizon=30, seed=3, engine="reference", policy=bm.UCB())


def test_own_laws_are_held_to_the_contract():
    class Mixed(A.ChangingLaw):
        def at(self, t):
            return A.Bernoulli(0.5) if t < 5 else gaussian(0.5)

    class Loud(A.ChangingLaw):
        def at(self, t):
            return A.Gaussian(0.0, float(t))

    for law, message in (
        (Mixed(), "must be of one kind of law"),
        (Loud(), "sigma of the law Loud must be the largest"),
    ):
        with pytest.raises(ArmError, match=message):
            bm.simulate(bm.Problem(GRAPH, [[0]] * 6, [law]), "none", horizon=10, seed=0)
    Loud.sigma = 100.0
    bm.simulate(bm.Problem(GRAPH, [[0]] * 6, [Loud()]), "none", horizon=10, seed=0, engine="reference")


BAD_LAWS = {
    "empty schedule": (lambda: A.Piecewise({}), "an empty schedule"),
    "no schedule": (lambda: A.Piecewise([gaussian(0)]), "must be a mapping from rounds to laws"),
    "without 1": (lambda: A.Piecewise({2: gaussian(0)}), "must ascend from 1, got"),
    "unordered": (lambda: A.Piecewise({1: gaussian(0), 9: gaussian(1), 5: gaussian(2)}), "must ascend from 1, got"),
    "no round": (lambda: A.Piecewise({1: gaussian(0), 2.5: gaussian(1)}), "must be an integer of at least 1, got 2.5"),
    "mixed": (
        lambda: A.Piecewise({1: gaussian(0), 5: A.Bernoulli(0.5)}),
        "one kind of law, got Gaussian and Bernoulli",
    ),
    "replay": (lambda: A.Piecewise({1: A.Replay([1.0])}), "neither changes nor is used up, got Replay"),
    "nested": (lambda: A.Piecewise({1: WORLDS["coins"][1]}), "neither changes nor is used up, got Switching"),
    "no law": (lambda: A.Piecewise({1: 0.5}), "must be a law of banditmesh.arms, got 0.5"),
    "drift of kinds": (lambda: A.Drifting(gaussian(0), A.Bernoulli(1), 1, 9), "must be of one kind of law"),
    "drift of spread": (lambda: A.Drifting(gaussian(0), A.Gaussian(1, 2), 1, 9), "must differ only in the mean"),
    "drift backwards": (lambda: A.Drifting(gaussian(0), gaussian(1), 9, 9), "last must be after first, got 9 and 9"),
    "drift of a beta": (lambda: A.Drifting(A.Beta(1, 2), A.Beta(2, 1), 1, 9), "got Beta; change it by Piecewise"),
    "coin below 0": (lambda: A.Seasonal(A.Bernoulli(0.2), 0.3, 9), "stay between 0 and 1, got -0.1"),
    "coin above 1": (lambda: A.Seasonal(A.Bernoulli(0.8), 0.3, 9), "stay between 0 and 1, got 1.1"),
    "coin switches out": (lambda: A.Switching(A.Bernoulli(0.5), 0.1, 0.0, 1.5), "stay between 0 and 1, got 1.5"),
    "coin wanders out": (lambda: A.Wandering(A.Bernoulli(0.5), 0.1, -1.0, 1.0), "stay between 0 and 1, got -1"),
    "period": (lambda: A.Seasonal(gaussian(0), 1.0, 0), "period must be a positive number, got 0"),
    "amplitude": (lambda: A.Seasonal(gaussian(0), math.nan, 5), "amplitude must be a finite number, got nan"),
    "rate": (lambda: A.Switching(gaussian(0), 1.1, -1, 1), "rate must be a probability between 0 and 1, got 1.1"),
    "step": (lambda: A.Wandering(gaussian(0), 0.0, -1, 1), "step must be a positive number, got 0.0"),
    "hold": (lambda: A.Wandering(gaussian(0), 1.0, -1, 1, hold=0), "hold must be an integer of at least 1"),
    "ends": (lambda: A.Switching(gaussian(0), 0.1, 1, -1), "high must be above low, got low 1.0 and high -1.0"),
    "outside": (lambda: A.Switching(gaussian(2), 0.1, -1, 1), "must have the law's mean between them"),
    "too far": (lambda: A.Switching(gaussian(0), 0.1, -1e101, 1), "must lie between -1e\\+100 and 1e\\+100"),
}


@pytest.mark.parametrize("case", BAD_LAWS)
def test_bad_laws_are_refused_in_one_line(case):
    make, message = BAD_LAWS[case]
    with pytest.raises(BanditmeshError, match=message) as caught:
        make()
    assert "\n" not in str(caught.value)


LATE = {
    "piecewise": (A.Piecewise({1: gaussian(0.0), 31: gaussian(1.0)}), 31),
    "drifting": (A.Drifting(gaussian(0.0), gaussian(1.0), 30, 90), 31),
    "wandering": (A.Wandering(gaussian(0.0), 1.0, -1.0, 1.0, hold=30), 31),
}


@pytest.mark.parametrize("case", LATE)
def test_a_change_beyond_the_horizon_is_refused(case):
    law, least = LATE[case]
    late = bm.Problem(GRAPH, [["x"]] * 6, {"x": law})
    for run in (bm.simulate, bm.Simulation, bm.compare):
        with pytest.raises(InputError, match=f"arm 'x' changes in round {least}, beyond the horizon of {least - 1} "):
            run(late, "none", horizon=least - 1, seed=0)
    with pytest.raises(InputError, match="beyond the horizon"):
        bm.frontier(late, horizon=least - 1, replicates=1, seed=0, protocols="none")
    found = bm.frontier(late, horizon=least, replicates=2, seed=0, protocols=["none", "irs"], prune=True)
    assert found.recommended is not None  # its first rounds alone are tried, too


def test_what_holds_for_fixed_arms_is_refused_in_one_line():
    changing = problem("coins")
    for name in ("means", "gaps", "arm_gaps", "best_means", "best_arms"):
        with pytest.raises(ArmError, match=r"do not change, got arm 1, which does; ask means_at\(t\)"):
            getattr(changing, name)
    with pytest.raises(ArmError, match="bounds are for arms that do not change, got arm 1"):
        bm.bounds(changing, "fwa(2)")
    with pytest.raises(ArmError, match="estimates are for arms that do not change, got arm 1"):
        bm.theory.estimate(changing, "fwa(2)")
    with pytest.raises(ArmError, match="a mean in every round and none for all"):
        _ = changing.laws[1].mean
    with pytest.raises(ArmError, match="depends on seed and replicate"):
        changing.laws[1].at(3)
    with pytest.raises(InputError, match="got no seed"):
        changing.means_at(3)
    with pytest.raises(InputError, match="t must be an integer of at least 1"):
        changing.means_at(0, seed=0)
    assert "in round 1" in changing._repr_html_()


# --- Results, pictures and files.


def test_results_keep_rounds_of_change_and_plots_mark_those_of_all(tmp_path):
    arms = [A.Piecewise({1: gaussian(0.0), 20: gaussian(1.0)}), A.Switching(gaussian(0.5), 0.1, 0.0, 1.0)]
    both = bm.Problem(GRAPH, [[0, 1]] * 6, arms)
    result = bm.simulate(both, "irs", horizon=50, replicates=3, seed=0)
    assert all(20 in rounds for rounds in result.changes)
    assert result.shared_changes.tolist() == [20]
    for figure in (result.plot(), bm.compare(both, ["none", "irs"], horizon=50, replicates=3, seed=0).plot()):
        marks = [line for line in figure.axes[0].lines if line.get_color() == "0.6"]
        assert [line.get_xdata()[0] for line in marks] == [20.0]
    result.save(tmp_path / "result.npz")
    again = bm.Result.load(tmp_path / "result.npz")
    assert again == result
    assert [rounds.tolist() for rounds in again.changes] == [rounds.tolist() for rounds in result.changes]
    fixed = bm.simulate(bm.Problem.random(GRAPH, 3, 2), "irs", horizon=5, replicates=2, seed=0)
    assert [len(rounds) for rounds in fixed.changes] == [0, 0]
    fixed.save(tmp_path / "fixed.npz")
    assert bm.Result.load(tmp_path / "fixed.npz") == fixed


def test_a_file_with_impossible_rounds_of_change_is_refused(tmp_path):
    result = bm.simulate(problem("coins"), "none", horizon=50, seed=0, policy=bm.UCB())
    result.save(tmp_path / "result.npz")
    with np.load(tmp_path / "result.npz") as arrays:
        held = dict(arrays)
    for changes in ([[3, 2]], [[60]]):
        np.savez(tmp_path / "bad.npz", **{**held, "changes": np.array(changes)})
        with pytest.raises(FileError, match="changes that are no rounds of the run"):
            bm.Result.load(tmp_path / "bad.npz")


SPEC = """
horizon = 30
replicates = 2
record_every = 10
network = {name = "ring", n = 5}
arms = {n_arms = 4, per_agent = 2}
"""


@pytest.mark.parametrize("written", ['change = "switching(0.2)"', '[arms.change]\nname = "switching"\nrate = 0.2'])
def test_specs_name_a_change(written):
    head = SPEC.partition("arms = ")[0]
    arms = "[arms]\nn_arms = 4\nper_agent = 2\n"
    made = bm.parse_spec(f"{head}{arms}{written}\n")
    [point] = made.points()
    from banditmesh.settings.problems import build_problem

    assert (
        build_problem(point.settings, {}).laws
        == bm.Problem.random(bm.networks.ring(5), 4, 2, change="switching(0.2)").laws
    )


def changing(change):
    return SPEC.replace("per_agent = 2", f"per_agent = 2, change = {change}")


def test_studies_sweep_over_changes_and_keep_their_rounds(tmp_path):
    spec = bm.parse_spec(
        SPEC + 'sweep.arms.change = ["piecewise(11, 21)", "piecewise(11, 26)"]\nsweep.protocol.name = ["none", "irs"]\n'
    )
    study = bm.run_study(spec, tmp_path / "study", workers=1)
    table = study.table()
    assert table["error"].isna().all()
    assert table.groupby("arms.change")["changes"].unique().map(list).to_dict() == {
        "piecewise(11, 21)": ["11,21"],
        "piecewise(11, 26)": ["11,26"],
    }
    figure = study.plot()
    marks = {line.get_xdata()[0] for line in figure.axes[0].lines if line.get_color() == "0.6"}
    assert marks == {11.0}
    # Replicates of one point are one line, whatever their worlds were.
    random = bm.run_study(bm.parse_spec(changing('"switching(0.3)"')), tmp_path / "random", workers=1)
    assert random.table()["changes"].nunique() == 2
    assert len([line for line in random.plot().axes[0].lines if line.get_color() != "0.6"]) == 1
    rates = bm.parse_spec(changing('{name = "switching"}') + "sweep.arms.change.rate = [0.1, 0.2]\n")
    assert [point.settings["arms"]["change"]["rate"] for point in rates.points()] == [0.1, 0.2]


BAD_CHANGES = {
    "nothing(2)": "change must be one of",
    "switching": "must be written like switching",
    "switching(a)": "each value of a change must be a number, got 'a'",
    "switching(0.1, lo=1)": "takes rate, low, high, got lo",
    "switching(rate=0.1, 2)": "names come after numbers",
    "switching()": "missing a required argument",
    "switching(2)": "rate must be a probability",
    "seasonal(1, 2, 3)": "takes amplitude, period, got 3 numbers",
    "piecewise()": "an empty schedule",
    "piecewise(20, 10)": "must ascend from 2",
    "piecewise(1)": "must ascend from 2",
    "switching(0.1, low=0.9)": "must have the law's mean between them",
    # The second of three numbers left out: the third must not be taken for it.
    "switching(0.1,, 0.9)": "each value of a change must be a number, got ''",
}
BAD_ROUNDS = (["a"], [None], [[5]], "10, 20", {"5": 6}, [True], [2.5])


@pytest.mark.parametrize("text", BAD_CHANGES)
def test_bad_changes_are_refused_in_one_line(text):
    with pytest.raises(BanditmeshError, match=BAD_CHANGES[text]) as caught:
        bm.Problem.random(bm.networks.ring(5), 4, 2, change=text)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("rounds", BAD_ROUNDS, ids=str)
def test_rounds_that_are_no_integers_are_refused_in_one_line(rounds):
    with pytest.raises(BanditmeshError, match="a round of piecewise must be an integer of at least 1"):
        bm.Problem.random(bm.networks.ring(5), 4, 2, change={"name": "piecewise", "rounds": rounds})


def test_changes_of_whole_problems():
    fixed = bm.Problem.paper("er", seed=1)
    order = np.argsort(fixed.means)
    drift = bm.Problem.paper("er", seed=1, change="drifting(10, 20)")
    assert np.argsort(drift.means_at(20)).tolist() == order[::-1].tolist()
    jump = fixed.with_change({"name": "piecewise", "rounds": [10, 20]})
    assert fixed.with_change({"name": "piecewise", "rounds": np.array([10, 20])}).laws == jump.laws
    assert jump.means_at(20).tolist() == np.roll(fixed.means, -2).tolist()
    own = fixed.with_change(lambda law: A.Seasonal(law, 0.1, 50))
    assert isinstance(own.laws[3], A.Seasonal)
    switching = fixed.with_change("switching(0.01)").laws[0]
    assert (switching.low, switching.high) == (fixed.means.min(), fixed.means.max())
    with pytest.raises(ArmError, match="for arms that do not change yet"):
        jump.with_change("switching(0.1)")
    with pytest.raises(ArmError, match="arms with equal means do not say"):
        bm.Problem(GRAPH, [[0]] * 6, [gaussian(0.5)]).with_change("switching(0.1)")


def test_the_command_line_takes_a_change(capsys):
    def run(*arguments):
        with pytest.raises(SystemExit) as stop:
            main([*arguments, "--network", "ring:5", "--arms", "4", "--per-agent", "2"])
        captured = capsys.readouterr()
        lines = captured.err.splitlines(keepends=True)
        return stop.value.code, captured.out + "".join(line for line in lines if "the engine" not in line)

    given = ("--horizon", "30", "--replicates", "1", "--protocols", "none")
    changed, fixed = (run("compare", *given, *more) for more in (("--change", "switching(0.2)"), ()))
    assert changed[0] == fixed[0] == 0
    assert changed[1] != fixed[1]
    code, said = run("bounds", "--change", "switching(0.2)")
    assert (code, said.count("\n")) == (2, 1)
    assert "bounds are for arms that do not change" in said
    code, said = run("frontier", *given, "--change", "piecewise(100)")
    assert code == 2
    assert "beyond the horizon" in said


SMALL = 'replicates = 1\nnetwork = {name = "ring", n = 4}\n'


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (
            'horizon = 9\narms.change = "piecewise(5, 10)"',
            r"spec, line 4: arms\.change: arm 0 changes in round 10, beyond",
        ),
        (
            'sweep.horizon = [9, 99]\narms.change = "drifting(20, 30)"',
            r"arms\.change: arm 0 changes in round 21, beyond",
        ),
        (
            'horizon = 9\nsweep.arms.change = ["switching(0.1)", "wandering(1, hold=9)"]',
            r"sweep\.arms\.change: arm 0 ch",
        ),
        ('horizon = 9\nsweep.arms.change = ["switching(0.1)", "switching(7)"]', r"sweep\.arms\.change: rate must be"),
        (
            'horizon = 9\nsweep.arms = [{law = "gaussian"}, {law = "bernoulli", change = "seasonal(0.9, 5)"}]',
            r"sweep\.arms: .*the mean of a Bernoulli law must stay between 0 and 1",
        ),
        ('horizon = 9\nprotocol = "tree"\ndynamics = {name = "churn", leave = 0.1, join = 0.1}', "a static network"),
    ],
)
def test_spec_whose_runs_could_not_begin_is_refused_when_it_is_read(lines, said):
    with pytest.raises(bm.SpecError, match=said) as caught:
        bm.parse_spec(SMALL + lines)
    assert "\n" not in str(caught.value)


def test_spec_with_changes_that_all_come_is_read():
    spec = bm.parse_spec(
        SMALL
        + "horizon = 30\narms = {n_arms = 12, per_agent = 4}\nsweep.arms.n_arms = [6, 12]\nsweep.arms.seed = [0, 1]\n"
        'sweep.arms.change = ["switching(0.1)", "piecewise(30)", "wandering(0.1, hold=29)"]'
    )
    assert spec.n_points == 12


def test_changes_of_arms_from_a_log_are_looked_at_before_anything_runs(tmp_path):
    (tmp_path / "log.csv").write_text("agent,arm,reward\n" + "".join(f"{k},x,1\n{k},y,0\n" for k in range(4)))
    arms = 'horizon = 9\narms = {law = "data", log = "log.csv", rewards = "bernoulli"}\n'
    bm.parse_spec(SMALL + arms, folder=tmp_path)
    with pytest.raises(
        bm.SpecError, match=r"sweep\.arms\.change: arm 'x' changes in round 10, beyond the horizon of 9 "
    ):
        bm.parse_spec(SMALL + arms + 'sweep.arms.change = ["piecewise(5)", "piecewise(10)"]', folder=tmp_path)


# --- Logs with times.


def test_a_log_with_times_becomes_piecewise_laws(tmp_path):
    lines = ["agent,arm,reward,time"]
    lines += [f"ann,red,{reward},{time}" for time, reward in ((0, 0), (1, 0), (30, 1), (31, 0), (119, 1), (120, 1))]
    lines += [f"bob,blue,{reward},{time}" for time, reward in ((70, 1), (75, 0))]
    (tmp_path / "log.csv").write_text("\n".join(lines))
    log = A.read_log(tmp_path / "log.csv", periods=4, horizon=100)
    assert log.laws["red"] == A.Piecewise({1: A.Bernoulli(0.0), 26: A.Bernoulli(0.5), 76: A.Bernoulli(1.0)})
    assert log.laws["blue"] == A.Piecewise({1: A.Bernoulli(0.5)})
    made = bm.Problem([("ann", "bob")], log)
    assert made.changes
    bm.simulate(made, "irs", horizon=100, seed=0, policy=bm.UCB())
    assert not bm.Problem([("ann", "bob")], A.read_log(tmp_path / "log.csv")).changes


def test_dates_and_files_without_a_header_have_times(tmp_path):
    (tmp_path / "dates.csv").write_text(
        "user,item,paid,when\nann,red,0,2024-01-01\nann,red,1,2024-12-31T10:00:00+00:00\n"
    )
    log = A.read_log(tmp_path / "dates.csv", columns="user,item,paid,when", periods=2, horizon=10)
    assert log.laws["red"] == A.Piecewise({1: A.Bernoulli(0.0), 6: A.Bernoulli(1.0)})
    (tmp_path / "u.data").write_text("1\t7\t0\t100\n1\t7\t1\t300\n")
    log = A.read_log(tmp_path / "u.data", periods=2, horizon=10)
    assert log.laws[7] == A.Piecewise({1: A.Bernoulli(0.0), 6: A.Bernoulli(1.0)})


BAD_LOGS = {
    "no column": (
        "agent,arm,reward\nann,red,1\n",
        {"periods": 2},
        "the columns must be named agent, arm, reward, time",
    ),
    "no time": ("agent,arm,reward,time\nann,red,1,noon\n", {"periods": 2}, "a time must be a number or a date"),
    "one time": ("agent,arm,reward,time\nann,red,1,5\nann,red,0,5\n", {"periods": 2}, "rewards of different times"),
    "replay": ("agent,arm,reward,time\nann,red,1,5\nann,red,0,6\n", {"periods": 2, "law": "replay"}, "cannot change"),
    "none": ("agent,arm,reward,time\nann,red,1,5\nann,red,0,6\n", {"periods": 0}, "periods must be an integer"),
    "short": ("agent,arm,reward,time\nann,red,1,5\nann,red,0,6\n", {"periods": 9, "horizon": 5}, "horizon must be"),
}


@pytest.mark.parametrize("case", BAD_LOGS)
def test_bad_times_are_refused_in_one_line(case, tmp_path):
    text, settings, message = BAD_LOGS[case]
    (tmp_path / "log.csv").write_text(text)
    with pytest.raises(BanditmeshError, match=message) as caught:
        A.read_log(tmp_path / "log.csv", **settings)
    assert "\n" not in str(caught.value)


def test_periods_need_a_horizon(tmp_path):
    (tmp_path / "log.csv").write_text("agent,arm,reward,time\nann,red,1,5\nann,red,0,6\n")
    with pytest.raises(ArmError, match="periods need the horizon"):
        _ = A.read_log(tmp_path / "log.csv", periods=2).laws


def test_specs_and_the_command_line_cut_a_log(tmp_path):
    rows = [
        f"{agent},{arm},{(arm + day // 5) % 2},{day}" for agent in range(3) for arm in range(2) for day in range(10)
    ]
    (tmp_path / "log.csv").write_text("\n".join(["agent,arm,reward,time", *rows]))
    spec = bm.parse_spec(
        'horizon = 20\nreplicates = 1\nnetwork = {name = "ring", n = 3}\nprotocol = "irs"\n'
        'arms = {law = "data", log = "log.csv", periods = 2}\nsweep.horizon = [20, 40]\n',
        folder=tmp_path,
    )
    table = bm.run_study(spec, tmp_path / "study", workers=1).table()
    assert table[["horizon", "changes"]].values.tolist() == [[20, "11"], [40, "21"]]
    arguments = ["compare", "--network", "ring:3", "--log", str(tmp_path / "log.csv"), "--periods", "2"]
    with pytest.raises(SystemExit) as stop:
        main([*arguments, "--horizon", "20", "--replicates", "1", "--protocols", "irs"])
    assert stop.value.code == 0


# --- May a log be pooled?


def made_log(rates, n_each, seed=0):
    """A log of coins: rates by agent and arm."""
    rng, rates = np.random.default_rng(seed), np.asarray(rates)
    agents, arms = np.divmod(np.repeat(np.arange(rates.size), n_each), rates.shape[1])
    rewards = (rng.random(len(agents)) < rates[agents, arms]).astype(float)
    names = tuple(f"a{k}" for k in range(len(rates)))
    return A.RewardLog(names, tuple(range(rates.shape[1])), agents.astype(np.int32), arms.astype(np.int32), rewards)


def test_agents_that_are_paid_alike_may_be_pooled():
    checked = [made_log(np.full((20, 30), 0.3), 40, seed).check_pooling() for seed in range(20)]
    ratios = [one.ratio for one in checked]
    assert 0.95 < np.mean(ratios) < 1.05
    assert sum(bool(one.advice) for one in checked) <= 4
    assert np.mean(np.concatenate([one.per_arm["p"] for one in checked]) < 0.1) == pytest.approx(0.1, abs=0.04)


def test_agents_that_differ_are_found_with_their_arms():
    rates = np.full((10, 6), 0.3)
    rates[:5, 2] = 0.7
    log = made_log(rates, 60)
    checked = log.check_pooling()
    assert checked.differing == [2]
    row = checked.per_arm.set_index("arm").loc[2]
    from scipy.stats import chi2_contingency

    mine = log.arm_codes == 2
    counts = np.array(
        [np.bincount(log.rewards[mine & (log.agent_codes == v)].astype(int), minlength=2) for v in range(10)]
    )
    expected = chi2_contingency(counts, correction=False)
    assert (row["chi_square"], row["df"], row["p"]) == pytest.approx((expected.statistic, 9, expected.pvalue))
    groups = {name: "first" if k < 5 else "second" for k, name in enumerate(log.agents)}
    by_group = log.check_pooling(groups)
    assert (by_group.differing, by_group.per_arm["df"].tolist()) == ([2], [1] * 6)
    crossed = {name: k % 2 for k, name in enumerate(log.agents)}
    assert log.check_pooling(crossed).differing == []


def test_comparisons_say_where_pooling_is_not_justified():
    rates = np.full((4, 3), 0.3)
    rates[:2, 1] = 0.9
    for log, says in ((made_log(rates, 50), True), (made_log(np.full((4, 3), 0.3), 50), False)):
        made = bm.Problem([("a0", "a1"), ("a1", "a2"), ("a2", "a3")], log)
        compared = bm.compare(made, "irs", horizon=10, replicates=2, seed=0, policy=bm.KLUCB())
        assert ("the log's agents differ in the rewards of 1 of 3 arms" in str(compared)) is says
        assert bool(made.check_pooling().differing) is says
    with pytest.raises(ArmError, match="come from a log of rewards, got none"):
        bm.Problem.paper("er").check_pooling()
    with pytest.raises(InputError, match="groups must name the group of every agent"):
        made_log(rates, 5).check_pooling({"a0": 1})
    few = made_log(rates, 2).check_pooling()
    assert (len(few.per_arm), few.advice, math.isnan(few.ratio)) == (0, "", True)


@pytest.mark.slow
def test_a_million_agents_in_a_switching_world():
    many = bm.Problem.random(bm.networks.from_text("powerlaw:1000000,2", 0), 50, 5, change="switching(0.1)")
    result = bm.simulate(many, "irs", horizon=8, seed=0, engine="compiled", record_every=8)
    means = np.array([many.means_at(t, seed=0) for t in range(1, 9)])
    assert 0.0 < result.regret[0, -1] < 8e6 * np.ptp(means)
