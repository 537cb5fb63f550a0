"""What `simulate` and `Simulation` are given, checked and read into a `Run`.

Studies and comparisons also ask the checks of what fits together, before any of their runs begins.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import checks
from ..arms import ChangingLaw, Law
from ..arms.base import MAX_REWARD
from ..draws import MAX_COUNTER, fresh_seed
from ..errors import BanditmeshWarning, InputError, warn
from ..faults import Faults
from ..machine import memory
from ..networks.csr import Links
from ..networks.dynamic import DynamicNetwork
from ..policies import UCB, Memory, Policy
from ..policies.base import Arms, Chooser
from ..problem import Problem
from ..protocols import AnyProtocol, Delivery, Protocol
from ..protocols.notation import as_protocol
from ..rules import get_rules
from ..settings.parts import as_policy
from . import reference
from .limits import MAX_ROUNDS, check_result_fits
from .lying import read_liars
from .run import Event, Run, ended_early

#: What an event takes in memory.
EVENT_BYTES: Final = 320.0
_beginning: ContextVar[bool] = ContextVar("beginning", default=False)


def read_run(
    problem: Problem,
    protocol: AnyProtocol | str,
    *,
    policy: Policy | str | Sequence[Policy] | None = None,
    horizon: int,
    replicates: int | range = 1,
    seed: int | None,
    rules: str = "sound",
    link_traffic: bool = False,
    agents: bool = False,
    rewards: ArrayLike | None = None,
    means: ArrayLike | None = None,
    every: int | Sequence[int] | None = None,
    faults: Faults | None = None,
    record_every: int = 1,
    trace: bool | Callable[[Event], object] = False,
    trim: int = 0,
) -> Run:
    """The arguments of `simulate`, checked."""
    if not isinstance(problem, Problem):
        raise InputError(f"problem must be a Problem, got {type(problem).__name__}")
    protocol = as_protocol(protocol)
    _check_protocol(protocol)
    protocol.check_network(not problem.is_dynamic)
    horizon = checks.integer("horizon", horizon, at_least=1, at_most=MAX_ROUNDS)
    first, replicates = _read_replicates(replicates)
    record_every = checks.integer("record_every", record_every, at_least=1)
    check_result_fits(problem, horizon, record_every, replicates, bool(link_traffic), bool(agents))
    faults = _read_faults(faults, problem)
    run = Run(
        problem=problem,
        protocol=protocol,
        policies=_read_policies(policy, problem),
        rules=get_rules(rules),
        horizon=horizon,
        replicates=replicates,
        seed=fresh_seed() if seed is None else checks.seed(seed),
        every=_read_every(every, problem.n_agents),
        tape=None if rewards is None else _read_tape(rewards, problem, horizon, replicates),
        means=None if means is None else _read_means(means, problem, horizon, replicates),
        records=_records(horizon, record_every),
        link_traffic=bool(link_traffic),
        trace=_read_trace(trace),
        faults=faults,
        agents=bool(agents),
        first=first,
        liars=read_liars(problem, faults),
        trim=checks.integer("trim", trim, at_least=0, at_most=problem.n_agents),
    )
    check_network_lasts(problem, horizon)
    protocol.check_run(problem, run.every.tolist(), run.faults)
    check_changes_come(problem.arms, problem.laws, horizon)
    check_memory_fits(protocol, run.memory)
    if run.trim:
        check_trim_fits(problem, protocol, run.policies)
    if run.tape is None and run.means is not None:
        raise InputError("means go with rewards, got no rewards; leave them out, or give laws with these means")
    if run.tape is not None and run.means is None:
        _warn_of_contradiction(run, run.tape)
    if run.trace is True:
        check_log_fits(run)
    return run


def _check_protocol(protocol: AnyProtocol) -> None:
    """What a user's own protocol must keep to."""
    if not isinstance(protocol, Protocol):
        return
    checks.real(f"the parameter of protocol {protocol.name!r}", protocol.parameter)
    if protocol.n_targets is not None:
        checks.integer(f"n_targets of protocol {protocol.name!r}", protocol.n_targets, at_least=1)


def _read_replicates(replicates: int | range) -> tuple[int, int]:
    """The number of the first replicate, and how many there are."""
    if not isinstance(replicates, range):
        return 0, checks.integer("replicates", replicates, at_least=1)
    if not replicates or replicates.step != 1 or replicates.start < 0:
        raise InputError(f"replicates must be a number, or a range such as range(3, 10), got {replicates}")
    return replicates.start, len(replicates)


def _read_policies(given: object, problem: Problem) -> tuple[Policy, ...]:
    n_agents = problem.n_agents
    policy: Any = UCB() if given is None else as_policy(given)
    if isinstance(policy, Policy):
        policy = (policy,) * n_agents
    if not isinstance(policy, Sequence) or not all(isinstance(one, Policy) for one in policy):
        raise InputError(f"policy must be a policy such as UCB(), or one for each agent, got {policy!r}")
    if len(policy) != n_agents:
        raise InputError(f"policy must be one policy, or one for each of {n_agents} agents, got {len(policy)}")
    for one in {id(one): one for one in policy}.values():
        checks.real(f"the parameter of policy {one.name!r}", one.parameter)
        one.check_memory()
        one.check(problem)
    memories = list(dict.fromkeys(one.memory for one in policy))
    if len(memories) > 1:
        raise InputError(
            f"all agents of a run must have the same memory, because a statistic is weighed by its origin, got "
            f"{memories[0]!r} and {memories[1]!r}"
        )
    return tuple(policy)


def _read_trace(trace: object) -> bool | Callable[[Event], object]:
    if isinstance(trace, bool | np.bool_):
        return bool(trace)
    if not callable(trace):
        raise InputError(f"trace must be True, False or a callable that takes events, got {checks.shown(trace)}")
    return trace


def _read_every(every: int | Sequence[int] | None, n_agents: int) -> NDArray[np.int64]:
    if every is None:
        every = 1
    if not isinstance(every, Sequence | np.ndarray):
        pause = checks.integer("every", every, at_least=1, at_most=MAX_COUNTER)
        return np.full(n_agents, pause, dtype=np.int64)
    if len(every) != n_agents:
        raise InputError(f"every must be one number, or one for each of {n_agents} agents, got {len(every)}")
    return np.array(
        [checks.integer("every", rounds, at_least=1, at_most=MAX_COUNTER) for rounds in every], dtype=np.int64
    )


def _read_faults(faults: Faults | None, problem: Problem) -> Faults | None:
    if faults is None:
        return None
    if not isinstance(faults, Faults):
        raise InputError(f"faults must be a Faults such as Faults(loss=0.1), or None, got {checks.shown(faults)}")
    faults.reward_delays(problem.arms)  # refuses arms that the problem does not have
    return faults.effective()


def _read_tape(rewards: ArrayLike, problem: Problem, horizon: int, replicates: int) -> NDArray[np.float64]:
    shape = (horizon, problem.n_agents, problem.n_arms)
    tape = checks.floats("rewards", rewards)
    if tape.shape not in (shape, (replicates, *shape)):
        raise InputError(
            f"rewards must have the shape (horizon, agents, arms) = {shape}, or {(replicates, *shape)} with one "
            f"tape per replicate, got {tape.shape}"
        )
    tape = tape.reshape(-1, *shape)
    held = np.zeros(shape[1:], dtype=np.bool_)
    held[problem.owners, problem.arm_indices] = True
    bad = np.argwhere(~(np.abs(tape) <= MAX_REWARD) & held)
    if bad.size:
        replicate, row, agent, arm = bad[0]
        raise InputError(
            f"rewards must be numbers between {-MAX_REWARD:g} and {MAX_REWARD:g} wherever an agent has the arm, got "
            f"{tape[replicate, row, agent, arm]} in round {row + 1} for agent {problem.agents[agent]!r} "
            f"and arm {problem.arms[arm]!r}"
        )
    return tape


def _read_means(means: ArrayLike, problem: Problem, horizon: int, replicates: int) -> NDArray[np.float64]:
    n_arms = problem.n_arms
    array = checks.floats("means", means)
    by_round, by_replicate = (horizon, n_arms), (replicates, n_arms)
    shapes = {
        (n_arms,): (1, 1, n_arms),
        by_replicate: (replicates, 1, n_arms),
        by_round: (1, horizon, n_arms),
        (replicates, horizon, n_arms): (replicates, horizon, n_arms),
    }
    if array.shape not in shapes:
        raise InputError(
            f"means must have the shape (arms,) = {(n_arms,)} or (horizon, arms) = {by_round}, or a leading axis of "
            f"{replicates} replicates, got {array.shape}"
        )
    if array.shape == by_round == by_replicate and horizon > 1:
        raise InputError(
            f"means must say whether they are by round or by replicate, got {by_round}, which may be either; "
            "give (replicates, horizon, arms)"
        )
    bad = array[~(np.abs(array) <= MAX_REWARD)]
    if bad.size:
        raise InputError(f"means must be numbers between {-MAX_REWARD:g} and {MAX_REWARD:g}, got {bad[0]}")
    # Kernels would be compiled once more for arrays that cannot be written, as those of a problem cannot.
    return np.require(array, requirements=["C", "W"]).reshape(shapes[array.shape])


def _records(horizon: int, record_every: int) -> NDArray[np.int64]:
    rounds = np.arange(record_every, horizon + 1, record_every, dtype=np.int64)
    return rounds if rounds.size and rounds[-1] == horizon else np.append(rounds, np.int64(horizon))


def _warn_of_contradiction(run: Run, tape: NDArray[np.float64]) -> None:
    """Warn if an arm pays by the tape, on average, what its law makes next to impossible."""
    problem = run.problem
    means = _means_of_laws(run)
    for arm, (mean, sigma) in enumerate(zip(means.tolist(), problem.sigmas.tolist(), strict=True)):
        if math.isnan(sigma):
            continue
        entries = tape[:, :, problem.who_has(arm), arm]
        paid = float(entries.mean())
        # Beside chance, the mean of many equal numbers may differ from them by some rounding.
        allowed = 6.0 * sigma / math.sqrt(entries.size) + 1e-9 * max(abs(paid), abs(mean))
        if abs(paid - mean) > allowed:
            warn(
                f"rewards contradict the arms' laws: arm {problem.arms[arm]!r} pays {paid:g} on average and its law "
                f"says {mean:g}; regret is judged by the laws, so give means= to judge it by what the tape pays",
                BanditmeshWarning,
            )
            return


def _means_of_laws(run: Run) -> NDArray[np.float64]:
    """What each arm pays by its law, on average over the rounds and replicates of a run."""
    if not run.problem.changes:
        return run.problem.means
    n_replicates = run.replicates if run.problem.is_random else 1
    total = np.zeros(run.problem.n_arms)
    for replicate in range(n_replicates):
        for t in range(1, run.horizon + 1):
            total += run.world(replicate).means(t)
    return total / (n_replicates * run.horizon)


@contextmanager
def beginnings() -> Iterator[None]:
    """While this is open, runs of this thread are beginnings of longer ones: arms may change beyond their horizon."""
    token = _beginning.set(True)
    try:
        yield
    finally:
        _beginning.reset(token)


def check_network_lasts(problem: Problem, horizon: int) -> None:
    """Refuse a run that goes on after its network has ended."""
    network = problem.network
    if isinstance(network, DynamicNetwork) and network.n_rounds is not None and network.n_rounds < horizon:
        raise ended_early(horizon, network.n_rounds)


def check_changes_come(arms: Iterable[Hashable], laws: Iterable[Law], horizon: int) -> None:
    """Refuse a run that ends before an arm has changed as its law says it will, but for the beginning of a run."""
    if _beginning.get():
        return
    for arm, law in zip(arms, laws, strict=True):
        if isinstance(law, ChangingLaw) and law.least_horizon > horizon:
            raise InputError(
                f"arm {arm!r} changes in round {law.least_horizon}, beyond the horizon of {horizon} rounds; "
                "lengthen the horizon, or leave the change out"
            )


def check_log_fits(run: Run) -> None:
    """Refuse an event log that does not fit into this machine's memory."""
    network, n_agents = run.problem.network, run.problem.n_agents
    n_links = 2.0 * network.n_links if isinstance(network, Links) else float(n_agents * (n_agents - 1))
    # A message crosses a link at most once each way (or some times, by the published rules): rarely is the bound near.
    at_most = EVENT_BYTES * float((run.horizon / run.every).sum()) * run.replicates * n_links
    if at_most > 0.5 * memory.available():
        expected = EVENT_BYTES * reference.expected_events(run)
        memory.check(
            expected,
            "the event log",
            "write it to a file, as in trace='events.jsonl.gz', or hand it to a callable",
        )


def check_memory_fits(protocol: AnyProtocol, memory: Memory) -> None:
    """Refuse a memory that an algorithm does not ask, or that cannot take apart what the protocol merges."""
    if protocol.chooses and memory.forgets:
        raise InputError(
            f"{protocol.name!r} chooses by its own rules and has no memory that forgets, got {memory!r}; leave it out"
        )
    if not memory.merges and protocol.delivery is Delivery.TREE:
        raise InputError(
            f"{protocol.name!r} merges statistics of all rounds, which {memory!r} cannot take apart; "
            "use Discount(0.995), or another protocol"
        )


def check_trim_fits(problem: Problem, protocol: AnyProtocol, policies: Sequence[Policy]) -> None:
    """Refuse tested merging where what is heard is not one statistic an origin, or cannot be tested."""
    reason = ""
    if protocol.delivery is Delivery.TREE:
        reason = f"{protocol.name!r} merges what origins tell; choose a protocol that relays it, such as flooding"
    elif protocol.is_central or protocol.chooses:
        reason = f"{protocol.name!r} does not send statistics; choose one that does, such as 'fwa(4)+growth(0.25)'"
    elif protocol.sends_messages and not protocol.emission.cumulative:
        reason = f"{protocol.name!r} sends single observations; give it a cumulative emission, such as Growth(0.25)"
    elif any(policy.memory.forgets and not policy.memory.merges for policy in policies):
        reason = f"{policies[0].memory!r} keeps no statistic an origin of all rounds; use Discount(0.995)"
    elif not all(policy.counts_and_sums and not _listens(policy) for policy in policies):
        reason = "a policy asks for more than counts and sums, which are all that is tested; use another, such as UCB()"
    elif (without := np.flatnonzero(np.isnan(problem.sigmas))).size:
        reason = f"arm {problem.arms[without[0]]!r} has a law without a sigma; give laws that have one"
    if reason:
        raise InputError(f"cannot be used here: {reason}", key="trim")


def _listens(policy: Policy) -> bool:
    """Whether a policy's chooser asks what is heard, instead of going by the estimates alone."""
    kind = type(policy.chooser(Arms.gaussian([0], 1.0)))
    return kind.hear is not Chooser.hear or kind.hear_from is not Chooser.hear_from
