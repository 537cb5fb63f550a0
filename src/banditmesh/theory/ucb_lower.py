"""The least that UCB itself pays, as T grows: the other side of the sharp constant (docs/theory/independent.md).

An agent with gap D ends up with nearly `alpha log T / D^2` observations of an arm, whatever it hears: as long as it has
fewer, its index is the highest. All of them are pulls of agents that it may hear. The cheapest pulls that meet all
these needs are a linear program.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .cliques import components, members, neighbour_masks
from .delivery import Flow
from .gaps import ArmGaps
from .ways import TINY


def ucb_lower(arm: ArmGaps, delivery: Flow) -> float:
    """The least that UCB pays for an arm, per unit of `alpha log T`.

    The value comes from prices that are scaled down until no pull is overcharged, so it does not rely on the solver.

    Examples
    --------
    Five agents in a ring that hear their neighbours and have equal needs: each pulls at least a third of its need.

    >>> import banditmesh as bm, networkx as nx
    >>> problem = bm.Problem(nx.cycle_graph(5), [[0, 1]] * 5, [bm.arms.Gaussian(mean) for mean in (1.0, 0.0)])
    >>> arm = bm.theory.arm_gaps(problem)[1]
    >>> round(ucb_lower(arm, Flow.under(problem, bm.IRS())), 4)
    1.6667
    """
    if not arm.suboptimal.size:
        return 0.0
    may = delivery.shares(arm.index, arm.holders).may
    gaps = np.zeros(len(arm.holders))
    gaps[np.searchsorted(arm.holders, arm.suboptimal)] = arm.gaps
    pays = gaps >= TINY
    # Agents that pay nothing, or next to nothing, may pull as often as needed.
    needy = pays & ~may[~pays].any(axis=0)
    total = 0.0
    for part in components(neighbour_masks(may | may.T), sum(1 << int(v) for v in np.flatnonzero(pays))):
        inside = np.array(list(members(part)))
        short = inside[needy[inside]]
        if short.size:
            total += _cheapest(gaps[inside], gaps[short], may[np.ix_(inside, short)])
    return total


def _cheapest(gaps: NDArray[np.float64], needy: NDArray[np.float64], may: NDArray[np.bool_]) -> float:
    """The least cost of pulls that meet the needs; `may[w, u]` says whether u may have pulls of w."""
    if may.all():
        return float(gaps.min()) / float(needy.min()) ** 2
    from scipy.optimize import linprog

    solve: Any = linprog  # its annotations leave out arrays of this kind
    # In units of what is paid: pulls by w that cost 1 give u its need (gap of u)^2 / (gap of w) times.
    rates = np.where(may.T, needy[:, None] ** 2 / gaps, 0.0)
    answer = solve(np.ones(rates.shape[1]), A_ub=-rates, b_ub=-np.ones(len(rates)), bounds=(0, None), method="highs")
    if answer.status != 0:
        return 0.0
    prices = np.maximum(-answer.ineqlin.marginals, 0.0)
    return float(prices.sum() / max(float((prices @ rates).max()), 1.0))
