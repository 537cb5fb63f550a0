"""Laws that jump to a new mean at random."""

# Methods that override those of `Law` are documented there.
# ruff: noqa: D102

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from .. import checks
from .base import Law, derive
from .changing import RandomLaw

SWITCHING: Final = 0


@dataclass(frozen=True)
class Switching(RandomLaw):
    """A law that in every round but the first, with some probability, gets a new mean, uniform between two values.

    Parameters
    ----------
    law : Law
        `Gaussian`, `Bernoulli` or `Uniform`; pays in the first round.
    rate : float
        The probability of a new mean, each round.
    low, high : float
        The least and the greatest mean, with the law's own between them.

    Examples
    --------
    >>> import banditmesh as bm
    >>> law = Switching(bm.arms.Gaussian(0.5, 1.0), 0.1, 0.0, 1.0)
    >>> problem = bm.Problem(bm.networks.ring(3), [[0]] * 3, [law])
    >>> [round(float(problem.means_at(t, seed=1)[0]), 3) for t in range(1, 8)]
    [0.5, 0.5, 0.182, 0.182, 0.182, 0.182, 0.182]
    """

    jumps = True
    law: Law
    rate: float
    low: float
    high: float

    def __post_init__(self) -> None:
        derive(self, rate=checks.probability("rate", self.rate))
        self._check_ends()

    @property
    def recipe(self) -> tuple[int, float, int]:
        return SWITCHING, self.rate, 1

    def describe(self) -> dict[str, Any]:
        return {"law": "switching", "start": self.law.describe(), "rate": self.rate, "low": self.low, "high": self.high}


def switched(u: float, low: float, high: float) -> float:
    """The new mean for a number `u` drawn between 0 and 1; plain Python and compiled code share it.

    Examples
    --------
    >>> switched(0.25, 0.0, 2.0)
    0.5
    """
    return min(high, low + (high - low) * u)
