"""The public edge of the simulator: validates once, picks an engine, and assembles the result."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from os import PathLike
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import checks
from ..arms import ChangingLaw, Law
from ..arms.base import MAX_REWARD
from ..draws import MAX_COUNTER, fresh_seed
from ..errors import BanditmeshWarning, InputError, UnsupportedError, warn
from ..faults import Faults
from ..machine import memory
from ..machine.cores import count_cores
from ..networks.csr import Links
from ..networks.dynamic import DynamicNetwork
from ..policies import UCB, Memory, Policy
from ..policies.base import Arms, Chooser
from ..policies.choice import note_default
from ..problem import Problem
from ..protocols import AnyProtocol, Delivery, Protocol
from ..protocols.notation import as_protocol, write
from ..rules import get_rules
from ..settings.parts import as_policy
from ..version import __version__
from . import reference
from .limits import MAX_ROUNDS, check_result_fits
from .lying import read_liars
from .processes import read_workers, run_all
from .progress import Progress
from .result import Result, assemble
from .run import Event, ProgressCallback, Run, ended_early
from .tracefile import writing_trace
from .watching import Watch, WatchCallback

ENGINES: Final = ("auto", "reference", "compiled")
#: What a result says of the policy of an algorithm, which chooses by its own rules.
OWN_CHOICE: Final = "own"
#: What an event takes in memory.
EVENT_BYTES: Final = 320.0
#: A fallback to the reference engine that will take longer than this many seconds is worth a warning.
LONG_FALLBACK: Final = 10.0
#: A run that takes the reference engine less than this many seconds is not worth compiling a user's rule for.
SHORT_RUN: Final = 5.0
_beginning: ContextVar[bool] = ContextVar("beginning", default=False)


def simulate(
    problem: Problem,
    protocol: AnyProtocol | str,
    *,
    policy: Policy | str | Sequence[Policy] | None = None,
    horizon: int = 1000,
    replicates: int | range = 1,
    seed: int | None = None,
    rules: str = "sound",
    engine: str = "auto",
    link_traffic: bool = False,
    agents: bool = False,
    rewards: ArrayLike | None = None,
    means: ArrayLike | None = None,
    every: int | Sequence[int] | None = None,
    faults: Faults | None = None,
    record_every: int = 1,
    threads: int | None = None,
    workers: int | Executor | None = None,
    progress: bool | ProgressCallback | None = None,
    trace: bool | Callable[[Event], object] | str | PathLike[str] = False,
    watch: WatchCallback | None = None,
    trim: int = 0,
) -> Result:
    """Simulate agents that learn together.

    Parameters
    ----------
    problem : Problem
        Network, arm sets and arms.
    protocol : AnyProtocol or str
        How messages travel: a protocol, or its text as tables print it, such as "flooding(8)+growth(0.25)".
    policy : Policy, str or sequence of Policy, optional
        How arms are chosen, and what agents forget: one for all agents, or one for each; by default `UCB(alpha=3.0)`.
        As text, "ucb(0.5)+discount(0.995)".
    horizon : int
        The number of rounds.
    replicates : int or range
        The number of independent repetitions. Replicate r is the same whatever the number of replicates. A range, such
        as `range(3, 10)`, gives some of them: those that ten replicates have beyond the first three.
    seed : int, optional
        Decides all randomness. The same seed gives the same numbers, and every protocol meets the same rewards and
        the same networks. If not given, one is drawn and recorded in the result.
    rules : str
        "sound", the paper's text and theory, or "published", its author's code and figures.
    engine : str
        "auto", "reference" or "compiled".
    link_traffic : bool
        Whether transmissions are also counted on every link.
    agents : bool
        Whether each agent's regret is kept over time, in `Result.agent_regret_curve`; of many rounds or agents, keep
        fewer with `record_every`.
    rewards : array (horizon, agents, arms) or (replicates, horizon, agents, arms), optional
        A tape of what each pull would pay, columns in the order of `problem.arms`, used instead of the arms' laws.
        Entries are numbers of at most 1e100 in size; those of arms that an agent does not have are ignored and may be
        NaN. Regret is judged by the laws all the same, with a warning if they contradict the tape, unless `means` are
        given.
    means : array (arms,) or (horizon, arms), or with a leading axis of replicates, optional
        What the arms pay on average, beside `rewards`: regret is judged by these means instead of those of the laws.
        If they are given by round, it is added up pull by pull.
    every : int or sequence of int, optional
        Agent v pulls in rounds t with (t - 1) % every[v] == 0; by default in every round.
    faults : Faults, optional
        What goes wrong: messages that are lost, late or changed, links that are full, agents that are down or lie.
    record_every : int
        Of what is recorded over time, keep every n-th round, and the last one.
    threads : int, optional
        How many replicates the compiled engine runs side by side; by default as many as there are cores.
        Results do not depend on it.
    workers : int or concurrent.futures.Executor, optional
        How many processes the reference engine runs replicates in, side by side, or an executor to run them on; by
        default this process alone. Results do not depend on it. Runs with a `trace` stay in this process, and so, with
        a warning, does what cannot be pickled; classes of a script or notebook can be.
    progress : bool or callable, optional
        A callable gets the number of rounds done and the number in all, over all replicates. True shows a bar, False
        nothing; by default a bar appears in a terminal when a run takes more than two seconds.
    trace : bool, callable or path
        Whether to log the fate of every copy, in `Result.trace`. A callable is called with each `Event` instead; into a
        file they are written one after the other, to be read with `read_trace`.
    watch : callable, optional
        Called about ten times a second, and once at the end, with the recorded rounds, and with cumulative regret and
        messages as far as they are known: arrays (replicates, records), NaN elsewhere.
    trim : int
        How many liars the agents are to withstand: what others tell is tested before it is merged, see
        [Faults](faults.md#tested-merging). For cumulative emissions such as `Growth`, on the reference engine; 0, to
        believe everything, by default.

    Returns
    -------
    Result
        Regret, messages, traffic and pulls of every replicate.

    Examples
    --------
    >>> import banditmesh as bm
    >>> problem = bm.Problem.paper("er", seed=0)
    >>> result = bm.simulate(problem, bm.Flooding(4), horizon=8, replicates=2, seed=0, rules="published")
    >>> int(result.transmissions[0, -1] - result.transmissions[0, -2])
    11033
    """
    checks.callback("watch", watch)
    log = writing_trace(trace) if isinstance(trace, str | PathLike) else nullcontext(trace)
    with log as handed_on:
        run = read_run(
            problem,
            protocol,
            policy=policy,
            horizon=horizon,
            replicates=replicates,
            seed=seed,
            rules=rules,
            link_traffic=link_traffic,
            agents=agents,
            rewards=rewards,
            means=means,
            every=every,
            faults=faults,
            record_every=record_every,
            trace=handed_on,
            trim=trim,
        )
        if not run.protocol.chooses:
            note_default(problem, policy)
        chosen = checks.choice("engine", engine, ENGINES)
        n_threads = count_cores() if threads is None else checks.integer("threads", threads, at_least=1)
        return _simulate(run, chosen, n_threads, read_workers(workers), progress, watch)


def _simulate(
    run: Run,
    engine: str,
    n_threads: int,
    workers: int | Executor,
    progress: bool | ProgressCallback | None,
    watch: WatchCallback | None,
) -> Result:
    watching = Watch(run.records, run.replicates, watch)
    with Progress(progress, run.horizon * run.replicates, run.protocol.name) as bar:
        chosen = _pick(run, engine, workers)
        if chosen == "compiled":
            from .compiled import engine as compiled
            from .compiled.warmup import announced

            # A plan that does not fit into memory is found out only now: then something else may have to be compiled.
            with announced(run):
                outcomes = compiled.run_all(run, n_threads, bar.advance, watching)
        else:
            outcomes = run_all(run, workers, bar.advance, watching)
    watching.look(is_over=True)
    return assemble(run, chosen, outcomes, settings_of(run))


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


@contextmanager
def beginnings() -> Iterator[None]:
    """While this is open, runs of this thread are beginnings of longer ones: arms may change beyond their horizon."""
    token = _beginning.set(True)
    try:
        yield
    finally:
        _beginning.reset(token)


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


def _pick(run: Run, engine: str, workers: int | Executor) -> str:
    """The engine to use: the compiled one wherever it runs this, unless the reference was asked for."""
    if engine == "reference":
        return engine
    # Imported here because numba is heavy.
    from .compiled.packing import unsupported
    from .compiled.warmup import is_prompt, prepare, unknown

    reason = unsupported(run) or unknown(run)
    if reason is None:
        # A rule of the user's own is compiled in every process: for a short run that takes longer than it saves.
        if engine == "auto" and not is_prompt(run) and reference.estimated_seconds(run) < SHORT_RUN:
            return "reference"
        reason = prepare(run)
    if reason is None:
        return "compiled"
    if engine == "compiled":
        message = f'the compiled engine does not run this: {reason}; use engine="auto" or "reference"'
        raise UnsupportedError(message, reason=reason)
    at_once = min(workers, run.replicates) if isinstance(workers, int) else run.replicates
    seconds = reference.estimated_seconds(run) / at_once
    if seconds > LONG_FALLBACK:
        warn(f"the compiled engine does not run this: {reason}; the reference engine will take about {seconds:,.0f} s")
    return "reference"


def _policy_of(run: Run) -> dict[str, Any]:
    """What a result says of how arms were chosen."""
    if run.protocol.chooses:
        return {"policy": OWN_CHOICE, "policy_name": OWN_CHOICE}
    # Told apart by how they are written, since a user's policy need not be hashable; usually one serves all agents.
    written = {key: repr(policy) for key, policy in {id(policy): policy for policy in run.policies}.items()}
    if len(set(written.values())) == 1:
        return {"policy": written[id(run.policies[0])], "policy_name": run.policies[0].label}
    return {"policy": [written[id(policy)] for policy in run.policies], "policy_name": "mixed"}


def settings_of(run: Run) -> dict[str, Any]:
    """What a result says of how it was made."""
    return {
        "protocol": repr(run.protocol),
        "protocol_name": run.protocol.name,
        "protocol_text": write(run.protocol),
        **_policy_of(run),
        "rules": run.rules.name,
        "faults": repr(run.faults),
        "horizon": run.horizon,
        "replicates": run.replicates,
        **({"first_replicate": run.first} if run.first else {}),
        **({"liars": list(run.liars)} if run.liars else {}),
        **({"trim": run.trim} if run.trim else {}),
        "seed": run.seed,
        "version": __version__,
    } | ({} if run.means is None else {"means": "given by round" if run.means_change else "given"})


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
    return array.reshape(shapes[array.shape])


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


def _records(horizon: int, record_every: int) -> NDArray[np.int64]:
    rounds = np.arange(record_every, horizon + 1, record_every, dtype=np.int64)
    return rounds if rounds.size and rounds[-1] == horizon else np.append(rounds, np.int64(horizon))


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
