"""Rounds in which every copy of every message is walked, in the order that the published rules give.

Their memory forgets: an agent remembers the last ttl * n_agents ids that it accepted, so whether a copy is new depends
on everything the agent accepted before, and on the order of senders and messages. An id is remembered exactly if it was
accepted and fewer than that many ids were accepted since; one number for each id and agent says so.

An id stands for (origin, arm, reward). Rewards of continuous laws never repeat, so a message's place in the ring of the
last ttl rounds is its id; other rewards have an id for each slot and value.
"""

from __future__ import annotations

from ...protocols.base import ABSORB, STOP
from .compiling import helper, kernel
from .layout import (
    ABSORBED,
    DELIVERED,
    EXPIRED,
    LEARNED,
    QUEUED,
    RELAYED,
    SENT,
    STOPPED,
    Agents,
    Floats,
    Int16s,
    Int32s,
    Int64s,
    Keys,
    Links,
    Network,
    Queue,
    Rule,
    State,
)
from .pulls import pull_agents
from .scalars import random_relay, uniform
from .spread import pick_neighbours


@helper
def push(queue: Queue, agent: int, message: int, ttl: int) -> None:
    """Put a message in front of an agent's queue: last in, first out."""
    entry = queue.n_used[0]
    queue.n_used[0] = entry + 1
    queue.message[entry] = message
    queue.ttl[entry] = ttl
    queue.following[entry] = queue.head[agent]
    queue.head[agent] = entry
    queue.length[agent] += 1


@kernel
def walk_rounds(
    first: int,
    last: int,
    chunk_start: int,
    network: Network,
    agents: Agents,
    rule: Rule,
    clocks: Floats,
    tape: Floats,
    codes: Int32s,
    has_tape: bool,
    discrete: Int16s,
    n_codes: int,
    keys: Keys,
    state: State,
    picks: Int32s,
    now_slots: Int32s,
    now_rewards: Floats,
    slots: Int32s,
    rewards: Floats,
    ids: Int64s,
    accepted: Int64s,
    accepted_as: Int64s,
    even: Queue,
    odd: Queue,
    links: Links,
    counts: Int64s,
    regret: Floats,
    sent: Int64s,
) -> int:
    """Simulate the rounds from `first` to before `last`; returns the round that comes next.

    It returns early, before a round, if that round's copies may not fit into the queues. `accepted[w]` is how many ids
    agent w has accepted, and `accepted_as[id, w]` which of them that id was, from 1; 0 if it never was. Messages are
    numbered row * n_agents + origin, row being their round modulo ttl. What is sent in an even round lies in the queue
    `even`, and what is received in it goes to `odd`.
    """
    ttl = rule.ttl
    n_agents = len(agents.every)
    memory = ttl * n_agents
    for t in range(first, last):
        queue, next_queue = (even, odd) if t % 2 == 0 else (odd, even)
        row_of_network = 0 if network.is_static else t - network.first_round
        starts = network.starts[row_of_network]
        most = 0
        for v in range(n_agents):
            degree = starts[v + 1] - starts[v]
            most += (queue.length[v] + 1) * (min(rule.n_targets, degree) if rule.n_targets > 0 else degree)
        if most + n_agents > len(queue.message):
            return t
        step = t - chunk_start
        regret[step] = pull_agents(
            t, agents, clocks[step], tape[step if has_tape else 0], has_tape, keys, state, now_slots, now_rewards
        )
        row = t % ttl
        for v in range(n_agents):
            slot = now_slots[v]
            slots[v, row] = slot
            rewards[v, row] = now_rewards[v]
            if slot < 0:
                continue
            message = row * n_agents + v
            if discrete[agents.arms[slot]] == 1:
                code = codes[step, slot] if has_tape else int(now_rewards[v])
                ids[message] = memory + slot * n_codes + code
            else:
                ids[message] = message
                accepted_as[message, :] = 0
            push(queue, v, message, ttl)
        n_learned = 0
        for message in range(memory):
            next_queue.first_learner[message] = -1
        before = counts[SENT]
        for v in range(n_agents):
            next_queue.head[v] = -1
            next_queue.length[v] = 0
        next_queue.n_used[0] = 0
        for v in range(n_agents):
            entry = queue.head[v]
            while entry >= 0:
                message = queue.message[entry]
                hops_left = queue.ttl[entry]
                entry = queue.following[entry]
                origin = message % n_agents
                made = t - (row - message // n_agents) % ttl
                slot = slots[origin, message // n_agents]
                n_receivers = starts[v + 1] - starts[v]
                if rule.n_targets > 0:
                    n_receivers = pick_neighbours(
                        origin, made, v, hops_left, -1, starts[v], starts[v + 1], network.indices, rule, picks
                    )
                counts[SENT] += n_receivers
                for k in range(n_receivers):
                    place = picks[k] if rule.n_targets > 0 else starts[v] + k
                    if len(links.on_link) > 0:
                        links.on_link[links.rows[t - links.first_round] + place] += 1
                    receiver = network.indices[place]
                    known_as = accepted_as[ids[message], receiver]
                    if known_as > 0 and accepted[receiver] - known_as < memory:
                        continue
                    accepted[receiver] += 1
                    accepted_as[ids[message], receiver] = accepted[receiver]
                    counts[DELIVERED] += 1
                    position = agents.position[receiver, agents.arms[slot]]
                    has_arm = position >= 0
                    degree = starts[receiver + 1] - starts[receiver]
                    if rule.is_random:
                        u = uniform(rule.stop_k0, rule.stop_k1, origin, made, receiver, hops_left - 1)
                        decision = random_relay(has_arm, hops_left - 1, degree, u, rule.parameter)
                    else:
                        decision = rule.decision[
                            1 if has_arm else 0, hops_left - 1, degree if rule.decision.shape[2] > 1 else 0
                        ]
                    if has_arm and not (decision == STOP and rule.stop_before_use):
                        counts[LEARNED] += 1
                        next_queue.learner[n_learned] = agents.offsets[receiver] + position
                        next_queue.next_learner[n_learned] = next_queue.first_learner[message]
                        next_queue.first_learner[message] = n_learned
                        n_learned += 1
                    if decision == ABSORB:
                        counts[ABSORBED] += 1
                    elif decision == STOP:
                        counts[STOPPED] += 1
                    elif hops_left <= 1:
                        counts[EXPIRED] += 1
                    else:
                        counts[QUEUED if t == rule.horizon else RELAYED] += 1
                        push(next_queue, receiver, message, hops_left - 1)
        sent[step] = counts[SENT] - before
        # Additions in ascending (origin, round of making); the oldest row of the ring comes after the newest.
        for origin in range(n_agents):
            message_row = row
            for _ in range(ttl):
                message_row += 1
                if message_row == ttl:
                    message_row = 0
                entry = next_queue.first_learner[message_row * n_agents + origin]
                while entry >= 0:
                    learner = next_queue.learner[entry]
                    state.counts[learner] += 1.0
                    state.totals[learner] += rewards[origin, message_row]
                    entry = next_queue.next_learner[entry]
    return last
