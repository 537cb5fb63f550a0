"""Bounds against measured regret: the published ones where they fail, the corrected ones where they could."""

import math

import networkx as nx
import numpy as np
import pytest

import banditmesh as bm


def gaussian(sigma, **means):
    return {name: bm.arms.Gaussian(mean, sigma) for name, mean in means.items()}


def measure(problem, protocol, alpha, *, horizon, replicates, records=10, seed=0):
    return bm.simulate(
        problem,
        protocol,
        policy=bm.UCB(alpha),
        horizon=horizon,
        replicates=replicates,
        seed=seed,
        record_every=horizon // records,
        progress=False,
    )


def slope(result):
    """Of regret against log T over the last decade, for each replicate."""
    return (result.regret[:, -1] - result.regret[:, 0]) / math.log(result.rounds[-1] / result.rounds[0])


def lonely_path(n_agents):
    """Agent 0 has two arms 0.1 apart, every other one a private arm; sigma is 10."""
    arms = gaussian(10.0, good=0.1, bad=0.0) | {v: bm.arms.Gaussian(0.5, 10.0) for v in range(1, n_agents)}
    return bm.Problem(nx.path_graph(n_agents), [["good", "bad"], *([v] for v in range(1, n_agents))], arms)


def test_agent_of_a_path_of_private_arms_is_alone():
    # Nobody else has agent 0's arms, and one private arm costs no regret: the path's regret is agent 0's, draw by draw.
    alone, among = (
        measure(lonely_path(n), bm.Flooding(max(n - 1, 1)), 2.0, horizon=1000, replicates=3, records=1000)
        for n in (1, 7)
    )
    assert np.array_equal(alone.regret, among.regret)
    assert alone.regret[:, -1].max() > 0


def test_published_upper_bound_is_exceeded_on_the_long_path():
    horizon = 100_000
    bounds = bm.bounds(lonely_path(1000), bm.Flooding(999), alpha=2.0, horizon=horizon)
    holds = {condition.name: condition.holds for condition in bounds.conditions}
    assert holds["published"]
    assert holds["published b"]
    assert holds["published ttl"]
    assert bounds.upper_published == pytest.approx(2333.4, abs=0.1)
    # By the test above, one agent alone has the very regret of the path.
    measured = measure(lonely_path(1), bm.NoCooperation(), 2.0, horizon=horizon, replicates=64)
    assert measured.regret[:, -1].mean() > 1.25 * bounds.upper_published
    # The corrected form claims nothing here: 2 sigma^2 is 200.
    assert not holds["corrected"]
    assert bounds.upper_corrected == math.inf


def test_published_upper_bound_is_negative_where_its_condition_holds():
    problem = bm.Problem(nx.path_graph(2), [["a", "b"]] * 2, gaussian(1.0, a=1.0, b=0.0))
    bounds = bm.bounds(problem, bm.IRS(), alpha=1.2, horizon=1000)
    assert bounds.upper_published < 0


def test_published_lower_bound_is_above_what_is_proven_from_above():
    problem = bm.Problem(nx.path_graph(2), [["a", "b"], ["a", "c"]], gaussian(1.0, a=0.5, b=1.0, c=0.0))
    bounds = bm.bounds(problem, bm.IRS(), alpha=2.1, horizon=100_000)
    assert (bounds.lower_published, bounds.lower_corrected) == pytest.approx((8.0, 4.0))
    # No simulation is needed: what is proven to hold from above is below what is stated to hold from below.
    assert bounds.constant_sharp == pytest.approx(4.2)
    assert bounds.lower_corrected <= bounds.constant_sharp < bounds.lower_published
    slopes = slope(measure(problem, bm.IRS(), 2.1, horizon=20_000, replicates=20))
    assert slopes.mean() < bounds.lower_published


def test_published_upper_bound_is_exceeded_without_any_chance():
    """Each agent pulls all its arms once, whatever it hears: a first pull may cost more than the printed bound."""
    arms = {"good": bm.arms.Gaussian(1000.0, 1e-6), "bad": bm.arms.Gaussian(0.0, 1e-6), 1: bm.arms.Gaussian(0.0, 1e-6)}
    problem = bm.Problem(nx.path_graph(2), [["good", "bad"], [1]], arms)
    bounds = bm.bounds(problem, bm.Flooding(1), alpha=10.0, horizon=2)
    assert all(one.holds for one in bounds.conditions if one.name.startswith("published"))
    assert bounds.upper_published == pytest.approx(667.0, abs=0.5)
    result = bm.simulate(problem, bm.Flooding(1), policy=bm.UCB(10.0), horizon=2, seed=0)
    assert result.regret[0, -1] == pytest.approx(1000.0)
    assert min(bounds.upper_corrected, bounds.upper_sharp) >= 1000.0


@pytest.mark.parametrize("sigma, alpha", [(2.0, 0.5), (2.0, 3.0), (1.0, 1.5)])
def test_an_agent_whom_nobody_can_help_pays_what_its_first_reward_may_cost(sigma, alpha):
    arms = gaussian(sigma, good=0.5, bad=0.0, other=0.0)
    problem = bm.Problem(nx.path_graph(2), [["good", "bad"], ["other"]], arms)
    horizon = 400
    bounds = bm.bounds(problem, bm.IRS(), alpha=alpha, horizon=horizon)
    measured = bm.simulate(problem, bm.IRS(), policy=bm.UCB(alpha), horizon=horizon, replicates=300, seed=0)
    last = measured.regret[:, -1]
    assert 0.5 < bounds.lower_lonely < last.mean() + 3 * last.std() / math.sqrt(300)
    if alpha == 0.5:
        # It binds: the chance of one pull in all is measured to be less than ten times as large.
        once = (measured.pulls[:, 0, 0] == 1).mean()
        chance = (bounds.lower_lonely - 0.5) / (0.5 * (horizon - 2))
        assert 0.1 * once < chance <= once + 3 * math.sqrt(once / 300)


def test_only_agents_whose_two_arms_nobody_else_has_are_lonely():
    arms = gaussian(1.0, a=1.0, b=0.5, c=0.2) | {"coin": bm.arms.Bernoulli(0.9)}

    def lonely(protocol, *sets):
        held = {name: law for name, law in arms.items() if any(name in one for one in sets)}
        problem = bm.Problem(nx.path_graph(len(sets)), [list(one) for one in sets], held)
        return bm.bounds(problem, protocol, alpha=1.0).lower_lonely

    one = lonely(bm.IRS(), ("a", "b"))
    assert one > 0.5
    assert lonely(bm.IRS(), ("a", "b"), ("c",), ("a", "b")) == pytest.approx(2 * one)
    assert lonely(bm.Flooding(2), ("a", "b"), ("c",), ("a", "b")) == 0.0
    assert lonely(bm.NoCooperation(), ("a", "b"), ("a", "b")) == pytest.approx(2 * one)
    assert lonely(bm.IRS(), ("a", "b", "c"), ("b",)) > 0.5
    assert lonely(bm.IRS(), ("coin", "b")) == 0.0
    problem = bm.Problem(nx.empty_graph(1), [["a", "b"]], gaussian(1.0, a=1.0, b=0.5))
    often, seldom = (bm.bounds(problem, bm.IRS(), alpha=1.0, every=every).lower_lonely for every in (None, 10))
    assert (seldom - 0.5) * (1000 - 2) == pytest.approx((often - 0.5) * (100 - 2))
    assert bm.bounds(problem, bm.IRS(), faults=bm.Faults(outages=bm.Outages(0.5, 0.5))).lower_lonely == 0.0


BERNOULLI = bm.Problem(nx.path_graph(2), [[0, 1]] * 2, [bm.arms.Bernoulli(0.9), bm.arms.Bernoulli(0.5)])
LONE = bm.Problem(nx.empty_graph(1), [["a", "b"]], gaussian(0.5, a=1.0, b=0.0))
APART = bm.Problem(nx.path_graph(3), [["a", "b"], ["c"], ["a", "b"]], gaussian(0.5, a=1.0, b=0.0, c=0.5))


@pytest.mark.parametrize(
    "problem, protocol, alpha",
    [
        (LONE, bm.NoCooperation(), 0.75),
        (BERNOULLI, bm.IRS(), 0.6),
        pytest.param(BERNOULLI, bm.NoCooperation(), 0.6, marks=pytest.mark.slow),
        pytest.param(APART, bm.FwA(2), 1.0, marks=pytest.mark.slow),
    ],
)
def test_corrected_constants_enclose_the_slope_of_regret(problem, protocol, alpha):
    bounds = bm.bounds(problem, protocol, alpha=alpha, horizon=100_000)
    slopes = slope(measure(problem, protocol, alpha, horizon=100_000, replicates=40))
    assert bounds.lower_corrected < slopes.mean() < bounds.constant_tightened <= bounds.constant


LARGE_GAPS = {
    "one agent, two arms": bm.Problem(nx.empty_graph(1), [["a", "b"]], gaussian(0.5, a=1.0, b=0.0)),
    "one agent, four arms": bm.Problem(nx.empty_graph(1), [list("abcd")], gaussian(0.5, a=1.0, b=0.0, c=0.2, d=0.4)),
    "two agents, same arms": bm.Problem(nx.path_graph(2), [["a", "b"]] * 2, gaussian(0.5, a=1.0, b=0.0)),
    "two agents, different gaps": bm.Problem(
        nx.path_graph(2), [["a", "c"], ["b", "c"]], gaussian(0.5, a=2.0, b=1.0, c=0.0)
    ),
    "two holders and a relay": APART,
}


@pytest.mark.parametrize(
    "alphas",
    [(0.505, 4.0), pytest.param((0.55, 1.0), marks=pytest.mark.slow)],  # 2 sigma^2 is 0.5
    ids=str,
)
@pytest.mark.parametrize("protocol", [bm.NoCooperation(), bm.IRS(), bm.Flooding(2), bm.FwA(2)], ids=lambda p: p.name)
@pytest.mark.parametrize("name", LARGE_GAPS)
def test_corrected_upper_bound_holds_in_every_round_where_it_is_tightest(name, protocol, alphas):
    problem = LARGE_GAPS[name]
    for alpha in alphas:
        result = measure(problem, protocol, alpha, horizon=10_000, replicates=10, records=500)
        bound = bm.bounds(problem, protocol, alpha=alpha).corrected.at(result.rounds)
        ratio = result.regret.mean(axis=0) / bound
        assert ratio.max() < 1.0
        if alpha == 4.0:
            # Not so far above that it could not fail: log T costs a quarter of its bound when alpha is large.
            assert ratio.max() > 0.1


def test_corrected_upper_bound_holds_on_the_papers_network():
    problem = bm.Problem.paper("er", seed=0)
    for protocol in (bm.IRS(), bm.Flooding(4), bm.FwA(4)):
        bounds = bm.bounds(problem, protocol, horizon=100, cover="dsatur")
        measured = bm.simulate(problem, protocol, horizon=100, replicates=2, seed=0)
        assert measured.regret[:, -1].mean() < bounds.upper_corrected
