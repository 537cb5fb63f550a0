"""The links that a figure of a network shows, static or dynamic."""

from __future__ import annotations

from itertools import islice
from typing import Final

import numpy as np

from ..draws import Draws
from .csr import Int32s, Links
from .dynamic.base import DynamicNetwork

_MAX_ROUNDS: Final = 50


def usual_links(network: Links | DynamicNetwork) -> Int32s:
    """The links of a network, (links, 2); for a dynamic one those of its first rounds, until all agents may have some.

    Examples
    --------
    >>> import networkx
    >>> from banditmesh.networks import LinkFailures
    >>> usual_links(LinkFailures(networkx.path_graph(3), failure=0.0)).tolist()
    [[0, 1], [1, 2]]
    """
    if isinstance(network, Links):
        return network.pairs()
    pairs = np.empty((0, 2), dtype=np.int32)
    for links in islice(network.rounds(Draws(0, 0)), _MAX_ROUNDS):
        pairs = np.unique(np.concatenate([pairs, links]), axis=0)
        if len(pairs) >= network.n_agents - 1:
            break
    return pairs
