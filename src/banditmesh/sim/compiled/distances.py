"""How far a message can get on a static network: what rings of messages must hold, however high the ttl is."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...networks.csr import Links


def most_hops(links: Links, relays: NDArray[np.bool_]) -> int:
    """After at most how many hops a message has ended, if exactly the agents in `relays` relay it, on first receipt.

    Between two agents of a connected part of the relays there are at most twice as many hops as from any one of them to
    the farthest. The origin's own hop comes before these, and one more after the last relay that has it.

    Examples
    --------
    >>> path = Links.from_pairs(5, [(0, 1), (1, 2), (2, 3), (3, 4)])
    >>> most_hops(path, np.ones(5, dtype=bool)), most_hops(path, np.zeros(5, dtype=bool))
    (10, 1)
    """
    from scipy.sparse.csgraph import connected_components, dijkstra

    if not relays.any():
        return 1
    among_relays = links.matrix()[relays][:, relays]
    _, parts = connected_components(among_relays, directed=False)
    _, roots = np.unique(parts, return_index=True)
    hops = dijkstra(among_relays, unweighted=True, indices=roots, min_only=True)
    return 2 * int(hops.max()) + 2
