"""The public edge of the simulator: picks an engine, and assembles the result. What is given is read in `arguments`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from contextlib import nullcontext
from os import PathLike
from typing import Any, Final

from numpy.typing import ArrayLike

from .. import checks
from ..errors import UnsupportedError, warn
from ..faults import Faults
from ..machine.cores import count_cores
from ..policies import Policy
from ..policies.choice import note_default
from ..problem import Problem
from ..protocols import AnyProtocol
from ..protocols.notation import write
from ..version import __version__
from . import reference
from .arguments import read_run
from .processes import read_workers, run_all
from .progress import Progress
from .result import Result, assemble
from .run import Event, ProgressCallback, Run
from .tracefile import writing_trace
from .watching import Watch, WatchCallback

ENGINES: Final = ("auto", "reference", "compiled")
#: What a result says of the policy of an algorithm, which chooses by its own rules.
OWN_CHOICE: Final = "own"
#: A fallback to the reference engine that will take longer than this many seconds is worth a warning.
LONG_FALLBACK: Final = 10.0
#: A run that takes the reference engine less than this many seconds is not worth compiling a user's rule for.
SHORT_RUN: Final = 5.0


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
