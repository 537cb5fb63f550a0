"""Rounds in which nothing travels: agents pull, and learn from their own rewards alone.

Several replicates are simulated in one call, one after the other in the same arrays: what Python does for a call takes
as long as some hundred pulls.
"""

from __future__ import annotations

from .compiling import helper, kernel
from .layout import (
    COUNT,
    FIRST_ROUND,
    FIRST_TANGENT,
    NEVER,
    TOTAL,
    Agents,
    Chunk,
    Floats,
    Int32s,
    Int64s,
    Keys,
    Pulls,
    State,
)
from .pulls import pull_rounds
from .stopping import is_set


@helper
def forget_all(agents: Agents, state: State) -> None:
    """All agents begin: they have pulled nothing yet, and nothing is drawn ahead."""
    sums, pulls, n_pulls, next_round, tangents = (
        state.sums,
        state.pulls,
        state.n_pulls,
        state.next_round,
        state.tangents,
    )
    state.ahead.first[0] = NEVER
    state.blocks[:] = 0.0
    for slot in range(len(pulls)):
        sums[slot, COUNT] = sums[slot, TOTAL] = 0.0
        pulls[slot] = 0
    for v in range(len(n_pulls)):
        n_pulls[v] = agents.n_skipped[v]
        next_round[v] = FIRST_ROUND
    for slot in range(tangents.shape[1]):
        for place in range(len(tangents)):
            tangents[place, slot] = FIRST_TANGENT if place == 0 else 0.0


@kernel
def quiet_rounds(
    last: int,
    chunk: Chunk,
    agents: Agents,
    keys: Keys,
    draw_keys: Int64s,
    state: State,
    pulls: Pulls,
    regrets: Floats,
    pulled: Int32s,
) -> None:
    """Simulate the rounds of a chunk, up to before `last`, for each replicate whose keys are a row of `draw_keys`.

    Its regret by round goes to the same row of `regrets`, and its pulls so far, by slot, to that of `pulled`. If there
    are several, the chunk is all rounds.
    """
    for row in range(len(draw_keys)):
        if is_set(chunk.stop):
            return
        if chunk.first == FIRST_ROUND:
            forget_all(agents, state)
        for word in range(len(keys.draws)):
            keys.draws[word] = draw_keys[row, word]
        pull_rounds(chunk.first, last, agents, chunk, keys, False, state, pulls)
        for step in range(last - chunk.first):
            regrets[row, step] = chunk.regret[step]
        for slot in range(len(state.pulls)):
            pulled[row, slot] = state.pulls[slot]
