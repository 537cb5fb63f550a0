"""The fates of messages on a dense network, worked out with sets of agents instead of lists.

The same as `spread`, for messages that go to all neighbours, unless something fails or links are counted. Whoever has
the message, whoever sends it and whoever has its arm are sets of bits, so that 64 agents are dealt with at a time, and
agents are only named when they learn it, or when a relay rule must be asked about each. A loop over agents goes through
their sets two words at a time, a *column*, which stay in registers meanwhile.

An agent's first copy in a hop is that from the lowest-numbered of the senders that it is linked to. It will not send
the message back there; so of those that relay, as many send one copy less as are then still linked to that sender.
These are a set too, `LINKED_BACK`. Networks have no directions, so a hop can be looked at from either side: which
neighbours of the senders have not seen the message, or, if these are fewer, who of those that have not is linked to a
sender.
"""

from __future__ import annotations

import numpy as np

from ....protocols.relaying import ABSORB, STOP
from ..bitsets import WORD
from . import fate
from .compiling import bits_set, helper, lowest_bit, routine
from .lanes import padded
from .layout import (
    NO_BITS,
    ONE,
    PAIR,
    ZERO,
    Agents,
    Fates,
    Holders,
    Int16s,
    Int32s,
    Int64s,
    Network,
    Rule,
    Scratch,
    Words,
)
from .scalars import inlined_uniform, random_relay
from .stopping import is_set

#: Sets that a message's way is worked out with, as rows of `scratch.sets`.
#: `BEYOND` never changes: bits of the last words that are no agents.
SEEN, SENDING, LINKED_BACK, FRESH, RELAYING, LEARNING, BEYOND = range(7)
N_SETS = 7


@helper
def agent_of(word: np.uint64, left: np.uint64) -> np.uint64:
    """The first of the agents left in a word of a set."""
    return np.uint64(WORD) * word + np.uint64(lowest_bit(left))


@helper
def send_to_neighbours(column: np.uint64, bits: Words, later: Words, sets: Words) -> None:
    """Which agents of a column get a first copy, from the side of the senders, in ascending order."""
    beside = column + ONE
    seen, seen_beside = sets[SEEN, column], sets[SEEN, beside]
    linked, linked_beside = NO_BITS, NO_BITS
    for word in range(np.uint64(sets.shape[1])):
        left = sets[SENDING, word]
        while left != 0:
            sender = agent_of(word, left)
            left &= left - ONE
            new, new_beside = bits[sender, column] & ~seen, bits[sender, beside] & ~seen_beside
            seen |= new
            seen_beside |= new_beside
            linked |= new & later[sender, column]
            linked_beside |= new_beside & later[sender, beside]
    sets[FRESH, column], sets[FRESH, beside] = seen & ~sets[SEEN, column], seen_beside & ~sets[SEEN, beside]
    sets[SEEN, column], sets[SEEN, beside] = seen, seen_beside
    sets[LINKED_BACK, column], sets[LINKED_BACK, beside] = linked, linked_beside


@helper
def ask_neighbours(word: np.uint64, bits: Words, later: Words, sets: Words) -> None:
    """Which agents of a word get a first copy, from the side of those that have not seen the message."""
    fresh, linked = NO_BITS, NO_BITS
    left = ~sets[SEEN, word]
    while left != 0:
        agent, bit = agent_of(word, left), left & ~(left - ONE)
        left &= left - ONE
        for column in range(np.uint64(0), np.uint64(sets.shape[1]), np.uint64(2)):
            beside = column + ONE
            senders = bits[agent, column] & sets[SENDING, column]
            senders_beside = bits[agent, beside] & sets[SENDING, beside]
            if senders | senders_beside != 0:
                # Of both words, the lowest sender is the one that counts.
                first = senders & ~(senders - ONE)
                first_beside = senders_beside & ~(senders_beside - ONE) if senders == 0 else NO_BITS
                still = later[agent, column] & first | later[agent, beside] & first_beside
                fresh |= bit
                linked |= bit if still != 0 else NO_BITS
                break
    sets[FRESH, word], sets[LINKED_BACK, word] = fresh, linked


@helper
def send_by_sets(n_senders: int, starts: Int64s, bits: Words, later: Words, sets: Words) -> int:
    """Let all senders send to all their neighbours, which gives the sets `FRESH` and `LINKED_BACK`; how many copies.

    Copies to the agents that the senders have the message from are counted as well. `later` are the links of the next
    round.
    """
    n_words = np.uint64(sets.shape[1])
    n_sent: int = ZERO
    n_left = ZERO
    for word in range(n_words):
        n_left += bits_set(~sets[SEEN, word])
        left = sets[SENDING, word]
        while left != 0:
            sender = agent_of(word, left)
            left &= left - ONE
            n_sent += starts[sender + ONE] - starts[sender]
    if n_senders < n_left:
        for column in range(NO_BITS, n_words, PAIR):
            send_to_neighbours(column, bits, later, sets)
    else:
        for word in range(n_words):
            ask_neighbours(word, bits, later, sets)
        for word in range(n_words):
            sets[SEEN, word] |= sets[FRESH, word]
    return n_sent


@helper
def count_fates(
    n_delivered: int, n_absorbed: int, n_expired: int, n_stopped: int, n_queued: int, n_heard: int, counts: Int64s
) -> None:
    """Add what became of a message's copies; those that neither ended nor are queued at the horizon were relayed."""
    counts[fate.DELIVERED] += n_delivered
    counts[fate.ABSORBED] += n_absorbed
    counts[fate.EXPIRED] += n_expired
    counts[fate.STOPPED] += n_stopped
    counts[fate.RELAYED] += n_delivered - n_absorbed - n_expired - n_stopped - n_queued
    counts[fate.QUEUED] += n_queued
    counts[fate.HEARD] += n_heard


@helper
def draw_for_each(origin: int, sequence: int, ttl: int, rule: Rule, scratch: Scratch) -> None:
    """Draw for each agent that has a first copy what its relay rule is given, all at once: see `lanes`."""
    sets, receivers, chances = scratch.sets, scratch.receivers, scratch.chances
    n_fresh = NO_BITS
    for word in range(np.uint64(sets.shape[1])):
        left = sets[FRESH, word]
        while left != 0:
            receivers[n_fresh] = agent_of(word, left)
            left &= left - ONE
            n_fresh += ONE
    k0, k1 = rule.stop_k0, rule.stop_k1
    for r in range(padded(NO_BITS, n_fresh, len(chances))):
        chances[r] = inlined_uniform(k0, k1, origin, sequence, np.int64(receivers[r]), ttl)


@helper
def decide_each(
    origin: int, arm: int, sequence: int, hop: int, starts: Int64s, position: Int16s, rule: Rule, scratch: Scratch
) -> tuple[int, int]:
    """Ask the relay rule about each agent that has a first copy; sets who relays and who learns.

    Returns how many absorb and how many stop the message.
    """
    sets, chances, ttl, is_random = scratch.sets, scratch.chances, rule.ttl - hop, rule.is_random
    if is_random:
        draw_for_each(origin, sequence, ttl, rule, scratch)
    n_absorbed = n_stopped = ZERO
    r = NO_BITS
    for word in range(np.uint64(sets.shape[1])):
        left = sets[FRESH, word]
        absorbed = stopped = learning = NO_BITS
        while left != 0:
            receiver, bit = agent_of(word, left), left & ~(left - ONE)
            left &= left - ONE
            has_arm, degree = position[receiver, np.uint64(arm)] >= 0, starts[receiver + ONE] - starts[receiver]
            if is_random:
                decision = np.int64(random_relay(has_arm, ttl, degree, chances[r], rule.parameter))
            else:
                decision = np.int64(rule.decision[1 if has_arm else 0, hop - 1, degree])
            r += ONE
            # Without a branch, since what is drawn cannot be predicted.
            absorbed |= bit if decision == ABSORB else NO_BITS
            stopped |= bit if decision == STOP else NO_BITS
            learning |= bit if has_arm and not (decision == STOP and rule.stop_before_use) else NO_BITS
        sets[LEARNING, word], sets[RELAYING, word] = learning, sets[FRESH, word] & ~(absorbed | stopped)
        n_absorbed += bits_set(absorbed)
        n_stopped += bits_set(stopped)
    return n_absorbed, n_stopped


@helper
def decide_by_sets(hop: int, holders: Words, rule: Rule, sets: Words) -> tuple[int, int]:
    """The same where a rule draws nothing and asks for no degree: it says the same of all who have the arm, or not."""
    of_others, of_holders = rule.decision[0, hop - 1, 0], rule.decision[1, hop - 1, 0]
    learns = not (of_holders == STOP and rule.stop_before_use)
    n_absorbed = n_stopped = ZERO
    for word in range(np.uint64(sets.shape[1])):
        fresh = sets[FRESH, word]
        held, others = fresh & holders[word], fresh & ~holders[word]
        sets[LEARNING, word] = held if learns else NO_BITS
        absorbed = (held if of_holders == ABSORB else NO_BITS) | (others if of_others == ABSORB else NO_BITS)
        stopped = (held if of_holders == STOP else NO_BITS) | (others if of_others == STOP else NO_BITS)
        n_absorbed += bits_set(absorbed)
        n_stopped += bits_set(stopped)
        sets[RELAYING, word] = fresh & ~(absorbed | stopped)
    return n_absorbed, n_stopped


@helper
def spread_by_sets(
    origin: int,
    arm: int,
    sequence: int,
    network: Network,
    agents: Agents,
    rule: Rule,
    scratch: Scratch,
    key: int,
    learner_row: int,
    base: int,
    fates: Fates,
    counts: Int64s,
) -> int:
    """Spread the message that `origin` makes of `arm` in round `sequence`, as `spread` does; returns its learners."""
    starts, bits = network.starts, network.bits
    offsets, position, holders = agents.offsets, agents.position, agents.holders
    sets, learners, n_words = scratch.sets, fates.learners, np.uint64(scratch.sets.shape[1])
    asks_each = rule.is_random or rule.decision.shape[2] > 1
    for word in range(n_words):
        sets[SEEN, word], sets[SENDING, word] = sets[BEYOND, word], NO_BITS
    home, own = np.uint64(origin) // np.uint64(WORD), ONE << np.uint64(origin % WORD)
    sets[SENDING, home] = own
    if rule.origin_remembers:
        sets[SEEN, home] |= own
    n_senders, n_back = 1, ZERO
    n_learners: int = ZERO
    n_delivered = n_absorbed = n_expired = n_stopped = n_queued = n_sent_in_all = ZERO
    for hop in range(1, rule.reach + 1):
        t, n_sent = sequence + hop - 1, ZERO
        if t > rule.horizon:
            n_senders = 0
        if n_senders > 0:
            row = 0 if network.is_static else t - network.first_round
            # Nothing is sent back after the last hop, and there is no round after the last one.
            later = row if network.is_static or hop == rule.reach or t == rule.horizon else row + 1
            n_sent = send_by_sets(n_senders, starts[row], bits[row], bits[later], sets) - n_back
            if asks_each:
                gone, stopped = decide_each(origin, arm, sequence, hop, starts[row], position, rule, scratch)
            else:
                gone, stopped = decide_by_sets(hop, holders[arm], rule, sets)
            n_absorbed += gone
            n_stopped += stopped
            n_senders, n_back = 0, ZERO
            for word in range(n_words):
                relaying = sets[RELAYING, word]
                sets[SENDING, word] = relaying
                n_senders += bits_set(relaying)
                n_delivered += bits_set(sets[FRESH, word])
                if not rule.relay_to_sender:
                    n_back += bits_set(relaying & sets[LINKED_BACK, word])
                left = sets[LEARNING, word]
                while left != 0:
                    learner = agent_of(word, left)
                    left &= left - ONE
                    learners[learner_row, base + n_learners] = offsets[learner] + position[learner, np.uint64(arm)]
                    n_learners += 1
            if rule.ttl - hop < 1:
                n_expired += n_senders
                n_senders = 0
        if t == rule.horizon:
            n_queued = n_senders
        n_sent_in_all += n_sent
        fates.sent[key, hop - 1] = n_sent
        fates.end[key, hop - 1] = n_learners
    fates.base[key] = base
    counts[fate.SENT] += n_sent_in_all
    count_fates(n_delivered, n_absorbed, n_expired, n_stopped, n_queued, n_learners, counts)
    return n_learners


@routine
def spread_all_by_sets(
    t: int,
    network: Network,
    agents: Agents,
    holders: Holders,
    rule: Rule,
    slots: Int32s,
    scratch: Scratch,
    ring: Fates,
    counts: Int64s,
    stop: Int64s,
) -> bool:
    """Spread the messages of round `t`, from the agent on that `scratch.cursor` names; whether all were spread.

    See `spread_rounds`, of which this is a part: all messages of a round, since calls would take long for one.
    """
    cursor, learners, arms, row = scratch.cursor, ring.learners, agents.arms, t % rule.reach
    starts, most_receipts = holders.starts, rule.most_receipts
    for v in range(cursor[0], len(slots)):
        slot = slots[v]
        if slot < 0:
            continue
        arm = arms[slot]
        if is_set(stop) or cursor[1] + most_receipts * (starts[arm + 1] - starts[arm]) > learners.shape[1]:
            cursor[0] = v
            return False
        key = v * rule.reach + row
        cursor[1] += spread_by_sets(v, arm, t, network, agents, rule, scratch, key, row, cursor[1], ring, counts)
    return True
