"""Beta rewards between 0 and 1."""

# Methods that override those of `Law` are documented there.
# ruff: noqa: D102

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import checks
from .base import Floats, Law, derive, never_equal


@dataclass(frozen=True)
class Beta(Law):
    """Beta rewards on [0, 1].

    `sigma` is 1 / (2 sqrt(a + b + 1)), a simple bound that always holds (Marchal and Arbel, 2017). With a shape below
    1, rewards may round to 0 or 1, and with a very large one to the same number near their mean: then they are not
    continuous.

    Parameters
    ----------
    a, b : float
        The two shapes, above zero.

    Examples
    --------
    >>> law = Beta(2.0, 2.0)
    >>> law.mean, round(law.quantile(0.5), 12)
    (0.5, 0.5)
    """

    a: float
    b: float

    def __post_init__(self) -> None:
        a, b = checks.positive("a", self.a), checks.positive("b", self.b)
        n = checks.positive("a + b", a + b)
        mean, deviation = a / n, math.sqrt(a / n * (b / n) / (n + 1.0))
        continuous = min(a, b) >= 1.0 and never_equal(deviation, mean)
        derive(self, a=a, b=b, mean=mean, sigma=0.5 / math.sqrt(n + 1.0), continuous=continuous)

    def quantile(self, u: float) -> float:
        from scipy.special import betaincinv

        return float(betaincinv(self.a, self.b, u))

    def quantiles(self, u: npt.ArrayLike) -> Floats:
        from scipy.special import betaincinv

        return np.asarray(betaincinv(self.a, self.b, np.asarray(u, dtype=np.float64)))

    def describe(self) -> dict[str, Any]:
        return {"law": "beta", "a": self.a, "b": self.b}
