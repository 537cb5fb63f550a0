"""The links of a dynamic network as rows of arrays, round by round."""

from __future__ import annotations

from .compiling import helper, kernel
from .layout import Int32s, Int64s
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


@kernel
def edge_markovian_rows(
    n_agents: int,
    first: int,
    n_rows: int,
    p: float,
    q: float,
    births_first: bool,
    birth_k0: int,
    birth_k1: int,
    death_k0: int,
    death_k1: int,
    codes: Int64s,
    n_codes: Int64s,
    workspace: Int64s,
    starts: Int64s,
    indices: Int32s,
) -> int:
    """Step an edge-Markovian network through the rounds from `first` on, and write each as a row.

    `codes` and `n_codes` are the links of the round before, and are left as those of the last round. Returns how many
    rows were written: fewer than `n_rows` if links did not fit into an array.
    """
    filled = 0
    for row in range(n_rows):
        n_new = edge_markovian_step(
            n_agents,
            p,
            q,
            births_first,
            birth_k0,
            birth_k1,
            death_k0,
            death_k1,
            first + row,
            codes,
            n_codes[0],
            workspace,
        )
        if n_new < 0 or n_new > len(codes) or filled + 2 * n_new > len(indices):
            return row
        # Not as one slice: that compiles an error for slices of different lengths too, which takes seconds.
        for c in range(n_new):
            codes[c] = workspace[c]
        n_codes[0] = n_new
        filled = write_row(n_agents, codes, n_new, filled, starts[row], indices)
    return n_rows
