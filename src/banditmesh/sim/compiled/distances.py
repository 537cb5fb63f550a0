"""How far messages can get on a static network, and how many of them an agent accepts."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from ...networks.csr import Links
from .bitsets import WORD, as_sets

#: How many origins' messages are followed at once.
_ORIGINS_AT_ONCE: Final = 64


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


def most_accepted(links: Links, has_arm: NDArray[np.bool_], relays: NDArray[np.bool_]) -> int:
    """How many messages an agent accepts at most in as many rounds as a message lives, each of them once.

    Agents make a message a round, of any of their arms; who relays one of arm a after hop h + 1 is
    `relays[1 if has_arm[agent, a] else 0, h, agent]`. An origin's messages reach an agent after a number of hops that
    depends on their arm, so those that come within `life` rounds were made within as many, and the difference more.

    Examples
    --------
    >>> path, everyone = Links.from_pairs(4, [(0, 1), (1, 2), (2, 3)]), np.ones((4, 1), dtype=bool)
    >>> flooding = np.ones((2, 2, 4), dtype=bool)
    >>> absorbing = np.zeros((2, 2, 4), dtype=bool)
    >>> most_accepted(path, everyone, flooding), most_accepted(path, everyone, absorbing)
    (8, 2)
    """
    n_agents, degrees = len(has_arm), links.degrees
    held = as_sets(has_arm)[:, : -(-has_arm.shape[1] // WORD)]
    linked, life = degrees > 0, 0
    n_origins, differences = np.zeros(n_agents, dtype=np.int64), np.zeros(n_agents, dtype=np.int64)
    for first in range(0, n_agents, _ORIGINS_AT_ONCE):
        origins = np.arange(first, min(first + _ORIGINS_AT_ONCE, n_agents))
        seen = np.zeros((len(origins), *held.shape), dtype=np.uint64)
        sending, new = seen.copy(), seen.copy()
        sending[origins - first, origins] = held[origins]
        first_hops = last_hops = np.zeros(seen.shape[:2], dtype=np.int64)
        for hop in range(relays.shape[1]):
            if not sending.any():
                break
            life = max(life, hop + 1)
            if linked.any():
                new[:, linked] = np.bitwise_or.reduceat(sending[:, links.indices], links.indptr[:-1][linked], axis=1)
            new &= ~seen
            seen |= new
            is_new = new.any(axis=2)
            last_hops = np.where(is_new, hop + 1, last_hops)
            first_hops = np.where(is_new & (first_hops == 0), hop + 1, first_hops)
            others, holders = relays[:, hop, :, None]
            sending = new & (np.where(holders, held, 0) | np.where(others, ~held, 0)).astype(np.uint64)
        n_origins += (last_hops > 0).sum(axis=0)
        differences += (last_hops - first_hops).sum(axis=0)
    return int((life * n_origins + differences).max())
