"""All bounds of one problem under one protocol, as published and as they hold, with their conditions."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .. import checks, plots
from ..arms import Bernoulli, Gaussian, Replay, Uniform
from ..errors import ArmError, InputError, need
from ..faults import Faults
from ..problem import Problem
from ..protocols import AnyProtocol
from ..protocols.notation import as_protocol, write
from ..text_tables import as_html
from . import concentration, covers, powers
from .arm_covers import cover_arms
from .conditions import Condition, name_theorem, state_conditions
from .delivery import Flow, claims_bound
from .estimate import Estimate, estimate
from .gap_free import gap_free_lower, gap_free_upper
from .gaps import arm_gaps
from .lonely import lonely_lower
from .lower import lower_bounds
from .sharp import SharpBound
from .traffic import Traffic, traffic_bounds
from .ucb_lower import ucb_lower
from .upper import UpperBound

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from ..sim.result import Result
    from ..sim.run import ProgressCallback


@dataclass(frozen=True, eq=False, repr=False)
class Bounds:
    """The bounds of a problem under a protocol, for UCB, under the sound rules.

    Attributes
    ----------
    protocol, protocol_name, label : str
        The protocol: as Python, its short name, and written out as in "fwa(4)".
    alpha, sigma : float
        The policy's parameter, and the sub-Gaussian parameter that all arms share.
    horizon : int
        The T of the values below.
    cover : str
        How cliques were found: "exact", "dsatur" or "greedy".
    per_arm : DataFrame
        One row per arm: `arm, n_holders, n_suboptimal, gap_min, theta, theta_lower, weighted, weighted_lower`, where
        `weighted` is 1 / Delta_a, each with a proven lower bound; `tightened`, the same without the agents that hear an
        agent for which the arm is best; `independent`, the value of `weighted` from independent sets; `sharp`, the
        smaller of the two without agents that pay next to nothing; and what the arm adds to the lower bounds and, as
        `ucb_lower`, to `constant_least`. Where only a share arrives, costs allow for it, and theta is nan.
    delta : float
        The paper's Section 6.4: the sum of theta / smallest gap; nan where the paper's theorems do not apply.
    upper_published, upper_corrected : float
        Bounds on the expected group regret at the horizon: Theorem 1 or 2 as printed, and as it holds. Infinite if
        alpha is too small. Where these theorems do not apply, the first is nan and the second is `upper_sharp`.
    upper_sharp : float
        The bound of the delivery theorem at the horizon, the least over independent sets, clique covers and caps; nan
        if it does not cover the protocol.
    counted_by : str
        What gives `upper_sharp`: "independent sets", "clique covers", "agents alone", or "largest gaps", if it is
        `trivial`.
    upper_gap_free, lower_gap_free : float
        The most that any arms can cost at the horizon, whatever their means, if arm sets stay the same and no gap
        exceeds the largest one here; and what every policy must pay for some such arms.
    theorem : str
        What `upper_sharp` rests on.
    lower_published, lower_corrected : float
        Constants: the least that regret over log T can be, as T grows, for every consistent policy. 0 if agents go down
        for good.
    lower_lonely : float
        The least regret at the horizon, whatever alpha: what agents pay that no other can help.
    trivial : float
        The most regret at the horizon, whatever is pulled: every agent's largest gap, once for each of its pulls. A
        bound above that says nothing, see `vacuous`.
    constant : float
        The most that regret over log T can be as T grows: the sum of 4 alpha / Delta_a. Infinite unless alpha > 2
        sigma^2, like all constants below except `constant_least`.
    constant_theta : float
        The cruder form of this, 8 alpha delta.
    constant_tightened : float
        A better constant, without agents that can learn an arm from an agent for which it is best.
    constant_sharp : float
        The best one: a quarter of that or less, by independent sets, without agents that are dominated. If all agents
        hear each other, it is alpha times the sum of 1 / smallest gap over arms that are no agent's best: the lower
        bound, at alpha = 2 sigma^2.
    constant_least : float
        The least that UCB itself pays over log T, whatever alpha: its own constant is between this and the sharp one. 0
        if agents may be down.
    published, corrected : UpperBound or None
        The upper bounds as functions of the horizon.
    sharp : SharpBound or None
        The bound of the delivery theorem as a function of the horizon.
    traffic : Traffic
        Bounds on the transmissions.
    conditions : tuple of Condition
        What the bounds require, and whether it holds.

    Examples
    --------
    >>> import banditmesh as bm, networkx as nx
    >>> problem = bm.Problem.random(nx.path_graph(8), n_arms=6, per_agent=3, seed=0)
    >>> bounds = bm.bounds(problem, bm.Flooding(4), alpha=1.5)
    >>> [condition.name for condition in bounds.conditions if not condition.holds]
    ['corrected', 'sharp', 'consistent']
    >>> bounds.upper_corrected
    inf
    >>> bm.bounds(problem, bm.Gossip(4)).theorem
    'delivery theorem: a share arrives by chance'
    """

    protocol: str
    protocol_name: str
    label: str
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
    constant_sharp: float
    constant_least: float
    lower_lonely: float
    trivial: float
    theorem: str
    published: UpperBound | None
    corrected: UpperBound | None
    sharp: SharpBound | None
    traffic: Traffic
    conditions: tuple[Condition, ...]
    _any_arms: Callable[[], tuple[float, float]]
    _expected: Callable[[int], Estimate]

    @property
    def vacuous(self) -> tuple[str, ...]:
        """Which of the upper bounds at the horizon, "published", "corrected" or "sharp", are not below `trivial`."""
        values = {"published": self.upper_published, "corrected": self.upper_corrected, "sharp": self.upper_sharp}
        return tuple(name for name, value in values.items() if self.trivial * (1 - 1e-9) <= value < math.inf)

    @property
    def notes(self) -> tuple[str, ...]:
        """The notes below the table: what the sharp bound rests on, and which bounds say nothing."""
        notes = [f"sharp: {self.theorem}" + (f", counted by {self.counted_by}" if self.counted_by else "")]
        if self.vacuous:
            which = ", ".join(self.vacuous)
            notes.append(
                f"says nothing at T = {self.horizon}: {which}; regret is at most {_shown(self.trivial)} whatever is "
                "pulled: the largest gap of its agent for every pull"
            )
        return tuple(notes)

    @property
    def upper_published(self) -> float:
        """Theorem 1 or 2 at the horizon, as printed."""
        return float(self.published.at(self.horizon)) if self.published else math.nan

    @property
    def upper_corrected(self) -> float:
        """Theorem 1 or 2 as it holds, at the horizon; where they do not apply, the delivery theorem."""
        return float(self.corrected.at(self.horizon)) if self.corrected else self.upper_sharp

    @property
    def upper_sharp(self) -> float:
        """The delivery theorem, at the horizon."""
        return float(self.sharp.at(self.horizon)) if self.sharp else math.nan

    @property
    def counted_by(self) -> str:
        """Which way of counting gives `upper_sharp`; "" if there is none."""
        return self.sharp.counted_by(self.horizon) if self.sharp else ""

    @property
    def lower_gap_free(self) -> float:
        """The least that every policy pays at the horizon, for some arms with these arm sets."""
        return self._gap_free[0]

    @property
    def upper_gap_free(self) -> float:
        """The most that any arms with these arm sets can cost at the horizon; nan if no theorem applies."""
        return self._gap_free[1]

    @cached_property
    def _gap_free(self) -> tuple[float, float]:
        return self._any_arms()

    def estimate(self, horizon: int | None = None) -> Estimate:
        """The regret to expect up to the horizon: an estimate, not a bound.

        It simulates the same agents once with almost no noise in the rewards, and adds what noise costs on average; see
        `banditmesh.theory.estimate`.

        Parameters
        ----------
        horizon : int, optional
            By default that of the bounds.
        """
        return self._expected(self.horizon if horizon is None else checks.integer("horizon", horizon, at_least=1))

    def table(self) -> pd.DataFrame:
        """Published, corrected and sharp values side by side; nan where there is no value."""
        need("pandas", "tables", "a table")
        import pandas as pd

        none = math.nan
        terms = [
            [float(value) for value in (bound.exploration(self.horizon), bound.bad_luck, bound.delay(self.horizon))]
            if bound
            else [none] * 3
            for bound in (self.published, self.corrected)
        ]
        constant, theta, tightened = (
            (value if self.corrected else none)
            for value in (self.constant, self.constant_theta, self.constant_tightened)
        )
        traffic = self.traffic
        rows: dict[str, tuple[float, float, float]] = {
            f"group regret at T = {self.horizon}, at most": (
                self.upper_published,
                self.upper_corrected,
                self.upper_sharp,
            ),
            "  log T term": (terms[0][0], terms[1][0], none),
            "  deviation term, b": (terms[0][1], terms[1][1], none),
            "  delay term, f": (terms[0][2], terms[1][2], none),
            f"group regret at T = {self.horizon}, at least": (none, none, self.lower_lonely or none),
            f"any arms of this size at T = {self.horizon}, at most": (none, none, self.upper_gap_free),
            f"any arms of this size at T = {self.horizon}, at least": (none, none, self.lower_gap_free or none),
            "regret / log T as T grows, at most": (
                self.published.constant if self.published else none,
                constant,
                self.constant_sharp,
            ),
            "  by clique covering numbers": (8.0 * self.alpha * self.delta if self.published else none, theta, none),
            "  tightened": (none, tightened, none),
            "  UCB itself, at least": (none, none, self.constant_least or none),
            "regret / log T as T grows, at least": (self.lower_published, self.lower_corrected, self.lower_corrected),
            "delta": (self.delta, self.delta, none),
            "transmissions, at most": (traffic.published, float(traffic.corrected), none),
            "  within the ttl" + (", exactly" if traffic.exact else ""): (none, float(traffic.within_ttl), none),
        }
        frame = pd.DataFrame.from_dict(rows, orient="index", columns=["published", "corrected", "sharp"])
        return frame.rename_axis("quantity")

    def to_dataframe(self) -> pd.DataFrame:
        """`per_arm`, with columns that distinguish the bounds of several protocols."""
        frame = self.per_arm.copy()
        for place, name in enumerate(("protocol", "alpha", "horizon", "cover")):
            frame.insert(place, name, self.label if name == "protocol" else getattr(self, name))
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

    def plot(
        self,
        result: Result,
        *,
        ax: Any = None,
        figsize: tuple[float, float] | None = None,
        log: str = "xy",
        band: str = "sd",
        colors: plots.Chosen | None = None,
        styles: plots.Chosen | None = None,
    ) -> Figure:
        """The bounds and the first-order estimate over the rounds, with measured regret.

        Parameters
        ----------
        result : Result
            Of the same problem; any horizon will do.
        ax : axes, optional
            Where to draw instead of in a new figure.
        figsize : (float, float), optional
            Width and height of the new figure in inches.
        log : str
            Which axes are logarithmic: "", "x", "y" or "xy".
        band : str
            "sd", one standard deviation; "ci", 95 % confidence intervals; or "none".
        colors, styles : dict, sequence or str, optional
            Colour and line style of the measured regret. If not given, those of the cycle that you set in
            `rcParams["axes.prop_cycle"]`, or else the protocol's own.
        """
        look = plots.Look(ax, figsize, log, band, colors, styles)
        if not hasattr(result, "regret") or not hasattr(result, "rounds"):
            raise InputError(f"plot needs the result of a simulation, got {result!r}")
        last = int(result.rounds[-1])
        curves = {"estimate, not a bound": self.estimate(last).at(result.rounds)}
        if self.sharp:
            curves["upper bound, sharp"] = self.sharp.at(result.rounds)
        if self.corrected and math.isfinite(self.corrected.bad_luck):
            curves["upper bound, corrected"] = self.corrected.at(result.rounds)
        if self.published:
            curves["upper bound, published"] = self.published.at(result.rounds)
        if self.lower_corrected:
            curves["lower constant times log T"] = self.lower_corrected * np.log(result.rounds)
        bands = {}
        if self.constant_least and math.isfinite(self.constant_sharp):
            logs = np.log(result.rounds)
            bands["UCB's own constant times log T"] = (self.constant_least * logs, self.constant_sharp * logs)
        return plots.regret_and_bounds(result.protocol, result.rounds, result.regret, curves, look, bands)

    def rows(self) -> list[list[str]]:
        """The table as text, without empty rows; the first row is the heading."""
        table = self.table().dropna(how="all")
        rows = [[self.label, *map(str, table.columns)]]
        return rows + [[str(quantity), *map(_shown, row)] for quantity, row in table.iterrows()]

    def _repr_html_(self) -> str:
        title = f"{self.label}, UCB with alpha {self.alpha:g}, horizon {self.horizon}, {self.cover} covers"
        return as_html(title, self.rows(), [*self.notes, *map(str, self.conditions)])

    def __repr__(self) -> str:
        return (
            f"<Bounds: {self.protocol}, alpha {self.alpha:g}, T = {self.horizon}: regret at most "
            f"{min(self.upper_corrected, self.upper_sharp):,.0f} ({self.upper_published:,.0f} as published)>"
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
    "constant_sharp",
    "constant_least",
    "upper_sharp",
    "counted_by",
    "upper_gap_free",
    "lower_gap_free",
    "lower_lonely",
    "trivial",
    "theorem",
)


def bounds(
    problem: Problem,
    protocol: AnyProtocol | str,
    alpha: float = 3.0,
    horizon: int = 1000,
    cover: str = "exact",
    *,
    sigma: float | None = None,
    every: int | Sequence[int] | None = None,
    faults: Faults | None = None,
    time_limit: float = 300.0,
    progress: bool | ProgressCallback | None = None,
) -> Bounds:
    """Regret bounds for this problem: the paper's as published and as they hold, and the delivery theorem's.

    Parameters
    ----------
    problem : Problem
        With a static network, connected or not.
    protocol : AnyProtocol or str
        Any in the package, with any emission in the package. The paper's theorems cover Flooding, FwA, IRS,
        NoCooperation and Centralised when every pull is sent; the delivery theorem covers all. For your own protocol or
        emission no upper bound is claimed: it is nan, while the lower bound and the traffic remain.
    alpha : float
        The parameter of the policy, `UCB(alpha)`.
    horizon : int
        The number of rounds T.
    cover : str
        How clique covers are found: "exact", or quickly by "dsatur" or "greedy" (the paper's way), which gives larger
        but still valid bounds.
    sigma : float, optional
        A sub-Gaussian parameter that holds for all arms; needed only if an arm has none. By default the largest of the
        arms'.
    every : int or sequence of int, optional
        As in `simulate`; the bounds hold as they are for agents that pull less often.
    faults : Faults, optional
        Losses, delays, jitter, or outages with memory. Only the delivery theorem allows for them.
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
    protocol = as_protocol(protocol)
    problem.check_fixed("bounds")
    if any(isinstance(law, Replay) for law in problem.laws):
        raise InputError(
            "bounds need arms that never run out, got replayed ones; use law='empirical' for the log "
            "(--log-rewards empirical on the command line)"
        )
    alpha = checks.positive("alpha", alpha)
    horizon = checks.integer("horizon", horizon, at_least=1)
    checks.choice("cover", cover, covers.METHODS)
    time_limit = checks.positive("time_limit", time_limit)
    sigma = _read_sigma(problem, sigma)
    links = powers.static_links(problem)
    arms = arm_gaps(problem)
    alone, everyone = not (protocol.sends_messages or protocol.is_central), protocol.is_central
    components = np.arange(problem.n_agents) if alone else links.components()
    faults = None if faults is None else faults.effective()
    # Agents that go down for good stop paying, so no lower bound that grows with T holds for them.
    lasting = faults is None or faults.outages is None or faults.outages.up > 0.0
    steady = faults is None or faults.outages is None
    reached = np.zeros_like(components) if everyone else components
    lower = lower_bounds(problem, arms if lasting else [], reached)
    pulls = -(-horizon // np.broadcast_to(1 if every is None else every, problem.n_agents))
    delivery = Flow.under(problem, protocol, faults)
    claimed = claims_bound(protocol) and faults is None
    per_arm, ways, reach = cover_arms(arms, claimed, delivery, cover, time_limit, progress, protocol.name)
    per_arm["lower_published"], per_arm["lower_corrected"] = lower.by_arm_published, lower.by_arm_corrected
    published = corrected = sharp = None
    weighted = math.fsum(per_arm["weighted"])
    if claimed and delivery is not None:
        gaps = problem.arm_gaps[problem.arm_gaps > 0]
        # Nothing is under way for longer than from one member of a clique to another.
        luck = concentration.corrected(alpha, sigma, 1 if alone else problem.n_agents)
        corrected = UpperBound(alpha, reach, weighted, gaps, luck)
        if delivery.ttl > 0 and not delivery.central:
            luck = concentration.published(alpha, sigma, delivery.ttl)
            published = UpperBound(alpha, delivery.ttl, weighted, gaps, luck)
    if delivery is not None:
        sharp = SharpBound.of(problem, delivery, arms, ways, alpha, sigma, horizon, every)
    per_arm["ucb_lower"] = [ucb_lower(arm, delivery) if delivery is not None and steady else 0.0 for arm in arms]
    solved = all(way.sets.exact for tried in ways for some in tried.values() for way in some)
    # Without this condition no bound of log T holds, unless there is nothing to pay.
    unproven = 0.0 if alpha > 2.0 * sigma**2 or not problem.arm_gaps.any() else math.inf
    delta = math.fsum((per_arm["theta"] / per_arm["gap_min"]).where(per_arm["n_suboptimal"] > 0, 0.0))
    theorem = name_theorem(delivery, sharp)
    # Agents that are down do not pull, and a user's own protocol may deliver anything.
    traffic = traffic_bounds(problem, protocol, horizon)
    if faults is not None or every is not None:
        # Lost messages are not relayed, late ones may not be, and agents that pull less often send less.
        traffic = replace(traffic, exact=False)
    lonely = 0.0
    if delivery is not None and steady:
        lonely = lonely_lower(problem, delivery, alpha, horizon, every)
    return Bounds(
        protocol=repr(protocol),
        protocol_name=protocol.name,
        label=write(protocol),
        alpha=alpha,
        sigma=sigma,
        horizon=horizon,
        cover=cover,
        per_arm=per_arm,
        delta=delta if claimed else math.nan,
        lower_published=lower.published,
        lower_corrected=lower.corrected,
        constant=4.0 * alpha * weighted + unproven,
        constant_theta=8.0 * alpha * delta + unproven if claimed else math.nan,
        constant_tightened=4.0 * alpha * math.fsum(per_arm["tightened"]) + unproven,
        constant_sharp=_scale(delivery, alpha, sigma) * math.fsum(per_arm["sharp"]) + unproven,
        constant_least=alpha * math.fsum(per_arm["ucb_lower"]),
        lower_lonely=lonely,
        trivial=float(np.maximum.reduceat(problem.arm_gaps, problem.arm_offsets[:-1]) @ pulls),
        theorem=theorem,
        published=published,
        corrected=corrected,
        sharp=sharp,
        traffic=traffic,
        conditions=state_conditions(
            problem, protocol, alpha, sigma, per_arm, lower.unknown, lasting, claimed, theorem, sharp, solved
        ),
        _any_arms=partial(
            _any_arms, problem, delivery, sharp, time_limit, cover != "exact", reached, sigma, pulls, steady
        ),
        _expected=partial(estimate, problem, protocol, alpha, every=every, faults=faults),
    )


def _scale(delivery: Flow | None, alpha: float, sigma: float) -> float:
    """The sharp constant per unit of cost: alpha, or more where messages may be late without limit."""
    return alpha if delivery is None or delivery.orderly else (math.sqrt(alpha) + math.sqrt(2.0) * sigma) ** 2


def _any_arms(
    problem: Problem,
    delivery: Flow | None,
    sharp: SharpBound | None,
    time_limit: float,
    quick: bool,
    components: NDArray[np.int64],
    sigma: float,
    pulls: NDArray[np.int64],
    steady: bool,
) -> tuple[float, float]:
    """Bounds that hold whatever the gaps are; computed on demand."""
    lower = gap_free_lower(problem, components, sigma, pulls, float(problem.arm_gaps.max())) if steady else 0.0
    if delivery is None or sharp is None:
        return lower, math.nan
    return lower, gap_free_upper(problem, delivery, sharp, time.monotonic() + time_limit, quick=quick)


def _read_sigma(problem: Problem, sigma: float | None) -> float:
    if sigma is not None:
        sigma = checks.positive("sigma", sigma)
        # For these laws the least possible sigma is known; for others it is a bound that may be improved.
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


def _shown(value: float) -> str:
    if math.isnan(value):
        return "-"
    if math.isinf(value):
        return "no bound"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:,.2f}"
