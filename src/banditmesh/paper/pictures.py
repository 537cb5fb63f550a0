"""The paper's figures, drawn from a reproduction."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .. import networks, plots
from ..draws import Draws
from ..rules import get_rules
from . import published
from .reproduction import Reproduction, Runs, fit_line

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SNAPSHOTS = (0, 5, 50, 500)  # rounds of the dynamic network to draw
_HEATED = ("probabilistic", "fwa", "flooding")


def paper_figures(reproduction: Reproduction) -> dict[str, tuple[str, Figure]]:
    """File name -> (caption, figure)."""
    found: dict[str, tuple[str, Figure]] = {}
    static = {name: reproduction.runs[name] for name in published.STATIC_NETWORKS if name in reproduction.runs}
    if "3" in reproduction.figures:
        found["figure3"] = (
            "Group regret and transmissions, both cumulative, on the three static networks.",
            plots.by_network({name: _curves(runs) for name, runs in static.items()}),
        )
        found["figure3-tradeoff"] = (
            "Group regret against transmissions at the horizon; bars: one standard deviation over replicates. "
            "The dotted line is no cooperation, which sends nothing.",
            plots.tradeoff({name: _ends(runs) for name, runs in static.items()}),
        )
    if "4" in reproduction.figures:
        found["figure4"] = (
            "Transmissions per round on the watched link, both directions together.",
            plots.link_load({_link_title(name): _loads(runs) for name, runs in static.items()}),
        )
        for name, runs in static.items():
            found[f"figure4-{name}"] = (
                f"Mean load of every link of {name}; the watched link is dotted blue between two rings.",
                _heat(name, runs),
            )
    if "5" in reproduction.figures:
        found["figure5"] = (
            "Group regret and transmissions on the edge-Markovian network.",
            plots.regret_and_messages(_curves(reproduction.runs["dynamic-er"])),
        )
        found["figure5-trajectory"] = (
            "The dynamic network of the first replicate: the start, and three later rounds.",
            _trajectory(reproduction),
        )
    if reproduction.densities is not None:
        found["figure6"] = (
            "Group regret against delta over twelve densities, with the best line: by greedy covers, as in the paper, "
            "above, and by exact ones below.",
            _against_delta(reproduction),
        )
    return found


def _curves(protocols: Mapping[str, Runs]) -> dict[str, plots.Curves]:
    return {short: (runs.rounds, runs.regret_curve, runs.messages_curve) for short, runs in protocols.items()}


def _ends(protocols: Mapping[str, Runs]) -> dict[str, tuple[NDArray[Any], NDArray[Any]]]:
    return {short: (runs.messages[0], runs.regret[0]) for short, runs in protocols.items()}


def _link_title(name: str) -> str:
    i, j = networks.PAPER_WATCHED_LINKS[name]
    return f"{name}, link {i}-{j}"


def _loads(protocols: Mapping[str, Runs]) -> dict[str, tuple[NDArray[np.int64], NDArray[Any]]]:
    return {
        short: (runs.rounds, runs.watched_curve)
        for short, runs in protocols.items()
        if runs.watched_curve is not None and short != "none"
    }


def _heat(name: str, protocols: Mapping[str, Runs]) -> Figure:
    graph: Any = networks.paper(name)
    pairs = np.array(sorted(tuple(sorted(pair)) for pair in graph.edges()))
    loads = {short: protocols[short].link_load for short in _HEATED}
    panels = {short: load for short, load in loads.items() if load is not None}
    return plots.heat_network(panels, 100, pairs, _positions(graph), networks.PAPER_WATCHED_LINKS[name])


def _positions(graph: Any) -> NDArray[np.float64]:
    """Where a network's agents are drawn: the same places every time."""
    import networkx as nx

    places = nx.spring_layout(graph, seed=1, iterations=200)
    return np.array([places[agent] for agent in graph])


def _trajectory(reproduction: Reproduction) -> Figure:
    dynamic = networks.paper("dynamic-er")
    steps = dynamic.rounds(Draws(reproduction.seed, 0), get_rules(reproduction.rules).births_first)
    rounds = [t for t in _SNAPSHOTS if t <= reproduction.horizon]
    snapshots = [dynamic.start.pairs()]
    for t, links in enumerate(steps, start=1):
        if t in rounds:
            snapshots.append(links)
        if t >= rounds[-1]:
            break
    return plots.trajectory(rounds, snapshots[: len(rounds)], _positions(networks.paper("er")))


def _against_delta(reproduction: Reproduction) -> Figure:
    assert reproduction.densities is not None
    panels = {}
    for cover in ("greedy", "exact"):
        for short in ("flooding", "fwa"):
            delta, regret = reproduction.densities.delta[short, cover], reproduction.densities.regret[short]
            panels[f"{short}, {cover} covers"] = (short, delta, regret, *fit_line(delta, regret))
    return plots.against_delta(panels)
