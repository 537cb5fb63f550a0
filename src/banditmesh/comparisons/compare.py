"""Several protocols on one problem, with the same rewards and the same networks."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import checks, plots
from ..draws import fresh_seed
from ..errors import InputError, need
from ..faults import Faults
from ..policies import Policy
from ..problem import Problem
from ..sim.engine import simulate
from ..sim.processes import open_workers, read_workers
from ..sim.result import Result
from ..sim.run import ProgressCallback
from ..text_tables import as_html, as_latex, as_text, known
from .entries import Comparable, check_memories, read_entries, read_policies
from .first_pulls import first_regret
from .intervals import paired_interval
from .link_loads import draw_busiest_link, draw_loads
from .shown import MANY_FIRST, ONE_REPLICATE, comparison_rows, least_cells, mostly_first

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr
    from matplotlib.figure import Figure


@dataclass(frozen=True, repr=False)
class Comparison:
    """The results of several protocols on one problem, by name; printed, it is its table.

    Attributes
    ----------
    results : mapping from str to Result
        In the order in which the protocols were given.
    advice : str
        What is to be said of the problem below the table; empty if nothing is.
    first_regret : mapping from str to float array (replicates,)
        How much of each one's group regret is of forced first pulls, nan where that is not known.
    """

    results: Mapping[str, Result]
    advice: str = ""
    first_regret: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)

    def table(self, agents: bool = False) -> pd.DataFrame:
        """One row per protocol: mean and standard deviation of regret and transmissions (`messages`) at the horizon.

        The standard deviations, over replicates, are NaN if there is only one.

        Parameters
        ----------
        agents : bool
            Whether to add how regret is spread over the agents: the median, the 90 % quantile and the worst agent's at
            the horizon, each the mean over replicates.
        """
        need("pandas", "tables", "a table")
        import pandas as pd

        return pd.DataFrame.from_dict(self.rows(agents), orient="index").rename_axis("protocol")

    def rows(self, agents: bool = False) -> dict[str, dict[str, float]]:
        """What `table` gives, as plain numbers: by protocol and column."""
        rows: dict[str, dict[str, float]] = {}
        for name, result in self.results.items():
            regret, messages = result.regret[:, -1], result.transmissions[:, -1]
            spread = result.replicates > 1
            rows[name] = {
                "regret": regret.mean(),
                "regret_sd": regret.std(ddof=1) if spread else np.nan,
                "messages": messages.mean(),
                "messages_sd": messages.std(ddof=1) if spread else np.nan,
            }
            if agents:
                shares = np.quantile(result.honest_regret, (0.5, 0.9, 1.0), axis=1).mean(axis=1)
                rows[name] |= dict(zip(("agent_median", "agent_q90", "agent_worst"), shares, strict=True))
        return rows

    def differences(self, against: str, confidence: float = 0.95) -> pd.DataFrame:
        """Paired differences from one protocol at the horizon: every protocol saw the same rewards and networks.

        Parameters
        ----------
        against : str
            The protocol that the others are compared with.
        confidence : float
            Of the intervals, which are Student's for the mean difference over replicates.

        Returns
        -------
        DataFrame
            One row per other protocol: mean difference, `_low` and `_high`, of regret and of transmissions; the
            intervals are NaN if there is only one replicate.

        Examples
        --------
        >>> import banditmesh as bm
        >>> problem = bm.Problem.paper("er", seed=0)
        >>> comparison = bm.compare(problem, [bm.NoCooperation(), bm.IRS()], horizon=10, replicates=2, seed=0)
        >>> comparison.differences("none")["messages"].to_dict()
        {'irs': 3060.0}
        """
        need("pandas", "tables", "a table")
        import pandas as pd

        rows = self.difference_rows(against, confidence)
        return pd.DataFrame.from_dict(rows, orient="index").rename_axis("protocol")

    def difference_rows(self, against: str, confidence: float = 0.95) -> dict[str, dict[str, float]]:
        """What `differences` gives, as plain numbers: by protocol and column."""
        if against not in self.results:
            near = checks.meant(against, self.results)
            raise InputError(f"against must be one of {', '.join(self.results)}; got {checks.shown(against)}{near}")
        base = self.results[against]
        rows: dict[str, dict[str, float]] = {}
        for name, result in self.results.items():
            if name == against:
                continue
            rows[name] = {}
            for what in ("regret", "messages"):
                difference = getattr(result, what)[:, -1] - getattr(base, what)[:, -1]
                low, high = paired_interval(difference, confidence)
                rows[name] |= {what: float(difference.mean()), f"{what}_low": low, f"{what}_high": high}
        return rows

    def to_dataframe(self, agents: bool = False) -> pd.DataFrame:
        """One row for each protocol, replicate and recorded round; protocols have the names used here.

        Parameters
        ----------
        agents : bool
            One row for each agent as well, see `Result.to_dataframe`.

        Examples
        --------
        >>> import banditmesh as bm
        >>> problem = bm.Problem.paper("er", seed=0)
        >>> comparison = bm.compare(problem, ["fwa(2)", "fwa(4)"], horizon=10, replicates=2, seed=0)
        >>> comparison.to_dataframe()["protocol"].value_counts().to_dict()
        {'fwa(2)': 20, 'fwa(4)': 20}
        """
        need("pandas", "tables", "a table")
        import pandas as pd

        frames = [result.to_dataframe(agents).assign(protocol=name) for name, result in self.results.items()]
        return pd.concat(frames, ignore_index=True)

    def to_xarray(self) -> xr.Dataset:
        """All arrays with named dimensions, as `Result.to_xarray` has them, and one more: protocol."""
        parts = [result.to_xarray().assign_coords(protocol=name) for name, result in self.results.items()]
        import xarray as xr  # there, since the results have just used it

        data: xr.Dataset = xr.concat(parts, dim="protocol", combine_attrs="drop_conflicts")
        return data

    def to_json(self, agents: bool = False, rounds_per_second: float | None = None) -> dict[str, Any]:
        """The table as plain values: protocol -> regret and messages -> mean and sd (None for one replicate).

        Besides, protocol -> first_regret, the mean regret of forced first pulls (None where that is not known).

        Parameters
        ----------
        agents : bool
            Whether to add what `table` adds.
        rounds_per_second : float, optional
            The pace, to add messages per second.
        """
        values: dict[str, Any] = {}
        for name, row in self.rows(agents).items():
            values[name] = {
                what: {"mean": float(row[what]), "sd": known(row[f"{what}_sd"])} for what in ("regret", "messages")
            }
            values[name] |= {key: float(row[key]) for key in row if key.startswith("agent_")}
            if name in self.first_regret:
                values[name]["first_regret"] = known(self.first_regret[name].mean())
            if rounds_per_second is not None:
                horizon = self.results[name].horizon
                values[name]["messages_per_second"] = float(row["messages"] / horizon * rounds_per_second)
        return values

    def to_latex(self, caption: str = "", label: str = "") -> str:
        r"""The table for a paper, with the package booktabs: mean ± standard deviation, and the least in bold.

        Of transmissions, the fewest of those that send any are in bold.

        Parameters
        ----------
        caption, label : str
            Of the table, which floats if it has one of them.

        Examples
        --------
        >>> import banditmesh as bm
        >>> problem = bm.Problem.paper("er", seed=0)
        >>> print(bm.compare(problem, ["none", "irs"], horizon=10, replicates=2, seed=0).to_latex())
        \begin{tabular}{lrrr}
        \toprule
        protocol & group regret & transmissions & first pulls \\
        \midrule
        none & $\mathbf{498 \pm 0}$ & $0 \pm 0$ & $100\%$ \\
        irs & $\mathbf{498 \pm 0}$ & $\mathbf{3{,}060 \pm 0}$ & $100\%$ \\
        \bottomrule
        \end{tabular}
        """
        rows = comparison_rows(self)
        return as_latex(rows, least_cells(rows), caption, label)

    def report(self, path: str | PathLike[str], about: str = "", command: str = "") -> None:
        """Write one HTML file that opens offline: the verdict, figures, tables with what columns mean, and settings.

        Parameters
        ----------
        path : str or path
            The file.
        about : str
            What the problem is, in a few words; a comparison does not know it.
        command : str
            The command line that gives the same, to be repeated.

        Examples
        --------
        >>> import pathlib, tempfile, banditmesh as bm
        >>> problem = bm.Problem.random(bm.networks.ring(8), n_arms=6, per_agent=3, seed=0)
        >>> comparison = bm.compare(problem, ["none", "fwa(4)"], horizon=20, replicates=2, seed=0)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     comparison.report(f"{folder}/report.html", about=repr(problem))
        ...     "has the least group regret" in pathlib.Path(folder, "report.html").read_text()
        True
        """
        from .report import write_comparison

        write_comparison(self, path, about, command)

    def plot(
        self,
        kind: str = "curves",
        *,
        ax: Any = None,
        figsize: tuple[float, float] | None = None,
        log: str = "",
        band: str = "sd",
        colors: plots.Chosen | None = None,
        styles: plots.Chosen | None = None,
    ) -> Figure:
        """A figure of all protocols.

        Parameters
        ----------
        kind : str
            "curves", group regret and transmissions over the rounds; "tradeoff", one against the other at the
            horizon; or, for results with link traffic, "links", the load of the busiest link over the rounds.
        ax : axes or sequence of axes, optional
            Where to draw instead of in a new figure; two of them for "curves".
        figsize : (float, float), optional
            Width and height of the new figure in inches; below 5 inches panels are put one below the other.
        log : str
            Which axes are logarithmic: "", "x", "y" or "xy"; the horizontal one of "tradeoff" always is.
        band : str
            What bands and bars are: "sd", one standard deviation; "ci", 95 % confidence intervals; or "none".
        colors, styles : dict, sequence or str, optional
            Colours and line styles: by the names of rows, or one after the other. If not given, the cycle that you
            set in `rcParams["axes.prop_cycle"]`, or else each protocol's own.
        """
        look = plots.Look(
            ax, figsize, log, band, colors, styles, {name: one.label for name, one in self.results.items()}
        )
        checks.choice("kind", kind, ("curves", "tradeoff", "links"))
        results = self.results.items()
        if kind == "curves":
            curves = {name: (one.rounds, one.regret, one.transmissions) for name, one in results}
            # All met the same world.
            return plots.regret_and_messages(curves, look, next(iter(self.results.values())).shared_changes)
        if kind == "tradeoff":
            return plots.tradeoff(
                {"": {name: (one.transmissions[:, -1], one.regret[:, -1]) for name, one in results}}, look
            )
        return draw_busiest_link(self.results, look)

    def plot_network(
        self,
        positions: Mapping[Hashable, Sequence[float]] | None = None,
        *,
        ax: Any = None,
        figsize: tuple[float, float] | None = None,
    ) -> Figure:
        """The network with every link coloured by its load, a panel per protocol; results need link traffic.

        Parameters
        ----------
        positions : mapping from agent to (x, y), optional
            Where the agents are drawn; a spring layout if not given.
        ax : axes or sequence of axes, optional
            Where to draw instead of in a new figure, one for each protocol.
        figsize : (float, float), optional
            Width and height of the new figure in inches.
        """
        return draw_loads(self.results, positions, plots.Look(ax, figsize))

    def __str__(self) -> str:
        lines = [as_text(comparison_rows(self), widths=(14, 21, 27))]
        return "\n".join([*lines, *self.notes])

    def _repr_html_(self) -> str:
        first = next(iter(self.results.values()))
        title = f"{first.replicates} x {first.horizon} rounds, {first.rules} rules, seed {first.seed}"
        title += "; mean ± standard deviation over replicates" if first.replicates > 1 else ""
        return as_html(title, comparison_rows(self), self.notes)

    def __repr__(self) -> str:
        first = next(iter(self.results.values()))
        return (
            f"<Comparison: {', '.join(self.results)}; {first.replicates} x {first.horizon} rounds, seed {first.seed}>"
        )

    @property
    def notes(self) -> list[str]:
        """The notes below the table."""
        alone = any(result.replicates == 1 for result in self.results.values())
        return [
            *([ONE_REPLICATE] if alone else []),
            *([MANY_FIRST] if mostly_first(self) else []),
            *([self.advice] if self.advice else []),
        ]


def compare(
    problem: Problem,
    protocols: Comparable | Sequence[Comparable] | Mapping[str, Comparable],
    *,
    policy: Policy | str | Sequence[Policy] | None = None,
    policies: Policy | str | Sequence[Policy | str] | None = None,
    horizon: int = 1000,
    replicates: int = 10,
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
    trace: bool = False,
    trim: int = 0,
) -> Comparison:
    """Simulate several protocols on one problem, with the same rewards and the same networks.

    Parameters
    ----------
    problem : Problem
        Network, arm sets and arms.
    protocols : one or several of what is to be compared
        Protocols such as `FwA(4)` or "fwa(4)"; pairs of a protocol and a policy such as `("fwa(4)", KLUCB())` or
        `("fwa(4)", "ucb+discount(0.995)")`; or
        configurations such as `{"protocol": "fwa(4)", "rules": "published"}`, which may also hold faults, every and
        trim. A mapping names each of them. Otherwise a protocol that is the only one of its name and sends every pull
        goes by its plain name, and any other is written out, as in "flooding(8)+growth(0.25)".
    policy, horizon, rules, engine, link_traffic, agents, rewards, means, every, faults, record_every, threads, workers
        As for `simulate`; the default for all entries.
    progress : bool or callable, optional
        As for `simulate`, for each entry anew.
    policies : one or several of Policy or str, optional
        Instead of `policy`: every protocol without its own policy runs with each of these, such as
        `["ucb(0.5)", "ucb(0.5)+discount(0.995)"]`.
    replicates : int
        The number of independent repetitions: 10 unless given, so that there are standard deviations.
    seed : int, optional
        As for `simulate`. If not given, it is drawn once.
    trace : bool
        Whether to log the fate of every copy, in each `Result.trace`.
    trim : int
        As for `simulate`.

    Examples
    --------
    >>> import banditmesh as bm
    >>> problem = bm.Problem.paper("er", seed=0)
    >>> comparison = bm.compare(problem, ["none", bm.IRS()], horizon=10, replicates=2, seed=0)
    >>> comparison.table()["messages"].to_dict()
    {'none': 0.0, 'irs': 3060.0}
    >>> pairs = [("irs", bm.UCB()), ("irs", bm.ThompsonSampling())]
    >>> list(bm.compare(problem, pairs, horizon=10, replicates=2, seed=0).results)
    ['irs, ucb', 'irs, thompson']
    """
    entries = read_entries(protocols, read_policies(policies, policy))
    settings: dict[str, Any] = {
        "policy": policy,
        "horizon": horizon,
        "replicates": replicates,
        "seed": fresh_seed() if seed is None else seed,
        "rules": rules,
        "engine": engine,
        "link_traffic": link_traffic,
        "agents": agents,
        "rewards": rewards,
        "means": means,
        "every": every,
        "faults": faults,
        "record_every": record_every,
        "threads": threads,
        "progress": progress,
        "trace": trace,
        "trim": trim,
    }
    given = {name: {**settings, **entry.settings} for name, entry in entries.items()}
    for name, entry in entries.items():
        check_memories([entry.protocol], given[name]["policy"])
    with open_workers(read_workers(workers)) as executor:
        results = {
            name: simulate(problem, entry.protocol, **given[name], workers=executor) for name, entry in entries.items()
        }
    first = {name: first_regret(problem, entry.protocol, results[name], given[name]) for name, entry in entries.items()}
    return Comparison(results, pooling_advice(problem), first)


def pooling_advice(problem: Problem) -> str:
    """What to say if agents of the log that arms come from are not paid alike; empty if there is none, or they are."""
    return "" if problem.log is None else problem.check_pooling().advice
