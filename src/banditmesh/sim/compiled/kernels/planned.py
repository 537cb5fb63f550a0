"""Rounds by a plan: who hears a message is looked up.

In a round every agent pulls; then, for every origin in ascending order and for each of its messages that may still
travel, oldest first, the agents that hear it in this round add it to their sums. That is the order of additions that
the reference engine keeps.
"""

from __future__ import annotations

import numpy as np

from .compiling import helper, kernel, routine
from .layout import (
    ABSORBED_BY_HOP,
    STALE,
    STOPPED_BY_HOP,
    UNIT,
    Agents,
    Chunk,
    Int32s,
    Int64s,
    Keys,
    Known,
    Messages,
    Plan,
    Pulls,
    Rule,
    State,
)
from .pulls import pull_rounds
from .rounds import begin, take_sent
from .stopping import is_set

# What is summed up of each hop.
HOP_SENT, HOP_DELIVERED, HOP_LEARNED, HOP_ABSORBED, HOP_STOPPED = range(5)
N_HOP_NUMBERS = 5


@routine
def deliver_by_plan(
    t: int,
    reach: int,
    arms: Int32s,
    holder_starts: Int64s,
    holder_slots: Int32s,
    messages: Messages,
    ring: Int32s,
    plan: Plan,
    state: State,
    stop: Int64s,
) -> int:
    """Add what is heard in round `t` to the sums of those who hear it; returns how much of it changes nothing."""
    counts, totals, learners, ranks = state.counts, state.totals, plan.learners, plan.ranks
    slots, amounts, rewards = messages.slots, messages.amounts, messages.rewards
    by_rank = len(ranks) > 0
    most_hops = min(reach, t)
    oldest_row = (t - most_hops + 1) % reach
    n_stale = 0
    for v in range(len(rewards)):
        # Looked at now and then: what an agent's messages cost here is little.
        if v % 64 == 0 and is_set(stop):
            return n_stale
        row = oldest_row
        for hop in range(most_hops, 0, -1):
            place = np.uint64(v), np.uint64(row)
            start = np.uint64(ring[place[0], place[1], np.uint64(0)]) * np.uint64(UNIT)
            finish = start + np.uint64(ring[place[0], place[1], np.uint64(hop)])
            if hop > 1:
                start += np.uint64(ring[place[0], place[1], np.uint64(hop - 1)])
            amount, reward = amounts[v, row], rewards[v, row]
            if amount == 0.0:
                n_stale += np.int64(finish - start)
            if by_rank:
                if start < finish:
                    first = np.uint64(holder_starts[arms[slots[v, row]]])
                    for i in range(start, finish):
                        learner = np.uint64(holder_slots[first + np.uint64(ranks[i])])
                        counts[learner] += amount
                        totals[learner] += reward
            else:
                for i in range(start, finish):
                    learner = np.uint64(learners[i])
                    counts[learner] += amount
                    totals[learner] += reward
            row += 1
            if row == reach:
                row = 0
    return n_stale


@kernel
def plan_rounds(
    last: int,
    chunk: Chunk,
    agents: Agents,
    holder_starts: Int64s,
    holder_slots: Int32s,
    rule: Rule,
    keys: Keys,
    central: bool,
    state: State,
    known: Known,
    pulls: Pulls,
    messages: Messages,
    plan: Plan,
    ring: Int32s,
    sent_ahead: Int64s,
    counts: Int64s,
) -> None:
    """Simulate the rounds of a chunk, up to before `last`, by a plan; without one if nothing travels.

    `ring[v, t % reach]` is the beginning of the record of the message that v made in round t.
    """
    reach = rule.reach
    records, arms, n_copied = plan.records, agents.arms, ring.shape[2]
    now_slots, now_amounts, now_rewards = pulls.slots, pulls.amounts, pulls.rewards
    slots, amounts, rewards = messages.slots, messages.amounts, messages.rewards
    first, stop, sent_by_round = chunk.first, chunk.stop, chunk.sent
    if reach == 0 and not central and len(chunk.faults.restarts) == 0:
        pull_rounds(first, last, agents, chunk, keys, rule.asks_best, state, pulls)
        return
    for t in range(first, last):
        begin(t, agents, holder_starts, holder_slots, chunk, rule, keys, central, state, known, pulls, counts)
        if is_set(stop):
            return
        if reach == 0:
            continue
        row = t % reach
        for v in range(len(now_slots)):
            slot = now_slots[v]
            slots[v, row] = slot
            amounts[v, row] = now_amounts[v]
            rewards[v, row] = now_rewards[v]
            if slot < 0:
                for i in range(n_copied):
                    ring[v, row, i] = 0
                continue
            # The ring is read in the order of agents for the next `reach` rounds; the plan, only now.
            for i in range(n_copied):
                ring[v, row, i] = records[slot, i]
            for hop in range(reach):
                sent_ahead[row + hop] += records[slot, n_copied + hop]
        sent_by_round[t - first] = take_sent(row, reach, sent_ahead)
        counts[STALE] += deliver_by_plan(t, reach, arms, holder_starts, holder_slots, messages, ring, plan, state, stop)


@helper
def add_numbers(slot: int, hop: int, weight: int, plan: Plan, numbers: Int64s) -> None:
    """Add, `weight` times, what the plan says of a slot's message in one hop to that hop's row of `numbers`."""
    records, ended, reach = plan.records, plan.ended, plan.delivered.shape[1]
    n_ends = records.shape[1] - 1 - reach
    n_parts = n_ends // reach
    n_learned = np.int64(records[slot, hop * n_parts])
    if hop > 1:
        n_learned -= records[slot, (hop - 1) * n_parts]
    numbers[hop - 1, HOP_SENT] += weight * np.int64(records[slot, n_ends + hop])
    numbers[hop - 1, HOP_DELIVERED] += weight * np.int64(plan.delivered[slot, hop - 1])
    numbers[hop - 1, HOP_LEARNED] += weight * n_learned
    if len(ended) > 0:
        numbers[hop - 1, HOP_ABSORBED] += weight * np.int64(ended[slot, hop - 1, ABSORBED_BY_HOP])
        numbers[hop - 1, HOP_STOPPED] += weight * np.int64(ended[slot, hop - 1, STOPPED_BY_HOP])


@kernel
def sum_by_hop(
    horizon: int,
    plan: Plan,
    n_messages: Int32s,
    late_slots: Int32s,
    stop: Int64s,
    all_hops: Int64s,
    last_hops: Int64s,
) -> None:
    """Sum up what the plan says of a run's messages, hop by hop: (reach, N_HOP_NUMBERS) each.

    `late_slots[v, t % reach]` is what v sent in round t of the last `reach`. These messages have fewer hops before the
    horizon; the last of them is summed up in `last_hops`, too.
    """
    reach = plan.delivered.shape[1]
    for slot in range(len(n_messages)):
        if slot % 1024 == 0 and is_set(stop):
            return
        if n_messages[slot] > 0:
            for hop in range(1, reach + 1):
                add_numbers(slot, hop, n_messages[slot], plan, all_hops)
    for t in range(max(1, horizon - reach + 1), horizon + 1):
        last_hop = horizon - t + 1
        for v in range(len(late_slots)):
            slot = late_slots[v, t % reach]
            if slot >= 0:
                add_numbers(slot, last_hop, 1, plan, last_hops)
                for hop in range(last_hop + 1, reach + 1):
                    add_numbers(slot, hop, -1, plan, all_hops)
