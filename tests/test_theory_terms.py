"""The single terms: deviation, lower bounds by law, traffic."""

import math
from decimal import Decimal, localcontext

import networkx as nx
import numpy as np
import pytest
import scipy.stats

import banditmesh as bm
from banditmesh import theory
from banditmesh.errors import InputError
from banditmesh.theory import concentration
from banditmesh.theory.lower import class_sigma


def test_sum_of_logs_is_the_derivative_of_zeta():
    for exponent in (1.05, 1.5, 2.0, 3.7, 20.0):
        step = 1e-5 * exponent
        slope = (concentration.zeta(exponent - step) - concentration.zeta(exponent + step)) / (2 * step)
        assert concentration.log_zeta_sum(exponent) == pytest.approx(slope, rel=1e-6)
    # Stieltjes: near 1 it is 1 / (s - 1)^2 + 0.0728158...
    assert concentration.log_zeta_sum(1.001) - 1e6 == pytest.approx(-0.0728158, rel=2e-2)
    assert concentration.log_zeta_sum(400.0) == pytest.approx(math.log(2) * 2.0**-400, rel=1e-9)


@pytest.mark.parametrize("alpha, sigma, n_agents", [(3.0, 1.0, 100), (2.2, 1.0, 1), (50.0, 0.5, 7), (0.1, 0.1, 1000)])
def test_corrected_luck_is_the_sum_over_rounds_at_the_best_beta(alpha, sigma, n_agents):
    found = concentration.corrected(alpha, sigma, n_agents)

    def by_hand(beta):
        c, width = alpha * beta / (2 * sigma**2), math.log(1 / beta)
        return 2 * ((1 + math.log(n_agents) / width) * concentration.zeta(c) + concentration.log_zeta_sum(c) / width)

    low = 2 * sigma**2 / alpha
    grid = [by_hand(low ** (1 - place)) for place in np.linspace(0.002, 0.998, 2000)]
    assert found <= min(grid) * (1 + 1e-12)
    assert found == pytest.approx(min(grid), rel=1e-4)


def test_luck_sums_what_the_proof_sums():
    # At one beta, the series of the proof, term by term, against its closed form.
    alpha, sigma, n_agents, beta = 5.0, 1.0, 10, 0.7
    c, width = alpha * beta / (2 * sigma**2), math.log(1 / beta)
    rounds = np.arange(1, 2_000_001, dtype=float)
    series = ((1 + np.log(n_agents * rounds) / width) * rounds**-c).sum()
    closed = (1 + math.log(n_agents) / width) * concentration.zeta(c) + concentration.log_zeta_sum(c) / width
    assert series == pytest.approx(closed, rel=1e-4)
    assert concentration.corrected(alpha, sigma, n_agents) <= 2 * closed


def test_luck_is_infinite_at_the_condition_and_least_without_noise():
    assert concentration.corrected(2.0, 1.0, 5) == math.inf
    assert concentration.corrected(2.0 + 1e-9, 1.0, 5) > 1e6
    assert concentration.corrected(1.0, 0.0, 5) == 2.0
    assert concentration.corrected(1.0, 1e-9, 5) == pytest.approx(2.0, rel=0.2)
    assert concentration.corrected(3.0, 1.0, 5) < concentration.corrected(3.0, 1.0, 50)


def test_printed_luck_at_its_poles():
    assert math.isnan(concentration.published(0.5, 0.1, 1))
    assert math.isnan(concentration.published(1.5, 1.0, 1))
    assert concentration.published(3.0, 0.0, 2) == 0.0
    assert concentration.published(2.0, 10.0, 999) == pytest.approx((2.5 / 1.5) ** 2 * 8000 / math.log(2500 / 400))


def test_information_in_closed_form():
    assert theory.information(bm.arms.Gaussian(0.3, 2.0), 1.3) == pytest.approx(1 / 8)
    p, q = 0.2, 0.7
    expected = p * math.log(p / q) + (1 - p) * math.log((1 - p) / (1 - q))
    assert theory.information(bm.arms.Bernoulli(p), q) == pytest.approx(expected)
    assert theory.information(bm.arms.Bernoulli(0.0), 0.5) == pytest.approx(math.log(2))
    assert theory.information(bm.arms.Bernoulli(0.5), 1.0) == math.inf


def test_information_of_coins_is_that_of_fractions_however_close_or_rare():
    def in_many_digits(p, q):
        with localcontext() as context:
            context.prec = 200
            p, q = Decimal(p), Decimal(q)
            return float((p * (p / q).ln() if p else 0) + (1 - p) * ((1 - p) / (1 - q)).ln())

    for p in (0.0, 1e-30, 1e-18, 1e-9, 0.005, 0.3, 0.5, 1 - 1e-9):
        for q in (p + 1e-16, p + 1e-12, p + 1e-6, 1.01 * p, 1.02 * p, 2 * p, 2.1 * p, 0.5 + 0.5 * p, 1 - 1e-15):
            if p < q < 1:
                found = theory.information(bm.arms.Bernoulli(p), q)
                assert found == pytest.approx(in_many_digits(p, q), rel=1e-12, abs=0), (p, q)


def test_information_of_a_sample_is_that_of_its_law():
    assert theory.information(bm.arms.Empirical([0, 0, 0, 1]), 0.5) == pytest.approx(
        theory.information(bm.arms.Bernoulli(0.25), 0.5)
    )
    assert theory.information(bm.arms.Empirical([2.0]), 2.5) == math.inf
    assert theory.information(bm.arms.Empirical([1.0, 2.0]), 2.0) == math.inf


def test_information_of_uniform_and_beta_laws_agree_with_numerical_integration():
    def tilted(pdf, low, high, mean):
        x = np.linspace(low, high, 400_001)
        weights = pdf(x)
        weights /= weights.sum()
        found = scipy.optimize.brentq(
            lambda s: np.average(x, weights=weights * np.exp(s * (x - high))) - mean, 0.0, 500.0
        )
        return math.log((weights * np.exp(found * (x - weights @ x))).sum())

    uniform = bm.arms.Uniform(1.0, 3.0)
    for mean in (2.1, 2.5, 2.9):
        assert theory.information(uniform, mean) == pytest.approx(
            tilted(lambda x: np.ones_like(x), 1.0, 3.0, mean), rel=1e-4
        )
    for mean in (0.5, 0.8):
        assert theory.information(bm.arms.Beta(2.0, 3.0), mean) == pytest.approx(
            tilted(scipy.stats.beta(2, 3).pdf, 0.0, 1.0, mean), rel=1e-4
        )
    assert theory.information(bm.arms.Beta(1.0, 1.0), 0.75) == pytest.approx(
        theory.information(bm.arms.Uniform(0.0, 1.0), 0.75)
    )
    assert theory.information(uniform, 3.0) == math.inf
    assert theory.information(uniform, 2.0) == 0.0


def test_small_gaps_carry_half_the_squared_gap_by_the_variance():
    for law in (
        bm.arms.Bernoulli(0.3),
        bm.arms.Uniform(0.0, 2.0),
        bm.arms.Beta(2.0, 5.0),
        bm.arms.Empirical([0, 1, 5]),
    ):
        uniforms = (np.arange(200_000) + 0.5) / 200_000
        variance = law.quantiles(uniforms).var()
        assert theory.information(law, law.mean + 1e-3) == pytest.approx(1e-6 / (2 * variance), rel=2e-2)


def test_no_sub_gaussian_law_is_told_apart_more_cheaply_than_its_sigma_says():
    # If all laws of a class share a sigma, divergence is at least gap^2 / (2 sigma^2).
    for law in (
        bm.arms.Bernoulli(0.3),
        bm.arms.Uniform(0.0, 2.0),
        bm.arms.Beta(2.0, 5.0),
        bm.arms.Empirical([0, 1, 5]),
    ):
        for gap in (0.01, 0.2, 0.4):
            assert theory.information(law, law.mean + gap) >= gap**2 / (2 * class_sigma(law) ** 2) * (1 - 1e-9)


def test_consistency_asks_for_the_sigma_of_arms_without_a_class_too():
    class Wide(bm.arms.Law):
        mean, sigma = 0.0, 10.0

        def quantile(self, u):
            return 10.0 * scipy.stats.norm.ppf(u)

    arms = [bm.arms.Bernoulli(0.5), Wide()]
    bounds = bm.bounds(bm.Problem(nx.path_graph(2), [[0, 1]] * 2, arms), bm.IRS(), alpha=1.0)
    [consistent] = [one for one in bounds.conditions if one.name == "consistent"]
    assert not consistent.holds
    assert "alpha > 200" in consistent.requires
    # Where the law has no sigma of its own, the one that was given for all arms counts.
    arms = [bm.arms.Bernoulli(0.5), scipy.stats.expon(scale=0.5)]
    bounds = bm.bounds(bm.Problem(nx.path_graph(2), [[0, 1]] * 2, arms), bm.IRS(), alpha=1.0, sigma=2.0)
    assert "alpha > 8" in next(one.requires for one in bounds.conditions if one.name == "consistent")


def test_information_of_other_laws_is_refused():
    with pytest.raises(InputError, match="information is known for"):
        theory.information(bm.arms.as_law(scipy.stats.expon()), 2.0)


def test_lower_bound_counts_only_arms_that_are_nobodys_best():
    arms = {name: bm.arms.Gaussian(mean, 1.0) for name, mean in (("a", 0.5), ("b", 1.0), ("c", 0.0))}
    problem = bm.Problem(nx.path_graph(2), [["a", "b"], ["a", "c"]], arms)
    bounds = bm.bounds(problem, bm.IRS())
    assert bounds.lower_published == pytest.approx(2 / 0.5 + 2 / 0.5)
    assert bounds.lower_corrected == pytest.approx(2 / 0.5)
    assert bounds.per_arm["lower_corrected"].tolist() == [0.0, 0.0, pytest.approx(4.0)]


def test_lower_bound_is_summed_over_components():
    arms = [bm.arms.Gaussian(mean, 1.0) for mean in (1.0, 0.5, 0.0)]
    together = bm.Problem(nx.path_graph(4), [[0, 1], [0, 1], [1, 2], [0, 2]], arms)
    apart = bm.Problem(nx.Graph([(0, 1), (2, 3)]), [[0, 1], [0, 1], [1, 2], [0, 2]], arms)
    assert bm.bounds(together, bm.Flooding(3)).lower_corrected == pytest.approx(2 / 0.5)
    # Apart, the first two must explore arm 1 themselves, and the last two arm 2, which only one of them finds costly.
    assert bm.bounds(apart, bm.Flooding(3)).lower_corrected == pytest.approx(2 / 0.5 + 2 / 0.5)


def test_an_arm_that_is_best_in_a_tie_costs_nothing():
    arms = [bm.arms.Gaussian(mean, 1.0) for mean in (1.0, 0.5, 0.5)]
    problem = bm.Problem(nx.path_graph(2), [[0, 1], [1, 2]], arms)
    assert bm.bounds(problem, bm.IRS()).lower_corrected == 0.0


def test_agents_who_go_down_for_good_need_not_pay_any_more():
    arms = {name: bm.arms.Gaussian(mean, 1.0) for name, mean in (("a", 0.5), ("b", 1.0), ("c", 0.0))}
    problem = bm.Problem(nx.path_graph(2), [["a", "b"], ["a", "c"]], arms)
    back, gone = (
        bm.bounds(problem, bm.IRS(), alpha=3.0, faults=bm.Faults(outages=bm.Outages(down=0.1, up=up)))
        for up in (0.1, 0.0)
    )
    assert back.lower_corrected == pytest.approx(2 / 0.5)
    assert "lasting" not in {one.name for one in back.conditions}
    assert (gone.lower_published, gone.lower_corrected, gone.lower_lonely) == (0.0, 0.0, 0.0)
    assert not gone.per_arm[["lower_published", "lower_corrected"]].to_numpy().any()
    (stated,) = (one for one in gone.conditions if one.name == "lasting")
    assert str(stated) == "FAILS: lower bounds are for agents that keep pulling: outages with up > 0 (here up = 0)"
    # After 1000 rounds everybody is down: regret does not grow beyond what it was.
    never = bm.Faults(outages=bm.Outages(down=0.1, up=0.0))
    ends = [bm.simulate(problem, bm.IRS(), horizon=T, seed=0, faults=never).pulls.sum() for T in (1000, 2000)]
    assert ends[0] == ends[1]


@pytest.mark.parametrize(
    "name, flooding, sharing", [("er", 7_810_364, 306_000), ("ba", 24_403_730, 392_000), ("sbm", 28_006_210, 722_000)]
)
def test_traffic_of_the_papers_networks_is_counted_exactly(name, flooding, sharing):
    problem = bm.Problem.paper(name, seed=0)
    flooded = theory.traffic_bounds(problem, bm.Flooding(4), 1000)
    shared = theory.traffic_bounds(problem, bm.IRS(), 1000)
    assert (flooded.within_ttl, flooded.exact) == (flooding, True)
    assert (shared.within_ttl, shared.corrected, shared.exact) == (sharing, sharing, True)
    links = problem.network.n_links
    assert flooded.corrected == 100 * (2 * links - 99) * 1000
    assert flooded.published == 4 * 100 * links * 1000
    assert shared.published == 100 * links * 1000


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    "protocol",
    [
        bm.IRS(),
        bm.Flooding(3),
        bm.Flooding(9),
        bm.FwA(3),
        bm.Gossip(3),
        bm.Gossip(4, fanout=2),
        bm.ProbabilisticFlooding(4),
        bm.Flooding(3, emission=bm.Growth(1.0)),
        bm.FwA(3, emission=bm.Growth(0.5, echoes=1)),
        bm.Gossip(3, emission=bm.Growth(2.0)),
    ],
)
def test_measured_traffic_keeps_to_the_bounds_also_on_disconnected_networks(protocol, seed):
    problem = bm.Problem.random(nx.gnp_random_graph(25, 0.09, seed=seed), n_arms=8, per_agent=3, seed=seed)
    traffic = theory.traffic_bounds(problem, protocol, 12)
    sent = bm.simulate(problem, protocol, horizon=12, replicates=2, seed=seed, engine="reference").traffic["sent"]
    assert (sent <= traffic.within_ttl).all()
    assert traffic.within_ttl <= traffic.corrected
    if traffic.exact:
        assert (sent == traffic.within_ttl).all()


def test_growth_sends_no_more_often_than_its_count_says():
    problem = bm.Problem(nx.path_graph(2), [[0, 1]] * 2, [bm.arms.Gaussian(0.5), bm.arms.Gaussian(0.4)])
    for factor, echoes in ((0.1, 0), (0.25, 2), (1.0, 0), (3.0, 1)):
        emission = bm.Growth(factor, echoes=echoes)
        for horizon in (2, 5, 64, 500):
            sent = 0
            for n in range(horizon + 1):
                # However the rounds are divided between the two arms.
                times = 0
                for pulls in (n, horizon - n):
                    last = 0
                    for count in range(1, pulls + 1):
                        if emission.sends(count, last, False, factor):
                            times, last = times + 1, count
                sent = max(sent, min((1 + echoes) * times, horizon))
            bound = theory.traffic_bounds(problem, bm.IRS(emission=emission), horizon).within_ttl
            assert 2 * sent <= bound <= 2 * horizon
            if horizon == 500 and echoes == 0:
                assert bound < 3.1 * sent


def test_a_flood_over_a_tree_takes_every_link_once():
    problem = bm.Problem(nx.balanced_tree(2, 3), [[0]] * 15, [bm.arms.Gaussian(0.0)])
    assert theory.traffic_bounds(problem, bm.Flooding(100), 1).corrected == 15 * 14


def test_messages_that_nobody_sends_cost_nothing():
    problem = bm.Problem.paper("er")
    for protocol in (bm.NoCooperation(), bm.Centralised()):
        assert theory.traffic_bounds(problem, protocol, 1000).corrected == 0
