"""Pictures of what links carried in a comparison, which needs results with link traffic."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .. import plots
from ..errors import InputError
from ..sim.result import Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw_loads(
    results: Mapping[str, Result], positions: Mapping[Hashable, Sequence[float]] | None, look: plots.Look
) -> Figure:
    """The network with every link coloured by its load; see `Comparison.plot_network`."""
    first = _with_links(results)
    pairs = _pairs(first)
    number = {agent: k for k, agent in enumerate(first.agents)}
    links = np.array([[number[i], number[j]] for i, j in pairs]).reshape(-1, 2)
    places = _layout(first.agents, pairs) if positions is None else positions
    loads = {name: _loads(one, pairs).sum(axis=1).mean(axis=0) / one.horizon for name, one in results.items()}
    spots = np.array([places[agent] for agent in first.agents])
    return plots.heat_network(loads, len(first.agents), links, spots, look=look)


def draw_busiest_link(results: Mapping[str, Result], look: plots.Look) -> Figure:
    """The load of the link that carries most, over the rounds."""
    pairs = _pairs(_with_links(results))
    loads = {name: _loads(one, pairs) for name, one in results.items()}
    busiest = int(np.argmax(sum(load.sum(axis=(0, 1)) for load in loads.values())))
    i, j = pairs[busiest]
    series = {
        name: (one.rounds, loads[name][:, :, busiest] / np.diff(one.rounds, prepend=0)) for name, one in results.items()
    }
    return plots.link_load({f"link {i}-{j}": series}, look)


def _with_links(results: Mapping[str, Result]) -> Result:
    """The first result, after checking that all have link traffic."""
    for name, result in results.items():
        if result.link_traffic is None:
            raise InputError(
                f"the load of links needs results with link traffic, got {name} without; "
                "simulate with link_traffic=True"
            )
    return next(iter(results.values()))


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
