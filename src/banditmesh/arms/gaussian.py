"""Normal rewards."""

# Methods that override those of `Law` are documented there.
# ruff: noqa: D102

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .. import checks
from .base import Law, check_range, derive, never_equal
from .quantiles import GAUSSIAN, law_quantile


@dataclass(frozen=True)
class Gaussian(Law):
    """Normal rewards. They are continuous unless `sigma` is tiny compared with the mean, below 2**-20 of it.

    Parameters
    ----------
    mean : float
    sigma : float
        The standard deviation, above zero.

    Examples
    --------
    >>> Gaussian(0.5, 2.0).quantile(0.5)
    0.5
    """

    mean: float
    sigma: float = 1.0

    def __post_init__(self) -> None:
        derive(self, mean=checks.real("mean", self.mean), sigma=checks.positive("sigma", self.sigma))
        derive(self, continuous=never_equal(self.sigma, abs(self.mean)), kernel=(GAUSSIAN, self.mean, self.sigma))
        check_range(self)

    def quantile(self, u: float) -> float:
        return law_quantile(GAUSSIAN, self.mean, self.sigma, u)

    def describe(self) -> dict[str, Any]:
        return {"law": "gaussian", "mean": self.mean, "sigma": self.sigma}
