"""The laws of scipy.stats, adapted."""

# Methods that override those of `Law` are documented there.
# ruff: noqa: D102

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import ArmError
from .base import Floats, Law, check_range, derive


@dataclass(frozen=True, repr=False)
class ScipyLaw(Law):
    """Any frozen law of scipy.stats with a finite mean.

    `sigma` is the standard deviation of a normal law, half the range of a bounded one, and otherwise None:
    then the law can be simulated, but bounds must be given a sigma. It never counts as continuous, because scipy's
    quantiles may round to the ends of their range.

    Parameters
    ----------
    frozen : frozen distribution of scipy.stats

    Examples
    --------
    >>> import scipy.stats
    >>> law = ScipyLaw(scipy.stats.expon(scale=2.0))
    >>> law
    ScipyLaw(expon(scale=2.0))
    >>> law.mean, law.sigma, law.continuous
    (2.0, None, False)
    """

    frozen: Any

    def __repr__(self) -> str:
        keywords = (f"{name}={value!r}" for name, value in self.frozen.kwds.items())
        return f"ScipyLaw({self.frozen.dist.name}({', '.join([*map(repr, self.frozen.args), *keywords])}))"

    def __post_init__(self) -> None:
        if not is_frozen(self.frozen):
            raise ArmError(f"a frozen scipy.stats law is required, got {type(self.frozen).__name__}")
        if np.ndim(self.frozen.mean()):
            raise ArmError("an arm must be a single law, got a scipy.stats law with arrays of parameters")
        mean = float(self.frozen.mean())
        if not math.isfinite(mean):
            raise ArmError(f"a law needs a finite mean, got scipy.stats.{self.frozen.dist.name} with mean {mean}")
        check_range(self)
        low, high = (float(end) for end in self.frozen.support())
        sigma = (high - low) / 2.0 if math.isfinite(high - low) else None
        if self.frozen.dist.name == "norm":
            sigma = float(self.frozen.std())
        derive(self, mean=mean, sigma=sigma)

    def quantile(self, u: float) -> float:
        # Through an array, so that scipy takes the same path as in `quantiles`.
        return float(self.quantiles(np.array([u]))[0])

    def quantiles(self, u: npt.ArrayLike) -> Floats:
        with np.errstate(all="ignore"):  # far out in the tails, scipy may reckon with infinity on its way
            return np.asarray(self.frozen.ppf(np.asarray(u, dtype=np.float64)), dtype=np.float64)

    def describe(self) -> dict[str, Any]:
        import scipy.stats

        name = self.frozen.dist.name
        if not hasattr(scipy.stats, str(name)):
            raise ArmError(f"a saved law must be one of scipy.stats by name, got {name!r}")
        keywords = {key: float(value) for key, value in self.frozen.kwds.items()}
        return {"law": "scipy", "name": name, "args": [float(x) for x in self.frozen.args], "kwds": keywords}


def is_frozen(value: object) -> bool:
    """Whether `value` looks like a frozen law of scipy.stats."""
    return all(hasattr(value, name) for name in ("dist", "args", "kwds", "ppf", "support"))
