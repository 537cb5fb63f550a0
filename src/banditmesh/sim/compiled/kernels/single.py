"""The fates of messages of which there is one copy at a time, as by gossip with a fan-out of 1.

The same as `spread`, unless something fails or links are counted. Only agents that the copy has met have seen the
message, so a short list tells whether an agent has. Several messages go from hop to hop together: what is drawn
for them is drawn at once, and a processor need not wait for one message before it looks at the next.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ....draws import TARGET_STRIDE
from ....protocols.relaying import ABSORB, STOP
from . import fate
from .compiling import helper, routine
from .lanes import padded
from .layout import (
    NO_AGENT,
    NO_BITS,
    ONE,
    ZERO,
    Agents,
    Fates,
    Floats,
    Int32s,
    Int64s,
    Network,
    Rule,
    Scratch,
    Single,
)
from .scalars import inlined_uniform
from .sets import count_fates
from .stopping import is_set

#: How many messages go together; after how many hops too many agents have seen a message for a list of them.
TOGETHER: Final = 64
MAX_HOPS: Final = 32
NO_SLOT: Any = np.int32(-1)


@helper
def drawn_place(u: float, excluded: int, lowest: int, highest: int, indices: Int32s) -> int:
    """The place of the neighbour that `pick_neighbours` draws; -1 if there is none."""
    skipped = highest
    for place in range(lowest, highest):
        skipped = place if indices[place] == excluded else skipped
    n_candidates = highest - lowest - (1 if skipped < highest else 0)
    place = lowest + int(u * n_candidates)
    place += 1 if place >= skipped else 0
    return place if n_candidates > 0 else -1


@helper
def draw_for_hop(n_messages: int, sequence: int, ttl: int, rule: Rule, chances: Floats, single: Single) -> None:
    """Draw for all messages that still travel which neighbour is next, see `lanes`."""
    origins, at, senders = single.origins, single.at, single.senders
    k0, k1, last = rule.target_k0, rule.target_k1, ttl * TARGET_STRIDE
    for i in range(padded(NO_BITS, np.uint64(n_messages), len(chances))):
        origin = np.int64(origins[np.uint64(at[i])])
        chances[i] = inlined_uniform(k0, k1, origin, sequence, np.int64(senders[i]), last)


@helper
def hop_together(
    n_messages: int, t: int, sequence: int, hop: int, network: Network, agents: Agents, rule: Rule, single: Single
) -> int:
    """All messages that still travel make a hop; how many go on after it."""
    starts, indices = network.starts[0 if network.is_static else t - network.first_round], network.indices
    at, senders, previous, chances = single.at, single.senders, single.previous, single.chances
    arms, met, learned, n_sent, tallies = single.arms, single.met, single.learned, single.n_sent, single.tallies
    position, offsets, decisions = agents.position, agents.offsets, rule.decision
    asks_degree = decisions.shape[2] > 1
    draw_for_hop(n_messages, sequence, rule.ttl - hop + 1, rule, chances, single)
    n_next = NO_BITS
    for i in range(np.uint64(n_messages)):
        message, sender = np.uint64(at[i]), senders[i]
        excluded = NO_AGENT if rule.relay_to_sender else np.int64(previous[i])
        place = drawn_place(chances[i], excluded, starts[np.uint64(sender)], starts[np.uint64(sender) + ONE], indices)
        if place < 0:
            continue
        receiver = np.uint64(indices[np.uint64(place)])
        n_sent[message, np.uint64(hop - 1)] = 1
        has_seen = False
        for h in range(np.uint64(hop)):
            has_seen |= np.uint64(met[message, h]) == receiver
        if has_seen:
            continue
        met[message, np.uint64(hop)] = receiver
        held = position[receiver, np.uint64(arms[message])]
        has_arm = held >= 0
        degree = starts[receiver + ONE] - starts[receiver] if asks_degree else ZERO
        decision = decisions[np.uint64(1 if has_arm else 0), np.uint64(hop - 1), np.uint64(degree)]
        learns = has_arm and not (decision == STOP and rule.stop_before_use)
        learned[message, np.uint64(hop - 1)] = offsets[receiver] + held if learns else NO_SLOT
        tallies[np.uint64(decision)] += 1
        at[n_next], senders[n_next], previous[n_next] = message, receiver, sender
        n_next += ONE if decision != ABSORB and decision != STOP else NO_BITS
    return int(n_next)


@helper
def follow_together(
    n_messages: int, sequence: int, network: Network, agents: Agents, rule: Rule, single: Single, counts: Int64s
) -> None:
    """Follow messages, made in round `sequence` by `single.origins`, until all have ended."""
    origins, at, senders, previous, met = single.origins, single.at, single.senders, single.previous, single.met
    tallies, reach = single.tallies, rule.reach
    for message in range(n_messages):
        at[message], senders[message], previous[message] = message, origins[message], NO_AGENT
        met[message, 0] = origins[message] if rule.origin_remembers else NO_AGENT
        for hop in range(reach):
            single.learned[message, hop], single.n_sent[message, hop] = NO_SLOT, 0
    for decision in range(len(tallies)):
        tallies[decision] = 0
    n_left, n_expired, n_queued = n_messages, ZERO, ZERO
    for hop in range(1, reach + 1):
        t = sequence + hop - 1
        if t > rule.horizon or n_left == 0:
            break
        n_left = hop_together(n_left, t, sequence, hop, network, agents, rule, single)
        if rule.ttl - hop < 1:
            n_left, n_expired = ZERO, np.int64(n_left)
        if t == rule.horizon:
            n_queued = np.int64(n_left)
    n_delivered = ZERO
    for decision in range(len(tallies)):
        n_delivered += tallies[decision]
    count_fates(n_delivered, tallies[ABSORB], n_expired, tallies[STOP], n_queued, ZERO, counts)


@routine
def spread_all_singly(
    t: int,
    network: Network,
    agents: Agents,
    rule: Rule,
    slots: Int32s,
    scratch: Scratch,
    ring: Fates,
    counts: Int64s,
    stop: Int64s,
) -> bool:
    """Spread the messages of round `t`, from the agent on that `scratch.cursor` names; whether all were spread.

    See `spread_rounds`, of which this is a part.
    """
    cursor, single, learners, reach, row = scratch.cursor, scratch.single, ring.learners, rule.reach, t % rule.reach
    origins, arms, learned, n_sent = single.origins, single.arms, single.learned, single.n_sent
    while cursor[0] < len(slots):
        n_messages, v = ZERO, cursor[0]
        while v < len(slots) and n_messages < len(arms):
            if slots[v] >= 0:
                origins[n_messages], arms[n_messages] = v, agents.arms[slots[v]]
                n_messages += 1
            v += 1
        if is_set(stop) or cursor[1] + n_messages * reach > learners.shape[1]:
            return False
        follow_together(n_messages, t, network, agents, rule, single, counts)
        for message in range(n_messages):
            key, n_learners = origins[message] * reach + row, ZERO
            ring.base[key] = cursor[1]
            for hop in range(reach):
                slot = learned[message, hop]
                learners[row, cursor[1] + n_learners] = slot
                n_learners += 1 if slot >= 0 else 0
                ring.end[key, hop], ring.sent[key, hop] = n_learners, n_sent[message, hop]
                counts[fate.SENT] += n_sent[message, hop]
            cursor[1] += n_learners
            counts[fate.HEARD] += n_learners
        cursor[0] = v
    return True
