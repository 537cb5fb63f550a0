"""The least costly set of columns that covers all rows, with a lower bound that proves how good it is.

Columns are bit masks of rows with positive costs. The linear relaxation gives prices of the rows; often it is already
integral. If not, a column whose reduced cost exceeds the gap between the best known cover and the relaxation is in no
better cover, so few columns are left for the integer program (HiGHS, through scipy). Where the columns are too many to
list, they are generated: the caller's `search` finds those that the prices make attractive.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .cliques import members

#: Solvers work to about 1e-7; smaller relative differences count as none.
TOLERANCE = 1e-7
#: How many columns for each row are tried first.
_CORE = 10
#: How many columns one round of generation may add.
_BATCH = 400

Columns = dict[int, float]
#: search(prices, below, most, deadline) -> at most `most` columns of reduced cost under `below`, and whether these are
#: all of them.
Search = Callable[[list[float], float, int, float], tuple[Columns, bool]]


@dataclass(frozen=True)
class Covering:
    """A cover: its columns and cost, and a proven lower bound on the cost of any cover."""

    columns: tuple[int, ...]
    cost: float
    lower: float

    @property
    def is_optimal(self) -> bool:
        """Whether no cover costs less, to the solver's precision."""
        return self.cost - self.lower <= TOLERANCE * self.cost


def solve(
    n_rows: int, columns: Columns, known: Covering, *, whole: bool, deadline: float, proven: float | None = None
) -> Covering:
    """The best cover from the given columns.

    Parameters
    ----------
    n_rows : int
        How many rows there are.
    columns : dict from mask to cost
        Every row must be in one.
    known : Covering
        A cover to beat, with a lower bound.
    whole : bool
        Whether all costs are whole numbers, so that bounds may be rounded up.
    deadline : float
        On the clock of `time.monotonic`; what is known by then is returned.
    proven : float, optional
        A bound of the relaxation over all columns, if the given ones are not all there are.
    """
    prices, relaxed, chosen = _relax(n_rows, columns, deadline)
    if prices is None:
        return known
    bound = relaxed if proven is None else min(proven, relaxed)
    best = known
    if chosen and covers_all(n_rows, chosen):
        best = _better(known, Covering(tuple(chosen), _cost(columns, chosen), known.lower))
    best = _raise_lower(best, bound, whole)
    if best.is_optimal:
        return best
    reduced = sorted((cost - sum(prices[row] for row in members(mask)), mask) for mask, cost in columns.items())
    # A few columns at a low reduced cost give a good cover, and a good cover rules out most other columns.
    for most in (_CORE * n_rows, len(columns)):
        slack = best.cost - relaxed + TOLERANCE * best.cost
        useful = [mask for cost, mask in reduced if cost <= slack]
        found, lower = _integer(n_rows, {mask: columns[mask] for mask in useful[:most]}, deadline)
        if found and covers_all(n_rows, found):
            best = _better(best, Covering(tuple(found), _cost(columns, found), best.lower))
        if len(useful) <= most:
            # Columns left out cannot improve the best cover, so the bound over the useful ones holds up to its cost.
            lower = min(lower, best.cost)
            return _raise_lower(best, lower if proven is None else min(lower, proven), whole)
    return best


def generate(
    n_rows: int, columns: Columns, known: Covering, search: Search, *, whole: bool, deadline: float
) -> Covering:
    """The best cover from columns that `search` finds, starting with the given ones."""
    columns = dict(columns)
    bound = known.lower
    while time.monotonic() < deadline:
        prices, relaxed, _ = _relax(n_rows, columns, deadline)
        if prices is None:
            break
        attractive, complete = search(prices, -TOLERANCE * relaxed, _BATCH, deadline)
        new = {mask: cost for mask, cost in attractive.items() if mask not in columns}
        columns |= new
        if new:
            continue
        if complete:
            # A cover has at most n_rows columns, and each may be attractive by as little as was not searched for.
            bound = max(bound, relaxed * (1.0 - n_rows * TOLERANCE))
        break
    best = solve(n_rows, columns, known, whole=whole, deadline=deadline, proven=bound)
    if best.is_optimal or bound <= known.lower:
        return best
    prices, relaxed, _ = _relax(n_rows, columns, deadline)
    if prices is None:
        return best
    slack = best.cost - relaxed + (n_rows + 1) * TOLERANCE * best.cost
    rest, complete = search(prices, slack, 250 * _BATCH, deadline)
    if not complete:
        return best
    return solve(n_rows, {**columns, **rest}, best, whole=whole, deadline=deadline)


def covers_all(n_rows: int, chosen: Iterable[int]) -> bool:
    """Whether every row is in a chosen column; the solver guarantees this only within its tolerance."""
    union = 0
    for mask in chosen:
        union |= mask
    return union == (1 << n_rows) - 1


def _relax(n_rows: int, columns: Columns, deadline: float) -> tuple[list[float] | None, float, list[int]]:
    """Prices and value of the linear relaxation, and its columns if it is integral.

    The solver's prices may overcharge a column by its tolerance, and a cover has many columns. So they are scaled down
    until no column is overcharged: then their sum is an exact bound, and so are reduced costs.
    """
    from scipy import optimize

    linprog: Any = optimize.linprog  # its annotations leave out sparse matrices
    masks, costs = list(columns), np.array(list(columns.values()))
    scale = float(costs.max())
    left = deadline - time.monotonic()
    if left <= 0:
        return None, 0.0, []
    incidence = _incidence(n_rows, masks)
    answer = linprog(
        costs / scale,
        A_ub=-incidence,
        b_ub=-np.ones(n_rows),
        bounds=(0, None),
        method="highs",
        options={"time_limit": left},
    )
    if answer.status != 0:
        return None, 0.0, []
    prices = np.maximum(-answer.ineqlin.marginals, 0.0) * scale
    prices *= min(1.0, float((costs / np.maximum(incidence.T @ prices, 1e-300)).min()))
    used = np.flatnonzero(answer.x > 1e-6)
    integral = bool((answer.x[used] > 1 - 1e-6).all())
    return prices.tolist(), float(prices.sum()), [masks[place] for place in used] if integral else []


def _integer(n_rows: int, columns: Columns, deadline: float) -> tuple[list[int], float]:
    """The columns of the integer program's best cover (none if there was no time for any), and its lower bound."""
    from scipy.optimize import Bounds, LinearConstraint, milp

    masks, costs = list(columns), np.array(list(columns.values()))
    scale = float(costs.max())
    left = deadline - time.monotonic()
    if left <= 0:
        return [], 0.0
    answer = milp(
        costs / scale,
        constraints=LinearConstraint(_incidence(n_rows, masks), 1.0, np.inf),
        integrality=np.ones(len(masks), dtype=np.int64),
        bounds=Bounds(0.0, 1.0),
        options={"time_limit": left, "mip_rel_gap": 0.0},
    )
    bound = getattr(answer, "mip_dual_bound", None)
    lower = 0.0 if bound is None or not math.isfinite(bound) else float(bound) * scale
    if answer.x is None:
        return [], lower
    return [masks[place] for place in np.flatnonzero(answer.x > 0.5)], lower


def _incidence(n_rows: int, masks: list[int]) -> Any:
    from scipy.sparse import csc_array

    rows = [list(members(mask)) for mask in masks]
    ends = np.cumsum([0, *map(len, rows)])
    entries = np.fromiter((row for column in rows for row in column), dtype=np.int64, count=int(ends[-1]))
    return csc_array((np.ones(len(entries)), entries, ends), shape=(n_rows, len(masks)))


def _cost(columns: Columns, chosen: Iterable[int]) -> float:
    return math.fsum(columns[mask] for mask in chosen)


def _better(one: Covering, other: Covering) -> Covering:
    return other if other.cost < one.cost else one


def _raise_lower(covering: Covering, bound: float, whole: bool) -> Covering:
    if whole:
        bound = math.ceil(bound - 1e-6)
    lower = min(max(covering.lower, bound), covering.cost)
    if covering.cost - lower <= TOLERANCE * covering.cost:
        lower = covering.cost
    return Covering(covering.columns, covering.cost, lower)
