"""Rounds whose messages' fates are known when they are made: nothing is queued, nothing carries an id.

In a round every agent pulls; then, for every origin in ascending order and for each of its messages of the last ttl
rounds, oldest first, the agents that hear it in this round add it to their sums. That is the order of additions that
the reference engine keeps.
"""

from __future__ import annotations

import numpy as np

from .compiling import helper, kernel
from .layout import Agents, Fates, Floats, Int32s, Int64s, Keys, Links, Network, Rule, Scratch, State
from .pulls import pull_agents
from .spread import spread


@helper
def deliver(t: int, ttl: int, planned: bool, rewards: Floats, ring: Fates, learners: Int32s, state: State) -> None:
    """Add what is heard in round `t` to the sums of those who hear it."""
    base, end, counts, totals = ring.base, ring.end, state.counts, state.totals
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
            reward = rewards[v, row]
            learner_row = np.uint64(0 if planned else row)
            for i in range(np.uint64(start), stop):
                learner = np.uint64(learners[learner_row, i])
                counts[learner] += 1.0
                totals[learner] += reward
            row += 1
            if row == ttl:
                row = 0


@helper
def tell_everyone(
    agents: Agents, holder_starts: Int64s, holder_slots: Int32s, slots: Int32s, rewards: Floats, state: State
) -> None:
    """Every agent with the arm hears every observation of this round, as under `Centralised`."""
    for v in range(len(slots)):
        slot = slots[v]
        if slot < 0:
            continue
        arm = agents.arms[slot]
        for i in range(holder_starts[arm], holder_starts[arm + 1]):
            learner = holder_slots[i]
            if learner != slot:
                state.counts[learner] += 1.0
                state.totals[learner] += rewards[v]


@kernel
def run_rounds(
    first: int,
    last: int,
    chunk_start: int,
    network: Network,
    agents: Agents,
    holder_starts: Int64s,
    holder_slots: Int32s,
    rule: Rule,
    planned: bool,
    central: bool,
    clocks: Floats,
    tape: Floats,
    has_tape: bool,
    keys: Keys,
    state: State,
    scratch: Scratch,
    cursor: Int64s,
    now_slots: Int32s,
    now_rewards: Floats,
    slots: Int32s,
    rewards: Floats,
    plan: Fates,
    ring: Fates,
    sent_ahead: Int64s,
    links: Links,
    counts: Int64s,
    regret: Floats,
    sent: Int64s,
) -> int:
    """Simulate the rounds from `first` to before `last`; returns the round that comes next.

    `slots` and `rewards` hold the pulls of the last ttl rounds, by agent and round modulo ttl, `now_slots` and
    `now_rewards` those of the round under way. Row t - chunk_start of `clocks` and `tape` is read, and the same places
    of `regret` and `sent` receive the round's regret and transmissions.

    If the learners of a round do not fit, it returns early, in the middle of that round: `cursor` keeps how many
    agents' messages were spread, -1 if the round has not begun, and how many learners they have. The next call goes on
    there, with more place.
    """
    ttl = rule.ttl
    n_agents = len(agents.every)
    plan_base, plan_end, plan_sent = plan.base, plan.end, plan.sent
    ring_base, ring_end, ring_sent = ring.base, ring.end, ring.sent
    learners = plan.learners if planned else ring.learners
    for t in range(first, last):
        step = t - chunk_start
        if cursor[0] < 0:
            regret[step] = pull_agents(
                t, agents, clocks[step], tape[step if has_tape else 0], has_tape, keys, state, now_slots, now_rewards
            )
            cursor[0] = 0
        if central:
            tell_everyone(agents, holder_starts, holder_slots, now_slots, now_rewards, state)
        if ttl == 0:
            sent[step] = 0
            cursor[0] = -1
            continue
        row = t % ttl
        if not planned:
            for v in range(cursor[0], n_agents):
                slot = now_slots[v]
                if slot < 0:
                    continue
                arm = agents.arms[slot]
                # A message has at most as many learners as its arm has holders.
                if cursor[1] + holder_starts[arm + 1] - holder_starts[arm] > learners.shape[1]:
                    cursor[0] = v
                    return t
                key = v * ttl + row
                cursor[1] += spread(
                    v, arm, t, 1, network, agents, rule, scratch, key, row, cursor[1], ring, counts, links
                )
            cursor[1] = 0
        cursor[0] = -1
        for v in range(n_agents):
            slot = now_slots[v]
            key = v * ttl + row
            slots[v, row] = slot
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
        sent[step] = sent_ahead[row]
        sent_ahead[row] = 0
        for hop in range(ttl):
            sent_ahead[hop] += sent_ahead[ttl + hop]
            sent_ahead[ttl + hop] = 0
        deliver(t, ttl, planned, rewards, ring, learners, state)
    return last
