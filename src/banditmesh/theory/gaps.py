"""Gaps by arm: which agents have it, which could do better, and by how much.

Written `V_a`, `V_{-a}` and `Delta_a^v` in the paper (Section 2). Agents are numbers here, in the network's node order.
An arm that is tied for an agent's best has gap 0 there, so that agent is not among the suboptimal ones.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..problem import Problem


@dataclass(frozen=True, eq=False)
class ArmGaps:
    """One arm, seen from the agents that have it.

    Attributes
    ----------
    arm : hashable
        The arm's id.
    index : int
        Its number, the column in `problem.arms`.
    holders : int array
        The agents that have it (`V_a`), ascending.
    suboptimal : int array
        Those among them that have a better arm (`V_{-a}`), ascending.
    gaps : float array
        How much better, for each agent of `suboptimal`; all positive.
    champions : int array
        The agents whose only best arm this is; agents with a tie between best arms are not among them.

    Examples
    --------
    >>> import banditmesh as bm, networkx as nx
    >>> problem = bm.Problem(nx.path_graph(3), [[0, 1], [0], [0, 1]], [bm.arms.Bernoulli(p) for p in (0.5, 0.75)])
    >>> [arm, _] = bm.theory.arm_gaps(problem)
    >>> arm.suboptimal, arm.gaps, arm.champions, arm.gap_min
    (array([0, 2]), array([0.25, 0.25]), array([1]), 0.25)
    """

    arm: Hashable
    index: int
    holders: NDArray[np.int64]
    suboptimal: NDArray[np.int64]
    gaps: NDArray[np.float64]
    champions: NDArray[np.int64]

    @property
    def gap_min(self) -> float:
        """The smallest gap; infinite if no agent has a better arm."""
        return float(self.gaps.min()) if self.gaps.size else math.inf


def arm_gaps(problem: Problem) -> list[ArmGaps]:
    """The gaps of every arm, in the order of `problem.arms`.

    Parameters
    ----------
    problem : Problem
        The network does not matter.

    Returns
    -------
    list of ArmGaps

    Examples
    --------
    >>> import banditmesh as bm
    >>> len(bm.theory.arm_gaps(bm.Problem.paper("er", seed=0)))
    50
    """
    owner, is_best = problem.owners, problem.arm_gaps == 0.0
    alone = np.bincount(owner[is_best], minlength=problem.n_agents) == 1
    order = np.argsort(problem.arm_indices, kind="stable")
    ends = np.cumsum(np.bincount(problem.arm_indices, minlength=problem.n_arms))
    found = []
    for index, places in enumerate(np.split(order, ends[:-1])):
        agents, gaps, best = owner[places], problem.arm_gaps[places], is_best[places]
        found.append(
            ArmGaps(
                arm=problem.arms[index],
                index=index,
                holders=agents,
                suboptimal=agents[~best],
                gaps=gaps[~best],
                champions=agents[best & alone[agents]],
            )
        )
    return found
