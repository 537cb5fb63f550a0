"""Small problems for tests, by hand and drawn by hypothesis."""

from dataclasses import replace

import networkx as nx
import numpy as np
from hypothesis import settings
from hypothesis import strategies as st

import banditmesh as bm


def examples(number):
    """How many examples to look at: this number by `make test-slow`, half as many by `make test`."""
    return number * settings.default.max_examples // 100


def gaussian_arms(n_arms):
    return [bm.arms.Gaussian(0.1 * arm, 1.0) for arm in range(n_arms)]


def private_arms(graph):
    """Every agent has one arm that nobody else has."""
    n_agents = len(graph)
    return bm.Problem(graph, [[v] for v in range(n_agents)], gaussian_arms(n_agents))


def common_arms(graph, n_arms=2):
    """All agents have the same arms."""
    return bm.Problem(graph, [list(range(n_arms))] * len(graph), gaussian_arms(n_arms))


def normal_tape(problem, horizon, seed=0):
    """Rewards of a problem's arms, drawn outside the package."""
    noise = np.random.default_rng(seed).normal(size=(horizon, problem.n_agents, problem.n_arms))
    return problem.means + noise


def totals(result, replicate=0):
    """The traffic of one replicate as plain numbers."""
    return {name: int(counts[replicate]) for name, counts in result.traffic.items()}


@st.composite
def graphs(draw, max_agents=6):
    n_agents = draw(st.integers(1, max_agents))
    pairs = [(i, j) for j in range(n_agents) for i in range(j)]
    links = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    graph = nx.empty_graph(n_agents)
    graph.add_edges_from(links)
    return graph


@st.composite
def dynamic_networks(draw, n_rounds):
    graph = draw(graphs())
    probability = st.sampled_from([0.0, 0.3, 0.7, 1.0])
    first, second = draw(probability), draw(probability)
    kind = draw(st.sampled_from(["markov", "failures", "churn", "sequence"]))
    if kind == "markov":
        return bm.networks.EdgeMarkovian(graph, first, second)
    if kind == "failures":
        return bm.networks.LinkFailures(graph, first)
    if kind == "churn":
        return bm.networks.Churn(graph, first, second)
    empty = nx.empty_graph(len(graph))
    up = draw(st.lists(st.booleans(), min_size=n_rounds, max_size=n_rounds))
    return bm.networks.GraphSequence([graph if is_up else empty for is_up in up])


@st.composite
def problems(draw, networks=None, max_arms=4, discrete=True):
    """A problem on a drawn network; Bernoulli arms make equal rewards common."""
    network = draw(graphs() if networks is None else networks)
    n_agents = network.n_agents if isinstance(network, bm.networks.DynamicNetwork) else len(network)
    arm_set = st.lists(st.integers(0, max_arms - 1), min_size=1, unique=True)
    arm_sets = draw(st.lists(arm_set, min_size=n_agents, max_size=n_agents))
    held = sorted(set().union(*arm_sets))
    bernoulli = discrete and draw(st.booleans())
    law = bm.arms.Bernoulli if bernoulli else lambda mean: bm.arms.Gaussian(mean, 1.0)
    return bm.Problem(network, arm_sets, {arm: law(0.2 + 0.15 * arm) for arm in held})


def protocols():
    ttl = st.integers(1, 5)
    return st.one_of(
        st.just(bm.NoCooperation()),
        st.just(bm.Centralised()),
        st.just(bm.IRS()),
        st.builds(bm.Flooding, ttl),
        st.builds(bm.FwA, ttl),
        st.builds(lambda ttl, stop: bm.ProbabilisticFlooding(ttl, stop=stop), ttl, st.sampled_from([0.0, 0.5, 1.0])),
        st.builds(lambda ttl, fanout: bm.Gossip(ttl, fanout=fanout), ttl, st.integers(1, 3)),
    )


def emitting_protocols():
    """Protocols with any emission that they take."""
    emissions = st.sampled_from(
        [
            bm.EveryPull(),
            bm.Growth(0.0),
            bm.Growth(0.25),
            bm.Growth(1.0),
            bm.Growth(0.5, echoes=1),
            bm.Growth(1.0, echoes=3),
            bm.Contested(),
        ]
    )
    return st.builds(
        lambda protocol, emission: protocol if protocol.is_central else replace(protocol, emission=emission),
        protocols(),
        emissions,
    )
