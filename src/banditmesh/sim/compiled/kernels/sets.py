"""Messages under way as sets: what an agent has seen, sends or has the arm of is one bit of a row, for each message.

The same as `spread`, for messages that go to all neighbours, unless something fails or links are counted. All messages
under way make their next hop together, 64 of them with each word that an agent takes from a neighbour; only what is
learned is looked at one by one, and what a relay rule must be asked about.

The messages are ranked by origin, then by round, which is the order in which they are learned. `later` is how many
rounds after the oldest of those that may still travel a message was made: the newest are the last, and with each round
all move on by one bit, until they have made their last hop. There is room for `n_rounds` rounds, fewer than `reach` if
that is high, since most messages end soon; if one of the oldest lives on, room is made for more.

An agent's first copy in a round is that from the lowest-numbered of the senders that it is linked to. It will not send
the message back there; so of what it relays, it sends one copy less if it is then still linked to that sender.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ....protocols.relaying import ABSORB, RELAY, STOP
from ..bitsets import WORD
from . import fate
from .compiling import bits_set, helper, lowest_bit, routine
from .emissions import learn_sum
from .forgetting import block_of, enter
from .lanes import padded
from .layout import (
    NO_BITS,
    ONE,
    PAIR,
    WORDS,
    ZERO,
    Abreast,
    Agents,
    Int32s,
    Int64s,
    Keys,
    Known,
    Messages,
    Network,
    Ranked,
    Rule,
    Scratch,
    State,
    Words,
)
from .scalars import inlined_uniform, random_relay
from .stopping import is_set

ALL_BITS: Any = np.uint64(2**64 - 1)


@helper
def count_fates(
    n_delivered: int, n_absorbed: int, n_expired: int, n_stopped: int, n_queued: int, n_heard: int, counts: Int64s
) -> None:
    """Add what became of copies; those that neither ended nor are queued at the horizon were relayed."""
    counts[fate.DELIVERED] += n_delivered
    counts[fate.ABSORBED] += n_absorbed
    counts[fate.EXPIRED] += n_expired
    counts[fate.STOPPED] += n_stopped
    counts[fate.RELAYED] += n_delivered - n_absorbed - n_expired - n_stopped - n_queued
    counts[fate.QUEUED] += n_queued
    counts[fate.HEARD] += n_heard


@helper
def move_on(sets: Words, kept: Words) -> None:
    """All messages move on by one bit, in all rows: behind each row there is a word without bits."""
    one, last = np.uint64(1), np.uint64(WORD - 1)
    for word in range(np.uint64(len(sets) - 1)):
        sets[word] = (sets[word] >> one | sets[word + ONE] << last) & kept[word]


@helper
def rank_messages(t: int, n_rounds: int, shift: np.uint64, agents: Agents, messages: Messages, ranked: Ranked) -> None:
    """What is learned of the messages of the last `n_rounds` rounds, by rank."""
    slots, amounts, rewards = messages.slots, messages.amounts, messages.rewards
    reach = slots.shape[1]
    for v in range(np.uint64(len(slots))):
        row = (t - n_rounds + 1) % reach
        for later in range(np.uint64(n_rounds)):
            rank = (v << shift) + later
            slot = slots[v, np.uint64(row)]
            ranked.arms[rank] = agents.arms[slot] if slot >= 0 else 0
            ranked.amounts[rank], ranked.rewards[rank] = amounts[v, np.uint64(row)], rewards[v, np.uint64(row)]
            row = row + 1 if row + 1 < reach else 0


@helper
def begin_hop(t: int, agents: Agents, rule: Rule, slots: Int32s, abreast: Abreast) -> None:
    """All messages move on, and those that are made in round `t` are put behind them."""
    seen, held, sending, kept = abreast.seen, abreast.held, abreast.sending[t % 2], abreast.kept
    holder_starts, holders, newest = abreast.holder_starts, abreast.holders, np.uint64(abreast.n_rounds - 1)
    stride = np.uint64(len(abreast.fresh) + 1)
    move_on(seen, kept)
    move_on(held, kept)
    move_on(sending, kept)
    for v in range(np.uint64(len(slots))):
        if slots[v] >= 0:
            rank = (v << abreast.shift) + newest
            word, bit = rank // WORDS, ONE << rank % WORDS
            sending[v * stride + word] |= bit
            if rule.origin_remembers:
                seen[v * stride + word] |= bit
            arm = np.uint64(agents.arms[np.uint64(slots[v])])
            for i in range(np.uint64(holder_starts[arm]), np.uint64(holder_starts[arm + ONE])):
                held[np.uint64(holders[i]) + word] |= bit


@helper
def find_stays(t: int, v: int, row: int, network: Network, rule: Rule, abreast: Abreast) -> None:
    """Which of v's links of round `t` there are in the next one as well: by link all bits, or none."""
    starts, indices, stays, marks = network.starts, network.indices, abreast.stays, abreast.marks
    # There is no round after the last one.
    later = row if network.is_static or t == rule.horizon else row + 1
    mark = np.int64(t * len(marks) + v)
    for i in range(np.uint64(starts[later, v]), np.uint64(starts[later, v + 1])):
        marks[np.uint64(indices[i])] = mark
    first = np.uint64(starts[row, v])
    for i in range(first, np.uint64(starts[row, v + 1])):
        stays[i - first] = ALL_BITS if marks[np.uint64(indices[i])] == mark else NO_BITS


@helper
def receive(t: int, v: int, starts: Int64s, indices: Int32s, abreast: Abreast) -> None:
    """What v has a first copy of in round `t`, from its neighbours in ascending order: `fresh`; and `linked_back`."""
    sending, seen, stays, fresh = abreast.sending[t % 2], abreast.seen, abreast.stays, abreast.fresh
    first, last = np.uint64(starts[v]), np.uint64(starts[v + 1])
    n_words, stride = np.uint64(len(fresh)), np.uint64(len(fresh) + 1)
    for word in range(NO_BITS, n_words, PAIR):
        beside, place = word + ONE, np.uint64(v) * stride + word
        before, before_beside = seen[place], seen[place + ONE]
        now, now_beside, linked, linked_beside = before, before_beside, NO_BITS, NO_BITS
        for i in range(first, last):
            sender, stay = np.uint64(indices[i]), stays[i - first]
            new, new_beside = sending[sender * stride + word] & ~now, sending[sender * stride + beside] & ~now_beside
            now |= new
            now_beside |= new_beside
            linked |= new & stay
            linked_beside |= new_beside & stay
        seen[place], seen[place + ONE] = now, now_beside
        fresh[word], fresh[beside] = now & ~before, now_beside & ~before_beside
        abreast.linked_back[word], abreast.linked_back[beside] = linked, linked_beside


@helper
def decide_each(t: int, v: int, degree: int, rule: Rule, abreast: Abreast) -> None:
    """Ask the relay rule about each message that v has a first copy of: which are relayed, absorbed and stopped."""
    fresh, held, decided, ranks, chances = abreast.fresh, abreast.held, abreast.decided, abreast.ranks, abreast.chances
    shift, base, ttl, is_random, n_fresh = (
        abreast.shift,
        np.uint64(v * (len(fresh) + 1)),
        rule.ttl,
        rule.is_random,
        NO_BITS,
    )
    oldest = t - abreast.n_rounds + 1
    for word in range(np.uint64(len(fresh))):
        decided[RELAY, word] = decided[ABSORB, word] = decided[STOP, word] = NO_BITS
        left = fresh[word]
        while left != NO_BITS:
            ranks[n_fresh] = word * WORDS + np.uint64(lowest_bit(left))
            left &= left - ONE
            n_fresh += ONE
    if is_random:
        k0, k1 = rule.stop_k0, rule.stop_k1
        for i in range(padded(NO_BITS, n_fresh, len(chances))):
            origin = np.int64(ranks[i] >> shift)
            made = oldest + np.int64(ranks[i]) - (origin << np.int64(shift))
            chances[i] = inlined_uniform(k0, k1, origin, made, v, ttl - 1 - (t - made))
    for i in range(n_fresh):
        rank = ranks[i]
        word, place = rank // WORDS, rank % WORDS
        hop = t - oldest - np.int64(rank - (rank >> shift << shift))
        has_arm = held[base + word] >> place & ONE != NO_BITS
        if is_random:
            decision = np.uint64(random_relay(has_arm, ttl - 1 - hop, degree, chances[i], rule.parameter))
        else:
            decision = np.uint64(rule.decision[1 if has_arm else 0, hop, degree])
        decided[decision, word] |= ONE << place


@helper
def decide_by_sets(v: int, abreast: Abreast) -> None:
    """The same where a rule draws nothing and asks for no degree: it says the same of all who have the arm, or not."""
    decided, decisions, base = abreast.decided, abreast.decisions, np.uint64(v * (len(abreast.fresh) + 1))
    for word in range(np.uint64(len(abreast.fresh))):
        fresh, held = abreast.fresh[word], abreast.held[base + word]
        for decision in range(3):
            others, holders = decisions[decision, 0, word], decisions[decision, 1, word]
            decided[decision, word] = fresh & (held & holders | ~held & others)


@helper
def learn_in_order(
    t: int,
    v: int,
    n_rounds: int,
    shift: np.uint64,
    learning: Words,
    ranked: Ranked,
    agents: Agents,
    messages: Messages,
    keys: Keys,
    known: Known,
    state: State,
) -> int:
    """Add what v learned in round `t` to its sums, in ascending (origin, round); how much of it changes nothing."""
    positions, compares, sums, blocks = agents.position, len(known.counts) > 0, state.sums, state.blocks
    agent, first, n_stale = np.uint64(v), agents.offsets[v], 0
    for word in range(np.uint64(len(learning))):
        left = learning[word]
        learning[word] = NO_BITS
        while left != NO_BITS:
            rank = word * WORDS + np.uint64(lowest_bit(left))
            left &= left - ONE
            amount, reward = ranked.amounts[rank], ranked.rewards[rank]
            learner = np.uint64(first + positions[agent, np.uint64(ranked.arms[rank])])
            made = t - n_rounds + 1 + np.int64(rank - (rank >> shift << shift))
            if compares:
                place = known.rows[messages.slots[rank >> shift, made % messages.slots.shape[1]]] + known.rank[learner]
                n_stale += learn_sum(learner, amount, reward, place, known.counts, known.totals, sums)
            else:
                block = block_of(made, t, keys)
                n_stale += 1 if amount == 0.0 or block < 0 else 0
                if block >= 0:
                    enter(learner, amount, reward, block, sums, blocks)
    return n_stale


@routine
def hop_abreast(
    t: int,
    network: Network,
    agents: Agents,
    rule: Rule,
    slots: Int32s,
    messages: Messages,
    scratch: Scratch,
    keys: Keys,
    known: Known,
    state: State,
    counts: Int64s,
    stop: Int64s,
) -> int:
    """All messages under way make their hop of round `t`, and who has a first copy learns; how many copies are sent."""
    abreast = scratch.abreast
    begin_hop(t, agents, rule, slots, abreast)
    rank_messages(t, abreast.n_rounds, abreast.shift, agents, messages, abreast.ranked)
    row = 0 if network.is_static else t - network.first_round
    starts, sending, coming, held = (
        network.starts[row],
        abreast.sending[t % 2],
        abreast.sending[1 - t % 2],
        abreast.held,
    )
    fresh, decided, learning, goes_on = abreast.fresh, abreast.decided, abreast.learning, abreast.goes_on
    asks_each = rule.is_random or rule.decision.shape[2] > 1
    n_delivered = n_absorbed = n_stopped = n_relayed = n_expired = n_heard = n_stale = n_back = ZERO
    n_sent: int = -abreast.n_back[0]
    n_oldest = ZERO
    for v in range(len(slots)):
        if is_set(stop):
            return 0
        base, degree = np.uint64(v * (len(fresh) + 1)), starts[v + 1] - starts[v]
        if not rule.relay_to_sender and rule.reach > 1:
            find_stays(t, v, row, network, rule, abreast)
        receive(t, v, starts, network.indices, abreast)
        if asks_each:
            decide_each(t, v, degree, rule, abreast)
        else:
            decide_by_sets(v, abreast)
        n_sending = ZERO
        for word in range(np.uint64(len(fresh))):
            relaying, stopped = decided[RELAY, word], decided[STOP, word]
            learned = fresh[word] & held[base + word] & (~stopped if rule.stop_before_use else ALL_BITS)
            learning[word], coming[base + word] = learned, relaying & goes_on[word]
            n_sending += bits_set(sending[base + word])
            n_oldest += bits_set(coming[base + word] & abreast.oldest[word])
            n_delivered += bits_set(fresh[word])
            n_absorbed += bits_set(decided[ABSORB, word])
            n_stopped += bits_set(stopped)
            n_relayed += bits_set(relaying & goes_on[word])
            n_expired += bits_set(relaying & ~goes_on[word])
            n_heard += bits_set(learned)
            n_back += bits_set(relaying & goes_on[word] & abreast.linked_back[word])
        n_sent += n_sending * degree
        n_stale += learn_in_order(
            t, v, abreast.n_rounds, abreast.shift, learning, abreast.ranked, agents, messages, keys, known, state
        )
    abreast.lives_on[0] = 1 if n_oldest > 0 and abreast.n_rounds < rule.reach else 0
    abreast.n_back[0] = ZERO if rule.relay_to_sender else n_back
    n_queued = n_relayed if t == rule.horizon else ZERO
    counts[fate.SENT] += n_sent
    counts[fate.STALE] += n_stale
    count_fates(n_delivered, n_absorbed, n_expired, n_stopped, n_queued, n_heard, counts)
    return n_sent
