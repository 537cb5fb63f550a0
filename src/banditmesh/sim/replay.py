"""Rewards that are replayed: what an agent's next pull of an arm pays, what is left, and what was used up.

An agent's k-th pull of an arm pays the k-th entry of its own permutation of the arm's sample. The permutation is drawn
step by step (Fisher and Yates), one number a pull, keyed by agent, arm and k: no table of all agents and arms is made,
and nothing depends on when an arm is pulled.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np

from .. import draws as purposes
from ..arms import Replay
from ..draws import Draws
from ..errors import InputError
from ..problem import Problem
from .result import Result


def replays(problem: Problem) -> bool:
    """Whether any arm's rewards are replayed."""
    return any(isinstance(law, Replay) for law in problem.laws)


class Walks:
    """Every agent's walks through the samples of its replayed arms, in one replicate."""

    def __init__(self, problem: Problem, draws: Draws) -> None:
        self._draws = draws
        self._samples = [list(law.sample) if isinstance(law, Replay) else None for law in problem.laws]
        self._arms = [problem.arm_set(agent).tolist() for agent in range(problem.n_agents)]
        #: How many rewards an agent has used, by agent and position.
        self._n_used = [[0] * len(arms) for arms in self._arms]
        #: The positions of the arms that an agent can pull; None as long as those are all.
        self._open: list[list[int] | None] = [None] * problem.n_agents
        #: By agent and arm, the places of a sample that have changed theirs.
        self._moved: dict[tuple[int, int], dict[int, int]] = {}

    def open(self, agent: int) -> list[int] | None:
        """The positions of the arms that an agent can pull, perhaps none; None if those are all."""
        return self._open[agent]

    def pays(self, agent: int, position: int) -> bool:
        """Whether the arm at that position is one that is replayed."""
        return self._samples[self._arms[agent][position]] is not None

    def pay(self, agent: int, position: int) -> float:
        """The next reward of an agent's arm that is not used up."""
        arm = self._arms[agent][position]
        sample, k = self._samples[arm], self._n_used[agent][position]
        assert sample is not None
        moved = self._moved.setdefault((agent, arm), {})
        place = k + int(self._draws.uniform(purposes.REPLAY, agent, arm, k) * (len(sample) - k))
        drawn = moved.get(place, place)
        moved[place] = moved.pop(k, k)
        self._n_used[agent][position] = k + 1
        if k + 1 == len(sample):
            left = self._open[agent]
            self._open[agent] = [one for one in left or range(len(self._arms[agent])) if one != position]
            del self._moved[agent, arm]
        return float(sample[drawn])


@dataclass(frozen=True)
class Replayed:
    """What a run used up of replayed rewards, one entry for each replicate.

    Attributes
    ----------
    used_up : tuple of dict
        For agents that used up an arm, those arms.
    stopped : tuple of tuple
        The agents that had no arm left, and stopped.
    """

    used_up: tuple[dict[Hashable, tuple[Hashable, ...]], ...]
    stopped: tuple[tuple[Hashable, ...], ...]

    @property
    def n_used_up(self) -> float:
        """How many arms were used up, added up over agents; mean over the replicates."""
        return float(np.mean([sum(map(len, one.values())) for one in self.used_up]))

    @property
    def n_stopped(self) -> float:
        """How many agents stopped; mean over the replicates."""
        return float(np.mean([len(one) for one in self.stopped]))

    def __str__(self) -> str:
        return f"{self.n_used_up:,.10g} arms of agents used up, {self.n_stopped:,.10g} agents stopped"


def replayed(problem: Problem, result: Result) -> Replayed:
    """What a run of a problem with replayed arms used up.

    Parameters
    ----------
    problem : Problem
        What was simulated.
    result : Result
        What `simulate` gave for it.

    Examples
    --------
    >>> import banditmesh as bm
    >>> arms = {"red": bm.arms.Replay([0, 1, 1]), "blue": bm.arms.Replay([0, 0, 1, 1])}
    >>> problem = bm.Problem([("ann", "bob")], [["red", "blue"], ["red"]], arms)
    >>> report = bm.replayed(problem, bm.simulate(problem, bm.FwA(1), horizon=5, seed=0))
    >>> print(report)
    1 arms of agents used up, 1 agents stopped
    >>> report.stopped
    (('bob',),)
    """
    if not isinstance(problem, Problem) or not isinstance(result, Result):
        raise InputError(
            f"replayed needs a Problem and a Result of it, got {type(problem).__name__} and {type(result).__name__}; "
            "give what simulate took and gave"
        )
    if list(result.agents) != list(problem.agents) or not np.array_equal(result.arm_indices, problem.arm_indices):
        raise InputError("result must be one of this problem, got one with other agents or arms")
    sizes = np.array([len(law.sample) if isinstance(law, Replay) else -1 for law in problem.laws])  # type: ignore[arg-type]
    is_used_up = result.arm_pulls >= np.where(sizes < 0, np.iinfo(np.int64).max, sizes)[problem.arm_indices]
    is_stopped = np.logical_and.reduceat(is_used_up, problem.arm_offsets[:-1], axis=1)
    owner = problem.owners
    used_up = []
    for row in is_used_up:
        found: dict[Hashable, tuple[Hashable, ...]] = {}
        for place in np.flatnonzero(row).tolist():
            agent = problem.agents[int(owner[place])]
            found[agent] = (*found.get(agent, ()), problem.arms[problem.arm_indices[place]])
        used_up.append(found)
    stopped = tuple(tuple(problem.agents[v] for v in np.flatnonzero(row).tolist()) for row in is_stopped)
    return Replayed(tuple(used_up), stopped)
