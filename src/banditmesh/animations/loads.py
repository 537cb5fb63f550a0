"""A result with link traffic as a document: for networks too large to be stepped through round by round.

Such a result has every link's traffic and every agent's regret in each recorded round, on either engine, but not which
agents heard each other.
"""

from __future__ import annotations

import numpy as np

from ..errors import InputError
from ..problem import Problem
from ..sim.result import Result
from .recorder import Film, Recording
from .sites import Sites, named_links


class LoadRecorder(Recording):
    """Makes a document of a result, round by round, as `Recorder` does of a simulation.

    Parameters
    ----------
    problem : Problem
        What was simulated.
    horizon : int
        How many rounds there will be.
    label : str
        What the run is called, such as its protocol.

    Examples
    --------
    >>> import banditmesh as bm
    >>> from banditmesh.animations import LoadRecorder
    >>> problem = bm.Problem.random(bm.networks.ring(5), n_arms=2, per_agent=2, seed=0)
    >>> result = bm.simulate(problem, "fwa(2)", horizon=3, seed=0, link_traffic=True, agents=True, engine="reference")
    >>> recorder = LoadRecorder(problem, horizon=3, label="fwa(2)")
    >>> while not recorder.is_over:
    ...     recorder.add(result)
    >>> [(frame["round"], frame["messages"]) for frame in recorder.frames_since(0)]
    [(1, 10), (2, 20), (3, 30)]
    """

    def __init__(self, problem: Problem, *, horizon: int, label: str = "") -> None:
        self._agents, self._horizon = problem.agents, horizon
        self._regret = np.zeros(problem.n_agents)
        self._round = 0
        self._is_dynamic = problem.is_dynamic
        self._links = named_links(problem)
        sites = Sites.of_problem(problem)
        self._film = Film(sites, horizon, label, [], [], has_regret=True, links=self._links)

    @property
    def is_over(self) -> bool:
        """Whether all rounds have been taken."""
        return self._round == self._horizon

    @property
    def round(self) -> int:
        """How many rounds have been taken."""
        return self._round

    def add(self, result: Result) -> None:
        """Take the next round of a result's first replicate; every round's links and agents are recorded in it."""
        if result.link_traffic is None or result.agent_regret_curve is None or len(result.rounds) < result.horizon:
            raise InputError("the result must have every round's link traffic and agents; simulate with both of them")
        row, regret = result.link_traffic[0, self._round], result.agent_regret_curve[0, self._round]
        gaps, self._regret = regret - self._regret, regret
        carried = {result.links[k]: int(row[k]) for k in np.flatnonzero(row).tolist()}
        some = {self._agents[k]: float(gaps[k]) for k in np.flatnonzero(gaps).tolist()}
        links = list(carried) if self._is_dynamic else self._links
        self._round += 1
        messages = int(result.transmissions[0, self._round - 1])
        self._film.add(self._round, links, some, float(gaps.sum()), carried, messages, ())
