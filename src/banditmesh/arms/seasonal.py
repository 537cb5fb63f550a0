"""Laws whose mean swings up and down."""

# Methods that override those of `Law` are documented there.
# ruff: noqa: D102

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import checks
from .base import Floats, Law, derive
from .changing import ShiftedLaw, can_shift, check_mean


@dataclass(frozen=True)
class Seasonal(ShiftedLaw):
    """A law whose mean is its own plus a sine: amplitude * sin(2 pi (t + phase) / period) in round t.

    Parameters
    ----------
    law : Law
        `Gaussian`, `Bernoulli` or `Uniform`.
    amplitude : float
        How far the mean swings to either side.
    period : float
        The rounds of one swing, above 0.
    phase : float
        How many rounds ahead the swing is.

    Examples
    --------
    >>> import banditmesh as bm
    >>> law = Seasonal(bm.arms.Bernoulli(0.5), 0.25, period=8)
    >>> [round(law.at(t).mean, 3) for t in range(1, 9)]
    [0.677, 0.75, 0.677, 0.5, 0.323, 0.25, 0.323, 0.5]
    """

    law: Law
    amplitude: float
    period: float
    phase: float = 0.0

    def __post_init__(self) -> None:
        amplitude, period = checks.real("amplitude", self.amplitude), checks.positive("period", self.period)
        derive(self, amplitude=amplitude, period=period, phase=checks.real("phase", self.phase))
        can_shift(self.law)
        for mean in (self.law.mean - amplitude, self.law.mean + amplitude):
            check_mean(self.law, mean, f"a mean of {self.law.mean:g} that swings by {amplitude:g}")

    def means(self, first: int, last: int) -> Floats:
        return swinging(np.arange(first, last), *self.swing)

    @property
    def swing(self) -> tuple[float, float, float, float]:
        """Mean, amplitude, period and phase."""
        return self.law.mean, self.amplitude, self.period, self.phase

    def describe(self) -> dict[str, Any]:
        swing = {"amplitude": self.amplitude, "period": self.period, "phase": self.phase}
        return {"law": "seasonal", "start": self.law.describe(), **swing}


def swinging(rounds: npt.NDArray[np.int64], mean: Any, amplitude: Any, period: Any, phase: Any) -> Floats:
    """The means in some rounds: of one law or, for a column of rounds and arrays of numbers, of several.

    Examples
    --------
    >>> swinging(np.array([0, 2]), 0.5, 0.25, 8.0, 0.0)
    array([0.5 , 0.75])
    """
    means: Floats = np.asarray(rounds + phase, dtype=np.float64)
    # In place: for all arms and many rounds, new arrays would take as long as the sines.
    means *= 2.0 * math.pi
    means /= period
    np.sin(means, out=means)
    means *= amplitude
    means += mean
    return means
