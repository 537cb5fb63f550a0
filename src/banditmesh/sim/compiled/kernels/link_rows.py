"""The links of a dynamic network as rows of arrays, round by round."""

from __future__ import annotations

import numpy as np

from .compiling import helper, kernel
from .layout import ONE, Floats, Int32s, Int64s, Steps
from .scalars import births, draw_deaths, join


@helper
def write_row(
    n_agents: int, codes: Int64s, n_codes: int, start: int, starts: Int64s, indices: Int32s, lower: Int64s
) -> int:
    """Write sorted link codes i * n + j, i < j, as neighbour lists behind `start`; where they end.

    The codes are in lexicographic order, so every agent meets its neighbours in ascending order. `lower` is workspace.
    """
    for v in range(n_agents + 1):
        starts[v] = 0
    for c in range(np.uint64(n_codes)):
        # Exact for codes below 2^52: up to 67 million agents.
        lower[c] = np.int64(codes[c] / n_agents)
    for c in range(np.uint64(n_codes)):
        i = np.uint64(lower[c])
        starts[i + ONE] += 1
        starts[np.uint64(codes[c]) - i * np.uint64(n_agents) + ONE] += 1
    starts[0] = start
    for v in range(n_agents):
        starts[v + 1] += starts[v]
    for c in range(np.uint64(n_codes)):
        i = np.uint64(lower[c])
        j = np.uint64(codes[c]) - i * np.uint64(n_agents)
        indices[np.uint64(starts[i])] = j
        starts[i] += 1
        indices[np.uint64(starts[j])] = i
        starts[j] += 1
    # Each start has moved to its agent's end, which is the next one's start.
    for v in range(n_agents, 0, -1):
        starts[v] = starts[v - 1]
    starts[0] = start
    return start + 2 * n_codes


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
) -> int:
    """Step an edge-Markovian network through the rounds from `first` on, and write each as a row.

    `codes` and `n_codes` are the links of the round before, and are left as those of the last round. Returns how many
    rows were written: fewer than there are if links did not fit into an array.
    """
    n_agents, n_rows, filled = steps.n_agents, len(starts), 0
    death_k0, death_k1, chances_of_born = steps.death_k0, steps.death_k1, chances[1, :0]
    for row in range(n_rows):
        t = first + row
        n_born = births(n_agents, steps.p, steps.birth_k0, steps.birth_k1, t, born, chances[0])
        if n_born < 0:
            return row
        draw_deaths(n_agents, death_k0, death_k1, t, codes, n_codes[0], chances[0])
        if steps.births_first:
            chances_of_born = chances[1]
            draw_deaths(n_agents, death_k0, death_k1, t, born, n_born, chances_of_born)
        n_new = join(steps.q, codes, n_codes[0], chances[0], born, n_born, chances_of_born, workspace)
        if n_new < 0 or filled + 2 * n_new > len(indices):
            return row
        # Not as one slice: that compiles an error for slices of different lengths too, which takes seconds.
        for c in range(n_new):
            codes[c] = workspace[c]
        n_codes[0] = n_new
        filled = write_row(n_agents, codes, n_new, filled, starts[row], indices, workspace)
    return n_rows
