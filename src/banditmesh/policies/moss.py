"""MOSS: a bonus that ends once an arm has had its share of the pulls."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from .. import checks
from ..arms import BERNOULLI
from .base import Estimates, Policy, first_highest


@dataclass(frozen=True)
class MOSS(Policy):
    """MOSS: pull the arm with the highest `mean + 2 sigma sqrt(log+(n / (K count)) / count)`.

    `log+` is the logarithm where that is positive and 0 elsewhere, K the number of the agent's arms, and sigma that of
    the arm's law: for Bernoulli arms 1/2, which holds whatever their mean. An arm whose law has no sigma is an error.
    It runs on the reference engine.

    Parameters
    ----------
    n_observations : int, optional
        The n of the formula: how many observations the agent will have had in the end, which for an agent alone is the
        horizon. If not given, n is the number that it has so far, its own and received ones: then no horizon need be
        known.

    Notes
    -----
    Audibert and Bubeck, "Minimax policies for adversarial and stochastic bandits", COLT 2009. They have rewards in
    [0, 1], that is sigma = 1/2 and a bonus of `sqrt(log+(n / (K count)) / count)`.

    Examples
    --------
    >>> import banditmesh as bm
    >>> problem = bm.Problem.random(bm.networks.ring(4), n_arms=6, per_agent=3, seed=0)
    >>> bm.simulate(problem, bm.FwA(2), policy=bm.MOSS(), horizon=50, seed=0).policy
    'moss'
    """

    n_observations: int | None = None
    name: ClassVar[str] = "moss"
    needs_sigmas: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.n_observations is not None:
            given = checks.integer("n_observations", self.n_observations, at_least=1)
            object.__setattr__(self, "n_observations", given)

    def choose(self, t: float, estimates: Estimates, draw: Callable[[int], float]) -> int:
        """The position of the arm with the highest index."""
        share = (self.n_observations or sum(estimates.count)) / len(estimates)

        def index(position: int) -> float:
            count = estimates.count[position]
            sigma = 0.5 if estimates.law[position] == BERNOULLI else estimates.sigma[position]
            return estimates.mean[position] + 2.0 * sigma * math.sqrt(max(0.0, math.log(share / count)) / count)

        return first_highest([index(position) for position in range(len(estimates))])
