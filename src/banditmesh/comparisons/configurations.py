"""Configurations side by side: which are on the front, which meet a budget, and which one to choose.

Rules kept here: a configuration is on the front for a cost if no other has at most its cost and at most its regret,
with one of them lower; means decide. A budget is met if the upper end of the cost's confidence interval is within it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from .. import plots
from ..errors import InputError, need
from ..faults import Faults
from ..policies import Policy
from ..protocols import AnyProtocol
from ..protocols.notation import write_emission
from ..text_tables import as_html, as_latex, decimals, known
from .intervals import lead, paired_interval
from .weaknesses import weaknesses

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

#: What sending costs: name -> what it is.
COSTS: Final = {
    "messages_per_round": "transmissions per round",
    "link_load": "transmissions per round on the busiest link",
    "bytes_per_round": "bytes per round",
}
#: What the name of a configuration ends with that is measured again with first pulls that listen.
LISTENS: Final = ", first_pulls=unknown"
MEASURES: Final = ("regret", *COSTS, "link_peak", "first_regret", "agent_worst")


@dataclass(frozen=True)
class Configuration:
    """A protocol with its ttl and emission, and what it gave in each replicate.

    Attributes
    ----------
    name : str
        The protocol written out, as in "flooding(8)+growth(0.25)", and its policy if there are several.
    protocol : AnyProtocol
        The protocol itself.
    regret : float array (replicates,)
        Group regret at the horizon.
    messages_per_round : float array (replicates,)
        All transmissions, divided by the horizon.
    link_load : float array (replicates,)
        Transmissions per round on the busiest directed link, mean over all rounds.
    link_peak : float array (replicates,)
        The same in the busiest window of a fiftieth of the horizon: emissions that fall silent start loud.
    bytes_per_round : float array (replicates,)
        Payload of all transmissions, divided by the horizon.
    first_regret : float array (replicates,)
        How much of the regret is of forced first pulls; nan where that is not known.
    agent_worst : float array (replicates,)
        The largest of the agents' regrets.
    policy : Policy or None
        How it chooses arms, if policies are put side by side; None if all choose alike.
    """

    name: str
    protocol: AnyProtocol
    regret: NDArray[np.float64]
    messages_per_round: NDArray[np.float64]
    link_load: NDArray[np.float64]
    link_peak: NDArray[np.float64]
    bytes_per_round: NDArray[np.float64]
    first_regret: NDArray[np.float64] = field(default_factory=lambda: np.full(1, np.nan))
    agent_worst: NDArray[np.float64] = field(default_factory=lambda: np.full(1, np.nan))
    policy: Policy | None = None

    def mean(self, measure: str) -> float:
        """The mean of a measure over replicates."""
        return float(getattr(self, measure).mean())

    @property
    def parts(self) -> dict[str, Any]:
        """What it is made of, as plain values: protocol, ttl, emission and, if policies are side by side, policy."""
        one = {
            "protocol": self.protocol.name,
            "ttl": self.protocol.most_hops,
            "emission": write_emission(self.protocol.emission),
        }
        return one | ({} if self.policy is None else {"policy": repr(self.policy)})

    @property
    def sends(self) -> bool:
        """Whether it sends anything: it is neither agents on their own nor a centre, which no network could be."""
        return self.protocol.sends_messages


@dataclass(frozen=True)
class Frontier:
    """Configurations on one problem, with what each costs; made by `frontier`.

    Attributes
    ----------
    configurations : tuple of Configuration
        In the order in which they ran.
    problem : str
        The problem in a line.
    horizon, replicates, seed : int
        As simulated.
    rules : str
        The rule set.
    faults : str
        The faults; empty if there were none.
    max_messages_per_round, max_link_load : float or None
        The budget.
    tolerance : float
        How much more regret than the least possible a recommendation may have.
    confidence : float
        Of the intervals.
    policy : str
        How arms were chosen.
    struck : Faults or None
        The same faults as an object.
    rounds_per_second : float or None
        The pace, if costs are also wanted per second.
    left_out : mapping from str to str
        Configurations that were left out on the way from coarse to fine, each with the reason and its evidence: how
        many paired replicates, by how much, and the margin exceeded. A configuration is over the budget by what it sent
        so far; beaten by another that costs no more; or, where it takes long, not worth it, since another has nearly
        all of the possible gain for at most half of its cost.
    listening : Configuration or None
        The recommended configuration again with `first_pulls="unknown"`, simulated where first pulls are more than a
        tenth of its regret and there are at least three replicates.
    """

    configurations: tuple[Configuration, ...]
    problem: str
    horizon: int
    replicates: int
    seed: int
    rules: str
    faults: str
    max_messages_per_round: float | None
    max_link_load: float | None
    tolerance: float
    confidence: float
    policy: str = ""
    struck: Faults | None = None
    rounds_per_second: float | None = None
    left_out: Mapping[str, str] = field(default_factory=dict)
    listening: Configuration | None = None

    @cached_property
    def fronts(self) -> dict[str, tuple[str, ...]]:
        """For each cost the names that no other beats in both regret and that cost, by rising cost."""
        return {cost: self._front(cost) for cost in COSTS}

    @property
    def front(self) -> tuple[str, ...]:
        """The front of regret against transmissions."""
        return self.fronts["messages_per_round"]

    def _front(self, cost: str) -> tuple[str, ...]:
        # No network could have a centre.
        real = [one for one in self.configurations if not one.protocol.is_central]
        points = sorted((one.mean(cost), one.mean("regret"), place) for place, one in enumerate(real))
        found: list[str] = []
        least = np.inf
        for _, regret, place in points:
            if regret < least:
                found.append(real[place].name)
                least = regret
        return tuple(found)

    @property
    def limits(self) -> dict[str, float]:
        """The budget: cost -> limit, for the costs that have one."""
        given = {"messages_per_round": self.max_messages_per_round, "link_load": self.max_link_load}
        return {cost: limit for cost, limit in given.items() if limit is not None}

    def within_budget(self, name: str) -> bool:
        """Whether a configuration meets the budget, by the upper ends of its intervals."""
        one = self[name]
        return all(self.interval(one, cost)[2] <= limit for cost, limit in self.limits.items())

    @cached_property
    def recommended(self) -> str | None:
        """The configuration to choose, or None if none that sends meets the budget.

        Of those within the budget whose regret is at most the least one plus the tolerance, the one with the fewest
        transmissions.
        """
        allowed = [one for one in self.configurations if one.sends and self.within_budget(one.name)]
        if not allowed:
            return None
        most = min(one.mean("regret") for one in allowed) * (1 + self.tolerance)
        good = [one for one in allowed if one.mean("regret") <= most]
        return min(good, key=lambda one: (one.mean("messages_per_round"), one.mean("regret"))).name

    @cached_property
    def nearest(self) -> str | None:
        """The configuration that misses the budget by the smallest factor; None if nothing sends."""
        sending = [one for one in self.configurations if one.sends]
        return min(sending, key=lambda one: (self._excess(one), one.mean("regret"))).name if sending else None

    def _excess(self, one: Configuration) -> float:
        return max((self.interval(one, cost)[2] / limit for cost, limit in self.limits.items()), default=0.0)

    @property
    def advice(self) -> str:
        """The recommendation in words."""
        budget = " and ".join(
            f"at most {limit:,g} {COSTS[cost]}{self._paced(limit)}" for cost, limit in self.limits.items()
        )
        if self.recommended is not None:
            asked = f"For {budget}" if budget else "Without a budget"
            advice = f"{asked} take {self.recommended}: {self.in_words(self.recommended)}."
            return "\n".join(
                [
                    advice,
                    *self._first_pulls_advice(),
                    *(f"Its weakness here: {one}." for one in self.weaknesses),
                    *self._lied_to(),
                ]
            )
        if self.nearest is None:
            return "Nothing to recommend: no configuration sends anything."
        excess = self._excess(self[self.nearest])
        return (
            f"No configuration that sends meets the budget of {budget}. The nearest is {self.nearest}, beyond it by a "
            f"factor of {excess:,.3g}: "
            f"{self.in_words(self.nearest)}."
        )

    def _first_pulls_advice(self) -> list[str]:
        """That first pulls should listen, if it was measured that they should."""
        if self.listening is None or self.recommended is None:
            return []
        one, other = self[self.recommended], self.listening
        # With another budget, or fewer configurations, another one may be recommended than this was measured of.
        if other.name != one.name + LISTENS:
            return []
        gain, margin = lead(one.regret - other.regret)
        if gain <= margin:
            return []
        share, left, digits = one.mean("first_regret") / one.mean("regret"), other.mean("regret"), decimals([gain])
        return [
            f"Give its policy first_pulls=unknown: {share:.0%} of its regret is of forced first pulls, and without "
            f"them its regret is {left:,.{digits}f}, less by {gain:,.{digits}f} ({len(one.regret)} paired replicates, "
            f"margin {margin:,.{digits}f}), at {_short(other.mean('messages_per_round'))} transmissions a round."
        ]

    @property
    def weaknesses(self) -> list[str]:
        """The faults, of those simulated, that the recommended configuration handles poorly."""
        return [] if self.recommended is None else weaknesses(self[self.recommended].protocol, self.struck)

    def _lied_to(self) -> list[str]:
        """Which protocols handle these liars poorly: whatever they send and when, agents would do better alone."""
        alone = [one.mean("regret") for one in self.configurations if not one.protocol.sends_messages]
        if self.struck is None or not self.struck.liars or not alone:
            return []
        regrets: dict[str, list[float]] = {}
        for one in self.configurations:
            if one.protocol.sends_messages:
                regrets.setdefault(one.protocol.name, []).append(one.mean("regret"))
        n_worse, n = sum(one > min(alone) for some in regrets.values() for one in some), sum(map(len, regrets.values()))
        always = [name for name, some in regrets.items() if min(some) > min(alone)]
        if not n_worse:
            return []
        whatever = f"; {', '.join(always)} whatever it sends" if always else ""
        return [f"With these liars {n_worse} of {n} configurations do worse than no cooperation{whatever}."]

    def _paced(self, per_round: float) -> str:
        """The same per second, in parentheses, if there is a pace."""
        return "" if self.rounds_per_second is None else f" ({_short(per_round * self.rounds_per_second)} a second)"

    def in_words(self, name: str) -> str:
        """What a configuration gave, in words."""
        one = self[name]
        regret, low, high = self.interval(one, "regret")
        digits = decimals([regret])
        between = f" [{low:,.{digits}f}, {high:,.{digits}f}]" if self.replicates > 1 else ""
        return (
            f"group regret {regret:,.{digits}f}{between}, {_short(one.mean('messages_per_round'))} transmissions and "
            f"{_short(one.mean('bytes_per_round'))} bytes a round, {_short(one.mean('link_load'))} transmissions a "
            f"round on the busiest link ({_short(one.mean('link_peak'))} at its peak){self._per_second(one)}"
        )

    def _per_second(self, one: Configuration) -> str:
        if self.rounds_per_second is None:
            return ""
        pace = self.rounds_per_second
        sent, load, volume = (one.mean(cost) * pace for cost in ("messages_per_round", "link_load", "bytes_per_round"))
        return (
            f"; at {pace:g} rounds a second that is {_short(sent)} transmissions and {_short(volume)} bytes a second, "
            f"{_short(load)} transmissions a second on the busiest link"
        )

    def __getitem__(self, name: str) -> Configuration:
        for one in self.configurations:
            if one.name == name:
                return one
        raise InputError(f"a configuration must be one of {', '.join(o.name for o in self.configurations)}; got {name}")

    def interval(self, one: Configuration, measure: str) -> tuple[float, float, float]:
        """Mean and interval of a measure; the mean itself for a single replicate."""
        values = getattr(one, measure)
        mean = float(values.mean())
        if len(values) < 2:
            return mean, mean, mean
        return (mean, *paired_interval(values, self.confidence))

    def table(self) -> pd.DataFrame:
        """One row per configuration: means with the ends of their intervals, and which fronts it is on.

        Ordered by transmissions. With a pace, costs are also given per second. The columns `front`, `front_link_load`
        and `front_bytes` say which fronts it is on, and `within_budget` whether it meets the budget.
        """
        need("pandas", "tables", "a table")
        import pandas as pd

        rows = {}
        for one in sorted(self.configurations, key=lambda one: (one.mean("messages_per_round"), -one.mean("regret"))):
            row: dict[str, Any] = {}
            for measure in MEASURES:
                mean, low, high = self.interval(one, measure)
                ends = (low, high) if self.replicates > 1 else (np.nan, np.nan)
                row |= {measure: mean, f"{measure}_low": ends[0], f"{measure}_high": ends[1]}
            if self.rounds_per_second is not None:
                row |= {
                    cost.replace("_per_round", "") + "_per_second": one.mean(cost) * self.rounds_per_second
                    for cost in COSTS
                }
            row |= {
                "front": one.name in self.front,
                "front_link_load": one.name in self.fronts["link_load"],
                "front_bytes": one.name in self.fronts["bytes_per_round"],
                "within_budget": self.within_budget(one.name),
            }
            rows[one.name] = row
        return pd.DataFrame.from_dict(rows, orient="index").rename_axis("configuration")

    def to_dataframe(self) -> pd.DataFrame:
        """One row per configuration and replicate: its parts, and every measure."""
        need("pandas", "tables", "a table")
        import pandas as pd

        frames = []
        for one in self.configurations:
            columns: dict[str, Any] = {"configuration": one.name, **one.parts, "replicate": np.arange(self.replicates)}
            columns |= {measure: getattr(one, measure) for measure in MEASURES}
            frames.append(pd.DataFrame(columns))
        return pd.concat(frames, ignore_index=True)

    def to_json(self) -> dict[str, Any]:
        """Everything as plain values; the ends of intervals are None for a single replicate."""
        names = ("problem", "horizon", "replicates", "seed", "rules", "faults", "tolerance", "confidence")
        values: dict[str, Any] = {name: getattr(self, name) for name in names}
        values |= {
            "budget": self.limits,
            "recommended": self.recommended,
            "nearest": self.nearest if self.recommended is None else None,
            "advice": self.advice,
            "fronts": {cost: list(found) for cost, found in self.fronts.items()},
            "left_out": dict(self.left_out),
            "weaknesses": self.weaknesses,
            "listening": None if self.listening is None else {m: self.listening.mean(m) for m in ("regret", *COSTS)},
        }
        rows: dict[str, Any] = {}
        for name, row in self.table().iterrows():
            cells = {
                measure: {end or "mean": known(row[f"{measure}{end and '_' + end}"]) for end in ("", "low", "high")}
                for measure in MEASURES
            }
            paced = {key: float(row[key]) for key in row.index if key.endswith("_per_second")}
            parts = {"configuration": str(name), **self[str(name)].parts}
            rows[str(name)] = {**parts, **cells, **paced, "within_budget": bool(row["within_budget"])}
        return {**values, "configurations": rows}

    def report(self, path: str | PathLike[str], command: str = "", node_toml: str = "") -> None:
        """Write one HTML file that opens offline: the recommendation, figures, tables and settings.

        Parameters
        ----------
        path : str or path
            The file.
        command : str
            The command line that gives the same, to be repeated.
        node_toml : str
            The lines of a node.toml that run the recommendation live, if it can.

        Examples
        --------
        >>> import pathlib, tempfile, banditmesh as bm
        >>> problem = bm.Problem.random(bm.networks.ring(8), n_arms=6, per_agent=3, seed=0)
        >>> found = bm.frontier(problem, horizon=20, replicates=3, seed=0, protocols=[bm.IRS, bm.FwA], ttls=[2])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     found.report(f"{folder}/report.html")
        ...     "Without a budget take" in pathlib.Path(folder, "report.html").read_text()
        True
        """
        from .report import write_frontier

        write_frontier(self, path, command, node_toml)

    def plot(
        self,
        *,
        ax: Any = None,
        figsize: tuple[float, float] | None = None,
        log: str = "x",
        band: str = "ci",
        colors: plots.Chosen | None = None,
        styles: plots.Chosen | None = None,
    ) -> Figure:
        """Regret against transmissions, the busiest link's load and bytes, with the fronts, the budget and the advice.

        Parameters
        ----------
        ax : axes or sequence of axes, optional
            Where to draw instead of in a new figure: one, for regret against transmissions, or three.
        figsize : (float, float), optional
            Width and height of the new figure in inches; below 5 inches only transmissions are drawn.
        log : str
            Which axes are logarithmic: "", "x", "y" or "xy".
        band : str
            What bars are: "ci", confidence intervals; "sd", one standard deviation; or "none".
        colors, styles : dict, sequence or str, optional
            Colours and line styles: by the names of protocols, as in `{"fwa": "red"}`, or one after the other. If not
            given, the cycle that you set in `rcParams["axes.prop_cycle"]`, or else each protocol's own.
        """
        look = plots.Look(ax, figsize, log, band, colors, styles)

        def ends(one: Configuration, measure: str) -> tuple[float, float, float]:
            if band == "ci":
                return self.interval(one, measure)
            values = getattr(one, measure)
            mean, half = float(values.mean()), float(look.half_width(values))
            return mean, mean - half, mean + half

        panels = [
            plots.Panel(
                label,
                {one.name: (*ends(one, cost), *ends(one, "regret")) for one in self.configurations},
                self.fronts[cost],
                self.limits.get(cost),
            )
            for cost, label in COSTS.items()
        ]
        note = f"mean of {self.replicates} replicates" if self.replicates > 1 else "one replicate"
        if self.recommended is not None:
            note += "; circle: recommended"
        if self.replicates > 1 and band != "none":
            bars = f"{self.confidence:.0%} confidence intervals" if band == "ci" else "one standard deviation"
            note += f"; bars: {bars}"
        title = f"{self.problem.removeprefix('Problem(').removesuffix(')')}, {self.horizon} rounds, {self.rules} rules"
        title += f", {self.policy}" if self.policy else ""
        title += f", {self.struck.in_words()}" if self.struck else ""
        return plots.frontier(panels, self.recommended, title, note, look)

    def to_latex(self, caption: str = "", label: str = "") -> str:
        r"""The front's table for a paper, with the package booktabs: mean ± confidence, and the least in bold.

        Parameters
        ----------
        caption, label : str
            Of the table, which floats if it has one of them.

        Examples
        --------
        >>> import banditmesh as bm
        >>> problem = bm.Problem.random(bm.networks.ring(8), n_arms=6, per_agent=3, seed=0)
        >>> found = bm.frontier(problem, protocols=["none", "irs"], horizon=20, replicates=2, seed=0)
        >>> found.to_latex(caption="What regret costs").splitlines()[0]
        '\\begin{table}'
        """
        from .shown import frontier_rows, least_cells

        rows = [row[:-1] for row in frontier_rows(self)]
        return as_latex(rows, least_cells(rows), caption, label)

    def _repr_html_(self) -> str:
        from .shown import front_note, frontier_rows

        title = f"{self.problem}, {self.horizon} rounds, {self.replicates} replicates, seed {self.seed}"
        return as_html(title, frontier_rows(self), [*front_note(self).splitlines(), self.advice])

    def __repr__(self) -> str:
        return (
            f"<Frontier: {len(self.configurations)} configurations, {len(self.front)} on the front, "
            f"recommended {self.recommended}>"
        )


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
