"""Links that are born and die at random, and the step by which they do, which the kernels share."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import count
from typing import Any, Final

import numpy as np

from ... import checks
from ...draws import BIRTH, DEATH, Draws, uniform
from ..csr import Floats, Int32s, Int64s
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
    """One step of an edge-Markovian network, from its parts, which the kernels take their steps by as well.

    A birth that hits a present link does nothing.

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
    born = np.empty(16, dtype=np.int64)
    n_born = births(n, p, bk0, bk1, t, born, np.empty(len(born)))
    if n_born < 0:
        born = np.empty(-n_born, dtype=np.int64)
        n_born = births(n, p, bk0, bk1, t, born, np.empty(len(born)))
    chances, chances_of_born = np.empty(n_codes), np.empty(n_born if births_first else 0)
    draw_deaths(n, dk0, dk1, t, codes, n_codes, chances)
    draw_deaths(n, dk0, dk1, t, born, len(chances_of_born), chances_of_born)
    return join(q, codes, n_codes, chances, born, n_born, chances_of_born, out)


def births(n: int, p: float, k0: int, k1: int, t: int, born: Int64s, chances: Floats) -> int:
    """Write the codes of the births of round `t`, present links among them; how many, or minus that if they do not fit.

    They are found by geometric skips over all pairs in lexicographic order, so that the work grows with the links, not
    with the pairs. About as many numbers as are needed are drawn at a time, into `chances`.
    """
    n_pairs = n * (n - 1) // 2
    log_absent = math.log1p(-p) if 0.0 < p < 1.0 else 0.0
    n_born = n_skips = n_drawn = first_drawn = 0
    position = -1 if p > 0.0 else n_pairs  # of the last birth, among all pairs
    row = 0  # the pairs of this row end before position `row_end`
    row_end = n - 1
    while position < n_pairs:
        if p >= 1.0:
            position += 1
        else:
            if n_skips == n_drawn:
                first_drawn = n_drawn
                n_drawn += max(1, min(len(chances), int(p * (n_pairs - position)) + 4))
                draw_skips(k0, k1, t, first_drawn, n_drawn, chances)
            u = chances[n_skips - first_drawn]
            n_skips += 1
            # As many as `geometric_skip` says, with one logarithm for both questions.
            skipped = math.log(u) / log_absent
            position = n_pairs if skipped >= _FARTHEST else position + 1 + int(skipped)
        if position < n_pairs:
            while position >= row_end:
                row += 1
                row_end += n - 1 - row
            if n_born < len(born):
                born[n_born] = row * n + n - (row_end - position)
            n_born += 1
    return n_born if n_born <= len(born) else -n_born


def draw_skips(k0: int, k1: int, t: int, first: int, last: int, chances: Floats) -> None:
    """Draw what decides how many pairs are skipped before a birth of round `t`, from skip `first` to before `last`.

    All at once, whether they are needed or not: compiled, the loop becomes vector instructions.
    """
    for i in range(last - first):
        chances[i] = uniform(k0, k1, t, first + i, 0, 0)


def draw_deaths(n: int, k0: int, k1: int, t: int, codes: Int64s, n_codes: int, chances: Floats) -> None:
    """Draw for each of these links the number that decides whether it dies in round `t`: if it is below `q`.

    All at once, whatever becomes of the links: compiled, the loop becomes vector instructions.
    """
    for c in range(n_codes):
        code = int(codes[c])
        chances[c] = uniform(k0, k1, t, code // n, code % n, 0)


def join(
    q: float,
    codes: Int64s,
    n_codes: int,
    chances: Floats,
    born: Int64s,
    n_born: int,
    chances_of_born: Floats,
    out: Int64s,
) -> int:
    """Write the links that do not die, those of the round before and those born; both lists are sorted, and are merged.

    A birth that hits a present link does nothing. Returns how many links there are, or minus that if they do not fit.
    """
    n_read = n_out = 0
    for b in range(n_born + 1):
        while n_read < n_codes and (b == n_born or codes[n_read] <= born[b]):
            # Beyond its end, `out` is not written but the links are still counted.
            if n_out < len(out):
                out[n_out] = codes[n_read]
            n_out += 1 if chances[n_read] >= q else 0
            n_read += 1
        is_new = b < n_born and (n_read == 0 or codes[n_read - 1] != born[b])
        if is_new and (len(chances_of_born) == 0 or chances_of_born[b] >= q):
            if n_out < len(out):
                out[n_out] = born[b]
            n_out += 1
    return n_out if n_out <= len(out) else -n_out
