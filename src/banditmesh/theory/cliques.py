"""Small graphs as bit masks: cliques, independent sets, components.

Vertex v is bit v. `graph[v]` is the mask of the neighbours of v, without v itself. Masks are Python integers, so a
graph may have any number of vertices and set operations take a machine word for every 64 of them.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError

Graph = list[int]


def read_graph(graph: Any) -> tuple[list[Any], Graph]:
    """The vertices and neighbour masks of a networkx graph or a symmetric boolean array."""
    if hasattr(graph, "adj") and hasattr(graph, "is_directed"):
        names = list(graph)
        if graph.is_directed():
            raise InputError("graph must be undirected, got a directed one; convert it with graph.to_undirected()")
        place = {name: v for v, name in enumerate(names)}
        return names, [sum(1 << place[w] for w in graph.adj[v] if w != v) for v in names]
    array = np.asarray(graph)
    if array.dtype != np.bool_ or array.ndim != 2 or array.shape[0] != array.shape[1] or (array != array.T).any():
        raise InputError(
            f"graph must be a networkx graph or a symmetric boolean array, got {array.dtype} {array.shape}"
        )
    return list(range(len(array))), neighbour_masks(array)


def neighbour_masks(adjacency: NDArray[np.bool_]) -> Graph:
    """Neighbour masks of a symmetric boolean array; its diagonal is ignored."""
    rows = np.packbits(adjacency, axis=1, bitorder="little")
    return [int.from_bytes(row.tobytes(), "little") & ~(1 << v) for v, row in enumerate(rows)]


def permuted(graph: Graph, order: Sequence[int]) -> Graph:
    """The same graph with its vertices in another order."""
    n_bytes = -(-len(graph) // 8)
    packed = np.frombuffer(b"".join(mask.to_bytes(n_bytes, "little") for mask in graph), dtype=np.uint8)
    joined = np.unpackbits(packed.reshape(len(graph), n_bytes), axis=1, count=len(graph), bitorder="little")
    return neighbour_masks(joined[np.ix_(order, order)].view(np.bool_))


def members(mask: int) -> Iterator[int]:
    """The vertices of a mask, ascending."""
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest


def components(graph: Graph, within: int) -> Iterator[int]:
    """The connected components of the subgraph on `within`, as masks."""
    while within:
        found = frontier = within & -within
        while frontier:
            reached = 0
            for v in members(frontier):
                reached |= graph[v]
            frontier = reached & within & ~found
            found |= frontier
        yield found
        within &= ~found


def is_clique(graph: Graph, within: int) -> bool:
    """Whether all vertices of `within` are joined to each other."""
    return all(not within & ~(graph[v] | 1 << v) for v in members(within))


def maximal_cliques(
    graph: Graph,
    within: int,
    weights: Sequence[float] | None = None,
    above: float = 0.0,
    deadline: float = math.inf,
) -> Iterator[int]:
    """All cliques that are maximal in the subgraph on `within`, by Bron and Kerbosch with pivots.

    With weights, none of them negative, only those that weigh more than `above`. The empty set is the one maximal
    clique of the empty subgraph. Past the deadline, on the clock of `time.monotonic`, it raises TimeoutError.
    """
    steps = 0
    # A frame holds the clique so far, its weight, and the vertices that may still join, were tried, and are to be
    # tried.
    stack = [(0, 0.0, within, 0, -1)]
    while stack:
        clique, weight, may_join, tried, branches = stack.pop()
        steps += 1
        if steps % 256 == 0 and time.monotonic() >= deadline:
            raise TimeoutError
        if branches == -1:
            if not may_join:
                if not tried and (weights is None or weight > above):
                    yield clique
                continue
            if weights is not None and weight + _heaviest(graph, may_join, weights, above - weight) <= above:
                continue
            branches = may_join & ~graph[_pivot(graph, may_join, tried)]
            if not branches:  # a vertex tried before would extend all that follows
                continue
        lowest = branches & -branches
        v = lowest.bit_length() - 1
        if branches != lowest:
            stack.append((clique, weight, may_join ^ lowest, tried | lowest, branches ^ lowest))
        heavier = weight if weights is None else weight + weights[v]
        stack.append((clique | lowest, heavier, may_join & graph[v], tried & graph[v], -1))


def _pivot(graph: Graph, may_join: int, tried: int) -> int:
    """The vertex with the most neighbours among those that may join: the fewest branches remain."""
    best, most = 0, -1
    for v in members(may_join | tried):
        degree = (may_join & graph[v]).bit_count()
        if degree > most:
            best, most = v, degree
    return best


def _heaviest(graph: Graph, within: int, weights: Sequence[float], enough: float) -> float:
    """A bound on the weight of cliques in `within`; the careful one is computed only if the plain one fails."""
    total = sum(weights[v] for v in members(within))
    if total <= enough:
        return total
    # A clique has at most one vertex of every independent set.
    total = 0.0
    while within:
        candidates, heaviest = within, 0.0
        while candidates:
            lowest = candidates & -candidates
            v = lowest.bit_length() - 1
            heaviest = max(heaviest, weights[v])
            within ^= lowest
            candidates &= ~(graph[v] | lowest)
        total += heaviest
    return total


def independent_set(graph: Graph, within: int, weights: Sequence[float] | None = None) -> list[int]:
    """A maximal independent set, greedily: the fewest neighbours for its weight first."""
    degrees = {v: (graph[v] & within).bit_count() for v in members(within)}
    chosen = []
    while degrees:
        best = min(degrees, key=lambda v: (degrees[v] + 1) / (1.0 if weights is None else weights[v]))
        chosen.append(best)
        gone = (graph[best] | 1 << best) & within
        within &= ~gone
        for v in members(gone):
            del degrees[v]
            for w in members(graph[v] & within):
                degrees[w] -= 1
    return chosen
