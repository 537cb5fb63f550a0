"""Links that are born and die at random, and the step by which they do, which the kernels share."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import count
from typing import Any, Final

import numpy as np

from ... import checks
from ...draws import BIRTH, DEATH, Draws, geometric_skip, uniform
from ..csr import Int32s, Int64s
from .base import DynamicNetwork, named

# Skips beyond this many pairs end the round: no network has more pairs, and the number still fits 64 bits.
_FARTHEST: Final = 4.0e18


class EdgeMarkovian(DynamicNetwork):
    """Links are born and die at random, each on its own (Section 6 of the paper).

    In every round, an absent link is born with probability `p` and a present one dies with probability `q`.
    Round 1 is already one step away from the start. Births and deaths are both judged on the links of the
    round before, and the density tends to p / (p + q). With `births_first`, as in the published code,
    births come first and may die at once.

    Parameters
    ----------
    start : networkx.Graph, scipy sparse matrix or Links
        The links before round 1.
    p, q : float
        The probabilities of birth and of death.

    Examples
    --------
    >>> import networkx
    >>> network = EdgeMarkovian(networkx.path_graph(3), p=1.0, q=0.0)
    >>> next(network.rounds(Draws(seed=0, replicate=0))).tolist()
    [[0, 1], [0, 2], [1, 2]]
    """

    def __init__(self, start: Any, p: float, q: float) -> None:
        self.names, self.start = named(start)
        self.p = checks.probability("p", p)
        self.q = checks.probability("q", q)

    def start_codes(self) -> Int64s:
        """The links before round 1 as sorted codes i * n_agents + j, the form of `edge_markovian_step`."""
        pairs = self.start.pairs().astype(np.int64)
        return pairs[:, 0] * self.n_agents + pairs[:, 1]

    def rounds(self, draws: Draws, births_first: bool = False) -> Iterator[Int32s]:  # noqa: D102
        n = self.n_agents
        keys = *draws.key(BIRTH), *draws.key(DEATH)
        codes = self.start_codes()
        out = np.empty(2 * len(codes) + 16, dtype=np.int64)
        for t in count(1):
            step = n, self.p, self.q, births_first, *keys, t, codes, len(codes)
            n_out = edge_markovian_step(*step, out)
            if n_out < 0:
                out = np.empty(-2 * n_out, dtype=np.int64)
                n_out = edge_markovian_step(*step, out)
            codes = out[:n_out].copy()
            yield np.stack([codes // n, codes % n], axis=1).astype(np.int32)


def edge_markovian_step(
    n: int,
    p: float,
    q: float,
    births_first: bool,
    bk0: int,
    bk1: int,
    dk0: int,
    dk1: int,
    t: int,
    codes: Int64s,
    n_codes: int,
    out: Int64s,
) -> int:
    """One step of an edge-Markovian network, in plain Python and compiled alike.

    Births are found by geometric skips over all pairs in lexicographic order, so that the work grows with the links,
    not with the pairs; a birth that hits a present link does nothing. Both lists are sorted, and are merged.

    Parameters
    ----------
    n : int
        Agents.
    p, q : float
        The probabilities of birth and of death.
    births_first : bool
        Whether links born in this step may die in it.
    bk0, bk1, dk0, dk1 : int
        The key words of the purposes BIRTH and DEATH.
    t : int
        The round.
    codes : ndarray of int64
        The links of the round before, the first `n_codes` entries: sorted codes i * n + j, i < j.
    n_codes : int
        How many links there were.
    out : ndarray of int64
        Receives the new links.

    Returns
    -------
    int
        How many links there are now; or, if `out` is too small, minus the size that it needs.

    Examples
    --------
    >>> out = np.empty(3, dtype=np.int64)
    >>> edge_markovian_step(3, 1.0, 0.0, False, 0, 0, 0, 0, 1, np.array([1]), 1, out), out.tolist()
    (3, [1, 2, 5])
    """
    n_pairs = n * (n - 1) // 2
    beyond = n * n
    log_absent = math.log1p(-p) if 0.0 < p < 1.0 else 0.0
    n_skips = 0
    position = -1  # of the last birth, among all pairs
    row = 0  # the pairs of this row end before position `row_end`
    row_end = n - 1
    born = -1  # the code of the next birth: -1 if still to be found, `beyond` if there is none
    n_read = 0
    n_out = 0
    while True:
        if born < 0:
            if p >= 1.0:
                position += 1
            elif p <= 0.0:
                position = n_pairs
            else:
                u = uniform(bk0, bk1, t, n_skips, 0, 0)
                n_skips += 1
                if math.log(u) <= log_absent * _FARTHEST:
                    position = n_pairs
                else:
                    position += 1 + geometric_skip(u, log_absent)
            if position >= n_pairs:
                born = beyond
            else:
                while position >= row_end:
                    row += 1
                    row_end += n - 1 - row
                born = row * n + n - (row_end - position)
        old = int(codes[n_read]) if n_read < n_codes else beyond
        code = min(old, born)
        if code == beyond:
            break
        if born == code:
            born = -1
        if old == code:
            n_read += 1
        dies = False
        if old == code or births_first:
            dies = uniform(dk0, dk1, t, code // n, code % n, 0) < q
        if not dies:
            # Beyond its end, `out` is not written but the links are still counted.
            if n_out < len(out):
                out[n_out] = code
            n_out += 1
    return n_out if n_out <= len(out) else -n_out
