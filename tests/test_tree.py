"""Statistics that are merged along a tree: exact, and the same on both engines."""

import itertools

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import banditmesh as bm
from banditmesh.protocols.spanning import spanning_tree
from cases import graphs, problems


def tree_of(graph, n_arms=1):
    arms = [bm.arms.Gaussian(0.0, 1.0)] * n_arms
    return spanning_tree(bm.Problem(graph, [[number % n_arms] for number in range(len(graph))], arms))


@given(graphs(max_agents=8))
def test_tree_spans_every_component_and_has_no_circle(graph):
    tree = nx.from_edgelist([])
    tree.add_nodes_from(range(len(graph)))
    tree.add_edges_from(
        (v, w)
        for v, row in enumerate(tree_of(nx.convert_node_labels_to_integers(graph)).links.neighbour_lists())
        for w in row
    )
    whole = nx.convert_node_labels_to_integers(graph)
    assert nx.is_forest(tree)
    assert set(map(frozenset, nx.connected_components(tree))) == set(map(frozenset, nx.connected_components(whole)))
    assert all(whole.has_edge(*edge) for edge in tree.edges)


def test_tree_is_breadth_first_from_the_hub():
    graph = nx.path_graph(6)
    graph.add_edges_from([(3, 5), (0, 3)])
    # 3 has the most neighbours: 0, 2, 4, 5. 1 could hang on 0 or 2, and takes the lower number.
    assert tree_of(graph).links.neighbour_lists() == [[1, 3], [0], [3], [0, 2, 4, 5], [3], [3]]


def test_links_want_what_somebody_beyond_has():
    tree = tree_of(nx.path_graph(4), n_arms=4)
    sides = {(v, w): wanted for (v, w), wanted in zip(directed(tree.links), tree.wants.tolist(), strict=True)}
    assert sides[1, 2] == [False, False, True, True]
    assert sides[2, 1] == [True, True, False, False]
    assert sides[3, 2] == [True, True, True, False]


def directed(links):
    return [(v, w) for v, row in enumerate(links.neighbour_lists()) for w in row]


@pytest.mark.parametrize("graph", [nx.path_graph(7), nx.star_graph(6), nx.balanced_tree(2, 2)])
def test_telling_everything_at_once_is_flooding_over_the_tree(graph):
    problem = bm.Problem(
        graph, bm.arms.uniform_sets(7, 5, 3, seed=1), [bm.arms.Bernoulli(p) for p in (0.1, 0.3, 0.5, 0.7, 0.9)]
    )
    settings = {"horizon": 150, "replicates": 2, "seed": 4}
    told = bm.simulate(problem, bm.TreeAggregation(1, emission=bm.Growth(0.0)), **settings)
    flooded = bm.simulate(problem, bm.Flooding(10), **settings)
    # Sums of zeros and ones are exact in any order.
    assert np.array_equal(told.regret, flooded.regret)


FAULTS = (
    None,
    bm.Faults(loss=0.3),
    bm.Faults(outages=bm.Outages(0.1, 0.3)),
    bm.Faults(loss=0.1, outages=bm.Outages(0.15, 0.4, memory=False)),
)


@settings(max_examples=60)
@given(
    problems(graphs(max_agents=8)),
    st.sampled_from([1, 3]),
    st.sampled_from([bm.Growth(0.0), bm.Growth(0.2), bm.Growth(0.5, echoes=2), bm.EveryPull(), bm.Contested()]),
    st.sampled_from(FAULTS),
    st.sampled_from(["sound", "published"]),
    st.booleans(),
    st.integers(1, 3),
)
def test_engines_agree(problem, pause, emission, faults, rules, link_traffic, turns):
    protocol = bm.TreeAggregation(pause, emission=emission)
    arguments = {"horizon": 25, "seed": 2, "faults": faults, "rules": rules, "link_traffic": link_traffic}
    arguments["every"] = [1 + v % turns for v in range(problem.n_agents)]
    assert bm.simulate(problem, protocol, engine="compiled", **arguments) == bm.simulate(
        problem, protocol, engine="reference", **arguments
    )


@pytest.mark.parametrize("faults", FAULTS)
@pytest.mark.parametrize(
    "policy",
    [bm.UCB(), *(pytest.param(policy, marks=pytest.mark.slow) for policy in (bm.KLUCB(), bm.ThompsonSampling()))],
    ids=lambda policy: policy.name,
)
def test_engines_agree_on_the_papers_network(policy, faults):
    problem = bm.Problem.paper("ba", seed=1)
    one, other = (
        bm.simulate(problem, bm.TreeAggregation(), policy=policy, horizon=40, seed=0, faults=faults, engine=engine)
        for engine in ("compiled", "reference")
    )
    assert one == other


@pytest.mark.parametrize("faults", [*FAULTS, bm.Faults(delay=1, jitter=1.0)])
def test_nobody_knows_of_more_pulls_than_were_made(faults):
    problem = bm.Problem(nx.path_graph(5), [[0, 1]] * 5, [bm.arms.Gaussian(mean, 1.0) for mean in (0.0, 0.5)])
    simulation = bm.Simulation(problem, bm.TreeAggregation(2), horizon=120, seed=0, faults=faults)
    result = simulation.run()
    for agent, position in itertools.product(simulation.agents.values(), range(2)):
        assert agent.estimates.count[position] <= result.pulls[0, :, position].sum()


def test_without_faults_everybody_soon_knows_all():
    problem = bm.Problem(nx.path_graph(4), [[0]] * 4, [bm.arms.Gaussian(0.0, 1.0)])
    result = bm.simulate(problem, bm.TreeAggregation(1, emission=bm.Growth(0.0)), horizon=10, seed=0)
    # Three links, both ways, every round: whatever is new is told at once, and all hear something new in each round.
    assert result.traffic["sent"].tolist() == [60]
    assert result.traffic["learned"].tolist() == [60]


def test_control_messages_are_charged_in_the_first_round():
    problem = bm.Problem.paper("er", seed=0)
    result = bm.simulate(problem, bm.TreeAggregation(), horizon=30, seed=0, link_traffic=True)
    assert result.traffic["control"].tolist() == [2 * 153 + 99]
    assert result.transmissions[0, -1] == result.traffic["sent"][0] + 405
    assert result.traffic["bytes"][0] == 32 * result.traffic["sent"][0] + 16 * 405
    assert result.link_traffic.sum() == result.traffic["sent"][0]
    assert result.transmissions[0, 0] >= 405


def test_a_pause_saves_messages():
    problem = bm.Problem.paper("er", seed=0)
    sent = [
        bm.simulate(problem, bm.TreeAggregation(pause), horizon=200, seed=0).transmissions[0, -1]
        for pause in (1, 8, 32)
    ]
    assert sent[0] > sent[1] > sent[2]


def test_a_dynamic_network_is_refused():
    with pytest.raises(bm.InputError, match="static network, got a dynamic one; use Flooding"):
        bm.simulate(bm.Problem.paper("dynamic-er", seed=0), bm.TreeAggregation(), horizon=5)


@pytest.mark.parametrize("pause", [0, -1, 1.5, True])
def test_a_pause_is_at_least_a_round(pause):
    with pytest.raises(bm.InputError, match="pause must be an integer of at least 1"):
        bm.TreeAggregation(pause)


def test_agents_without_links_work_alone():
    problem = bm.Problem(nx.empty_graph(3), [[0, 1]] * 3, [bm.arms.Gaussian(mean, 1.0) for mean in (0.0, 1.0)])
    alone, tree = (
        bm.simulate(problem, protocol, horizon=40, seed=0) for protocol in (bm.NoCooperation(), bm.TreeAggregation())
    )
    assert np.array_equal(alone.regret, tree.regret)
    assert tree.transmissions.max() == 0


def test_traffic_stays_below_its_bound():
    problem = bm.Problem.paper("er", seed=0)
    for protocol in (bm.TreeAggregation(), bm.TreeAggregation(2, emission=bm.Growth(0.0))):
        bound = bm.theory.traffic_bounds(problem, protocol, horizon=60)
        messages = bm.simulate(problem, protocol, horizon=60, seed=0).transmissions[0, -1]
        assert bound.within_ttl / 10 < messages <= bound.within_ttl
