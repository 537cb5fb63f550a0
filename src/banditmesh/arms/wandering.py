"""Laws whose mean walks at random."""

# Methods that override those of `Law` are documented there.
# ruff: noqa: D102

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from .. import checks
from ..draws import MAX_COUNTER
from .base import Law, derive
from .changing import RandomLaw

WANDERING: Final = 1


@dataclass(frozen=True)
class Wandering(RandomLaw):
    """A law whose mean is a Gaussian random walk between two values, at which it is reflected.

    Parameters
    ----------
    law : Law
        `Gaussian`, `Bernoulli` or `Uniform`; pays until the first step.
    step : float
        The standard deviation of a step, above 0.
    low, high : float
        The least and the greatest mean, with the law's own between them.
    hold : int
        It steps in rounds 1 + hold, 1 + 2 hold, and so on.

    Examples
    --------
    >>> import banditmesh as bm
    >>> law = Wandering(bm.arms.Gaussian(0.5, 1.0), 0.1, 0.0, 1.0, hold=3)
    >>> problem = bm.Problem(bm.networks.ring(3), [[0]] * 3, [law])
    >>> means = [float(problem.means_at(t, seed=1)[0]) for t in range(1, 8)]
    >>> len(set(means[:3])), len(set(means[3:6])), len(set(means))
    (1, 1, 3)
    """

    law: Law
    step: float
    low: float
    high: float
    hold: int = 1

    def __post_init__(self) -> None:
        derive(self, step=checks.positive("step", self.step))
        derive(self, hold=checks.integer("hold", self.hold, at_least=1, at_most=MAX_COUNTER))
        self._check_ends()

    @property
    def least_horizon(self) -> int:  # type: ignore[override]
        return 1 + self.hold

    @property
    def recipe(self) -> tuple[int, float, int]:
        return WANDERING, self.step, self.hold

    def describe(self) -> dict[str, Any]:
        ends = {"low": self.low, "high": self.high, "hold": self.hold}
        return {"law": "wandering", "start": self.law.describe(), "step": self.step, **ends}


def wandered(mean: float, normal: float, step: float, low: float, high: float) -> float:
    """The mean after a step, for a normal number that was drawn; plain Python and compiled code share it.

    Examples
    --------
    >>> wandered(0.5, 0.0, 0.1, 0.0, 1.0), wandered(0.5, -6.0, 1.0, 0.0, 1.0) >= 0.0
    (0.5, True)
    """
    moved = mean + step * normal
    if low <= moved <= high:
        return moved
    # Reflected as often as needed: with both ends, the way back and forth repeats every two widths.
    width = high - low
    past = abs(moved - low) % (2.0 * width)
    return min(high, low + (past if past <= width else 2.0 * width - past))
