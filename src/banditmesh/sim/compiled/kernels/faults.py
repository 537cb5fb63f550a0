"""Faults: which agents are up, who starts afresh, and what reaches a receiver."""

from __future__ import annotations

import numpy as np

from ....faults import is_up
from .compiling import helper, kernel, routine, scalar
from .layout import (
    COUNT,
    TOTAL,
    ZERO,
    Agents,
    Chunk,
    FaultRows,
    Floats,
    Int8s,
    Int32s,
    Known,
    State,
)
from .scalars import uniform
from .stopping import is_set

agent_is_up = scalar(is_up)


@kernel
def outage_rows(first: int, down: float, up: float, k0: int, k1: int, before: Int8s, rows: Int8s) -> None:
    """Which agents are up in the rounds from `first` on, one a row; `before` is the round before."""
    for row in range(len(rows)):
        for v in range(rows.shape[1]):
            was_up = before[v] if row == 0 else rows[row - 1, v]
            rows[row, v] = 1 if agent_is_up(was_up == 1, uniform(k0, k1, v, first + row, ZERO, ZERO), down, up) else 0


@routine
def forget_others(v: int, agents: Agents, known: Known) -> None:
    """Agent v no longer knows others' statistics."""
    for origin in range(len(agents.every)):
        for slot in range(agents.offsets[v], agents.offsets[v + 1]):
            position = agents.position[origin, agents.arms[slot]]
            if position >= 0:
                place = known.rows[agents.offsets[origin] + position] + known.rank[slot]
                known.counts[place] = 0
                known.totals[place] = 0.0


@routine
def restart(t: int, agents: Agents, chunk: Chunk, known: Known, state: State) -> None:
    """Agents that come up in round `t` without their memory start afresh."""
    faults = chunk.faults
    row = t - faults.first_round
    for i in range(faults.restart_starts[row], faults.restart_starts[row + 1]):
        if is_set(chunk.stop):
            return
        v = faults.restarts[i]
        state.n_pulls[v] = agents.n_skipped[v]
        for slot in range(agents.offsets[v], agents.offsets[v + 1]):
            state.forgotten_pulls[slot] += state.pulls[slot]
            state.sums[slot, COUNT] = state.sums[slot, TOTAL] = state.pulls[slot] = 0
            if len(state.sent_counts) > 0:
                state.sent_counts[slot] = 0
            if len(state.echoes_left) > 0:
                state.echoes_left[slot] = 0
            if len(state.own_totals) > 0:
                state.own_totals[slot] = 0.0
            for block in range(state.blocks.shape[1]):
                state.blocks[slot, block, COUNT] = state.blocks[slot, block, TOTAL] = 0.0
            if len(state.own_weights) > 0:
                state.own_weights[slot] = state.sent_weights[slot] = 0.0
        if len(known.counts) > 0:
            forget_others(v, agents, known)


@helper
def restart_none(t: int, agents: Agents, chunk: Chunk, known: Known, state: State) -> None:
    """In the place of `restart` where nothing fails: a shorter kernel compiles sooner."""


@scalar
def arrives(origin: int, sequence: int, sender: int, receiver: int, t: int, faults: FaultRows) -> bool:
    """Whether a copy sent in round `t` reaches its receiver."""
    if faults.up.shape[1] > 0 and faults.up[t - faults.first_round, receiver] == 0:
        return False
    return (
        faults.loss == 0.0 or uniform(faults.loss_k0, faults.loss_k1, origin, sequence, sender, receiver) >= faults.loss
    )


@scalar
def keep_arriving(
    origin: int,
    sequence: int,
    t: int,
    sender: int,
    n_receivers: int,
    receivers: Int32s,
    chances: Floats,
    faults: FaultRows,
) -> int:
    """Move those of the receivers that a copy reaches, as `arrives` says, to the front; how many.

    All numbers are drawn before they are looked at: without a branch, that loop becomes vector instructions.
    """
    loss, k0, k1, up = faults.loss, faults.loss_k0, faults.loss_k1, faults.up
    has_outages = up.shape[1] > 0
    up_row = np.uint64(t - faults.first_round if has_outages else 0)
    for k in range(np.uint64(n_receivers)):
        chances[k] = uniform(k0, k1, origin, sequence, sender, np.int64(receivers[k])) if loss > 0.0 else 1.0
    n_arriving = 0
    for k in range(np.uint64(n_receivers)):
        receiver = receivers[k]
        is_up = not has_outages or up[up_row, np.uint64(receiver)] == 1
        receivers[np.uint64(n_arriving)] = receiver
        n_arriving += 1 if is_up and chances[k] >= loss else 0
    return n_arriving
