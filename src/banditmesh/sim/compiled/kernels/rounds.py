"""Rounds whose messages' fates are known when they are made: nothing is queued, nothing carries an id.

In a round every agent pulls; then, for every origin in ascending order and for each of its messages that may still
travel, oldest first, the agents that hear it in this round add it to their sums. That is the order of additions that
the reference engine keeps.
"""

from __future__ import annotations

import numpy as np

from . import fate
from .compiling import helper, kernel, routine
from .emissions import emit, learn_sum
from .faults import restart
from .forgetting import begin_heard, block_of, enter
from .layout import (
    EVERY_PULL,
    Agents,
    Arrays,
    Chunk,
    Fates,
    Holders,
    Int32s,
    Int64s,
    Keys,
    Known,
    Messages,
    Pulls,
    Rule,
    Scratch,
    State,
)
from .pulls import pull_rounds
from .sets import hop_abreast
from .single import spread_all_singly
from .spread import spread
from .stopping import is_set


@routine
def deliver(
    t: int,
    reach: int,
    messages: Messages,
    ring: Fates,
    learners: Int32s,
    keys: Keys,
    known: Known,
    state: State,
    stop: Int64s,
) -> int:
    """Add what is heard in round `t` to the sums of those who hear it; returns how much of it changes nothing."""
    base, end, sums, blocks = ring.base, ring.end, state.sums, state.blocks
    slots, amounts, rewards = messages.slots, messages.amounts, messages.rewards
    known_rows, known_rank, known_counts, known_totals = known.rows, known.rank, known.counts, known.totals
    compares = len(known_counts) > 0
    most_hops = min(reach, t)
    oldest_row = (t - most_hops + 1) % reach
    n_stale = 0
    for v in range(len(rewards)):
        # Looked at now and then: what an agent's messages cost here is little.
        if v % 64 == 0 and is_set(stop):
            return n_stale
        row = oldest_row
        for hop in range(most_hops, 0, -1):
            key = np.uint64(v * reach + row)
            start = base[key]
            finish = np.uint64(start + end[key, hop - 1])
            if hop > 1:
                start += end[key, hop - 2]
            amount, reward = amounts[v, row], rewards[v, row]
            learner_row = np.uint64(row)
            if compares:
                for i in range(np.uint64(start), finish):
                    learner = np.uint64(learners[learner_row, i])
                    place = np.uint64(known_rows[slots[v, row]] + known_rank[learner])
                    n_stale += learn_sum(learner, amount, reward, place, known_counts, known_totals, sums)
            else:
                block = block_of(t - hop + 1, t, keys)
                if amount == 0.0 or block < 0:
                    n_stale += np.int64(finish) - start
                for i in range(np.uint64(start), finish if block >= 0 else np.uint64(start)):
                    enter(np.uint64(learners[learner_row, i]), amount, reward, block, sums, blocks)
            row += 1
            if row == reach:
                row = 0
    return n_stale


@routine
def tell_everyone(
    t: int, agents: Agents, holders: Holders, chunk: Chunk, keys: Keys, pulls: Pulls, state: State
) -> int:
    """Whoever is up and has the arm hears every observation of the round, as under `Centralised`; how often."""
    offsets, arms, slots, rewards = agents.offsets, agents.arms, pulls.slots, pulls.rewards
    sums, blocks, block, stop = state.sums, state.blocks, block_of(t, t, keys), chunk.stop
    up, up_row = chunk.faults.up, t - chunk.faults.first_round
    n_learned = 0
    for v in range(len(slots)):
        if is_set(stop):
            return n_learned
        slot = slots[v]
        if slot < 0:
            continue
        arm = arms[slot]
        w = 0
        for i in range(holders.starts[arm], holders.starts[arm + 1]):
            learner = holders.slots[i]
            if learner == slot:
                continue
            if up.shape[1] > 0:
                while offsets[w + 1] <= learner:
                    w += 1
                if up[up_row, w] == 0:
                    continue
            enter(learner, pulls.amounts[v], rewards[v], block, sums, blocks)
            n_learned += 1
    return n_learned


@helper
def tell_none(t: int, agents: Agents, holders: Holders, chunk: Chunk, keys: Keys, pulls: Pulls, state: State) -> int:
    """In the place of `tell_everyone` where messages travel: a shorter kernel compiles sooner."""
    return 0


@helper
def begin(
    t: int,
    chunk: Chunk,
    agents: Agents,
    holders: Holders,
    rule: Rule,
    keys: Keys,
    state: State,
    known: Known,
    pulls: Pulls,
    messages: Messages,
    counts: Int64s,
) -> None:
    """Begin round `t`: whoever lost its memory starts afresh, all pull, and messages are made of the pulls."""
    begin_heard(t, keys, messages, known)
    if len(chunk.faults.restarts) > 0:
        restart(t, agents, chunk, known, state)
    pull_rounds(t, t + 1, agents, chunk, keys, rule.asks_best, state, pulls)
    if rule.tells_everyone:
        counts[fate.HEARD] += tell_everyone(t, agents, holders, chunk, keys, pulls, state)
    if rule.ttl > 0 and rule.emission != EVERY_PULL:
        emit(t, agents, rule, pulls, state)


@helper
def take_sent(row: int, reach: int, sent_ahead: Int64s) -> int:
    """How often messages are sent in the round of `row`, from what was noted ahead for it.

    The second half of the array is for the rounds that come after the last row: it wraps around to the first.
    """
    n_sent: int = sent_ahead[row]
    sent_ahead[row] = 0
    for hop in range(reach):
        sent_ahead[hop] += sent_ahead[reach + hop]
        sent_ahead[reach + hop] = 0
    return n_sent


@kernel
def spread_rounds(first: int, last: int, chunk: Chunk, arrays: Arrays, scratch: Scratch, ring: Fates) -> int:
    """Simulate the rounds from `first` to before `last`, a part of the chunk, spreading each message when it is made.

    Returns the round that comes next. If the learners of a round do not fit, it returns early, in the middle of that
    round: `scratch.cursor` keeps how many agents' messages were spread, -1 if the round has not begun, and how many
    learners they have. The next call goes on there, with more place.
    """
    agents, holders, rule, keys, state = arrays.agents, arrays.holders, arrays.rule, arrays.keys, arrays.state
    known, pulls, messages, counts = arrays.known, arrays.pulls, arrays.messages, arrays.counts
    network, links, faults, stop = chunk.network, chunk.links, chunk.faults, chunk.stop
    reach, cursor, sent_ahead = rule.reach, scratch.cursor, ring.sent_ahead
    abreast, singly = len(scratch.abreast.kept) > 0, len(scratch.single.arms) > 0
    n_agents = len(agents.every)
    ring_end, ring_sent, learners = ring.end, ring.sent, ring.learners
    now_slots, now_amounts, now_rewards = pulls.slots, pulls.amounts, pulls.rewards
    slots, amounts, rewards = messages.slots, messages.amounts, messages.rewards
    for t in range(first, last):
        if cursor[0] < 0:
            begin(t, chunk, agents, holders, rule, keys, state, known, pulls, messages, counts)
            cursor[0] = 0
        row = t % reach
        if abreast:
            for v in range(n_agents):
                slots[v, row], amounts[v, row], rewards[v, row] = now_slots[v], now_amounts[v], now_rewards[v]
            chunk.sent[t - chunk.first] = hop_abreast(
                t, network, agents, rule, now_slots, messages, scratch, keys, known, state, counts, stop
            )
            cursor[0] = -1
            if scratch.abreast.lives_on[0] != 0:
                return t + 1
            continue
        if singly and not spread_all_singly(t, network, agents, rule, now_slots, scratch, ring, counts, stop):
            return t
        for v in range(n_agents if singly else cursor[0], n_agents):
            if is_set(stop):
                return t
            slot = now_slots[v]
            if slot < 0:
                continue
            arm = agents.arms[slot]
            # A message has at most as many learners as its arm has holders, each time that they receive it.
            if cursor[1] + rule.most_receipts * (holders.starts[arm + 1] - holders.starts[arm]) > learners.shape[1]:
                cursor[0] = v
                return t
            cursor[1] += spread(
                v,
                arm,
                t,
                network,
                agents,
                rule,
                scratch,
                v * reach + row,
                row,
                cursor[1],
                ring,
                counts,
                links,
                faults,
            )
        cursor[0], cursor[1] = -1, 0
        for v in range(n_agents):
            key = v * reach + row
            slots[v, row] = now_slots[v]
            amounts[v, row] = now_amounts[v]
            rewards[v, row] = now_rewards[v]
            for hop in range(reach):
                if now_slots[v] < 0:
                    ring_end[key, hop] = 0
                else:
                    sent_ahead[row + hop] += ring_sent[key, hop]
        chunk.sent[t - chunk.first] = take_sent(row, reach, sent_ahead)
        counts[fate.STALE] += deliver(t, reach, messages, ring, learners, keys, known, state, stop)
    return last
