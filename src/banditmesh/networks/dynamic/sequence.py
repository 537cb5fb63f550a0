"""A graph for every round, as the caller gives them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from ...draws import Draws
from ...errors import NetworkError
from ..csr import Int32s, Links
from .base import DynamicNetwork, iterator, named


class GraphSequence(DynamicNetwork):
    """One given graph per round.

    Parameters
    ----------
    graphs : iterable of networkx.Graph, scipy sparse matrices or Links
        The links of round 1, 2, ...; all have the same nodes, and agents follow the node order of the first. Each is
        read as it comes, so a generator may change one graph from round to round.

    Examples
    --------
    >>> import networkx
    >>> network = GraphSequence([networkx.path_graph(3), networkx.empty_graph(3)])
    >>> [links.tolist() for links in network.rounds(Draws(seed=0, replicate=0))]
    [[[0, 1], [1, 2]], []]
    """

    def __init__(self, graphs: Iterable[Any]) -> None:
        # In a list, a graph used in many rounds is read once: the list keeps it alive, and nothing can change it
        # meanwhile. With a generator, neither holds.
        listed = isinstance(graphs, list | tuple)
        seen: dict[int, Int32s] = {}
        self._rounds: list[Int32s] = []
        for t, graph in enumerate(iterator("graphs must be a sequence of graphs", graphs), start=1):
            if not listed or id(graph) not in seen:
                seen[id(graph)] = self._read(t, graph)
            self._rounds.append(seen[id(graph)])
        self.n_rounds = len(self._rounds)
        if not self._rounds:
            raise NetworkError("graphs must hold at least one graph, got none")

    def _read(self, t: int, graph: Any) -> Int32s:
        try:
            names, links = named(graph)
        except NetworkError as error:
            raise NetworkError(f"round {t} of the sequence: {error}") from None
        if t == 1:
            self.names = names
        if names == self.names:
            return links.pairs()
        if set(names) != set(self.names):
            raise NetworkError(f"every graph of a sequence must have the agents of the first, got others in round {t}")
        place = {name: v for v, name in enumerate(self.names)}
        order = np.array([place[name] for name in names], dtype=np.int32)
        return Links.from_pairs(len(names), order[links.pairs()]).pairs()

    def rounds(self, draws: Draws, births_first: bool = False) -> Iterator[Int32s]:  # noqa: D102
        yield from self._rounds
