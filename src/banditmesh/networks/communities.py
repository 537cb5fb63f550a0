"""Communities: groups of agents with many links among them and few to others, found quickly and always alike.

Agents move to the community that raises modularity most (Blondel and others, 2008), about half of those that gain at a
time, so that all gains of a step are found at once; then communities become agents, and so on, until nothing moves.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

#: The most steps before communities are taken as they are.
_MAX_STEPS: Final = 40


def communities(n_agents: int, pairs: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
    """The community of each agent, numbered from 0; agents without links are alone.

    Parameters
    ----------
    n_agents : int
        How many agents there are.
    pairs : int array (links, 2)
        Which of them are linked, each pair once.

    Examples
    --------
    >>> communities(6, np.array([[0, 1], [1, 2], [0, 2], [2, 3], [3, 4], [4, 5], [3, 5]])).tolist()
    [0, 0, 0, 1, 1, 1]
    """
    found = np.arange(n_agents)
    ends = np.concatenate([pairs, pairs[:, ::-1]]).astype(np.int64).reshape(-1, 2)
    weights: NDArray[np.float64] = np.ones(len(ends))
    random = np.random.default_rng(0)
    n_nodes = n_agents
    while len(ends):
        labels = np.unique(_moved(n_nodes, ends, weights, random), return_inverse=True)[1]
        n_labels = int(labels.max()) + 1
        found = labels[found]
        if n_labels == n_nodes:
            break
        keys, places = np.unique(labels[ends[:, 0]] * n_labels + labels[ends[:, 1]], return_inverse=True)
        ends = np.stack([keys // n_labels, keys % n_labels], axis=1)
        weights = np.bincount(places, weights).astype(np.float64)
        n_nodes = n_labels
    # Numbered by their first agents, whatever they were called on the way.
    _, first, found = np.unique(found, return_index=True, return_inverse=True)
    numbers: NDArray[np.int64] = np.argsort(np.argsort(first))[found]
    return numbers


def _moved(
    n_nodes: int, ends: NDArray[np.int64], weights: NDArray[np.float64], random: np.random.Generator
) -> NDArray[np.int64]:
    """Where nodes that are alone at first move to."""
    degrees = np.bincount(ends[:, 0], weights, n_nodes)
    labels = np.arange(n_nodes)
    is_between = ends[:, 0] != ends[:, 1]
    (senders, receivers), weights = ends[is_between].T, weights[is_between]
    for _ in range(_MAX_STEPS if len(senders) else 0):
        totals = np.bincount(labels, degrees, n_nodes) / degrees.sum()
        keys, places = np.unique(senders * n_nodes + labels[receivers], return_inverse=True)
        nodes, to = np.divmod(keys, n_nodes)
        own = degrees / degrees.sum()
        stays = labels[nodes] == to
        gains = np.bincount(places, weights) - degrees[nodes] * (totals[to] - np.where(stays, own[nodes], 0.0))
        now = -degrees * (totals[labels] - own)
        now[nodes[stays]] = gains[stays]
        order = np.lexsort((gains, nodes))
        best = order[np.flatnonzero(np.diff(nodes[order], append=-1))]
        best = best[gains[best] > now[nodes[best]] + 1e-9]
        if not len(best):
            break
        moving = best[random.random(len(best)) < 0.5]
        labels[nodes[moving]] = to[moving]
    return labels
