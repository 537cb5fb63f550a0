"""The heaviest independent sets of small graphs, exactly, or bounded from above where the search is cut short.

A bound on regret may only use a value that no independent set exceeds, never the best set found. So the search returns
such a value whenever it is stopped: each unsolved part then counts by cliques that cover it, since an independent set
has at most one vertex of each.

A component is solved by taking a vertex or leaving it. A vertex that outweighs all its neighbours together, or each of
them if they are a clique, is in some heaviest set. Solved parts are cached: the sets needed are nested, one for each
distinct gap, and share most of their parts.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence

from .cliques import Graph, components, is_clique, members

#: The depth of nested choices; deeper ones are cut short.
_DEEPEST = 75


class IndependentSets:
    """The weights of heaviest independent sets, in parts of one graph.

    Parameters
    ----------
    graph : list of int
        Neighbour masks.
    weights : sequence of float
        Of the vertices, all positive, none less than the one before it.
    deadline : float
        On the clock of `time.monotonic`; the search is cut short there.
    most_parts : float
        The search is also cut short when it has solved this many parts.

    Examples
    --------
    In a ring of five the heaviest set has two vertices, though three cliques are needed to cover it:

    >>> ring = [0b10010, 0b00101, 0b01010, 0b10100, 0b01001]
    >>> IndependentSets(ring, [1.0, 1.0, 1.0, 1.0, 2.0]).heaviest(0b11111)
    3.0
    """

    def __init__(
        self, graph: Graph, weights: Sequence[float], deadline: float = math.inf, most_parts: float = math.inf
    ) -> None:
        self._graph = graph
        self._weights = weights
        self._deadline = deadline
        self._most_parts = most_parts
        self._known: dict[int, float] = {}
        #: Whether no part was cut short, so that all values are those of independent sets.
        self.exact = True

    def heaviest(self, within: int) -> float:
        """The weight of the heaviest independent set in `within`, or more if the search was cut short."""
        return self._sum(within, 0)

    def _sum(self, within: int, depth: int) -> float:
        return sum(self._component(part, depth) for part in components(self._graph, within))

    def _component(self, within: int, depth: int) -> float:
        found = self._known.get(within)
        if found is None:
            found = self._known[within] = self._solve(within, depth)
        return found

    def _solve(self, within: int, depth: int) -> float:
        graph, weights = self._graph, self._weights
        taken, rest = self._take(within)
        if taken or not rest:
            return taken + self._sum(rest, depth)
        if len(self._known) >= self._most_parts or depth > _DEEPEST or time.monotonic() >= self._deadline:
            self.exact = False
            return clique_bound(graph, weights, within)
        branch = max(members(within), key=lambda v: (graph[v] & within).bit_count())
        without = within & ~(1 << branch)
        taken = weights[branch] + self._sum(without & ~graph[branch], depth + 1)
        return max(taken, self._sum(without, depth + 1))

    def _take(self, within: int) -> tuple[float, int]:
        """The weight of vertices that are in some heaviest set, and all vertices but these and their neighbours."""
        graph, weights = self._graph, self._weights
        total, again = 0.0, True
        while again:
            again = False
            for v in members(within):
                near = graph[v] & within
                if not within >> v & 1 or (near and weights[v] < weights[near.bit_length() - 1]):
                    continue
                if weights[v] >= sum(weights[w] for w in members(near)) or is_clique(graph, near):
                    total += weights[v]
                    within &= ~(near | 1 << v)
                    again = True
        return total, within


def clique_bound(graph: Graph, weights: Sequence[float], within: int) -> float:
    """An upper bound on an independent set in `within`: the heaviest vertices of cliques that cover it, found greedily.

    Examples
    --------
    >>> clique_bound([0b110, 0b101, 0b011], [1.0, 2.0, 3.0], 0b111)
    3.0
    """
    total = 0.0
    cliques: list[int] = []
    for v in reversed(list(members(within))):
        for place, clique in enumerate(cliques):
            if not clique & ~graph[v]:
                cliques[place] |= 1 << v
                break
        else:
            cliques.append(1 << v)
            total += weights[v]
    return total
