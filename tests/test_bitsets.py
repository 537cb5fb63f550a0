"""Neighbours as sets of bits, and messages that travel together: the same results as by lists, one by one."""

import networkx as nx
import numpy as np
import pytest

import banditmesh as bm
from banditmesh.draws import Draws
from banditmesh.networks.csr import as_links
from banditmesh.sim.compiled import bitsets, packing
from banditmesh.sim.compiled.crew import Stop
from banditmesh.sim.compiled.timeline import Timeline


@pytest.mark.parametrize("n_agents", [1, 2, 63, 64, 65, 130])
def test_a_set_holds_the_neighbours(n_agents):
    _, links = as_links(nx.gnp_random_graph(n_agents, 0.3, seed=n_agents))
    bits = bitsets.as_bits(links.indptr, links.indices)
    assert bits.shape == (n_agents, bitsets.n_words(n_agents))
    for v in range(n_agents):
        held = [w for w in range(n_agents) if int(bits[v, w // 64]) >> (w % 64) & 1]
        assert held == links.indices[links.indptr[v] : links.indptr[v + 1]].tolist()


def test_sets_are_for_small_dense_networks():
    assert bitsets.pays(64, 2 * 64)
    assert not bitsets.pays(64, 2 * 64 - 1)
    assert not bitsets.pays(129, 2 * 129)
    assert not bitsets.pays(1025, 1025 * 1024)


@pytest.mark.parametrize("n_agents", [60, 130])
@pytest.mark.parametrize("protocol", [bm.Flooding(4), bm.FwA(3), bm.ProbabilisticFlooding(3, stop=0.4)], ids=str)
@pytest.mark.parametrize("dynamic", [False, True])
def test_results_do_not_depend_on_sets(n_agents, protocol, dynamic, monkeypatch):
    graph = nx.gnp_random_graph(n_agents, 0.15, seed=1)
    network = bm.networks.EdgeMarkovian(graph, 0.05, 0.3) if dynamic else graph
    problem = bm.Problem.random(network, n_arms=8, per_agent=3, seed=0)
    with_sets = bm.simulate(problem, protocol, engine="compiled", horizon=30, replicates=2, seed=0)
    monkeypatch.setattr(bitsets, "MAX_AGENTS", 0)
    without = bm.simulate(problem, protocol, engine="compiled", horizon=30, replicates=2, seed=0)
    assert with_sets == without
    # Counting links needs lists.
    counted = bm.simulate(problem, protocol, engine="compiled", horizon=30, replicates=2, seed=0, link_traffic=True)
    assert np.array_equal(counted.regret, with_sets.regret)
    assert np.array_equal(counted.transmissions, with_sets.transmissions)


def dense(n_agents, links_per_agent, seed=1):
    """A dynamic network that begins with so many links."""
    graph = nx.gnp_random_graph(n_agents, links_per_agent / n_agents, seed=seed)
    return bm.networks.EdgeMarkovian(graph, 0.1 * links_per_agent / n_agents, 0.1)


@pytest.mark.parametrize("n_agents", [64, 65, *(pytest.param(n, marks=pytest.mark.slow) for n in (63, 128))])
def test_sets_give_what_the_reference_gives(n_agents):
    # More arms than a word has bits.
    problem = bm.Problem.random(dense(n_agents, 9), n_arms=70, per_agent=5, seed=0)
    for protocol in (bm.Flooding(3), bm.FwA(4)):
        one, other = (
            bm.simulate(problem, protocol, horizon=8, seed=3, engine=engine) for engine in ("compiled", "reference")
        )
        assert one == other


def test_as_many_agents_as_sets_may_have_give_what_lists_give(monkeypatch):
    problem = bm.Problem.random(dense(1024, 40), n_arms=8, per_agent=3, seed=0)
    with_sets = bm.simulate(problem, bm.FwA(3), engine="compiled", horizon=3, seed=0)
    monkeypatch.setattr(bitsets, "MAX_AGENTS", 1023)
    assert bm.simulate(problem, bm.FwA(3), engine="compiled", horizon=3, seed=0) == with_sets


@pytest.mark.parametrize("births_first", [False, True])
@pytest.mark.parametrize("n_agents", [63, 64, 65, 128])
def test_rounds_as_sets_are_the_rounds_as_lists(n_agents, births_first):
    sets, lists = (
        Timeline(dense(n_agents, 9), Draws(5, 0), births_first, 20, False, with_sets, Stop()).window(20)[0]
        for with_sets in (True, False)
    )
    assert (len(sets.bits), len(sets.indices), len(lists.bits)) == (20, 0, 0)
    for row in range(20):
        starts = lists.starts[row] - lists.starts[row, 0]
        indices = lists.indices[lists.starts[row, 0] : lists.starts[row, -1]]
        assert np.array_equal(sets.starts[row], starts)
        assert np.array_equal(sets.bits[row], bitsets.as_bits(starts, indices))


def test_any_dynamic_network_can_be_sets():
    rounds = [nx.gnp_random_graph(70, 0.2, seed=seed) for seed in range(6)]
    problem = bm.Problem.random(bm.networks.GraphSequence(rounds), n_arms=6, per_agent=3, seed=0)
    one, other = (
        bm.simulate(problem, bm.Flooding(3), horizon=6, seed=3, engine=engine) for engine in ("compiled", "reference")
    )
    assert one == other


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("ttl", [1, 3, 20])
def test_messages_that_travel_together_give_what_each_alone_gives(dynamic, ttl, monkeypatch):
    # More messages than travel together, some agents without neighbours, and copies that come back.
    graph = nx.gnp_random_graph(150, 0.015, seed=1)
    network = bm.networks.EdgeMarkovian(graph, 0.002, 0.3) if dynamic else graph
    problem = bm.Problem.random(network, n_arms=8, per_agent=3, seed=0)
    every = np.arange(150) % 3 + 1
    settings = {"engine": "compiled", "horizon": 30, "replicates": 2, "seed": 0, "every": every}
    together = bm.simulate(problem, bm.Gossip(ttl), **settings)
    monkeypatch.setattr(packing, "MAX_HOPS", 0)
    assert bm.simulate(problem, bm.Gossip(ttl), **settings) == together
    assert (together.traffic["duplicate"] > 0).all() == (ttl > 2)
