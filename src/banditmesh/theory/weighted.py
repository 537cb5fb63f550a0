"""Clique covers of least cost, the covers behind the paper's `Delta_a^g` (Equations 3 and 5).

A clique costs `2 / smallest gap - 1 / largest gap` of its agents; the least total cost of a cover is `1 / Delta_a^g`.
Cost depends on the two extreme gaps alone and grows with inclusion. So covering is as good as partitioning, and among
the cliques with the same two extremes only the maximal ones matter: these, and single agents, are the columns of a set
covering. A cover with the fewest cliques need not be the cheapest one: gaps .1 and 1 cost 11 apart and 19 together.
An independent set bounds the cost from below by the sum of its `1 / gap`, because every clique meets it at most once
and costs at least the largest `1 / gap` in it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from numpy.typing import ArrayLike

from .. import checks
from ..errors import InputError
from . import covers, setcover
from .cliques import Graph, components, independent_set, is_clique, maximal_cliques, members, permuted, read_graph
from .setcover import Columns, Covering


@dataclass(frozen=True)
class WeightedCover:
    """A partition of a graph into cliques, and its cost.

    Attributes
    ----------
    cliques : tuple of tuples
        The vertices of every clique.
    cost : float
        The sum over cliques of `2 / smallest gap - 1 / largest gap`.
    lower : float
        No cover costs less than this.

    Examples
    --------
    >>> WeightedCover(cliques=((0, 1), (2,)), cost=5.0, lower=4.5).is_minimum
    False
    """

    cliques: tuple[tuple[Any, ...], ...]
    cost: float
    lower: float

    @property
    def is_minimum(self) -> bool:
        """Whether it is proven, to the solver's precision, that no cover costs less."""
        return self.lower == self.cost


def weighted_cover(
    graph: Any, gaps: Mapping[Any, float] | ArrayLike, method: str = "exact", *, time_limit: float = 60.0
) -> WeightedCover:
    """Cover a graph with cheap cliques, which cost `2 / smallest gap - 1 / largest gap` each.

    Parameters
    ----------
    graph : networkx.Graph or symmetric boolean array
        Which agents hear each other; self-loops are ignored.
    gaps : mapping or array
        The positive gap of every vertex: by name, or in the order of the vertices.
    method : str
        "exact"; or, quickly, the cheaper of a first fit by gap and of the "dsatur" or "greedy" clique cover.
    time_limit : float
        Seconds after which "exact" returns the best cover so far, and its lower bound.

    Returns
    -------
    WeightedCover

    Examples
    --------
    >>> import banditmesh as bm, networkx as nx
    >>> cover = bm.theory.weighted_cover(nx.complete_graph(3), [0.1, 0.9, 1.0])
    >>> cover.cliques, round(cover.cost, 6)
    (((0,), (1, 2)), 11.222222)
    """
    checks.choice("method", method, covers.METHODS)
    names, masks = read_graph(graph)
    values = [gaps[name] for name in names] if isinstance(gaps, Mapping) else checks.floats("gaps", gaps).tolist()
    if len(values) != len(names) or not all(0 < gap < math.inf for gap in values):
        raise InputError(f"gaps must be one positive number for each of {len(names)} vertices, got {values!r}")
    deadline = time.monotonic() + checks.positive("time_limit", time_limit)
    found = cover_masks(masks, values, method, deadline)
    cliques = tuple(tuple(names[v] for v in members(clique)) for clique in found.columns)
    return WeightedCover(cliques, found.cost, found.lower)


def clique_cost(gaps: Sequence[float]) -> float:
    """What a clique of agents with these gaps costs.

    Examples
    --------
    >>> clique_cost([0.5, 0.25]), clique_cost([0.5])
    (6.0, 2.0)
    """
    return 2.0 / min(gaps) - 1.0 / max(gaps)


def cover_masks(
    graph: Graph, gaps: Sequence[float], method: str, deadline: float, known: Sequence[int] = ()
) -> Covering:
    """A cheap cover by masks; `known` may give a clique cover to start with."""
    order = sorted(range(len(graph)), key=lambda v: gaps[v])
    place = {v: row for row, v in enumerate(order)}
    ranked = permuted(graph, order)
    inverse = [1.0 / gaps[v] for v in order]
    everyone = (1 << len(graph)) - 1
    if not known and method == "greedy":
        known = covers.greedy_cover(graph)
    start = [covers.moved(clique, place) for clique in known]
    found: list[int] = []
    lower = 0.0
    for component in components(ranked, everyone):
        if is_clique(ranked, component):
            runs = _intervals(inverse, component)
            found += runs
            lower += math.fsum(_cost(run, inverse) for run in runs)
            continue
        parts = [clique & component for clique in start if clique & component]
        covering = _start(ranked, inverse, component, parts or covers.dsatur_cover(ranked, component))
        if method == "exact" and not covering.is_optimal:
            covering = _exact(ranked, inverse, component, covering, deadline)
        found += covering.columns
        lower += covering.lower
    parts = covers.partition(found)
    cost = math.fsum(_cost(part, inverse) for part in parts)
    if cost - lower <= setcover.TOLERANCE * cost:
        lower = cost
    return Covering(tuple(covers.moved(part, dict(enumerate(order))) for part in parts), cost, lower)


def _cost(clique: int, inverse: Sequence[float]) -> float:
    """The cost of a clique of vertices ranked by gap, the smallest first; `inverse` holds 1 / gap."""
    return 2.0 * inverse[(clique & -clique).bit_length() - 1] - inverse[clique.bit_length() - 1]


def _start(graph: Graph, inverse: Sequence[float], within: int, known: list[int]) -> Covering:
    """The cheaper of two quick covers, with the bound of an independent set."""
    covers_ = (_first_fit(graph, inverse, within), known)
    cost, best = min((math.fsum(_cost(clique, inverse) for clique in cover), cover) for cover in covers_)
    independent = independent_set(graph, within, inverse)
    return Covering(tuple(best), cost, math.fsum(inverse[v] for v in independent))


def _intervals(inverse: Sequence[float], within: int) -> list[int]:
    """The cheapest cover of a clique: runs of vertices in the order of their gaps, found from left to right.

    A clique may take in every vertex between its extremes for nothing, so some cheapest cover consists of runs. A run
    from `first` to `last` costs `2 / gap of first - 1 / gap of last`; for each last vertex the best first one is the
    one that minimises the cheapest cover of those before it plus its own `2 / gap`.
    """
    vertices = list(members(within))
    before, begin, begins = 0.0, (math.inf, 0), []
    for place, v in enumerate(vertices):
        begin = min(begin, (before + 2.0 * inverse[v], place))
        begins.append(begin[1])
        before = begin[0] - inverse[v]
    runs = []
    last = len(vertices) - 1
    while last >= 0:
        runs.append(sum(1 << v for v in vertices[begins[last] : last + 1]))
        last = begins[last] - 1
    return runs[::-1]


def _first_fit(graph: Graph, inverse: Sequence[float], within: int) -> list[int]:
    """By growing gap, each vertex goes where it adds least: to the clique with the largest gap so far, or alone."""
    cliques: list[int] = []
    for v in members(within):
        best, least = -1, inverse[v]
        for place, clique in enumerate(cliques):
            added = inverse[clique.bit_length() - 1] - inverse[v]
            if added < least and not clique & ~graph[v]:
                best, least = place, added
        if best < 0:
            cliques.append(1 << v)
        else:
            cliques[best] |= 1 << v
    return cliques


def _exact(graph: Graph, inverse: Sequence[float], within: int, known: Covering, deadline: float) -> Covering:
    def solve(part: Graph, vertices: list[int], start: Covering) -> Covering:
        costs = [inverse[v] for v in vertices]
        first = {1 << v: cost for v, cost in enumerate(costs)}
        first |= {clique: _cost(clique, costs) for clique in start.columns}
        columns = partial(_columns, part, costs)
        return covers.solve_by(columns, len(part), first, start, whole=False, deadline=deadline)

    return covers.solve_within(graph, within, known, solve)


def _columns(
    graph: Graph, inverse: Sequence[float], prices: list[float] | None, below: float, deadline: float
) -> Iterator[Columns]:
    """For every pair of extremes the maximal cliques between them, and single vertices.

    With prices, only columns whose reduced cost is under `below`.
    """
    for first in range(len(graph)):
        if prices is None or inverse[first] - prices[first] < below:
            yield {1 << first: inverse[first]}
        later = graph[first] >> (first + 1) << (first + 1)
        for last in members(later):
            cost = 2.0 * inverse[first] - inverse[last]
            if time.monotonic() >= deadline:
                raise TimeoutError
            between = later & graph[last] & ((1 << last) - 1)
            worth = 0.0 if prices is None else cost - below - prices[first] - prices[last]
            for clique in maximal_cliques(graph, between, prices, worth, deadline):
                yield {clique | 1 << first | 1 << last: cost}
