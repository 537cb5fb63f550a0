import subprocess
import sys

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import coo_array, csr_array, csr_matrix

from banditmesh import networks
from banditmesh.errors import InputError, NetworkError
from banditmesh.networks import EdgeMarkovian, Links


def same_links(graph, other):
    return {frozenset(edge) for edge in graph.edges()} == {frozenset(edge) for edge in other.edges()}


# Arrays


def test_path_by_hand():
    names, links = networks.from_networkx(nx.path_graph(4))
    assert names == (0, 1, 2, 3)
    assert links.indptr.tolist() == [0, 1, 3, 5, 6]
    assert links.indices.tolist() == [1, 0, 2, 1, 3, 2]
    assert links.n_links == 3
    assert links.degrees.tolist() == [1, 2, 2, 1]
    assert links.neighbours(1).tolist() == [0, 2]
    assert links.directed().tolist() == [[0, 1], [1, 0], [1, 2], [2, 1], [2, 3], [3, 2]]
    assert links.pairs().tolist() == [[0, 1], [1, 2], [2, 3]]


def test_star_by_hand():
    links = networks.from_networkx(networks.star(4))[1]
    assert links.neighbour_lists() == [[1, 2, 3], [0], [0], [0]]
    assert all(type(v) is int for row in links.neighbour_lists() for v in row)


def test_two_components_are_numbered_by_their_lowest_agent():
    links = Links.from_pairs(6, [(1, 4), (0, 3), (5, 4)])
    assert links.components().tolist() == [0, 1, 2, 0, 1, 1]


@pytest.mark.parametrize("n_agents", [1, 3])
def test_network_without_links(n_agents):
    for _, links in (
        networks.from_networkx(nx.empty_graph(n_agents)),
        networks.from_sparse(csr_array((n_agents, n_agents))),
    ):
        assert links.n_links == 0
        assert links.neighbour_lists() == [[] for _ in range(n_agents)]
        assert links.components().tolist() == list(range(n_agents))
        assert links.directed().shape == (0, 2)


def test_names_follow_node_order():
    names, links = networks.from_networkx(nx.Graph([("b", "a"), ("a", ("c", 1))]))
    assert names == ("b", "a", ("c", 1))
    assert links.neighbour_lists() == [[1], [0, 2], [1]]


def test_arrays_are_read_only_and_typed():
    links = networks.from_networkx(nx.path_graph(3))[1]
    assert (links.indptr.dtype, links.indices.dtype) == (np.int64, np.int32)
    with pytest.raises(ValueError, match="read-only"):
        links.indices[0] = 2


def test_repeated_links_are_merged():
    assert Links.from_pairs(3, [(0, 1), (1, 0), (0, 1)]).n_links == 1


@given(st.integers(1, 20), st.floats(0, 1), st.integers(0, 1000))
def test_networkx_and_sparse_give_the_same_links(n, p, seed):
    graph = nx.gnp_random_graph(n, p, seed=seed)
    one = networks.from_networkx(graph)[1]
    names, two = networks.from_sparse(nx.to_scipy_sparse_array(graph, dtype=float))
    assert names == range(n)
    assert one.neighbour_lists() == two.neighbour_lists() == [sorted(graph[v]) for v in graph]
    assert len(set(one.components().tolist())) == nx.number_connected_components(graph)


def test_sparse_input_is_left_as_it_was():
    matrix = coo_array((np.array([1, 1, 0]), ([0, 1, 1], [1, 0, 1])), shape=(2, 2))
    assert networks.from_sparse(matrix)[1].n_links == 1
    assert matrix.nnz == 3
    assert networks.as_links(csr_matrix([[0, 1], [1, 0]]))[1].n_links == 1


def weighted_graph():
    graph = nx.path_graph(3)
    graph.edges[1, 2]["weight"] = 2.5
    return graph


@pytest.mark.parametrize(
    "network, message",
    [
        (
            nx.DiGraph([(0, 1)]),
            r"network must be undirected, got a DiGraph; convert it with graph.to_undirected\(\)",
        ),
        (nx.MultiDiGraph([(0, 1)]), "network must be undirected, got a MultiDiGraph"),
        (nx.MultiGraph([(0, 1)]), "network must have single links, got a MultiGraph"),
        (nx.Graph([("a", "a")]), "network must have no self-loops, got a link from 'a' to itself"),
        (
            weighted_graph(),
            r"got weight 2.5 on the edge \(1, 2\); .* banditmesh.networks.unweighted\(graph\)",
        ),
        (nx.Graph(), "network must have at least one agent, got a graph without nodes"),
        ([[0, 1], [1, 0]], "network as an edge list must hold tuples of two agents, got \\[0, 1\\]"),
        (np.zeros((2, 2)), "got ndarray"),
        (csr_array((2, 3)), r"an adjacency matrix must be square, got shape \(2, 3\)"),
        (csr_array((0, 0)), "network must have at least one agent, got an empty matrix"),
        (csr_array([[0, 1], [0, 0]]), "an adjacency matrix must be symmetric"),
        (csr_array([[0, 0, 0], [0, 0, 3], [0, 3, 0]]), r"entries 0 and 1, got 3 at \(1, 2\)"),
        (csr_array([[0, 0], [0, 1]]), "network must have no self-loops, got a link from 1 to itself"),
    ],
)
def test_unusable_networks_are_refused(network, message):
    with pytest.raises(NetworkError, match=message):
        networks.as_links(network)


@pytest.mark.parametrize(
    "pairs, message",
    [
        ([(0, 3)], r"links must join agents 0 to 2, got \(0, 3\)"),
        ([(-1, 0)], r"links must join agents 0 to 2, got \(-1, 0\)"),
        ([(1, 1)], "no self-loops, got a link from 1"),
        ([0, 1], r"pairs must be an integer array of shape \(m, 2\)"),
        ([(0.0, 1.0)], "pairs must be an integer array"),
    ],
)
def test_bad_pairs_are_refused(pairs, message):
    with pytest.raises(NetworkError, match=message):
        Links.from_pairs(3, pairs)


def test_weight_one_is_no_weight_and_unweighted_drops_the_others():
    graph = nx.path_graph(3)
    nx.set_edge_attributes(graph, 1.0, "weight")
    assert networks.from_networkx(graph)[1].n_links == 2
    assert networks.from_networkx(networks.unweighted(weighted_graph()))[1].n_links == 2


# Generators


@pytest.mark.parametrize("name, n_links, diameter", [("er", 153, 8), ("ba", 196, 5), ("sbm", 361, 7)])
def test_paper_networks_have_their_links_and_diameters(name, n_links, diameter):
    graph = networks.paper(name)
    assert list(graph) == list(range(100))
    assert (graph.number_of_edges(), nx.diameter(graph)) == (n_links, diameter)
    assert graph.has_edge(*networks.PAPER_WATCHED_LINKS[name])


def test_paper_networks_are_those_of_networkx():
    assert same_links(networks.paper("er"), nx.erdos_renyi_graph(100, 0.03, seed=2138))
    assert same_links(networks.paper("ba"), nx.barabasi_albert_graph(100, 2, seed=2023))
    assert same_links(networks.paper("sbm"), nx.random_partition_graph([25] * 4, 0.3, 0.003, seed=2023))


def test_dynamic_paper_network_starts_from_the_er_network():
    network = networks.paper("dynamic-er")
    assert isinstance(network, EdgeMarkovian)
    assert (network.p, network.q, network.start.n_links) == (0.01, 0.1, 153)


def test_first_connected_finds_the_seed_of_the_paper():
    graph, seed = networks.first_connected(lambda seed: networks.er(100, 0.03, seed), start=2023)
    assert seed == 2138
    assert same_links(graph, networks.paper("er"))


@pytest.mark.parametrize(
    "graph, same",
    [
        (networks.path(4), nx.path_graph(4)),
        (networks.ring(4), nx.cycle_graph(4)),
        (networks.star(4), nx.star_graph(3)),
        (networks.star(1), nx.empty_graph(1)),
        (networks.complete(4), nx.complete_graph(4)),
        (networks.watts_strogatz(12, 4, 0.3, seed=1), nx.watts_strogatz_graph(12, 4, 0.3, seed=1)),
        (networks.random_regular(8, 3, seed=1), nx.random_regular_graph(3, 8, seed=1)),
        (networks.random_geometric(20, 0.3, seed=1), nx.random_geometric_graph(20, 0.3, seed=1)),
    ],
)
def test_generators_agree_with_networkx(graph, same):
    assert list(graph) == list(range(len(same)))
    assert same_links(graph, same)


def test_grid_is_numbered_row_by_row():
    assert sorted(networks.grid(3, 2)[2]) == [0, 3, 4]


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: networks.er(0, 0.5, 0), "n must be an integer of at least 1, got 0"),
        (lambda: networks.er(5, 1.5, 0), "p must be a probability between 0 and 1, got 1.5"),
        (lambda: networks.er(5, 0.5, None), "seed must be an integer of at least 0, got None"),
        (lambda: networks.ba(5, 5, 0), "m must be an integer of at least 1 and at most 4, got 5"),
        (lambda: networks.sbm([], 0.5, 0.5, 0), "sizes must name at least one block, got none"),
        (lambda: networks.sbm(5, 0.5, 0.5, 0), "sizes must be a list of block sizes, got 5"),
        (lambda: networks.sbm("55", 0.5, 0.5, 0), "every block size must be an integer of at least 1, got '5'"),
        (lambda: networks.first_connected(5), "generator must be a function of a seed, got 5"),
        (lambda: networks.first_connected(lambda _: 5), "must make undirected networkx graphs .* got 5 for seed 0"),
        (lambda: networks.first_connected(lambda _: nx.DiGraph([(0, 1)])), "must make undirected networkx graphs"),
        (lambda: networks.first_connected(lambda _: nx.Graph()), "must make undirected networkx graphs with agents"),
        (lambda: networks.unweighted(5), "graph must be a networkx.Graph, got 5"),
        (lambda: networks.ring(2), "n must be an integer of at least 3, got 2"),
        (lambda: networks.random_regular(5, 3, 0), r"n \* degree must be even, got 5 \* 3"),
        (lambda: networks.sparse_er(5, 4.5, 0), "mean_degree must be between 0 and n - 1 = 4, got 4.5"),
        (lambda: networks.paper("ws"), "name must be one of er, ba, sbm, dynamic-er; got 'ws'"),
        (
            lambda: networks.first_connected(lambda _: nx.empty_graph(2), 3, 2),
            "none of the 2 .* seeds 3 to 4",
        ),
    ],
)
def test_bad_arguments_are_refused(make, message):
    with pytest.raises(InputError, match=message):
        make()


@pytest.mark.parametrize("n", [1, 2, 3, 17])
def test_sparse_er_can_be_complete_or_empty(n):
    assert networks.from_sparse(networks.sparse_er(n, n - 1, seed=0))[1].n_links == n * (n - 1) // 2
    assert networks.from_sparse(networks.sparse_er(n, 0.0, seed=0))[1].n_links == 0


def test_sparse_er_has_the_mean_degree_and_depends_on_the_seed_alone():
    matrix = networks.sparse_er(20_000, 6.0, seed=4)
    links = networks.from_sparse(matrix)[1]
    # The number of links is binomial with standard deviation 245.
    assert abs(links.n_links - 60_000) < 1225
    # Degrees are Poisson to the eye: the variance equals the mean.
    assert links.degrees.var() == pytest.approx(6.0, rel=0.1)
    assert (matrix != networks.sparse_er(20_000, 6.0, seed=4)).nnz == 0


def test_sparse_er_draws_every_pair_alike():
    total = sum(networks.sparse_er(6, 2.0, seed).toarray().astype(int) for seed in range(2000))
    # Each of the 15 pairs is linked with probability 0.4: 800 times, give or take 22.
    assert np.abs(total[np.triu_indices(6, 1)] - 800).max() < 110


def test_sparse_ba_has_the_links_of_ba():
    matrix = networks.sparse_ba(200, 3, seed=7)
    assert same_links(nx.from_scipy_sparse_array(matrix), networks.ba(200, 3, seed=7))


def test_importing_networks_and_arms_imports_neither_networkx_nor_scipy():
    code = "import sys, banditmesh.arms, banditmesh.networks; print({'networkx', 'scipy'} & set(sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "set()"
