import itertools
import math
import types

import networkx as nx
import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from banditmesh.draws import BIRTH, DEATH, Draws, geometric_skip, philox, uniform
from banditmesh.errors import InputError, NetworkError
from banditmesh.networks import (
    Churn,
    ContactTrace,
    DynamicNetwork,
    EdgeMarkovian,
    GraphSequence,
    LinkFailures,
    Links,
    edge_markovian_step,
)
from banditmesh.networks.dynamic import edge_markovian

DRAWS = Draws(seed=5, replicate=0)
probabilities = st.one_of(st.sampled_from([0.0, 1.0]), st.floats(0.0, 1.0))


def first(network, n_rounds, draws=DRAWS, **options):
    return [links.tolist() for links in itertools.islice(network.rounds(draws, **options), n_rounds)]


NETWORKS = [
    EdgeMarkovian(nx.path_graph(6), 0.2, 0.4),
    GraphSequence([nx.path_graph(6), nx.star_graph(5), nx.empty_graph(6)]),
    ContactTrace([(1, 0, 5), (3, 4, 2), (3, 1, 2), (1, 5, 0)]),
    LinkFailures(nx.complete_graph(6), 0.3),
    Churn(nx.complete_graph(6), 0.3, 0.5),
]


@pytest.mark.parametrize("network", NETWORKS, ids=lambda network: type(network).__name__)
@pytest.mark.parametrize("births_first", [False, True])
def test_every_round_is_sorted_typed_and_repeatable(network, births_first):
    assert isinstance(network, DynamicNetwork)
    n_rounds = network.n_rounds or 8
    for links in itertools.islice(network.rounds(DRAWS, births_first), n_rounds):
        assert links.dtype == np.int32
        assert links.shape == (len(links), 2)
        assert np.all(links[:, 0] < links[:, 1])
        assert links.tolist() == sorted(map(list, {tuple(pair) for pair in links.tolist()}))
        assert links.size == 0 or links.max() < network.n_agents
    again = Draws(seed=5, replicate=0)
    one, two = first(network, n_rounds), first(network, n_rounds, again)
    assert one == two
    assert len(one) == n_rounds


def test_other_replicates_meet_other_links():
    network = EdgeMarkovian(nx.path_graph(10), 0.2, 0.4)
    assert first(network, 3) != first(network, 3, Draws(seed=5, replicate=1))


# Edge-Markovian


@pytest.mark.parametrize("births_first", [False, True])
@pytest.mark.parametrize(
    "p, q, expected",
    [(0.0, 0.0, [[0, 1], [1, 2]]), (1.0, 0.0, [[0, 1], [0, 2], [1, 2]]), (0.0, 1.0, [])],
)
def test_extreme_probabilities_by_hand(p, q, expected, births_first):
    network = EdgeMarkovian(nx.path_graph(3), p, q)
    assert first(network, 2, births_first=births_first) == [expected, expected]


def test_sure_birth_and_death_turn_the_network_over_unless_births_come_first():
    network = EdgeMarkovian(nx.path_graph(3), 1.0, 1.0)
    assert first(network, 3) == [[[0, 2]], [[0, 1], [1, 2]], [[0, 2]]]
    assert first(network, 3, births_first=True) == [[], [], []]


@pytest.mark.parametrize("graph", [nx.empty_graph(1), nx.empty_graph(2), nx.path_graph(2)])
def test_tiny_networks_step(graph):
    assert len(first(EdgeMarkovian(graph, 0.5, 0.5), 20)) == 20


@pytest.mark.parametrize("p", [5e-324, 1e-300, 1e-20, 1e-17])
def test_tiny_birth_probability_does_not_overflow(p):
    assert first(EdgeMarkovian(nx.path_graph(3), p, 0.0), 5) == [[[0, 1], [1, 2]]] * 5


def naive_step(n, p, q, births_first, draws, t, links):
    """The step pair by pair, from the same draws."""
    pairs = list(itertools.combinations(range(n), 2))
    hits = set()
    if p == 1.0:
        hits = set(pairs)
    elif p > 0.0:
        position = -1
        for k in itertools.count():
            position += 1 + geometric_skip(draws.uniform(BIRTH, t, k), math.log1p(-p))
            if position >= len(pairs):
                break
            hits.add(pairs[position])

    def survives(pair):
        return draws.uniform(DEATH, t, *pair) >= q

    if births_first:
        return {pair for pair in links | hits if survives(pair)}
    return {pair for pair in links if survives(pair)} | (hits - links)


@settings(max_examples=60, deadline=None)
@given(
    n=st.integers(1, 9),
    density=st.floats(0, 1),
    p=st.one_of(st.just(1.0), st.just(0.0), st.floats(1e-6, 0.999)),
    q=probabilities,
    births_first=st.booleans(),
    seed=st.integers(0, 1000),
)
def test_step_equals_the_naive_computation(n, density, p, q, births_first, seed):
    graph = nx.gnp_random_graph(n, density, seed=seed)
    draws = Draws(seed=seed, replicate=0)
    links = {tuple(sorted(edge)) for edge in graph.edges()}
    stepped = first(EdgeMarkovian(graph, p, q), 3, draws, births_first=births_first)
    for t, got in enumerate(stepped, start=1):
        links = naive_step(n, p, q, births_first, draws, t, links)
        assert got == [list(pair) for pair in sorted(links)]


def test_step_says_how_much_room_it_needs():
    keys = (1, 2, 3, 4)
    codes = np.array([1, 2, 3, 6, 7, 11])  # the complete network of four agents
    little, enough = np.full(2, -7), np.full(6, -7)
    assert edge_markovian_step(4, 0.5, 0.0, False, *keys, 1, codes, 6, little) == -6
    assert edge_markovian_step(4, 0.5, 0.0, False, *keys, 1, codes, 6, enough) == 6
    assert enough.tolist() == codes.tolist()
    assert edge_markovian_step(4, 0.0, 0.0, False, *keys, 1, codes, 2, little) == 2
    assert little.tolist() == [1, 2]


@pytest.mark.parametrize("births_first, density", [(False, 0.01 / 0.11), (True, 0.0826)])
def test_density_tends_to_its_stationary_value(births_first, density):
    # 190 rounds of 780 pairs, correlated over about nine rounds: the standard error is about 0.003.
    start = nx.gnp_random_graph(40, density, seed=1)
    network = EdgeMarkovian(start, 0.01, 0.1)
    counts = [len(links) for links in itertools.islice(network.rounds(DRAWS, births_first), 200)]
    assert np.mean(counts[10:]) / 780 == pytest.approx(density, abs=0.012)


def test_bad_probabilities_are_refused():
    with pytest.raises(InputError, match=r"p must be a probability between 0 and 1, got -0\.1"):
        EdgeMarkovian(nx.path_graph(2), -0.1, 0.5)
    with pytest.raises(InputError, match="q must be a probability between 0 and 1, got 2"):
        EdgeMarkovian(nx.path_graph(2), 0.1, 2)
    with pytest.raises(NetworkError, match="network must be undirected"):
        EdgeMarkovian(nx.DiGraph([(0, 1)]), 0.1, 0.1)


# Sequences and traces


def test_sequence_follows_the_node_order_of_its_first_graph():
    network = GraphSequence([nx.Graph([("b", "a"), ("a", "c")]), nx.Graph([("a", "c"), ("c", "b")])])
    assert network.names == ("b", "a", "c")
    assert network.n_rounds == 2
    assert first(network, 5) == [[[0, 1], [1, 2]], [[0, 2], [1, 2]]]


def test_sequence_takes_every_form_of_network():
    sparse = nx.to_scipy_sparse_array(nx.path_graph(2))
    network = GraphSequence([Links.from_pairs(2, [(0, 1)]), sparse, nx.path_graph(2)])
    assert first(network, 3) == [[[0, 1]]] * 3


def changing_path(n_rounds):
    """One graph object that loses a link every round."""
    graph = nx.path_graph(n_rounds + 1)
    for v in range(n_rounds):
        yield graph
        graph.remove_edge(v, v + 1)


def test_sequence_reads_each_graph_of_a_generator_as_it_comes():
    assert first(GraphSequence(changing_path(3)), 9) == [[[0, 1], [1, 2], [2, 3]], [[1, 2], [2, 3]], [[2, 3]]]


def test_sequence_of_graphs_that_are_gone_after_their_round_is_read_in_full():
    # Each graph is freed before the next is made, which may then lie at the same address.
    graphs = (nx.Graph([(0, 1), (1, 2)] if t % 2 else [(0, 1), (0, 2)]) for t in range(6))
    assert first(GraphSequence(graphs), 9) == [[[0, 1], [0, 2]], [[0, 1], [1, 2]]] * 3


def test_graph_that_is_listed_many_times_stands_in_many_rounds():
    path, star = nx.path_graph(3), nx.star_graph(2)
    one, two = [[0, 1], [1, 2]], [[0, 1], [0, 2]]
    assert first(GraphSequence([path, star, star, path]), 9) == [one, two, two, one]


@pytest.mark.parametrize(
    "graphs, message",
    [
        (5, "graphs must be a sequence of graphs, got 5"),
        (nx.path_graph(2), "round 1 of the sequence: network must be a networkx.Graph, .* got int"),
        (iter([]), "graphs must hold at least one graph, got none"),
        ([], "graphs must hold at least one graph, got none"),
        ([nx.path_graph(2), nx.path_graph(3)], "the agents of the first, got others in round 2"),
        (
            [nx.path_graph(2), nx.path_graph(2), nx.DiGraph([(0, 1)])],
            "round 3 of the sequence: .* undirected",
        ),
    ],
)
def test_bad_sequences_are_refused(graphs, message):
    with pytest.raises(NetworkError, match=message):
        GraphSequence(graphs)


def test_trace_takes_given_agents_and_rounds():
    trace = ContactTrace([(2, "a", "b")], n_rounds=3, agents=["c", "b", "a"])
    assert trace.names == ("c", "b", "a")
    assert first(trace, 9) == [[], [[1, 2]], []]
    trace = ContactTrace(np.array([[1, 3, 0]]), n_agents=5)
    assert trace.names == (0, 1, 2, 3, 4)
    assert first(trace, 9) == [[[0, 3]]]
    assert first(ContactTrace(iter(np.array([[1, 3, 0]])), n_agents=5), 9) == [[[0, 3]]]


def test_trace_without_contacts_is_a_network_without_links():
    assert first(ContactTrace([], n_agents=2, n_rounds=2), 9) == [[], []]


@pytest.mark.parametrize(
    "contacts, options, message",
    [
        ([(0, 1, 2)], {}, "a contact's round must be an integer of at least 1, got 0"),
        ([(1, 2, 2)], {}, r"a contact must be between two agents, got \(1, 2, 2\)"),
        (5, {}, r"contacts must be rows of \(round, agent, agent\), got 5"),
        (np.array(5), {}, r"contacts must be rows of \(round, agent, agent\), got 5"),
        ([1, 2, 3], {}, r"a contact must be \(round, agent, agent\), got 1"),
        (np.array([1, 2, 3]), {}, r"a contact must be \(round, agent, agent\), got 1"),
        (["abc"], {}, r"a contact must be \(round, agent, agent\), got 'abc'"),
        ([{1, 2, 3}], {}, r"a contact must be \(round, agent, agent\), got \{1, 2, 3\}"),
        ([(1, ["a"], "b")], {}, r"an agent's name must be hashable, got \['a'\]; a tuple will do"),
        ([(1, "a", ("b", []))], {}, r"an agent's name must be hashable, got \('b', \[\]\)"),
        ([], {"agents": 5}, "agents must be a list of names, got 5"),
        ([], {"agents": [[]]}, r"an agent's name must be hashable, got \[\]"),
        ([(1, 2)], {}, r"a contact must be \(round, agent, agent\), got \(1, 2\)"),
        ([(1, 0, 5)], {"n_agents": 5}, r"between the given agents, got 5 in \(1, 0, 5\)"),
        ([(4, 0, 1)], {"n_rounds": 3}, "contacts must end by n_rounds = 3, got one in round 4"),
        ([], {}, "contacts must name at least one agent, got none"),
        ([], {"n_agents": 2, "agents": [0, 1]}, "give n_agents or agents, got both"),
        ([], {"agents": [0, 0]}, "agents must be distinct, got a repeated one"),
    ],
)
def test_bad_traces_are_refused(contacts, options, message):
    with pytest.raises(InputError, match=message):
        ContactTrace(contacts, **options)


# Failures and churn


def test_links_fail_with_their_probability():
    counts = [len(links) for links in first(LinkFailures(nx.complete_graph(12), 0.3), 100)]
    # 6,600 independent links: the standard error is 0.006.
    assert np.mean(counts) / 66 == pytest.approx(0.7, abs=0.03)


def test_churn_cuts_absent_agents_off():
    assert first(Churn(nx.path_graph(3), 0.0, 0.0), 2) == [[[0, 1], [1, 2]]] * 2
    assert first(Churn(nx.path_graph(3), 1.0, 0.0), 2) == [[], []]


def test_churn_tends_to_its_stationary_presence():
    counts = [len(links) for links in first(Churn(nx.complete_graph(12), 0.2, 0.6), 300)]
    # Present with probability 3/4, two at a time: 9/16 of the links.
    assert np.mean(counts) / 66 == pytest.approx(9 / 16, abs=0.05)


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: LinkFailures(nx.path_graph(2), 1.1), "failure must be a probability"),
        (lambda: Churn(nx.path_graph(2), 1.1, 0), "leave must be a probability"),
        (lambda: Churn(nx.path_graph(2), 0.1, -1), "join must be a probability"),
    ],
)
def test_bad_rates_are_refused(make, message):
    with pytest.raises(InputError, match=message):
        make()


def compiled(function, **replacements):
    """A function compiled by numba, some of its globals replaced by compiled ones."""
    names = {**function.__globals__, **replacements}
    return numba.njit(types.FunctionType(function.__code__, names, function.__name__))


# The quick tests that compare the engines on such networks compare the step with it, at fewer probabilities.
@pytest.mark.slow
def test_compiled_step_equals_the_plain_one_bit_for_bit():
    draw = compiled(uniform, philox=compiled(philox))
    parts = {
        "births": compiled(edge_markovian.births, draw_skips=compiled(edge_markovian.draw_skips, uniform=draw)),
        "draw_deaths": compiled(edge_markovian.draw_deaths, uniform=draw),
        "join": compiled(edge_markovian.join),
    }
    step = compiled(edge_markovian_step, **parts)
    keys = *DRAWS.key(BIRTH), *DRAWS.key(DEATH)
    codes = EdgeMarkovian(nx.path_graph(30), 0.1, 0.1).start_codes()
    for t in range(1, 6):
        for p in (0.0, 1e-300, 0.02, 1.0):
            one, two = np.empty(500, dtype=np.int64), np.empty(500, dtype=np.int64)
            arguments = 30, p, 0.2, t % 2 == 0, *keys, t, codes, len(codes)
            n_one, n_two = edge_markovian_step(*arguments, one), step(*arguments, two)
            assert n_one == n_two
            assert one[:n_one].tolist() == two[:n_two].tolist()
