"""All bounds of one problem under one protocol, as published and as they hold, with what each of them requires."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import checks, plots
from ..arms import Bernoulli, Gaussian, Uniform
from ..errors import ArmError, InputError
from ..problem import Problem
from ..protocols import AnyProtocol, Delivery
from . import concentration, covers, powers
from .arm_covers import cover_arms
from .conditions import Condition, state_conditions
from .gaps import arm_gaps
from .hearing import Hearing, claims_bound
from .lower import lower_bounds
from .traffic import Traffic, traffic_bounds
from .upper import UpperBound

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from ..sim.result import Result
    from ..sim.run import ProgressCallback


@dataclass(frozen=True, eq=False, repr=False)
class Bounds:
    """The bounds of a problem under a protocol, for UCB, by the sound rules.

    Attributes
    ----------
    protocol, protocol_name : str
        What they are about.
    alpha, sigma : float
        The policy's parameter, and the sub-Gaussian parameter that all arms share.
    horizon : int
        The T of the values below.
    cover : str
        How cliques were found: "exact", "dsatur" or "greedy".
    per_arm : DataFrame
        One row per arm: `arm, n_holders, n_suboptimal, gap_min, theta, theta_lower, weighted, weighted_lower`, where
        `weighted` is 1 / Delta_a, each with a proven lower bound; `tightened`, the same without the agents that hear
        somebody whose best arm it is; and what the arm adds to the lower bounds.
    delta : float
        The paper's Section 6.4: the sum of theta by smallest gap.
    upper_published, upper_corrected : float
        Bounds on the expected group regret at the horizon. Infinite if alpha is too small, nan if none is claimed.
    lower_published, lower_corrected : float
        Constants: what the regret over log T is at least, as T grows, for every consistent policy.
    constant : float
        What it is at most, if alpha > 2 sigma^2: the sum of 4 alpha / Delta_a.
    constant_theta : float
        The cruder form of this, 8 alpha delta.
    constant_tightened : float
        A better constant, which counts no agent that can learn an arm from one that pulls it for its own sake.
    published, corrected : UpperBound or None
        The upper bounds as functions of the horizon.
    traffic : Traffic
        Bounds on the transmissions.
    conditions : tuple of Condition
        What the bounds require, and whether it holds.

    Examples
    --------
    >>> import banditmesh as bm
    >>> bounds = bm.bounds(bm.Problem.paper("er", seed=0), bm.Flooding(4), alpha=1.5, cover="greedy")
    >>> [condition.name for condition in bounds.conditions if not condition.holds]
    ['corrected', 'covers', 'consistent']
    >>> bounds.upper_corrected
    inf
    """

    protocol: str
    protocol_name: str
    alpha: float
    sigma: float
    horizon: int
    cover: str
    per_arm: pd.DataFrame
    delta: float
    lower_published: float
    lower_corrected: float
    constant: float
    constant_theta: float
    constant_tightened: float
    published: UpperBound | None
    corrected: UpperBound | None
    traffic: Traffic
    conditions: tuple[Condition, ...]

    @property
    def upper_published(self) -> float:
        """Theorem 1 or 2 at the horizon, as printed."""
        return float(self.published.at(self.horizon)) if self.published else math.nan

    @property
    def upper_corrected(self) -> float:
        """The bound that holds, at the horizon."""
        return float(self.corrected.at(self.horizon)) if self.corrected else math.nan

    def table(self) -> pd.DataFrame:
        """Published and corrected values side by side; nan where there is none."""
        import pandas as pd

        unproven = math.inf if self.corrected and math.isinf(self.corrected.luck) else 0.0
        terms = [
            [float(value) for value in (bound.exploration(self.horizon), bound.bad_luck, bound.delay(self.horizon))]
            if bound
            else [math.nan] * 3
            for bound in (self.published, self.corrected)
        ]
        rows: dict[str, tuple[float, float]] = {
            f"group regret at T = {self.horizon}, at most": (self.upper_published, self.upper_corrected),
            "  term of log T": (terms[0][0], terms[1][0]),
            "  term of bad luck, b": (terms[0][1], terms[1][1]),
            "  term of delay, f": (terms[0][2], terms[1][2]),
            "regret / log T as T grows, at most": (self.constant, self.constant + unproven),
            "  by clique covering numbers": (self.constant_theta, self.constant_theta + unproven),
            "  tightened": (math.nan, self.constant_tightened + unproven),
            "regret / log T as T grows, at least": (self.lower_published, self.lower_corrected),
            "delta": (self.delta, self.delta),
            "transmissions, at most": (self.traffic.published, float(self.traffic.corrected)),
            "  within the ttl" + (", exactly" if self.traffic.exact else ""): (
                math.nan,
                float(self.traffic.within_ttl),
            ),
        }
        frame = pd.DataFrame.from_dict(rows, orient="index", columns=["published", "corrected"])
        return frame.rename_axis("quantity")

    def to_dataframe(self) -> pd.DataFrame:
        """`per_arm`, with columns that tell bounds of several protocols apart."""
        frame = self.per_arm.copy()
        for place, name in enumerate(("protocol", "alpha", "horizon", "cover")):
            frame.insert(place, name, self.protocol_name if name == "protocol" else getattr(self, name))
        return frame

    def to_json(self) -> dict[str, Any]:
        """Everything as plain values; None where a value is infinite or there is none."""
        values = {name: _plain(getattr(self, name)) for name in _VALUES}
        values["traffic"] = {
            name: _plain(getattr(self.traffic, name)) for name in ("published", "corrected", "within_ttl", "exact")
        }
        values["conditions"] = [
            {"name": one.name, "requires": one.requires, "holds": one.holds} for one in self.conditions
        ]
        rows = self.per_arm.to_dict("records")
        values["per_arm"] = [{str(name): _plain(value) for name, value in row.items()} for row in rows]
        return values

    def plot(self, result: Result) -> Figure:
        """The bounds over the rounds, beside measured regret, both axes logarithmic.

        Parameters
        ----------
        result : Result
            Of the same problem; any horizon will do.
        """
        if not hasattr(result, "regret") or not hasattr(result, "rounds"):
            raise InputError(f"plot needs the result of a simulation, got {result!r}")
        curves = {}
        if self.corrected and math.isfinite(self.corrected.bad_luck):
            curves["upper bound, corrected"] = self.corrected.at(result.rounds)
        if self.published:
            curves["upper bound, published"] = self.published.at(result.rounds)
        if self.lower_corrected:
            curves["lower constant times log T"] = self.lower_corrected * np.log(result.rounds)
        return plots.regret_and_bounds(result.protocol, result.rounds, result.regret, curves)

    def __repr__(self) -> str:
        return (
            f"<Bounds: {self.protocol}, alpha {self.alpha:g}, T = {self.horizon}: regret at most "
            f"{self.upper_corrected:,.0f} ({self.upper_published:,.0f} as published)>"
        )


_VALUES = (
    "protocol",
    "alpha",
    "sigma",
    "horizon",
    "cover",
    "delta",
    "upper_published",
    "upper_corrected",
    "lower_published",
    "lower_corrected",
    "constant",
    "constant_theta",
    "constant_tightened",
)


def bounds(
    problem: Problem,
    protocol: AnyProtocol,
    alpha: float = 3.0,
    horizon: int = 1000,
    cover: str = "exact",
    *,
    sigma: float | None = None,
    time_limit: float = 300.0,
    progress: bool | ProgressCallback | None = None,
) -> Bounds:
    """The paper's regret bounds for this very problem, as published and as they hold.

    Parameters
    ----------
    problem : Problem
        With a static network, connected or not.
    protocol : AnyProtocol
        Flooding, FwA, IRS, NoCooperation or Centralised. For others, Gossip and Probabilistic Flooding among them, no
        upper bound is claimed: its values are nan, the lower bound and the traffic remain.
    alpha : float
        The parameter of the policy, `UCB(alpha)`.
    horizon : int
        The number of rounds T.
    cover : str
        How clique covers are found: "exact", or quickly by "dsatur" or "greedy" (the paper's way), which gives larger
        but still valid bounds.
    sigma : float, optional
        A sub-Gaussian parameter that holds for all arms; needed only if an arm has none, else the largest of the arms'.
    time_limit : float
        Seconds for all exact covers together. Beyond it the best covers found count, and a warning names the gap.
    progress : bool or callable, optional
        As in `simulate`, counting arms.

    Returns
    -------
    Bounds

    Examples
    --------
    >>> import banditmesh as bm, networkx as nx
    >>> arms = [bm.arms.Gaussian(mean, 0.5) for mean in (0.2, 0.5, 0.8)]
    >>> problem = bm.Problem(nx.path_graph(3), [[0, 1], [1, 2], [0, 2]], arms)
    >>> bounds = bm.bounds(problem, bm.FwA(2), alpha=3.0, horizon=1000)
    >>> bounds.per_arm[["arm", "n_suboptimal", "theta"]].values.tolist()
    [[0, 2, 1], [1, 1, 1], [2, 0, 0]]
    >>> bounds.upper_corrected > bounds.constant > bounds.lower_corrected > 0
    True
    """
    if not isinstance(problem, Problem):
        raise InputError(f"problem must be a Problem, got {type(problem).__name__}")
    if not isinstance(protocol, AnyProtocol):
        raise InputError(f"protocol must be a protocol such as FwA(4), got {protocol!r}")
    alpha = checks.positive("alpha", alpha)
    horizon = checks.integer("horizon", horizon, at_least=1)
    checks.choice("cover", cover, covers.METHODS)
    time_limit = checks.positive("time_limit", time_limit)
    sigma = _read_sigma(problem, sigma)
    links = powers.static_links(problem)
    arms = arm_gaps(problem)
    alone = protocol.delivery is Delivery.NOTHING
    components = np.arange(problem.n_agents) if alone else links.components()
    lower = lower_bounds(
        problem, arms, np.zeros_like(components) if protocol.delivery is Delivery.EVERYONE else components
    )
    claimed = claims_bound(protocol)
    hearing = Hearing.under(problem, protocol) if claimed else None
    per_arm = cover_arms(problem, arms, hearing, cover, time_limit, progress, protocol.name)
    per_arm["lower_published"], per_arm["lower_corrected"] = lower.by_arm_published, lower.by_arm_corrected
    published = corrected = None
    if hearing is not None:
        shared = (alpha, hearing.ttl, math.fsum(per_arm["weighted"]), problem.arm_gaps[problem.arm_gaps > 0])
        luck = concentration.corrected(alpha, sigma, 1 if alone else problem.n_agents)
        corrected = UpperBound(*shared, luck)
        if hearing.ttl > 0 and not hearing.central:
            published = UpperBound(*shared, concentration.published(alpha, sigma, hearing.ttl))
    delta = math.fsum((per_arm["theta"] / per_arm["gap_min"]).where(per_arm["n_suboptimal"] > 0, 0.0))
    return Bounds(
        protocol=repr(protocol),
        protocol_name=protocol.name,
        alpha=alpha,
        sigma=sigma,
        horizon=horizon,
        cover=cover,
        per_arm=per_arm,
        delta=delta,
        lower_published=lower.published,
        lower_corrected=lower.corrected,
        constant=4.0 * alpha * math.fsum(per_arm["weighted"]),
        constant_theta=8.0 * alpha * delta,
        constant_tightened=4.0 * alpha * math.fsum(per_arm["tightened"]),
        published=published,
        corrected=corrected,
        traffic=traffic_bounds(problem, protocol, horizon),
        conditions=state_conditions(problem, protocol, alpha, sigma, per_arm, lower.unknown),
    )


def _read_sigma(problem: Problem, sigma: float | None) -> float:
    if sigma is not None:
        sigma = checks.positive("sigma", sigma)
        # Of these laws the least possible sigma is known; that of others is a bound which may be bettered.
        exact = [law.sigma for law in problem.laws if isinstance(law, Gaussian | Bernoulli | Uniform) and law.sigma]
        if sigma < max(exact, default=0.0):
            raise InputError(
                f"sigma must hold for all arms, got {sigma:g}, and an arm has {max(exact):g}; give at least that"
            )
        return sigma
    without = np.flatnonzero(np.isnan(problem.sigmas))
    if without.size:
        raise ArmError(
            f"bounds need a sub-Gaussian sigma for every arm, got none for arm {problem.arms[without[0]]!r}; "
            "give one that holds for all arms as sigma="
        )
    return float(problem.sigmas.max())


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, bool | int | float | str | type(None)) else repr(value)
