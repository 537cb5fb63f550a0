"""Clique covers and independent sets of every arm of a problem, within one time limit.

For the protocols of the paper's theorems the covers are the fewest cliques, the cheapest ones, and the cheapest without
agents that learn for free. For the others of the delivery theorem they are groups that share a part of what they pull.
"""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..errors import need, warn
from ..sim.progress import Progress
from ..sim.run import ProgressCallback
from . import covers, shared_covers, weighted
from .cliques import neighbour_masks
from .delivery import Flow, Shares
from .domination import dominated, hears_champion
from .gaps import ArmGaps
from .shared_covers import Group
from .ways import TINY, Way, ways_of

if TYPE_CHECKING:
    import pandas as pd

#: Cover problems of one arm: the fewest cliques, the least cost, and that without agents that learn for free.
_PER_ARM = 3


class _Clock:
    """Shares the rest of a time limit among the remaining cover problems; hard ones may take several shares."""

    _SHARES = 6.0

    def __init__(self, seconds: float, n_problems: int) -> None:
        self.end = time.monotonic() + seconds
        self._left = n_problems

    def deadline(self) -> float:
        now = time.monotonic()
        share = max(self.end - now, 0.0) / max(self._left, 1)
        self._left -= 1
        return now + min(self._SHARES * share, max(self.end - now, 0.0))


def cover_arms(
    arms: list[ArmGaps],
    claimed: bool,
    delivery: Flow | None,
    method: str,
    time_limit: float,
    progress: bool | ProgressCallback | None,
    label: str,
) -> tuple[pd.DataFrame, list[dict[str, list[Way]]], int]:
    """One row per arm (nan where no theorem applies), the ways to count pulls, and the cliques' largest delay.

    `claimed` says whether the paper's theorems apply; the delivery theorem (`delivery`) applies whenever they do. Warns
    if a cover that should be exact is not.
    """
    need("pandas", "tables", "a table")
    import pandas as pd

    rows, ways, reach = [], [], 0
    clock = _Clock(time_limit, _PER_ARM * len(arms))
    with Progress(progress, len(arms), f"{label}, {method} covers", "arms") as bar:
        for arm in arms:
            row: dict[str, Any] = {
                "arm": arm.arm,
                "n_holders": len(arm.holders),
                "n_suboptimal": len(arm.suboptimal),
                "gap_min": arm.gap_min if arm.suboptimal.size else math.nan,
            }
            values, tried = dict.fromkeys(_COLUMNS, math.nan), dict[str, list[Way]]()
            if not arm.suboptimal.size and delivery is not None:
                values |= dict.fromkeys(_COLUMNS if claimed else _COLUMNS[2:], 0.0)
            elif claimed and delivery is not None:
                values, groups = _by_cliques(arm, delivery, method, clock)
                tried = _count(arm, delivery, groups, method, clock, values)
                reach = max(reach, *(group.delay for group in groups if len(group.places) > 1), 0)
            elif delivery is not None:
                values, groups = _by_groups(arm, delivery, method, clock)
                tried = _count(arm, delivery, groups, method, clock, values)
            rows.append(row | values)
            ways.append(tried)
            bar.advance()
    frame = pd.DataFrame(rows)
    if claimed:
        frame = frame.astype({"theta": int, "theta_lower": int})
        if method == "exact":
            _warn_of_gaps(frame, time_limit)
    return frame, ways, reach


_COLUMNS = ("theta", "theta_lower", "weighted", "weighted_lower", "tightened", "independent", "sharp")


def _count(
    arm: ArmGaps, delivery: Flow, groups: list[Group], method: str, clock: _Clock, values: dict[str, float]
) -> dict[str, list[Way]]:
    """All ways to count the pulls of an arm; their cost is added to its row."""
    shares = delivery.shares(arm.index, arm.suboptimal)
    tried = ways_of(arm.gaps, shares, groups, clock.end, quick=method != "exact")
    pays_little = hears_champion(arm, delivery) | dominated(arm, delivery)
    # Agents with a tiny gap count as alone.
    tiny = arm.gaps < TINY
    sets = tried.get("independent sets") or tried["agents alone"]
    with np.errstate(divide="ignore"):
        values["independent"] = min(way.cost(way.ladder()) for way in sets) + float((1.0 / arm.gaps[tiny]).sum())
        values["sharp"] = float((1.0 / arm.gaps[tiny & ~pays_little]).sum())
    values["sharp"] += min(
        way.cost(way.ladder(sum(1 << place for place in np.flatnonzero(~pays_little[way.places]).tolist())))
        for ways in tried.values()
        for way in ways
    )
    return tried


def _by_cliques(arm: ArmGaps, delivery: Flow, method: str, clock: _Clock) -> tuple[dict[str, float], list[Group]]:
    joined = delivery.joined(arm.index, arm.suboptimal)
    graph = neighbour_masks(joined)
    cliques, fewest = covers.cover_masks(graph, method, clock.deadline())
    least = weighted.cover_masks(graph, arm.gaps.tolist(), method, clock.deadline(), cliques)

    def without(free: NDArray[np.bool_], most: float) -> float:
        deadline = clock.deadline()
        if not free.any():
            return most
        rest = neighbour_masks(joined[np.ix_(~free, ~free)])
        return min(most, weighted.cover_masks(rest, arm.gaps[~free].tolist(), method, deadline).cost)

    learns = hears_champion(arm, delivery)
    tightened = without(learns, least.cost)
    values = {
        "theta": len(cliques),
        "theta_lower": fewest,
        "weighted": least.cost,
        "weighted_lower": least.lower,
        "tightened": tightened,
    }
    shares = delivery.shares(arm.index, arm.suboptimal)
    return values, shared_covers.as_groups(least.columns, arm.gaps, shares)


def _by_groups(arm: ArmGaps, delivery: Flow, method: str, clock: _Clock) -> tuple[dict[str, float], list[Group]]:
    shares = delivery.shares(arm.index, arm.suboptimal)

    def cover(free: NDArray[np.bool_]) -> list[Group]:
        rest = np.ix_(~free, ~free)
        part = Shares(shares.share[rest], shares.delay[rest], shares.may[rest])
        return shared_covers.cover(arm.gaps[~free], part, method, clock.deadline())

    learns = hears_champion(arm, delivery)
    groups = cover(np.zeros_like(learns))
    weighted_ = shared_covers.total(groups)
    tightened = shared_covers.total(cover(learns)) if learns.any() else weighted_
    joined = np.minimum(shares.share, shares.share.T) > 0.0
    lower = weighted.cover_masks(neighbour_masks(joined), arm.gaps.tolist(), "dsatur", clock.deadline()).lower
    values = dict.fromkeys(_COLUMNS, math.nan) | {
        "weighted": weighted_,
        "weighted_lower": min(lower, weighted_),
        "tightened": min(tightened, weighted_),
    }
    return values, groups


def _warn_of_gaps(frame: pd.DataFrame, time_limit: float) -> None:
    open_theta = frame[frame["theta"] > frame["theta_lower"]]
    open_weighted = frame[frame["weighted"] > frame["weighted_lower"]]
    n_open = len(open_theta.index.union(open_weighted.index))
    if not n_open:
        return
    total, lower = frame["weighted"].sum(), frame["weighted_lower"].sum()
    warn(
        f"exact covers of {n_open} of {len(frame)} arms were not finished in {time_limit:g} s, the best found count: "
        f"the sum of 1 / Delta_a is between {lower:.6g} and {total:.6g} ({total / lower - 1:.2%} above its bound), "
        f"the sum of theta between {frame['theta_lower'].sum():g} and {frame['theta'].sum():g}; "
        "the bounds hold, and a longer time_limit may lower them"
    )
