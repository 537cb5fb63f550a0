"""The whole fate of one message on a dense network, worked out with sets of agents instead of lists.

The same as `spread`, for messages that go to all neighbours, unless something fails or links are counted. Whoever has
the message, whoever sends it and whoever has its arm are sets of bits, so that 64 agents are dealt with at a time, and
agents are only named when they learn it, or when a relay rule must be asked about each.

Senders come in ascending order, so the first copy that an agent receives in a hop is the lowest sender's. The agents
whose first copy came from s are a set too, `first_from[s]`. A sender does not send the message back: of those in
`first_from[s]` that send in the next hop, as many as are then still linked to s. Networks have no directions, so that
this is the size of an intersection.
"""

from __future__ import annotations

import numpy as np

from ....protocols.relaying import ABSORB, STOP
from ..bitsets import WORD
from . import fate
from .compiling import bits_set, helper, lowest_bit, routine
from .layout import ONE, Fates, Int16s, Int64s, Network, Rule, Scratch, Words
from .scalars import random_relay, uniform

# Sets that a message's way is worked out with, as rows of `scratch.sets`.
SEEN, SENDING, SENT_BEFORE, FRESH, RELAYING, LEARNING = range(6)
N_SETS = 6


@helper
def send_to_sets(starts: Int64s, bits: Words, sets: Words, first_from: Words) -> int:
    """Let all senders send to all their neighbours, which gives the set `FRESH`; how many copies, back-links too."""
    n_sent = 0
    for word in range(np.uint64(sets.shape[1])):
        left = sets[SENDING, word]
        while left != 0:
            sender = np.uint64(WORD) * word + np.uint64(lowest_bit(left))
            left &= left - ONE
            n_sent += starts[sender + ONE] - starts[sender]
            for other in range(np.uint64(sets.shape[1])):
                new = bits[sender, other] & ~sets[SEEN, other]
                sets[SEEN, other] |= new
                sets[FRESH, other] |= new
                first_from[sender, other] = new
    return n_sent


@helper
def count_back_links(bits: Words, sets: Words, first_from: Words) -> int:
    """How many of the senders are linked to the agent that sent them the message, one hop ago."""
    n_back = 0
    for word in range(np.uint64(sets.shape[1])):
        left = sets[SENT_BEFORE, word]
        while left != 0:
            sender = np.uint64(WORD) * word + np.uint64(lowest_bit(left))
            left &= left - ONE
            for other in range(np.uint64(sets.shape[1])):
                n_back += bits_set(bits[sender, other] & first_from[sender, other] & sets[SENDING, other])
    return n_back


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


@routine
def decide_each(
    origin: int,
    arm: int,
    sequence: int,
    hop: int,
    starts: Int64s,
    position: Int16s,
    rule: Rule,
    sets: Words,
) -> tuple[int, int]:
    """Ask the relay rule about each agent that has a first copy; sets who relays and who learns.

    Returns how many absorb and how many stop the message.
    """
    n_absorbed = n_stopped = 0
    ttl = rule.ttl - hop
    for word in range(np.uint64(sets.shape[1])):
        left = sets[FRESH, word]
        while left != 0:
            bit = left & ~(left - ONE)
            receiver = np.uint64(WORD) * word + np.uint64(lowest_bit(left))
            left &= left - ONE
            has_arm = position[receiver, np.uint64(arm)] >= 0
            degree = starts[receiver + ONE] - starts[receiver]
            if rule.is_random:
                u = uniform(rule.stop_k0, rule.stop_k1, origin, sequence, np.int64(receiver), ttl)
                decision = np.int64(random_relay(has_arm, ttl, degree, u, rule.parameter))
            else:
                decision = np.int64(rule.decision[1 if has_arm else 0, hop - 1, degree])
            if has_arm and not (decision == STOP and rule.stop_before_use):
                sets[LEARNING, word] |= bit
            if decision == ABSORB:
                n_absorbed += 1
            elif decision == STOP:
                n_stopped += 1
            else:
                sets[RELAYING, word] |= bit
    return n_absorbed, n_stopped


@helper
def decide_by_sets(held: int, hop: int, holders: Words, rule: Rule, sets: Words) -> tuple[int, int]:
    """The same where a rule draws nothing and asks for no degree: for those with the arm (`held` 1) or without (0)."""
    decision = rule.decision[held, hop - 1, 0]
    n_absorbed = n_stopped = 0
    for word in range(np.uint64(sets.shape[1])):
        some = sets[FRESH, word] & (holders[word] if held == 1 else ~holders[word])
        if held == 1 and not (decision == STOP and rule.stop_before_use):
            sets[LEARNING, word] |= some
        if decision == ABSORB:
            n_absorbed += bits_set(some)
        elif decision == STOP:
            n_stopped += bits_set(some)
        else:
            sets[RELAYING, word] |= some
    return n_absorbed, n_stopped


@routine
def spread_by_sets(
    origin: int,
    arm: int,
    sequence: int,
    network: Network,
    offsets: Int64s,
    position: Int16s,
    holders: Words,
    rule: Rule,
    scratch: Scratch,
    key: int,
    learner_row: int,
    base: int,
    fates: Fates,
    counts: Int64s,
) -> int:
    """Spread the message that `origin` makes of `arm` in round `sequence`, as `spread` does; returns its learners."""
    sets, first_from, starts, bits = scratch.sets, scratch.first_from, network.starts, network.bits
    learners, stores = fates.learners, fates.learners.shape[1] > 0
    asks_each = rule.is_random or rule.decision.shape[2] > 1
    n_words = np.uint64(sets.shape[1])
    for word in range(n_words):
        sets[SEEN, word] = sets[SENDING, word] = sets[SENT_BEFORE, word] = 0
    sets[SENDING, origin // WORD] = ONE << np.uint64(origin % WORD)
    if rule.origin_remembers:
        sets[SEEN, origin // WORD] = ONE << np.uint64(origin % WORD)
    n_senders = 1
    n_learners = n_delivered = n_absorbed = n_expired = n_stopped = n_queued = 0
    for hop in range(1, rule.reach + 1):
        t, n_sent = sequence + hop - 1, 0
        if t > rule.horizon:
            n_senders = 0
        if n_senders > 0:
            row = 0 if network.is_static else t - network.first_round
            for word in range(n_words):
                sets[FRESH, word] = sets[RELAYING, word] = sets[LEARNING, word] = 0
            if not rule.relay_to_sender and hop > 1:
                n_sent -= n_senders if network.is_static else count_back_links(bits[row], sets, first_from)
            n_sent += send_to_sets(starts[row], bits[row], sets, first_from)
            if asks_each:
                gone, stopped = decide_each(origin, arm, sequence, hop, starts[row], position, rule, sets)
            else:
                gone, stopped = decide_by_sets(0, hop, holders[arm], rule, sets)
                holders_gone, holders_stopped = decide_by_sets(1, hop, holders[arm], rule, sets)
                gone, stopped = gone + holders_gone, stopped + holders_stopped
            n_absorbed += gone
            n_stopped += stopped
            n_senders = 0
            for word in range(n_words):
                n_delivered += bits_set(sets[FRESH, word])
                n_senders += bits_set(sets[RELAYING, word])
                sets[SENT_BEFORE, word] = sets[SENDING, word]
                sets[SENDING, word] = sets[RELAYING, word]
                left = sets[LEARNING, word]
                if not stores:
                    n_learners += bits_set(left)
                    continue
                while left != 0:
                    learner = np.uint64(WORD) * word + np.uint64(lowest_bit(left))
                    left &= left - ONE
                    learners[learner_row, base + n_learners] = offsets[learner] + position[learner, np.uint64(arm)]
                    n_learners += 1
            if rule.ttl - hop < 1:
                n_expired += n_senders
                n_senders = 0
        if t == rule.horizon:
            n_queued = n_senders
        counts[fate.SENT] += n_sent
        fates.sent[key, hop - 1] = n_sent
        fates.end[key, hop - 1] = n_learners
    fates.base[key] = base
    count_fates(n_delivered, n_absorbed, n_expired, n_stopped, n_queued, n_learners, counts)
    return n_learners
