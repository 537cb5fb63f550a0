"""A result with link traffic as a document: for networks that are too large to be stepped through round by round.

Such a result knows what every link carried and what every agent regrets in each recorded round, on either engine, but
not who heard of whom.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import InputError
from ..networks.usual import usual_links
from ..problem import Problem
from ..sim.result import Result
from .recorder import Film
from .sites import Sites


class LoadRecorder:
    """Makes a document of a result, round by round, as `Recorder` does of a simulation.

    Parameters
    ----------
    problem : Problem
        What was simulated.
    result : Result
        With `link_traffic`, `agents` and every round recorded; its first replicate is taken.

    Examples
    --------
    >>> import banditmesh as bm
    >>> from banditmesh.animations import LoadRecorder
    >>> problem = bm.Problem.random(bm.networks.ring(5), n_arms=2, per_agent=2, seed=0)
    >>> result = bm.simulate(problem, "fwa(2)", horizon=3, seed=0, link_traffic=True, agents=True, engine="reference")
    >>> recorder = LoadRecorder(problem, result)
    >>> while not recorder.is_over:
    ...     recorder.add()
    >>> [(frame["round"], frame["messages"]) for frame in recorder.frames_since(0)]
    [(1, 10), (2, 20), (3, 30)]
    """

    def __init__(self, problem: Problem, result: Result) -> None:
        if result.link_traffic is None or result.agent_regret_curve is None or len(result.rounds) < result.horizon:
            raise InputError("the result must have every round's link traffic and agents; simulate with both of them")
        self._result, self._agents = result, problem.agents
        self._traffic: Any = result.link_traffic[0]
        self._regret: Any = np.diff(result.agent_regret_curve[0], axis=0, prepend=0.0)
        self._round = 0
        self._is_dynamic = problem.is_dynamic
        self._links = [(problem.agents[i], problem.agents[j]) for i, j in usual_links(problem.network).tolist()]
        sites = Sites.of_problem(problem)
        self._film = Film(sites, result.horizon, result.label, [], [], has_regret=True, links=self._links)

    @property
    def is_over(self) -> bool:
        """Whether all rounds are taken."""
        return self._round == self._result.horizon

    @property
    def round(self) -> int:
        """How many rounds are taken."""
        return self._round

    @property
    def n_frames(self) -> int:
        """How many frames there are."""
        return len(self._film.frames)

    def add(self) -> None:
        """Take the next round."""
        row, gaps = self._traffic[self._round], self._regret[self._round]
        carried = {self._result.links[k]: int(row[k]) for k in np.flatnonzero(row).tolist()}
        some = {self._agents[k]: float(gaps[k]) for k in np.flatnonzero(gaps).tolist()}
        links = list(carried) if self._is_dynamic else self._links
        self._round += 1
        messages = int(self._result.messages[0, self._round - 1])
        self._film.add(self._round, links, some, float(gaps.sum()), carried, messages, ())

    def finish(self) -> None:
        """Close the last frame."""
        self._film.close()

    def frames_since(self, number: int) -> list[dict[str, Any]]:
        """The frames from that number on, counted from 0."""
        return self._film.frames[number:]

    def document(self) -> dict[str, Any]:
        """All that there is up to now."""
        return self._film.document()
