"""A spanning tree of a network, and who has what beyond each of its links."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..networks.csr import Links
from ..problem import Problem

#: Payload of a control message in bytes.
CONTROL_BYTES = 16


@dataclass(frozen=True, eq=False)
class Tree:
    """A spanning tree, or one for each component.

    Attributes
    ----------
    links : Links
        The links of the tree.
    wants : bool array (directed links, arms)
        Which arms an agent beyond each link has, in the order of `links.indices`.
    n_control : int
        How many messages it takes to make the tree: an invitation over every link that is not in it, both ways, and
        over those of the tree one way; then every agent but the roots tells its parent which arms its side has, and
        hears which the other side has.
    """

    links: Links
    wants: NDArray[np.bool_]
    n_control: int

    def wanted_of(self, number: int) -> dict[int, set[int]]:
        """For each neighbour of an agent in the tree, in their order, the arms that are held beyond it."""
        first, last = self.links.indptr[number], self.links.indptr[number + 1]
        wanted = [set(np.flatnonzero(row).tolist()) for row in self.wants[first:last]]
        return dict(zip(self.links.indices[first:last].tolist(), wanted, strict=True))


def spanning_tree(problem: Problem) -> Tree:
    """Breadth first from the agent with the most neighbours, the first of equals, in each component.

    An agent's parent is its lowest-numbered neighbour that is one hop closer to the root.

    Examples
    --------
    >>> import banditmesh as bm
    >>> star_and_link = Links.from_pairs(4, [(0, 1), (1, 2), (1, 3), (2, 3)])
    >>> tree = spanning_tree(bm.Problem(star_and_link, [[0], [1], [1], [2]], [bm.arms.Gaussian(0.0, 1.0)] * 3))
    >>> tree.links.neighbour_lists(), tree.n_control
    ([[1], [0, 2, 3], [1], [1]], 11)
    >>> tree.wants[0].tolist()
    [False, True, True]
    """
    links = problem.network
    assert isinstance(links, Links)  # any other is refused by `check_network`
    hops = _hops_from_roots(links)
    senders = np.repeat(np.arange(links.n_agents), links.degrees)
    closer = hops[links.indices] == hops[senders] - 1
    parent = np.full(links.n_agents, links.n_agents, dtype=np.int64)
    np.minimum.at(parent, senders[closer], links.indices[closer])
    children = np.flatnonzero(hops > 0)
    tree = Links.from_pairs(links.n_agents, np.stack([parent[children], children], axis=1))
    n_control = 2 * links.n_links - len(children) + 2 * len(children)
    return Tree(tree, _arms_beyond(tree, hops, parent, problem), n_control)


def _hops_from_roots(links: Links) -> NDArray[np.int64]:
    """How far each agent is from the root of its component."""
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import connected_components

    n_agents = links.n_agents
    ones = np.ones(len(links.indices), dtype=np.int8)
    n_components, component = connected_components(
        csr_matrix((ones, links.indices, links.indptr), (n_agents, n_agents))
    )
    # Of each component the agent with the highest degree comes first, the lowest number among equals.
    order = np.lexsort((np.arange(n_agents), -links.degrees, component))
    frontier = order[np.searchsorted(component[order], np.arange(n_components))]
    hops = np.full(n_agents, -1, dtype=np.int64)
    hops[frontier] = 0
    while len(frontier):
        reached = np.concatenate([links.indices[links.indptr[v] : links.indptr[v + 1]] for v in frontier.tolist()])
        distance = hops[frontier[0]] + 1
        frontier = np.unique(reached[hops[reached] < 0]).astype(np.int64)
        hops[frontier] = distance
    return hops


def _arms_beyond(
    tree: Links, hops: NDArray[np.int64], parent: NDArray[np.int64], problem: Problem
) -> NDArray[np.bool_]:
    # How many holders each agent's side has: from the leaves to the roots its own, then all but its own.
    n_agents = tree.n_agents
    below = np.zeros((n_agents, problem.n_arms), dtype=np.int32)
    below[problem.owners, problem.arm_indices] = 1
    downwards = np.argsort(hops, kind="stable")
    levels = np.split(downwards, np.flatnonzero(np.diff(hops[downwards])) + 1)[1:]
    for level in levels[::-1]:
        np.add.at(below, parent[level], below[level])
    whole = below.copy()
    for level in levels:
        whole[level] = whole[parent[level]]
    senders = np.repeat(np.arange(n_agents), tree.degrees)
    receivers = tree.indices
    is_down = hops[receivers] > hops[senders]
    n_beyond = np.where(is_down[:, None], below[receivers], whole[senders] - below[senders])
    beyond: NDArray[np.bool_] = n_beyond > 0
    return beyond
