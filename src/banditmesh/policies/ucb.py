"""UCB, the paper's policy: the mean and a bonus for what has been seen little of."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from .. import checks
from .base import Policy


@dataclass(frozen=True)
class UCB(Policy):
    """Upper confidence bound: pull the arm with the highest `mean + sqrt(alpha * log(t) / count)`.

    Parameters
    ----------
    alpha : float
        The width of the bonus, in the convention of the paper's proof; 3 is what its experiments used. (Its algorithm
        box writes `2 log f(t)`; alpha = 3 is its `f(t) = t ** 1.5`.)

    Notes
    -----
    Section 3 of the paper. The bonus is computed as `sqrt(alpha * log(t)) * (1 / sqrt(count))`.

    Examples
    --------
    >>> import banditmesh as bm
    >>> bm.UCB(alpha=2.0)
    UCB(alpha=2.0)
    """

    alpha: float = 3.0
    name: ClassVar[str] = "ucb"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "alpha", checks.positive("alpha", self.alpha))

    @property
    def parameter(self) -> float:
        """Alpha."""
        return self.alpha

    @staticmethod
    def clock(t: float, parameter: float) -> float:
        """`sqrt(alpha * log t)`."""
        return math.sqrt(parameter * math.log(t))

    @staticmethod
    def index(
        mean: float, count: float, inv_root: float, clock: float, sigma: float, law: int, u: float, parameter: float
    ) -> float:
        """`mean + clock / sqrt(count)`."""
        return mean + clock * inv_root
