"""The delivery theorem: what it promises of protocols, its lemmas, and its bound, recomputed by brute force."""

import itertools
import math
from collections import Counter

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import gammaincc

import banditmesh as bm
from banditmesh import theory
from banditmesh.errors import InputError
from banditmesh.networks.csr import as_links
from banditmesh.theory import concentration, shared_covers
from banditmesh.theory.delivery import Flow, Shares, best_paths
from banditmesh.theory.domination import dominated
from banditmesh.theory.lonely import lonely_lower
from cases import examples


def gaussian(*means, sigma=0.5):
    return [bm.arms.Gaussian(mean, sigma) for mean in means]


# What is promised is delivered


class Restless(bm.Policy):
    """Pulls at random, and notes in every round what the agent has of each arm."""

    name = "restless"

    def __init__(self, agent):
        object.__setattr__(self, "notes", {})
        object.__setattr__(self, "rng", np.random.default_rng(agent))

    def choose(self, t, estimates, draw):
        self.notes[t] = list(estimates.count)
        # Runs of the same arm, so that some arms' counts stand still while others grow.
        return int(self.rng.integers(len(estimates)) if self.rng.random() < 0.3 else 0)


SURE = {
    "flooding": (bm.Flooding(2), None),
    "flooding, late": (bm.Flooding(3), bm.Faults(delay=2)),
    "absorbing": (bm.FwA(4), None),
    "growth": (bm.Flooding(3, emission=bm.Growth(0.5)), None),
    "growth with echoes, late": (bm.FwA(3, emission=bm.Growth(1.0, echoes=2)), bm.Faults(delay=1)),
    "tree": (bm.TreeAggregation(pause=3, emission=bm.Growth(0.5, echoes=1)), None),
    "tree, every pull, late": (bm.TreeAggregation(pause=2, emission=bm.EveryPull()), bm.Faults(delay=1)),
    "centralised": (bm.Centralised(), None),
}


@pytest.mark.parametrize("name", SURE)
def test_agents_have_the_share_that_is_promised(name):
    protocol, faults = SURE[name]
    network = nx.connected_watts_strogatz_graph(9, 2, 0.4, seed=3)
    problem = bm.Problem.random(network, n_arms=4, per_agent=2, seed=5)
    policies = [Restless(agent) for agent in range(9)]
    horizon = 60
    result = bm.simulate(problem, protocol, policy=policies, horizon=horizon, seed=0, faults=faults, engine="reference")
    delivery = Flow.under(problem, protocol, faults)
    assert delivery.sure
    assert delivery.promises
    # Own counts by round, from the notes of somebody who hears nobody else of its arms: a run without messages.
    alone = [Restless(agent) for agent in range(9)]
    bm.simulate(problem, bm.NoCooperation(), policy=alone, horizon=horizon, seed=0, engine="reference")
    seen = Counter()
    for arm, who in enumerate(problem.holders.values()):
        holders = np.array(who)
        share, delay, may = delivery.shares(arm, holders)
        place = [problem.arm_set(v).tolist().index(arm) for v in who]

        def own(j, t, arm=arm, who=who, place=place):
            # After round t is before round t + 1; the first two rounds pull each of the two arms once.
            return 0 if t < 1 else (1 if place[j] < t else 0) if t < 2 else alone[who[j]].notes[t + 1][place[j]]

        for k, v in enumerate(who):
            for t in range(3, horizon):
                has = policies[v].notes[t][place[k]]
                promised = sum(share[j, k] * own(j, t - delay[j, k]) for j in range(len(who)))
                assert has >= promised - 1e-9
                assert has <= sum(own(j, t - 1) for j in range(len(who)) if may[j, k])
                seen["heard"] += has > own(k, t - 1)
                seen["tight"] += has - promised < 1
    assert seen["heard"] > 0
    assert seen["tight"] > 0
    assert result.pulls.sum() == 9 * horizon


@pytest.mark.parametrize(
    "protocol, faults",
    [
        (bm.Gossip(3), None),
        (bm.Gossip(3, fanout=2), bm.Faults(loss=0.2)),
        (bm.ProbabilisticFlooding(3, stop=0.4), None),
        (bm.FwA(3), bm.Faults(loss=0.3)),
    ],
)
def test_messages_arrive_at_least_as_often_as_is_promised(protocol, faults):
    network = nx.path_graph(5)
    network.add_edge(1, 3)
    arms = gaussian(0.5, 0.4)
    problem = bm.Problem(network, [[0], [1], [0], [1], [0]], arms)
    result = bm.simulate(problem, protocol, horizon=800, seed=1, faults=faults, trace=True, engine="reference")
    delivery = Flow.under(problem, protocol, faults)
    assert not delivery.sure
    learned = Counter((event.origin, event.receiver) for event in result.trace if event.learned)
    share, _, _ = delivery.shares(0, np.array([0, 2, 4]))
    room = 3 * math.sqrt(0.25 / 800)
    for (j, origin), (k, receiver) in itertools.permutations(enumerate((0, 2, 4)), 2):
        # The last few messages may still be on their way.
        assert learned[origin, receiver] / 797 >= share[j, k] - room
        if isinstance(protocol, bm.FwA):
            assert share[j, k] > 0 or {origin, receiver} == {0, 4}


@pytest.mark.parametrize("seed", range(4))
def test_best_paths_are_the_best_of_all_paths(seed):
    rng = np.random.default_rng(seed)
    graph = nx.gnp_random_graph(6, 0.45, seed=seed)
    first, relay = rng.uniform(0.2, 1.0, 6), rng.uniform(0.0, 1.0, 6)
    for ttl in (1, 2, 4):
        chance, hops = best_paths(as_links(graph)[1], np.arange(6), first, relay, ttl)
        for s, e in itertools.permutations(range(6), 2):
            found = [
                first[s] * math.prod(relay[x] for x in path[1:-1])
                for path in nx.all_simple_paths(graph, s, e, cutoff=ttl)
            ]
            assert chance[s, e] == pytest.approx(max(found, default=0.0))
            assert (hops[s, e] > 0) == bool(found)


@pytest.mark.parametrize("loss", [0.0, 1.0])
def test_agents_may_have_what_hardly_ever_reaches_them(loss):
    """The chance of a message along the path is below the least number that a float can hold."""
    problem = bm.Problem(nx.path_graph(1200), [[0, 1], *([[2]] * 1198), [0, 1]], gaussian(0.5, 0.4, 0.3))
    delivery = Flow.under(problem, bm.ProbabilisticFlooding(1199, stop=0.5), bm.Faults(loss=loss))
    share, _, may = delivery.shares(0, np.array([0, 1199]))
    assert share.tolist() == [[1.0, 0.0], [0.0, 1.0]]
    assert may.tolist() == [[True, loss < 1], [loss < 1, True]]
    near = Flow.under(problem, bm.ProbabilisticFlooding(1198, stop=0.5)).shares(0, np.array([0, 1199]))
    assert near.may.tolist() == [[True, False], [False, True]]


def test_without_a_promise_an_agent_has_its_own_pulls():
    problem = bm.Problem.random(nx.path_graph(4), n_arms=3, per_agent=2, seed=0)
    alone = bm.bounds(problem, bm.NoCooperation(), alpha=2.5)
    for protocol, faults in (
        (bm.FwA(2, emission=bm.Contested()), None),
        (bm.Flooding(2), bm.Faults(jitter=1.0)),
        (bm.Flooding(2, emission=bm.Growth(0.5)), bm.Faults(loss=0.1)),
        (bm.IRS(), bm.Faults(outages=bm.Outages(0.1, 0.1))),
    ):
        bounds = bm.bounds(problem, protocol, alpha=2.5, faults=faults)
        assert bounds.theorem == "delivery theorem: own pulls alone"
        assert bounds.counted_by in ("agents alone", "largest gaps")
        assert bounds.per_arm["sharp"].tolist() == pytest.approx(alone.per_arm["weighted"].tolist())
        # Messages that are late without limit leave the constant of the finite bound.
        scale = (math.sqrt(2.5) + math.sqrt(2.0) * bounds.sigma) ** 2 if faults and faults.jitter else 2.5
        assert bounds.constant_sharp == pytest.approx(scale * bounds.per_arm["sharp"].sum())


@pytest.mark.parametrize(
    "faults",
    [
        bm.Faults(corruption=bm.Corruption("zero", 0.1)),
        bm.Faults(link_cap=3),
        bm.Faults(outages=bm.Outages(0.1, 0.1, memory=False)),
    ],
)
def test_faults_that_no_theorem_allows_for_are_refused(faults):
    with pytest.raises(InputError, match="bounds allow for losses, delays"):
        bm.bounds(bm.Problem.paper("er"), bm.Flooding(4), faults=faults)


def test_losses_leave_less_of_the_bound_and_no_clique_theorem():
    problem = bm.Problem.random(nx.complete_graph(6), n_arms=4, per_agent=3, seed=1)
    sound, lossy = (bm.bounds(problem, bm.IRS(), faults=faults) for faults in (None, bm.Faults(loss=0.25)))
    assert math.isnan(lossy.upper_published)
    assert lossy.theorem == "delivery theorem: a share arrives by chance"
    assert sound.constant_sharp < lossy.constant_sharp
    assert lossy.per_arm["weighted"].sum() <= sound.per_arm["weighted"].sum() / 0.75 * (1 + 1e-9)
    assert bm.bounds(problem, bm.IRS(), faults=bm.Faults()).upper_sharp == sound.upper_sharp
    # What is lost is not relayed, and who pulls less often sends less: the count is a bound then.
    assert sound.traffic.exact
    assert not lossy.traffic.exact
    assert not bm.bounds(problem, bm.IRS(), every=2).traffic.exact
    assert lossy.traffic.within_ttl == sound.traffic.within_ttl


# The lemmas


@given(st.integers(0, 100_000), st.integers(1, 6), st.integers(1, 5), st.floats(0.2, 1.0), st.integers(0, 9))
@settings(max_examples=examples(150))
def test_members_of_a_group_pull_no_more_than_the_lemma_allows(seed, n, most_delay, kappa, slack):
    """Lemma A* of docs/theory/delivery.md, for any pulls and any deliveries that keep the promise."""
    rng = np.random.default_rng(seed)
    horizon = 70
    pulls = rng.random((n, horizon + 1)) < rng.uniform(0.05, 1.0)
    pulls[:, 0] = False
    counts = np.cumsum(pulls, axis=1)
    needed = np.sort(rng.uniform(0.0, 25.0, n))

    def before(t):
        return counts[:, max(t, 0)].sum()

    spent = []
    for k in range(n):
        # What a member has never falls, holds its own pulls, and the promised share of everybody's.
        has, last = 0.0, 0
        for t in range(1, horizon + 1):
            promised = kappa * (before(t - most_delay) - slack)
            has = max(has, counts[k, t - 1], promised + rng.uniform(0.0, 2.0) * (rng.random() < 0.3))
            last = t if has < needed[k] else last
        spent.append(counts[k, last])
    for k in range(n):
        late = sum(min(most_delay, needed[j] + 1) for j in range(k + 1))
        assert sum(spent[: k + 1]) <= needed[k] / kappa + slack + late + 1e-9


def test_prefixes_of_several_origins_stray_as_seldom_as_the_gamma_law_says():
    rng = np.random.default_rng(2)
    trials, steps, tilt = 4000, 400, 0.35
    for n_origins in (1, 3, 6):
        highest = np.zeros(trials)
        for _ in range(n_origins):
            walk = tilt * rng.standard_normal((trials, steps)).cumsum(axis=1) - tilt**2 / 2 * np.arange(1, steps + 1)
            highest += np.maximum(walk.max(axis=1), 0.0)
        for place in (n_origins, 2.0 * n_origins, 6.0):
            measured, bound = (highest >= place).mean(), gammaincc(n_origins, place)
            assert measured <= bound + 3 * math.sqrt(bound / trials)
        # It binds: the law of the highest point of a walk is nearly exponential.
        assert (highest >= n_origins).mean() > 0.2 * gammaincc(n_origins, n_origins)


def test_missed_chances_are_those_of_lemma_b():
    rounds = np.array([2.0, 7.0, 50.0, 4000.0])
    for n_origins in (1, 4):
        found = concentration.missed(3.0, 0.7, 6, n_origins, rounds)
        for t, value in zip(rounds, found, strict=True):
            best = min(
                (1 + math.log(6 * t) / -math.log(beta)) * gammaincc(n_origins, 3.0 * beta / 0.98 * math.log(t))
                for beta in np.linspace(0.02, 0.998, 2000)
            )
            assert min(best, 1.0) * (1 - 1e-9) <= value <= min(best, 1.0) * 1.02
    later = np.geomspace(1000, 1e9, 300)
    for n_origins in (1, 2, 9, 40):
        assert (np.diff(concentration.missed(2.2, 1.0, 40, n_origins, later)) <= 0).all()


def test_waiting_for_a_share_is_counted_by_chernoff():
    rng = np.random.default_rng(0)
    share, kept, receivers, trials = 0.5, 0.3, 3, 3000
    arrived = (rng.random((trials, receivers, 400)) < share).cumsum(axis=2)
    short = (arrived < kept * np.arange(1, 401)).any(axis=1)
    last = np.where(short.any(axis=1), 400 - short[:, ::-1].argmax(axis=1), 0)
    assert 0.5 < last.mean() < concentration.shortfall(share, kept, receivers) < 40
    rate = kept * math.log(kept / share) + (1 - kept) * math.log((1 - kept) / (1 - share))
    series = sum(min(1.0, receivers * math.exp(-rate * n)) for n in range(1, 2000))
    assert concentration.shortfall(share, kept, receivers) == pytest.approx(series)


@pytest.mark.parametrize("share", [1e-6, 1e-15, 1e-18, 1e-90])
def test_waiting_for_a_tiny_share_takes_as_many_pulls_more(share):
    # kl is then the share itself times k log k + 1 - k, for k = 1/2 here.
    rate = 0.5 - 0.5 * math.log(2.0)
    expected = (math.log(3.0) + 1.0) / rate
    assert concentration.shortfall(share, share / 2, 3) * share == pytest.approx(expected, rel=1e-4)


def test_waiting_for_next_to_nothing_takes_long():
    for share in np.geomspace(1e-8, 1e-100, 30).tolist():
        for part in (0.02, 0.5, 0.98):
            # Of a small share s the rate is s times this, but for a term of the order of s squared.
            rate = share * (1 - part + part * math.log(part))
            assert concentration.shortfall(share, part * share, 1) == pytest.approx(1 / rate, rel=1e-6)
    assert concentration.shortfall(1e-320, 1e-321, 2) == concentration.shortfall(5e-324, 0.0, 1) == math.inf


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("n_agents", "loss"), [(9, 0.99), (10, 0.99), (6, 0.999), (3, 1 - 1e-14), (109, 0.999)])
def test_messages_that_hardly_ever_arrive_are_not_waited_for(n_agents, loss):
    sets = [[0, 1], *[[2]] * (n_agents - 2), [0, 1]]
    problem = bm.Problem(nx.path_graph(n_agents), sets, gaussian(1.0, 0.0, 0.0))
    bounds = bm.bounds(problem, bm.Flooding(n_agents), alpha=1.0, faults=bm.Faults(loss=loss))
    alone = bm.bounds(problem, bm.NoCooperation(), alpha=1.0)
    assert alone.upper_sharp <= bounds.upper_sharp < 1.5 * alone.upper_sharp
    assert bounds.lower_gap_free < bounds.upper_gap_free <= bounds.trivial
    assert bounds.constant_sharp == pytest.approx(2.0)


# The bound


def by_hand(bounds, problem, delivery, horizon):
    """The theorem of docs/theory/independent.md, term by term, for all caps that were tried and every x."""
    alpha, sigma, log = bounds.alpha, bounds.sigma, math.log(horizon)
    largest = np.nanmax(problem.gaps, axis=1)
    luck = np.zeros(problem.n_agents)
    for v in range(problem.n_agents):
        best = int(np.nanargmin(problem.gaps[v]))
        holders = np.flatnonzero(problem.gaps[:, best] >= 0)
        heard = int(delivery.shares(best, holders).may[:, holders.tolist().index(v)].sum())
        rounds = np.arange(len(problem.arm_set(v)) + 1, horizon + 1, dtype=float)
        luck[v] = concentration.missed(alpha, sigma, heard, heard if delivery.prefix else 1, rounds).sum()
    found = [horizon * largest.sum()]
    for part in bounds.sharp.parts:
        # Every agent and arm whose gap is above its cap is there, once.
        above = np.maximum(np.nan_to_num(problem.gaps) - part.caps[:, None], 0.0)
        assert np.sort(part.net) == pytest.approx(np.sort(above[above > 0]))
        for x in np.geomspace(0.02, 6.0, 60):
            g = alpha * (1 + x) ** 2 * log
            rows = zip(part.net, part.gaps, part.delays, part.origins, strict=True)
            spent = sum(
                net * (min(d, g / gap**2 + 1) + 1 + horizon * gammaincc(n, alpha * x**2 * log / (2 * sigma**2)))
                for net, gap, d, n in rows
            )
            beyond = np.maximum(largest - part.caps, 0.0) @ luck
            found.append(horizon * part.caps.sum() + g * part.weighted + part.shortfall + spent + beyond)
    return min(found)


def needed_by_hand(problem, delivery, caps):
    """The integral of what is needed if nothing decides by chance: over slices between all gaps and caps."""
    total = 0.0
    for arm in range(problem.n_arms):
        holders = np.flatnonzero(problem.gaps[:, arm] > 0)
        gap = problem.gaps[holders, arm]
        share = delivery.shares(arm, holders).share
        steps = np.unique([0.0, *gap, *caps])
        for low, high in itertools.pairwise(steps.tolist()):
            inside = [v for v in range(len(holders)) if caps[holders[v]] < (low + high) / 2 <= gap[v]]
            best = 0.0
            for size in range(len(inside) + 1):
                for some in itertools.combinations(inside, size):
                    if not any(share[v, w] > 0 for v, w in itertools.permutations(some, 2)):
                        best = max(best, sum(gap[v] ** -2.0 for v in some))
            total += (high - low) * best
    return total


@pytest.mark.parametrize(
    "protocol",
    [
        bm.NoCooperation(),
        bm.IRS(),
        bm.FwA(3),
        bm.Gossip(2),
        bm.ProbabilisticFlooding(2, stop=0.1),
        bm.Flooding(2, emission=bm.Growth(0.25)),
        bm.TreeAggregation(pause=2),
        bm.Centralised(),
        bm.IRS(emission=bm.Contested()),
    ],
    ids=lambda protocol: f"{protocol.name}-{protocol.emission.name}",
)
def test_sharp_bound_is_the_theorem_term_by_term(protocol):
    problem = bm.Problem(nx.path_graph(4), [[0, 1], [0, 1, 2], [1, 2], [0, 2, 1]], gaussian(1.0, 0.6, 0.1, sigma=0.4))
    delivery = Flow.under(problem, protocol)
    bounds = bm.bounds(problem, protocol, alpha=1.2, horizon=900)
    for horizon in (2, 60, 900):
        assert bounds.sharp.at(horizon) == pytest.approx(by_hand(bounds, problem, delivery, horizon), rel=1e-6)
    whole = delivery.sure and delivery.held_back == 1.0
    for part in bounds.sharp.parts:
        if whole and part.counted_by != "clique covers":
            exact = needed_by_hand(problem, delivery, part.caps)
            same = np.allclose(part.caps, np.minimum(part.caps.max(), np.nanmax(problem.gaps, axis=1)))
            # With caps that differ more agents may be counted than there are.
            assert part.weighted == pytest.approx(exact) if same else part.weighted >= exact * (1 - 1e-9)
    alone = isinstance(protocol, bm.NoCooperation) or not delivery.promises
    counted = {part.counted_by for part in bounds.sharp.parts}
    assert counted == ({"agents alone"} if alone else {"independent sets", "clique covers"})
    assert bounds.sharp.at(900) <= bounds.upper_corrected
    assert (np.diff(bounds.sharp.at(np.array([1, 5, 50, 500, 5000]))) >= 0).all()


@pytest.mark.parametrize(
    "protocol, faults",
    [
        (bm.NoCooperation(), None),
        (bm.IRS(), None),
        (bm.Flooding(2), bm.Faults(loss=0.2)),
        (bm.Gossip(2), None),
        (bm.ProbabilisticFlooding(2, stop=0.3), None),
        (bm.Flooding(2, emission=bm.Growth(0.5)), None),
        (bm.TreeAggregation(pause=2), None),
        (bm.IRS(emission=bm.Contested()), None),
    ],
    ids=lambda value: getattr(value, "name", "faults") if value else "sound",
)
def test_sharp_bound_holds_where_it_is_tightest(protocol, faults):
    problem = bm.Problem(nx.path_graph(3), [[0, 1]] * 3, gaussian(1.0, 0.0, sigma=0.5))
    for alpha in (0.6, 4.0):
        result = bm.simulate(
            problem,
            protocol,
            policy=bm.UCB(alpha),
            horizon=2000,
            replicates=10,
            seed=0,
            faults=faults,
            record_every=100,
        )
        bounds = bm.bounds(problem, protocol, alpha=alpha, horizon=2000, faults=faults)
        ratio = result.regret.mean(axis=0) / bounds.sharp.at(result.rounds)
        assert ratio.max() < 1.0
        if alpha == 4.0:
            assert ratio.max() > 0.1


def test_sharp_bound_holds_at_every_horizon():
    arms = {name: bm.arms.Gaussian(mean, 1.0) for name, mean in (("a", 0.1), ("b", 0.0), ("c", 0.0))}
    problem = bm.Problem(nx.path_graph(2), [["a", "b"], ["c"]], arms)
    sharp = bm.bounds(problem, bm.NoCooperation(), alpha=0.05, horizon=1000).sharp
    delivery = Flow.under(problem, bm.NoCooperation())
    lower = [lonely_lower(problem, delivery, 0.05, horizon) for horizon in (10**12, 10**18)]
    assert lower[0] == pytest.approx(7.79e8, rel=1e-2)
    assert (sharp.at([10**12, 10**18]) >= lower).all()


def test_a_bound_that_says_nothing_says_so():
    problem = bm.Problem(nx.path_graph(3), [[0, 1]] * 3, gaussian(1.0, 0.9, sigma=1.0))
    for horizon, holds in ((100, False), (10**6, True)):
        bounds = bm.bounds(problem, bm.IRS(), horizon=horizon)
        [told] = [one for one in bounds.conditions if one.name == "sharp at T"]
        assert told.holds == holds
        assert (bounds.upper_sharp < horizon * 0.3 * (1 - 1e-9)) == holds


def test_pulls_on_a_schedule_keep_to_the_same_bound():
    problem = bm.Problem(nx.path_graph(3), [[0, 1]] * 3, gaussian(1.0, 0.0, sigma=0.5))
    every = [1, 3, 2]
    bounds = bm.bounds(problem, bm.IRS(), alpha=4.0, horizon=2000, every=every)
    result = bm.simulate(
        problem, bm.IRS(), policy=bm.UCB(4.0), horizon=2000, replicates=10, seed=0, every=every, record_every=100
    )
    assert (result.regret.mean(axis=0) < bounds.sharp.at(result.rounds)).all()
    assert bounds.estimate().at(2000) == pytest.approx(result.regret[:, -1].mean(), rel=0.2)


# Groups, and who pays next to nothing


def partitions(items):
    if not items:
        yield []
        return
    first, *rest = items
    for parts in partitions(rest):
        yield [[first], *parts]
        for place, part in enumerate(parts):
            yield [*parts[:place], [first, *part], *parts[place + 1 :]]


@pytest.mark.parametrize("seed", range(6))
def test_groups_are_covers_and_near_the_cheapest(seed):
    rng = np.random.default_rng(seed)
    n = 6
    share = rng.choice([0.0, 0.3, 0.8, 1.0], (n, n))
    share = np.minimum(share, share.T)
    np.fill_diagonal(share, 1.0)
    gaps = rng.uniform(0.05, 1.0, n)
    shares = Shares(share, np.ones((n, n), dtype=np.int64), share > 0)
    groups = shared_covers.cover(gaps, shares, "exact", math.inf)
    assert sorted(itertools.chain.from_iterable(group.places.tolist() for group in groups)) == list(range(n))

    def cost(part):
        least = share[np.ix_(part, part)].min()
        return theory.clique_cost(gaps[part].tolist()) / least if least > 0 else math.inf

    cheapest = min(sum(cost(part) for part in parts) for parts in partitions(list(range(n))))
    assert shared_covers.total(groups) == pytest.approx(sum(cost(group.places.tolist()) for group in groups))
    assert cheapest <= shared_covers.total(groups) * (1 + 1e-12) <= 1.5 * cheapest


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    "protocol", [bm.IRS(), bm.FwA(3), bm.Flooding(2, emission=bm.Growth(0.5)), bm.TreeAggregation()]
)
def test_dominated_agents_are_those_of_the_definition(protocol, seed):
    problem = bm.Problem.random(nx.gnp_random_graph(8, 0.3, seed=seed), n_arms=5, per_agent=3, seed=seed)
    delivery = Flow.under(problem, protocol)
    for arm in theory.arm_gaps(problem):
        holders = arm.holders.tolist()
        share, _, may = delivery.shares(arm.index, arm.holders)
        gap = dict(zip(arm.suboptimal.tolist(), arm.gaps.tolist(), strict=True))
        found = dominated(arm, delivery)
        for v, answer in zip(arm.suboptimal.tolist(), found.tolist(), strict=True):
            k = holders.index(v)
            expected = any(
                gap.get(u, 0.0) < gap[v] * math.sqrt(min(share[w, k] for w in range(len(holders)) if may[w, i]))
                for i, u in enumerate(holders)
            )
            assert answer == expected


def test_nobody_is_dominated_by_chance():
    problem = bm.Problem(nx.path_graph(2), [[0, 2], [1, 2]], gaussian(1.0, 0.8, 0.5))
    arm = theory.arm_gaps(problem)[2]
    assert dominated(arm, Flow.under(problem, bm.IRS())).tolist() == [True, False]
    assert not dominated(arm, Flow.under(problem, bm.IRS(), bm.Faults(loss=0.5))).any()
    assert not dominated(arm, Flow.under(problem, bm.NoCooperation())).any()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("protocol", [bm.Flooding(6), bm.Centralised(), bm.Flooding(9)])
def test_if_everybody_hears_everybody_the_constants_meet(protocol, seed):
    network = nx.disjoint_union(nx.path_graph(4), nx.cycle_graph(5))
    problem = bm.Problem.random(network, n_arms=7, per_agent=3, seed=seed)
    bounds = bm.bounds(problem, protocol, alpha=2.5)
    # The arms are Gaussian with sigma 1: alpha / 2 times the lower bound, and equal to it as alpha falls to 2.
    assert bounds.constant_sharp == pytest.approx(2.5 / 2 * bounds.lower_corrected)
    assert bounds.constant_sharp <= bounds.constant_tightened / 4 * (1 + 1e-9)


def test_a_tie_teaches_those_who_hear_all_that_the_tied_agent_hears():
    tied = bm.Problem(nx.path_graph(2), [[0, 1], [1, 2]], gaussian(1.0, 0.5, 0.5))
    bounds = bm.bounds(tied, bm.IRS())
    assert bounds.per_arm["tightened"][1] == pytest.approx(2.0)
    assert bounds.per_arm["sharp"].tolist() == [0.0, 0.0, 0.0]
    # A third agent, whom the tied one hears and the first does not, may be the one that pulls the arm.
    far = bm.Problem(nx.path_graph(3), [[0, 1], [1, 2], [0, 1]], gaussian(1.0, 0.5, 0.5))
    assert bm.bounds(far, bm.IRS()).per_arm["sharp"][1] == pytest.approx(4.0)


def test_the_papers_er_network_at_its_diameter():
    bounds = bm.bounds(bm.Problem.paper("er", seed=0), bm.Flooding(8))
    assert (bounds.constant, bounds.constant_sharp, bounds.lower_corrected) == pytest.approx(
        (14299.3, 508.8, 339.2), abs=0.1
    )


def hears(problem, graph, protocol, arm):
    """By definition: who hears whom on an arm, from all paths that a message may take."""
    holders = set(problem.holders[arm])
    free = graph
    pairs = {(v, v) for v in holders}
    for v, w in itertools.permutations(sorted(holders), 2):
        if isinstance(protocol, bm.FwA):
            free = graph.subgraph((set(graph) - holders) | {v, w})
        everyone = isinstance(protocol, bm.Centralised)
        if everyone or (nx.has_path(free, v, w) and nx.shortest_path_length(free, v, w) <= protocol.most_hops):
            pairs.add((v, w))
    return pairs


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    "protocol", [bm.IRS(), bm.Flooding(2), bm.FwA(3), bm.Centralised()], ids=lambda protocol: protocol.name
)
def test_every_constant_by_brute_force(protocol, seed):
    graph = nx.gnp_random_graph(7, 0.25, seed=seed)
    problem = bm.Problem.random(graph, n_arms=5, per_agent=3, seed=seed)
    alpha = 2.6
    bounds = bm.bounds(problem, protocol, alpha=alpha)
    best = {v: max(problem.means[problem.arm_set(v)]) for v in graph}
    theta = {}
    sums = Counter()
    for index, arm in enumerate(problem.arms):
        joined = hears(problem, graph, protocol, arm)
        gap = {v: best[v] - problem.means[index] for v in problem.holders[arm]}
        pays = [v for v in gap if gap[v] > 0]
        # Means are drawn from a continuous law, so a best arm is an only one.
        champions = [v for v in gap if gap[v] == 0]
        learns = {v for v in pays if any((w, v) in joined for w in champions)}
        of = {u: {w for w in gap if (w, u) in joined} for u in gap}
        little = learns | {v for v in pays if any(gap[u] < gap[v] and of[u] <= of[v] for u in gap)}

        def cheapest(agents, cost, joined=joined):
            whole = [
                sum(cost(part) for part in parts)
                for parts in partitions(agents)
                if all((v, w) in joined for part in parts for v, w in itertools.permutations(part, 2))
            ]
            return min(whole)

        def spent(part, gap=gap):
            return 2 / min(gap[v] for v in part) - 1 / max(gap[v] for v in part)

        theta[arm] = cheapest(pays, lambda part: 1)
        sums["weighted"] += cheapest(pays, spent)
        sums["tightened"] += cheapest([v for v in pays if v not in learns], spent)
        rest = [v for v in pays if v not in little]
        for low, high in itertools.pairwise(sorted({0.0, *(gap[v] for v in rest)})):
            inside = [v for v in rest if gap[v] >= high]
            alone = [
                sum(gap[v] ** -2.0 for v in some)
                for size in range(len(inside) + 1)
                for some in itertools.combinations(inside, size)
                if not any(pair in joined for pair in itertools.permutations(some, 2))
            ]
            sums["sharp"] += (high - low) * max(alone)
        sums["delta"] += theta[arm] / min((gap[v] for v in pays), default=math.inf)
        parts = [set(problem.agents)] if isinstance(protocol, bm.Centralised) else nx.connected_components(graph)
        for part in parts:
            inside = [gap[v] for v in gap if v in part]
            if inside and min(inside) > 0:
                sums["lower"] += 2 / min(inside)
    assert bounds.per_arm["theta"].tolist() == list(theta.values())
    for column in ("weighted", "tightened", "sharp"):
        assert bounds.per_arm[column].sum() == pytest.approx(sums[column])
    assert bounds.delta == pytest.approx(sums["delta"])
    assert bounds.constant == pytest.approx(4 * alpha * sums["weighted"])
    assert bounds.constant_theta == pytest.approx(8 * alpha * sums["delta"])
    assert bounds.constant_tightened == pytest.approx(4 * alpha * sums["tightened"])
    assert bounds.constant_sharp == pytest.approx(alpha * sums["sharp"])
    assert bounds.lower_corrected == pytest.approx(sums["lower"])
    if isinstance(protocol, bm.Centralised):
        assert sums["sharp"] == pytest.approx(sums["lower"] / 2)
