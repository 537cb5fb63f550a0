"""How far apart agents are: the longest of all shortest paths."""

from __future__ import annotations

from typing import Final

import numpy as np

from .csr import Links

#: Up to this many agents all distances are computed; beyond, a few searches give a lower bound.
_ALL_PAIRS: Final = 2000
_SWEEPS: Final = 8


def diameter(links: Links) -> int:
    """The most hops between two agents that can reach each other at all; 0 without links.

    For more than 2,000 agents a lower bound: repeatedly search for the farthest agent from the farthest one found.

    Examples
    --------
    >>> import banditmesh as bm
    >>> diameter(bm.networks.as_links(bm.networks.ring(10))[1])
    5
    """
    from scipy.sparse.csgraph import dijkstra

    matrix = links.matrix()
    if links.n_agents <= _ALL_PAIRS:
        hops = dijkstra(matrix, unweighted=True)
        return int(hops[np.isfinite(hops)].max(initial=0))
    longest = 0
    start = int(np.argmax(links.degrees))
    for _ in range(_SWEEPS):
        [hops] = dijkstra(matrix, unweighted=True, indices=[start])
        # Agents that it cannot reach are infinitely far.
        reached = np.where(np.isfinite(hops), hops, -1.0)
        if reached.max() <= longest:
            break
        longest, start = int(reached.max()), int(np.argmax(reached))
    return longest
