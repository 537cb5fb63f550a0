"""Gaps, graph powers and non-blocking powers."""

import networkx as nx
import numpy as np
import pytest

import banditmesh as bm
from banditmesh import theory
from banditmesh.errors import ArmError, InputError, NetworkError


def laws(*means):
    return [bm.arms.Gaussian(mean, 1.0) for mean in means]


def test_gaps_are_seen_from_each_agent():
    problem = bm.Problem(nx.path_graph(3), [[0, 1], [1, 2], [0, 2]], laws(0.25, 0.5, 1.0))
    low, middle, high = theory.arm_gaps(problem)
    assert low.suboptimal.tolist() == [0, 2]
    assert low.gaps.tolist() == [0.25, 0.75]
    assert low.gap_min == 0.25
    assert middle.suboptimal.tolist() == [1]
    assert middle.champions.tolist() == [0]
    assert high.suboptimal.size == 0
    assert high.gap_min == np.inf


def test_an_agent_with_two_best_arms_is_suboptimal_and_champion_for_neither():
    problem = bm.Problem(nx.empty_graph(1), [[0, 1, 2]], laws(0.5, 0.5, 0.25))
    first, second, third = theory.arm_gaps(problem)
    assert first.suboptimal.size == second.suboptimal.size == 0
    assert first.champions.size == second.champions.size == 0
    assert third.gaps.tolist() == [0.25]


@pytest.mark.parametrize("ttl", [0, 1, 2, 3, 7])
def test_power_joins_agents_within_ttl_hops(ttl):
    for graph in (nx.path_graph(7), nx.star_graph(5), nx.gnp_random_graph(40, 0.06, seed=3), nx.empty_graph(4)):
        power = theory.graph_power(graph, ttl)
        lengths = dict(nx.all_pairs_shortest_path_length(graph, cutoff=ttl))
        assert list(power) == list(graph)
        assert {frozenset(edge) for edge in power.edges} == {
            frozenset((v, w)) for v in graph for w in lengths[v] if v != w
        }


def test_power_of_the_paper_is_that_of_networkx():
    graph = bm.networks.paper("er")
    assert nx.utils.graphs_equal(nx.power(graph, 4), nx.Graph(theory.graph_power(graph, 4)))


def test_distances_are_exact_and_end_at_the_ttl():
    graph = nx.gnp_random_graph(70, 0.04, seed=1)
    distances = theory.hop_distances(graph, 3)
    lengths = dict(nx.all_pairs_shortest_path_length(graph, cutoff=3))
    assert all(distances[v, w] == lengths[v].get(w, -1) for v in graph for w in graph)


def blocked_lengths(graph, holders, ttl):
    """Shortest paths without inner holders, by a plain search from every agent."""
    found = {}
    for source in graph:
        frontier, seen = [source], {source: 0}
        for hop in range(1, ttl + 1):
            frontier = [w for v in frontier if v == source or v not in holders for w in graph[v] if w not in seen]
            seen |= dict.fromkeys(frontier, hop)
        found[source] = seen
    return found


@pytest.mark.parametrize("seed", range(5))
def test_nonblocking_power_has_holders_at_the_ends_of_paths_only(seed):
    graph = nx.gnp_random_graph(30, 0.1, seed=seed)
    rng = np.random.default_rng(seed)
    sets = [["a", "b"] if rng.random() < 0.4 else ["b"] for _ in graph]
    problem = bm.Problem(graph, sets, {"a": bm.arms.Bernoulli(0.5), "b": bm.arms.Bernoulli(0.4)})
    expected = blocked_lengths(graph, set(problem.holders["a"]), 4)
    distances = theory.hop_distances(problem, 4, arm="a")
    power = theory.nonblocking_power(problem, "a", 4)
    for v in graph:
        for w in graph:
            assert distances[v, w] == expected[v].get(w, -1)
            assert power.has_edge(v, w) == (v != w and w in expected[v])


def test_agents_whose_best_arm_it_is_block_too():
    problem = bm.Problem(
        nx.path_graph(3), [["a", "b"], ["a"], ["a", "b"]], dict(zip("ab", laws(0.0, 1.0), strict=True))
    )
    assert not theory.nonblocking_power(problem, "a", 2).has_edge(0, 2)


def test_spread_holders_hear_as_much_with_absorption_as_without():
    arms = {"a": bm.arms.Bernoulli(0.1), "b": bm.arms.Bernoulli(0.2)}
    problem = bm.Problem(nx.cycle_graph(15), [["a", "b"] if v % 3 == 0 else ["b"] for v in range(15)], arms)

    def pairs(graph):
        return {frozenset(edge) for edge in graph.subgraph(problem.holders["a"]).edges}

    for ttl in (1, 2, 3, 4, 5):  # the second next holder is six hops away
        assert pairs(theory.nonblocking_power(problem, "a", ttl)) == pairs(theory.graph_power(problem, ttl))
    assert len(pairs(theory.graph_power(problem, 5))) == 5
    assert pairs(theory.nonblocking_power(problem, "a", 6)) < pairs(theory.graph_power(problem, 6))


def test_if_everybody_has_the_arm_absorption_is_instant_reward_sharing():
    problem = bm.Problem(nx.cycle_graph(9), [[0, 1]] * 9, laws(0.0, 1.0))
    assert set(theory.nonblocking_power(problem, 0, 5).edges) == set(nx.cycle_graph(9).edges)


def test_power_of_thousands_of_agents_has_the_right_degrees():
    power = theory.hop_distances(nx.cycle_graph(3000), 5)
    assert ((power > 0).sum(axis=1) == 10).all()


def test_dynamic_networks_and_unknown_arms_are_refused():
    dynamic = bm.Problem.paper("dynamic-er")
    with pytest.raises(NetworkError, match="static"):
        theory.graph_power(dynamic, 2)
    with pytest.raises(NetworkError, match="static"):
        bm.bounds(dynamic, bm.FwA(4))
    problem = bm.Problem(nx.path_graph(2), [[0], [0]], laws(0.0))
    with pytest.raises(ArmError, match="'x'"):
        theory.nonblocking_power(problem, "x", 2)
    with pytest.raises(InputError, match="ttl"):
        theory.graph_power(problem, -1)


@pytest.mark.parametrize("protocol", [bm.IRS(), bm.Flooding(3), bm.FwA(1), bm.FwA(3), bm.FwA(6)], ids=repr)
@pytest.mark.parametrize("seed", range(3))
def test_powers_and_distances_are_what_agents_hear_in_a_simulation(protocol, seed):
    graph = nx.gnp_random_graph(24, 0.1, seed=seed)
    problem = bm.Problem.random(graph, n_arms=6, per_agent=3, seed=seed)
    # Everybody pulls each of its three arms in the first rounds; what is sent then has time to arrive.
    result = bm.simulate(
        problem, protocol, horizon=3 + protocol.most_hops, seed=seed, engine="reference", trace=True, progress=False
    )
    heard = {arm: {} for arm in problem.arms}
    for event in result.trace:
        if event.learned:
            heard[event.arm].setdefault((event.origin, event.receiver), event.round - event.sequence + 1)
    for arm in problem.arms:
        distances = theory.hop_distances(problem, protocol.most_hops, arm=arm if isinstance(protocol, bm.FwA) else None)
        holders = problem.holders[arm]
        expected = {(v, w): distances[v, w] for v in holders for w in holders if v != w and distances[v, w] > 0}
        assert heard[arm] == expected
