"""Covers by groups of agents that share only a part of what they pull.

A group costs `(2 / smallest gap - 1 / largest gap) / kappa`, where kappa is the least share between two of its members;
a single agent has all of its own pulls. Any cover gives a bound. If every share is 1 the groups are cliques and the
cheapest cover is that of `weighted`; otherwise covers by cliques of agents that share at least some value are tried,
for a few such values, and groups are split up where that is cheaper.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from . import weighted
from .cliques import members, neighbour_masks
from .delivery import Shares

#: The most values of the least share that are tried.
_MAX_LEVELS = 5
#: Smaller shares count as none: they save nothing, and dividing by them may give too large a float.
_LEAST = 1e-100


@dataclass(frozen=True, eq=False)
class Group:
    """Agents that share what they pull of an arm.

    Attributes
    ----------
    places : int array
        Its members, as places in the arm's `suboptimal`.
    share : float
        The least share between two members; 1 for a single agent.
    delay : int
        The largest delay between two members; 1 for a single agent.
    cost : float
        `2 / smallest gap - 1 / largest gap`, not yet divided by the share.
    """

    places: NDArray[np.int64]
    share: float
    delay: int
    cost: float


def total(groups: Sequence[Group]) -> float:
    """The total cost of the groups."""
    return math.fsum(group.cost / group.share for group in groups)


def as_groups(cliques: Sequence[int], gaps: NDArray[np.float64], shares: Shares) -> list[Group]:
    """Groups from masks of places, split up where that is cheaper."""
    groups = []
    for clique in cliques:
        places = np.array(list(members(clique)), dtype=np.int64)
        group = _group(places, gaps, shares)
        singles = [_group(places[i : i + 1], gaps, shares) for i in range(len(places))]
        groups += [group] if group.cost / group.share <= total(singles) else singles
    return groups


def cover(gaps: NDArray[np.float64], shares: Shares, method: str, deadline: float) -> list[Group]:
    """A cheap cover of agents with these gaps; only by the quick methods, with "exact" as "dsatur"."""
    method = "dsatur" if method == "exact" else method
    both = np.minimum(shares.share, shares.share.T)
    best = [_group(np.array([place]), gaps, shares) for place in range(len(gaps))]
    for level in least_shares(both):
        found = weighted.cover_masks(neighbour_masks(both >= level), gaps.tolist(), method, deadline)
        groups = as_groups(found.columns, gaps, shares)
        if total(groups) < total(best):
            best = groups
    return best


def least_shares(both: NDArray[np.float64]) -> list[float]:
    """Values of the least share to try, ascending; `both` is what two agents share both ways."""
    levels = np.unique(both[(both >= _LEAST) & ~np.eye(len(both), dtype=np.bool_)])
    if len(levels) > _MAX_LEVELS:
        levels = np.unique(np.quantile(levels, np.linspace(0.0, 1.0, _MAX_LEVELS)))
    return [float(level) for level in levels]


def merged(groups: Sequence[Group], gaps: NDArray[np.float64], shares: Shares) -> list[Group]:
    """The groups, merged where that costs less, by the sum over their gaps instead of `cost`."""
    joined = np.minimum(shares.share, shares.share.T) >= _LEAST
    found: list[Group] = []
    for group in sorted(groups, key=lambda one: -len(one.places)):
        hearing = np.logical_and.reduce(joined[group.places], axis=0)
        for place, other in enumerate(found):
            if not hearing[other.places].all():
                continue
            both = _group(np.concatenate([other.places, group.places]), gaps, shares)
            if sum_cost(both, gaps) <= sum_cost(other, gaps) + sum_cost(group, gaps):
                found[place] = both
                break
        else:
            found.append(group)
    return found


def sum_cost(group: Group, gaps: NDArray[np.float64]) -> float:
    """The sum of `(gap - next smaller gap) / gap^2`, over the share: what a group costs; `cost` is a bound on it."""
    falling = -np.sort(-gaps[group.places])
    return float((-np.diff(falling, append=0.0) / falling) @ (1.0 / falling)) / group.share


def _group(places: NDArray[np.int64], gaps: NDArray[np.float64], shares: Shares) -> Group:
    square = np.ix_(places, places)
    return Group(
        places=places,
        share=float(shares.share[square].min()),
        delay=int(shares.delay[square].max()),
        cost=weighted.clique_cost(gaps[places].tolist()),
    )
