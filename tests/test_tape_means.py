"""Means beside a tape: what they may be, what regret is then, and what is said of a tape that contradicts the laws."""

import networkx as nx
import numpy as np
import pytest

import banditmesh as bm
from cases import normal_tape

#: What is not warned of must not be.
pytestmark = pytest.mark.filterwarnings("error::banditmesh.BanditmeshWarning")

LAWS = [bm.arms.Gaussian(mean, 1.0) for mean in (0.0, 0.5, 1.0)]
PROBLEM = bm.Problem(nx.path_graph(4), [[0, 1], [1, 2], [2, 0], [0, 1, 2]], LAWS)
HORIZON, REPLICATES = 30, 3
TAPE = normal_tape(PROBLEM, HORIZON)
RNG = np.random.default_rng(3)
CHANGING = RNG.uniform(size=(REPLICATES, HORIZON, 3))
MEANS = {
    "arms": CHANGING[0, 0],
    "rounds": CHANGING[0],
    "replicates": CHANGING[:, 0],
    "replicates and rounds": CHANGING,
}
SETTINGS = {"horizon": HORIZON, "replicates": REPLICATES, "seed": 5, "rewards": TAPE}
WAYS = {
    "quiet": (bm.NoCooperation(), {}),
    "plan": (bm.Flooding(3), {}),
    "spread": (bm.Gossip(3), {"every": [1, 2, 1, 3], "record_every": 7}),
    "outages": (bm.FwA(2), {"faults": bm.Faults(loss=0.1, outages=bm.Outages(0.2, 0.5, memory=False))}),
    "walk": (bm.FwA(3), {"rules": "published"}),
    "tree": (bm.TreeAggregation(), {"link_traffic": True}),
    "everyone": (bm.Centralised(), {}),
}


def by_hand(means, choices, arm_sets):
    """Regret by round and agent, from who chose what in each round."""
    regret = np.zeros((len(choices), len(arm_sets)))
    for t, chosen in enumerate(choices):
        row = means[t] if means.ndim == 2 else means
        for agent, arm in chosen.items():
            regret[t, agent] = max(row[a] for a in arm_sets[agent]) - row[arm]
    return regret.cumsum(axis=0)


@pytest.mark.parametrize("means", ["arms", "rounds"])
def test_regret_is_that_of_the_given_means_round_by_round(means):
    settings = {key: value for key, value in SETTINGS.items() if key != "replicates"}
    simulation = bm.Simulation(PROBLEM, bm.FwA(2), **settings, means=MEANS[means], agents=True)
    rounds = [simulation.step() for _ in range(HORIZON)]
    expected = by_hand(MEANS[means], [one.choices for one in rounds], [[0, 1], [1, 2], [2, 0], [0, 1, 2]])
    np.testing.assert_allclose(np.cumsum([one.regret for one in rounds]), expected.sum(axis=1))
    assert all(one.regret == sum(one.gaps.values()) for one in rounds)
    result = simulation.run()
    np.testing.assert_allclose(result.regret[0], expected.sum(axis=1))
    np.testing.assert_allclose(result.agent_regret_curve[0], expected)
    np.testing.assert_allclose(result.agent_regret[0], expected[-1])


@pytest.mark.parametrize("means", MEANS)
@pytest.mark.parametrize("way", WAYS)
def test_engines_agree_on_every_kind_of_means(way, means):
    protocol, settings = WAYS[way]
    one, other = (
        bm.simulate(PROBLEM, protocol, **SETTINGS, **settings, means=MEANS[means], agents=True, engine=engine)
        for engine in ("reference", "compiled")
    )
    assert one == other


def test_threads_that_share_a_replicate_judge_by_the_same_means(monkeypatch):
    alone = bm.simulate(PROBLEM, bm.Flooding(3), **SETTINGS, means=CHANGING, agents=True, threads=1)
    monkeypatch.setattr("banditmesh.sim.compiled.plans.SHARED_FROM", 2)
    together = bm.simulate(PROBLEM, bm.Flooding(3), **SETTINGS, means=CHANGING, agents=True, threads=6)
    assert together == alone


@pytest.mark.parametrize("engine", ["reference", "compiled"])
def test_means_change_regret_and_nothing_else(engine):
    plain, judged = (
        bm.simulate(PROBLEM, bm.FwA(2), **SETTINGS, means=means, engine=engine, agents=True)
        for means in (None, CHANGING)
    )
    assert plain.pulls.tolist() == judged.pulls.tolist()
    assert plain.transmissions.tolist() == judged.transmissions.tolist()
    assert "means" not in plain.settings
    assert judged.settings["means"] == "given by round"


@pytest.mark.parametrize("engine", ["reference", "compiled"])
def test_the_means_of_the_laws_give_the_same_regret_to_the_last_bit(engine):
    plain, judged = (
        bm.simulate(PROBLEM, bm.FwA(2), **SETTINGS, means=means, engine=engine, agents=True)
        for means in (None, PROBLEM.means)
    )
    assert plain.regret.tobytes() == judged.regret.tobytes()
    assert plain.agent_regret.tobytes() == judged.agent_regret.tobytes()
    assert plain.agent_regret_curve.tobytes() == judged.agent_regret_curve.tobytes()


def test_means_that_may_be_by_round_or_by_replicate_are_refused():
    tape = normal_tape(PROBLEM, 3)
    with pytest.raises(bm.InputError, match=r"by round or by replicate, got \(3, 3\), which may be either"):
        bm.simulate(PROBLEM, bm.IRS(), horizon=3, replicates=3, rewards=tape, means=np.zeros((3, 3)), seed=0)
    result = bm.simulate(PROBLEM, bm.IRS(), horizon=3, replicates=3, rewards=tape, means=np.zeros((3, 3, 3)), seed=0)
    assert not result.regret.any()


def test_a_result_with_means_is_read_back_as_it_was(tmp_path):
    result = bm.simulate(PROBLEM, bm.FwA(2), **SETTINGS, means=CHANGING, agents=True)
    result.save(tmp_path / "result.npz")
    assert bm.Result.load(tmp_path / "result.npz") == result


def test_compare_and_frontier_hand_means_on(tmp_path):
    alone = bm.simulate(PROBLEM, "fwa(2)", **SETTINGS, means=CHANGING)
    assert bm.compare(PROBLEM, ["none", "fwa(2)"], **SETTINGS, means=CHANGING).results["fwa"] == alone
    # What is kept is found again by the means that it was judged by.
    for means in (CHANGING, CHANGING[:, ::-1].copy(), CHANGING):
        found = bm.frontier(PROBLEM, **SETTINGS, means=means, protocols=["fwa(2)"], keep=tmp_path)
        direct = bm.simulate(PROBLEM, "fwa(2)", **SETTINGS, means=means)
        [fwa] = [one for one in found.configurations if one.protocol.name == "fwa"]
        np.testing.assert_array_equal(fwa.regret, direct.regret[:, -1])


# A tape that contradicts the laws


def contradicting(problem=PROBLEM, by=5.0, arm=0):
    tape = normal_tape(problem, HORIZON)
    tape[:, :, arm] += by
    return tape


@pytest.mark.parametrize("by", [5.0, -5.0, 1.0])
def test_a_tape_that_contradicts_the_laws_is_warned_of(by):
    what = "rewards contradict the arms' laws: arm 0 pays .* and its law says 0; regret is judged by the laws, so give"
    settings = SETTINGS | {"rewards": contradicting(by=by)}
    with pytest.warns(bm.BanditmeshWarning, match=what):
        bm.simulate(PROBLEM, bm.IRS(), **settings)
    with pytest.warns(bm.BanditmeshWarning, match=what):
        bm.Simulation(PROBLEM, bm.IRS(), horizon=HORIZON, seed=0, rewards=settings["rewards"])
    bm.simulate(PROBLEM, bm.IRS(), **settings, means=PROBLEM.means)


def test_what_agents_do_not_have_contradicts_nothing():
    tape = normal_tape(PROBLEM, HORIZON)
    tape[:, 0, 2] = np.nan
    tape[:, 1, 0] = 100.0
    bm.simulate(PROBLEM, bm.IRS(), **SETTINGS | {"rewards": tape})


def test_the_bound_of_a_contradiction_is_six_standard_errors():
    problem = bm.Problem(nx.empty_graph(1), [[0]], [bm.arms.Gaussian(2.0, 3.0)])
    bound = 6.0 * 3.0 / np.sqrt(16)
    for by, warns in ((0.999 * bound, False), (1.001 * bound, True), (-0.999 * bound, False), (-1.001 * bound, True)):
        arguments = {"horizon": 16, "seed": 0, "rewards": np.full((16, 1, 1), 2.0 + by)}
        if warns:
            with pytest.warns(bm.BanditmeshWarning, match="contradict"):
                bm.simulate(problem, bm.NoCooperation(), **arguments)
        else:
            bm.simulate(problem, bm.NoCooperation(), **arguments)


def test_laws_without_a_spread_or_a_sigma_are_no_cause_of_false_alarms():
    import scipy.stats

    constant, heavy = bm.arms.Empirical([0.1]), bm.arms.ScipyLaw(scipy.stats.expon())
    problem = bm.Problem(nx.empty_graph(1), [[0, 1]], [constant, heavy])
    tape = np.full((1000, 1, 2), 0.1)
    bm.simulate(problem, bm.NoCooperation(), horizon=1000, seed=0, rewards=tape, record_every=1000)
