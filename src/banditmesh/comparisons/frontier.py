"""What regret costs on your network: protocols, ttls and emissions side by side.

Rules kept here: every configuration meets the same rewards and networks, and all numbers depend on the seed alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from .. import checks
from ..draws import fresh_seed
from ..errors import InputError
from ..faults import Faults
from ..networks.csr import Links
from ..networks.distances import diameter
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
from ..sim.engine import simulate
from ..sim.progress import Progress
from ..sim.result import Result
from ..sim.run import ProgressCallback
from .configurations import Configuration, Frontier

#: What is combined with every ttl and emission by default.
PROTOCOLS: Final = (NoCooperation, IRS, Gossip, ProbabilisticFlooding, FwA, Flooding)
EMISSIONS: Final = (EveryPull(), Growth(0.1), Growth(0.25), Growth(1.0), Contested())
#: Besides, on static networks: what has no ttl and wants smaller factors.
TREES: Final = (
    TreeAggregation(1, emission=Growth(0.02)),
    TreeAggregation(8, emission=Growth(0.05)),
    TreeAggregation(16, emission=Growth(0.1)),
    TreeAggregation(16, emission=Growth(0.25)),
)
#: Besides, where something is lost.
ECHOING: Final = Growth(0.25, echoes=1)
ECHOING_TREES: Final = (
    TreeAggregation(8, emission=Growth(0.05, echoes=1)),
    TreeAggregation(4, emission=Growth(0.05, echoes=3)),
)
#: The ttls for a dynamic network, which has no diameter.
DYNAMIC_TTLS: Final = (2, 3, 4)
#: The peak load of a link is taken over windows of a fiftieth of the horizon, or more if link traffic would not fit.
_WINDOWS: Final = 50
_MOST_CELLS: Final = 2**24


def frontier(
    problem: Problem,
    *,
    horizon: int = 1000,
    replicates: int = 10,
    seed: int | None = None,
    protocols: Sequence[AnyProtocol | type[AnyProtocol] | str] | None = None,
    ttls: Sequence[int] | None = None,
    emissions: Sequence[Emission | str] | None = None,
    max_messages_per_round: float | None = None,
    max_link_load: float | None = None,
    tolerance: float = 0.05,
    confidence: float = 0.95,
    progress: bool | ProgressCallback | None = None,
    **settings: Any,
) -> Frontier:
    """Regret against traffic on one problem: protocols, ttls and emissions side by side.

    Parameters
    ----------
    problem : Problem
        Network, arm sets and arms.
    horizon, replicates, seed
        As for `simulate`. A seed that is not given is drawn once.
    protocols : sequence of AnyProtocol, of classes of them or of str, optional
        A class, or a plain name such as "fwa", is combined with every ttl and emission; a protocol, or its text such as
        "fwa(4)", is taken as it is. By default all built-in ones but the centralised ceiling; trees, on a static
        network, with a few settings of their own.
    ttls : sequence of int, optional
        By default 2, a quarter and half of the network's diameter and the diameter itself; for a dynamic network 2, 3
        and 4.
    emissions : sequence of Emission or str, optional
        By default every pull, growth by 0.1, 0.25 and 1, and contested; also with an echo if `faults` lose
        transmissions (by the sound rules: by the published ones an echo is of no use).
    max_messages_per_round : float, optional
        A budget: transmissions in the whole network per round, mean over all rounds.
    max_link_load : float, optional
        A budget: transmissions per round on the busiest directed link, mean over all rounds.
    tolerance : float
        The recommendation is the configuration with the fewest transmissions among those within the budget whose regret
        is at most this fraction above the least.
    confidence : float
        Of the intervals, which are Student's over replicates.
    progress : bool or callable, optional
        As for `simulate`, over all configurations together.
    **settings
        Whatever else `simulate` takes: policy, rules, every, engine, threads and so on.

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
    seed = fresh_seed() if seed is None else checks.seed(seed)
    for name, limit in (("max_messages_per_round", max_messages_per_round), ("max_link_load", max_link_load)):
        if limit is not None:
            checks.positive(name, limit)
    tolerance = checks.non_negative("tolerance", tolerance)
    confidence = checks.probability("confidence", confidence)
    faults = settings.get("faults")
    strikes = faults.effective() if isinstance(faults, Faults) else None
    # By the published rules an echo is taken for the message that it repeats.
    loses = isinstance(faults, Faults) and faults.loses and settings.get("rules") != PUBLISHED.name
    grid = combine(problem, protocols, ttls, emissions, loses)
    found = []
    with Progress(progress, len(grid) * horizon * replicates, "frontier") as bar:
        for name, protocol in grid.items():
            result = simulate(
                problem,
                protocol,
                horizon=horizon,
                replicates=replicates,
                seed=seed,
                link_traffic=True,
                record_every=_window(problem, horizon, replicates),
                progress=bar.part(),
                **settings,
            )
            found.append(_measure(name, protocol, result))
    return Frontier(
        configurations=tuple(found),
        problem=repr(problem),
        horizon=horizon,
        replicates=replicates,
        seed=seed,
        rules=result.rules,
        faults="" if strikes is None else repr(strikes),
        max_messages_per_round=max_messages_per_round,
        max_link_load=max_link_load,
        tolerance=tolerance,
        confidence=confidence,
        policy=result.settings["policy"] if isinstance(result.settings["policy"], str) else "mixed policies",
    )


def combine(
    problem: Problem,
    protocols: Sequence[AnyProtocol | type[AnyProtocol] | str] | None = None,
    ttls: Sequence[int] | None = None,
    emissions: Sequence[Emission | str] | None = None,
    loses: bool = False,
) -> dict[str, AnyProtocol]:
    """The protocols that `frontier` simulates, by how they are written; what has no ttl is not multiplied by them.

    Where transmissions are lost, the defaults have echoes too.

    Examples
    --------
    >>> import banditmesh as bm
    >>> problem = bm.Problem.random(bm.networks.ring(8), n_arms=6, per_agent=3, seed=0)
    >>> list(combine(problem, [bm.NoCooperation, bm.IRS, bm.FwA], [2], [bm.EveryPull(), bm.Growth(0.5)]))
    ['none', 'irs', 'irs+growth(0.5)', 'fwa(2)', 'fwa(2)+growth(0.5)']
    """
    if not isinstance(problem, Problem):
        raise InputError(f"problem must be a Problem, got {type(problem).__name__}")
    ttls = default_ttls(problem) if ttls is None else [checks.integer("ttl", ttl, at_least=1) for ttl in ttls]
    if emissions is None:
        emissions = (*EMISSIONS, *[ECHOING] * loses)
    sending = [as_emission(emission) for emission in emissions]
    found: dict[str, AnyProtocol] = {}
    if protocols is None:
        trees = (*TREES, *ECHOING_TREES * loses)
        protocols = PROTOCOLS if problem.is_dynamic else (*PROTOCOLS, *trees)
    for kind in protocols:
        for protocol in _variants(kind, ttls, sending):
            found.setdefault(write(protocol), protocol)
    if not found:
        raise InputError("protocols, ttls and emissions must each hold at least one, got none")
    return found


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
    if needs_ttl(kind):
        return [made(ttl, emission=emission) for ttl in ttls for emission in emissions]
    # What never sends has no use for an emission.
    return [made(emission=emission) for emission in emissions] if made().sends_messages else [made()]


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


def _window(problem: Problem, horizon: int, replicates: int) -> int:
    """How many rounds a record spans."""
    network = problem.network
    n_links = 2 * network.n_links if isinstance(network, Links) else problem.n_agents * (problem.n_agents - 1)
    windows = max(1, min(_WINDOWS, _MOST_CELLS // max(1, n_links * replicates)))
    return -(-horizon // windows)


def _measure(name: str, protocol: AnyProtocol, result: Result) -> Configuration:
    assert result.link_traffic is not None
    horizon = result.horizon
    spans = np.diff(result.rounds, prepend=0)
    loads = result.link_traffic.sum(axis=1) / horizon
    peaks = (result.link_traffic / spans[:, None]).max(axis=1, initial=0.0)
    return Configuration(
        name=name,
        protocol=protocol,
        regret=result.regret[:, -1].copy(),
        messages_per_round=result.messages[:, -1] / horizon,
        link_load=loads.max(axis=1, initial=0.0),
        link_peak=peaks.max(axis=1, initial=0.0),
        bytes_per_round=result.traffic["bytes"] / horizon,
    )
