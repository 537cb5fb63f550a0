"""The upper bound of the delivery theorem, at any horizon (docs/theory/delivery.md, docs/theory/independent.md).

Every agent has a cap. The cap is charged for every pull, and what a pull costs beyond it is counted. With caps c, for
every x > 0 and with `g = alpha (1 + x)^2 log T`, regret is at most the sum of

    pulls * c                                          of every agent
    g * integral of needs                              telling the arms apart, by independent sets or by groups
    (gap - c) * min(delay, g / gap^2 + 1)              pulls while messages are on their way
    (gap - c) * shortfall                              pulls until the share has arrived, if delivery is random
    (gap - c) * (1 + pulls * Q(n, alpha x^2 log T / 2 sigma^2))    first pulls, and a bad arm that seems good
    (largest gap - c) * sum of missed chances          a best arm that seems bad

where differences below 0 are 0. A search finds the caps, the x and the way of counting that are best for T; all of them
give bounds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..problem import Problem
from . import concentration
from .delivery import Flow
from .gaps import ArmGaps
from .ways import TINY, Way

#: Rounds considered one by one; later ones in blocks that grow by this factor, at their first round's value,
#: which is their largest: a missed chance below 1 falls from round 1000 on. That depends on the `widths <= 4` of
#: `concentration.missed` and on `_SINGLE >= 1000`. Beyond the last block every round counts as the first one there.
_SINGLE, _GROWTH, _LAST = 1000, 1.03, 1e9
#: The widenings x and the number of caps to try, and the steps below a cap for the best of them.
WIDENINGS = np.geomspace(0.02, 6.0, 60)
_CAPS, _STEPS = 24, 6
#: Horizons computed at once; limits the memory.
_BLOCK = 500
#: The value of `counted_by` where the caps are the largest gaps, so that nothing else counts.
TRIVIAL = "largest gaps"


@dataclass(frozen=True, eq=False)
class BoundPart:
    """The terms of one choice of caps and one way of counting.

    Attributes
    ----------
    counted_by : str
        "independent sets", "clique covers" or "agents alone".
    caps : float array (agents,)
    weighted : float
        The integral of the needs, per unit of g.
    shortfall : float
        What is paid until the shares have arrived.
    net, gaps, delays, origins, agents : arrays
        For every agent and arm whose gap is above the cap: by how much, the gap itself, the delay in pulls, the origins
        in its estimate, and the agent.
    """

    counted_by: str
    caps: NDArray[np.float64]
    weighted: float
    shortfall: float
    net: NDArray[np.float64]
    gaps: NDArray[np.float64]
    delays: NDArray[np.float64]
    origins: NDArray[np.int64]
    agents: NDArray[np.int64]

    @cached_property
    def _turns(self) -> tuple[NDArray[np.float64], ...]:
        """Where each `min(delay, g / gap^2 + 1)` turns from its second to its first value, and the sums up to there."""
        turns = (self.delays - 1.0) * self.gaps**2
        order = np.argsort(turns)
        rows = np.stack([self.net * self.delays, self.net, self.net / self.gaps**2])[:, order]
        sums = np.concatenate([np.zeros((3, 1)), np.cumsum(rows, axis=1)], axis=1)
        return turns[order], *sums

    def late(self, scales: NDArray[np.float64]) -> NDArray[np.float64]:
        """The cost while messages are on their way, for each g."""
        turns, fixed, ones, slopes = self._turns
        passed = np.searchsorted(turns, scales, side="right")
        rest = (ones[-1] - ones[passed]) + scales * (slopes[-1] - slopes[passed])
        return np.asarray(fixed[passed] + np.maximum(rest, 0.0))


class _Count(NamedTuple):
    """One arm, and one way of counting its pulls; agents are numbers."""

    agents: NDArray[np.int64]
    origins: NDArray[np.int64]
    way: Way
    ladder: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class SharpBound:
    """A bound on the expected group regret, as a function of the horizon.

    Attributes
    ----------
    alpha, sigma : float
        Of the policy, and of all arms.
    horizon : int
        The one for which the shares to wait for were chosen; the bound holds at others too.
    parts : tuple of BoundPart
        Each for one choice of caps and one way of counting.
    largest, n_arms, heard, origins, every : arrays (agents,)
        The largest gap; the number of arms; how many agents' pulls and how many origins are in the best arm's estimate;
        and the rounds from one pull to the next.
    """

    alpha: float
    sigma: float
    horizon: int
    parts: tuple[BoundPart, ...]
    largest: NDArray[np.float64]
    n_arms: NDArray[np.int64]
    heard: NDArray[np.int64]
    origins: NDArray[np.int64]
    every: NDArray[np.int64]

    @classmethod
    def of(
        cls,
        problem: Problem,
        delivery: Flow,
        arms: list[ArmGaps],
        ways: list[dict[str, list[Way]]],
        alpha: float,
        sigma: float,
        horizon: int,
        every: int | Sequence[int] | None = None,
    ) -> SharpBound:
        """The bound of a problem with these ways of counting, for each arm."""
        heard = np.ones(problem.n_agents, dtype=np.int64)
        scale = (math.sqrt(alpha) + math.sqrt(2.0) * sigma) ** 2 * math.log(horizon)
        counts: dict[str, list[list[_Count]]] = {}
        names = {name for one in ways for name in one} - {"agents alone"} or {"agents alone"}
        for arm, tried in zip(arms, ways, strict=True):
            n_heard = delivery.shares(arm.index, arm.holders).may.sum(axis=0)
            best = np.setdiff1d(arm.holders, arm.suboptimal)
            # With a tie either of the best arms may be taken; this takes the last one.
            heard[best] = n_heard[np.searchsorted(arm.holders, best)]
            origins = n_heard[np.searchsorted(arm.holders, arm.suboptimal)]
            if not delivery.prefix:
                origins = np.ones_like(origins)
            for name in sorted(names, reverse=True):
                chosen = tried.get(name) or tried.get("agents alone", [])
                found = [way if delivery.sure else way.waiting(scale) for way in chosen]
                counts.setdefault(name, []).append(
                    [_Count(arm.suboptimal[way.places], origins[way.places], way, way.ladder()) for way in found]
                )
        bound = cls(
            alpha=alpha,
            sigma=sigma,
            horizon=horizon,
            parts=(),
            largest=np.maximum.reduceat(problem.arm_gaps, problem.arm_offsets[:-1]),
            n_arms=np.diff(problem.arm_offsets),
            heard=heard,
            origins=heard if delivery.prefix else np.ones_like(heard),
            every=np.broadcast_to(np.asarray(1 if every is None else every, dtype=np.int64), problem.n_agents),
        )
        searches = [_Search(name, bound, problem, tried, scale) for name, tried in counts.items()]
        return replace(bound, parts=tuple(part for search in searches for part in search.parts()))

    def at(self, horizon: ArrayLike) -> Any:
        """The bound at one or several horizons."""
        values = np.asarray(horizon, dtype=float)
        if values.ndim == 0 and float(values) == self.horizon:
            return float(self._here.min())
        found = self._values(values.ravel()).min(axis=0).reshape(values.shape)
        return found if values.ndim else float(found)

    @cached_property
    def _here(self) -> NDArray[np.float64]:
        return self._values(np.array([float(self.horizon)]))[:, 0]

    def counted_by(self, horizon: float) -> str:
        """The way of counting that gives the bound; "largest gaps" if none does better than these."""
        values = self._here if horizon == self.horizon else self._values(np.array([float(horizon)]))[:, 0]
        if self.is_trivial(horizon) or not self.parts:
            return TRIVIAL
        return self.parts[int(values[:-1].argmin())].counted_by

    def is_trivial(self, horizon: float) -> bool:
        """Whether it says only that every pull costs at most the largest gap."""
        trivial = float(self._trivial(np.array([float(horizon)]))[0])
        return float(self.at(horizon)) >= trivial > 0.0

    def bad_luck(self, horizon: ArrayLike) -> NDArray[np.float64]:
        """The number of pulls for which an agent's best arm may seem bad: an array (horizons, agents)."""
        horizons = np.atleast_1d(np.asarray(horizon, dtype=float))
        found = np.zeros((len(horizons), len(self.largest)))
        for (n_heard, n_origins), agents in self._alike.items():
            grid, sums, beyond = _missed_sums(self.alpha, self.sigma, n_heard, n_origins, self.horizon)
            upto = np.interp(horizons, grid, sums) + np.maximum(horizons - grid[-1], 0.0) * beyond
            first = np.interp(self.n_arms[agents], grid, sums)
            found[:, agents] = np.maximum(upto[:, None] - first, 0.0)
        return np.minimum(found, self._pulls(horizons))

    def _pulls(self, horizons: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.ceil(horizons[:, None] / self.every)

    def _trivial(self, horizons: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(self._pulls(horizons) @ self.largest)

    def _values(self, horizons: NDArray[np.float64]) -> NDArray[np.float64]:
        """The bound of every part, and last the largest gaps alone, at each horizon."""
        blocks = [self._block(horizons[i : i + _BLOCK]) for i in range(0, max(len(horizons), 1), _BLOCK)]
        return np.concatenate(blocks, axis=1)

    def _block(self, horizons: NDArray[np.float64]) -> NDArray[np.float64]:
        luck, pulls = self.bad_luck(horizons), self._pulls(horizons)
        logs = np.log(horizons)[:, None]
        scales = self.alpha * (1.0 + WIDENINGS) ** 2 * logs
        tails: dict[int, NDArray[np.float64]] = {}
        found = np.empty((len(self.parts) + 1, len(horizons)))
        for place, part in enumerate(self.parts):
            values = scales * part.weighted + part.late(scales)
            for n_origins in np.unique(part.origins).tolist():
                if n_origins not in tails:
                    tails[n_origins] = self._tail(n_origins, logs)
                here = part.origins == n_origins
                paid = np.bincount(part.agents[here], part.net[here], minlength=len(self.largest))
                values = values + (pulls @ paid)[:, None] * tails[n_origins]
            fixed = part.shortfall + part.net.sum() + pulls @ part.caps
            found[place] = values.min(axis=1) + fixed + luck @ np.maximum(self.largest - part.caps, 0.0)
        found[-1] = self._trivial(horizons)
        return found

    def _tail(self, n_origins: int, logs: NDArray[np.float64]) -> NDArray[np.float64]:
        """How likely a bad arm seems good in a round despite many pulls, for each widening."""
        from scipy.special import gammaincc

        if self.sigma == 0.0:
            return np.zeros((len(logs), len(WIDENINGS)))
        return np.asarray(gammaincc(n_origins, self.alpha * WIDENINGS**2 * logs / (2.0 * self.sigma**2)))

    @cached_property
    def _alike(self) -> dict[tuple[int, int], NDArray[np.int64]]:
        """Agents by what is in the estimate of their best arm."""
        pairs = np.stack([self.heard, self.origins], axis=1)
        kinds = np.unique(pairs, axis=0)
        return {(int(a), int(b)): np.flatnonzero((pairs == (a, b)).all(axis=1)) for a, b in kinds}


class _Search:
    """Which caps to try with one way of counting, and the terms that follow from them.

    All agents and arms are in one row: arm after arm and, within an arm, one way of counting after another, each
    starting at one of `starts`. Caps decide which of an arm's ways counts.
    """

    def __init__(
        self, name: str, bound: SharpBound, problem: Problem, counts: list[list[_Count]], scale: float
    ) -> None:
        self._name, self._bound, self._scale = name, bound, scale
        self._owners = problem.owners
        self._all_gaps = problem.arm_gaps
        self._counts = [count for arm in counts for count in arm if count.way.gaps.size]
        self._arms = np.array([place for place, arm in enumerate(counts) for count in arm if count.way.gaps.size])
        sizes = np.array([len(count.way.gaps) for count in self._counts], dtype=np.int64)
        self._starts = np.cumsum(sizes) - sizes
        self._ways = np.repeat(np.arange(len(sizes)), sizes)
        self._agents = _joined([count.agents for count in self._counts]).astype(np.int64)
        self._origins = _joined([count.origins for count in self._counts]).astype(np.int64)
        self._gaps = _joined([count.way.gaps for count in self._counts])
        self._smaller = _joined([count.way.smaller for count in self._counts])
        self._ladder = _joined([count.ladder for count in self._counts])
        self._delays = np.ceil(_joined([count.way.delays for count in self._counts]) / bound.every[self._agents])
        self._late = np.minimum(self._delays, scale / self._gaps**2 + 1.0)

    def parts(self) -> list[BoundPart]:
        """One for each choice of caps."""
        positive = self._all_gaps[self._all_gaps > 0.0]
        if not self._gaps.size:
            return []
        levels = [0.0, *np.unique(np.quantile(positive, np.linspace(0.0, 1.0, _CAPS + 1))).tolist()]
        equal = [self._part(level, np.minimum(level, self._bound.largest)) for level in levels]
        own = [self._part(level, self._own(level)) for level in levels]
        # Mixing individual caps and a common one needs separate sets: only where it matters most.
        here = np.array([float(self._bound.horizon)])
        best = levels[int(replace(self._bound, parts=tuple(own))._values(here)[:-1, 0].argmin())]
        return [*equal, *own, self._part(best, self._mixed(best), _STEPS)]

    def _own(self, level: float) -> NDArray[np.float64]:
        """For every agent the largest gap that is at most the level."""
        found = np.zeros(len(self._bound.largest))
        below = self._all_gaps <= level
        np.maximum.at(found, self._owners[below], self._all_gaps[below])
        return found

    def _mixed(self, level: float) -> NDArray[np.float64]:
        """The level itself for agents expected to pull arms above it nearly always, otherwise as `_own`."""
        here = np.array([float(self._bound.horizon)])
        pulled = self._bound.bad_luck(here)[0]
        _, first = np.unique(self._arms, return_index=True)
        for count in (self._counts[place] for place in first.tolist()):
            n_above = int((count.way.gaps > level).sum())
            if n_above:
                weights = count.way.gaps[:n_above] ** -2.0
                part = float(count.ladder[n_above - 1]) / weights.sum()
                pulled[count.agents[:n_above]] += self._scale * part * weights + count.way.delays[:n_above]
        often = pulled > self._bound._pulls(here)[0]
        return np.where(often, np.minimum(level, self._bound.largest), self._own(level))

    def _part(self, level: float, caps: NDArray[np.float64], n_steps: int = 0) -> BoundPart:
        caps = np.maximum(caps, self._own(TINY))
        net = np.maximum(self._gaps - caps[self._agents], 0.0)
        widths = np.maximum(self._gaps, level) - np.maximum(self._smaller, level)
        needed = np.add.reduceat(widths * self._ladder, self._starts) + self._below(level, caps, n_steps)
        waits = np.zeros(len(self._counts))
        for place, count in enumerate(self._counts):
            if count.way.waits.any():
                waits[place] = count.way.wait_cost(caps[count.agents])
        total = self._scale * needed + waits + np.add.reduceat(net * self._late, self._starts)
        # For each arm the cheapest way.
        order = np.lexsort((total, self._arms))
        chosen = order[np.unique(self._arms[order], return_index=True)[1]]
        above = np.isin(self._ways, chosen) & (net > 0.0)
        return BoundPart(
            counted_by=self._name,
            caps=caps,
            weighted=math.fsum(needed[chosen]),
            shortfall=math.fsum(waits[chosen]),
            net=net[above],
            gaps=self._gaps[above],
            delays=self._delays[above],
            origins=self._origins[above],
            agents=self._agents[above],
        )

    def _below(self, level: float, caps: NDArray[np.float64], n_steps: int) -> NDArray[np.float64]:
        """The need below the level, for each way, of agents with lower caps whose gaps are above it."""
        if n_steps:
            return np.array([count.way.cost_below(caps[count.agents], level, n_steps) for count in self._counts])
        above = self._gaps > level
        lowest = np.minimum.reduceat(np.where(above, caps[self._agents], level), self._starts)
        n_above = np.add.reduceat(above.astype(np.int64), self._starts)
        # All of them, at every cap: those whose gap is above the level come first.
        everyone = self._ladder[self._starts + np.maximum(n_above - 1, 0)]
        return np.where(n_above > 0, np.maximum(level - lowest, 0.0) * everyone, 0.0)


def _joined(rows: Sequence[NDArray[Any]]) -> NDArray[Any]:
    return np.concatenate([np.zeros(0), *rows])


@lru_cache(maxsize=256)
def _missed_sums(
    alpha: float, sigma: float, n_heard: int, n_origins: int, horizon: int
) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
    """Rounds, the sum of missed chances up to each of them, and the chance in every later round.

    Between two rounds the sum is a straight line.
    """
    n_blocks = math.ceil(math.log(max(horizon, _LAST) / _SINGLE) / math.log(_GROWTH))
    blocks = np.ceil(_SINGLE * _GROWTH ** np.arange(1, n_blocks + 1))
    grid = np.concatenate([np.arange(_SINGLE + 1, dtype=float), blocks])
    firsts = np.append(grid[:-1] + 1.0, grid[-1] + 1.0)
    chances = concentration.missed(alpha, sigma, n_heard, n_origins, firsts)
    return (grid, np.concatenate([[0.0], np.cumsum(chances[:-1] * np.diff(grid))]), float(chances[-1]))
