"""Clique covers with as few cliques as possible: the paper's `theta`, the clique covering number.

A clique cover of a graph is a colouring of its complement. "greedy" is the paper's own approximation, a colouring
that takes the largest degree first; "dsatur" takes the most constrained vertex first; "exact" is a set covering by
maximal cliques. Each comes with a lower bound, at least the size of an independent set, which no clique meets twice.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from .. import checks
from . import setcover
from .cliques import Graph, components, independent_set, maximal_cliques, members, read_graph
from .setcover import Columns, Covering

METHODS = ("exact", "dsatur", "greedy")
#: Beyond this many columns they are generated instead of listed.
MAX_COLUMNS = 100_000


@dataclass(frozen=True)
class CliqueCover:
    """A partition of a graph into cliques.

    Attributes
    ----------
    cliques : tuple of tuples
        The vertices of every clique.
    lower : int
        No cover has fewer cliques than this.

    Examples
    --------
    >>> CliqueCover(cliques=((0, 1), (2,)), lower=2).is_minimum
    True
    """

    cliques: tuple[tuple[Any, ...], ...]
    lower: int

    @property
    def size(self) -> int:
        """The number of cliques."""
        return len(self.cliques)

    @property
    def is_minimum(self) -> bool:
        """Whether it is proven that no cover has fewer cliques."""
        return self.lower == self.size


def clique_cover(graph: Any, method: str = "exact", *, time_limit: float = 60.0) -> CliqueCover:
    """Cover a graph with few cliques.

    Parameters
    ----------
    graph : networkx.Graph or symmetric boolean array
        Self-loops are ignored.
    method : str
        "exact", "dsatur" or "greedy"; greedy is the colouring of the complement that
        `networkx.greedy_color(strategy="largest_first")` finds.
    time_limit : float
        Seconds after which "exact" returns the best cover so far, and its lower bound.

    Returns
    -------
    CliqueCover

    Examples
    --------
    >>> import banditmesh as bm, networkx as nx
    >>> cover = bm.theory.clique_cover(nx.cycle_graph(5))
    >>> cover.size, cover.lower, cover.is_minimum
    (3, 3, True)
    """
    checks.choice("method", method, METHODS)
    names, masks = read_graph(graph)
    deadline = time.monotonic() + checks.positive("time_limit", time_limit)
    cliques, lower = cover_masks(masks, method, deadline)
    return CliqueCover(tuple(tuple(names[v] for v in members(clique)) for clique in cliques), lower)


def cover_masks(graph: Graph, method: str, deadline: float) -> tuple[list[int], int]:
    """A clique cover and a lower bound on the size of any, by masks."""
    if not graph:
        return [], 0
    everyone = (1 << len(graph)) - 1
    if method != "exact":
        cover = greedy_cover(graph) if method == "greedy" else dsatur_cover(graph, everyone)
        return cover, len(independent_set(graph, everyone))
    kept, joins = _reduce(graph, everyone)
    cliques: list[int] = []
    lower = 0
    for component in components(graph, kept):
        covering = _exact(graph, component, deadline)
        cliques += covering.columns
        lower += round(covering.lower)
    for v, u in reversed(joins):
        place = next(place for place, clique in enumerate(cliques) if clique >> u & 1)
        cliques[place] |= 1 << v
    return partition(cliques), lower


def greedy_cover(graph: Graph) -> list[int]:
    """The paper's cover: vertices by falling degree in the complement, each put in the first clique that it fits."""
    cliques: list[int] = []
    for v in sorted(range(len(graph)), key=lambda v: graph[v].bit_count()):
        place = next((place for place, clique in enumerate(cliques) if not clique & ~graph[v]), None)
        if place is None:
            cliques.append(1 << v)
        else:
            cliques[place] |= 1 << v
    return cliques


def dsatur_cover(graph: Graph, within: int) -> list[int]:
    """Brelaz's order: next is the vertex that fits the fewest cliques, then the one with the fewest neighbours left."""
    cliques: list[int] = []
    closed: dict[int, set[int]] = {v: set() for v in members(within)}
    degrees = {v: (graph[v] & within).bit_count() for v in closed}
    while closed:
        v = min(closed, key=lambda v: (-len(closed[v]), degrees[v]))
        shut = closed.pop(v)
        within ^= 1 << v
        for w in members(graph[v] & within):
            degrees[w] -= 1
        place = next((place for place in range(len(cliques)) if place not in shut), len(cliques))
        if place == len(cliques):
            cliques.append(0)
        cliques[place] |= 1 << v
        for w in members(within & ~graph[v]):
            closed[w].add(place)
    return cliques


def _reduce(graph: Graph, within: int) -> tuple[int, list[tuple[int, int]]]:
    """Drop every vertex v that is linked to a u and to all of u's neighbours: v can join any clique of u's."""
    joins = []
    for v in list(members(within)):
        closed = (graph[v] | 1 << v) & within
        for u in members(graph[v] & within):
            if not (graph[u] & within) & ~closed:
                within ^= 1 << v
                joins.append((v, u))
                break
    return within, joins


def _exact(graph: Graph, within: int, deadline: float) -> Covering:
    start = dsatur_cover(graph, within)
    known = Covering(tuple(start), len(start), len(independent_set(graph, within)))
    if known.is_optimal or time.monotonic() >= deadline:
        return known

    def solve(part: Graph, _: list[int], start: Covering) -> Covering:
        everyone = (1 << len(part)) - 1

        def columns(prices: list[float] | None, below: float, until: float) -> Iterator[Columns]:
            return ({clique: 1.0} for clique in maximal_cliques(part, everyone, prices, 1.0 - below, until))

        return solve_by(columns, len(part), dict.fromkeys(start.columns, 1.0), start, whole=True, deadline=deadline)

    return solve_within(graph, within, known, solve)


def solve_within(
    graph: Graph, within: int, known: Covering, solve: Callable[[Graph, list[int], Covering], Covering]
) -> Covering:
    """The cover of a part of a graph that `solve` finds; it gets the part, whose vertices are which, and `known`."""
    place = {v: row for row, v in enumerate(members(within))}
    part = [moved(graph[v] & within, place) for v in place]
    start = replace(known, columns=tuple(moved(clique, place) for clique in known.columns))
    found, back = solve(part, list(place), start), dict(enumerate(place))
    return replace(found, columns=tuple(moved(clique, back) for clique in found.columns))


def moved(mask: int, place: Mapping[int, int]) -> int:
    """The same vertices at other places."""
    return sum(1 << place[v] for v in members(mask))


def solve_by(
    columns: Callable[[list[float] | None, float, float], Iterator[Columns]],
    n_rows: int,
    start: Columns,
    known: Covering,
    *,
    whole: bool,
    deadline: float,
) -> Covering:
    """The best cover by columns: by all of them or, if these are too many, by those that prices make attractive.

    `columns(prices, below, deadline)` gives those whose reduced cost is under `below`, and all if prices are None.
    """

    def search(prices: list[float], below: float, most: int, until: float) -> tuple[Columns, bool]:
        return listed(columns(prices, below, until), most)

    found, complete = listed(columns(None, 0.0, deadline), MAX_COLUMNS)
    if complete:
        return setcover.solve(n_rows, found, known, whole=whole, deadline=deadline)
    return setcover.generate(n_rows, start, known, search, whole=whole, deadline=deadline)


def listed(columns: Iterable[Columns], most: int) -> tuple[Columns, bool]:
    """The columns together, and whether these are all of them, neither too many nor too slow to list."""
    found: Columns = {}
    try:
        for column in columns:
            found |= column
            if len(found) > most:
                return found, False
    except TimeoutError:
        return found, False
    return found, True


def partition(cliques: list[int]) -> list[int]:
    """Every vertex stays only in the first of its cliques."""
    taken, parts = 0, []
    for clique in cliques:
        part = clique & ~taken
        taken |= clique
        if part:
            parts.append(part)
    return parts
