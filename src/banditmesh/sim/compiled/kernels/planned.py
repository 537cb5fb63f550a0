"""Rounds by a plan: who hears a message is looked up.

In a round every agent pulls; then, for every origin in ascending order and for each of its messages that may still
travel, oldest first, the agents that hear it in this round add it to their sums. That is the order of additions that
the reference engine keeps.

Threads can share a round: each has a part of the agents, pulls for these, waits for the others, and then adds to the
sums of these alone, in the same order.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from . import fate
from .compiling import fetch, helper, kernel, routine
from .emissions import emit
from .layout import (
    COUNT,
    EVERY_PULL,
    NO_BITS,
    ONE,
    TOTAL,
    UNIT,
    ZERO,
    Arrays,
    Chunk,
    Floats,
    Holders,
    Int32s,
    Int64s,
    Messages,
    Plan,
    Pulls,
    State,
    Waiting,
)
from .pulls import pull_rounds
from .rounds import begin, take_sent
from .stopping import is_set

#: How many agents ahead the records of their messages, and those who learn them, are fetched.
AHEAD = 16
#: More learners than this are a long list.
LONG: Any = np.uint64(24)


@helper
def keep_messages(
    t: int, reach: int, pulls: Pulls, plan: Plan, messages: Messages, ring: Int32s, sent_ahead: Int64s
) -> None:
    """Keep the messages that agents make in round `t`, and note how often they will be sent."""
    records, n_copied, row = plan.records, ring.shape[2], t % ring.shape[1]
    now_slots, now_amounts, now_rewards = pulls.slots, pulls.amounts, pulls.rewards
    slots, amounts, rewards = messages.slots, messages.amounts, messages.rewards
    for v in range(pulls.first, pulls.last):
        slot = now_slots[v]
        if v + AHEAD < pulls.last:
            # A record may reach into a second line of the cache, where the next one begins.
            later = np.uint64(max(now_slots[v + AHEAD], 0))
            fetch(records, later)
            fetch(records, later + ONE)
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
            sent_ahead[t % reach + hop] += records[slot, n_copied + hop]


@helper
def note_made(row: int, pulls: Pulls, made: Int32s) -> None:
    """Leave which messages are made in a round, where it is counted which links they take."""
    if len(made) > 0:
        slots = pulls.slots
        for v in range(pulls.first, pulls.last):
            made[row, v] = slots[v]


@helper
def learners_at(
    v: np.uint64, row: np.uint64, hop: int, part: int, n_parts: int, ring: Int32s
) -> tuple[np.uint64, np.uint64]:
    """Where those in `part` begin and end who hear v's message of a row at a hop."""
    column = np.uint64((hop - 1) * n_parts + part)
    start = np.uint64(ring[v, row, np.uint64(0)]) * np.uint64(UNIT)
    finish = start + np.uint64(ring[v, row, column + ONE])
    if column > 0:
        start += np.uint64(ring[v, row, column])
    return start, finish


@helper
def fetch_learners(
    v: np.uint64, row: int, most_hops: int, part: int, n_parts: int, learners: Int32s, ring: Int32s
) -> None:
    """Fetch those in `part` who hear v's messages in this round, the oldest of which are in a row."""
    for hop in range(most_hops, 0, -1):
        fetch(learners, learners_at(v, np.uint64(row), hop, part, n_parts, ring)[0])
        row += 1
        if row == ring.shape[1]:
            row = 0


@helper
def add_waiting(n_waiting: np.uint64, waiting: Waiting, sums: Floats) -> None:
    """Add what waits to the sums, in the order in which it came."""
    slots, numbers = waiting.slots, waiting.numbers
    for i in range(n_waiting):
        sums[slots[i], COUNT] += numbers[i, COUNT]
        sums[slots[i], TOTAL] += numbers[i, TOTAL]


@routine
def deliver_by_plan(
    t: int,
    reach: int,
    part: int,
    n_parts: int,
    arms: Int32s,
    holders: Holders,
    messages: Messages,
    plan: Plan,
    ring: Int32s,
    state: State,
    stop: Int64s,
) -> int:
    """Add what is heard in round `t` to the sums of those in `part` of the agents who hear it.

    Where sums lie far apart, who learns is fetched some agents ahead, and additions wait until the sums have come from
    memory. Not so those to many learners, as ranks are: in a long list a processor looks far ahead by itself. Returns
    how much of it changes nothing.
    """
    sums, waiting, learners, ranks = state.sums, state.waiting, plan.learners, plan.ranks
    slots, amounts, rewards, n_rows = messages.slots, messages.amounts, messages.rewards, ring.shape[1]
    holder_starts, holder_slots = holders.starts, holders.slots
    waiting_slots, waiting_numbers = waiting.slots, waiting.numbers
    n_waiting, most_waiting = NO_BITS, np.uint64(len(waiting_slots))
    by_rank, few = len(ranks) > 0, LONG if most_waiting > 0 else NO_BITS
    is_far = most_waiting > 0 and not by_rank
    most_hops = min(reach, t)
    oldest_row = (t - most_hops + 1) % n_rows
    n_stale = 0
    last = len(rewards) - 1
    for v in range(len(rewards)):
        # Looked at now and then: what an agent's messages cost here is little.
        if v % 64 == 0 and is_set(stop):
            return n_stale
        if is_far:
            fetch_learners(np.uint64(min(v + AHEAD, last)), oldest_row, most_hops, part, n_parts, learners, ring)
        row = oldest_row
        for hop in range(most_hops, 0, -1):
            start, finish = learners_at(np.uint64(v), np.uint64(row), hop, part, n_parts, ring)
            amount, reward = amounts[v, row], rewards[v, row]
            if amount == 0.0:
                n_stale += int(finish - start)
            if by_rank:
                first = np.uint64(holder_starts[arms[max(slots[v, row], 0)]])
                for i in range(start, finish):
                    learner = np.uint64(holder_slots[first + np.uint64(ranks[i])])
                    sums[learner, COUNT] += amount
                    sums[learner, TOTAL] += reward
            elif finish - start > few:
                if n_waiting > 0:
                    # What waits came before.
                    add_waiting(n_waiting, waiting, sums)
                    n_waiting = NO_BITS
                for i in range(start, finish):
                    learner = np.uint64(learners[i])
                    sums[learner, COUNT] += amount
                    sums[learner, TOTAL] += reward
            else:
                for i in range(start, finish):
                    learner = np.uint64(learners[i])
                    fetch(sums, learner)
                    waiting_slots[n_waiting] = learner
                    waiting_numbers[n_waiting, COUNT] = amount
                    waiting_numbers[n_waiting, TOTAL] = reward
                    n_waiting += ONE
                    if n_waiting == most_waiting:
                        add_waiting(n_waiting, waiting, sums)
                        n_waiting = NO_BITS
            row += 1
            if row == n_rows:
                row = 0
    add_waiting(n_waiting, waiting, sums)
    return n_stale


@kernel
def plan_rounds(last: int, chunk: Chunk, arrays: Arrays, plan: Plan, ring: Int32s, sent_ahead: Int64s) -> None:
    """Simulate the rounds of a chunk, up to before `last`, by a plan; without one if nothing travels.

    `ring[v, t % reach]` is the beginning of the record of the message that v made in round t.
    """
    agents, holders, rule, keys, state = arrays.agents, arrays.holders, arrays.rule, arrays.keys, arrays.state
    known, pulls, messages, counts = arrays.known, arrays.pulls, arrays.messages, arrays.counts
    reach, first, stop, arms = rule.reach, chunk.first, chunk.stop, agents.arms
    for t in range(first, last):
        begin(t, chunk, agents, holders, rule, keys, state, known, pulls, messages, counts)
        if is_set(stop):
            return
        if reach > 0:
            keep_messages(t, reach, pulls, plan, messages, ring, sent_ahead)
            note_made(t - first, pulls, chunk.made)
            chunk.sent[t - first] = take_sent(t % reach, reach, sent_ahead)
            counts[fate.STALE] += deliver_by_plan(t, reach, ZERO, 1, arms, holders, messages, plan, ring, state, stop)


@kernel
def pull_part(
    t: int, chunk: Chunk, arrays: Arrays, plan: Plan, ring: Int32s, sent_ahead: Int64s, regrets: Floats
) -> int:
    """Begin round `t` for a part of the agents; how often messages of theirs are sent in it.

    Others do the same for the other agents meanwhile. The regret of v is left in `regrets[t % 2, v]`, since sums must
    be added in the order of agents.
    """
    agents, rule, keys, state = arrays.agents, arrays.rule, arrays.keys, arrays.state
    pulls, messages = arrays.pulls, arrays.messages
    slots, gaps = pulls.slots, pulls.gaps
    pull_rounds(t, t + 1, agents, chunk, keys, rule.asks_best, state, pulls)
    for v in range(pulls.first, pulls.last):
        regrets[t % 2, v] = gaps[v] if slots[v] >= 0 else 0.0
    if rule.emission != EVERY_PULL:
        emit(t, agents, rule, pulls, state)
    keep_messages(t, rule.reach, pulls, plan, messages, ring, sent_ahead)
    note_made(t - chunk.first, pulls, chunk.made)
    n_sent: int = take_sent(t % rule.reach, rule.reach, sent_ahead)
    return n_sent


@kernel
def deliver_part(t: int, part: int, n_parts: int, arrays: Arrays, plan: Plan, ring: Int32s, stop: Int64s) -> int:
    """What `deliver_by_plan` does, for Python to call."""
    reach, arms, holders, messages = arrays.rule.reach, arrays.agents.arms, arrays.holders, arrays.messages
    n_stale: int = deliver_by_plan(t, reach, part, n_parts, arms, holders, messages, plan, ring, arrays.state, stop)
    return n_stale


@kernel
def sum_in_order(numbers: Floats) -> float:
    """The sum of some numbers, added one after the other."""
    total = 0.0
    for i in range(len(numbers)):
        total += numbers[i]
    return total
