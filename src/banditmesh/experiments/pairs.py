"""Paired differences: what common random numbers are for."""

from __future__ import annotations

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
    from scipy.stats import t

    checks.probability("confidence", confidence)
    n = len(differences)
    if n < 2:
        return float("nan"), float("nan")
    mean = float(np.mean(differences))
    half = float(t.ppf(0.5 + confidence / 2, n - 1)) * float(np.std(differences, ddof=1)) / n**0.5
    return mean - half, mean + half
