"""Logged rewards, each used at most once by an agent."""

# Methods that override those of `Law` are documented there.
# ruff: noqa: D102

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .empirical import Empirical
from .quantiles import BERNOULLI, OTHER


@dataclass(frozen=True)
class Replay(Empirical):
    """Rewards of a log, replayed without replacement.

    Every agent walks its own permutation of the sample, which the seed decides: its k-th pull of the arm pays the same
    whatever the protocol. An agent does not choose an arm whose sample it has used up, and stops when all its arms are.
    Mean and sigma are those of the sample.

    Parameters
    ----------
    sample : iterable of float
        At least one finite number.

    Examples
    --------
    >>> import banditmesh as bm
    >>> problem = bm.Problem([("ann", "bob")], [["red"], ["red"]], {"red": Replay([3.0, 1.0])})
    >>> simulation = bm.Simulation(problem, bm.NoCooperation(), horizon=3, seed=0)
    >>> [sorted(simulation.step().rewards) for _ in range(3)]
    [['ann', 'bob'], ['ann', 'bob'], []]
    """

    @property
    def code(self) -> int:
        return BERNOULLI if set(self._sorted.tolist()) <= {0.0, 1.0} else OTHER

    def describe(self) -> dict[str, Any]:
        return {**super().describe(), "law": "replay"}
