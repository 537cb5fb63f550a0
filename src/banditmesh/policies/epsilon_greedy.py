"""Epsilon-greedy: mostly the best arm so far, now and then any."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from .. import checks
from .base import Estimates, Policy, first_highest


@dataclass(frozen=True)
class EpsilonGreedy(Policy):
    """Epsilon-greedy: pull any arm with probability epsilon, each equally likely, and else the one with the best mean.

    It runs on the reference engine.

    Parameters
    ----------
    epsilon : float
        How likely an agent explores.
    decay : float, optional
        If given, it explores in round t with probability `min(epsilon, decay * K / t)`, K being the number of its
        arms. With epsilon 1 this is the policy of Auer, Cesa-Bianchi and Fischer, whose c / d^2 is `decay`: d is the
        smallest gap and c at least 5 in their bound, which is more than is good in practice.

    Notes
    -----
    Auer, Cesa-Bianchi and Fischer, "Finite-time analysis of the multiarmed bandit problem", Machine Learning 2002,
    where it is called epsilon_n-greedy.

    Examples
    --------
    >>> import banditmesh as bm
    >>> problem = bm.Problem.random(bm.networks.ring(4), n_arms=6, per_agent=3, seed=0)
    >>> policy = bm.EpsilonGreedy(epsilon=1.0, decay=5.0)
    >>> bm.simulate(problem, bm.FwA(2), policy=policy, horizon=50, seed=0).policy
    'epsilon-greedy'
    """

    epsilon: float = 0.1
    decay: float | None = None
    name: ClassVar[str] = "epsilon-greedy"
    random: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "epsilon", checks.probability("epsilon", self.epsilon))
        if self.decay is not None:
            object.__setattr__(self, "decay", checks.positive("decay", self.decay))

    def choose(self, t: float, estimates: Estimates, draw: Callable[[int], float]) -> int:
        """Any position, or that of the best mean."""
        n_arms = len(estimates)
        epsilon = self.epsilon if self.decay is None else min(self.epsilon, self.decay * n_arms / t)
        u = draw(0)
        if u < epsilon:
            # Given that it is below epsilon, u / epsilon is again a number in (0, 1).
            return min(int(u / epsilon * n_arms), n_arms - 1)
        return first_highest(estimates.mean)
