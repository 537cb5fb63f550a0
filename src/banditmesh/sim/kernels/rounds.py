"""Rounds whose messages' fates are known when they are made: nothing is queued, nothing carries an id.

In a round every agent pulls; then, for every origin in ascending order and for each of its messages of the last ttl
rounds, oldest first, the agents that hear it in this round add it to their sums. That is the order of additions that
the reference engine keeps.
"""

from __future__ import annotations

import numpy as np

from .compiling import helper, kernel
from .emissions import emit, learn_sum
from .faults import restart
from .layout import (
    EVERY_PULL,
    LEARNED,
    Agents,
    Chunk,
    Fates,
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
from .pulls import pull_agents
from .spread import spread


@helper
def deliver(
    t: int, ttl: int, planned: bool, messages: Messages, ring: Fates, learners: Int32s, known: Known, state: State
) -> None:
    """Add what is heard in round `t` to the sums of those who hear it."""
    base, end, counts, totals = ring.base, ring.end, state.counts, state.totals
    slots, amounts, rewards = messages.slots, messages.amounts, messages.rewards
    known_rows, known_rank, known_counts, known_totals = known.rows, known.rank, known.counts, known.totals
    compares = len(known_counts) > 0
    most_hops = min(ttl, t)
    oldest_row = (t - most_hops + 1) % ttl
    for v in range(len(rewards)):
        row = oldest_row
        for hop in range(most_hops, 0, -1):
            key = np.uint64(v * ttl + row)
            start = base[key]
            stop = np.uint64(start + end[key, hop - 1])
            if hop > 1:
                start += end[key, hop - 2]
            amount, reward = amounts[v, row], rewards[v, row]
            learner_row = np.uint64(0 if planned else row)
            if compares:
                for i in range(np.uint64(start), stop):
                    learner = np.uint64(learners[learner_row, i])
                    place = np.uint64(known_rows[slots[v, row]] + known_rank[learner])
                    learn_sum(learner, amount, reward, place, known_counts, known_totals, counts, totals)
            else:
                for i in range(np.uint64(start), stop):
                    learner = np.uint64(learners[learner_row, i])
                    counts[learner] += amount
                    totals[learner] += reward
            row += 1
            if row == ttl:
                row = 0


@helper
def tell_everyone(
    t: int, agents: Agents, holder_starts: Int64s, holder_slots: Int32s, chunk: Chunk, pulls: Pulls, state: State
) -> int:
    """Whoever is up and has the arm hears every observation of the round, as under `Centralised`; how often."""
    up = chunk.faults.up
    n_learned = 0
    for v in range(len(pulls.slots)):
        slot = pulls.slots[v]
        if slot < 0:
            continue
        arm = agents.arms[slot]
        for i in range(holder_starts[arm], holder_starts[arm + 1]):
            learner = holder_slots[i]
            if learner == slot:
                continue
            if up.shape[1] > 0:
                w = np.searchsorted(agents.offsets, learner, side="right") - 1
                if up[t - chunk.faults.first_round, w] == 0:
                    continue
            state.counts[learner] += 1.0
            state.totals[learner] += pulls.rewards[v]
            n_learned += 1
    return n_learned


@kernel
def run_rounds(
    first: int,
    last: int,
    chunk: Chunk,
    agents: Agents,
    holder_starts: Int64s,
    holder_slots: Int32s,
    rule: Rule,
    keys: Keys,
    planned: bool,
    central: bool,
    most_receipts: int,
    state: State,
    known: Known,
    scratch: Scratch,
    cursor: Int64s,
    pulls: Pulls,
    messages: Messages,
    plan: Fates,
    ring: Fates,
    sent_ahead: Int64s,
    counts: Int64s,
) -> int:
    """Simulate the rounds from `first` to before `last`, a part of the chunk; returns the round that comes next.

    `most_receipts` is how often an agent may learn one message: more than once only if it loses its memory.

    If the learners of a round do not fit, it returns early, in the middle of that round: `cursor` keeps how many
    agents' messages were spread, -1 if the round has not begun, and how many learners they have. The next call goes on
    there, with more place.
    """
    ttl = rule.ttl
    n_agents = len(agents.every)
    plan_base, plan_end, plan_sent = plan.base, plan.end, plan.sent
    ring_base, ring_end, ring_sent = ring.base, ring.end, ring.sent
    now_slots, now_amounts, now_rewards = pulls.slots, pulls.amounts, pulls.rewards
    slots, amounts, rewards = messages.slots, messages.amounts, messages.rewards
    learners = plan.learners if planned else ring.learners
    for t in range(first, last):
        step = t - chunk.first
        if cursor[0] < 0:
            if len(chunk.faults.restarts) > 0:
                restart(t, agents, chunk.faults, known, state)
            chunk.regret[step] = pull_agents(t, agents, chunk, keys, rule.asks_best, state, pulls)
            if central:
                counts[LEARNED] += tell_everyone(t, agents, holder_starts, holder_slots, chunk, pulls, state)
            if ttl > 0 and rule.emission != EVERY_PULL:
                emit(rule, pulls, state)
            cursor[0] = 0
        if ttl == 0:
            chunk.sent[step] = 0
            cursor[0] = -1
            continue
        row = t % ttl
        if not planned:
            for v in range(cursor[0], n_agents):
                slot = now_slots[v]
                if slot < 0:
                    continue
                arm = agents.arms[slot]
                # A message has at most as many learners as its arm has holders, each time that they receive it.
                if cursor[1] + most_receipts * (holder_starts[arm + 1] - holder_starts[arm]) > learners.shape[1]:
                    cursor[0] = v
                    return t
                cursor[1] += spread(
                    v,
                    arm,
                    t,
                    1,
                    chunk.network,
                    agents,
                    rule,
                    scratch,
                    v * ttl + row,
                    row,
                    cursor[1],
                    ring,
                    counts,
                    chunk.links,
                    chunk.faults,
                )
            cursor[1] = 0
        cursor[0] = -1
        for v in range(n_agents):
            slot = now_slots[v]
            key = v * ttl + row
            slots[v, row] = slot
            amounts[v, row] = now_amounts[v]
            rewards[v, row] = now_rewards[v]
            if slot < 0:
                for hop in range(ttl):
                    ring_end[key, hop] = 0
            elif planned:
                # The ring is read in the order of agents for the next ttl rounds; the plan, only now.
                ring_base[key] = plan_base[slot]
                for hop in range(ttl):
                    ring_end[key, hop] = plan_end[slot, hop]
                    sent_ahead[row + hop] += plan_sent[slot, hop]
            else:
                for hop in range(ttl):
                    sent_ahead[row + hop] += ring_sent[key, hop]
        # What is sent in this round and in the next ones; the second half of the array wraps around to the first.
        chunk.sent[step] = sent_ahead[row]
        sent_ahead[row] = 0
        for hop in range(ttl):
            sent_ahead[hop] += sent_ahead[ttl + hop]
            sent_ahead[ttl + hop] = 0
        deliver(t, ttl, planned, messages, ring, learners, known, state)
    return last
