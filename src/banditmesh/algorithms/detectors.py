"""Tests for a change in the mean of a sequence of rewards, one reward at a time.

A detector gets the rewards of one arm in order, and says of each whether the mean has changed since it began. It knows
nothing of agents, arms or rounds, and draws nothing. After an alarm it is to be restarted: it does not do so itself.

    GLRTest       Bernoulli or Gaussian generalised likelihood ratio: every split of what was seen
    CUSUMTest     two random walks around the mean of the first rewards
    WindowTest    the two halves of a window that slides

Their state is a list of numbers that can be read and put back.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from array import array
from collections import deque
from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

_MAX_STEPS: Final = 64
_LOG_TWO_ZETA: Final = math.log(2.0 * math.pi * math.pi / 6.0)
_LOG_THREE_HALVES: Final = math.log(1.5)


class Detector(ABC):
    """The base of all detectors."""

    @abstractmethod
    def add(self, reward: float) -> bool:
        """Take the next reward; whether the mean has changed."""

    @abstractmethod
    def restart(self) -> None:
        """Begin with nothing."""

    @property
    @abstractmethod
    def state(self) -> list[Any]:
        """All that changes."""

    @state.setter
    @abstractmethod
    def state(self, value: list[Any]) -> None: ...


def usual_threshold(n: int, delta: float) -> float:
    """`log(3 n^1.5 / delta)`, the leading term of `proved_threshold`: what its authors recommend.

    Examples
    --------
    >>> round(usual_threshold(100, 0.05), 3)
    11.002
    """
    return math.log(3.0 * n * math.sqrt(n) / delta)


def proved_threshold(n: int, delta: float) -> float:
    """The threshold for which the test is known to raise a false alarm, ever, with probability `delta` at most.

    It is 2 T(log(3 n^1.5 / delta) / 2) + 6 log(1 + log n), where T(x) = 2 g((k(1 + x) + log(2 zeta(2))) / 2), k is the
    inverse of h(u) = u - log u for u >= 1, and g(x) = exp(1 / k(x)) k(x) if x >= h(1 / log 1.5), else
    1.5 (x - log log 1.5): the two meet there.

    Examples
    --------
    >>> round(proved_threshold(100, 0.05), 3)
    42.047
    """
    x = (_inverse(1.0 + usual_threshold(n, delta) / 2.0) + _LOG_TWO_ZETA) / 2.0
    if x >= 1.0 / _LOG_THREE_HALVES + math.log(_LOG_THREE_HALVES):
        bound = math.exp(1.0 / _inverse(x)) * _inverse(x)
    else:
        bound = 1.5 * (x - math.log(_LOG_THREE_HALVES))
    return 4.0 * bound + 6.0 * math.log(1.0 + math.log(n))


def _inverse(x: float) -> float:
    """The u >= 1 for which u - log(u) = x >= 1, by Newton's iteration, which falls to the root from above."""
    if x <= 1.0:
        return 1.0
    u = x + math.log(x) + math.sqrt(2.0 * (x - 1.0))
    for _ in range(_MAX_STEPS):
        lower = u - (u - math.log(u) - x) * u / (u - 1.0)
        if not 1.0 < lower < u:
            break
        u = lower
    return u


def bernoulli_ratio(sums: NDArray[np.float64]) -> float:
    """The largest log likelihood ratio of a change, over all splits of rewards in [0, 1] with these partial sums.

    With means a of the first s of n rewards, b of the others and m of all, it is that of s d(a, m) + (n - s) d(b, m),
    where d is the Bernoulli divergence: the same as n H(m) - s H(a) - (n - s) H(b) with the entropy H.

    Examples
    --------
    >>> round(bernoulli_ratio(np.cumsum([0.0, 0.0, 0.0, 1.0, 1.0, 1.0])), 6) == round(6 * math.log(2), 6)
    True
    """
    n, first = len(sums), np.arange(1.0, len(sums))
    before, after = sums[:-1] / first, (sums[-1] - sums[:-1]) / (n - first)
    whole = n * _entropy(sums[-1:] / n)
    return float(np.max(whole - first * _entropy(before) - (n - first) * _entropy(after)))


def gaussian_ratio(sums: NDArray[np.float64], sigma: float) -> float:
    """The same for rewards of any size whose noise has this sigma: that of s (n - s) (a - b)^2 / (2 n sigma^2).

    Examples
    --------
    >>> gaussian_ratio(np.cumsum([0.0, 0.0, 4.0, 4.0]), sigma=2.0)
    2.0
    """
    n, first = len(sums), np.arange(1.0, len(sums))
    difference = sums[:-1] / first - (sums[-1] - sums[:-1]) / (n - first)
    return float(np.max(first * (n - first) / n * difference * difference)) / (2.0 * sigma * sigma)


def _entropy(p: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of coins with these chances; 0 where chance has no part."""
    inside = np.clip(p, 1e-300, 1.0 - 1e-16)
    entropy: NDArray[np.float64] = -(inside * np.log(inside) + (1.0 - inside) * np.log1p(-inside))
    entropy[(p <= 0.0) | (p >= 1.0)] = 0.0
    return entropy


class GLRTest(Detector):
    """The generalised likelihood ratio test of Besson, Kaufmann, Maillard and Seznec.

    There is a change if, for some split of the n rewards seen, the log likelihood ratio of two means to one is at least
    the threshold for n.

    Parameters
    ----------
    delta : float
        How likely a false alarm may be.
    sigma : float or None
        The noise of the rewards; None for rewards between 0 and 1, whose divergence is that of coins.
    every : int
        The test is made after this many rewards each time: false alarms do not become more likely, and an alarm comes
        at most this many rewards later.
    proved : bool
        Whether to take `proved_threshold` instead of `usual_threshold`.

    Examples
    --------
    >>> test = GLRTest(delta=0.05)
    >>> [test.add(reward) for reward in [0.0] * 20 + [1.0] * 20].index(True)
    22
    """

    def __init__(self, delta: float, sigma: float | None = None, every: int = 1, proved: bool = False) -> None:
        self._delta = delta
        self._sigma = sigma
        self._every = every
        self._threshold: Callable[[int, float], float] = proved_threshold if proved else usual_threshold
        self.restart()

    def restart(self) -> None:
        """Begin with nothing."""
        self._sums = array("d")

    def add(self, reward: float) -> bool:
        """Take the next reward; whether the mean has changed."""
        sums = self._sums
        sums.append(sums[-1] + reward if sums else reward)
        n = len(sums)
        if n < 2 or n % self._every:
            return False
        seen = np.frombuffer(sums)
        ratio = bernoulli_ratio(seen) if self._sigma is None else gaussian_ratio(seen, self._sigma)
        return ratio >= self._threshold(n, self._delta)

    @property
    def state(self) -> list[Any]:
        """The partial sums."""
        return self._sums.tolist()

    @state.setter
    def state(self, value: list[Any]) -> None:
        self._sums = array("d", value)


class CUSUMTest(Detector):
    """The two-sided CUSUM test of Liu, Lee and Shroff.

    The mean u of the first rewards is what the others are compared with. Each later reward y moves two walks, one by
    y - u - drift and one by u - y - drift, neither below 0. There is a change if one of them reaches the threshold.

    Parameters
    ----------
    first : int
        How many rewards u is the mean of.
    drift : float
        Changes smaller than this are not noticed.
    threshold : float
        How far a walk must come.
    unit : float
        What rewards are divided by; 1 for those between 0 and 1.

    Examples
    --------
    >>> test = CUSUMTest(first=10, drift=0.1, threshold=3.0)
    >>> [test.add(reward) for reward in [0.0] * 20 + [1.0] * 20].index(True)
    23
    """

    def __init__(self, first: int, drift: float, threshold: float, unit: float = 1.0) -> None:
        self._first = first
        self._drift = drift
        self._threshold = threshold
        self._unit = unit
        self.restart()

    def restart(self) -> None:
        """Begin with nothing."""
        self._n, self._total, self._up, self._down = 0, 0.0, 0.0, 0.0

    def add(self, reward: float) -> bool:
        """Take the next reward; whether the mean has changed."""
        self._n += 1
        if self._n <= self._first:
            self._total += reward
            return False
        above = (reward - self._total / self._first) / self._unit
        self._up = max(0.0, self._up + above - self._drift)
        self._down = max(0.0, self._down - above - self._drift)
        return max(self._up, self._down) >= self._threshold

    @property
    def state(self) -> list[Any]:
        """How many rewards there were, the sum of the first ones, and both walks."""
        return [self._n, self._total, self._up, self._down]

    @state.setter
    def state(self, value: list[Any]) -> None:
        self._n, self._total, self._up, self._down = value


class WindowTest(Detector):
    """The test of Cao, Wen, Kveton and Xie: of the latest rewards, the sums of both halves differ by too much.

    Parameters
    ----------
    width : int
        How many rewards are looked at, an even number.
    threshold : float
        There is a change if the sums differ by more.
    unit : float
        What rewards are divided by; 1 for those between 0 and 1.

    Examples
    --------
    >>> test = WindowTest(width=20, threshold=6.0)
    >>> [test.add(reward) for reward in [0.0] * 20 + [1.0] * 20].index(True)
    26
    """

    def __init__(self, width: int, threshold: float, unit: float = 1.0) -> None:
        self._width = width
        self._threshold = threshold
        self._unit = unit
        self.restart()

    def restart(self) -> None:
        """Begin with nothing."""
        self._latest: deque[float] = deque(maxlen=self._width)

    def add(self, reward: float) -> bool:
        """Take the next reward; whether the mean has changed."""
        latest = self._latest
        latest.append(reward)
        if len(latest) < self._width:
            return False
        rewards = list(latest)
        half = self._width // 2
        return abs(math.fsum(rewards[half:]) - math.fsum(rewards[:half])) > self._threshold * self._unit

    @property
    def state(self) -> list[Any]:
        """The latest rewards, the oldest first."""
        return list(self._latest)

    @state.setter
    def state(self, value: list[Any]) -> None:
        self._latest = deque(value, maxlen=self._width)
