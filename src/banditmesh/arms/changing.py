"""What every changing law is: a stationary law of one kind for every round, whose parameters change with it.

Rules: rounds count from 1; the kind of law stays, and so do what policies are told of it, its code and its `sigma`, the
largest of all rounds (of coins 1/2). A mean moves by shifting the law, which `Gaussian`, `Bernoulli` and `Uniform` can.
A change that is drawn depends on the replicate: such a law is a `RandomLaw`, and has no `at(t)`.
"""

# Methods that override those of `Law` are documented there.
# ruff: noqa: D102

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np

from .. import checks
from ..errors import ArmError
from .base import MAX_REWARD, Floats, Law, check_range
from .bernoulli import Bernoulli
from .gaussian import Gaussian
from .quantiles import BERNOULLI, UNIFORM
from .replay import Replay
from .uniform import Uniform


class Rows(NamedTuple):
    """A law in some rounds, one after the other: its mean, and the two numbers that `law_quantile` takes.

    Of laws without a code the two numbers say nothing, but that the law is another one where they are others.
    """

    means: Floats
    a: Floats
    b: Floats


class ChangingLaw(Law):
    """A law that changes with the round. Your own is a subclass that gives `at(t)`, always the same kind of law.

    Attributes
    ----------
    start : Law
        The law of the first round.
    sigma : float or None
        The largest of all rounds. Your own law of other rewards than coins must set it, unless it is that of the first
        round.
    jumps : bool
        Whether results keep the rounds in which it changes.
    least_horizon : int
        A run that ends before this round would not meet all that changes.

    Examples
    --------
    >>> import banditmesh as bm
    >>> class Fading(ChangingLaw):
    ...     def at(self, t):
    ...         return bm.arms.Bernoulli(0.5 + 0.5 / t)
    >>> Fading().at(2), Fading().sigma
    (Bernoulli(p=0.75), 0.5)
    >>> bm.Problem([("ann", "bob")], [["x"], ["x"]], {"x": Fading()}).means_at(4)
    array([0.625])
    """

    changes = True
    jumps: bool = False
    least_horizon: int = 1

    def at(self, t: int) -> Law:
        raise ArmError(f"a changing law must define at(t), got {type(self).__name__} without it")

    @cached_property
    def start(self) -> Law:
        return self.at(1)

    @property
    def mean(self) -> float:  # type: ignore[override]
        raise ArmError(f"a changing law has a mean in every round and none for all, got {self!r}; ask for at(t).mean")

    @cached_property
    def sigma(self) -> float | None:  # type: ignore[override]
        return self._largest([self.start])

    @cached_property
    def continuous(self) -> bool:  # type: ignore[override]
        return self.start.continuous

    @cached_property
    def kernel(self) -> tuple[int, float, float] | None:  # type: ignore[override]
        return self.start.kernel

    def quantile(self, u: float) -> float:
        raise ArmError(f"a changing law pays by the round, got {self!r} and none; ask for at(t).quantile(u)")

    def rows(self, first: int, last: int) -> Rows:
        """The law in the rounds from `first` to before `last`."""
        laws = [self.at(t) for t in range(first, last)]
        for law in laws:
            self._check_round(law)
        numbers = [(0.0, 0.0) if law.kernel is None else law.kernel[1:] for law in laws]
        a, b = np.array(numbers, dtype=np.float64).reshape(-1, 2).T
        return Rows(np.array([law.mean for law in laws], dtype=np.float64), a, b)

    def _check_round(self, law: object) -> None:
        if law is self.start:
            return
        same_kind(self.start, law, f"every round of {type(self).__name__}")
        assert isinstance(law, Law)
        if self.sigma is not None and law.code != BERNOULLI and (law.sigma is None or law.sigma > self.sigma):
            raise ArmError(
                f"sigma of the law {type(self).__name__} must be the largest of all rounds, got {self.sigma!r} and "
                f"{law.sigma!r} in a round; set it"
            )

    @staticmethod
    def _largest(laws: list[Law]) -> float | None:
        """The sigma of a law that is each of these in some round."""
        if laws[0].code == BERNOULLI:
            return 0.5
        sigmas = [law.sigma for law in laws]
        return None if None in sigmas else max(sigma for sigma in sigmas if sigma is not None)


class ShiftedLaw(ChangingLaw):
    """A changing law whose mean alone changes: another law, shifted.

    Attributes
    ----------
    law : Law
        What is shifted: `Gaussian`, `Bernoulli` or `Uniform`.
    """

    law: Law

    @property
    def start(self) -> Law:
        return self.law

    def means(self, first: int, last: int) -> Floats:
        """The means in the rounds from `first` to before `last`."""
        raise ArmError(f"a law whose mean moves must define means(), got {type(self).__name__} without it")

    def at(self, t: int) -> Law:
        return shifted(self.law, float(self.means(t, t + 1)[0]))

    def rows(self, first: int, last: int) -> Rows:
        return Rows(*(array[:, 0] for array in Shifting([self.law]).rows(self.means(first, last)[:, None])))


class RandomLaw(ShiftedLaw):
    """A law whose mean is drawn as it goes, so that it depends on seed and replicate; it starts as `law`.

    Your own is a subclass that gives `walk`.

    Attributes
    ----------
    law : Law
        What is shifted, and what pays in the first round.
    low, high : float
        No mean is below or above.
    recipe : tuple of (int, float, int) or None
        Which of the built-in ways of changing it has, its rate or step, and the rounds between two steps; None if none.

    Examples
    --------
    >>> import banditmesh as bm
    >>> isinstance(bm.arms.Switching(bm.arms.Gaussian(0.5, 1.0), rate=0.1, low=0.0, high=1.0), RandomLaw)
    True
    """

    low: float
    high: float
    recipe: ClassVar[Any] = None

    def at(self, t: int) -> Law:
        raise ArmError(
            f"what {type(self).__name__} pays depends on seed and replicate, got a round alone; "
            "ask problem.means_at(t, seed=..., replicate=...)"
        )

    def means(self, first: int, last: int) -> Floats:
        return np.array([self.at(t).mean for t in range(first, last)])

    def walk(self, whether: Callable[[int], float], what: Callable[[int], float]) -> Iterator[float]:
        """The means in rounds 1, 2, ...; `whether(t)` and `what(t)` are drawn for a round, between 0 and 1."""
        raise ArmError(f"a law that changes at random must define walk(), got {type(self).__name__} without it")

    def _check_ends(self) -> None:
        """Refuse ends that are none, that the law's mean is outside of, or that it cannot be shifted to."""
        low, high = checks.real("low", self.low), checks.real("high", self.high)
        if not low < high:
            raise ArmError(f"high must be above low, got low {low!r} and high {high!r}")
        can_shift(self.law)
        if not low <= self.law.mean <= high:
            raise ArmError(
                f"low and high must have the law's mean between them, got {low!r}, {high!r} and {self.law!r}"
            )
        for mean in (low, high):
            check_mean(self.law, mean, f"{type(self).__name__} between {low!r} and {high!r}")
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)


def can_shift(law: object) -> None:
    """Refuse a law whose mean cannot be moved by shifting it."""
    if type(law) not in (Gaussian, Bernoulli, Uniform):
        got = type(law).__name__ if isinstance(law, Law) else checks.shown(law)
        raise ArmError(f"the mean of Gaussian, Bernoulli and Uniform laws can move, got {got}; change it by Piecewise")


def check_mean(law: Law, mean: float, who: str) -> None:
    """Refuse a mean that a law cannot be shifted to; nothing is clipped."""
    if law.code == BERNOULLI and not 0.0 <= mean <= 1.0:
        raise ArmError(
            f"the mean of a Bernoulli law must stay between 0 and 1, got {mean:g} for {who}; move it less far"
        )
    if not abs(mean) <= MAX_REWARD:
        raise ArmError(f"a mean must lie between {-MAX_REWARD:g} and {MAX_REWARD:g}, got {mean:g} for {who}")
    check_range(shifted(law, mean))


def same_kind(law: Law, other: object, where: str) -> None:
    """Refuse a second law that is of another kind than the first, or that changes or is used up itself."""
    for one in (law, other):
        if not isinstance(one, Law):
            raise ArmError(f"{where} must be a law of banditmesh.arms, got {checks.shown(one)}")
        if one.changes or isinstance(one, Replay):
            raise ArmError(f"{where} must be a law that neither changes nor is used up, got {type(one).__name__}")
    assert isinstance(other, Law)
    if type(law) is not type(other) or law.code != other.code:
        raise ArmError(
            f"{where} must be of one kind of law, got {type(law).__name__} and {type(other).__name__}; "
            "parameters change, the kind stays"
        )


def shifted(law: Law, mean: float) -> Law:
    """A Gaussian, Bernoulli or Uniform law, moved to another mean.

    Examples
    --------
    >>> shifted(Uniform(0.0, 2.0), 4.0)
    Uniform(low=3.0, high=5.0)
    """
    if isinstance(law, Uniform):
        by = mean - law.mean
        return Uniform(law.low + by, law.high + by)
    return Bernoulli(mean) if isinstance(law, Bernoulli) else Gaussian(mean, law.sigma)  # type: ignore[arg-type]


class Shifting:
    """The same for many laws at once, in the same bits.

    Parameters
    ----------
    laws : sequence of Law
        What is shifted.
    """

    def __init__(self, laws: Sequence[Law]) -> None:
        numbers = np.array([law.kernel for law in laws], dtype=np.float64).reshape(-1, 3)
        self._is_uniform, self._a, self._b = numbers[:, 0] == UNIFORM, numbers[:, 1], numbers[:, 2]
        self._means = np.array([law.mean for law in laws])

    def rows(self, means: Floats) -> Rows:
        """The laws in some rounds, each moved to the means of a column."""
        b = np.broadcast_to(self._b, means.shape)
        if not self._is_uniform.any():
            return Rows(means, means, b)
        by = means - self._means
        low, high = self._a + by, self._b + by
        return Rows(
            np.where(self._is_uniform, low + (high - low) / 2.0, means),
            np.where(self._is_uniform, low, means),
            np.where(self._is_uniform, high, b),
        )
