"""Rounds in which every copy of every message is walked, in the order that the published rules give.

Their memory forgets: an agent remembers the last ttl * n_agents ids that it accepted, so whether a copy is new depends
on everything the agent accepted before, and on the order of senders and messages. An id is remembered exactly if it was
accepted and fewer than that many ids were accepted since; one number for each id and agent says so.

An id stands for (origin, arm, reward). Rewards of continuous laws never repeat, so a message's place in the ring of
those that may still travel is its id; other rewards have an id for each slot and value.
"""

from __future__ import annotations

import numpy as np

from ....protocols.relaying import ABSORB, STOP
from . import fate
from .compiling import helper, kernel, routine
from .emissions import emit, learn_sum
from .faults import arrives, restart
from .forgetting import begin_heard, block_of, enter
from .layout import (
    EVERY_PULL,
    Agents,
    Arrays,
    Chunk,
    FaultRows,
    Int64s,
    Keys,
    Known,
    Learned,
    Messages,
    Pulls,
    Queue,
    Rule,
    State,
    Walked,
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


@helper
def has_faults(faults: FaultRows) -> bool:
    """Whether copies may be lost."""
    return faults.up.shape[1] > 0 or faults.loss > 0.0


@helper
def has_no_faults(faults: FaultRows) -> bool:
    """In the place of `has_faults` where nothing fails: a copy is walked a little faster without asking."""
    return False


@routine
def begin_walk(
    t: int,
    chunk: Chunk,
    agents: Agents,
    rule: Rule,
    keys: Keys,
    state: State,
    known: Known,
    pulls: Pulls,
    messages: Messages,
    walked: Walked,
) -> None:
    """Begin round `t`: whoever lost its memory starts afresh, all pull, and what they send is queued."""
    n_agents, reach, row = len(agents.every), rule.reach, t % rule.reach
    queue, next_queue = (walked.even, walked.odd) if t % 2 == 0 else (walked.odd, walked.even)
    ids, accepted, kept_until, learned = walked.ids, walked.accepted, walked.kept_until, walked.learned
    faults, now_slots = chunk.faults, pulls.slots
    begin_heard(t, keys, messages, known)
    if len(faults.restarts) > 0:
        restart(t, agents, chunk, known, state)
        up_row = t - faults.first_round
        for i in range(faults.restart_starts[up_row], faults.restart_starts[up_row + 1]):
            if is_set(chunk.stop):
                return
            accepted[faults.restarts[i]] = 0
            kept_until[:, faults.restarts[i]] = 0
    pull_rounds(t, t + 1, agents, chunk, keys, rule.asks_best, state, pulls)
    # Which of its values a reward is must be asked before the emission replaces it by a sum.
    for v in range(n_agents):
        slot, message = now_slots[v], row * n_agents + v
        ids[message] = message
        if slot >= 0 and walked.discrete[agents.arms[slot]] == 1:
            code = chunk.codes[t - chunk.first, slot] if chunk.has_tape else int(pulls.rewards[v] > 0.0)
            ids[message] = reach * n_agents + slot * walked.n_codes + code
    if rule.emission != EVERY_PULL:
        emit(t, agents, rule, pulls, state)
    for v in range(n_agents):
        if is_set(chunk.stop):
            return
        slot, message = now_slots[v], row * n_agents + v
        messages.slots[v, row] = slot
        messages.amounts[v, row] = pulls.amounts[v]
        messages.rewards[v, row] = pulls.rewards[v]
        if slot < 0:
            continue
        if ids[message] == message:
            kept_until[message, :] = 0
        push(queue, v, message, rule.ttl)
    for message in range(reach * n_agents):
        learned.head[message] = -1
    learned.n_used[0] = 0
    for v in range(n_agents):
        next_queue.head[v] = -1
    next_queue.n_used[0] = 0
    walked.cursor[0], walked.cursor[1] = 0, queue.head[0]


@routine
def learn_in_order(
    t: int, reach: int, messages: Messages, learned: Learned, keys: Keys, known: Known, state: State, stop: Int64s
) -> int:
    """Add what was learned in a round, in ascending (origin, round of making); how much of it changes nothing.

    The oldest row of the ring comes after the newest, which is that of round `t`.
    """
    slots, amounts, rewards = messages.slots, messages.amounts, messages.rewards
    sums, blocks, row = state.sums, state.blocks, t % reach
    first_learner, learners, next_learner = learned.head, learned.learner, learned.following
    n_agents, n_stale = len(slots), 0
    for origin in range(n_agents):
        if is_set(stop):
            return n_stale
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
                    n_stale += learn_sum(learner, amount, reward, place, known.counts, known.totals, sums)
                else:
                    block = block_of(t - (row - message_row) % reach, t, keys)
                    n_stale += 1 if amount == 0.0 or block < 0 else 0
                    if block >= 0:
                        enter(learner, amount, reward, block, sums, blocks)
                entry = np.int64(next_learner[entry])
    return n_stale


@kernel
def walk_rounds(first: int, last: int, chunk: Chunk, arrays: Arrays, walked: Walked) -> int:
    """Simulate the rounds from `first` to before `last`, a part of the chunk; returns the round that comes next.

    It returns early if a queue, or the list of learners, has no place for one more entry of every agent: before a
    round, or in the middle of one, between two messages. The next call goes on there, with more place.
    """
    agents, _, rule, keys, state, known, pulls, messages, counts = arrays
    ttl, reach, n_agents = rule.ttl, rule.reach, len(agents.every)
    network, links, faults, cursor = chunk.network, chunk.links, chunk.faults, walked.cursor
    first_of_chunk, stop, sent = chunk.first, chunk.stop, chunk.sent
    indices, on_link, position_of, offsets = network.indices, links.on_link, agents.position, agents.offsets
    ids, accepted, kept_until, picks = walked.ids, walked.accepted, walked.kept_until, walked.picks
    learned, slots, arms = walked.learned, messages.slots, agents.arms
    first_learner, learners, next_learner = learned.head, learned.learner, learned.following
    memory, counts_links, has_outages = ttl * n_agents, len(links.on_link) > 0, faults.up.shape[1] > 0
    is_faulty = has_faults(faults)
    for t in range(first, last):
        queue, next_queue = (walked.even, walked.odd) if t % 2 == 0 else (walked.odd, walked.even)
        starts = network.starts[0 if network.is_static else t - network.first_round]
        step, row = t - first_of_chunk, t % reach
        if cursor[0] < 0:
            if queue.n_used[0] + n_agents > len(queue.message):
                return t
            begin_walk(t, chunk, agents, rule, keys, state, known, pulls, messages, walked)
            if is_set(stop):
                return t
        head, message_of, ttl_of, following = queue.head, queue.message, queue.ttl, queue.following
        link_row = links.rows[t - links.first_round] if counts_links else 0
        for v in range(cursor[0], n_agents):
            entry = cursor[1] if v == cursor[0] else np.int64(head[v])
            if has_outages and faults.up[t - faults.first_round, v] == 0:
                entry = -1
            while entry >= 0:
                has_place = next_queue.n_used[0] + n_agents <= len(next_queue.message)
                if is_set(stop) or not has_place or learned.n_used[0] + n_agents > len(learners):
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
                counts[fate.SENT] += n_receivers
                sent[step] += n_receivers
                for k in range(n_receivers):
                    place = picks[k] if rule.n_targets > 0 else starts[v] + k
                    if counts_links:
                        on_link[link_row + place] += 1
                    receiver = np.int64(indices[np.uint64(place)])
                    if is_faulty and not arrives(origin, made, v, receiver, t, faults):
                        counts[fate.LOST] += 1
                        continue
                    n_accepted = accepted[np.uint64(receiver)]
                    if n_accepted < kept_until[message_id, np.uint64(receiver)]:
                        continue
                    accepted[receiver] = n_accepted + 1
                    kept_until[message_id, receiver] = n_accepted + 1 + memory
                    counts[fate.DELIVERED] += 1
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
                        counts[fate.HEARD] += 1
                        n_learned = learned.n_used[0]
                        learners[n_learned] = offsets[receiver] + position
                        next_learner[n_learned] = first_learner[message]
                        first_learner[message] = n_learned
                        learned.n_used[0] = n_learned + 1
                    if decision == ABSORB:
                        counts[fate.ABSORBED] += 1
                    elif decision == STOP:
                        counts[fate.STOPPED] += 1
                    elif hops_left <= 1:
                        counts[fate.EXPIRED] += 1
                    else:
                        counts[fate.QUEUED if t == rule.horizon else fate.RELAYED] += 1
                        push(next_queue, receiver, message, hops_left - 1)
        cursor[0] = -1
        counts[fate.STALE] += learn_in_order(t, reach, messages, learned, keys, known, state, stop)
        if is_set(stop):
            return t
    return last
