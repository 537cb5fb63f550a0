"""One round's pulls: every agent whose turn it is chooses, pulls and counts its reward."""

from __future__ import annotations

import math

from .compiling import helper
from .layout import Agents, Floats, Int32s, Keys, State
from .scalars import index_rule, law_quantile, uniform


@helper
def choose(
    v: int,
    t: int,
    clock: float,
    agents: Agents,
    keys: Keys,
    state: State,
) -> int:
    """The position of the arm with the highest index, the first of equals."""
    first = agents.offsets[v]
    n_arms = agents.offsets[v + 1] - first
    parameter = agents.parameter[v]
    scores, counts, totals, arms, sigmas = state.scores, state.counts, state.totals, agents.arms, agents.sigmas
    # All indices first, without a branch, so that the loop becomes vector instructions.
    for j in range(n_arms):
        count = counts[first + j]
        u = 0.0
        if keys.draws_index:
            u = uniform(keys.index_k0, keys.index_k1, v, t, arms[first + j], 0)
        scores[j] = index_rule(
            totals[first + j] / count,
            int(count),
            1.0 / math.sqrt(count),
            clock,
            sigmas[arms[first + j]],
            u,
            parameter,
        )
    best, best_score = 0, -math.inf
    for j in range(n_arms):
        if scores[j] > best_score:
            best, best_score = j, scores[j]
    return best


@helper
def pull_agents(
    t: int,
    agents: Agents,
    clocks: Floats,
    tape: Floats,
    has_tape: bool,
    keys: Keys,
    state: State,
    slots: Int32s,
    rewards: Floats,
) -> float:
    """Pull for all agents whose turn it is; -1 in `slots` marks the others. Returns the round's group regret."""
    regret = 0.0
    for v in range(len(agents.every)):
        if state.next_round[v] != t:
            slots[v] = -1
            continue
        state.next_round[v] = t + agents.every[v]
        first = agents.offsets[v]
        position = state.n_pulls[v]
        if position < agents.offsets[v + 1] - first:
            state.n_pulls[v] = position + 1
        else:
            position = choose(v, t, clocks[agents.clock[v]], agents, keys, state)
        slot = first + position
        if has_tape:
            reward = tape[slot]
        else:
            arm = agents.arms[slot]
            u = uniform(keys.reward_k0, keys.reward_k1, v, t, 0, 0)
            reward = law_quantile(agents.law_code[arm], agents.law_a[arm], agents.law_b[arm], u)
        state.counts[slot] += 1.0
        state.totals[slot] += reward
        state.pulls[slot] += 1
        regret += agents.gaps[slot]
        slots[v] = slot
        rewards[v] = reward
    return regret
