"""The paper's experiments (Section 6), run again under either rule set.

Figure 3: regret and transmissions on static networks. Figure 4: the load of one link. Figure 5: a dynamic network.
Figure 6: regret against delta over twelve densities. Figures 3 and 4 come from the same simulations, made once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import checks, networks
from ..comparisons.presets.instances import MAX_INSTANCES
from ..errors import InputError
from ..problem import Problem
from ..protocols import IRS, AnyProtocol, Flooding, FwA, Gossip, NoCooperation, ProbabilisticFlooding
from ..rules import get_rules
from ..sim.engine import simulate
from ..sim.progress import StepCallback, Steps
from ..sim.result import Result
from ..studies.manifest import versions
from . import published

FIGURES = ("3", "4", "5", "6")


def paper_protocols(ttl: int = published.TTL) -> dict[str, AnyProtocol]:
    """The six protocols of the paper, by their short names.

    Examples
    --------
    >>> list(paper_protocols())
    ['none', 'irs', 'gossip', 'probabilistic', 'fwa', 'flooding']
    """
    known = [NoCooperation(), IRS(), Gossip(ttl), ProbabilisticFlooding(ttl, stop=0.5), FwA(ttl), Flooding(ttl)]
    return {protocol.name: protocol for protocol in known}


@dataclass
class Runs:
    """One protocol on one network, over arm instances and replicates.

    Attributes
    ----------
    regret, messages : arrays (instances, replicates)
        At the horizon.
    rounds, regret_curve, messages_curve : arrays (rounds,), (replicates, rounds)
        Over time, of the first instance.
    watched : float array (instances, replicates) or None
        Mean transmissions per round on the watched link in the second half, both directions together.
    watched_curve : int array (replicates, rounds) or None
        The same link round by round, of the first instance.
    link_load : float array (links,) or None
        Mean transmissions per round on every link, both directions together, of the first instance.
    """

    regret: NDArray[np.float64]
    messages: NDArray[np.float64]
    rounds: NDArray[np.int64]
    regret_curve: NDArray[np.float64]
    messages_curve: NDArray[np.int64]
    watched: NDArray[np.float64] | None = None
    watched_curve: NDArray[np.int64] | None = None
    link_load: NDArray[np.float64] | None = None


@dataclass
class Densities:
    """Figure 6: regret against delta.

    Attributes
    ----------
    degrees : float array (densities,)
        Expected numbers of neighbours.
    regret : mapping from protocol to array (densities,)
        Mean group regret at the horizon.
    delta : mapping from (protocol, cover) to array (densities,)
        The theory's delta, by "greedy" covers as in the paper and by "exact" ones.
    """

    degrees: NDArray[np.float64]
    regret: Mapping[str, NDArray[np.float64]]
    delta: Mapping[tuple[str, str], NDArray[np.float64]]


@dataclass
class Reproduction:
    """The results of running the paper's experiments.

    Attributes
    ----------
    figures : tuple of str
        Which figures.
    runs : mapping from network to mapping from protocol to Runs
        Figures 3, 4 and 5.
    densities : Densities or None
        Figure 6.
    """

    figures: tuple[str, ...]
    rules: str
    horizon: int
    replicates: int
    seed: int
    instances: int
    engines: set[str] = field(default_factory=set)
    runs: dict[str, dict[str, Runs]] = field(default_factory=dict)
    densities: Densities | None = None
    versions: dict[str, str] = field(default_factory=versions)

    @property
    def comparable(self) -> bool:
        """Whether the horizon is the paper's, so that our values can be compared with the published ones."""
        return self.horizon == published.HORIZON


def reproduce(
    figure: str = "all",
    *,
    rules: str = "published",
    replicates: int = published.REPLICATES,
    horizon: int = published.HORIZON,
    seed: int = 0,
    instances: int = 1,
    progress: StepCallback | None = None,
) -> Reproduction:
    """Run the paper's experiments again.

    Parameters
    ----------
    figure : str
        "3", "4", "5", "6" or "all".
    rules : str
        "published", the author's code and figures, or "sound", the paper's text and theory.
    replicates, horizon : int
        Ten runs of 1000 rounds in the paper.
    seed : int
        Arm instance i is `Problem.paper(name, seed + i)`, simulated with the seed `seed + i`.
    instances : int
        The number of arm instances; the paper's own is not public. Figure 6 uses the first.
    progress : callable, optional
        Called with the number of simulations done, the total, and what comes next.

    Returns
    -------
    Reproduction

    Examples
    --------
    >>> import banditmesh as bm
    >>> reproduction = bm.reproduce("3", horizon=5, replicates=1)
    >>> int(reproduction.runs["er"]["irs"].messages[0, 0])
    1530
    """
    if figure not in (*FIGURES, "all"):
        raise InputError(f"figure must be one of {', '.join(FIGURES)} or all; got {figure!r}")
    figures = FIGURES if figure == "all" else (figure,)
    reproduction = Reproduction(
        figures,
        get_rules(rules).name,
        checks.integer("horizon", horizon, at_least=1),
        checks.integer("replicates", replicates, at_least=1),
        checks.seed(seed),
        checks.integer("instances", instances, at_least=1, at_most=MAX_INSTANCES),
    )
    names = [
        *(published.STATIC_NETWORKS if {"3", "4"} & set(figures) else ()),
        *(("dynamic-er",) if "5" in figures else ()),
    ]
    total = len(names) * len(published.PROTOCOLS) * instances + (2 * len(published.DEGREES) if "6" in figures else 0)
    steps = Steps(total, progress)
    for name in names:
        reproduction.runs[name] = _run_network(reproduction, name, steps)
    if "6" in figures:
        reproduction.densities = _run_densities(reproduction, steps)
    steps.end()
    return reproduction


def _run_network(reproduction: Reproduction, name: str, steps: Steps) -> dict[str, Runs]:
    found: dict[str, Runs] = {}
    watch = "4" in reproduction.figures and name in networks.PAPER_WATCHED_LINKS
    problems = [Problem.paper(name, reproduction.seed + instance) for instance in range(reproduction.instances)]
    for short, protocol in paper_protocols().items():
        parts = []
        for instance, problem in enumerate(problems):
            steps.begin(f"{short} on {name}")
            result = _simulate(reproduction, problem, protocol, reproduction.seed + instance, watch)
            reproduction.engines.add(result.engine)
            parts.append(_digest(result, name if watch else None, reproduction.horizon))
        found[short] = _join(parts)
    return found


def _simulate(reproduction: Reproduction, problem: Problem, protocol: AnyProtocol, seed: int, links: bool) -> Result:
    return simulate(
        problem,
        protocol,
        horizon=reproduction.horizon,
        replicates=reproduction.replicates,
        seed=seed,
        rules=reproduction.rules,
        link_traffic=links,
        progress=False,
    )


def _digest(result: Result, watched_on: str | None, horizon: int) -> Runs:
    """The part of a result that is kept: a run over many instances cannot keep them all."""
    runs = Runs(
        regret=result.regret[None, :, -1],
        messages=result.transmissions[None, :, -1].astype(np.float64),
        rounds=result.rounds,
        regret_curve=result.regret,
        messages_curve=result.transmissions,
    )
    if watched_on is not None and result.link_traffic is not None:
        i, j = networks.PAPER_WATCHED_LINKS[watched_on]
        both = [result.links.index((i, j)), result.links.index((j, i))]
        load = result.link_traffic[:, :, both].sum(axis=2, dtype=np.int64)
        runs.watched_curve = load
        runs.watched = load[:, horizon // 2 :].mean(axis=1)[None]
        runs.link_load = _by_pair(result)
    return runs


def _by_pair(result: Result) -> NDArray[np.float64]:
    """Mean transmissions per round on every undirected link, in sorted order."""
    assert result.link_traffic is not None
    mean = result.link_traffic.sum(axis=1, dtype=np.int64).mean(axis=0) / result.horizon
    place = {link: k for k, link in enumerate(result.links)}
    pairs = [(i, j) for i, j in result.links if i < j]  # type: ignore[operator]
    return np.array([mean[place[i, j]] + mean[place[j, i]] for i, j in pairs])


def _join(parts: list[Runs]) -> Runs:
    """The runs of all instances; curves over time come from the first."""
    watched = [part.watched for part in parts if part.watched is not None]
    return replace(
        parts[0],
        regret=np.concatenate([part.regret for part in parts]),
        messages=np.concatenate([part.messages for part in parts]),
        watched=np.concatenate(watched) if watched else None,
    )


def _run_densities(reproduction: Reproduction, steps: Steps) -> Densities:
    from ..theory import delta

    regret: dict[str, list[float]] = {"flooding": [], "fwa": []}
    deltas: dict[tuple[str, str], list[float]] = {(name, cover): [] for name in regret for cover in ("greedy", "exact")}
    for degree in published.DEGREES:
        network = networks.er(100, degree / 100, seed=published.DENSITY_SEED)
        problem = Problem.random(network, n_arms=50, per_agent=20, seed=reproduction.seed)
        for name in regret:
            steps.begin(f"{name} at {degree:g} neighbours")
            protocol = paper_protocols()[name]
            result = _simulate(reproduction, problem, protocol, reproduction.seed, links=False)
            reproduction.engines.add(result.engine)
            regret[name].append(float(result.regret[:, -1].mean()))
            for cover in ("greedy", "exact"):
                deltas[name, cover].append(float(delta(problem, protocol, cover=cover)))
    return Densities(
        np.array(published.DEGREES),
        {name: np.array(values) for name, values in regret.items()},
        {key: np.array(values) for key, values in deltas.items()},
    )


def fit_line(x: NDArray[np.float64], y: NDArray[np.float64]) -> tuple[tuple[float, float], float]:
    """The best line through points, (slope, intercept), and its coefficient of determination.

    Examples
    --------
    >>> import numpy as np
    >>> fit_line(np.array([0.0, 1.0, 2.0]), np.array([1.0, 3.0, 5.0]))
    ((2.0, 1.0), 1.0)
    """
    dx, dy = x - x.mean(), y - y.mean()
    if not dx.any() or not dy.any():
        return (0.0, float(y.mean())), float("nan")
    slope = float(dx @ dy / (dx @ dx))
    return (slope, float(y.mean() - slope * x.mean())), float((dx @ dy) ** 2 / ((dx @ dx) * (dy @ dy)))


def mean_and_sd(values: NDArray[Any]) -> tuple[float, float | None]:
    """Mean and spread of (instances, replicates): over arm instances if there are several, otherwise over replicates.

    Examples
    --------
    >>> import numpy as np
    >>> mean_and_sd(np.array([[1.0, 3.0]]))[0]
    2.0
    """
    means = values.mean(axis=1) if len(values) > 1 else values[0]
    return float(means.mean()), float(means.std(ddof=1)) if len(means) > 1 else None
