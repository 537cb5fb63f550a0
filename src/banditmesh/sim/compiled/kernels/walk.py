"""Rounds in which every copy of every message is walked, in the order that the published rules give.

Their memory forgets: an agent remembers the last ttl * n_agents ids that it accepted, so whether a copy is new depends
on everything the agent accepted before, and on the order of senders and messages. Which ids an agent remembers is a
set, and what it accepted is a ring, in order; what an agent sends in a round is what it accepted in the last one, the
newest first, so that a ring is its queue as well.

What an agent forgets matters only while a copy may still come. That is looked up only once an agent has accepted so
much that it forgets what came in the last `reach` rounds. Until then, whether a copy is new does not depend on what
the sender sends with it, so all that a sender sends to a receiver is looked at in one loop without a branch: whether a
copy is new cannot be predicted. What becomes of what an agent accepted is asked when all have sent.

An id stands for (origin, arm, reward). Rewards of continuous laws never repeat, so a message is its own id, and its
number is used again when no agent can forget it any more: twice reach rounds later. Other rewards have an id for each
slot and value, and what is forgotten of these always matters.
"""

from __future__ import annotations

import numpy as np

from ....protocols.relaying import ABSORB, RELAY, STOP
from ..bitsets import WORD
from . import fate
from .compiling import helper, kernel, routine
from .emissions import emit
from .faults import keep_arriving, restart
from .forgetting import begin_heard
from .lanes import padded
from .layout import (
    ACCEPTED,
    EVERY_PULL,
    FORGETS_FROM,
    N_QUEUED,
    NO_AGENT,
    NO_BITS,
    ONE,
    PLACE,
    QUEUED_TO,
    WORDS,
    ZERO,
    Agents,
    Arrays,
    Chunk,
    FaultRows,
    Int32s,
    Int64s,
    Keys,
    Known,
    Messages,
    OnLinks,
    Pulls,
    Rule,
    State,
    Walked,
)
from .pulls import pull_rounds
from .scalars import inlined_uniform, random_relay
from .sets import learn_in_order, rank_messages
from .spread import pick_neighbours
from .stopping import is_set


@helper
def begin_memories(t: int, rule: Rule, faults: FaultRows, walked: Walked) -> None:
    """Agents' memories at the beginning of round `t`: which are lost, what is queued, and when forgetting matters.

    What an agent accepted `reach` or more rounds ago, no copy is left of; unless ids return.
    """
    memories, accepted, remembered = walked.memories, walked.accepted, walked.remembered
    n_agents, reach, up_row = len(memories), rule.reach, t - faults.first_round
    if len(faults.restarts) > 0:
        for i in range(faults.restart_starts[up_row], faults.restart_starts[up_row + 1]):
            v = faults.restarts[i]
            memories[v, :] = accepted[:, v] = remembered[v, :] = 0
    n_words = -(-n_agents // WORD)
    first_word = t % (2 * reach) * n_words
    for v in range(n_agents):
        memories[v, QUEUED_TO], memories[v, N_QUEUED] = memories[v, PLACE], memories[v, ACCEPTED]
        memories[v, N_QUEUED] -= accepted[(t - 2) % reach, v]
        accepted[(t - 1) % reach, v] = memories[v, ACCEPTED]
        n_gone = 0 if walked.n_codes > 0 else accepted[t % reach, v]
        memories[v, FORGETS_FROM] = rule.ttl * n_agents + n_gone
        for word in range(first_word, first_word + n_words):
            remembered[v, word] = 0


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
    """Begin round `t`: whoever lost its memory starts afresh, all pull, and messages are made of the pulls."""
    n_agents, row, first, now_slots = len(agents.every), t % rule.reach, walked.first[0], pulls.slots
    begin_heard(t, keys, messages, known)
    if len(chunk.faults.restarts) > 0:
        restart(t, agents, chunk, known, state)
    begin_memories(t, rule, chunk.faults, walked)
    pull_rounds(t, t + 1, agents, chunk, keys, rule.asks_best, state, pulls)
    # Which of its values a reward is must be asked before the emission replaces it by a sum.
    for v in range(n_agents):
        slot = now_slots[v]
        if walked.n_codes > 0:
            walked.ids[first + v] = first + v
            if slot >= 0 and walked.discrete[agents.arms[slot]] == 1:
                code = chunk.codes[t - chunk.first, slot] if chunk.has_tape else int(pulls.rewards[v] > 0.0)
                walked.ids[first + v] = len(walked.arms) + slot * walked.n_codes + code
    if rule.emission != EVERY_PULL:
        emit(t, agents, rule, pulls, state)
    for v in range(n_agents):
        if is_set(chunk.stop):
            return
        slot = now_slots[v]
        messages.slots[v, row] = slot
        messages.amounts[v, row] = pulls.amounts[v]
        messages.rewards[v, row] = pulls.rewards[v]
        walked.origins[first + v], walked.rounds[first + v] = v, t
        walked.arms[first + v] = agents.arms[slot] if slot >= 0 else -1


@helper
def write_queue(v: int, walked: Walked) -> np.uint64:
    """Write the messages that v sends in this round, in order; how many."""
    recent, queue, memories, message = walked.recent, walked.queue, walked.memories, walked.first[0] + v
    n_places, place, sender = recent.shape[1], memories[v, QUEUED_TO], np.uint64(v)
    queue[0] = message
    n_queued: np.uint64 = ONE if walked.arms[message] >= 0 else NO_BITS
    for _ in range(memories[v, N_QUEUED]):
        place = (place if place > 0 else n_places) - 1
        number = recent[sender, np.uint64(place)]
        queue[n_queued] = number
        n_queued += ONE if number >= 0 else NO_BITS
    return n_queued


@helper
def take(receiver: np.uint64, message: np.uint64, rule: Rule, walked: Walked) -> None:
    """A copy reaches an agent, which accepts it if it does not remember its id, and may forget another for it."""
    memories, recent, remembered, ids = walked.memories, walked.recent, walked.remembered, walked.recent_ids
    number = np.uint64(walked.ids[message] if walked.n_codes > 0 else np.int64(message))
    if remembered[receiver, number // WORDS] >> number % WORDS & ONE != NO_BITS:
        return
    n_accepted, place, n_places = memories[receiver, ACCEPTED], memories[receiver, PLACE], recent.shape[1]
    if n_accepted >= memories[receiver, FORGETS_FROM]:
        # An entry may be marked, see `settle`.
        oldest_place = place - rule.ttl * len(memories)
        oldest = np.int64(ids[receiver, oldest_place + n_places if oldest_place < 0 else oldest_place])
        oldest = oldest if oldest >= 0 else ~oldest
        # The number of a message may be another's by now if it was accepted long ago.
        is_gone = n_accepted - rule.ttl * len(memories) < walked.accepted[walked.first[1], receiver]
        if oldest >= len(walked.arms) or not is_gone:
            remembered[receiver, oldest // WORD] &= ~(ONE << np.uint64(oldest % WORD))
    remembered[receiver, number // WORDS] |= ONE << number % WORDS
    ids[receiver, place], recent[receiver, place] = number, message
    memories[receiver, ACCEPTED] = n_accepted + 1
    memories[receiver, PLACE] = place + 1 if place + 1 < n_places else 0


@helper
def take_all(receiver: np.uint64, n_queued: np.uint64, rule: Rule, walked: Walked) -> None:
    """All that a sender sends reaches an agent: at once, unless the agent then forgets what matters."""
    memories, recent, remembered, queue = walked.memories, walked.recent, walked.remembered, walked.queue
    n_places, first = np.uint64(recent.shape[1]), NO_BITS
    while first < n_queued:
        begin = place = np.uint64(memories[receiver, PLACE])
        end = min(n_queued, first + n_places - begin)
        for i in range(first, end if walked.n_codes == 0 else first):
            number = np.uint64(queue[i])
            recent[receiver, place] = number
            place += remembered[receiver, number // WORDS] >> number % WORDS & ONE ^ ONE
        n_accepted = memories[receiver, ACCEPTED] + np.int64(place - begin)
        if walked.n_codes > 0 or n_accepted > memories[receiver, FORGETS_FROM]:
            for i in range(first, end):
                take(receiver, np.uint64(queue[i]), rule, walked)
        else:
            for i in range(begin, place):
                number = np.uint64(recent[receiver, i])
                remembered[receiver, number // WORDS] |= ONE << number % WORDS
            memories[receiver, ACCEPTED] = n_accepted
            memories[receiver, PLACE] = place if place < n_places else NO_BITS
        first = end


@helper
def send_chosen(
    t: int,
    v: int,
    n_queued: np.uint64,
    starts: Int64s,
    indices: Int32s,
    rule: Rule,
    walked: Walked,
    links: OnLinks,
    faults: FaultRows,
    counts: Int64s,
) -> int:
    """Agent v sends all that is queued, one message after the other, to drawn neighbours or over links that may fail.

    Returns how many copies it sends.
    """
    picks, drawn, chances, on_link = walked.picks, walked.drawn, walked.chances, links.on_link
    counts_links, lowest, highest = len(on_link) > 0, starts[v], starts[v + 1]
    link_row = links.rows[t - links.first_round] if counts_links else 0
    n_sent = 0
    for i in range(n_queued):
        message = np.uint64(walked.queue[i])
        origin, made = np.int64(walked.origins[message]), np.int64(walked.rounds[message])
        n_drawn, ttl = highest - lowest, rule.ttl - (t - made)
        if rule.n_targets > 0:
            n_drawn = pick_neighbours(origin, made, v, ttl, NO_AGENT, lowest, highest, indices, rule, picks)
        n_sent += n_drawn
        for k in range(n_drawn):
            place = np.int64(picks[k]) if rule.n_targets > 0 else lowest + k
            drawn[k] = indices[place]
            if counts_links:
                on_link[link_row + place] += 1
        n_arriving = n_drawn
        if faults.up.shape[1] > 0 or faults.loss > 0.0:
            n_arriving = keep_arriving(origin, made, t, v, n_drawn, drawn, chances, faults)
            counts[fate.LOST] += n_drawn - n_arriving
        for k in range(n_arriving):
            take(np.uint64(drawn[k]), message, rule, walked)
    return n_sent


@helper
def send_to_all(
    t: int, v: int, n_queued: np.uint64, starts: Int64s, indices: Int32s, rule: Rule, walked: Walked, links: OnLinks
) -> int:
    """Agent v sends all that is queued to all its neighbours; how many copies that are."""
    lowest, highest = starts[v], starts[v + 1]
    for i in range(np.uint64(lowest), np.uint64(highest)):
        take_all(np.uint64(indices[i]), n_queued, rule, walked)
    if len(links.on_link) > 0:
        link_row = links.rows[t - links.first_round]
        for i in range(link_row + lowest, link_row + highest):
            links.on_link[i] += np.int64(n_queued)
    n_sent: int = (highest - lowest) * np.int64(n_queued)
    return n_sent


@helper
def draw_for_each(t: int, w: int, n_new: np.uint64, rule: Rule, walked: Walked) -> None:
    """Draw for each message that w accepted in round `t` what its relay rule is given, all at once: see `lanes`."""
    recent, queue, chances, place = walked.recent, walked.queue, walked.chances, walked.memories[w, QUEUED_TO]
    for i in range(n_new):
        queue[i] = recent[np.uint64(w), np.uint64(place)]
        place = place + 1 if place + 1 < recent.shape[1] else 0
    n_drawn = padded(NO_BITS, n_new, len(chances))
    for i in range(n_new, n_drawn):
        queue[i] = 0
    k0, k1, ttl = rule.stop_k0, rule.stop_k1, rule.ttl - 1
    for i in range(n_drawn):
        message = np.uint64(queue[i])
        origin, made = np.int64(walked.origins[message]), np.int64(walked.rounds[message])
        chances[i] = inlined_uniform(k0, k1, origin, made, w, ttl - (t - made))


@helper
def settle(t: int, w: int, starts: Int64s, agents: Agents, rule: Rule, walked: Walked, counts: Int64s) -> None:
    """Ask what becomes of the messages that w accepted in round `t`.

    What is not relayed is marked in the ring, and what is learned is noted in the order in which it counts.
    """
    recent, memories, learning, chances = walked.recent, walked.memories, walked.learning, walked.chances
    decisions, positions, is_random, shift = rule.decision, agents.position, rule.is_random, walked.shift
    agent, n_places, place, oldest = np.uint64(w), recent.shape[1], memories[w, QUEUED_TO], t - rule.reach + 1
    queue = walked.queue
    n_new = np.uint64(memories[w, ACCEPTED] - walked.accepted[(t - 1) % rule.reach, w])
    degree = np.int64(starts[w + 1] - starts[w])
    asked = np.uint64(degree if decisions.shape[2] > 1 else 0)
    n_learned = n_absorbed = n_stopped = n_relayed = ZERO
    if is_random:
        draw_for_each(t, w, n_new, rule, walked)
    else:
        # Side by side, so that no branch tells them apart: it could not be predicted.
        for step in range(rule.reach):
            queue[2 * step], queue[2 * step + 1] = decisions[0, step, asked], decisions[1, step, asked]
    for i in range(n_new):
        message = np.uint64(recent[agent, np.uint64(place)])
        arm, made, origin = np.uint64(walked.arms[message]), np.int64(walked.rounds[message]), walked.origins[message]
        hop, has_arm = t - made, positions[agent, arm] >= 0
        if is_random:
            decision = np.int64(random_relay(has_arm, rule.ttl - 1 - hop, degree, chances[i], rule.parameter))
        else:
            decision = np.int64(queue[np.uint64(2 * hop) + np.uint64(has_arm)])
        learns = has_arm & ((decision != STOP) | (not rule.stop_before_use))
        relays = (decision == RELAY) & (hop < rule.ttl - 1)
        rank = (np.uint64(origin) << shift) + np.uint64(made - oldest)
        learning[rank // WORDS] |= np.uint64(learns) << rank % WORDS
        recent[agent, np.uint64(place)] = message if relays else ~message
        place = place + 1 if place + 1 < n_places else 0
        n_learned += np.int64(learns)
        n_absorbed += np.int64(decision == ABSORB)
        n_stopped += np.int64(decision == STOP)
        n_relayed += np.int64(relays)
    counts[fate.DELIVERED] += np.int64(n_new)
    counts[fate.HEARD] += n_learned
    counts[fate.ABSORBED] += n_absorbed
    counts[fate.STOPPED] += n_stopped
    counts[fate.EXPIRED] += np.int64(n_new) - n_absorbed - n_stopped - n_relayed
    counts[fate.QUEUED if t == rule.horizon else fate.RELAYED] += n_relayed


@routine
def send_all(t: int, starts: Int64s, agents: Agents, chunk: Chunk, rule: Rule, walked: Walked, counts: Int64s) -> None:
    """All agents send what they have queued, one agent after the other."""
    indices, links, faults, stop = chunk.network.indices, chunk.links, chunk.faults, chunk.stop
    up = faults.up
    chooses = rule.n_targets > 0 or up.shape[1] > 0 or faults.loss > 0.0
    n_sent = 0
    for v in range(len(agents.every)):
        if is_set(stop):
            return
        if up.shape[1] > 0 and up[t - faults.first_round, v] == 0:
            continue
        n_queued = write_queue(v, walked)
        if chooses:
            n_sent += send_chosen(t, v, n_queued, starts, indices, rule, walked, links, faults, counts)
        else:
            n_sent += send_to_all(t, v, n_queued, starts, indices, rule, walked, links)
    counts[fate.SENT] += n_sent
    chunk.sent[t - chunk.first] = n_sent


@routine
def settle_all(
    t: int,
    starts: Int64s,
    agents: Agents,
    rule: Rule,
    messages: Messages,
    keys: Keys,
    known: Known,
    state: State,
    walked: Walked,
    counts: Int64s,
    stop: Int64s,
) -> None:
    """Ask what becomes of all messages that agents accepted in round `t`, and let them learn."""
    rank_messages(t, rule.reach, walked.shift, agents, messages, walked.ranked)
    for w in range(len(agents.every)):
        if is_set(stop):
            return
        settle(t, w, starts, agents, rule, walked, counts)
        counts[fate.STALE] += learn_in_order(
            t, w, rule.reach, walked.shift, walked.learning, walked.ranked, agents, messages, keys, known, state
        )


@kernel
def walk_rounds(first: int, last: int, chunk: Chunk, arrays: Arrays, walked: Walked) -> None:
    """Simulate the rounds from `first` to before `last`, a part of the chunk.

    Each part of a round is compiled by itself, so that for another policy only the first is compiled again.
    """
    agents, rule, keys, state = arrays.agents, arrays.rule, arrays.keys, arrays.state
    known, pulls, messages, counts = arrays.known, arrays.pulls, arrays.messages, arrays.counts
    network, stop = chunk.network, chunk.stop
    for t in range(first, last):
        starts = network.starts[0 if network.is_static else t - network.first_round]
        walked.first[0], walked.first[1] = t % (2 * rule.reach) * (len(walked.arms) // (2 * rule.reach)), t % rule.reach
        begin_walk(t, chunk, agents, rule, keys, state, known, pulls, messages, walked)
        send_all(t, starts, agents, chunk, rule, walked, counts)
        settle_all(t, starts, agents, rule, messages, keys, known, state, walked, counts, stop)
        if is_set(stop):
            return
