"""Small simulations for the checks: they run, balance, repeat, and are the same on both engines."""

from __future__ import annotations

import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Final

import numpy as np

from ..errors import BanditmeshError, ContractError, UnsupportedError
from ..faults import Faults, Outages
from ..lookup.own import in_words
from ..policies import Estimates, Policy
from ..protocols import AnyProtocol
from ..protocols.spanning import CONTROL_BYTES
from ..rules import RULE_SETS
from ..sim.engine import simulate
from ..sim.result import Result
from .cases import NamedProblem
from .report import Report

#: Long enough for every arm set in `cases` to be gone through and for messages to expire.
HORIZON: Final = 25
_FATES: Final = ("absorbed", "expired", "stopped", "relayed", "queued")
_FAULTS: Final = {
    "": None,
    " with loss": Faults(loss=0.3),
    " with loss and outages": Faults(loss=0.1, outages=Outages(down=0.1, up=0.3)),
    " with agents that start afresh": Faults(outages=Outages(down=0.1, up=0.3, memory=False)),
}


@dataclass(frozen=True)
class Trial:
    """What is simulated, and its name in messages."""

    subject: str
    protocol: AnyProtocol
    policy: Policy

    def run(self, case: NamedProblem, **settings: Any) -> Result:
        """Simulate; an error inside becomes a line that says where."""
        settings = {"horizon": HORIZON, "seed": 7, "engine": "reference", "policy": self.policy, **settings}
        try:
            return simulate(case.problem, self.protocol, **settings)
        except (BanditmeshError, MemoryError):
            raise
        except Exception as error:
            raise ContractError(f"{self.subject} must run on {case.name}, got {in_words(error)}") from error


def check_books(trial: Trial, case: NamedProblem) -> None:
    """Under both rule sets, with and without faults, fates, link counts and regret add up."""
    for rules in RULE_SETS:
        for how, faults in _FAULTS.items():
            settings = {"rules": rules, "faults": faults, "link_traffic": True, "trace": True}
            check_balance(trial, f"{case.name}{how} by the {rules} rules", case, trial.run(case, **settings))


def check_balance(trial: Trial, where: str, case: NamedProblem, result: Result, n_bytes: int | None = None) -> None:
    """The totals of one result add up, to that many bytes if they are known."""
    counts = {name: int(totals.sum()) for name, totals in result.traffic.items()}
    assert result.link_traffic is not None
    identities = {
        "sent = delivered + duplicate + lost": (
            counts["sent"],
            counts["delivered"] + counts["duplicate"] + counts["lost"],
        ),
        "delivered = " + " + ".join(_FATES): (counts["delivered"], sum(counts[fate] for fate in _FATES)),
        "sent + control = transmissions": (counts["sent"] + counts["control"], int(result.transmissions[:, -1].sum())),
        "sent = events": (counts["sent"], len(result.trace)),
        "sent = link traffic": (counts["sent"], int(result.link_traffic.sum())),
    }
    if n_bytes is None:
        total = counts["sent"] * trial.protocol.n_bytes + counts["control"] * CONTROL_BYTES
        identities["bytes = sent * n_bytes + control * 16"] = counts["bytes"], total
    else:
        identities["bytes = the sum of all sizes"] = counts["bytes"], n_bytes
    for identity, (left, right) in identities.items():
        if not (left == right):
            raise ContractError(
                f"traffic of {trial.subject} must balance, got {left} for {right} in {identity} on {where}"
            )
    regret = np.nansum(np.where(result.pulls > 0, result.pulls * case.problem.gaps, 0.0), axis=(1, 2))
    if not np.allclose(result.regret[:, -1], regret):
        raise ContractError(
            f"regret of {trial.subject} must be that of its pulls, got {result.regret[:, -1]} for {regret} on {where}"
        )


@dataclass(frozen=True)
class Watcher(Policy):
    """Pulls its arms in turn, and records what the agent knew in every round."""

    log: list[tuple[int, list[int], list[float]]] = field(default_factory=list, repr=False)
    name = "watcher"

    def choose(self, t: float, estimates: Estimates, draw: Callable[[int], float]) -> int:
        """The arm of this round, whatever is known."""
        self.log.append((int(t), list(estimates.count), list(estimates.total)))
        return int(t) % len(estimates)


def check_learned_once(trial: Trial, case: NamedProblem) -> None:
    """Under the sound rules an agent knows its own pulls and each observation that it heard, all of them once."""
    problem = case.problem
    shape = HORIZON, problem.n_agents, problem.n_arms
    for how, faults in (("", None), (" with loss", Faults(loss=0.3))):
        watchers = [Watcher() for _ in range(problem.n_agents)]
        # Every reward is 1, so that sums are counts; regret is that of the laws.
        ones = {"rewards": np.ones(shape), "means": problem.means}
        result = trial.run(case, policy=watchers, **ones, trace=True, faults=faults)
        for agent, watcher in enumerate(watchers):
            check_counts(trial, f"{case.name}{how}", case, result, agent, watcher)


def check_counts(trial: Trial, where: str, case: NamedProblem, result: Result, agent: int, watcher: Watcher) -> None:
    """What an agent knew in every round is what it pulled and heard."""
    problem = case.problem
    arms = problem.arm_set(agent).tolist()
    learned = [event for event in result.trace if event.learned and event.receiver == problem.agents[agent]]
    central = trial.protocol.is_central
    cumulative = trial.protocol.emission.cumulative
    for t, counts, totals in watcher.log:
        for position, arm in enumerate(arms):
            pulled = {v: _n_pulls(problem.arm_set(v).tolist(), arm, t) for v in range(problem.n_agents)}
            heard: dict[object, list[float]] = defaultdict(list)
            for event in learned:
                if event.round < t and event.arm == problem.arms[arm]:
                    heard[event.origin].append(event.reward)
            known = pulled[agent] + sum(max(sums) if cumulative else len(sums) for sums in heard.values())
            if central:
                known = sum(pulled.values())
            most = sum(pulled.values())
            if not (counts[position] == totals[position] == known <= most):
                raise ContractError(
                    f"under {trial.subject} an agent must know each observation once, got {counts[position]} where it "
                    f"pulled or heard {known:g}, of {most} made, in round {t} on {where}"
                )


def _n_pulls(arm_set: list[int], arm: int, t: int) -> int:
    """How often a watcher with that arm set has pulled an arm before round `t`."""
    n_arms = len(arm_set)
    pulled = [arm_set[s - 1] if s <= n_arms else arm_set[s % n_arms] for s in range(1, t)]
    return pulled.count(arm)


def check_repeats(trial: Trial, case: NamedProblem) -> None:
    """The same seed gives the same result, in one replicate or several, and a saved result is the same one."""
    one, again, three = trial.run(case), trial.run(case), trial.run(case, replicates=3)
    advice = "use no generator and no global, only the numbers that it is given"
    found = difference(one, again)
    if found:
        raise ContractError(
            f"{trial.subject} must give the same result for the same seed, got another {found}; {advice}"
        )
    if not (
        np.array_equal(one.regret[0], three.regret[0]) and np.array_equal(one.transmissions[0], three.transmissions[0])
    ):
        raise ContractError(
            f"{trial.subject} must give the same first replicate whatever their number, got another one; {advice}"
        )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "result.npz"
        three.save(path)
        if Result.load(path) != three:
            raise ContractError(f"a result of {trial.subject} must come back from a file, got another one")


def check_sameness(trials: Sequence[Trial], report: Report, cases: tuple[NamedProblem, ...], compiled: bool) -> None:
    """Results are the same for the same seed and, if asked for, on both engines."""
    report.holds("gives the same result for the same seed", check_repeats, trials[0], cases[-1])
    if compiled:
        for trial in trials:
            check_engines(trial, report, cases)
        report.checks.append("gives the same result on both engines")


def check_engines(trial: Trial, report: Report, cases: tuple[NamedProblem, ...]) -> None:
    """Wherever the compiled engine runs it, the results equal the reference engine's to the last bit."""
    refused: set[tuple[str, bool, str]] = set()
    for case, rules, how, settings in _combinations(cases):
        kind = rules, case.problem.is_dynamic, how
        if kind in refused:
            continue
        try:
            compiled = trial.run(case, engine="compiled", rules=rules, **settings)
        except UnsupportedError as error:
            from ..sim.compiled.warmup import Differs

            if isinstance(error.reason, Differs):
                raise _disagreement(trial, "number", f"a small network by the {rules} rules") from None
            refused.add(kind)
            if error.reason not in report.reference_only:
                report.reference_only.append(error.reason)
            continue
        found = difference(compiled, trial.run(case, rules=rules, **settings))
        if found:
            raise _disagreement(trial, found, f"{case.name}{how} by the {rules} rules")
        report.n_pairs += 1
        if settings["replicates"] > 1:
            threaded = trial.run(case, engine="compiled", rules=rules, **{**settings, "threads": 2})
            found = difference(compiled, threaded)
            if found:
                raise ContractError(
                    f"{trial.subject} must not depend on threads, got another {found} with 2 on {case.name}"
                )


def _disagreement(trial: Trial, what: str, where: str) -> ContractError:
    return ContractError(
        f"{trial.subject} must give the same result on both engines, got another {what} on {where}; use arithmetic and "
        "math only, and no integer beyond 64 bits"
    )


def _combinations(cases: tuple[NamedProblem, ...]) -> Iterator[tuple[NamedProblem, str, str, dict[str, Any]]]:
    for rules in RULE_SETS:
        for case in cases:
            # Without link traffic, a plan is made where one is possible. That comes first, as it compiles sooner.
            yield case, rules, "", {"replicates": 2, "threads": 1}
            for how, faults in _FAULTS.items():
                yield case, rules, how, {"replicates": 1, "link_traffic": True, "faults": faults}


def difference(one: Result, other: Result) -> str:
    """The first part in which two results differ; nothing if they are equal."""
    for part in fields(Result):
        if part.name in ("engine", "traffic"):
            continue
        mine, theirs = getattr(one, part.name), getattr(other, part.name)
        if part.name == "changes":
            mine, theirs = ([rounds.tolist() for rounds in changes] for changes in (mine, theirs))
        same = np.array_equal(mine, theirs) if isinstance(mine, np.ndarray) else mine == theirs
        if not same:
            return part.name
    for name, totals in one.traffic.items():
        if not np.array_equal(totals, other.traffic[name]):
            return f"traffic[{name!r}]"
    return ""
