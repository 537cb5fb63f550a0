"""What regret costs on your network: protocols, ttls and emissions side by side.

Rules kept here: every configuration sees the same rewards and networks, and all numbers depend on the seed alone. If
there is a lot to simulate, configurations run from coarse to fine, see `screening`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from os import PathLike
from typing import Any, Final, TypeAlias, TypeVar

from .. import checks
from ..draws import fresh_seed
from ..errors import InputError
from ..faults import Faults
from ..machine.cores import count_cores
from ..machine.executors import MAX_WORKERS, executor_or_none
from ..networks.csr import Links
from ..networks.distances import diameter
from ..policies import Policy
from ..policies.choice import note_default
from ..problem import Problem
from ..protocols import (
    IRS,
    AnyProtocol,
    Contested,
    Emission,
    EveryPull,
    Flooding,
    FwA,
    Gossip,
    Growth,
    NoCooperation,
    ProbabilisticFlooding,
    TreeAggregation,
)
from ..protocols.notation import as_emission, needs_ttl, protocol_or_class, write
from ..rules import PUBLISHED
from ..settings.parts import as_policy
from ..sim.arguments import check_changes_come
from ..sim.engine import OWN_CHOICE
from ..sim.progress import Progress, duration
from ..sim.run import ProgressCallback
from .configurations import LISTENS, Configuration, Frontier
from .entries import check_memories, policy_labels, read_policies
from .first_pulls import listening
from .kept import Kept
from .measuring import Bench, Measured, Task
from .screening import LARGE, REPLICATES, Screened, screen

T = TypeVar("T")
#: One or several.
Several: TypeAlias = T | Sequence[T]

#: Protocols combined with every ttl and emission by default.
PROTOCOLS: Final = (NoCooperation, IRS, Gossip, ProbabilisticFlooding, FwA, Flooding)
EMISSIONS: Final = (EveryPull(), Growth(0.1), Growth(0.25), Growth(1.0), Contested())
#: Also, on static networks: protocols without a ttl, which need smaller factors.
TREES: Final = (
    TreeAggregation(1, emission=Growth(0.02)),
    TreeAggregation(8, emission=Growth(0.05)),
    TreeAggregation(16, emission=Growth(0.1)),
    TreeAggregation(16, emission=Growth(0.25)),
)
#: Also, where transmissions are lost.
ECHOING: Final = Growth(0.25, echoes=1)
ECHOING_TREES: Final = (
    TreeAggregation(8, emission=Growth(0.05, echoes=1)),
    TreeAggregation(4, emission=Growth(0.05, echoes=3)),
)
#: First pulls of at most this share of the regret are not worth another run.
_LITTLE: Final = 0.1
#: The ttls for a dynamic network, which has no diameter.
DYNAMIC_TTLS: Final = (2, 3, 4)


def frontier(
    problem: Problem,
    *,
    horizon: int = 1000,
    replicates: int = 10,
    seed: int | None = None,
    protocols: Several[AnyProtocol | type[AnyProtocol] | str] | None = None,
    ttls: Several[int] | None = None,
    emissions: Several[Emission | str] | None = None,
    policies: Several[Policy | str] | None = None,
    max_messages_per_round: float | None = None,
    max_link_load: float | None = None,
    max_messages_per_second: float | None = None,
    max_link_load_per_second: float | None = None,
    rounds_per_second: float | None = None,
    tolerance: float = 0.05,
    confidence: float = 0.95,
    prune: bool | None = None,
    executor: Executor | str | None = None,
    workers: int | None = None,
    keep: str | PathLike[str] | None = None,
    progress: bool | ProgressCallback | None = None,
    notice: Callable[[str], None] | None = None,
    **settings: Any,
) -> Frontier:
    """Regret against traffic on one problem: protocols, ttls and emissions side by side.

    Parameters
    ----------
    problem : Problem
        Network, arm sets and arms.
    horizon, replicates, seed
        As for `simulate`. If no seed is given, one is drawn.
    protocols : one or several of AnyProtocol, of classes of them or of str, optional
        A class, or a plain name such as "fwa", is combined with every ttl and emission; a protocol, or its text such as
        "fwa(4)", is taken as it is. By default all built-in ones except the centralised ceiling; trees, on a static
        network and unless the memory is a `Window`, with a few settings of their own.
    ttls : int or sequence of int, optional
        By default 2, a quarter and half of the network's diameter and the diameter itself; for a dynamic network 2, 3
        and 4.
    emissions : one or several of Emission or str, optional
        By default every pull, growth by 0.1, 0.25 and 1, and contested; also with an echo if `faults` lose
        transmissions (under the sound rules: under the published ones an echo is useless).
    policies : one or several of Policy or str, optional
        Instead of `policy`: each protocol, ttl and emission runs with each of these, such as "ucb(0.5)" and
        "ucb(0.5)+discount(0.995)". By default all choose alike.
    max_messages_per_round : float, optional
        A budget: transmissions in the whole network per round, mean over all rounds.
    max_link_load : float, optional
        A budget: transmissions per round on the busiest directed link, mean over all rounds.
    max_messages_per_second, max_link_load_per_second : float, optional
        The same budgets per second; they need a pace.
    rounds_per_second : float, optional
        The pace: how many rounds there are in a second. With it, costs are also given per second.
    tolerance : float
        The recommendation is the configuration with the fewest transmissions among those within the budget whose regret
        is at most this fraction above the least.
    confidence : float
        Of the intervals, which are Student's over replicates.
    prune : bool, optional
        Whether to go from coarse to fine: to leave out early whatever is over the budget, not worth its cost or beaten,
        by the rules in `Frontier.left_out`. If not given, only if agents x rounds x replicates x configurations exceed
        500 million.
    executor : concurrent.futures.Executor or str, optional
        Where to run, as for `run_study`: any executor, "dask", "dask:ADDRESS", "ray" or "ray:ADDRESS". If not given, in
        this process, or in local processes if `workers` says how many.
    workers : int, optional
        How many local processes.
    keep : str or path, optional
        A folder in which results are stored as they are computed. The same call again, after Ctrl-C say, finds them
        there; one folder may hold the results of many frontiers.
    progress : bool or callable, optional
        As for `simulate`, over all configurations together.
    notice : callable, optional
        Called with a line for the user: if it goes from coarse to fine, how long everything would take; and where there
        is no terminal for a bar, once a minute, how much is done.
    **settings
        Other arguments of `simulate`: policy, rules, every, engine, threads and so on.

    Returns
    -------
    Frontier
        With `table()`, `plot()`, `front`, `recommended` and `advice`.

    Examples
    --------
    >>> import banditmesh as bm
    >>> problem = bm.Problem.random(bm.networks.ring(8), n_arms=6, per_agent=3, seed=0)
    >>> found = bm.frontier(problem, horizon=50, replicates=3, seed=0, protocols=[bm.IRS, bm.Flooding], ttls=[2, 4])
    >>> len(found.configurations)
    15
    >>> print(found.table()["messages_per_round"].loc["irs"])
    16.0
    """
    horizon = checks.integer("horizon", horizon, at_least=1)
    replicates = checks.integer("replicates", replicates, at_least=1)
    checks.callback("notice", notice)
    if prune is not None and not isinstance(prune, bool):
        raise InputError(f"prune must be True, False or None, got {checks.shown(prune)}")
    if own := {"link_traffic", "record_every"} & set(settings):
        raise InputError(f"frontier chooses {min(own)} itself, got {checks.shown(settings[min(own)])}; leave it out")
    if workers is not None:
        workers = checks.integer("workers", workers, at_least=1, at_most=MAX_WORKERS)
    if keep is not None and seed is None:
        raise InputError("keep needs a seed, got none: results for a random seed are never found again")
    seed = fresh_seed() if seed is None else checks.seed(seed)
    if rounds_per_second is not None:
        rounds_per_second = checks.positive("rounds_per_second", rounds_per_second)
    max_messages_per_round = _budget(
        "max_messages_per_round", max_messages_per_round, max_messages_per_second, rounds_per_second
    )
    max_link_load = _budget("max_link_load", max_link_load, max_link_load_per_second, rounds_per_second)
    choosing = read_policies(policies, settings.get("policy"))
    if choosing:
        settings["policy"] = choosing[0]
    elif isinstance(settings.get("policy"), str):
        # As an object, so that what is kept depends on the source of a user's own class.
        settings["policy"] = as_policy(settings["policy"])
    note_default(problem, settings.get("policy"))
    if isinstance(problem, Problem):
        check_changes_come(problem.arms, problem.laws, horizon)
    tolerance = checks.non_negative("tolerance", tolerance)
    confidence = checks.probability("confidence", confidence)
    faults = settings.get("faults")
    strikes = faults.effective() if isinstance(faults, Faults) else None
    # Under the published rules an echo is taken for the message that it repeats.
    loses = isinstance(faults, Faults) and faults.loses and settings.get("rules") != PUBLISHED.name
    grid = combine(problem, protocols, ttls, emissions, loses, choosing or settings.get("policy"))
    check_memories(grid.values(), choosing or settings.get("policy"))
    grid, chosen = (grid, {}) if len(choosing) < 2 else cross(grid, choosing)
    simulated = {"seed": seed, **settings}
    kept = Kept(keep, problem, simulated)
    budget = {"messages_per_round": max_messages_per_round, "link_load": max_link_load}
    limits = {cost: limit for cost, limit in budget.items() if limit is not None}
    if settings.get("rewards") is not None:
        if prune:
            raise InputError("prune must be False with rewards, which are for a single horizon; leave one of them out")
        prune = False
    if prune is None:
        # What is beaten early may yet win where arms change later.
        prune = problem.n_agents * horizon * replicates * len(grid) > LARGE and not problem.changes

    def begun(first: Mapping[str, Measured]) -> None:
        if notice is not None:
            notice(_estimate(first, horizon, replicates, settings))

    total = len(grid) * horizon * replicates
    bar_or_lines = Progress(progress, total, "frontier", notice=notice)
    with bar_or_lines as bar, executor_or_none(executor, workers) as opened:
        bench = Bench(problem, simulated, opened, kept, bar)
        if prune:
            found = screen(bench, grid, horizon, replicates, limits, tolerance, problem.n_agents, begun, chosen)
        else:
            tasks = [Task(name, one, horizon, replicates, policy=chosen.get(name)) for name, one in grid.items()]
            found = Screened(bench.run(tasks), {})
        one = next(iter(found.left.values()))
        whole = Frontier(
            configurations=tuple(one.configuration for one in found.left.values()),
            problem=repr(problem),
            horizon=horizon,
            replicates=replicates,
            seed=seed,
            rules=one.rules,
            faults="" if strikes is None else repr(strikes),
            max_messages_per_round=max_messages_per_round,
            max_link_load=max_link_load,
            tolerance=tolerance,
            confidence=confidence,
            policy="" if len(choosing) > 1 else _policy_of(found.left.values()),
            struck=strikes,
            rounds_per_second=rounds_per_second,
            left_out=found.left_out,
        )
        return replace(whole, listening=_listening(bench, whole, settings.get("policy")))


def _policy_of(measured: Iterable[Measured]) -> str:
    """The policy of all that do not choose by their own rules, if there are such."""
    by_policy = [one.policy for one in measured if not one.configuration.protocol.chooses]
    return by_policy[0] if by_policy else OWN_CHOICE


def _listening(bench: Bench, found: Frontier, policy: Any) -> Configuration | None:
    """What is recommended, with first pulls that listen, if those that are forced are more than a little of its regret.

    What sends more than the budget by it is of no use.
    """
    if found.recommended is None or found.replicates < REPLICATES:
        return None
    one = found[found.recommended]
    other = listening(policy if one.policy is None else one.policy)
    # Where the share is not known, nothing is compared.
    if other is None or not one.mean("first_regret") > _LITTLE * one.mean("regret"):
        return None
    task = Task(one.name + LISTENS, one.protocol, found.horizon, found.replicates, policy=other)
    measured = bench.run([task], False)[task.name].configuration
    is_within = all(found.interval(measured, cost)[2] <= limit for cost, limit in found.limits.items())
    return measured if is_within else None


def _budget(name: str, per_round: float | None, per_second: float | None, pace: float | None) -> float | None:
    """A budget per round, given per round or per second."""
    in_seconds = f"{name.removesuffix('_per_round')}_per_second"
    if per_second is None:
        return None if per_round is None else checks.positive(name, per_round)
    if per_round is not None:
        raise InputError(f"give {name} or {in_seconds}, got both")
    if pace is None:
        raise InputError(f"{in_seconds} needs rounds_per_second, got none; say how many rounds there are in a second")
    return checks.positive(in_seconds, per_second) / pace


def _estimate(first: Mapping[str, Measured], horizon: int, replicates: int, settings: Mapping[str, Any]) -> str:
    """How long everything would take, in words."""
    threads = min(settings.get("threads") or count_cores(), replicates)
    seconds = sum(one.seconds for one in first.values()) * horizon * replicates / threads
    return (
        f"{len(first)} configurations would take about {duration(seconds)} with {threads} threads; "
        "what is over the budget, not worth its cost or beaten is left out early, and then it mostly takes far less"
    )


def combine(
    problem: Problem,
    protocols: Several[AnyProtocol | type[AnyProtocol] | str] | None = None,
    ttls: Several[int] | None = None,
    emissions: Several[Emission | str] | None = None,
    loses: bool = False,
    policy: Policy | str | Sequence[Policy] | None = None,
) -> dict[str, AnyProtocol]:
    """The protocols that `frontier` simulates, by how they are written; those without a ttl appear once.

    Where transmissions are lost, the defaults have echoes too; where the policy's memory does not work with trees, they
    have none.

    Examples
    --------
    >>> import banditmesh as bm
    >>> problem = bm.Problem.random(bm.networks.ring(8), n_arms=6, per_agent=3, seed=0)
    >>> list(combine(problem, [bm.NoCooperation, bm.IRS, bm.FwA], [2], [bm.EveryPull(), bm.Growth(0.5)]))
    ['none', 'irs', 'irs+growth(0.5)', 'fwa(2)', 'fwa(2)+growth(0.5)']
    """
    if not isinstance(problem, Problem):
        raise InputError(f"problem must be a Problem, got {type(problem).__name__}")
    for name, given in {"protocols": protocols, "ttls": ttls, "emissions": emissions}.items():
        if given is not None and not _listed(given):
            raise InputError(f"{name} must hold at least one, got none; leave it out for the defaults")
    hops = default_ttls(problem) if ttls is None else [checks.integer("ttl", ttl, at_least=1) for ttl in _listed(ttls)]
    if emissions is None:
        emissions = (*EMISSIONS, *[ECHOING] * loses)
    sending = [as_emission(emission) for emission in _listed(emissions)]
    found: dict[str, AnyProtocol] = {}
    if protocols is None:
        trees = (*TREES, *ECHOING_TREES * loses)
        protocols = PROTOCOLS if problem.is_dynamic or not _merges(policy) else (*PROTOCOLS, *trees)
    for kind in _listed(protocols):
        for protocol in _variants(kind, hops, sending):
            found.setdefault(write(protocol), protocol)
    return found


def _merges(policy: object) -> bool:
    """Whether trees work with a policy's memory; what is no policy is refused when it is simulated."""
    return all(one.memory.merges for one in _listed(as_policy(policy)) if isinstance(one, Policy))


def cross(
    grid: Mapping[str, AnyProtocol], policies: Sequence[Policy]
) -> tuple[dict[str, AnyProtocol], dict[str, Policy]]:
    """Each of these protocols with each of these policies: protocols and policies by name.

    An algorithm that chooses by its own rules is there once.

    Examples
    --------
    >>> import banditmesh as bm
    >>> list(cross({"irs": bm.IRS()}, [bm.UCB(), bm.UCB(memory=bm.Discount(0.995))])[0])
    ['irs, ucb', 'irs, ucb+discount(0.995)']
    """
    labelled = list(zip(policy_labels(policies), policies, strict=True))
    found: dict[str, AnyProtocol] = {}
    choosing: dict[str, Policy] = {}
    for name, protocol in grid.items():
        if protocol.chooses:
            found[name] = protocol
            continue
        for label, policy in labelled:
            found[f"{name}, {label}"], choosing[f"{name}, {label}"] = protocol, policy
    return found, choosing


def _listed(given: Any) -> list[Any]:
    """The argument as a list, even if it is a single value."""
    return list(given) if isinstance(given, Iterable) and not isinstance(given, str) else [given]


def _variants(
    kind: AnyProtocol | type[AnyProtocol] | str, ttls: Sequence[int], emissions: Sequence[Emission]
) -> list[AnyProtocol]:
    if isinstance(kind, str):
        kind = protocol_or_class(kind)
    if isinstance(kind, AnyProtocol):
        return [kind]
    if not isinstance(kind, type) or not issubclass(kind, AnyProtocol):
        raise InputError(f"protocols must be protocols such as FwA(4) or classes such as FwA, got {checks.shown(kind)}")
    made: Any = kind
    hops = [{"ttl": ttl} for ttl in ttls] if needs_ttl(kind) else [{}]
    # A protocol that never sends needs no emission, and an algorithm sends by its own rules.
    sends = made.has_emission() and made(**hops[0]).sends_messages
    sending = [{"emission": emission} for emission in emissions] if sends else [{}]
    return [made(**hop, **more) for hop in hops for more in sending]


def read_ttls(name: str, text: str) -> list[int]:
    """The ttls that a text gives, separated by commas.

    Examples
    --------
    >>> read_ttls("ttl", "2, 4")
    [2, 4]
    """
    found = []
    for one in text.split(","):
        try:
            found.append(int(one))
        except ValueError:
            raise InputError(f"{name} must be integers separated by commas, got {one!r}") from None
    return found


def default_ttls(problem: Problem) -> tuple[int, ...]:
    """2, a quarter and half of the network's diameter, and the diameter itself; 2, 3 and 4 for a dynamic network.

    Examples
    --------
    >>> import banditmesh as bm
    >>> default_ttls(bm.Problem.paper("er")), default_ttls(bm.Problem.paper("ba"))
    ((2, 4, 8), (2, 3, 5))
    """
    if not isinstance(problem.network, Links):
        return DYNAMIC_TTLS
    longest = max(1, diameter(problem.network))
    return tuple(
        sorted({min(2, longest), -(-longest // 4), -(-longest // 2), longest} - ({1} if longest > 1 else set()))
    )
