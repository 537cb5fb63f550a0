"""Agents that come and go."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

import numpy as np

from ... import checks
from ...draws import AGENT, Draws
from ..csr import Int32s
from .base import DynamicNetwork, named


class Churn(DynamicNetwork):
    """A static network whose agents come and go.

    All agents are present before round 1. In every round a present agent leaves with probability `leave`
    and an absent one joins again with probability `join`. The links are those of the static network between
    present agents. An absent agent is merely cut off: it still pulls its own arms and keeps what it knows.

    Parameters
    ----------
    start : networkx.Graph, scipy sparse matrix or Links
        The network when all agents are present.
    leave, join : float
        Probabilities.

    Examples
    --------
    >>> import networkx
    >>> network = Churn(networkx.path_graph(3), leave=1.0, join=1.0)
    >>> rounds = network.rounds(Draws(seed=0, replicate=0))
    >>> [len(next(rounds)) for _ in range(4)]
    [0, 2, 0, 2]
    """

    def __init__(self, start: Any, leave: float, join: float) -> None:
        self.names, self.start = named(start)
        self.leave = checks.probability("leave", leave)
        self.join = checks.probability("join", join)

    def rounds(self, draws: Draws, births_first: bool = False) -> Iterator[Int32s]:  # noqa: D102
        pairs = self.start.pairs()
        present = np.ones(self.n_agents, dtype=np.bool_)
        for t in count(1):
            u = np.array([draws.uniform(AGENT, t, v) for v in range(self.n_agents)])
            present = np.where(present, u >= self.leave, u < self.join)
            yield pairs[present[pairs[:, 0]] & present[pairs[:, 1]]]
