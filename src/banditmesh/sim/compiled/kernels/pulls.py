"""One round's pulls: every agent whose turn it is chooses, pulls and counts its reward."""

from __future__ import annotations

import math

import numpy as np

from .compiling import routine
from .layout import COUNT, TOTAL, ZERO, Agents, Chunk, Keys, Pulls, State
from .scalars import index_rule, law_quantile, uniform
from .stopping import is_set


@routine
def pull_agents(
    t: int,
    first_agent: int,
    last_agent: int,
    agents: Agents,
    chunk: Chunk,
    keys: Keys,
    asks_best: bool,
    state: State,
    pulls: Pulls,
) -> float:
    """Pull for those of the agents `first_agent` to `last_agent` - 1 that are up and whose turn it is.

    The others' slots become -1. Returns the regret of these agents together.

    The arm with the highest index is pulled, the first of equals. All of an agent's indices are worked out before they
    are compared: without a branch, that loop becomes vector instructions. (Until then, `scores` holds the draws.)
    """
    # Arrays are taken out of their tuples once: in a loop that would cost more than the loop's work.
    offsets, arms, sigmas, gaps, every = agents.offsets, agents.arms, agents.sigmas, agents.gaps, agents.every
    clock_of, parameters = agents.clock, agents.parameter
    law_code, law_a, law_b = agents.law_code, agents.law_a, agents.law_b
    sums, own_counts, scores = state.sums, state.pulls, state.scores
    n_pulls, next_round = state.n_pulls, state.next_round
    slots, rewards, is_best = pulls.slots, pulls.rewards, pulls.is_best
    step, has_tape, up, stop = t - chunk.first, chunk.has_tape, chunk.faults.up, chunk.stop
    clocks, tape = chunk.clocks[step], chunk.tape[step if has_tape else 0]
    has_outages = up.shape[1] > 0
    up_row = t - chunk.faults.first_round if has_outages else 0
    regret = 0.0
    for v in range(first_agent, last_agent):
        if is_set(stop):
            return regret
        if next_round[v] != t:
            slots[v] = -1
            continue
        next_round[v] = t + every[v]
        if has_outages and up[up_row, v] == 0:
            slots[v] = -1
            continue
        # Unsigned, because a signed index may be negative, and allowing for that keeps loops from being vectorised.
        first = np.uint64(offsets[v])
        n_arms = np.uint64(offsets[v + 1]) - first
        position = np.uint64(n_pulls[v])
        if position < n_arms:
            n_pulls[v] += 1
            is_best[v] = 0
        else:
            clock, parameter = clocks[clock_of[v]], parameters[v]
            for j in range(n_arms):
                scores[j] = 0.0
            if keys.draws_index:
                for j in range(n_arms):
                    scores[j] = uniform(keys.index_k0, keys.index_k1, v, t, np.int64(arms[first + j]), ZERO)
            for j in range(n_arms):
                count = sums[first + j, COUNT]
                scores[j] = index_rule(
                    sums[first + j, TOTAL] / count,
                    int(count),
                    1.0 / math.sqrt(count),
                    clock,
                    sigmas[arms[first + j]],
                    law_code[arms[first + j]],
                    scores[j],
                    parameter,
                )
            position, best = np.uint64(0), -math.inf
            for j in range(n_arms):
                if scores[j] > best:
                    position, best = np.uint64(j), scores[j]
            if asks_best:
                best_position, best = np.uint64(0), -math.inf
                for j in range(n_arms):
                    mean = sums[first + j, TOTAL] / sums[first + j, COUNT]
                    if mean > best:
                        best_position, best = np.uint64(j), mean
                is_best[v] = 1 if best_position == position else 0
        slot = first + position
        if has_tape:
            reward = tape[slot]
        else:
            arm = arms[slot]
            u = uniform(keys.reward_k0, keys.reward_k1, v, t, ZERO, ZERO)
            reward = law_quantile(law_code[arm], law_a[arm], law_b[arm], u)
        sums[slot, COUNT] += 1.0
        sums[slot, TOTAL] += reward
        own_counts[slot] += 1
        regret += gaps[slot]
        slots[v] = slot
        rewards[v] = reward
    return regret
