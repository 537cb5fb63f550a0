"""The upper bound on group regret: three terms, at any horizon (Theorems 1 and 2).

`4 alpha log T * sum of 1 / Delta_a` for distinguishing the arms, `b` for deviations of the estimates, and for the delay
of messages `f = sum of gap * min(2 g, 4 alpha log T / gap^2)`. The published and the corrected form differ only in b
and in what they require of alpha: docs/theory/upper-bound.md shows that the third term as printed suffices.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True, eq=False)
class UpperBound:
    """A bound on the expected group regret, as a function of the horizon.

    Attributes
    ----------
    alpha : float
        Of the policy, UCB.
    ttl : int
        The paper's gamma; 0 without cooperation.
    weighted : float
        The sum over arms of `1 / Delta_a`.
    gaps : float array
        All positive gaps, of every agent and arm.
    luck : float
        The factor of b per unit of gap; see `concentration`.

    Examples
    --------
    >>> import numpy as np
    >>> bound = UpperBound(alpha=2.0, ttl=1, weighted=4.0, gaps=np.array([0.5, 0.25]), luck=10.0)
    >>> bound.constant, bound.bad_luck, bound.at([1, 100]).round(1).tolist()
    (32.0, 7.5, [7.5, 156.4])
    """

    alpha: float
    ttl: int
    weighted: float
    gaps: NDArray[np.float64]
    luck: float

    @property
    def constant(self) -> float:
        """The most that regret over log T can be as T grows: the sum of `4 alpha / Delta_a` (Corollaries 1 and 2)."""
        return 4.0 * self.alpha * self.weighted

    @property
    def bad_luck(self) -> float:
        """The term b: the cost of wrong estimates over all rounds."""
        return float(self.luck * self.gaps.sum()) if self.gaps.size else 0.0

    def exploration(self, horizon: ArrayLike) -> Any:
        """The term that grows with log T."""
        return self.constant * np.log(horizon)

    def delay(self, horizon: ArrayLike) -> Any:
        """The term f: the cost of pulls while messages are on their way."""
        needed = 4.0 * self.alpha * np.log(np.asarray(horizon, dtype=float))[..., None] / self.gaps
        return np.minimum(2.0 * self.ttl * self.gaps, needed).sum(axis=-1)

    def at(self, horizon: ArrayLike) -> Any:
        """The bound at one or several horizons."""
        return self.exploration(horizon) + self.bad_luck + self.delay(horizon)
