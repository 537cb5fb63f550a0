"""UCB-V: a bonus that knows the rewards' variance."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from .. import checks
from ..arms import BERNOULLI
from .base import Estimates, Policy, first_highest


@dataclass(frozen=True)
class UCBV(Policy):
    """UCB-V: pull the arm with the highest `mean + sqrt(2 V e / count) + 3 width e / count`, where `e = zeta log(t)`.

    V is the variance of the rewards that the agent has of the arm: `mean (1 - mean)` of a Bernoulli arm, and otherwise
    `Estimates.variance`. It runs on the reference engine.

    Parameters
    ----------
    width : float
        How wide the interval is that rewards lie in: 1 for rewards in [0, 1]. With rewards that are not bounded, such
        as Gaussian ones, choose one that they seldom leave; the theory does not cover them.
    zeta : float
        The weight of log(t). Its authors' bound is for 1.2.

    Notes
    -----
    Audibert, Munos and Szepesvári, "Exploration-exploitation tradeoff using variance estimates in multi-armed bandits",
    Theoretical Computer Science 2009.

    Examples
    --------
    >>> import banditmesh as bm
    >>> coins = bm.Problem(bm.networks.ring(3), [[0, 1]] * 3, [bm.arms.Bernoulli(0.1), bm.arms.Bernoulli(0.05)])
    >>> bm.simulate(coins, bm.IRS(), policy=bm.UCBV(zeta=1.0), horizon=50, seed=0).policy
    'ucb-v'
    """

    width: float = 1.0
    zeta: float = 1.2
    name: ClassVar[str] = "ucb-v"
    counts_and_sums: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "width", checks.positive("width", self.width))
        object.__setattr__(self, "zeta", checks.positive("zeta", self.zeta))

    def choose(self, t: float, estimates: Estimates, draw: Callable[[int], float]) -> int:
        """The position of the arm with the highest index."""
        exploration = self.zeta * math.log(t)

        def index(position: int) -> float:
            mean = estimates.mean[position]
            each: float = exploration / estimates.count[position]
            if estimates.law[position] == BERNOULLI:
                variance = max(0.0, mean * (1.0 - mean))
            else:
                variance = estimates.variance(position)
            return mean + math.sqrt(2.0 * variance * each) + 3.0 * self.width * each

        return first_highest([index(position) for position in range(len(estimates))])
