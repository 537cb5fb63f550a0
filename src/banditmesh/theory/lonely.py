"""What an agent that no other can help must pay, at any horizon and for any alpha (docs/theory/threshold.md).

If the first reward of its best arm is low enough, UCB does not pull that arm again before round T. For Gaussian
rewards the chance of that is T to the power of -alpha / (2 sigma^2), up to lower factors. So regret grows like
T^(1 - alpha / (2 sigma^2)) when alpha < 2 sigma^2, whatever the ttl: there is no bound of log T below this threshold.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..arms import Gaussian
from ..problem import Problem
from .delivery import Flow

#: By how many sigmas the other arm's mean may fall short: values to try, each of which gives a bound.
_SLACKS = np.linspace(0.1, 2.0, 39)


def two_arms(gap: float, sigma_best: float, sigma_other: float, alpha: float, horizon: int) -> float:
    """A lower bound on the chance that UCB pulls a best arm only once in `horizon` rounds, with another arm at that
    gap.

    Examples
    --------
    >>> round(two_arms(gap=0.5, sigma_best=2.0, sigma_other=2.0, alpha=0.5, horizon=100), 3)
    0.014
    """
    stays = 0.5 * -np.expm1(-2.0 * _SLACKS**2)
    reach = (math.sqrt(alpha * math.log(horizon)) + gap + _SLACKS * sigma_other) / sigma_best
    tails = np.array([0.5 * math.erfc(value / math.sqrt(2.0)) for value in reach.tolist()])
    return float((stays * tails).max())


def lonely_lower(
    problem: Problem, delivery: Flow, alpha: float, horizon: int, every: int | Sequence[int] | None = None
) -> float:
    """The least that agents pay if no agent that they may hear has their best arm or one other arm of theirs.

    Both arms must be Gaussian. Agents with a tie between best arms, and all others, add nothing. `every` says how
    often they pull, as in `simulate`.
    """
    n_pulls = -(-horizon // np.broadcast_to(1 if every is None else every, problem.n_agents))
    private = np.zeros((problem.n_agents, problem.n_arms), dtype=np.bool_)
    for arm in range(problem.n_arms):
        holders = np.flatnonzero(problem.gaps[:, arm] >= 0.0)
        if isinstance(problem.laws[arm], Gaussian):
            private[holders, arm] = delivery.shares(arm, holders).may.sum(axis=0) == 1
    total = 0.0
    for agent in range(problem.n_agents):
        arms = problem.arm_set(agent)
        gaps = problem.gaps[agent, arms]
        if len(arms) < 2 or (gaps == 0.0).sum() != 1 or n_pulls[agent] <= len(arms):
            continue
        best = int(arms[gaps == 0.0][0])
        others = [int(arm) for arm in arms if arm != best and private[agent, arm]]
        if not private[agent, best] or not others:
            continue
        sigmas = problem.sigmas
        chance = max(
            two_arms(float(problem.gaps[agent, arm]), float(sigmas[best]), float(sigmas[arm]), alpha, horizon)
            for arm in others
        )
        total += float(gaps.sum()) + chance * float(gaps[gaps > 0.0].min()) * int(n_pulls[agent] - len(arms))
    return total
