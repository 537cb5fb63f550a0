"""Independent sets, caps, and bounds without gaps: lemmas and values, recomputed by brute force."""

import itertools
import math
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import gammaincc

import banditmesh as bm
from banditmesh import theory
from banditmesh.theory import concentration, ways
from banditmesh.theory.cliques import neighbour_masks
from banditmesh.theory.delivery import Flow, Shares
from banditmesh.theory.independent import IndependentSets, clique_bound
from banditmesh.theory.ucb_lower import ucb_lower
from cases import examples


def gaussian(*means, sigma=0.5):
    return [bm.arms.Gaussian(mean, sigma) for mean in means]


def heaviest(joined, weights, within):
    """Over all subsets: what an independent set weighs at most."""
    best = 0.0
    for size in range(len(within) + 1):
        for chosen in itertools.combinations(within, size):
            if not any(joined[v][w] for v, w in itertools.combinations(chosen, 2)):
                best = max(best, sum(weights[v] for v in chosen))
    return best


def random_graph(rng, n, density):
    joined = np.triu(rng.random((n, n)) < density, 1)
    return joined | joined.T


# Independent sets


@pytest.mark.parametrize("seed", range(12))
def test_heaviest_sets_are_those_of_all_subsets(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 10))
    joined = random_graph(rng, n, rng.uniform(0.1, 0.9))
    weights = np.sort(rng.choice([1.0, 1.5, 2.0, 7.0], n) if seed % 2 else rng.uniform(0.1, 3.0, n)).tolist()
    graph = neighbour_masks(joined)
    sets = IndependentSets(graph, weights)
    for within in range(1 << n):
        inside = [v for v in range(n) if within >> v & 1]
        expected = heaviest(joined, weights, inside)
        assert sets.heaviest(within) == pytest.approx(expected)
        assert clique_bound(graph, weights, within) >= expected * (1 - 1e-12)
    assert sets.exact


@pytest.mark.parametrize("most_parts", [0, 1])
def test_a_search_that_is_cut_short_bounds_from_above(most_parts):
    rng = np.random.default_rng(1)
    joined = random_graph(rng, 14, 0.3)
    weights = np.sort(rng.uniform(0.5, 2.0, 14)).tolist()
    graph, everyone = neighbour_masks(joined), (1 << 14) - 1
    exact = IndependentSets(graph, weights).heaviest(everyone)
    for cut in (IndependentSets(graph, weights, most_parts=most_parts), IndependentSets(graph, weights, deadline=0.0)):
        assert exact <= cut.heaviest(everyone) <= sum(weights)
        assert not cut.exact


def test_a_long_path_is_solved():
    path = nx.to_numpy_array(nx.path_graph(1500)).astype(bool)
    sets = IndependentSets(neighbour_masks(path), [1.0] * 1500)
    assert sets.heaviest((1 << 1500) - 1) == 750.0


# Lemma D


@given(st.integers(0, 100_000), st.integers(1, 6), st.floats(0.25, 1.0), st.integers(1, 4), st.integers(0, 4))
@settings(max_examples=examples(120))
def test_agents_pull_no_more_than_the_lemma_allows(seed, n, kappa, most_delay, slack):
    """Lemma D of docs/theory/independent.md, for any pulls and any deliveries that keep the promise."""
    rng = np.random.default_rng(seed)
    horizon = 60
    joined = random_graph(rng, n, rng.uniform(0.2, 1.0))
    delay = rng.integers(1, most_delay + 1, (n, n))
    late = np.array([max([1, *(delay[w, v] for v in range(n) if joined[v, w])]) for w in range(n)])
    pulls = rng.random((n, horizon + 1)) < rng.uniform(0.05, 1.0, (n, 1))
    pulls[:, 0] = False
    needed = rng.uniform(0.5, 25.0, n)
    # Some stop pulling when they have heard enough, as UCB does; deliveries are as few as promised, or a little more.
    stops = rng.random(n) < 0.7
    counts, has, spent = np.zeros((n, horizon + 1), dtype=int), np.zeros(n), np.zeros(n)
    for t in range(1, horizon + 1):
        for v in range(n):
            told = max(
                sum(counts[w, max(t - delay[w, v], 0)] - slack for w in some)
                for size in range(n)
                for some in itertools.combinations(np.flatnonzero(joined[v]).tolist(), size)
            )
            has[v] = max(has[v], counts[v, t - 1] + kappa * told + rng.uniform(0, 1) * (rng.random() < 0.2))
        enough = has >= needed
        made = pulls[:, t] & ~(stops & enough)
        counts[:, t] = counts[:, t - 1] + made
        spent += made & ~enough
    for within in range(1, 1 << n):
        inside = [v for v in range(n) if within >> v & 1]
        allowed = sum(slack + min(late[v], needed[v] + 1) for v in inside)
        for part in nx.connected_components(nx.from_numpy_array(joined).subgraph(inside)):
            most, total = heaviest(joined, needed, sorted(part)), sum(needed[v] for v in part)
            allowed += min(most / kappa, kappa * most + (1 - kappa) * total)
        assert sum(spent[v] for v in inside) <= allowed + 1e-9


@pytest.mark.parametrize("seed", range(8))
def test_what_is_needed_is_the_lemmas_by_brute_force(seed):
    rng = np.random.default_rng(seed)
    n = 6
    share = rng.choice([0.4, 0.8, 1.0], (n, n))
    share = np.minimum(share, share.T)
    joined = random_graph(rng, n, 0.4)
    gaps = rng.choice([0.2, 0.5, 0.9, 1.0], n) if seed % 2 else rng.uniform(0.05, 1.0, n)
    shares = Shares(share, rng.integers(1, 4, (n, n)), joined)
    way = ways.Way.of(gaps, shares, joined, joint=False)
    kappa = {}
    for part in nx.connected_components(nx.from_numpy_array(joined)):
        least = min([1.0, *(share[v, w] for v, w in itertools.combinations(part, 2) if joined[v, w])])
        kappa |= dict.fromkeys(part, least)

    def needs(inside):
        total = 0.0
        for part in nx.connected_components(nx.from_numpy_array(joined).subgraph(inside)):
            k, most = kappa[min(part)], heaviest(joined, gaps**-2.0, sorted(part))
            total += min(most / k, k * most + (1 - k) * sum(gaps[v] ** -2.0 for v in part))
        return total

    def integral(caps):
        """Over slices between all gaps and caps."""
        steps = np.unique([0.0, *gaps, *caps])
        slices = itertools.pairwise(steps.tolist())
        return sum((b - a) * needs([v for v in range(n) if caps[v] < (a + b) / 2 <= gaps[v]]) for a, b in slices)

    ladder = way.ladder()
    assert way.cost(ladder) == pytest.approx(integral(np.zeros(n)))
    for cap in (0.1, 0.5, 0.95):
        assert way.cost(ladder, cap) == pytest.approx(integral(np.full(n, cap)))
        own = np.where(gaps > cap, rng.uniform(0.0, cap, n), cap)
        below = way.cost_below(own[way.places], cap, n_steps=n + 1)
        assert way.cost(ladder, cap) + below == pytest.approx(integral(own))
        # Fewer steps take more agents in, never fewer.
        assert way.cost_below(own[way.places], cap, n_steps=2) >= below * (1 - 1e-12)


@pytest.mark.parametrize("seed", range(10))
def test_independent_sets_never_cost_more_than_a_cover(seed):
    rng = np.random.default_rng(seed)
    n = 7
    graph = nx.gnp_random_graph(n, 0.5, seed=seed)
    gaps = rng.uniform(0.05, 1.0, n) if seed % 2 else rng.choice([0.3, 0.6], n)
    joined = nx.to_numpy_array(graph).astype(bool)
    way = ways.Way.of(gaps, Shares(np.ones((n, n)), np.ones((n, n), dtype=int), joined), joined, joint=False)
    cost = way.cost(way.ladder())
    assert cost <= theory.weighted_cover(graph, gaps.tolist()).cost * (1 + 1e-9)
    assert cost >= heaviest(joined, 1 / gaps, range(n)) * (1 - 1e-9)


def test_a_group_costs_the_sum_itself():
    two = ways.Way.of(
        np.array([0.1, 1.0]),
        Shares(np.ones((2, 2)), np.ones((2, 2), dtype=int), np.ones((2, 2), dtype=bool)),
        np.ones((2, 2), dtype=bool),
        joint=True,
    )
    assert two.cost(two.ladder()) == pytest.approx(10.9)
    assert theory.clique_cost([0.1, 1.0]) == pytest.approx(19.0)


# What the bounds make of it


def test_a_ring_of_five_costs_two_and_not_three():
    ring = bm.Problem(nx.cycle_graph(5), [[0, 1]] * 5, gaussian(1.0, 0.0))
    bounds = bm.bounds(ring, bm.IRS(), alpha=1.0, horizon=100_000)
    assert bounds.constant / 4 == pytest.approx(3.0)
    assert bounds.constant_sharp == pytest.approx(2.0)
    assert bounds.constant_least == pytest.approx(5 / 3)
    assert bounds.counted_by == "independent sets"
    assert "counted by independent sets" in bounds.notes[0]
    told = bounds.to_json()
    assert (told["counted_by"], told["constant_least"]) == ("independent sets", pytest.approx(5 / 3))
    assert bounds.table().loc["  UCB itself, at least", "sharp"] == pytest.approx(5 / 3)


def test_the_bracket_is_drawn_as_a_band():
    ring = bm.Problem(nx.cycle_graph(5), [[0, 1]] * 5, gaussian(1.0, 0.0))
    result = bm.simulate(ring, bm.IRS(), policy=bm.UCB(1.0), horizon=50, seed=0)
    figure = bm.bounds(ring, bm.IRS(), alpha=1.0, horizon=50).plot(result)
    told = [text.get_text() for text in [*figure.legends, figure.axes[0].get_legend()][0].get_texts()]
    assert "UCB's own constant times log T" in told
    # Where alpha is too small there is no upper end, and no band.
    small = bm.bounds(ring, bm.IRS(), alpha=0.1, horizon=50)
    assert len(small.plot(result).axes[0].collections) < len(figure.axes[0].collections)


def test_the_papers_er_network_by_independent_sets():
    bounds = bm.bounds(bm.Problem.paper("er", seed=0), bm.FwA(4))
    assert (bounds.constant_sharp / 3, bounds.constant_least / 3) == pytest.approx((4226.3, 2603.4), abs=0.1)
    assert bounds.per_arm["independent"].sum() == pytest.approx(8068, abs=1)
    assert bounds.upper_sharp < 62_481
    assert {one.name: one.holds for one in bounds.conditions}["sets"]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    "protocol, faults",
    [
        (bm.IRS(), None),
        (bm.FwA(3), None),
        (bm.Flooding(2, emission=bm.Growth(0.5)), None),
        (bm.TreeAggregation(), None),
        (bm.Gossip(2), None),
        (bm.Flooding(2), bm.Faults(loss=0.2)),
        (bm.IRS(emission=bm.Contested()), None),
    ],
    ids=lambda value: getattr(value, "name", "loss") if value else "sound",
)
def test_ucbs_own_constant_is_in_its_bracket(protocol, faults, seed):
    problem = bm.Problem.random(nx.gnp_random_graph(7, 0.4, seed=seed), n_arms=5, per_agent=3, seed=seed)
    bounds = bm.bounds(problem, protocol, faults=faults)
    assert (bounds.per_arm["ucb_lower"] <= bounds.per_arm["sharp"] * (1 + 1e-9)).all()
    assert (bounds.per_arm["sharp"] <= bounds.per_arm["independent"] * (1 + 1e-9)).all()
    assert bounds.constant_least <= bounds.constant_sharp * (1 + 1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_ucb_pays_at_least_what_the_vertices_of_the_program_say(seed):
    problem = bm.Problem.random(nx.gnp_random_graph(5, 0.5, seed=seed), n_arms=3, per_agent=2, seed=seed)
    delivery = Flow.under(problem, bm.IRS())
    for arm in theory.arm_gaps(problem):
        holders = arm.holders.tolist()
        gap = dict.fromkeys(holders, 0.0) | dict(zip(arm.suboptimal.tolist(), arm.gaps.tolist(), strict=True))
        may = delivery.shares(arm.index, arm.holders).may
        heard = {u: [w for i, w in enumerate(holders) if may[i, j]] for j, u in enumerate(holders)}
        needy = [u for u in heard if all(gap[w] > 0 for w in heard[u])]
        best = math.inf if needy else 0.0
        # A vertex has as many tight constraints as variables: of these, and of those that no pulls are negative.
        who = [w for w in holders if gap[w] > 0]
        rows = [[float(w in heard[u]) for w in who] for u in needy] + np.eye(len(who)).tolist()
        sides = [gap[u] ** -2.0 for u in needy] + [0.0] * len(who)
        for tight in itertools.combinations(range(len(rows)), len(who)):
            square = np.array([rows[i] for i in tight])
            if len(who) and abs(np.linalg.det(square)) > 1e-9:
                point = np.linalg.solve(square, [sides[i] for i in tight])
                if (np.array(rows) @ point >= np.array(sides) - 1e-9).all():
                    best = min(best, sum(gap[w] * x for w, x in zip(who, point, strict=True)))
        assert ucb_lower(arm, delivery) == pytest.approx(best)


# Repairs


def test_no_constant_is_claimed_where_alpha_is_too_small():
    one = bm.Problem(nx.empty_graph(1), [[0, 1]], gaussian(0.5, 0.0, sigma=1.0))
    bounds = bm.bounds(one, bm.NoCooperation(), alpha=0.05)
    assert bounds.constant == bounds.constant_theta == bounds.constant_tightened == bounds.constant_sharp == math.inf
    assert bounds.constant_least == pytest.approx(0.1)
    assert bounds.to_json()["constant_sharp"] is None
    assert bounds.table().loc["regret / log T as T grows, at most", "sharp"] == math.inf
    # As printed, the paper's constant stays what it is.
    two = bm.Problem(nx.path_graph(2), [[0, 1]] * 2, gaussian(1.0, 0.0, sigma=1.0))
    assert bm.bounds(two, bm.IRS(), alpha=1.2).table().loc["regret / log T as T grows, at most", "published"] == 4.8


@pytest.mark.parametrize("sets", [[[0], [1]], [[0, 1], [1, 0]]])
def test_where_nothing_can_be_lost_all_bounds_are_0(sets):
    bounds = bm.bounds(bm.Problem(nx.path_graph(2), sets, [bm.arms.Gaussian(0.0)] * 2), "irs")
    told = bounds.to_json()
    assert told["counted_by"] == bounds.counted_by == "largest gaps"
    assert bounds.upper_sharp == bounds.upper_gap_free == bounds.lower_gap_free == bounds.constant_least == 0.0


def test_agents_that_pull_less_often_pay_less():
    problem = bm.Problem(nx.path_graph(3), [[0, 1]] * 3, gaussian(1.0, 0.0, sigma=1.0))
    bounds = bm.bounds(problem, bm.IRS(), horizon=100, every=5)
    assert bounds.trivial == 60.0
    assert bounds.upper_sharp <= 60.0
    assert bounds.upper_gap_free <= 60.0
    mixed = bm.bounds(problem, bm.IRS(), horizon=100, every=[1, 5, 100])
    assert mixed.upper_sharp <= mixed.trivial == 121.0


@pytest.mark.parametrize("protocol", [bm.NoCooperation(), bm.IRS(), bm.Gossip(2), bm.TreeAggregation()])
def test_tiny_gaps_do_no_harm(protocol):
    arms = gaussian(1e-170, 0.0, -0.5)
    problem = bm.Problem(nx.path_graph(3), [[0, 1, 2]] * 3, arms)
    bounds = bm.bounds(problem, protocol, horizon=1000)
    assert 0 < bounds.upper_sharp <= bounds.trivial
    assert bounds.constant_sharp >= 1e170
    without = bm.Problem(nx.path_graph(3), [[0, 1]] * 3, [arms[0], arms[2]])
    assert bounds.upper_sharp >= 0.9 * bm.bounds(without, protocol, horizon=1000).upper_sharp


def test_a_group_waits_at_every_height_between_its_caps_and_gaps():
    whole = np.ones((3, 3), dtype=np.bool_)
    gaps, caps = np.array([3.0, 2.0, 1.0]), np.array([2.0, 0.5, 1.5])
    group = ways.Way.of(gaps, Shares(np.full((3, 3), 0.5), np.ones((3, 3), dtype=np.int64), whole), whole, joint=True)
    group = replace(group, waits=np.full(3, 10.0))
    # From the second's cap to the first's gap; the third is not counted, its gap being below its cap.
    assert group.wait_cost(caps) == pytest.approx(10.0 * (3.0 - 0.5))
    assert group.wait_cost() == pytest.approx(10.0 * 3.0)
    assert group.wait_cost(gaps) == 0.0


def test_groups_are_taken_apart_where_waiting_costs_more():
    # Two agents of whom little arrives: at short horizons each is better off on its own.
    problem = bm.Problem(nx.path_graph(2), [[0, 1]] * 2, gaussian(1.0, 0.0, sigma=0.3))
    lossy = bm.bounds(problem, bm.IRS(), alpha=1.0, horizon=100, faults=bm.Faults(loss=0.9))
    alone = bm.bounds(problem, bm.NoCooperation(), alpha=1.0, horizon=100)
    # But for what is in the estimates: messages of two agents instead of one.
    assert lossy.upper_sharp <= alone.upper_sharp * 1.1


@pytest.mark.parametrize("n, loss", [(25, 0.9), (64, 0.99999)])
def test_shares_too_small_to_subtract_from_one_do_no_harm(n, loss):
    # What gets from one end of a path to the other is 1e-24, or less than the smallest float.
    network = nx.path_graph(n)
    problem = bm.Problem(network, [[0, 1], *[[2]] * (n - 2), [0, 1]], gaussian(1.0, 0.0, 0.5, sigma=0.3))
    bounds = bm.bounds(problem, bm.Flooding(n), alpha=1.0, faults=bm.Faults(loss=loss))
    alone = bm.bounds(problem, bm.NoCooperation(), alpha=1.0)
    assert alone.upper_sharp <= bounds.upper_sharp <= alone.upper_sharp * 1.1
    assert alone.upper_gap_free <= bounds.upper_gap_free <= alone.upper_gap_free * 1.1
    assert bounds.constant_sharp == pytest.approx(alone.constant_sharp)


def test_a_group_waits_wherever_one_of_its_members_pays():
    share = np.array([[1.0, 0.5], [0.5, 1.0]])
    everyone = np.ones((2, 2), dtype=bool)
    two = ways.Way.of(np.array([0.6, 1.0]), Shares(share, np.ones((2, 2), dtype=int), everyone), everyone, joint=True)
    two = two.waiting(1e5)
    [wait] = set(two.waits.tolist())
    assert wait > 0
    # Agents are in the order of their gaps: one pays from 0.5 to 1, the other from 0.1 to 0.6.
    for caps, length in (([0.0, 0.0], 1.0), ([0.3, 0.3], 0.7), ([0.5, 0.1], 0.9), ([0.8, 0.6], 0.2), ([1.0, 0.7], 0.0)):
        assert two.wait_cost(np.array(caps)) == pytest.approx(wait * length)


# Whatever the gaps are


@pytest.mark.parametrize("protocol, kappa", [(bm.IRS(), 1.0), (bm.IRS(emission=bm.Growth(0.5)), 1 / 1.5)])
def test_the_bound_without_gaps_by_hand(protocol, kappa):
    sets = [[0, 1], [0, 1, 2], [1, 2], [0, 2], [2]]
    network, every, horizon, alpha, sigma = nx.path_graph(5), [1, 2, 1, 3, 1], 600, 2.0, 0.1
    problem = bm.Problem(network, sets, gaussian(1.0, 0.0, 0.7, sigma=sigma))
    found = bm.bounds(problem, protocol, alpha=alpha, horizon=horizon, every=every).upper_gap_free
    prefix, largest = kappa < 1.0, 1.0
    choosing = [v for v in range(5) if len(sets[v]) > 1]
    pulls = [math.ceil(horizon / e) for e in every]
    needed, heard = 0.0, {}
    for a in range(3):
        who = network.subgraph(v for v in choosing if a in sets[v])
        for part in nx.connected_components(who):
            most = heaviest(nx.to_numpy_array(network), [1.0] * 5, sorted(part))
            needed += min(most / kappa, kappa * most + (1 - kappa) * len(part)) if len(part) > 1 else 1.0
        for v in range(5):
            if a in sets[v]:
                heard[v, a] = 1 + sum(a in sets[w] for w in network[v])
    missed = {}
    for v in choosing:
        most, rounds = max(heard[v, a] for a in sets[v]), np.arange(len(sets[v]) + 1, horizon + 1.0)
        missed[v] = concentration.missed(alpha, sigma, most, most if prefix else 1, rounds).sum()
    total, values = sum(pulls[v] for v in choosing), []
    for x in np.geomspace(0.02, 6.0, 60):
        g, rest = alpha * (1 + x) ** 2 * math.log(horizon), 0.0
        z = math.sqrt(g * needed / total)
        for v in choosing:
            tails = [
                gammaincc(heard[v, a] if prefix else 1, alpha * x**2 * math.log(horizon) / (2 * sigma**2))
                for a in sets[v]
            ]
            terms = [1 + 1 + pulls[v] * tail for tail in tails]
            rest += sum(terms) - min(terms) + missed[v]
        if z < largest:
            values.append(z * total + g * needed * (1 / z - 1 / largest) + (largest - z) * rest)
    assert found == pytest.approx(min(values), rel=1e-3)


@pytest.mark.parametrize("protocol", [bm.IRS(), bm.Flooding(2), bm.Gossip(2), bm.NoCooperation()])
def test_no_means_cost_more_than_the_bound_without_gaps(protocol):
    rng = np.random.default_rng(3)
    sets = [[0, 1, 2], [0, 1], [1, 2], [0, 2, 3], [3]]
    network = nx.path_graph(5)

    def bounds(means):
        return bm.bounds(bm.Problem(network, sets, gaussian(*means, sigma=0.2)), protocol, alpha=0.2, horizon=4000)

    widest = bounds([1.0, 0.0, 1.0, 0.0])
    assert widest.lower_gap_free < widest.upper_gap_free
    for _ in range(4):
        means = rng.uniform(0.0, 1.0, 4) * rng.choice([0.05, 0.3, 1.0])
        problem = bm.Problem(network, sets, gaussian(*means, sigma=0.2))
        settings_ = {"horizon": 4000, "replicates": 4, "seed": 0, "record_every": 4000}
        result = bm.simulate(problem, protocol, policy=bm.UCB(0.2), **settings_)
        assert result.regret[:, -1].mean() < widest.upper_gap_free


def test_common_arms_cost_the_root_of_all_pulls_at_least():
    problem = bm.Problem(nx.complete_graph(4), [[0, 1, 2]] * 4, gaussian(1.0, 0.5, 0.0, sigma=1.0))
    bounds = bm.bounds(problem, bm.IRS(), horizon=10_000)
    expected = 0.5 * (1 - 1 / 3) ** 2 * math.sqrt(3 * 4 * 10_000)
    assert expected * 0.99 <= bounds.lower_gap_free <= expected
    # Without cooperation each agent pays for itself.
    alone = bm.bounds(problem, bm.NoCooperation(), horizon=10_000).lower_gap_free
    assert alone == pytest.approx(2 * bounds.lower_gap_free, rel=0.02)
    assert bm.bounds(problem, bm.IRS(), horizon=10_000, every=4).lower_gap_free < bounds.lower_gap_free
    apart = bm.Problem(nx.complete_graph(4), [[0, 1]] * 2 + [[2, 3]] * 2, gaussian(1.0, 0.0, 1.0, 0.0, sigma=1.0))
    blocks = bm.bounds(apart, bm.IRS(), horizon=10_000).lower_gap_free
    assert blocks == pytest.approx(2 * 0.5 * 0.25 * math.sqrt(2 * 2 * 10_000), rel=0.01)
    assert bm.bounds(apart, bm.IRS(), faults=bm.Faults(outages=bm.Outages(0.1, 0.1))).lower_gap_free == 0.0


def test_leaves_that_follow_the_centre_pay_once():
    """A star, docs/theory/gap-free.md: the centre runs UCB on everything, and leaves copy its last pull."""
    rng = np.random.default_rng(0)
    leaves, horizon, alpha, sigma = 5, 20_000, 1.0, 0.5
    count, total, regret, last = np.zeros(2), np.zeros(2), 0.0, 0
    for t in range(1, horizon + 1):
        with np.errstate(divide="ignore", invalid="ignore"):
            index = np.where(count > 0, total / count + np.sqrt(alpha * math.log(t) / count), np.inf)
        chosen = int(np.argmax(index))
        for arm, n in ((chosen, 1), (last, leaves)):
            count[arm] += n
            total[arm] += n * (arm == 0) + sigma * math.sqrt(n) * rng.standard_normal()
            regret += n * (arm == 1)
        last = chosen
    star = bm.Problem(nx.star_graph(leaves), [[0, 1]] * (leaves + 1), gaussian(1.0, 0.0, sigma=sigma))
    assert bm.bounds(star, bm.IRS(), alpha=alpha).constant_sharp == pytest.approx(leaves)
    assert regret < 0.5 * leaves * alpha * math.log(horizon)
