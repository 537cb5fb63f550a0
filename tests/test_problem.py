import dataclasses

import networkx as nx
import numpy as np
import pytest
import scipy.sparse
import scipy.stats

import banditmesh as bm
from banditmesh.errors import NetworkError
from banditmesh.networks import as_links
from cases import common_arms

ARMS = {"a": bm.arms.Gaussian(0.9, 1.0), "b": bm.arms.Bernoulli(0.5), "c": bm.arms.Uniform(0.0, 0.4)}


@pytest.fixture
def problem():
    graph = nx.Graph([("x", "y"), ("z", ("w", 1))])
    return bm.Problem(graph, [["b", "a"], ["b"], ["c", "b"], ["a", "c"]], ARMS)


def test_names_are_kept_in_node_and_law_order(problem):
    assert problem.agents == ("x", "y", "z", ("w", 1))
    assert problem.arms == ("a", "b", "c")
    assert (problem.n_agents, problem.n_arms) == (4, 3)
    assert not problem.is_dynamic


def test_arm_sets_keep_their_order(problem):
    assert [problem.arm_set(v).tolist() for v in range(4)] == [[1, 0], [1], [2, 1], [0, 2]]


def test_means_sigmas_and_gaps_by_hand(problem):
    nan = np.nan
    np.testing.assert_allclose(problem.means, [0.9, 0.5, 0.2])
    np.testing.assert_allclose(problem.sigmas[:2], [1.0, 0.5])
    np.testing.assert_allclose(problem.best_means, [0.9, 0.5, 0.5, 0.9])
    np.testing.assert_allclose(problem.gaps, [[0, 0.4, nan], [nan, 0, nan], [nan, 0, 0.3], [0, nan, 0.7]], atol=1e-15)
    np.testing.assert_allclose(problem.arm_gaps, [0.4, 0, 0, 0.3, 0, 0, 0.7], atol=1e-15)


def test_best_arms_holders_and_components_by_hand(problem):
    assert problem.best_arms == ("a", "b", "b", "a")
    assert problem.holders == {"a": ("x", ("w", 1)), "b": ("x", "y", "z"), "c": ("z", ("w", 1))}
    assert problem.components == (("x", "y"), ("z", ("w", 1)))


def test_first_of_equally_good_arms_is_the_best():
    arms = [bm.arms.Gaussian(0.5, 1.0), bm.arms.Bernoulli(0.5)]
    assert bm.Problem(nx.path_graph(2), [[1, 0], [0, 1]], arms).best_arms == (1, 0)


def test_law_without_sigma_has_nan():
    problem = bm.Problem(nx.empty_graph(1), [[0]], [scipy.stats.expon()])
    assert np.isnan(problem.sigmas[0])


def test_problem_is_frozen(problem):
    with pytest.raises(dataclasses.FrozenInstanceError):
        problem.arms = ()
    for array in (problem.arm_offsets, problem.arm_indices, problem.means, problem.gaps, problem.best_means):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


def test_arm_sets_by_name_equal_those_in_order(problem):
    by_name = bm.Problem(
        nx.Graph([("x", "y"), ("z", ("w", 1))]),
        {("w", 1): ["a", "c"], "z": ["c", "b"], "y": ["b"], "x": ["b", "a"]},
        ARMS,
    )
    assert by_name.arm_indices.tolist() == problem.arm_indices.tolist()
    assert by_name.arm_offsets.tolist() == problem.arm_offsets.tolist()


def test_a_set_is_taken_in_the_order_of_the_arms():
    problem = bm.Problem(nx.path_graph(2), [{"c", "a", "b"}, frozenset("b")], ARMS)
    assert [problem.arm_set(v).tolist() for v in range(2)] == [[0, 1, 2], [1]]


def test_an_array_of_arm_sets_equals_lists():
    sets = np.array([[2, 0], [1, 2], [0, 1]], dtype=np.int16)
    arms = list(ARMS.values())
    one = bm.Problem(nx.path_graph(3), sets, arms)
    two = bm.Problem(nx.path_graph(3), sets.tolist(), arms)
    assert one.arm_indices.tolist() == two.arm_indices.tolist() == [2, 0, 1, 2, 0, 1]
    assert one.arm_offsets.tolist() == two.arm_offsets.tolist()
    sets[:] = 0
    assert one.arm_indices.tolist() == [2, 0, 1, 2, 0, 1]


def test_arm_sets_may_come_from_iterators_and_numpy_integers():
    problem = bm.Problem(nx.path_graph(2), [iter([0, 1]), np.array([1, 2])], list(ARMS.values()))
    assert [problem.arm_set(v).tolist() for v in range(2)] == [[0, 1], [1, 2]]


@pytest.mark.parametrize(
    "network",
    [
        nx.path_graph(3),
        scipy.sparse.csr_array(nx.to_scipy_sparse_array(nx.path_graph(3))),
        scipy.sparse.coo_matrix(nx.to_scipy_sparse_array(nx.path_graph(3))),
        bm.networks.Links.from_pairs(3, [(0, 1), (1, 2)]),
    ],
    ids=lambda network: type(network).__name__,
)
def test_every_form_of_network_is_taken(network):
    problem = bm.Problem(network, [[0]] * 3, [bm.arms.Bernoulli(0.5)])
    assert list(problem.agents) == [0, 1, 2]
    assert problem.network.neighbour_lists() == [[1], [0, 2], [1]]


def test_later_changes_of_the_graph_do_not_reach_the_problem():
    graph = nx.path_graph(3)
    problem = bm.Problem(graph, [[0]] * 3, [bm.arms.Bernoulli(0.5)])
    graph.add_edge(0, 2)
    assert problem.network.n_links == 2


def test_dynamic_network_has_no_components():
    problem = bm.Problem(bm.networks.LinkFailures(nx.path_graph(2), 0.5), [[0], [0]], [bm.arms.Bernoulli(0.5)])
    assert problem.is_dynamic
    assert repr(problem) == "Problem(2 agents, dynamic links, 1 arms, 1 per agent)"
    with pytest.raises(NetworkError, match="components need a static network"):
        _ = problem.components


@pytest.mark.parametrize("name, n_links", [("er", 153), ("ba", 196), ("sbm", 361), ("dynamic-er", None)])
def test_paper_instances_are_as_described(name, n_links):
    problem = bm.Problem.paper(name, seed=1)
    assert (problem.n_agents, problem.n_arms) == (100, 50)
    assert np.diff(problem.arm_offsets).tolist() == [20] * 100
    assert all(0.0 < mean < 1.0 for mean in problem.means)
    assert problem.sigmas.tolist() == [1.0] * 50
    assert problem.is_dynamic if n_links is None else problem.network.n_links == n_links


def test_paper_instances_depend_on_the_seed_alone():
    one, again, other = (bm.Problem.paper("er", seed=seed) for seed in (0, 0, 1))
    assert one.arm_indices.tolist() == again.arm_indices.tolist() != other.arm_indices.tolist()
    assert one.means.tolist() == again.means.tolist() != other.means.tolist()
    assert one.means.tolist() == bm.Problem.paper("sbm", seed=0).means.tolist()


def test_random_problem_takes_any_network():
    problem = bm.Problem.random(nx.Graph([("a", "b")]), n_arms=3, per_agent=2, seed=0)
    assert repr(problem) == "Problem(2 agents, 1 links, 3 arms, 2 per agent)"
    assert problem.agents == ("a", "b")


def test_random_problem_reads_its_network_once(monkeypatch):
    reads = []
    monkeypatch.setattr("banditmesh.problem.as_links", lambda network: reads.append(network) or as_links(network))
    assert bm.Problem.random(nx.path_graph(3), n_arms=2, per_agent=1, seed=0).network.n_links == 2
    assert len(reads) == 1


@pytest.mark.parametrize("agent", ["x", -1, 3, 1.0, None])
def test_an_agent_that_is_no_number_of_one_has_no_arm_set(agent):
    problem = common_arms(nx.path_graph(3))
    with pytest.raises(
        bm.InputError, match="the number of an agent must be an integer of at least 0 and at most 2, got"
    ):
        problem.arm_set(agent)


def test_edge_lists_and_paths_are_networks(tmp_path):
    links = [("a", "b"), ("b", "c")]
    (tmp_path / "links.csv").write_text("from,to\na,b\nb,c\n")
    for network in (links, tmp_path / "links.csv", str(tmp_path / "links.csv"), nx.Graph(links)):
        problem = bm.Problem(network, [[0]] * 3, [bm.arms.Bernoulli(0.5)])
        assert list(problem.agents) == ["a", "b", "c"]
        assert problem.network.neighbour_lists() == [[1], [0, 2], [1]]
    assert bm.Problem.random(links, 2, 1).n_agents == 3


@pytest.mark.parametrize(
    "network, message",
    [
        ([("a", "a")], "network must have no self-loops, got a link from 'a' to itself"),
        ([("a", "b", "c")], "network as an edge list must hold tuples of two agents, got \\('a', 'b', 'c'\\)"),
        ([("a", [])], "an agent's name must be hashable, got \\[\\]"),
        ([], "network must have at least one agent, got an edge list without links"),
        ("none.txt", "none.txt must be a network file, got no such file"),
        ((("a",), bm.networks.Links.from_pairs(2, [(0, 1)])), "there must be a name for each of the 2 agents"),
        ((("a", "a"), bm.networks.Links.from_pairs(2, [(0, 1)])), "the names of agents must differ"),
    ],
)
def test_bad_edge_lists_are_refused(network, message):
    with pytest.raises(bm.InputError, match=message):
        bm.Problem.random(network, 1, 1)


def test_places_of_agents_are_kept():
    graph = bm.networks.random_geometric(5, 0.5, seed=0)
    problem = bm.Problem.random(graph, 1, 1)
    assert dict(problem.positions) == {node: tuple(place) for node, place in graph.nodes(data="pos")}
    assert bm.Problem.random(nx.path_graph(3), 1, 1).positions is None
    graph.nodes[0]["pos"] = (1.0, float("nan"))
    assert bm.Problem.random(graph, 1, 1).positions is None
