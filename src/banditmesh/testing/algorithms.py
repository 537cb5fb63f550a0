"""The contract of an algorithm."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from .. import checks
from ..algorithms.base import (
    ASYNCHRONOUS,
    CORRUPTION,
    DOWN,
    DYNAMIC,
    FORGETFUL,
    FULL,
    LATE,
    LOSS,
    TRAITS,
    UNEQUAL,
    Actor,
    Algorithm,
)
from ..core import Agent, Fate, Message, Note
from ..errors import BanditmeshError, ContractError, InputError
from ..faults import Corruption, Faults, Outages
from ..lookup import registry
from ..lookup.own import in_words
from ..policies import UCB
from ..protocols import AnyProtocol
from ..protocols.notation import read, write
from ..protocols.spanning import CONTROL_BYTES
from ..sim.arguments import read_run
from ..sim.books import Books, Observer
from ..sim.engine import settings_of, simulate
from ..sim.result import Result, assemble
from ..sim.run import Run
from ..sim.simulation import Simulation
from ..sim.stepper import Stepper
from ..sim.transit import Transmission
from .cases import NamedProblem, algorithm_cases
from .report import Report
from .runs import HORIZON, Trial, check_balance, check_repeats, difference
from .values import Unchanged, check_frozen_value, check_kind, check_name, check_pickle

_SEED: Final = 7
#: A run with each trait that needs neither a network nor arms of its own.
_SETTINGS: Final[dict[str, dict[str, Any]]] = {
    ASYNCHRONOUS: {"every": 2},
    LOSS: {"faults": Faults(loss=0.3)},
    LATE: {"faults": Faults(delay=1, jitter=1.0)},
    FULL: {"faults": Faults(link_cap=1)},
    DOWN: {"faults": Faults(outages=Outages(down=0.1, up=0.3))},
    FORGETFUL: {"faults": Faults(outages=Outages(down=0.1, up=0.3, memory=False))},
    CORRUPTION: {"faults": Faults(corruption=Corruption("zero", 0.5))},
}


def check_algorithm(algorithm: Algorithm | str, *, horizon: int = HORIZON) -> Report:
    """Check that an algorithm keeps the contract that the simulator, results and comparisons rely on.

    Parameters
    ----------
    algorithm : Algorithm or str
        An instance or its text, with the parameters that it will be used with.
    horizon : int
        How many rounds each of the small runs lasts: enough for the algorithm to send something.

    Returns
    -------
    Report
        What was checked.

    Raises
    ------
    ContractError
        At the first failure: one line that says what was required, what came and what to do.

    Examples
    --------
    >>> import banditmesh as bm
    >>> print(bm.testing.check_algorithm(bm.algorithms.GosInE()))
    algorithm 'gosine': 13 checks hold, 0 runs equal on both engines; reference only: it brings its own agents
    """
    value = read(algorithm) if isinstance(algorithm, str) else algorithm
    subject = check_kind(Algorithm, value)
    assert isinstance(value, Algorithm)
    horizon = checks.integer("horizon", horizon, at_least=1)
    report, unchanged = Report(subject, reference_only=["it brings its own agents"]), Unchanged(subject, value)
    generators = _generators()
    report.holds("has its own name", check_name, AnyProtocol, subject, value)
    report.holds("is a frozen value", check_frozen_value, AnyProtocol, subject, value)
    _check_text(subject, value)
    report.holds("can be pickled", check_pickle, subject, value)
    _check_reasons(subject, value)
    trial = _Trial(subject, value, UCB(), value, horizon)
    report.holds("refuses in one line what it does not work with", _check_refusals, trial)
    works_on = _working_cases(value)
    n_sent = sum(trial.check_watched(case) for case in works_on)
    if not n_sent:
        raise ContractError(f"{subject} must send something within {horizon} rounds, got nothing; give horizon=")
    report.checks += ["runs alone, unlinked and disconnected", "sends to neighbours only, in whole bytes that add up"]
    linked = works_on[-1]
    for trait in sorted(_SETTINGS.keys() - value.refuses):
        trial.check_watched(linked, f" with {trait}", **_SETTINGS[trait])
    report.checks.append("balances its books under all that it works with")
    for case in works_on:
        _check_steps(trial, case)
    report.checks.append("gives the same result step by step")
    report.holds("gives the same result for the same seed", check_repeats, trial, linked)
    report.holds("has replicates that do not depend on each other", _check_replicates, trial, linked)
    report.holds("goes on from its state", _check_state, trial, linked)
    report.holds("begins a new life with nothing", _check_restart, trial, linked)
    if _generators() != generators:
        raise ContractError(
            f"{subject} must leave the generators of random and numpy alone, got another state of them; "
            "draw by draw_uniform or draw_neighbours of its actor"
        )
    report.checks.append("draws nothing from global generators")
    unchanged.check()
    return report


def _generators() -> list[object]:
    """The state of all generators that a module could draw from without being given one."""
    kind, keys, *rest = np.random.get_state(legacy=True)  # noqa: NPY002 (it is watched, not used)
    return [random.getstate(), kind, np.asarray(keys).tolist(), rest]


def _check_text(subject: str, algorithm: Algorithm) -> None:
    """A shipped algorithm is the one that its text describes."""
    if type(algorithm) in registry.shipped(AnyProtocol) and read(write(algorithm)) != algorithm:
        raise ContractError(f"{subject} must be what its text says, got {write(algorithm)}; give all fields a default")


def _check_reasons(subject: str, algorithm: Algorithm) -> None:
    for trait, reason in algorithm.refuses.items():
        if trait not in TRAITS:
            near = checks.meant(trait, TRAITS)
            raise ContractError(f"{subject} must refuse some of {', '.join(TRAITS)}; got {checks.shown(trait)}{near}")
        if not isinstance(reason, str) or not reason.strip() or "\n" in reason:
            raise ContractError(f"{subject} must say in one line why it refuses {trait}, got {checks.shown(reason)}")


def _working_cases(algorithm: Algorithm) -> tuple[NamedProblem, ...]:
    """The problems that it works on; the last one has links."""
    refused = {trait for trait in (UNEQUAL, DYNAMIC) if trait in algorithm.refuses}
    return tuple(case for trait, case in algorithm_cases() if trait not in refused)


def _check_refusals(trial: _Trial) -> None:
    """What it refuses is refused before anything runs."""
    linked = _working_cases(trial.algorithm)[-1]
    runs: list[tuple[str, NamedProblem, dict[str, Any]]] = [
        (trait, linked, settings) for trait, settings in _SETTINGS.items()
    ]
    runs += [(trait, case, {}) for trait, case in algorithm_cases() if trait]
    for trait, case, settings in runs:
        if trait not in trial.algorithm.refuses:
            continue
        try:
            trial.simulation(case, **settings)
        except InputError as error:
            if len(str(error).splitlines()) == 1:
                continue
            raise ContractError(
                f"{trial.subject} must refuse {trait} in one line, got {checks.shown(str(error))}"
            ) from None
        raise ContractError(
            f"{trial.subject} must refuse {trait}, as it says, got a run; leave check_run() and check_network() to "
            "Algorithm, or call super()"
        )


@dataclass(frozen=True)
class _Trial(Trial):
    """A trial of an algorithm, for a number of rounds."""

    algorithm: Algorithm
    horizon: int

    def run(self, case: NamedProblem, **settings: Any) -> Result:
        """Simulate; an error inside becomes a line that says where."""
        settings = {"horizon": self.horizon, "seed": _SEED, "engine": "reference", **settings}
        result: Result = self._attempt(case.name, lambda: simulate(case.problem, self.algorithm, **settings))
        return result

    def simulation(self, case: NamedProblem, **settings: Any) -> Simulation:
        """The same, to be stepped through."""
        return Simulation(case.problem, self.algorithm, **{"horizon": self.horizon, "seed": _SEED, **settings})

    def _attempt(self, where: str, act: Callable[[], Any]) -> Any:
        try:
            return act()
        except (ContractError, MemoryError):
            raise
        except Exception as error:
            what = str(error) if isinstance(error, BanditmeshError) else in_words(error)
            raise ContractError(f"{self.subject} must run on {where}, got {what}") from error

    def check_watched(self, case: NamedProblem, how: str = "", **settings: Any) -> int:
        """What it does in one run is allowed, and adds up; how many copies it sent."""
        where = f"{case.name}{how}"
        result, watch = self._attempt(where, lambda: self._watched(where, case, settings))
        check_balance(self, where, case, result, watch.n_bytes + int(result.traffic["control"][0]) * CONTROL_BYTES)
        return int(result.traffic["sent"][0])

    def _watched(self, where: str, case: NamedProblem, settings: dict[str, Any]) -> tuple[Result, _Watch]:
        run, watch = self.read(case, link_traffic=True, trace=True, **settings), _Watch(self, where, case)
        books = Books(run, 0)
        stepper = Stepper(run, 0, [*books.observers, watch])
        for _ in range(run.horizon):
            stepper.step()
        return assemble(run, "reference", [books.close()], settings_of(run)), watch

    def read(self, case: NamedProblem, **settings: Any) -> Run:
        """A run, with what `simulate` takes for granted."""
        return read_run(case.problem, self.algorithm, **{"horizon": self.horizon, "seed": _SEED, **settings})


class _Watch(Observer):
    """Looks at every pull and every copy."""

    def __init__(self, trial: _Trial, where: str, case: NamedProblem) -> None:
        self._trial = trial
        self._where = where
        self._problem = case.problem
        self._neighbours: list[list[int]] = []
        self.n_bytes = 0

    def _fail(self, required: str, got: str, advice: str) -> ContractError:
        return ContractError(f"{self._trial.subject} must {required}, got {got} on {self._where}; {advice}")

    def began(self, t: int, neighbours: list[list[int]]) -> None:
        """The network of the round."""
        self._neighbours = neighbours

    def pulled(self, agent: int, position: int, reward: float) -> None:
        """Only arms of its own."""
        n_arms = len(self._problem.arm_set(agent))
        if not (isinstance(position, int) and 0 <= position < n_arms):
            raise self._fail(f"pull positions 0 to {n_arms - 1}", checks.shown(position), "see pick()")

    def sent(self, message: Message | Note, sender: int, receivers: Sequence[int]) -> None:
        """Only to neighbours, each once, and in whole bytes."""
        strangers = [one for one in receivers if one not in self._neighbours[sender]]
        if strangers:
            raise self._fail(
                "send to neighbours of the round only", f"a copy from {sender} to {strangers[0]}", "see send()"
            )
        if len({*receivers}) < len(receivers):
            raise self._fail("send a copy to a neighbour once", f"{list(receivers)}", "see send()")
        size = self._trial.algorithm.size(message)
        if not (type(size) is int and size > 0):
            raise self._fail("have messages of a positive whole number of bytes", checks.shown(size), "see size()")
        if isinstance(message, Note) and not all(np.isfinite(one) for one in message.values):
            raise self._fail("send finite numbers", checks.shown(message.values), f"see notes of {message.kind}")
        self.n_bytes += len(receivers) * size

    def ended(self, transmission: Transmission, arrival: int, fate: Fate, learned: bool) -> None:
        """A fate that there is."""
        if not isinstance(fate, Fate):
            raise self._fail("give every copy a fate", checks.shown(fate), "return a Receipt from receive()")


def _check_steps(trial: _Trial, case: NamedProblem) -> None:
    """Stepping through a run and looking at it changes nothing."""
    whole, steps = trial.run(case), trial.simulation(case)
    for _ in range(trial.horizon // 2):
        steps.step()
    found = difference(whole, steps.run())
    if found:
        raise ContractError(
            f"{trial.subject} must give the same result step by step, got another {found} on {case.name}; "
            "keep what agents know in their actors"
        )


def _check_replicates(trial: _Trial, case: NamedProblem) -> None:
    several, alone = trial.run(case, replicates=3), trial.run(case, replicates=range(2, 3))
    if not (
        np.array_equal(several.regret[2], alone.regret[0])
        and np.array_equal(several.transmissions[2], alone.transmissions[0])
    ):
        raise ContractError(
            f"replicates of {trial.subject} must not depend on each other, got another third one alone; "
            "change nothing in plan() or in the class while agents run"
        )


def _check_state(trial: _Trial, case: NamedProblem) -> None:
    """New agents that are given the state of those that they replace go on as if nothing had happened."""
    run = trial.read(case)
    books = Books(run, 0)
    stepper = Stepper(run, 0, books.observers)
    for _ in range(trial.horizon):
        if stepper.t == trial.horizon // 2:
            for number, agent in enumerate(stepper.agents):
                stepper.agents[number] = _replaced(trial, agent)
        stepper.step()
    found = difference(trial.run(case), assemble(run, "reference", [books.close()], settings_of(run)))
    if found:
        raise ContractError(
            f"agents of {trial.subject} must go on from their state, got another {found}; "
            "name all attributes that change in `kept`"
        )


def _replaced(trial: _Trial, agent: Agent) -> Agent:
    """Another agent in the same place, with the same state; or the same one, if its place is not known."""
    try:
        text = json.dumps(agent.state)
    except TypeError as error:
        raise ContractError(
            f"the state of agents of {trial.subject} must be lists, texts and numbers, got {error}; see `kept`"
        ) from None
    other = trial.algorithm.seat(agent.place) if isinstance(agent, Actor) else agent
    other.restart()
    other.state = json.loads(text)
    return other


def _check_restart(trial: _Trial, case: NamedProblem) -> None:
    """An agent that restarts is as one that is seated anew."""
    simulation = trial.simulation(case)
    for _ in range(trial.horizon // 2):
        simulation.step()
    for agent in simulation.agents.values():
        agent.restart()
        fresh = trial.algorithm.seat(agent.place) if isinstance(agent, Actor) else None
        left = [name for name, one in agent.state.get("kept", {}).items() if fresh and one != fresh.state["kept"][name]]
        if any(agent.own_count) or left:
            raise ContractError(
                f"an agent of {trial.subject} must begin a new life with nothing, got "
                f"{', '.join(left) or 'its counts'} of the old one; set all that changes in start()"
            )
