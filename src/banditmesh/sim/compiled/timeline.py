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
from . import bitsets
from .crew import Stop
from .kernels.layout import Int32s, Int64s, Network, OnLinks, Steps, Words
from .kernels.link_rows import edge_markovian_rows

#: About how much memory the rounds that are laid out at once may take, in bytes.
WINDOW_BUDGET: Final = 2**23
_LONGEST_BATCH: Final = 64


def row_bytes(network: DynamicNetwork, counts_links: bool, with_sets: bool) -> float:
    """About how much memory one round takes as a `Row`, and as much again in a window."""
    n_agents, n_links = network.n_agents, links_at_a_time(network)
    if with_sets and bitsets.pays(n_agents, n_links):
        return 8.0 * (n_agents + 1) + 8.0 * n_agents * bitsets.n_words(n_agents)
    return 8.0 * (n_agents + 1) + (12.0 if counts_links else 4.0) * n_links


def rounds_at_once(n_bytes: float, at_most: int) -> int:
    """How many rounds of `n_bytes` each fit into the budget: at least 1."""
    return max(1, min(at_most, int(WINDOW_BUDGET / n_bytes)))


@dataclass
class Row:
    """One round: where each agent's neighbours start, who they are, and how often each link was used.

    Neighbours are lists, in `indices`, or sets, in `bits`; of the other there is nothing.
    """

    starts: Int64s
    indices: Int32s
    bits: Words
    on_link: Int64s


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
    with_sets : bool
        Whether neighbours are wanted as sets too, where the network is dense.
    stop : Stop
    """

    def __init__(
        self,
        network: DynamicNetwork,
        draws: Draws,
        births_first: bool,
        horizon: int,
        counts_links: bool,
        with_sets: bool,
        stop: Stop,
    ) -> None:
        self._stop = stop
        self._with_sets = with_sets and bitsets.pays(network.n_agents, links_at_a_time(network))
        self._horizon = horizon
        self._counts_links = counts_links
        self._rows: deque[Row] = deque()
        self._first = 1
        if isinstance(network, EdgeMarkovian):
            self._source = _edge_markovian(network, draws, births_first, self._with_sets)
        else:
            self._source = _any_network(network, draws, births_first, self._with_sets)

    def window(self, last: int) -> tuple[Network, OnLinks]:
        """The rounds from the first that is not finished up to `last` (or to the horizon, if that is earlier)."""
        n_rows = min(last, self._horizon) - self._first + 1
        while len(self._rows) < n_rows:
            self._stop.check()
            try:
                starts, indices, bits = next(self._source)
            except StopIteration:
                raise ended_early(self._horizon, self._first + len(self._rows) - 1) from None
            on_link = np.zeros(len(indices) if self._counts_links else 0, dtype=np.int64)
            self._rows.append(Row(starts, indices, bits, on_link))
        rows = [self._rows[r] for r in range(n_rows)]
        begins = np.cumsum([0] + [len(row.indices) for row in rows])
        network = Network(
            False,
            self._first,
            np.stack([row.starts + begin for row, begin in zip(rows, begins[:-1], strict=True)]),
            np.concatenate([row.indices for row in rows]),
            np.stack([row.bits for row in rows]) if self._with_sets else bitsets.no_bits(),
        )
        on_link = np.concatenate([row.on_link for row in rows])
        return network, OnLinks(self._first, np.zeros(n_rows, dtype=np.int64), on_link)

    def finish(self, before: int, links: OnLinks) -> Iterator[tuple[int, Row]]:
        """Rounds before `before` are over: gives them, with what was counted on `links`, and forgets them."""
        begin = 0
        for row in self._rows:
            end = begin + len(row.on_link)
            row.on_link = links.on_link[begin:end]
            begin = end
            if begin == len(links.on_link):
                break
        while self._first < before:
            yield self._first, self._rows.popleft()
            self._first += 1


def _any_network(
    network: DynamicNetwork, draws: Draws, births_first: bool, with_sets: bool
) -> Iterator[tuple[Int64s, Int32s, Words]]:
    for pairs in network.rounds(draws, births_first):
        links = Links.from_pairs(network.n_agents, pairs)
        if with_sets:
            yield links.indptr, links.indices[:0], bitsets.as_bits(links.indptr, links.indices)
        else:
            yield links.indptr, links.indices, bitsets.no_bits()


def _edge_markovian(
    network: EdgeMarkovian, draws: Draws, births_first: bool, with_sets: bool
) -> Iterator[tuple[Int64s, Int32s, Words]]:
    n_agents = network.n_agents
    start = network.start_codes()
    room = 2 * len(start) + n_agents + 16
    codes = np.zeros(room, dtype=np.int64)
    codes[: len(start)] = start
    n_codes = np.array([len(start)], dtype=np.int64)
    steps = Steps(n_agents, network.p, network.q, births_first, *draws.key(BIRTH), *draws.key(DEATH))
    batch = rounds_at_once(row_bytes(network, False, with_sets), _LONGEST_BATCH)
    t = 1
    while True:
        workspace = np.empty(len(codes), dtype=np.int64)
        starts = np.empty((batch, n_agents + 1), dtype=np.int64)
        indices = np.empty(0 if with_sets else batch * 2 * len(codes), dtype=np.int32)
        shape = (batch, n_agents, bitsets.n_words(n_agents)) if with_sets else (0, 0, 0)
        bits = np.empty(shape, dtype=np.uint64)
        n_rows = edge_markovian_rows(steps, t, codes, n_codes, workspace, starts, indices, bits)
        for row in range(n_rows):
            begin, end = starts[row, 0], starts[row, -1]
            if with_sets:
                yield starts[row], indices, bits[row]
            else:
                yield starts[row] - begin, indices[begin:end], bitsets.no_bits()
        t += n_rows
        if n_rows < batch:
            codes = np.concatenate([codes, np.zeros(len(codes), dtype=np.int64)])
