"""A dynamic network as the compiled engine reads it: a sliding window of rounds.

A message made in a round travels over the networks of the next ttl rounds, and these depend on draws alone, so they
can be made ahead of the agents.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from ...draws import BIRTH, DEATH, Draws
from ...networks.csr import Links
from ...networks.dynamic import DynamicNetwork, EdgeMarkovian
from ..expected_links import links_at_a_time
from ..run import ended_early
from .crew import Stop
from .kernels.layout import Int32s, Int64s, Network, OnLinks, Steps
from .kernels.link_rows import edge_markovian_rows

#: About how much memory the rounds that are laid out at once may take, in bytes.
WINDOW_BUDGET: Final = 2**23
_LONGEST_BATCH: Final = 64


def row_bytes(network: DynamicNetwork, counts_links: bool) -> float:
    """About how much memory one round takes in `Rows`, and as much again in a window."""
    n_agents, n_links = network.n_agents, links_at_a_time(network)
    return 8.0 * (n_agents + 1) + (12.0 if counts_links else 4.0) * n_links


def rounds_at_once(n_bytes: float, at_most: int) -> int:
    """How many rounds of `n_bytes` each fit into the budget: at least 1."""
    return max(1, min(at_most, int(WINDOW_BUDGET / n_bytes)))


@dataclass
class Rows:
    """Consecutive rounds, one a row: where each agent's neighbours start, who they are, and how often links were used.

    Neighbours are in `indices`, one row behind the other. `on_link` has a place for each of the indices, or none.
    """

    starts: Int64s
    indices: Int32s
    on_link: Int64s

    def __len__(self) -> int:
        return len(self.starts)

    def part(self, first: int, last: int) -> Rows:
        """The rows from `first` to before `last`, which share what is counted on their links."""
        starts = self.starts[first:last]
        begin, end = int(starts[0, 0]), int(starts[-1, -1])
        return Rows(starts - begin, self.indices[begin:end], self.on_link[begin:end])


class Timeline:
    """The rounds of a dynamic network, in order.

    Parameters
    ----------
    network : DynamicNetwork
    draws : Draws
    births_first : bool
        What the rule set says of edge-Markovian steps.
    horizon : int
        The last round.
    counts_links : bool
        Whether transmissions are counted on every link.
    stop : Stop
    """

    def __init__(
        self,
        network: DynamicNetwork,
        draws: Draws,
        births_first: bool,
        horizon: int,
        counts_links: bool,
        stop: Stop,
    ) -> None:
        self._stop = stop
        self._horizon = horizon
        self._counts_links = counts_links
        self._rows: deque[Rows] = deque()
        self._n_rows = 0
        self._first = 1
        if isinstance(network, EdgeMarkovian):
            self._source = _edge_markovian(network, draws, births_first)
        else:
            self._source = _any_network(network, draws, births_first)

    def window(self, last: int) -> tuple[Network, OnLinks]:
        """The rounds from the first that is not finished up to `last` (or to the horizon, if that is earlier)."""
        n_rows = min(last, self._horizon) - self._first + 1
        while self._n_rows < n_rows:
            self._stop.check()
            try:
                starts, indices = next(self._source)
            except StopIteration:
                raise ended_early(self._horizon, self._first + self._n_rows - 1) from None
            on_link = np.zeros(len(indices) if self._counts_links else 0, dtype=np.int64)
            self._rows.append(Rows(starts, indices, on_link))
            self._n_rows += len(starts)
        parts = self._parts(n_rows)
        begins = np.cumsum([0] + [len(part.indices) for part in parts])
        network = Network(
            False,
            self._first,
            np.concatenate([part.starts + begin for part, begin in zip(parts, begins[:-1], strict=True)]),
            np.concatenate([part.indices for part in parts]),
        )
        on_link = np.concatenate([part.on_link for part in parts])
        return network, OnLinks(self._first, np.zeros(n_rows, dtype=np.int64), on_link)

    def _parts(self, n_rows: int) -> list[Rows]:
        """The next rows, in as many parts as they were made in."""
        parts = []
        for rows in self._rows:
            parts.append(rows.part(0, n_rows) if n_rows < len(rows) else rows)
            n_rows -= len(parts[-1])
            if n_rows == 0:
                break
        return parts

    def finish(self, before: int, links: OnLinks) -> Iterator[tuple[int, Rows]]:
        """Rounds before `before` are over: forgets them; gives them, with what was counted on `links`, if any is."""
        begin = 0
        for part in self._parts(len(links.rows)) if self._counts_links else ():
            part.on_link[:] = links.on_link[begin : begin + len(part.on_link)]
            begin += len(part.on_link)
        while self._first < before:
            rows = self._rows.popleft()
            n_over = min(len(rows), before - self._first)
            for row in range(n_over if self._counts_links else 0):
                yield self._first + row, rows.part(row, row + 1)
            if n_over < len(rows):
                self._rows.appendleft(rows.part(n_over, len(rows)))
            self._first += n_over
            self._n_rows -= n_over


def _any_network(network: DynamicNetwork, draws: Draws, births_first: bool) -> Iterator[tuple[Int64s, Int32s]]:
    for pairs in network.rounds(draws, births_first):
        links = Links.from_pairs(network.n_agents, pairs)
        yield links.indptr[None], links.indices


def _edge_markovian(network: EdgeMarkovian, draws: Draws, births_first: bool) -> Iterator[tuple[Int64s, Int32s]]:
    n_agents = network.n_agents
    start = network.start_codes()
    room = 2 * len(start) + n_agents + 16
    codes = np.zeros(room, dtype=np.int64)
    codes[: len(start)] = start
    n_codes = np.array([len(start)], dtype=np.int64)
    steps = Steps(n_agents, network.p, network.q, births_first, *draws.key(BIRTH), *draws.key(DEATH))
    batch = rounds_at_once(row_bytes(network, False), _LONGEST_BATCH)
    t = 1
    while True:
        workspace, born, chances = np.empty_like(codes), np.empty_like(codes), np.empty((2, len(codes)))
        starts = np.empty((batch, n_agents + 1), dtype=np.int64)
        indices = np.empty(batch * 2 * len(codes), dtype=np.int32)
        n_rows = edge_markovian_rows(steps, t, codes, n_codes, born, chances, workspace, starts, indices)
        if n_rows > 0:
            yield starts[:n_rows], indices[: starts[n_rows - 1, -1]]
        t += n_rows
        if n_rows < batch:
            codes = np.concatenate([codes, np.zeros(len(codes), dtype=np.int64)])
