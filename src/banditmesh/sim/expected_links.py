"""How many links a dynamic network has, about: memory is estimated before its rounds are made."""

from __future__ import annotations

from itertools import islice
from typing import Final

import numpy as np

from ..draws import Draws
from ..networks.dynamic import Churn, ContactTrace, DynamicNetwork, EdgeMarkovian, GraphSequence, LinkFailures

#: What share of all pairs is taken to be linked in networks of a user's own.
_SHARE: Final = 0.1


def links_at_a_time(network: DynamicNetwork) -> float:
    """About how many directed links are up in a round.

    Examples
    --------
    >>> import networkx
    >>> links_at_a_time(EdgeMarkovian(networkx.empty_graph(5), p=0.1, q=0.1))
    10.0
    """
    if isinstance(network, EdgeMarkovian):
        density = network.p / (network.p + network.q) if network.p > 0.0 else 0.0
        return 2.0 * max(network.start.n_links, density * _n_pairs(network))
    if isinstance(network, LinkFailures | Churn):
        return 2.0 * network.start.n_links
    if isinstance(network, GraphSequence | ContactTrace):
        return 2.0 * max(len(pairs) for pairs in network.rounds(Draws(0, 0)))
    return 2.0 * _SHARE * _n_pairs(network)


def links_ever_up(network: DynamicNetwork, n_rounds: int) -> float:
    """About how many directed links are up at least once in that many rounds.

    Examples
    --------
    >>> import networkx
    >>> links_ever_up(GraphSequence([networkx.path_graph(3), networkx.star_graph(2)]), 2)
    6.0
    """
    if isinstance(network, EdgeMarkovian):
        # A pair without a link stays without one for all rounds with this probability.
        stays = (1.0 - network.p) ** n_rounds
        return 2.0 * (_n_pairs(network) - stays * (_n_pairs(network) - links_at_a_time(network) / 2))
    if isinstance(network, LinkFailures | Churn):
        return 2.0 * network.start.n_links
    if isinstance(network, GraphSequence | ContactTrace):
        rounds = islice(network.rounds(Draws(0, 0)), n_rounds)
        codes = np.unique(np.concatenate([pairs @ np.array([network.n_agents, 1]) for pairs in rounds]))
        return 2.0 * len(codes)
    return min(2.0 * _n_pairs(network), links_at_a_time(network) * n_rounds)


def _n_pairs(network: DynamicNetwork) -> float:
    return network.n_agents * (network.n_agents - 1) / 2
