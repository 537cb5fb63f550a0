"""Transmissions by link of a dynamic network, added up as rounds go by: what is kept grows with records, not rounds."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .kernels.layout import Int32s, Int64s


class LinkCounts:
    """How often each link was used, from record to record.

    Parameters
    ----------
    n_agents : int
    records : int array
        The rounds at which a record ends, ascending.

    Examples
    --------
    >>> counts = LinkCounts(2, np.array([2, 3]))
    >>> for t in (1, 2, 3):
    ...     counts.add(t, np.array([0, 1, 2]), np.array([1, 0]), np.array([t, 0]))
    >>> links, traffic = counts.arrays()
    >>> links.tolist(), traffic.tolist()
    ([[0, 1], [1, 0]], [[3, 0], [3, 0]])
    """

    def __init__(self, n_agents: int, records: Int64s) -> None:
        self._n_agents = n_agents
        self._records = records
        #: Of each record that has ended: its links as ascending codes, and how often each was used.
        self._ended: list[tuple[Int64s, Int64s]] = []
        #: The same of the record under way, in several parts; the first is a sum of earlier ones. How long others are.
        self._parts: list[tuple[Int64s, Int64s]] = []
        self._n_waiting = 0

    def add(self, t: int, starts: Int64s, indices: Int32s, on_link: Int64s) -> None:
        """Round `t`, the next one, is over: its links, as neighbour lists, and how often each was used in it."""
        senders = np.repeat(np.arange(self._n_agents, dtype=np.int64), np.diff(starts))
        # A round without links is no part: of those there could be as many as rounds.
        if len(indices) or not self._parts:
            self._n_waiting += len(indices) if self._parts else 0
            self._parts.append((senders * self._n_agents + indices, on_link))
        ends = t == self._records[len(self._ended)]
        # Parts wait until they are a quarter of their sum, so that adding up costs little time and memory.
        if ends or self._n_waiting > len(self._parts[0][0]) // 4:
            self._parts, self._n_waiting = [_summed(self._parts)], 0
        if ends:
            self._ended += self._parts
            self._parts = []

    def arrays(self) -> tuple[Int32s, Int64s]:
        """All links that were ever up, sorted, (links, 2); and how often each was used, (records, links)."""
        union = np.unique(np.concatenate([codes for codes, _ in self._ended]))
        traffic = np.zeros((len(self._records), len(union)), dtype=np.int64)
        for row, (codes, counts) in zip(traffic, self._ended, strict=True):
            row[np.searchsorted(union, codes)] = counts
        return np.stack([union // self._n_agents, union % self._n_agents], axis=1).astype(np.int32), traffic


def _summed(parts: list[tuple[Int64s, Int64s]]) -> tuple[Int64s, Int64s]:
    codes, counts = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    order = np.argsort(codes, kind="stable")
    codes = codes[order]
    firsts: NDArray[np.int64] = np.flatnonzero(np.diff(codes, prepend=-1))
    return codes[firsts], np.add.reduceat(counts[order], firsts) if len(firsts) else counts[:0]
