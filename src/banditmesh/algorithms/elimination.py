"""Elimination: a policy that keeps a set of candidates for each agent, and pulls the one that is known least."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from .. import checks
from ..policies import Arms, Chooser, Policy
from ..policies.estimates import Estimates


@dataclass(frozen=True)
class Elimination(Policy):
    """Active arm elimination: pull the candidate with the fewest observations, the first of equals.

    All arms of an agent are candidates at first. An arm whose upper confidence bound is below another candidate's lower
    one is a candidate no more, for good. The bounds are `mean +- sqrt(alpha * log(t) / count)`, as wide as UCB's bonus.

    Parameters
    ----------
    alpha : float
        The width of the bounds, as in `UCB`.
    horizon : int, optional
        What takes the place of the round t, for rounds that are known beforehand: what is eliminated by mistake in the
        first rounds, when log(t) is small, never comes back.

    Notes
    -----
    What `CoAAE` and `CoopSE` choose by. With `ODC` it gives the algorithm that its paper calls AAE-ODC. The emission
    `Contested` sends nothing of an agent's last candidate.

    Examples
    --------
    >>> import banditmesh as bm
    >>> arms = [bm.arms.Gaussian(mean, 0.1) for mean in (0.0, 1.0, 0.5)]
    >>> problem = bm.Problem(bm.networks.ring(4), [range(3)] * 4, arms)
    >>> simulation = bm.Simulation(problem, bm.IRS(), policy=bm.algorithms.Elimination(0.1), horizon=50, seed=0)
    >>> result = simulation.run(progress=False)
    >>> [agent.chooser.candidates for agent in simulation.agents.values()]
    [[1], [1], [1], [1]]
    """

    alpha: float = 3.0
    horizon: int | None = None
    name: ClassVar[str] = "elimination"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "alpha", checks.positive("alpha", self.alpha))
        if self.horizon is not None:
            object.__setattr__(self, "horizon", checks.integer("horizon", self.horizon, at_least=2))

    def chooser(self, arms: Arms) -> Eliminator:
        """What keeps the candidates of one agent."""
        return Eliminator(self, arms)


class Eliminator(Chooser):
    """Chooses for one agent, by `Elimination`.

    Attributes
    ----------
    candidates : list of int
        The positions of the arms that may still be the best.
    beaten : list of [int, int]
        What was eliminated by comparison, in this order: the position of the arm, and that of the better one.
    """

    policy: Elimination

    def __init__(self, policy: Elimination, arms: Arms) -> None:
        super().__init__(policy, arms)
        self.candidates = list(range(len(arms.names)))
        self.beaten: list[list[int]] = []

    def choose(self, clock: float, estimates: Estimates, draw: Callable[[int], float]) -> int:
        """The candidate with the fewest observations.

        While some arms cannot be pulled, so that their estimates are not given, the rest are compared afresh.
        """
        width = math.sqrt(self.policy.alpha * math.log(self.policy.horizon or clock))
        mean, inv_root = estimates.mean, estimates.inv_root
        is_whole = len(estimates) == len(self.arms.names)
        candidates = self.candidates if is_whole else range(len(estimates))
        best = max(candidates, key=lambda one: mean[one] - width * inv_root[one])
        lower = mean[best] - width * inv_root[best]
        left = [one for one in candidates if mean[one] + width * inv_root[one] >= lower]
        if is_whole:
            self.beaten += [[one, best] for one in candidates if one not in left]
            self.candidates = left
        return min(left, key=lambda one: estimates.count[one])

    def eliminate(self, position: int) -> None:
        """An arm is a candidate no more, unless it is the last one: for what other agents found out."""
        if position in self.candidates and len(self.candidates) > 1:
            self.candidates.remove(position)

    def is_best(self, position: int, estimates: Estimates) -> bool:
        """Whether nothing else is left."""
        return self.candidates == [position] and len(estimates) == len(self.arms.names)

    @property
    def state(self) -> dict[str, Any]:
        """The candidates, and what was eliminated."""
        return {"candidates": self.candidates, "beaten": self.beaten}

    @state.setter
    def state(self, value: dict[str, Any]) -> None:
        self.candidates, self.beaten = value["candidates"], value["beaten"]
