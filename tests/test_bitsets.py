"""Messages as sets of bits, and messages that travel together: the same results as by lists, one by one."""

import networkx as nx
import numpy as np
import pytest

import banditmesh as bm
from banditmesh.sim.compiled import bitsets, packing


@pytest.mark.parametrize("n_bits", [1, 2, 63, 64, 65, 130])
def test_a_set_holds_what_the_table_says(n_bits):
    is_in = np.random.default_rng(n_bits).random((3, n_bits)) < 0.3
    sets = bitsets.as_sets(is_in)
    assert sets.shape == (3, bitsets.n_words(n_bits))
    for row, bits in zip(is_in, sets, strict=True):
        held = [i for i in range(64 * len(bits)) if int(bits[i // 64]) >> (i % 64) & 1]
        assert held == np.flatnonzero(row).tolist()


def test_sets_are_for_as_many_messages_as_fit():
    assert bitsets.fit(1024, 16)
    assert not bitsets.fit(1024, 17)
    assert not bitsets.fit(1025, 1)
    assert bitsets.fit(64, 256)


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


@pytest.mark.parametrize("ttl", [6, 40, 100])
def test_messages_that_live_long_are_as_many_bits(ttl):
    # An agent's messages fill a part of a word, a word, or more than one.
    problem = bm.Problem.random(dense(9, 1.5), n_arms=3, per_agent=2, seed=0)
    for protocol in (bm.FwA(ttl), bm.ProbabilisticFlooding(ttl, stop=0.1)):
        one, other = (
            bm.simulate(problem, protocol, horizon=110, seed=3, engine=engine) for engine in ("compiled", "reference")
        )
        assert one == other


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
