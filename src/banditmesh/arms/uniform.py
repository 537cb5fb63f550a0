"""Rewards spread evenly between two values."""

# Methods that override those of `Law` are documented there.
# ruff: noqa: D102

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import checks
from ..errors import ArmError
from .base import Floats, Law, check_range, derive, never_equal
from .quantiles import UNIFORM, law_quantile


@dataclass(frozen=True)
class Uniform(Law):
    """Rewards spread evenly between two values. `sigma` is the standard deviation, which is exact here.

    They are continuous unless the two values are very close, nearer than 2**-20 of the larger.

    Parameters
    ----------
    low, high : float
        With low < high.

    Examples
    --------
    >>> law = Uniform(0.0, 4.0)
    >>> law.mean, law.quantile(0.25)
    (2.0, 1.0)
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        low, high = checks.real("low", self.low), checks.real("high", self.high)
        if not low < high:
            raise ArmError(f"high must be above low, got low {low!r} and high {high!r}")
        width = checks.positive("high - low", high - low)
        sigma = width / math.sqrt(12.0)
        continuous = never_equal(width, max(abs(low), abs(high)))
        derive(self, low=low, high=high, mean=low + width / 2.0, sigma=sigma)
        derive(self, continuous=continuous, kernel=(UNIFORM, low, high))
        check_range(self)

    def quantile(self, u: float) -> float:
        return law_quantile(UNIFORM, self.low, self.high, u)

    def quantiles(self, u: npt.ArrayLike) -> Floats:
        return np.asarray(self.low + (self.high - self.low) * np.asarray(u, dtype=np.float64))

    def describe(self) -> dict[str, Any]:
        return {"law": "uniform", "low": self.low, "high": self.high}
