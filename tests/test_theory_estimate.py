"""The estimate of regret against simulated regret, and what it promises of itself."""

from pathlib import Path

import networkx as nx
import numpy as np
import pytest

import banditmesh as bm
from banditmesh.theory.estimate import FITTED, fitted_name

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"


def alike(n_agents=20, means=(0.9, 0.7, 0.5, 0.3, 0.1), sigma=1.0):
    """Agents that have the same arms and as many neighbours each."""
    network = bm.networks.random_regular(n_agents, 4, seed=1)
    return bm.Problem(network, [list(range(len(means)))] * n_agents, [bm.arms.Gaussian(mean, sigma) for mean in means])


@pytest.mark.parametrize("protocol", [bm.IRS(), bm.FwA(4), bm.Flooding(4), bm.Gossip(4)], ids=lambda p: p.name)
def test_estimate_is_near_the_measured_regret(protocol):
    problem = bm.Problem.paper("er", seed=0)
    expected = bm.theory.estimate(problem, protocol, horizon=500)
    measured = bm.simulate(problem, protocol, horizon=500, replicates=3, seed=0, record_every=100)
    assert expected.at(measured.rounds) == pytest.approx(measured.regret.mean(axis=0), rel=0.1)
    assert expected.at(0) == 0.0


def test_estimate_is_exact_where_there_is_no_luck():
    arms = [bm.arms.Bernoulli(1.0), bm.arms.Bernoulli(0.0)]
    problem = bm.Problem(nx.path_graph(2), [[0, 1]] * 2, arms)
    measured = bm.simulate(problem, bm.IRS(), horizon=200, seed=3)
    assert bm.bounds(problem, bm.IRS(), horizon=200).estimate().at(measured.rounds) == pytest.approx(measured.regret[0])


@pytest.mark.parametrize("protocol", ["irs", "fwa(4)", "flooding(2)+growth(0.25)", "tree"])
def test_agents_that_are_alike_are_not_taken_to_pull_in_lockstep(protocol):
    problem = alike()
    expected = bm.theory.estimate(problem, protocol, horizon=1000)
    measured = bm.simulate(problem, protocol, horizon=1000, replicates=10, seed=1, record_every=500)
    assert expected.at(1000) == pytest.approx(measured.regret[:, -1].mean(), rel=0.15)
    low, high = expected.interval([500, 1000])
    assert (low <= measured.regret.mean(axis=0)).all()
    assert (measured.regret.mean(axis=0) <= high).all()


def test_first_pulls_need_no_luck():
    problem = alike()
    expected = bm.theory.estimate(problem, "tree", horizon=5)
    assert expected.at([1, 5]) == pytest.approx([0.0, problem.arm_gaps.sum()])
    assert expected.low.tolist() == expected.high.tolist() == expected.regret.tolist()


def test_curves_lie_in_order_rise_and_stay_below_what_any_pulls_cost():
    problem = alike(means=(0.9, 0.1), sigma=0.5)
    expected = bm.theory.estimate(problem, "fwa(2)+contested", alpha=0.3, horizon=300)
    curves = np.array([expected.low, expected.regret, expected.high, 20 * 0.8 * expected.rounds])
    assert (np.diff(curves, axis=0) >= -1e-9).all()
    assert (np.diff(curves, axis=1) >= 0).all()
    assert expected.interval(300) == (expected.low[-1], expected.high[-1])


def test_estimate_depends_on_nothing_but_its_arguments():
    problem = alike(n_agents=6)
    first = bm.theory.estimate(problem, "gossip(2)", horizon=300)
    again = bm.theory.estimate(problem, "gossip(2)", horizon=600)
    assert again.at(first.rounds).tolist() == first.regret.tolist()
    assert again.interval(300) == first.interval(300)


def test_small_alpha_warns():
    problem = bm.Problem(nx.empty_graph(4), [[0, 1]] * 4, [bm.arms.Gaussian(mean, 1.0) for mean in (0.25, 0.0)])
    with pytest.warns(
        bm.BanditmeshWarning, match=r"^alpha should be at least about 0\.99\d for an estimate, .* got 0\.25: "
    ):
        bm.theory.estimate(problem, "none", alpha=0.25, horizon=50)
    bm.theory.estimate(problem, "none", alpha=1.5, horizon=50)


@pytest.mark.parametrize(
    "arguments, message",
    [
        (("er", "irs"), "problem must be a Problem, got 'er'"),
        ((alike(6), "irs", 0.0), "alpha must be"),
        ((alike(6), "irs", float("nan")), "alpha must be"),
        ((alike(6), "irs", 3.0, 0), "horizon must be"),
        ((alike(6), 4), "protocol must be"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_wrong_arguments_are_named(arguments, message):
    with pytest.raises(bm.InputError, match=message) as caught:
        bm.theory.estimate(*arguments)
    assert "\n" not in str(caught.value)


def test_a_law_that_cannot_be_drawn_from_is_estimated_by_its_sigma():
    class Told(bm.arms.Law):
        mean, sigma = 0.5, 1.0

    told, drawn = (
        bm.Problem(nx.path_graph(2), [[0, 1]] * 2, [law, bm.arms.Gaussian(0.0, 1.0)])
        for law in (Told(), bm.arms.Gaussian(0.5, 1.0))
    )
    assert bm.theory.estimate(told, "irs", horizon=100).at(100) == pytest.approx(
        bm.theory.estimate(drawn, "irs", horizon=100).at(100), rel=0.02
    )


def test_each_protocol_has_the_errors_that_were_measured_of_its_kind():
    class EveryTenth(bm.Emission):
        name = "every-tenth"

    names = [*FITTED]
    shipped = ["none", "irs", "gossip(2)", "probabilistic(2)", "fwa(2)", "flooding(2)", "fwa(2)+contested"]
    shipped += ["irs+growth(0.5)", "tree", "centralised"]
    assert [fitted_name(bm.protocols.notation.as_protocol(text)) for text in shipped] == names[:-1]
    assert fitted_name(bm.TreeAggregation(emission=bm.Growth(0.1))) == "tree"
    assert fitted_name(bm.FwA(2, emission=EveryTenth())) == names[-1] == "other"


@pytest.mark.slow
def test_interval_covers_nine_in_ten_of_instances_that_it_was_not_fitted_to(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import estimate as benchmark

    covered = []
    for number in range(20):
        made = benchmark.random_instance(4, number)
        if made["alpha"] < benchmark.spreads_of(made["problem"]).max() ** 2:
            continue
        settings = {"policy": bm.UCB(made["alpha"]), "horizon": made["horizon"], "replicates": 8, "seed": number}
        for protocol in made["protocols"].values():
            measured = bm.simulate(made["problem"], protocol, **settings).regret[:, -1].mean()
            expected = bm.theory.estimate(made["problem"], protocol, made["alpha"], made["horizon"])
            low, high = expected.interval(made["horizon"])
            covered.append(low <= measured <= high)
    assert len(covered) > 100
    assert np.mean(covered) >= 0.85
