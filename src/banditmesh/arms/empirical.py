"""Rewards drawn from a given sample."""

# Methods that override those of `Law` are documented there.
# ruff: noqa: D102

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import checks
from ..errors import ArmError
from .base import Floats, Law, check_range, derive


@dataclass(frozen=True)
class Empirical(Law):
    """Rewards drawn from a given sample, each entry equally likely. `sigma` is half the range (Hoeffding).

    Parameters
    ----------
    sample : iterable of float
        At least one finite number; kept sorted.

    Examples
    --------
    >>> law = Empirical([3.0, 1.0, 2.0])
    >>> law.mean, law.quantile(0.1), law.quantile(0.9)
    (2.0, 1.0, 3.0)
    """

    sample: Iterable[float]
    _sorted: Floats = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        try:
            values = iter(self.sample)
        except TypeError:
            raise ArmError(f"sample must be a list of numbers, got {checks.shown(self.sample)}") from None
        sample = tuple(sorted(checks.real("every entry of sample", value) for value in values))
        if not sample:
            raise ArmError("sample must have at least one number, got none")
        array = np.array(sample, dtype=np.float64)
        array.flags.writeable = False
        derive(self, sample=sample, _sorted=array)
        check_range(self)
        derive(self, mean=math.fsum(sample) / len(sample), sigma=(sample[-1] - sample[0]) / 2.0)

    def quantile(self, u: float) -> float:
        return float(self._sorted[int(u * len(self._sorted))])

    def quantiles(self, u: npt.ArrayLike) -> Floats:
        places = np.asarray(u, dtype=np.float64) * len(self._sorted)
        return np.asarray(self._sorted[places.astype(np.int64)])

    def describe(self) -> dict[str, Any]:
        return {"law": "empirical", "sample": self._sorted.tolist()}
