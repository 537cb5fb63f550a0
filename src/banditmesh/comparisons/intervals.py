"""Paired differences: what common random numbers are for."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import checks


def paired_interval(differences: NDArray[Any], confidence: float = 0.95) -> tuple[float, float]:
    """A confidence interval for the mean of paired differences, by Student's t; (nan, nan) from a single pair.

    Examples
    --------
    >>> import numpy as np
    >>> low, high = paired_interval(np.array([1.0, 2.0, 3.0]))
    >>> round(low, 3), round(high, 3)
    (-0.484, 4.484)
    """
    checks.probability("confidence", confidence)
    n = len(differences)
    if n < 2:
        return float("nan"), float("nan")
    mean = float(np.mean(differences))
    half = _quantile(0.5 + confidence / 2, n - 1) * float(np.std(differences, ddof=1)) / n**0.5
    return mean - half, mean + half


def lead(differences: NDArray[Any], confidence: float = 0.95) -> tuple[float, float]:
    """The mean of paired differences, and the margin beyond which it counts as positive: Student's, one-sided.

    Examples
    --------
    >>> import numpy as np
    >>> mean, margin = lead(np.array([1.0, 2.0, 3.0]))
    >>> mean, round(margin, 3)
    (2.0, 1.686)
    """
    n = len(differences)
    return float(np.mean(differences)), _quantile(confidence, n - 1) * float(np.std(differences, ddof=1)) / n**0.5


@cache
def _quantile(probability: float, degrees: int) -> float:
    # Importing scipy.stats takes four times as long.
    from scipy.special import stdtrit

    return float(stdtrit(degrees, probability)) if 0 < probability < 1 else math.copysign(math.inf, probability - 0.5)


def mean_interval(values: NDArray[Any], confidence: float = 0.95) -> tuple[float, float, float]:
    """Mean and confidence interval of values (instances, replicates), for these arm instances.

    Replicates of one instance are independent draws; instances are strata of equal weight, each with its own variance.
    With one instance this is Student's interval. The ends are nan if there is only one replicate.

    Examples
    --------
    >>> import numpy as np
    >>> [round(value, 3) for value in mean_interval(np.array([[1.0, 2.0, 3.0], [11.0, 12.0, 13.0]]))]
    [7.0, 5.867, 8.133]
    """
    checks.probability("confidence", confidence)
    instances, replicates = values.shape
    mean = float(values.mean())
    if replicates < 2:
        return mean, float("nan"), float("nan")
    error = float(np.sqrt(values.var(axis=1, ddof=1).mean() / (replicates * instances)))
    half = _quantile(0.5 + confidence / 2, instances * (replicates - 1)) * error
    return mean, mean - half, mean + half
