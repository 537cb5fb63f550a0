"""Measuring configurations: they are simulated here or on an executor, and stored as they are computed.

Rules kept here: apart from its timing, a measurement depends only on its task and on the bench's problem and settings;
so results are the same on any executor.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor, as_completed
from dataclasses import dataclass, fields
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ..lookup import own
from ..machine.executors import result_of, submit
from ..networks.csr import Links
from ..policies import Policy
from ..problem import Problem
from ..protocols import AnyProtocol
from ..sim.arguments import beginnings
from ..sim.engine import simulate
from ..sim.progress import Progress
from ..sim.result import Result
from .configurations import MEASURES, Configuration
from .first_pulls import first_regret
from .kept import Kept

#: The peak load of a link is taken over windows of a fiftieth of the horizon, or more if link traffic would not fit.
_WINDOWS: Final = 50
_MAX_CELLS: Final = 2**24


@dataclass(frozen=True)
class Task:
    """A configuration to measure.

    Attributes
    ----------
    name : str
        How it is written.
    protocol : AnyProtocol
        The protocol itself.
    horizon, replicates : int
        How long, and how often.
    timed : bool
        Whether the time of a round is wanted too; then a run of one round is made before.
    first : int
        The number of the first replicate.
    part_of : int
        The number of replicates that these are part of: it decides how long the windows of link peaks are.
    policy : Policy or None
        How it chooses, if not as the bench's settings say.
    """

    name: str
    protocol: AnyProtocol
    horizon: int
    replicates: int
    timed: bool = False
    first: int = 0
    part_of: int = 0
    policy: Policy | None = None


@dataclass(frozen=True)
class Measured:
    """The result of a task: the configuration, rule set and policy in words, and seconds per round, if timed."""

    configuration: Configuration
    rules: str
    policy: str
    seconds: float


class Bench:
    """Where configurations of one problem are measured.

    Parameters
    ----------
    problem : Problem
        The problem of all of them.
    settings : mapping
        Arguments of `simulate` besides protocol, horizon and replicates.
    executor : Executor, optional
        Where to simulate; in this process if not given.
    kept : Kept
        Where results are stored and found again.
    progress : Progress
        Counts the rounds of tasks that count, see `run`.
    """

    def __init__(
        self, problem: Problem, settings: Mapping[str, Any], executor: Executor | None, kept: Kept, progress: Progress
    ) -> None:
        self._problem = problem
        self._settings = dict(settings)
        self._executor = executor
        self._kept = kept
        self.progress = progress

    def run(self, tasks: Sequence[Task], counts: bool = True) -> dict[str, Measured]:
        """The result of each task, by its name.

        Parameters
        ----------
        tasks : sequence of Task
            With different names.
        counts : bool
            Whether their rounds count as progress.
        """
        found: dict[str, Measured] = {}
        missing: list[Task] = []
        for task in tasks:
            stored = self._stored(task)
            if stored is None:
                missing.append(task)
            else:
                found[task.name] = stored
                self._advance(task, counts)
        if self._executor is None:
            for task in missing:
                progress = self.progress.part() if counts else False
                found[task.name] = self._keep(task, measure(self._problem, task, self._settings, progress))
        else:
            settings = {**self._settings, "threads": 1}
            futures = {
                submit(self._executor, measure_there, own.Packed((self._problem, task, settings))): task
                for task in missing
            }
            for future in as_completed(futures):
                task = futures[future]
                gave = result_of(future, "run again with fewer workers, with keep to continue")
                measured = _from_plain(task, gave)
                found[task.name] = self._keep(task, measured)
                self._advance(task, counts)
        return {task.name: found[task.name] for task in tasks}

    def _advance(self, task: Task, counts: bool) -> None:
        if counts:
            self.progress.advance(task.horizon * task.replicates)

    def _keep(self, task: Task, measured: Measured) -> Measured:
        self._kept.keep(_to_plain(measured), *_key(task))
        return measured

    def _stored(self, task: Task) -> Measured | None:
        """What is stored of a task; None if it is not there or is damaged."""
        stored = self._kept.find(*_key(task))
        if stored is None:
            return None
        try:
            measured = _from_plain(task, stored)
        except (KeyError, TypeError, ValueError):
            return None
        values = [getattr(measured.configuration, name) for name in MEASURES]
        is_whole = all(one.shape == (task.replicates,) and one.dtype.kind in "fiu" for one in values)
        return measured if is_whole else None


def measure_there(packed: own.Packed) -> dict[str, Any]:
    """The same as `measure` in another process, as plain values: a class of a script is known there, not by name."""
    problem, task, settings = packed.unpack()
    return _to_plain(measure(problem, task, settings, False))


def measure(problem: Problem, task: Task, settings: Mapping[str, Any], progress: Any) -> Measured:
    """Simulate one configuration.

    Examples
    --------
    >>> import banditmesh as bm
    >>> problem = bm.Problem.paper("er", seed=0)
    >>> measure(problem, Task("irs", bm.IRS(), 10, 2), {"seed": 0}, False).configuration.messages_per_round
    array([306., 306.])
    """
    if task.policy is not None:
        settings = {**settings, "policy": task.policy}
    times = []
    # Of the two runs before, the first compiles the kernels, and the second has the fixed cost of any run.
    for horizon in (*(1, 1) * task.timed, task.horizon):
        began = time.perf_counter()
        result = _simulate(problem, task, settings, horizon, progress if horizon == task.horizon else False)
        times.append(time.perf_counter() - began)
    seconds = max(0.0, times[-1] - times[-2]) / max(1, task.horizon - 1) if task.timed else 0.0
    policy = result.settings["policy"]
    words = policy if isinstance(policy, str) else "mixed policies"
    first = first_regret(problem, task.protocol, result, settings)
    return Measured(_configuration(task, result, first), result.rules, words, seconds)


def _simulate(problem: Problem, task: Task, settings: Mapping[str, Any], horizon: int, progress: Any) -> Result:
    with beginnings():
        return simulate(
            problem,
            task.protocol,
            horizon=horizon,
            replicates=range(task.first, task.first + task.replicates),
            link_traffic=True,
            record_every=_window(problem, horizon, max(task.replicates, task.part_of)),
            progress=progress,
            **settings,
        )


def _window(problem: Problem, horizon: int, replicates: int) -> int:
    """How many rounds a record spans."""
    network = problem.network
    n_links = 2 * network.n_links if isinstance(network, Links) else problem.n_agents * (problem.n_agents - 1)
    windows = max(1, min(_WINDOWS, _MAX_CELLS // max(1, n_links * replicates)))
    return -(-horizon // windows)


def _configuration(task: Task, result: Result, first: NDArray[np.float64]) -> Configuration:
    assert result.link_traffic is not None
    horizon = result.horizon
    spans = np.diff(result.rounds, prepend=0)
    loads = result.link_traffic.sum(axis=1) / horizon
    peaks = (result.link_traffic / spans[:, None]).max(axis=1, initial=0.0)
    return Configuration(
        name=task.name,
        protocol=task.protocol,
        regret=result.regret[:, -1].copy(),
        messages_per_round=result.transmissions[:, -1] / horizon,
        link_load=loads.max(axis=1, initial=0.0),
        link_peak=peaks.max(axis=1, initial=0.0),
        bytes_per_round=result.traffic["bytes"] / horizon,
        first_regret=first,
        agent_worst=result.honest_regret.max(axis=1),
        policy=task.policy,
    )


def _key(task: Task) -> tuple[Any, ...]:
    sources = own.source_of(task.protocol, task.protocol.emission, task.policy).split()
    by = [] if task.policy is None else [repr(task.policy)]
    return (repr(task.protocol), task.name, task.horizon, task.replicates, task.first, task.part_of, *by, *sources)


def _to_plain(measured: Measured) -> dict[str, Any]:
    values = {measure: getattr(measured.configuration, measure).tolist() for measure in MEASURES}
    about = {one.name: getattr(measured, one.name) for one in fields(measured) if one.name != "configuration"}
    return {**about, "measures": values}


def _from_plain(task: Task, stored: Mapping[str, Any]) -> Measured:
    values = {measure: np.array(stored["measures"][measure]) for measure in MEASURES}
    configuration = Configuration(name=task.name, protocol=task.protocol, policy=task.policy, **values)
    return Measured(configuration, stored["rules"], stored["policy"], stored["seconds"])
