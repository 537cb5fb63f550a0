"""The upper bound of the delivery theorem, at any horizon (docs/theory/delivery.md).

Agents and arms are split by a threshold. An agent's pulls of arms whose gap is at most the threshold cost no more than
the largest of these gaps times T. The others cost, for every x > 0 and with `g = alpha (1 + x)^2`, at most the sum of

    g log T * sum of cost / share                      telling the arms apart, group by group
    gap * min(delay, g log T / gap^2 + 1)              what is pulled while messages are on their way
    largest gap of a group * shortfall                 what is pulled until the share has arrived, if chance decides
    gap * (1 + T Q(n, alpha x^2 log T / 2 sigma^2))    first pulls, and a bad arm that seems good
    largest gap of an agent * sum of missed chances    a best arm that seems bad

The threshold and the x that are best for T are searched for; all of them give bounds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..problem import Problem
from . import concentration
from .delivery import Flow
from .gaps import ArmGaps
from .shared_covers import Group

#: Rounds that are looked at one by one; later ones in blocks that grow by this factor, at their first round's value,
#: which is their largest: a missed chance below 1 falls from round 1000 on. That depends on the `widths <= 4` of
#: `concentration.missed` and on `_SINGLE >= 1000`. Beyond the last block every round counts as the first one there.
_SINGLE, _GROWTH, _LAST = 1000, 1.03, 1e9
#: The parts of a share, the widenings x and the number of thresholds that are tried.
_KEPT = np.linspace(0.02, 0.98, 49)
_WIDENINGS = np.geomspace(0.02, 6.0, 60)
_THRESHOLDS = 24


@dataclass(frozen=True, eq=False)
class Part:
    """The terms of agents and arms whose gap is above a threshold.

    Attributes
    ----------
    weighted : float
        The sum over groups of `cost / share`, as waited for.
    shortfall : float
        What is pulled until the shares have arrived.
    gaps, delays, origins : arrays
        Of every agent and arm: the gap, its group's delay, and the origins in its estimate.
    dropped : float
        What the arms of smaller gap cost in each round, at most.
    """

    weighted: float
    shortfall: float
    gaps: NDArray[np.float64]
    delays: NDArray[np.float64]
    origins: NDArray[np.int64]
    dropped: float


@dataclass(frozen=True, eq=False)
class SharpBound:
    """A bound on the expected group regret, as a function of the horizon.

    Attributes
    ----------
    alpha, sigma : float
        Of the policy, and of all arms.
    horizon : int
        For which the shares that are waited for were chosen; the bound holds at others too.
    parts : tuple of Part
        For one threshold each, the least first; at 0 nothing is dropped.
    largest, n_arms, heard, origins : arrays (agents,)
        The largest gap, the number of arms, and, of the best arm, how many agents' pulls and how many origins are in
        its estimate.
    """

    alpha: float
    sigma: float
    horizon: int
    parts: tuple[Part, ...]
    largest: NDArray[np.float64]
    n_arms: NDArray[np.int64]
    heard: NDArray[np.int64]
    origins: NDArray[np.int64]

    @classmethod
    def of(
        cls,
        problem: Problem,
        delivery: Flow,
        arms: list[ArmGaps],
        groups: list[list[Group]],
        alpha: float,
        sigma: float,
        horizon: int,
    ) -> SharpBound:
        """The bound of a problem whose arms are covered by these groups."""
        heard = np.ones(problem.n_agents, dtype=np.int64)
        found: list[tuple[Group, ArmGaps, NDArray[np.int64]]] = []
        for arm, covered in zip(arms, groups, strict=True):
            n_heard = delivery.shares(arm.index, arm.holders).may.sum(axis=0)
            best = np.setdiff1d(arm.holders, arm.suboptimal)
            # With a tie either of the best arms may stand for it; the last one does.
            heard[best] = n_heard[np.searchsorted(arm.holders, best)]
            counts = n_heard[np.searchsorted(arm.holders, arm.suboptimal)]
            if not delivery.prefix:
                counts = np.ones_like(counts)
            found += [(group, arm, counts) for group in covered]
        members = _Members.of(found)
        scale = (math.sqrt(alpha) + math.sqrt(2.0) * sigma) ** 2 * math.log(horizon)
        all_gaps = problem.arm_gaps[problem.arm_gaps > 0]
        thresholds = [0.0]
        if all_gaps.size:
            thresholds += np.unique(np.quantile(all_gaps, np.linspace(0.0, 1.0, _THRESHOLDS + 1))).tolist()
        return cls(
            alpha=alpha,
            sigma=sigma,
            horizon=horizon,
            parts=tuple(members.above(one, problem.n_agents, scale, delivery.sure) for one in thresholds),
            largest=np.maximum.reduceat(problem.arm_gaps, problem.arm_offsets[:-1]),
            n_arms=np.diff(problem.arm_offsets),
            heard=heard,
            origins=heard if delivery.prefix else np.ones_like(heard),
        )

    @property
    def weighted(self) -> float:
        """The sum over groups of cost by share, of all agents and arms."""
        return self.parts[0].weighted

    def at(self, horizon: ArrayLike) -> Any:
        """The bound at one or several horizons."""
        values = np.asarray(horizon, dtype=float)
        found = np.array([self._at(value) for value in values.ravel().tolist()]).reshape(values.shape)
        return found if values.ndim else float(found)

    def is_trivial(self, horizon: float) -> bool:
        """Whether it says no more than that every round costs at most the largest gaps."""
        return self._at(horizon) >= horizon * float(self.largest.sum()) > 0.0

    def bad_luck(self, horizon: float) -> float:
        """What best arms that seem bad cost."""
        total = 0.0
        for (n_heard, n_origins), agents in self._alike.items():
            upto = np.interp([horizon, *self.n_arms[agents]], self._grid, self._missed(n_heard, n_origins))
            last = self._grid[-1]
            beyond = concentration.missed(self.alpha, self.sigma, n_heard, n_origins, np.array([last + 1.0]))
            upto[0] += max(horizon - last, 0.0) * float(beyond[0])
            total += float(self.largest[agents] @ np.maximum(upto[0] - upto[1:], 0.0))
        return total

    def _at(self, horizon: float) -> float:
        luck = self.bad_luck(horizon)
        tails = {n: self._tail(n, horizon) for n in np.unique(self.parts[0].origins).tolist()}
        found = [horizon * float(self.largest.sum())]
        for part in self.parts:
            if part.gaps.size:
                found.append(self._of_part(part, horizon, tails) + luck)
            else:
                found.append(horizon * part.dropped)
        return min(found)

    def _of_part(self, part: Part, horizon: float, tails: dict[int, NDArray[np.float64]]) -> float:
        scales = self.alpha * (1.0 + _WIDENINGS) ** 2 * math.log(horizon)
        found = scales * part.weighted
        for n_origins, tail in tails.items():
            found = found + part.gaps[part.origins == n_origins].sum() * tail
        best = math.inf
        # Only the few best x are completed; the delay term moves little with x.
        for place in np.argsort(found)[:3].tolist():
            delay = float(part.gaps @ np.minimum(part.delays, scales[place] / part.gaps**2 + 1.0))
            best = min(best, float(found[place]) + delay)
        return best + part.shortfall + float(part.gaps.sum()) + horizon * part.dropped

    def _tail(self, n_origins: int, horizon: float) -> NDArray[np.float64]:
        """In how many rounds a bad arm seems good although it was pulled often, for each widening."""
        from scipy.special import gammaincc

        if self.sigma == 0.0:
            return np.zeros_like(_WIDENINGS)
        places = self.alpha * _WIDENINGS**2 * math.log(horizon) / (2.0 * self.sigma**2)
        return np.asarray(horizon * gammaincc(n_origins, places))

    @cached_property
    def _grid(self) -> NDArray[np.float64]:
        """Rounds at which the sum of missed chances is known; between them it is a straight line."""
        n_blocks = math.ceil(math.log(max(self.horizon, _LAST) / _SINGLE) / math.log(_GROWTH))
        blocks = np.ceil(_SINGLE * _GROWTH ** np.arange(1, n_blocks + 1))
        return np.concatenate([np.arange(_SINGLE + 1, dtype=float), blocks])

    @cached_property
    def _alike(self) -> dict[tuple[int, int], NDArray[np.int64]]:
        """Agents by what is in the estimate of their best arm; those without regret are left out."""
        pairs = np.stack([self.heard, self.origins], axis=1)
        kinds = np.unique(pairs, axis=0)
        alike = {(int(a), int(b)): np.flatnonzero((pairs == (a, b)).all(axis=1) & (self.largest > 0)) for a, b in kinds}
        return {kind: agents for kind, agents in alike.items() if agents.size}

    def _missed(self, n_heard: int, n_origins: int) -> NDArray[np.float64]:
        """The sum of missed chances up to each round of the grid."""
        if (n_heard, n_origins) not in self._sums:
            firsts = self._grid[:-1] + 1.0
            chances = concentration.missed(self.alpha, self.sigma, n_heard, n_origins, firsts)
            self._sums[n_heard, n_origins] = np.concatenate([[0.0], np.cumsum(chances * np.diff(self._grid))])
        return self._sums[n_heard, n_origins]

    @cached_property
    def _sums(self) -> dict[tuple[int, int], NDArray[np.float64]]:
        return {}


@dataclass(frozen=True, eq=False)
class _Members:
    """All agents and arms that cost regret, group after group; `starts` says where each group begins."""

    starts: NDArray[np.int64]
    shares: NDArray[np.float64]
    gaps: NDArray[np.float64]
    agents: NDArray[np.int64]
    delays: NDArray[np.float64]
    origins: NDArray[np.int64]

    @classmethod
    def of(cls, groups: Sequence[tuple[Group, ArmGaps, NDArray[np.int64]]]) -> _Members:
        sizes = np.array([len(group.places) for group, _, _ in groups], dtype=np.int64)
        delays = np.array([group.delay for group, _, _ in groups], dtype=float)
        nothing = np.zeros(0, dtype=np.int64)
        return cls(
            starts=np.cumsum(sizes) - sizes,
            shares=np.array([group.share for group, _, _ in groups], dtype=float),
            gaps=np.concatenate([np.zeros(0), *(arm.gaps[group.places] for group, arm, _ in groups)]),
            agents=np.concatenate([nothing, *(arm.suboptimal[group.places] for group, arm, _ in groups)]),
            delays=np.repeat(delays, sizes),
            origins=np.concatenate([nothing, *(counts[group.places] for group, _, counts in groups)]),
        )

    def above(self, threshold: float, n_agents: int, scale: float, sure: bool) -> Part:
        """The terms of those whose gap is above the threshold."""
        keep = self.gaps > threshold
        dropped = np.zeros(n_agents)
        np.maximum.at(dropped, self.agents[~keep], self.gaps[~keep])
        costs, shares, waits = np.zeros(0), np.ones(0), 0.0
        if keep.any():
            sizes = np.add.reduceat(keep.astype(np.int64), self.starts)
            least = np.minimum.reduceat(np.where(keep, self.gaps, np.inf), self.starts)
            most = np.maximum.reduceat(np.where(keep, self.gaps, 0.0), self.starts)
            costs = 2.0 / least[sizes > 0] - 1.0 / most[sizes > 0]
            shares = np.where(sizes > 1, self.shares, 1.0)[sizes > 0]
            if not sure:
                rows = np.stack([costs, shares, sizes[sizes > 0], most[sizes > 0]], axis=1).tolist()
                waited = [
                    _waited(cost, share, size, largest, scale) if share < 1.0 else (1.0, 0.0)
                    for cost, share, size, largest in rows
                ]
                shares, waits = np.array([one[0] for one in waited]), math.fsum(one[1] for one in waited)
        return Part(
            weighted=math.fsum(costs / shares),
            shortfall=waits,
            gaps=self.gaps[keep],
            delays=self.delays[keep],
            origins=self.origins[keep],
            dropped=float(dropped.sum()),
        )


def _waited(cost: float, share: float, size: float, largest: float, scale: float) -> tuple[float, float]:
    """The part of the share to wait for, and what waiting costs, at the least sum of both."""
    return min(
        ((share * kept, largest * concentration.shortfall(share, share * kept, size)) for kept in _KEPT.tolist()),
        key=lambda pair: scale * cost / pair[0] + pair[1],
    )
