"""Plans: what is worked out once for all replicates, at sizes around a machine word and shared by threads."""

import functools
import itertools

import networkx as nx
import numpy as np
import pytest

import banditmesh as bm
from banditmesh.sim.compiled import plans, replicates, spreading
from banditmesh.sim.compiled.plans import Rooms, part_bounds, parts_for
from banditmesh.sim.compiled.walking import Walk


def both(problem, protocol, **settings):
    """What the compiled engine and the reference give."""
    return [bm.simulate(problem, protocol, seed=0, engine=name, **settings) for name in ("compiled", "reference")]


def regular(n_agents, n_arms=5, per_agent=2, degree=4):
    graph = nx.random_regular_graph(degree, n_agents, seed=0)
    return bm.Problem.random(graph, n_arms=n_arms, per_agent=per_agent, seed=0)


@pytest.mark.parametrize("n_agents", [63, 64, 65, 128, 1024])
@pytest.mark.parametrize("protocol", [bm.FwA(3), bm.Flooding(2)], ids=lambda protocol: protocol.name)
def test_plans_of_networks_around_whole_words_give_what_the_reference_gives(n_agents, protocol):
    compiled, reference = both(regular(n_agents), protocol, horizon=4)
    assert compiled == reference


@pytest.mark.parametrize("n_agents", [63, 64, 65, 128, pytest.param(1024, marks=pytest.mark.slow)])
def test_dynamic_networks_around_whole_words_give_what_the_reference_gives(n_agents, rules):
    # So dense that neighbours are sets. By the published rules births come first.
    graph = nx.random_regular_graph(2 * (n_agents // 64 + 1), n_agents, seed=0)
    network = bm.networks.EdgeMarkovian(graph, 1.0 / n_agents, 0.2)
    problem = bm.Problem.random(network, n_arms=5, per_agent=2, seed=0)
    compiled, reference = both(problem, bm.FwA(2), horizon=3, rules=rules)
    assert compiled == reference


@pytest.mark.parametrize("n_arms", [64, 65, 130])
def test_more_arms_than_a_word_has_bits_are_planned_in_several_passes(n_arms, monkeypatch):
    monkeypatch.setattr(plans, "_SMALL", 1)
    problem = regular(20, n_arms, per_agent=40)
    compiled, reference = both(problem, bm.FwA(4), horizon=42)
    assert compiled == reference


@pytest.mark.parametrize(
    ("graph", "ttl", "is_planned"),
    [
        (nx.path_graph(4), 9, True),
        (nx.cycle_graph(12), 3, True),
        (nx.star_graph(9), 2, True),
        (nx.gnp_random_graph(12, 0.4, seed=1), 3, False),
    ],
    ids=["path", "cycle", "star", "dense"],
)
def test_absorption_by_the_published_rules_is_planned_where_no_agent_forgets_too_early(
    graph, ttl, is_planned, monkeypatch
):
    walked = []
    simulate = Walk._simulate
    monkeypatch.setattr(Walk, "_simulate", lambda self, *rest: walked.append(self) or simulate(self, *rest))
    problem = bm.Problem.random(graph, n_arms=4, per_agent=2, seed=0)
    compiled, reference = both(problem, bm.FwA(ttl), horizon=40, rules="published")
    assert compiled == reference
    assert bool(walked) != is_planned


@pytest.mark.parametrize(("protocol", "law"), [("flooding(3)", bm.arms.Gaussian), ("fwa(2)", bm.arms.Bernoulli)])
def test_agents_that_forget_what_still_travels_give_what_the_reference_gives(protocol, law):
    # So many rounds that rings go round.
    network = bm.networks.EdgeMarkovian(nx.gnp_random_graph(65, 0.15, seed=0), 0.03, 0.2)
    laws = [law(0.2 * arm, *[1.0] * (law is bm.arms.Gaussian)) for arm in range(1, 5)]
    problem = bm.Problem(network, bm.arms.uniform_sets(65, 4, 2, seed=0), laws)
    compiled, reference = both(problem, protocol, horizon=9, rules="published")
    assert compiled == reference


class Tires(bm.Protocol):
    """Whoever has it last does not relay it, and by the published rules does not use it either."""

    name = "tires"

    @staticmethod
    def relay(has_arm, ttl, degree, u, parameter):
        return bm.STOP if ttl <= 1 else bm.RELAY


class HubsAbsorb(bm.Protocol):
    """A rule that asks for the degree."""

    name = "hubs-absorb"

    @staticmethod
    def relay(has_arm, ttl, degree, u, parameter):
        return bm.ABSORB if degree > 4 and has_arm else bm.RELAY


@pytest.mark.parametrize("protocol", [Tires(3), HubsAbsorb(3)], ids=lambda protocol: protocol.name)
def test_plans_of_rules_whose_learners_meet_several_decisions_keep_how_copies_end(protocol, rules):
    problem = bm.Problem.paper("ba", seed=0)
    compiled, reference = both(problem, protocol, horizon=21, rules=rules)
    assert compiled.traffic.keys() == reference.traffic.keys()
    assert compiled == reference


@functools.cache
def on_the_papers_network(protocol):
    """A run that one thread makes alone, which is that of the reference; the rest of its settings."""
    problem = bm.Problem.paper("er", seed=0)
    every = [1 + v % 2 for v in range(100)]
    settings = {"horizon": 40, "replicates": 1, "every": every, "record_every": 3, "link_traffic": True}
    alone, reference = both(problem, protocol, **settings)
    assert alone == reference
    return problem, alone, settings


@pytest.mark.parametrize("sums", ["near", "far", "far, by rank"])
@pytest.mark.parametrize(
    "protocol",
    [bm.FwA(4), bm.Flooding(3, emission=bm.Growth(0.3, echoes=1)), HubsAbsorb(3)],
    ids=["fwa", "growth", "hubs"],
)
def test_threads_that_share_a_replicate_change_nothing(protocol, sums, monkeypatch):
    problem, alone, settings = on_the_papers_network(protocol)
    monkeypatch.setattr(plans, "SHARED_FROM", 1)
    monkeypatch.setattr(plans, "WIDE_BUDGET", 0 if "rank" in sums else plans.WIDE_BUDGET)
    if "far" in sums:
        # So few additions wait at a time that they are made in the middle of a message, and some at the end.
        monkeypatch.setattr(spreading, "NEAR", 0)
        monkeypatch.setattr(spreading, "WAITING", 7)
    for threads in (1, 2, 3):
        assert bm.simulate(problem, protocol, seed=0, engine="compiled", threads=threads, **settings) == alone


@pytest.mark.parametrize(
    ("rules", "record_every"),
    [
        ("sound", 7),
        ("published", 1),
        *(pytest.param(*one, marks=pytest.mark.slow) for one in (("sound", 1), ("published", 7))),
    ],
)
@pytest.mark.parametrize(
    ("protocol", "of_agents"),
    [
        (bm.FwA(4), False),
        (HubsAbsorb(3), False),
        (bm.IRS(), True),
        (bm.Flooding(6, emission=bm.Contested()), True),
        (bm.Flooding(3, emission=bm.Growth(0.3)), True),
    ],
    ids=["fwa", "hubs", "irs", "contested", "growth"],
)
def test_links_of_planned_messages_are_counted_as_the_reference_counts_them(
    protocol, of_agents, record_every, rules, monkeypatch
):
    found = []
    find = plans._ways
    monkeypatch.setattr(plans, "_ways", lambda *given: found.append(find(*given)) or found[-1])
    # Chunks end anywhere in a record, and what is under way at the horizon is not sent.
    monkeypatch.setattr(replicates, "MADE_BUDGET", 4 * 100 * 4)
    problem = bm.Problem.paper("ba", seed=0)
    compiled, reference = both(problem, protocol, horizon=24, rules=rules, record_every=record_every, link_traffic=True)
    assert compiled == reference
    assert np.array_equal(compiled.link_traffic.sum(axis=(1, 2)), compiled.transmissions[:, -1])
    # By the published rules FwA is walked, copy by copy, and needs no plan.
    assert {ways.of_agents for ways in found} == ({of_agents} if found else set())
    assert found or (rules == "published" and not of_agents)


def test_long_and_short_lists_of_learners_of_sums_far_apart_keep_their_order(monkeypatch):
    # A hub tells sixty agents at once, which tell their neighbours on a path.
    graph = nx.compose(nx.star_graph(60), nx.path_graph(range(60, 90)))
    problem = bm.Problem.random(graph, n_arms=3, per_agent=2, seed=0)
    monkeypatch.setattr(spreading, "NEAR", 0)
    monkeypatch.setattr(spreading, "WAITING", 7)
    compiled, reference = both(problem, bm.Flooding(4), horizon=40)
    assert compiled == reference


def test_threads_are_left_to_replicates_first(monkeypatch):
    class Run:
        replicates = 1
        problem = regular(64)
        memory = bm.Everything()

    assert parts_for(Run, 8) == 1
    monkeypatch.setattr(plans, "SHARED_FROM", 64)
    assert parts_for(Run, 8) == 8
    Run.replicates = 3
    assert [parts_for(Run, threads) for threads in (1, 3, 6, 8)] == [1, 1, 2, 2]


@pytest.mark.parametrize(("n_agents", "n_parts"), [(1, 1), (2, 3), (10, 3), (64, 64), (101, 7)])
def test_parts_cover_all_agents_and_differ_by_one_at_most(n_agents, n_parts):
    bounds = part_bounds(n_agents, n_parts)
    assert (bounds[0], bounds[-1], len(bounds)) == (0, n_agents, n_parts + 1)
    assert set(np.diff(bounds)) <= {n_agents // n_parts, n_agents // n_parts + 1}
    part_of = np.arange(n_agents) * n_parts // n_agents
    assert all((part_of[begin:end] == part).all() for part, (begin, end) in enumerate(itertools.pairwise(bounds)))


def test_rooms_are_handed_out_until_none_is_left():
    rooms = Rooms(20)
    assert [rooms.take(7).tolist() for _ in range(4)] == [[0, 8], [8, 16], [16, 20], [20, 20]]


def test_a_thread_that_fails_is_reported_and_ends_the_others(monkeypatch):
    monkeypatch.setattr(plans, "SHARED_FROM", 1)
    problem = regular(64)
    settings = {"horizon": 6, "seed": 0, "engine": "compiled", "threads": 3}
    bm.simulate(problem, bm.FwA(2), **settings)
    monkeypatch.setattr(spreading, "sum_in_order", lambda numbers: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        bm.simulate(problem, bm.FwA(2), **settings)
