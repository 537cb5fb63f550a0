"""Rounds in which every copy of every message is walked, in the order that the published rules give.

Their memory forgets: an agent remembers the last ttl * n_agents ids that it accepted, so whether a copy is new depends
on everything the agent accepted before, and on the order of senders and messages. An id is remembered exactly if it was
accepted and fewer than that many ids were accepted since; one number for each id and agent says so.

An id stands for (origin, arm, reward). Rewards of continuous laws never repeat, so a message's place in the ring of
those that may still travel is its id; other rewards have an id for each slot and value.
"""

from __future__ import annotations

import numpy as np

from ....protocols.base import ABSORB, STOP
from .compiling import helper, kernel
from .emissions import emit, learn_sum
from .faults import arrives, restart
from .layout import (
    ABSORBED,
    COUNT,
    DELIVERED,
    EVERY_PULL,
    EXPIRED,
    HEARD,
    LOST,
    QUEUED,
    RELAYED,
    SENT,
    STALE,
    STOPPED,
    TOTAL,
    Agents,
    Chunk,
    Int16s,
    Int32s,
    Int64s,
    Keys,
    Known,
    Learned,
    Messages,
    Pulls,
    Queue,
    Rule,
    State,
)
from .pulls import pull_rounds
from .scalars import random_relay, uniform
from .spread import pick_neighbours
from .stopping import is_set


@helper
def push(queue: Queue, agent: int, message: int, ttl: int) -> None:
    """Put a message in front of an agent's queue: last in, first out."""
    entry = queue.n_used[0]
    queue.n_used[0] = entry + 1
    queue.message[entry] = message
    queue.ttl[entry] = ttl
    queue.following[entry] = queue.head[agent]
    queue.head[agent] = entry


@kernel
def walk_rounds(
    first: int,
    last: int,
    chunk: Chunk,
    agents: Agents,
    rule: Rule,
    keys: Keys,
    discrete: Int16s,
    n_codes: int,
    state: State,
    known: Known,
    picks: Int32s,
    pulls: Pulls,
    messages: Messages,
    ids: Int64s,
    accepted: Int64s,
    accepted_as: Int64s,
    even: Queue,
    odd: Queue,
    learned: Learned,
    cursor: Int64s,
    counts: Int64s,
) -> int:
    """Simulate the rounds from `first` to before `last`, a part of the chunk; returns the round that comes next.

    It returns early if a queue, or the list of learners, has no place for one more entry of every agent: before a
    round, or in the middle of one, between two messages. `cursor` keeps whose message comes next, -1 if the round has
    not begun, and which entry of its queue that is. The next call goes on there, with more place.

    `accepted[w]` is how many ids agent w has accepted, and `accepted_as[id, w]` which of them that id was, from 1; 0 if
    it never was. Messages are numbered row * n_agents + origin, row being their round modulo reach. What is sent in an
    even round lies in the queue `even`, and what is received in it goes to `odd`.
    """
    ttl, reach = rule.ttl, rule.reach
    n_agents = len(agents.every)
    memory, n_messages = ttl * n_agents, reach * n_agents
    network, links, faults = chunk.network, chunk.links, chunk.faults
    now_slots, slots, amounts, rewards = pulls.slots, messages.slots, messages.amounts, messages.rewards
    indices, on_link, position_of, offsets = network.indices, links.on_link, agents.position, agents.offsets
    arms, counts_links = agents.arms, len(links.on_link) > 0
    has_outages = faults.up.shape[1] > 0
    is_faulty = has_outages or faults.loss > 0.0
    for t in range(first, last):
        queue, next_queue = (even, odd) if t % 2 == 0 else (odd, even)
        row_of_network = 0 if network.is_static else t - network.first_round
        starts = network.starts[row_of_network]
        step, row = t - chunk.first, t % reach
        if cursor[0] < 0:
            if queue.n_used[0] + n_agents > len(queue.message):
                return t
            if len(faults.restarts) > 0:
                restart(t, agents, chunk, known, state)
                up_row = t - faults.first_round
                for i in range(faults.restart_starts[up_row], faults.restart_starts[up_row + 1]):
                    if is_set(chunk.stop):
                        return t
                    accepted[faults.restarts[i]] = 0
                    accepted_as[:, faults.restarts[i]] = 0
            pull_rounds(t, t + 1, agents, chunk, keys, rule.asks_best, state, pulls)
            # Which of its values a reward is must be asked before the emission replaces it by a sum.
            for v in range(n_agents):
                slot = now_slots[v]
                message = row * n_agents + v
                ids[message] = message
                if slot >= 0 and discrete[agents.arms[slot]] == 1:
                    code = chunk.codes[step, slot] if chunk.has_tape else int(pulls.rewards[v])
                    ids[message] = n_messages + slot * n_codes + code
            if rule.emission != EVERY_PULL:
                emit(t, agents, rule, pulls, state)
            for v in range(n_agents):
                if is_set(chunk.stop):
                    return t
                slot = now_slots[v]
                slots[v, row] = slot
                amounts[v, row] = pulls.amounts[v]
                rewards[v, row] = pulls.rewards[v]
                if slot < 0:
                    continue
                message = row * n_agents + v
                if ids[message] == message:
                    accepted_as[message, :] = 0
                push(queue, v, message, ttl)
            for message in range(n_messages):
                learned.head[message] = -1
            learned.n_used[0] = 0
            for v in range(n_agents):
                next_queue.head[v] = -1
            next_queue.n_used[0] = 0
            cursor[0], cursor[1] = 0, queue.head[0]
        head, message_of, ttl_of, following = queue.head, queue.message, queue.ttl, queue.following
        first_learner, learners, next_learner = learned.head, learned.learner, learned.following
        link_row = links.rows[t - links.first_round] if counts_links else 0
        for v in range(cursor[0], n_agents):
            entry = cursor[1] if v == cursor[0] else np.int64(head[v])
            if has_outages and faults.up[t - faults.first_round, v] == 0:
                entry = -1
            while entry >= 0:
                has_place = next_queue.n_used[0] + n_agents <= len(next_queue.message)
                if is_set(chunk.stop) or not has_place or learned.n_used[0] + n_agents > len(learners):
                    cursor[0], cursor[1] = v, entry
                    return t
                message = message_of[entry]
                hops_left = ttl_of[entry]
                entry = np.int64(following[entry])
                origin = message % n_agents
                made = t - (row - message // n_agents) % reach
                arm, message_id = arms[slots[origin, message // n_agents]], np.uint64(ids[message])
                n_receivers = starts[v + 1] - starts[v]
                if rule.n_targets > 0:
                    n_receivers = pick_neighbours(
                        origin, made, v, hops_left, -1, starts[v], starts[v + 1], indices, rule, picks
                    )
                counts[SENT] += n_receivers
                chunk.sent[step] += n_receivers
                for k in range(n_receivers):
                    place = picks[k] if rule.n_targets > 0 else starts[v] + k
                    if counts_links:
                        on_link[link_row + place] += 1
                    receiver = np.int64(indices[np.uint64(place)])
                    if is_faulty and not arrives(origin, made, v, receiver, t, faults):
                        counts[LOST] += 1
                        continue
                    known_as = accepted_as[message_id, np.uint64(receiver)]
                    if known_as > 0 and accepted[np.uint64(receiver)] - known_as < memory:
                        continue
                    accepted[receiver] += 1
                    accepted_as[message_id, receiver] = accepted[receiver]
                    counts[DELIVERED] += 1
                    position = position_of[receiver, arm]
                    has_arm = position >= 0
                    degree = starts[receiver + 1] - starts[receiver]
                    if rule.is_random:
                        u = uniform(rule.stop_k0, rule.stop_k1, origin, made, receiver, hops_left - 1)
                        decision = random_relay(has_arm, hops_left - 1, degree, u, rule.parameter)
                    else:
                        decision = rule.decision[
                            1 if has_arm else 0, ttl - hops_left, degree if rule.decision.shape[2] > 1 else 0
                        ]
                    if has_arm and not (decision == STOP and rule.stop_before_use):
                        counts[HEARD] += 1
                        n_learned = learned.n_used[0]
                        learners[n_learned] = offsets[receiver] + position
                        next_learner[n_learned] = first_learner[message]
                        first_learner[message] = n_learned
                        learned.n_used[0] = n_learned + 1
                    if decision == ABSORB:
                        counts[ABSORBED] += 1
                    elif decision == STOP:
                        counts[STOPPED] += 1
                    elif hops_left <= 1:
                        counts[EXPIRED] += 1
                    else:
                        counts[QUEUED if t == rule.horizon else RELAYED] += 1
                        push(next_queue, receiver, message, hops_left - 1)
        cursor[0] = -1
        # Additions in ascending (origin, round of making); the oldest row of the ring comes after the newest.
        for origin in range(n_agents):
            if is_set(chunk.stop):
                return t
            message_row = row
            for _ in range(reach):
                message_row += 1
                if message_row == reach:
                    message_row = 0
                entry = np.int64(first_learner[message_row * n_agents + origin])
                while entry >= 0:
                    learner = learners[entry]
                    amount, reward = amounts[origin, message_row], rewards[origin, message_row]
                    if len(known.counts) > 0:
                        place = known.rows[slots[origin, message_row]] + known.rank[learner]
                        counts[STALE] += learn_sum(
                            learner, amount, reward, place, known.counts, known.totals, state.sums
                        )
                    else:
                        state.sums[learner, COUNT] += amount
                        state.sums[learner, TOTAL] += reward
                    entry = np.int64(next_learner[entry])
    return last
