"""The bounds of a problem: values by hand, conditions, and what is refused."""

import json
import math
import warnings

import networkx as nx
import numpy as np
import pytest
import scipy.stats

import banditmesh as bm
from banditmesh import theory
from banditmesh.errors import ArmError, InputError
from banditmesh.protocols import EveryPull
from banditmesh.theory import concentration


def gaussian(*means, sigma=0.5):
    return [bm.arms.Gaussian(mean, sigma) for mean in means]


def same_arms(network, *means, sigma=0.5):
    return bm.Problem(network, [list(range(len(means)))] * len(network), gaussian(*means, sigma=sigma))


def condition(bounds, name):
    [found] = [one for one in bounds.conditions if one.name == name]
    return found


def test_two_agents_by_hand():
    problem = bm.Problem(nx.path_graph(2), [[0, 1], [1, 2]], gaussian(1.0, 0.5, 0.0))
    bounds = bm.bounds(problem, bm.IRS(), alpha=2.0, horizon=100)
    # Arm 1 is 0.5 below agent 0's best and agent 1's best; arm 2 is 0.5 below agent 1's best.
    assert bounds.per_arm["n_suboptimal"].tolist() == [0, 1, 1]
    assert bounds.per_arm["weighted"].tolist() == [0.0, 2.0, 2.0]
    assert bounds.per_arm["tightened"].tolist() == [0.0, 0.0, 2.0]
    assert bounds.delta == pytest.approx(4.0)
    assert bounds.constant == pytest.approx(4 * 2.0 * 4.0)
    assert bounds.constant_theta == pytest.approx(8 * 2.0 * 4.0)
    assert bounds.constant_tightened == pytest.approx(4 * 2.0 * 2.0)
    assert bounds.lower_published == pytest.approx(2 * (2 * 0.25 / 0.5))
    assert bounds.lower_corrected == pytest.approx(2 * 0.25 / 0.5)
    # Arm 2 is nobody's best: its one holder pays alpha by the gap, a quarter of what the clique bound allows.
    assert bounds.per_arm["sharp"].tolist() == [0.0, 0.0, 2.0]
    assert bounds.constant_sharp == pytest.approx(2.0 * 2.0)
    log_term, delay = 32 * math.log(100), 2 * 0.5 * 2
    published_b = (2.5 / 1.5) ** 2 * 16 / math.log(2 * 2.5 / (4 * 0.25)) * 1.0
    assert bounds.upper_published == pytest.approx(log_term + published_b + delay)
    # Each arm is suboptimal for one agent only, so nobody waits for anybody and nothing is lost to delay.
    assert bounds.upper_corrected == pytest.approx(log_term + concentration.corrected(2.0, 0.5, 2))


@pytest.mark.parametrize(
    "network, ttl, theta",
    [
        (nx.complete_graph(6), 1, 1),
        (nx.empty_graph(6), 4, 6),
        (nx.path_graph(9), 1, 5),
        (nx.path_graph(9), 2, 3),
        (nx.star_graph(5), 1, 5),
        (nx.star_graph(5), 2, 1),
        (nx.disjoint_union(nx.complete_graph(3), nx.complete_graph(4)), 3, 2),
    ],
)
def test_with_the_same_arms_delta_a_is_the_gap_by_theta(network, ttl, theta):
    problem = same_arms(network, 1.0, 0.75, 0.25)
    bounds = bm.bounds(problem, bm.Flooding(ttl))
    assert bounds.per_arm["theta"].tolist() == [0, theta, theta]
    assert bounds.per_arm["weighted"].tolist() == pytest.approx([0.0, theta / 0.25, theta / 0.75])
    # With the same arms everywhere, holders absorb at once: absorption is instant reward sharing.
    absorbed, shared = (bm.bounds(problem, protocol).per_arm for protocol in (bm.FwA(ttl), bm.IRS()))
    assert absorbed.equals(shared)


def test_flooding_never_has_the_larger_bound():
    problem = bm.Problem.random(bm.networks.paper("sbm"), n_arms=12, per_agent=5, seed=3)
    flooding, fwa, irs, none = (
        bm.bounds(problem, protocol, cover="exact")
        for protocol in (bm.Flooding(4), bm.FwA(4), bm.IRS(), bm.NoCooperation())
    )
    for column in ("theta", "weighted", "tightened"):
        assert (flooding.per_arm[column] <= fwa.per_arm[column] * (1 + 1e-9)).all()
        assert (fwa.per_arm[column] <= irs.per_arm[column] * (1 + 1e-9)).all()
        assert (irs.per_arm[column] <= none.per_arm[column] * (1 + 1e-9)).all()
    assert flooding.delta < fwa.delta < irs.delta < none.delta
    assert (none.per_arm["theta"] == none.per_arm["n_suboptimal"]).all()


def test_delta_alone_is_the_delta_of_the_bounds():
    problem = bm.Problem.random(bm.networks.paper("er"), n_arms=10, per_agent=5, seed=0)
    for cover in ("greedy", "dsatur", "exact"):
        for protocol in (bm.Flooding(4), bm.FwA(4)):
            alone = theory.delta(problem, protocol, cover)
            assert alone == pytest.approx(bm.bounds(problem, protocol, cover=cover).delta)
    with pytest.warns(UserWarning, match=r"not finished in 1e-06 s: delta is between"):
        rough = theory.delta(problem, bm.Flooding(4), "exact", time_limit=1e-6)
    assert theory.delta(problem, bm.Flooding(4), "exact") <= rough


@pytest.mark.parametrize("name", ["er", *(pytest.param(name, marks=pytest.mark.slow) for name in ("ba", "sbm"))])
def test_agents_who_learn_for_free_tighten_the_papers_constants(name):
    problem = bm.Problem.paper(name, seed=0)
    for protocol in (bm.FwA(4), bm.Flooding(4)):
        bounds = bm.bounds(problem, protocol, cover="dsatur")
        assert 1.4 < bounds.constant / bounds.constant_tightened < 5.5


def test_a_tie_teaches_nobody_for_free():
    # Agent 1 may pull either of its two best arms for ever, so agent 0 cannot count on hearing of arm 1.
    arms = gaussian(1.0, 0.5, 0.5)
    tied = bm.Problem(nx.path_graph(2), [[0, 1], [1, 2]], arms)
    alone = bm.Problem(nx.path_graph(2), [[0, 1], [1, 2]], [*arms[:2], bm.arms.Gaussian(0.25, 0.5)])
    assert bm.bounds(tied, bm.IRS()).per_arm["tightened"][1] == pytest.approx(2.0)
    assert bm.bounds(alone, bm.IRS()).per_arm["tightened"][1] == 0.0


def test_printed_b_is_negative_where_the_printed_condition_holds():
    problem = same_arms(nx.path_graph(2), 1.0, 0.0, sigma=1.0)
    bounds = bm.bounds(problem, bm.IRS(), alpha=1.2)
    assert condition(bounds, "published").holds
    assert not condition(bounds, "published b").holds
    assert bounds.published.bad_luck < 0
    assert not condition(bounds, "corrected").holds
    assert bounds.upper_corrected == math.inf
    assert bounds.table().loc["regret / log T as T grows, at most", "corrected"] == math.inf
    assert condition(bm.bounds(problem, bm.IRS(), alpha=1.6), "published b").holds


def test_corrected_condition_does_not_depend_on_the_ttl():
    problem = same_arms(nx.path_graph(12), 1.0, 0.0, sigma=1.0)
    for ttl in (1, 4, 11):
        assert not condition(bm.bounds(problem, bm.Flooding(ttl), alpha=2.0), "corrected").holds
        assert condition(bm.bounds(problem, bm.Flooding(ttl), alpha=2.01), "corrected").holds


def test_a_ttl_beyond_the_diameter_is_stated():
    problem = same_arms(nx.path_graph(4), 1.0, 0.0)
    assert condition(bm.bounds(problem, bm.Flooding(3)), "published ttl").holds
    assert not condition(bm.bounds(problem, bm.Flooding(4)), "published ttl").holds
    disconnected = same_arms(nx.empty_graph(2), 1.0, 0.0)
    assert condition(bm.bounds(disconnected, bm.Flooding(9)), "published ttl").holds


def test_bounds_grow_with_the_horizon_and_are_a_function_of_it():
    problem = bm.Problem.random(bm.networks.paper("er"), n_arms=10, per_agent=4, seed=0)
    bounds = bm.bounds(problem, bm.FwA(4), horizon=500, cover="dsatur")
    values = bounds.corrected.at(np.array([1, 10, 500, 1000]))
    assert (np.diff(values) > 0).all()
    assert values[2] == pytest.approx(bounds.upper_corrected)
    assert values[3] == pytest.approx(bm.bounds(problem, bm.FwA(4), horizon=1000, cover="dsatur").upper_corrected)
    assert values[0] == pytest.approx(bounds.corrected.bad_luck)


def test_delay_term_is_the_smaller_of_two():
    problem = same_arms(nx.path_graph(4), 1.0, 0.0)
    bounds = bm.bounds(problem, bm.Flooding(3), alpha=1.0, horizon=2)
    assert bounds.corrected.delay(2) == pytest.approx(4 * 4 * math.log(2))
    assert bounds.corrected.delay(1000) == pytest.approx(4 * 6)


@pytest.mark.parametrize("protocol", [bm.Flooding, bm.FwA])
def test_a_ttl_beyond_the_diameter_adds_no_delay(protocol):
    problem = same_arms(nx.complete_graph(5), 1.0, 0.8, 0.7)
    near, far = (bm.bounds(problem, protocol(ttl)) for ttl in (1, 100))
    assert far.corrected.delay(1000) == near.corrected.delay(1000) == pytest.approx(2 * problem.arm_gaps.sum())
    assert far.upper_corrected == near.upper_corrected
    assert far.upper_sharp == near.upper_sharp
    assert far.published.delay(1000) > 50 * far.corrected.delay(1000)


def test_no_cooperation_is_every_agent_on_its_own():
    problem = bm.Problem.random(bm.networks.paper("er"), n_arms=10, per_agent=4, seed=0)
    bounds = bm.bounds(problem, bm.NoCooperation())
    assert math.isnan(bounds.upper_published)
    assert bounds.per_arm["weighted"].sum() == pytest.approx((1 / problem.arm_gaps[problem.arm_gaps > 0]).sum())
    assert bounds.lower_corrected == pytest.approx((2 / problem.arm_gaps[problem.arm_gaps > 0]).sum())
    assert bounds.corrected.luck == concentration.corrected(3.0, 1.0, 1)
    assert bm.bounds(problem, bm.IRS()).corrected.luck == concentration.corrected(3.0, 1.0, 100)
    single = same_arms(nx.empty_graph(1), 1.0, 0.5)
    assert bm.bounds(single, bm.NoCooperation()).upper_corrected == bm.bounds(single, bm.Centralised()).upper_corrected


def test_centralised_is_sharing_on_the_complete_network():
    path = bm.Problem.random(nx.path_graph(8), n_arms=6, per_agent=3, seed=2)
    complete = bm.Problem.random(nx.complete_graph(8), n_arms=6, per_agent=3, seed=2)
    central, shared = bm.bounds(path, bm.Centralised()), bm.bounds(complete, bm.IRS())
    assert central.per_arm.equals(shared.per_arm)
    assert central.upper_corrected == shared.upper_corrected
    assert central.traffic.within_ttl == 0


@pytest.mark.parametrize("protocol", [bm.Gossip(3), bm.ProbabilisticFlooding(3, stop=0.5)])
def test_random_relaying_has_no_clique_bound_but_one_by_delivery(protocol):
    problem = bm.Problem.random(nx.random_regular_graph(4, 20, seed=0), n_arms=6, per_agent=3, seed=0)
    bounds = bm.bounds(problem, protocol, cover="greedy")
    assert not condition(bounds, "claimed").holds
    assert condition(bounds, "sharp").holds
    assert "by chance" in bounds.theorem
    assert all(math.isnan(value) for value in (bounds.upper_published, bounds.delta))
    assert bounds.upper_corrected == bounds.upper_sharp > 0
    assert 0 < bounds.lower_corrected < bounds.constant_sharp < math.inf
    assert bounds.traffic.within_ttl > 0
    with pytest.raises(InputError, match="no clique bound is claimed"):
        theory.delta(problem, protocol)


def test_other_peoples_protocols_and_emissions_have_no_claimed_bound():
    class Mine(bm.Flooding):
        name = "mine"

        @staticmethod
        def relay(has_arm, ttl, degree, u, parameter):
            return bm.RELAY

    class Seldom(EveryPull):
        @staticmethod
        def sends(own_count, sent_count, is_best, parameter):
            return own_count % 2 == 0

    assert not theory.claims_bound(Mine(2))
    assert not theory.claims_bound(bm.Flooding(2, emission=Seldom()))
    assert theory.claims_bound(bm.Flooding(2))
    for protocol in (Mine(2), bm.Flooding(2, emission=Seldom())):
        bounds = bm.bounds(same_arms(nx.path_graph(2), 1.0, 0.5), protocol)
        assert math.isnan(bounds.upper_sharp)
        assert math.isnan(bounds.upper_corrected)
        assert bounds.theorem.startswith("none")
        assert not condition(bounds, "sharp").holds


def test_an_arm_without_sigma_needs_one_from_the_caller():
    arms = [bm.arms.Gaussian(1.0, 0.5), scipy.stats.expon(scale=0.5)]
    problem = bm.Problem(nx.path_graph(2), [[0, 1]] * 2, arms)
    with pytest.raises(ArmError, match="sigma="):
        bm.bounds(problem, bm.IRS())
    with pytest.raises(InputError, match=r"sigma must hold for all arms, got 0.25, and an arm has 0.5"):
        bm.bounds(problem, bm.IRS(), sigma=0.25)
    bounds = bm.bounds(problem, bm.IRS(), sigma=0.75)
    assert bounds.sigma == 0.75
    assert math.isfinite(bounds.upper_corrected)
    # Nobody knows a class for the exponential arm: it adds nothing to the lower bound, and the bounds say so.
    assert bounds.lower_corrected == 0.0
    assert not condition(bounds, "information").holds


def test_arms_that_pay_without_chance_have_a_small_bound():
    problem = bm.Problem(nx.path_graph(2), [[0, 1]] * 2, [bm.arms.Bernoulli(1.0), bm.arms.Bernoulli(0.0)])
    bounds = bm.bounds(problem, bm.IRS(), alpha=0.1, horizon=100)
    assert bounds.corrected.bad_luck == pytest.approx(2 * 2.0)
    assert bounds.lower_corrected == 0.0


def test_one_agent_with_one_arm_has_nothing_to_pay():
    bounds = bm.bounds(same_arms(nx.empty_graph(1), 0.5), bm.Flooding(1))
    assert bounds.upper_corrected == bounds.lower_corrected == bounds.delta == 0.0
    assert bounds.per_arm["theta"].tolist() == [0]


def test_too_little_time_falls_back_to_bounds_and_warns_of_the_gap():
    problem = bm.Problem.random(nx.gnp_random_graph(80, 0.05, seed=1), n_arms=4, per_agent=3, seed=0)
    with pytest.warns(UserWarning, match=r"not finished in 1e-06 s.*sum of 1 / Delta_a is between") as caught:
        rough = bm.bounds(problem, bm.Flooding(2), time_limit=1e-6)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        exact = bm.bounds(problem, bm.Flooding(2))
    assert not condition(rough, "covers").holds
    assert condition(exact, "covers").holds
    assert rough.upper_corrected >= exact.upper_corrected
    assert (rough.per_arm["weighted_lower"] <= exact.per_arm["weighted"] + 1e-9).all()
    assert (rough.per_arm["theta_lower"] <= exact.per_arm["theta"]).all()


def test_progress_counts_arms():
    seen = []
    bm.bounds(
        bm.Problem.paper("er"), bm.FwA(4), cover="greedy", progress=lambda done, total: seen.append((done, total))
    )
    assert seen == [(done, 50) for done in range(1, 51)]


def test_views_say_the_same():
    bounds = bm.bounds(bm.Problem.paper("er", seed=0), bm.FwA(4), cover="dsatur")
    table = bounds.table()
    assert table.loc["group regret at T = 1000, at most", "corrected"] == bounds.upper_corrected
    assert table.iloc[1:4]["published"].sum() == pytest.approx(bounds.upper_published)
    frame = bounds.to_dataframe()
    assert len(frame) == 50
    assert set(frame["protocol"]) == {"fwa(4)"}
    told = json.loads(json.dumps(bounds.to_json()))
    assert told["upper_corrected"] == bounds.upper_corrected
    assert told["per_arm"][7]["theta"] == bounds.per_arm["theta"][7]
    assert told["upper_sharp"] == bounds.upper_sharp
    assert told["theorem"] == "delivery theorem: every pull arrives"
    assert {one["name"] for one in told["conditions"]} >= {"claimed", "published", "corrected", "sharp", "consistent"}
    assert "fwa" in repr(bounds).lower() or "Absorption" in repr(bounds)


def test_values_that_json_does_not_know_are_none():
    told = bm.bounds(bm.Problem.paper("er", seed=0), bm.NoCooperation(), alpha=1.0, cover="greedy").to_json()
    assert told["upper_published"] is None
    assert told["upper_corrected"] is None
    json.dumps(told, allow_nan=False)


def test_plot_draws_measured_regret_and_the_bounds():
    problem = bm.Problem.paper("er", seed=0)
    result = bm.simulate(problem, bm.FwA(4), horizon=30, replicates=2, seed=0)
    bounds = bm.bounds(problem, bm.FwA(4), cover="greedy")
    [axes] = bounds.plot(result).axes
    labels = [line.get_label() for line in axes.get_lines()]
    assert labels[0] == "measured, fwa"
    assert labels[1] == "estimate, not a bound"
    assert len(labels) == 6
    drawn = [line.get_ydata()[-1] for line in axes.get_lines()[1:4]]
    assert drawn == pytest.approx([bounds.estimate(30).at(30), bounds.sharp.at(30), bounds.corrected.at(30)])
    with pytest.raises(InputError, match="result of a simulation"):
        bounds.plot(problem)


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"alpha": 0}, "alpha"),
        ({"horizon": 0}, "horizon"),
        ({"cover": "best"}, "cover"),
        ({"time_limit": 0}, "time_limit"),
    ],
)
def test_wrong_settings_are_refused(settings, message):
    with pytest.raises(InputError, match=message):
        bm.bounds(bm.Problem.paper("er"), bm.FwA(4), **settings)


def test_wrong_problem_and_protocol_are_refused():
    with pytest.raises(InputError, match="Problem"):
        bm.bounds(nx.path_graph(2), bm.FwA(4))
    with pytest.raises(InputError, match="fwa needs a ttl, got none"):
        bm.bounds(bm.Problem.paper("er"), "fwa")
    with pytest.raises(InputError, match="protocol"):
        bm.bounds(bm.Problem.paper("er"), 4)


def test_a_bound_above_what_regret_can_be_says_nothing_and_says_so():
    arms = [bm.arms.Gaussian(mean, 0.5) for mean in (0.2, 0.5, 0.8)]
    problem = bm.Problem(nx.path_graph(3), [[0, 1], [1, 2], [0, 2]], arms)
    short, long = (bm.bounds(problem, bm.FwA(2), horizon=horizon) for horizon in (10, 1_000_000))
    assert short.trivial == pytest.approx(10 * (0.3 + 0.3 + 0.6))
    assert set(short.vacuous) == {"published", "corrected", "sharp"}
    line = "says nothing at T = 10: published, corrected, sharp; regret is at most 12.00 whatever is pulled"
    assert short.notes[1].startswith(line)
    assert short.notes[1] in short._repr_html_()
    assert long.vacuous == ()
    assert len(long.notes) == 1
    assert short.to_json()["trivial"] == short.trivial
    # Who pulls every other round cannot lose more than half as much.
    assert bm.bounds(problem, bm.FwA(2), horizon=10, every=2).trivial == pytest.approx(short.trivial / 2)


def test_an_infinite_bound_is_no_bound_rather_than_a_vacuous_one():
    problem = bm.Problem.random(bm.networks.ring(4), n_arms=3, per_agent=2, seed=0)
    found = bm.bounds(problem, bm.Flooding(2), alpha=1.5, horizon=10)
    assert found.upper_corrected == float("inf")
    assert "corrected" not in found.vacuous
