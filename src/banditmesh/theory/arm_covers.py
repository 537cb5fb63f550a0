"""Clique covers of every arm of a problem, within one limit of time."""

from __future__ import annotations

import math
import time
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from ..problem import Problem
from ..sim.progress import Progress
from ..sim.run import ProgressCallback
from . import covers, weighted
from .cliques import Graph, neighbour_masks
from .gaps import ArmGaps
from .hearing import Hearing

if TYPE_CHECKING:
    import pandas as pd

#: Cover problems of one arm: the fewest cliques, the least cost, and that without those who learn for free.
_PER_ARM = 3


class _Clock:
    """Shares what is left of a time limit among the cover problems to come; hard ones may take a few shares."""

    _SHARES = 6.0

    def __init__(self, seconds: float, n_problems: int) -> None:
        self._end = time.monotonic() + seconds
        self._left = n_problems

    def deadline(self) -> float:
        now = time.monotonic()
        share = max(self._end - now, 0.0) / max(self._left, 1)
        self._left -= 1
        return now + min(self._SHARES * share, max(self._end - now, 0.0))


def cover_arms(
    problem: Problem,
    arms: list[ArmGaps],
    hearing: Hearing | None,
    method: str,
    time_limit: float,
    progress: bool | ProgressCallback | None,
    label: str,
) -> pd.DataFrame:
    """One row per arm; without `hearing` the covers are nan. Warns if a cover that should be exact is not."""
    import pandas as pd

    rows = []
    clock = _Clock(time_limit, _PER_ARM * len(arms))
    with Progress(progress, len(arms), f"{label}, {method} covers", "arms") as bar:
        for arm in arms:
            row: dict[str, Any] = {
                "arm": arm.arm,
                "n_holders": len(arm.holders),
                "n_suboptimal": len(arm.suboptimal),
                "gap_min": arm.gap_min if arm.suboptimal.size else math.nan,
            }
            rows.append(row | _cover(arm, hearing, method, clock))
            bar.advance()
    frame = pd.DataFrame(rows)
    if hearing is not None and method == "exact":
        _warn_of_gaps(frame, time_limit)
    return frame


def _cover(arm: ArmGaps, hearing: Hearing | None, method: str, clock: _Clock) -> dict[str, float]:
    if hearing is None:
        return dict.fromkeys(("theta", "theta_lower", "weighted", "weighted_lower", "tightened"), math.nan)
    if not arm.suboptimal.size:
        return {"theta": 0, "theta_lower": 0, "weighted": 0.0, "weighted_lower": 0.0, "tightened": 0.0}
    joined = hearing.adjacency(arm.index, arm.suboptimal)
    graph = neighbour_masks(joined)
    cliques, fewest = covers.cover_masks(graph, method, clock.deadline())
    least = weighted.cover_masks(graph, arm.gaps.tolist(), method, clock.deadline(), cliques)
    pays = ~hearing.hears_any(arm.index, arm.champions)[arm.suboptimal]
    tightened = least.cost
    if not pays.all():
        rest: Graph = neighbour_masks(joined[np.ix_(pays, pays)])
        tightened = weighted.cover_masks(rest, arm.gaps[pays].tolist(), method, clock.deadline()).cost
    return {
        "theta": len(cliques),
        "theta_lower": fewest,
        "weighted": least.cost,
        "weighted_lower": least.lower,
        "tightened": min(tightened, least.cost),
    }


def _warn_of_gaps(frame: pd.DataFrame, time_limit: float) -> None:
    open_theta = frame[frame["theta"] > frame["theta_lower"]]
    open_weighted = frame[frame["weighted"] > frame["weighted_lower"]]
    n_open = len(open_theta.index.union(open_weighted.index))
    if not n_open:
        return
    total, lower = frame["weighted"].sum(), frame["weighted_lower"].sum()
    warnings.warn(
        f"exact covers of {n_open} of {len(frame)} arms were not finished in {time_limit:g} s, the best found count: "
        f"the sum of 1 / Delta_a is between {lower:.6g} and {total:.6g} ({total / lower - 1:.2%} above its bound), "
        f"the sum of theta between {frame['theta_lower'].sum():g} and {frame['theta'].sum():g}; "
        "the bounds hold, and a longer time_limit may lower them",
        stacklevel=4,
    )
