"""Several protocols on one problem, with the same rewards and the same networks."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .. import checks, plots
from ..errors import InputError
from ..problem import Problem
from ..protocols import AnyProtocol
from ..protocols.notation import labels
from ..sim.engine import simulate
from ..sim.result import Result
from .intervals import paired_interval

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Comparison:
    """The results of several protocols on one problem, by name.

    Attributes
    ----------
    results : mapping from str to Result
        In the order in which the protocols were given.
    """

    results: Mapping[str, Result]

    def table(self) -> pd.DataFrame:
        """One row per protocol: mean and standard deviation of regret and messages at the horizon.

        The standard deviations, over replicates, are NaN if there is only one.
        """
        import pandas as pd

        rows = {}
        for name, result in self.results.items():
            regret, messages = result.regret[:, -1], result.messages[:, -1]
            spread = result.replicates > 1
            rows[name] = {
                "regret": regret.mean(),
                "regret_sd": regret.std(ddof=1) if spread else np.nan,
                "messages": messages.mean(),
                "messages_sd": messages.std(ddof=1) if spread else np.nan,
            }
        return pd.DataFrame.from_dict(rows, orient="index").rename_axis("protocol")

    def differences(self, against: str, confidence: float = 0.95) -> pd.DataFrame:
        """Paired differences from one protocol at the horizon: every protocol met the same rewards and networks.

        Parameters
        ----------
        against : str
            The protocol that the others are compared with.
        confidence : float
            Of the intervals, which are Student's for the mean difference over replicates.

        Returns
        -------
        DataFrame
            One row per other protocol: mean difference, `_low` and `_high`, of regret and of messages; the
            intervals are NaN if there is only one replicate.

        Examples
        --------
        >>> import banditmesh as bm
        >>> problem = bm.Problem.paper("er", seed=0)
        >>> comparison = bm.compare(problem, [bm.NoCooperation(), bm.IRS()], horizon=10, replicates=2, seed=0)
        >>> comparison.differences("none")["messages"].to_dict()
        {'irs': 3060.0}
        """
        import pandas as pd

        if against not in self.results:
            raise InputError(f"against must be one of {', '.join(self.results)}; got {against!r}")
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
        return pd.DataFrame.from_dict(rows, orient="index").rename_axis("protocol")

    def to_json(self) -> dict[str, Any]:
        """The table as plain values: protocol -> regret and messages -> mean and sd (None for one replicate)."""
        values: dict[str, Any] = {}
        for name, row in self.table().iterrows():
            values[str(name)] = {
                what: {
                    "mean": row[what],
                    "sd": None if row[f"{what}_sd"] != row[f"{what}_sd"] else row[f"{what}_sd"],
                }
                for what in ("regret", "messages")
            }
        return values

    def plot(self, kind: str = "curves") -> Figure:
        """A picture of all protocols.

        Parameters
        ----------
        kind : str
            "curves", group regret and transmissions over the rounds; "tradeoff", one against the other at the
            horizon; or, for results with link traffic, "links", the load of the busiest link over the rounds.
        """
        checks.choice("kind", kind, ("curves", "tradeoff", "links"))
        results = self.results.items()
        if kind == "curves":
            return plots.regret_and_messages({name: (one.rounds, one.regret, one.messages) for name, one in results})
        if kind == "tradeoff":
            return plots.tradeoff({"": {name: (one.messages[:, -1], one.regret[:, -1]) for name, one in results}})
        return self._plot_busiest_link()

    def plot_network(self, positions: Mapping[Hashable, Sequence[float]] | None = None) -> Figure:
        """The network with every link coloured by its load, a panel per protocol; results need link traffic.

        Parameters
        ----------
        positions : mapping from agent to (x, y), optional
            Where the agents are drawn; a spring layout if not given.
        """
        first = self._with_links()
        pairs = _pairs(first)
        number = {agent: k for k, agent in enumerate(first.agents)}
        links = np.array([[number[i], number[j]] for i, j in pairs]).reshape(-1, 2)
        places = _layout(first.agents, pairs) if positions is None else positions
        loads = {name: _loads(one, pairs).sum(axis=1).mean(axis=0) / one.horizon for name, one in self.results.items()}
        return plots.heat_network(loads, len(first.agents), links, np.array([places[agent] for agent in first.agents]))

    def _plot_busiest_link(self) -> Figure:
        first = self._with_links()
        pairs = _pairs(first)
        loads = {name: _loads(one, pairs) for name, one in self.results.items()}
        busiest = int(np.argmax(sum(load.sum(axis=(0, 1)) for load in loads.values())))
        i, j = pairs[busiest]
        series = {
            name: (one.rounds, loads[name][:, :, busiest] / np.diff(one.rounds, prepend=0))
            for name, one in self.results.items()
        }
        return plots.link_load({f"link {i}-{j}": series})

    def _with_links(self) -> Result:
        """The first result, after checking that all have link traffic."""
        for name, result in self.results.items():
            if result.link_traffic is None:
                raise InputError(
                    f"the load of links needs results with link traffic, got {name} without; "
                    "simulate with link_traffic=True"
                )
        return next(iter(self.results.values()))


def _pairs(result: Result) -> list[tuple[Hashable, Hashable]]:
    """The undirected links, each once."""
    return list({frozenset(link): link for link in reversed(result.links)}.values())[::-1]


def _loads(result: Result, pairs: Sequence[tuple[Hashable, Hashable]]) -> NDArray[np.int64]:
    """Transmissions (replicates, records, pairs) in both directions together; 0 on a link that was never up."""
    assert result.link_traffic is not None
    place = {link: k for k, link in enumerate(result.links)}
    loads = np.zeros((*result.link_traffic.shape[:2], len(pairs)), dtype=np.int64)
    for k, (i, j) in enumerate(pairs):
        for link in ((i, j), (j, i)):
            if link in place:
                loads[:, :, k] += result.link_traffic[:, :, place[link]]
    return loads


def _layout(agents: Sequence[Hashable], pairs: Sequence[tuple[Hashable, Hashable]]) -> Mapping[Hashable, Any]:
    import networkx as nx

    graph = nx.Graph()
    graph.add_nodes_from(agents)
    graph.add_edges_from(pairs)
    places: Mapping[Hashable, Any] = nx.spring_layout(graph, seed=1, iterations=200)
    return places


def compare(problem: Problem, protocols: Sequence[AnyProtocol], **settings: Any) -> Comparison:
    """Simulate several protocols on one problem, with the same rewards and the same networks.

    Parameters
    ----------
    problem : Problem
        Network, arm sets and arms.
    protocols : sequence of AnyProtocol
        What to compare. A protocol that is the only one of its name and sends every pull goes by its plain name, any
        other is written out, as in "flooding(8)+growth(0.25)".
    **settings
        As for `simulate`: horizon, replicates, seed, policy, rules and so on. A seed that is not given is drawn once.

    Examples
    --------
    >>> import banditmesh as bm
    >>> problem = bm.Problem.paper("er", seed=0)
    >>> comparison = bm.compare(problem, [bm.NoCooperation(), bm.IRS()], horizon=10, replicates=2, seed=0)
    >>> comparison.table()["messages"].to_dict()
    {'none': 0.0, 'irs': 3060.0}
    """
    if not protocols:
        raise InputError("protocols must hold at least one protocol, got none")
    results: dict[str, Result] = {}
    for name, protocol in labels(protocols).items():
        results[name] = simulate(problem, protocol, **settings)
        settings["seed"] = results[name].seed
    return Comparison(results)
