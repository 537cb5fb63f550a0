"""Neighbours as sets of bits: the same as lists, and the same results."""

import networkx as nx
import numpy as np
import pytest

import banditmesh as bm
from banditmesh.networks.csr import as_links
from banditmesh.sim.compiled import bitsets


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
    assert not bitsets.pays(65, 2 * 65)
    assert not bitsets.pays(1025, 1025 * 1024)


@pytest.mark.parametrize("n_agents", [60, 130])
@pytest.mark.parametrize("protocol", [bm.Flooding(4), bm.FwA(3), bm.ProbabilisticFlooding(3, stop=0.4)], ids=str)
@pytest.mark.parametrize("dynamic", [False, True])
def test_results_do_not_depend_on_sets(n_agents, protocol, dynamic, monkeypatch):
    graph = nx.gnp_random_graph(n_agents, 0.15, seed=1)
    network = bm.networks.EdgeMarkovian(graph, 0.05, 0.3) if dynamic else graph
    problem = bm.Problem.random(network, n_arms=8, per_agent=3, seed=0)
    with_sets = bm.simulate(problem, protocol, engine="compiled", horizon=30, replicates=2, seed=0)
    monkeypatch.setattr(bitsets, "MOST_AGENTS", 0)
    without = bm.simulate(problem, protocol, engine="compiled", horizon=30, replicates=2, seed=0)
    assert with_sets == without
    # Counting links needs lists.
    counted = bm.simulate(problem, protocol, engine="compiled", horizon=30, replicates=2, seed=0, link_traffic=True)
    assert np.array_equal(counted.regret, with_sets.regret)
    assert np.array_equal(counted.messages, with_sets.messages)
