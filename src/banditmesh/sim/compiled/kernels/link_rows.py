"""The links of a dynamic network as rows of arrays, round by round."""

from __future__ import annotations

import numpy as np

from ..bitsets import WORD
from .compiling import helper, kernel
from .layout import ONE, Int32s, Int64s, Steps, Words
from .scalars import edge_markovian_step


@helper
def write_row(n_agents: int, codes: Int64s, n_codes: int, start: int, starts: Int64s, indices: Int32s) -> int:
    """Write sorted link codes i * n + j, i < j, as neighbour lists behind `start`; where they end.

    The codes are in lexicographic order, so every agent meets its neighbours in ascending order.
    """
    for v in range(n_agents + 1):
        starts[v] = 0
    for c in range(n_codes):
        starts[codes[c] // n_agents + 1] += 1
        starts[codes[c] % n_agents + 1] += 1
    starts[0] = start
    for v in range(n_agents):
        starts[v + 1] += starts[v]
    for c in range(n_codes):
        i, j = codes[c] // n_agents, codes[c] % n_agents
        indices[starts[i]] = j
        starts[i] += 1
        indices[starts[j]] = i
        starts[j] += 1
    # Each start has moved to its agent's end, which is the next one's start.
    for v in range(n_agents, 0, -1):
        starts[v] = starts[v - 1]
    starts[0] = start
    return start + 2 * n_codes


@helper
def write_row_of_sets(n_agents: int, codes: Int64s, n_codes: int, starts: Int64s, bits: Words) -> None:
    """Write sorted link codes as sets of neighbours; `starts` sums up how many the agents have."""
    for v in range(n_agents):
        starts[v + 1] = 0
        for word in range(bits.shape[1]):
            bits[v, word] = 0
    starts[0] = i = 0
    for c in range(n_codes):
        # Codes rise, so that their agent i is found without a division.
        while codes[c] >= (i + 1) * n_agents:
            i += 1
        j = codes[c] - i * n_agents
        starts[i + 1] += 1
        starts[j + 1] += 1
        bits[i, j // WORD] |= ONE << np.uint64(j % WORD)
        bits[j, i // WORD] |= ONE << np.uint64(i % WORD)
    for v in range(n_agents):
        starts[v + 1] += starts[v]


@kernel
def edge_markovian_rows(
    steps: Steps,
    first: int,
    codes: Int64s,
    n_codes: Int64s,
    workspace: Int64s,
    starts: Int64s,
    indices: Int32s,
    bits: Words,
) -> int:
    """Step an edge-Markovian network through the rounds from `first` on, and write each as a row.

    `codes` and `n_codes` are the links of the round before, and are left as those of the last round. Returns how many
    rows were written: fewer than there are if links did not fit into an array. Rows are sets of neighbours, in `bits`,
    or, if that is empty, lists of them, in `indices`.
    """
    n_agents, n_rows, filled = steps.n_agents, len(starts), 0
    for row in range(n_rows):
        n_new = edge_markovian_step(
            n_agents,
            steps.p,
            steps.q,
            steps.births_first,
            steps.birth_k0,
            steps.birth_k1,
            steps.death_k0,
            steps.death_k1,
            first + row,
            codes,
            n_codes[0],
            workspace,
        )
        if n_new < 0 or n_new > len(codes) or (len(bits) == 0 and filled + 2 * n_new > len(indices)):
            return row
        # Not as one slice: that compiles an error for slices of different lengths too, which takes seconds.
        for c in range(n_new):
            codes[c] = workspace[c]
        n_codes[0] = n_new
        if len(bits) > 0:
            write_row_of_sets(n_agents, codes, n_new, starts[row], bits[row])
        else:
            filled = write_row(n_agents, codes, n_new, filled, starts[row], indices)
    return n_rows
