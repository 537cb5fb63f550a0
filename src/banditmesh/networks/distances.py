"""How far apart agents are: the longest of all shortest paths."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

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
    from scipy.sparse.csgraph import shortest_path

    matrix = _matrix(links)
    if links.n_agents <= _ALL_PAIRS:
        hops = shortest_path(matrix, method="D", unweighted=True)
        return int(hops[np.isfinite(hops)].max(initial=0))
    longest = 0
    start = int(np.argmax(links.degrees))
    for _ in range(_SWEEPS):
        reached = _hops_from(links, start)
        if reached.max() <= longest:
            break
        longest, start = int(reached.max()), int(np.argmax(reached))
    return longest


def _matrix(links: Links) -> Any:
    from scipy.sparse import csr_matrix

    ones = np.ones(len(links.indices), dtype=np.int8)
    return csr_matrix((ones, links.indices, links.indptr), shape=(links.n_agents, links.n_agents))


def _hops_from(links: Links, start: int) -> NDArray[np.int64]:
    """Breadth first from one agent; -1 for agents it cannot reach."""
    from scipy.sparse.csgraph import breadth_first_order

    order, before = breadth_first_order(_matrix(links), start, directed=False)
    hops = np.full(links.n_agents, -1, dtype=np.int64)
    hops[start] = 0
    for agent in order[1:]:
        hops[agent] = hops[before[agent]] + 1
    return hops
