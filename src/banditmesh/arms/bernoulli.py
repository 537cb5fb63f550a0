"""Rewards 0 and 1."""

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
from .quantiles import BERNOULLI, law_quantile


@dataclass(frozen=True)
class Bernoulli(Law):
    """Rewards 0 and 1.

    `sigma` squared is the least variance proxy, (1 - 2p) / (2 log((1 - p) / p)) (Kearns and Saul, 1998).

    Parameters
    ----------
    p : float
        The probability of 1; 0 and 1 are allowed.

    Examples
    --------
    >>> law = Bernoulli(0.5)
    >>> law.mean, law.sigma, law.quantile(0.7)
    (0.5, 0.5, 1.0)
    """

    p: float

    def __post_init__(self) -> None:
        p = checks.probability("p", self.p)
        sigma = _bernoulli_sigma(p)
        derive(self, p=p, mean=p, sigma=sigma, kernel=(BERNOULLI, p, 0.0))

    def quantile(self, u: float) -> float:
        return law_quantile(BERNOULLI, self.p, 0.0, u)

    def quantiles(self, u: npt.ArrayLike) -> Floats:
        return np.where(np.asarray(u, dtype=np.float64) > 1.0 - self.p, 1.0, 0.0)

    def describe(self) -> dict[str, Any]:
        return {"law": "bernoulli", "p": self.p}


def _bernoulli_sigma(p: float) -> float:
    if p in (0.0, 1.0):
        return 0.0
    x = 1.0 - 2.0 * p
    if x == 0.0:
        return 0.5
    # log((1 - p) / p) is 2 artanh(x): exact to rounding near p = 1/2, where the difference of logs cancels.
    log_odds = 2.0 * math.atanh(x) if abs(x) < 0.5 else math.log1p(-p) - math.log(p)
    return math.sqrt(x / (2.0 * log_odds))
