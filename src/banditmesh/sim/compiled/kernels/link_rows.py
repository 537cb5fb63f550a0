"""The links of a dynamic network as rows of arrays, round by round."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..bitsets import WORD
from .compiling import bits_set, helper, kernel
from .layout import ONE, Floats, Int32s, Int64s, Steps, Words
from .scalars import births, draw_deaths, join

WORDS: Any = np.uint64(WORD)


@helper
def write_row(n_agents: int, codes: Int64s, n_codes: int, start: int, starts: Int64s, indices: Int32s) -> int:
    """Write sorted link codes i * n + j, i < j, as neighbour lists behind `start`; where they end.

    The codes are in lexicographic order, so every agent meets its neighbours in ascending order.
    """
    for v in range(n_agents + 1):
        starts[v] = 0
    i = 0
    for c in range(n_codes):
        # Codes rise, so that their agent i is found without a division.
        while codes[c] >= (i + 1) * n_agents:
            i += 1
        starts[i + 1] += 1
        starts[codes[c] - i * n_agents + 1] += 1
    starts[0] = start
    for v in range(n_agents):
        starts[v + 1] += starts[v]
    i = 0
    for c in range(n_codes):
        while codes[c] >= (i + 1) * n_agents:
            i += 1
        j = codes[c] - i * n_agents
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
    n_words = np.uint64(bits.shape[1])
    for v in range(n_agents):
        for word in range(n_words):
            bits[v, word] = 0
    i = 0
    for c in range(n_codes):
        while codes[c] >= (i + 1) * n_agents:
            i += 1
        j = codes[c] - i * n_agents
        bits[np.uint64(i), np.uint64(j) // WORDS] |= ONE << np.uint64(j % WORD)
        bits[np.uint64(j), np.uint64(i) // WORDS] |= ONE << np.uint64(i % WORD)
    starts[0] = 0
    for v in range(n_agents):
        starts[v + 1] = starts[v]
        for word in range(n_words):
            starts[v + 1] += bits_set(bits[v, word])


@kernel
def edge_markovian_rows(
    steps: Steps,
    first: int,
    codes: Int64s,
    n_codes: Int64s,
    born: Int64s,
    chances: Floats,
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
    death_k0, death_k1, chances_of_born = steps.death_k0, steps.death_k1, chances[1, :0]
    for row in range(n_rows):
        t = first + row
        n_born = births(n_agents, steps.p, steps.birth_k0, steps.birth_k1, t, born)
        if n_born < 0:
            return row
        draw_deaths(n_agents, death_k0, death_k1, t, codes, n_codes[0], chances[0])
        if steps.births_first:
            chances_of_born = chances[1]
            draw_deaths(n_agents, death_k0, death_k1, t, born, n_born, chances_of_born)
        n_new = join(steps.q, codes, n_codes[0], chances[0], born, n_born, chances_of_born, workspace)
        if n_new < 0 or (len(bits) == 0 and filled + 2 * n_new > len(indices)):
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
