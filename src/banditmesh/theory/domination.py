"""Which agents pay next to nothing for an arm as T grows, because another agent will keep pulling it.

Two reasons (docs/theory/sharp.md). An agent that hears a *champion*, whose only best arm this is, soon has as many
observations as it needs. And an agent is *dominated* if another one has a smaller gap, or none, and everything that the
other may hear about the arm reaches the agent too: the other never lets the arm's count fall behind its own need, which
is larger. Both pay o(log T).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .delivery import Flow
from .gaps import ArmGaps


def dominated(arm: ArmGaps, delivery: Flow) -> NDArray[np.bool_]:
    """Which of the agents of `arm.suboptimal` are dominated; none if delivery is random.

    Examples
    --------
    Of two agents that hear each other the one with the larger gap is:

    >>> import banditmesh as bm, networkx as nx
    >>> arms = [bm.arms.Gaussian(mean) for mean in (1.0, 0.8, 0.5)]
    >>> problem = bm.Problem(nx.path_graph(2), [[0, 2], [1, 2]], arms)
    >>> arm = bm.theory.arm_gaps(problem)[2]
    >>> dominated(arm, Flow.under(problem, bm.IRS()))
    array([ True, False])
    """
    none = np.zeros(len(arm.suboptimal), dtype=np.bool_)
    if not delivery.promises or not delivery.sure or not none.size:
        return none
    share, _, may = delivery.shares(arm.index, arm.holders)
    gaps = np.zeros(len(arm.holders))
    places = np.searchsorted(arm.holders, arm.suboptimal)
    gaps[places] = arm.gaps
    # For every pair the least share that the second has of anything that the first may hear; it may hear itself.
    reaching = np.zeros_like(share)
    heard = may.T.astype(np.float32)
    for level in np.unique(share[share > 0.0]).tolist():
        reaching[heard @ (share < level).astype(np.float32) == 0.0] = level
    found = np.asarray((gaps[:, None] < np.sqrt(reaching) * gaps).any(axis=0))
    return found[places]


def hears_champion(arm: ArmGaps, delivery: Flow) -> NDArray[np.bool_]:
    """Which of the agents of `arm.suboptimal` have a share, even a random one, of what a champion pulls."""
    if not arm.champions.size or not arm.suboptimal.size:
        return np.zeros(len(arm.suboptimal), dtype=np.bool_)
    share = delivery.shares(arm.index, arm.holders).share
    champions, places = (np.searchsorted(arm.holders, agents) for agents in (arm.champions, arm.suboptimal))
    return np.asarray((share[np.ix_(champions, places)] > 0.0).any(axis=0))
