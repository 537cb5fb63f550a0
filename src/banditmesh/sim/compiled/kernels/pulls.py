"""The pulls of a round: every agent whose turn it is chooses, pulls and counts its reward."""

from __future__ import annotations

import math

import numpy as np

from .ahead import draw_ahead
from .compiling import helper, routine
from .forgetting import age_of, begin_round, count_of, count_pull, first_unknown, handed, root_of
from .layout import (
    COUNT,
    DRAWS,
    INVERSE,
    ONE,
    PAIR,
    ROOT,
    SCORES,
    TOTAL,
    ZERO,
    Agents,
    Chunk,
    FaultRows,
    Floats,
    Int32s,
    Keys,
    Logged,
    Pulls,
    State,
)
from .replaying import first_pull, has_stopped, is_replayed, next_logged
from .scalars import clock_rule, index_rule, law_quantile, law_reward, uniform
from .stopping import is_set

#: How far apart the slots are that are looked at side by side.
TWO, THREE, FOUR = (np.uint64(2), np.uint64(3), np.uint64(4))

# Of an agent's arms, `first` is the slot of the first and `n_arms` their number. Both are unsigned, because a signed
# index may be negative, and allowing for that keeps loops from being vectorised.


@helper
def write_indices(
    first: np.uint64, n_slots: np.uint64, clock: float, parameter: float, agents: Agents, state: State
) -> None:
    """Write the indices of `n_slots` slots to the scores; `scores[DRAWS]` holds the draws.

    Without a branch, this loop becomes vector instructions.
    """
    arms, sigmas, law_code, scores = agents.arms, agents.sigmas, agents.law_code, state.scores
    pairs = state.pairs
    inverse, root = state.now[INVERSE], state.now[ROOT]
    for j in range(n_slots):
        weight = pairs[PAIR * (first + j)]
        scores[SCORES, j] = index_rule(
            pairs[PAIR * (first + j) + ONE] / weight,
            handed(count_of(weight, inverse)),
            root_of(weight, root),
            clock,
            sigmas[arms[first + j]],
            law_code[arms[first + j]],
            scores[DRAWS, j],
            parameter,
        )


@helper
def highest_score(
    first: np.uint64,
    place: np.uint64,
    n_arms: np.uint64,
    clock: float,
    parameter: float,
    agents: Agents,
    state: State,
) -> np.uint64:
    """The position of an agent's arm with the highest score, the first of equals; its scores begin at `place`."""
    scores = state.scores
    position, best = np.uint64(0), -math.inf
    for j in range(n_arms):
        if scores[SCORES, place + j] > best:
            position, best = np.uint64(j), scores[SCORES, place + j]
    return position


#: How the usual policy's arm is found. Others take the places of these, see `specialise`.
write_scores, choose = write_indices, highest_score


@helper
def end_of_block(v: int, t: int, last: int, agents: Agents, faults: FaultRows, state: State) -> int:
    """The first agent after `v` that does not choose in round `t` like v, or whose scores would not fit beside v's.

    Scores of several agents are written at a time: a loop over few arms would take longer to begin than to run. What an
    agent pulls changes no other's sums before the round's pulls are over.
    """
    offsets, clock_of, parameters = agents.offsets, agents.clock, agents.parameter
    n_pulls, next_round, most = state.n_pulls, state.next_round, offsets[v] + state.scores.shape[1]
    up, up_row = faults.up, t - faults.first_round
    w = v + 1
    while (
        w < last
        and (up.shape[1] == 0 or up[up_row, w] != 0)
        and offsets[w + 1] <= most
        and next_round[w] == t
        and n_pulls[w] >= offsets[w + 1] - offsets[w]
        and clock_of[w] == clock_of[v]
        and parameters[w] == parameters[v]
    ):
        w += 1
    return w


@helper
def highest_mean(first: np.uint64, n_arms: np.uint64, sums: Floats, logged: Logged) -> np.uint64:
    """The position of the arm with the highest mean, the first of equals."""
    position, best = np.uint64(0), -math.inf
    for j in range(n_arms):
        mean = sums[first + j, TOTAL] / sums[first + j, COUNT]
        if mean > best:
            position, best = np.uint64(j), mean
    return position


@helper
def best_mean(first: np.uint64, n_arms: np.uint64, arms: Int32s, means: Floats) -> float:
    """The highest of these means among an agent's arms.

    Four maxima side by side: with a single one, each comparison would wait for the one before.
    """
    a = b = c = d = means[arms[first]]
    end = first + n_arms
    slot = first
    while slot + FOUR <= end:
        a, b = max(a, means[arms[slot]]), max(b, means[arms[slot + ONE]])
        c, d = max(c, means[arms[slot + TWO]]), max(d, means[arms[slot + THREE]])
        slot += FOUR
    while slot < end:
        a = max(a, means[arms[slot]])
        slot += ONE
    best: float = max(max(a, b), max(c, d))
    return best


@helper
def read_clocks(t: int, chunk: Chunk, keys: Keys, state: State) -> Floats:
    """What the policies' clocks read in round `t`, for each of their parameters: given by the chunk, or worked out."""
    if len(chunk.clocks) > 0:
        given: Floats = chunk.clocks[t - chunk.first]
        return given
    for k in range(len(state.clocks)):
        state.clocks[k] = clock_rule(age_of(t - keys.clock_lag, keys), keys.clock_parameters[k])
    return state.clocks


@helper
def draw_nothing(
    k0: int, k1: int, t: int, first: np.uint64, n_slots: np.uint64, arms: Int32s, owners: Int32s, draws: Floats
) -> None:
    """In the place of `draw_for_arms` for an index that does not draw: a shorter kernel compiles sooner."""


#: What the usual policy draws for its arms. Others draw, see `specialise`.
draw_for_index = draw_nothing


@routine
def pull_rounds(
    begin: int, end: int, agents: Agents, chunk: Chunk, keys: Keys, asks_best: bool, state: State, pulls: Pulls
) -> None:
    """Pull in the rounds from `begin` to before `end`, all agents that are up and whose turn it is.

    The others' slots become -1. Each round's regret goes to the chunk. Several rounds at a time are for agents
    that hear nothing between their pulls.
    """
    offsets, arms, every, best_means = agents.offsets, agents.arms, agents.every, agents.best_means
    clock_of, parameters = agents.clock, agents.parameter
    law_code, agent_regret, means_change = agents.law_code, state.agent_regret, chunk.means_change
    sums, own_counts, scores = state.sums, state.pulls, state.scores
    n_pulls, next_round, uniforms, normals = state.n_pulls, state.next_round, state.ahead.uniforms, state.ahead.normals
    slots, is_best, gaps = pulls.slots, pulls.is_best, pulls.gaps
    has_tape, tape, up, stop, regrets = chunk.has_tape, chunk.tape, chunk.faults.up, chunk.stop, chunk.regret
    has_outages, n_ahead = up.shape[1] > 0, state.ahead.n_rounds
    reward_k0, reward_k1, index_k0, index_k1 = keys.draws[0], keys.draws[1], keys.draws[2], keys.draws[3]
    for t in range(begin, end):
        step = t - chunk.first
        up_row = t - chunk.faults.first_round if has_outages else 0
        begin_round(t, agents, keys, state, pulls)
        clocks = read_clocks(t, chunk, keys, state)
        law_row = step if len(chunk.law_a) > 1 else 0
        means, law_a, law_b = chunk.means[step if means_change else 0], chunk.law_a[law_row], chunk.law_b[law_row]
        if n_ahead > 0 and t - state.ahead.first[0] >= n_ahead:
            draw_ahead(t, reward_k0, reward_k1, pulls.first, pulls.last, state.ahead)
        from_first = t - state.ahead.first[0]
        regret = 0.0
        # Agents before this one have their scores written, from that slot on.
        scored, scored_from = pulls.first, np.uint64(0)
        for v in range(pulls.first, pulls.last):
            if is_set(stop):
                return
            if next_round[v] != t:
                slots[v] = -1
                continue
            next_round[v] = t + every[v]
            if has_outages and up[up_row, v] == 0:
                slots[v] = -1
                continue
            first = np.uint64(offsets[v])
            n_arms = np.uint64(offsets[v + 1]) - first
            if has_stopped(first, n_arms, state.logged):
                slots[v] = -1
                continue
            position = first_pull(v, first, n_arms, state)
            is_best[v] = 0
            if position < n_arms:
                n_pulls[v] += 1
            else:
                position = first_unknown(v, first, n_arms, state)
            if position == n_arms:
                clock = clocks[clock_of[v]]
                if v >= scored:
                    scored, scored_from = end_of_block(v, t, pulls.last, agents, chunk.faults, state), first
                    n_slots = np.uint64(offsets[scored]) - first
                    if keys.draws_index:
                        draw_for_index(index_k0, index_k1, t, first, n_slots, arms, agents.owners, scores[DRAWS])
                    write_scores(first, n_slots, clock, parameters[v], agents, state)
                position = choose(first, first - scored_from, n_arms, clock, parameters[v], agents, state)
                if asks_best:
                    is_best[v] = 1 if position == highest_mean(first, n_arms, sums, state.logged) else 0
            slot = first + position
            arm = arms[slot]
            if is_replayed(arm, state.logged):
                reward = next_logged(v, slot, arm, keys, state.logged)
            elif has_tape:
                reward = tape[step, slot]
            elif n_ahead > 0:
                place = np.uint64(v * n_ahead + from_first)
                normal = normals[place] if len(normals) > 0 else 0.0
                reward = law_reward(law_code[arm], law_a[arm], law_b[arm], uniforms[place], normal)
            else:
                u = uniform(reward_k0, reward_k1, v, t, ZERO, ZERO)
                reward = law_quantile(law_code[arm], law_a[arm], law_b[arm], u)
            count_pull(v, slot, reward, state, pulls)
            own_counts[slot] += 1
            gap = (best_mean(first, n_arms, arms, means) if means_change else best_means[v]) - means[arm]
            if means_change:
                agent_regret[v] += gap
            regret += gap
            gaps[v] = gap
            slots[v] = slot
        regrets[step] = regret
