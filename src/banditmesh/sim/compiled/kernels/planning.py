"""Plans are made: one search per origin finds the ways of its messages about all arms at once.

A message about an arm is one bit of a word. What an agent has seen, what it hears in a hop and what it relays are
words, so that a link is walked once for all arms that pass it in a hop, and not once for each. More than 64 arms are
searched for in several passes, 64 at a time.

On a static network whoever a relay had a message from is one of its neighbours. So it sends one copy less than it has
neighbours, and which of them is left out need not be known.
"""

from __future__ import annotations

import numpy as np

from ....protocols.relaying import ABSORB, RELAY, STOP
from .compiling import fetch, helper, kernel, lowest_bit, routine
from .layout import (
    ABSORBED_BY_HOP,
    NO_BITS,
    ONE,
    STOPPED_BY_HOP,
    UNIT,
    ZERO,
    Agents,
    Int32s,
    Int64s,
    Network,
    Plan,
    Ranks,
    Rule,
    Search,
)
from .stopping import is_set

# Columns of what a search keeps of each agent, and of its tallies. The last is two numbers: a degree above 32 bits, and
# what is added to the agent's entries.
SEEN, FRESH, HELD, DEGREE_AND_FIRST = range(4)
N_COLUMNS = 4
LEARNED, LEARNED_BEFORE, OTHERS, SENT, SENT_NEXT, ABSORBED, STOPPED = range(7)
N_TALLIES = 7
#: How many senders' neighbours are fetched from memory at a time.
TOGETHER = 16
HALF, LOWER_HALF = np.uint64(32), np.uint64(2**32 - 1)


@helper
def send_masks(n_senders: int, starts: Int64s, indices: Int32s, entries: Ranks, search: Search) -> int:
    """All senders of a hop send what they relay to all their neighbours; how many of these hear something new.

    What is kept of agents lies far apart: it is fetched for some senders, then these are looked at.
    """
    senders, masks, receivers, marks = search.senders, search.masks, search.receivers, search.marks
    n_receivers: int = ZERO
    for begin in range(ZERO, n_senders, TOGETHER):
        end = min(begin + TOGETHER, n_senders)
        for s in range(begin, end):
            fetch(indices, np.uint64(starts[np.uint64(senders[s])]))
        for s in range(begin, end):
            sender = np.uint64(senders[s])
            for i in range(np.uint64(starts[sender]), np.uint64(starts[sender + ONE])):
                fetch(marks, np.uint64(indices[i]))
        for s in range(begin, end):
            sender, mask = np.uint64(senders[s]), masks[s]
            for i in range(np.uint64(starts[sender]), np.uint64(starts[sender + ONE])):
                receiver = np.uint64(indices[i])
                new = mask & ~marks[receiver, SEEN]
                fresh = marks[receiver, FRESH]
                # Without a branch, since whether an agent hears something new cannot be predicted.
                receivers[np.uint64(n_receivers)] = receiver
                # A row of entries fills a line of the cache or two.
                fetch(entries, receiver)
                fetch(entries, receiver + ONE)
                n_receivers += 1 if new != 0 and fresh == 0 else 0
                marks[receiver, FRESH] = fresh | new
    return n_receivers


@helper
def group_by_part(n_receivers: int, search: Search) -> None:
    """Put the receivers of a hop into the order of the parts that they belong to; `part_ends` says where each ends."""
    receivers, grouped, part_of, ends = search.receivers, search.grouped, search.part_of, search.part_ends
    n_parts = len(ends)
    for part in range(n_parts):
        ends[part] = 0
    if n_parts == 1:
        ends[0] = n_receivers
        return
    for r in range(n_receivers):
        ends[part_of[receivers[r]]] += 1
    begin = ZERO
    for part in range(n_parts):
        begin, ends[part] = begin + ends[part], begin
    for r in range(n_receivers):
        part = part_of[receivers[r]]
        grouped[ends[part]] = receivers[r]
        ends[part] += 1
    for r in range(n_receivers):
        receivers[r] = grouped[r]


@routine
def tally(mask: int, what: int, amount: int, tallies: Int64s) -> None:
    """Add an amount to what is tallied of each bit of a mask."""
    left = mask
    while left != 0:
        bit = np.uint64(lowest_bit(left))
        left &= left - ONE
        tallies[bit, what] += amount


@helper
def receive(
    hop: int,
    begin: int,
    end: int,
    n_senders: int,
    arm: int,
    rule: Rule,
    starts: Int64s,
    entries: Ranks,
    search: Search,
) -> int:
    """The receivers from `begin` to before `end` learn, and relay or not; how many senders the next hop has by now.

    `arm` is the arm of the lowest bit.
    """
    receivers, marks, touched, n_touched = search.receivers, search.marks, search.touched, search.n_touched
    senders, masks, learned, tallies = search.senders, search.masks, search.learned, search.tallies
    decisions = rule.decision
    asks_degree, counts_ended = decisions.shape[2] > 1, search.counts_ended
    goes_on = hop < rule.ttl
    for r in range(begin, end):
        receiver = np.uint64(receivers[r])
        new, seen = marks[receiver, FRESH], marks[receiver, SEEN]
        marks[receiver, FRESH] = 0
        marks[receiver, SEEN] = seen | new
        touched[np.uint64(n_touched[0])] = receiver
        n_touched[0] += 1 if seen == 0 else 0
        held = new & marks[receiver, HELD]
        others = new & ~held
        degree = np.int64(marks[receiver, DEGREE_AND_FIRST] >> HALF)
        column = degree if asks_degree else ZERO
        of_held, of_others = decisions[1, hop - 1, column], decisions[0, hop - 1, column]
        relays_held, relays_others = goes_on and of_held == RELAY, goes_on and of_others == RELAY
        # By the published rules a relay sends a copy back as well.
        n_next = degree if rule.relay_to_sender else degree - 1
        next_of_held, next_of_others = n_next if relays_held else 0, n_next if relays_others else 0
        if of_held == STOP and rule.stop_before_use:
            tally(held, OTHERS, 1, tallies)
        else:
            left, first = held, marks[receiver, DEGREE_AND_FIRST] & LOWER_HALF
            while left != 0:
                bit = np.uint64(lowest_bit(left))
                left &= left - ONE
                learned[bit, np.uint64(tallies[bit, LEARNED])] = first + entries[receiver, np.uint64(arm) + bit]
                tallies[bit, LEARNED] += 1
                tallies[bit, SENT_NEXT] += next_of_held
        left = others
        while left != 0:
            bit = np.uint64(lowest_bit(left))
            left &= left - ONE
            tallies[bit, OTHERS] += 1
            tallies[bit, SENT_NEXT] += next_of_others
        if counts_ended:
            tally(held, ABSORBED, 1 if of_held == ABSORB else 0, tallies)
            tally(held, STOPPED, 1 if of_held == STOP else 0, tallies)
            tally(others, ABSORBED, 1 if of_others == ABSORB else 0, tallies)
            tally(others, STOPPED, 1 if of_others == STOP else 0, tallies)
        relayed = (held if relays_held else NO_BITS) | (others if relays_others else NO_BITS)
        # Where its neighbours are is needed in the next hop.
        fetch(starts, receiver)
        senders[np.uint64(n_senders)] = receiver
        masks[np.uint64(n_senders)] = relayed
        n_senders += 1 if relayed != 0 else 0
    return n_senders


@helper
def note(origin: int, arm: int, own: int, hop: int, part: int, agents: Agents, search: Search, plan: Plan) -> None:
    """Write down, for each of the origin's arms, what the receivers of a hop up to those of `part` gave."""
    records, delivered, ended = plan.records, plan.delivered, plan.ended
    n_parts, tallies = len(search.part_ends), search.tallies
    reach = delivered.shape[1]
    first = agents.offsets[origin]
    left = own
    while left != 0:
        bit = np.uint64(lowest_bit(left))
        left &= left - ONE
        slot = first + agents.position[origin, np.uint64(arm) + bit]
        records[slot, 1 + (hop - 1) * n_parts + part] = tallies[bit, LEARNED]
        if part == n_parts - 1:
            records[slot, 1 + reach * n_parts + hop - 1] = tallies[bit, SENT]
            n_learned = tallies[bit, LEARNED] - tallies[bit, LEARNED_BEFORE]
            delivered[slot, hop - 1] = n_learned + tallies[bit, OTHERS]
            if search.counts_ended:
                ended[slot, hop - 1, ABSORBED_BY_HOP] = tallies[bit, ABSORBED]
                ended[slot, hop - 1, STOPPED_BY_HOP] = tallies[bit, STOPPED]
            tallies[bit, SENT], tallies[bit, SENT_NEXT] = tallies[bit, SENT_NEXT], 0
            tallies[bit, LEARNED_BEFORE] = tallies[bit, LEARNED]
            tallies[bit, OTHERS] = tallies[bit, ABSORBED] = tallies[bit, STOPPED] = 0


@routine
def search_from(
    origin: int,
    arm: int,
    network: Network,
    agents: Agents,
    rule: Rule,
    entries: Ranks,
    search: Search,
    plan: Plan,
) -> int:
    """Find the ways of an origin's messages, hop by hop, about the 64 arms from `arm` on; how many learners they have.

    Who learns each arm's message is left in `search.learned`.
    """
    starts, marks, tallies, ends = network.starts[0], search.marks, search.tallies, search.part_ends
    n_touched, n_parts = search.n_touched, len(ends)
    own = marks[origin, HELD]
    n_touched[0] = 0
    if rule.origin_remembers:
        marks[origin, SEEN] = own
        search.touched[0] = origin
        n_touched[0] = 1
    search.senders[0], search.masks[0] = origin, own
    n_senders = 1
    for bit in range(len(tallies)):
        for what in range(N_TALLIES):
            tallies[bit, what] = 0
        tallies[bit, SENT] = starts[origin + 1] - starts[origin]
    for hop in range(1, rule.reach + 1):
        n_receivers = send_masks(n_senders, starts, network.indices, entries, search)
        group_by_part(n_receivers, search)
        n_senders = begin = ZERO
        for part in range(n_parts):
            n_senders = receive(hop, begin, ends[part], n_senders, arm, rule, starts, entries, search)
            begin = ends[part]
            note(origin, arm, own, hop, part, agents, search, plan)
    for i in range(n_touched[0]):
        marks[search.touched[i], SEEN] = 0
    n_learners: int = ZERO
    for bit in range(len(tallies)):
        n_learners += -(-tallies[bit, LEARNED] // UNIT) * UNIT
    return n_learners


@kernel
def plan_slots(
    first: int,
    last: int,
    arm: int,
    network: Network,
    agents: Agents,
    rule: Rule,
    entries: Ranks,
    search: Search,
    room: Int64s,
    plan: Plan,
    stop: Int64s,
) -> int:
    """Plan the messages of agents `first` to `last` - 1 about the 64 arms from `arm` on.

    What is kept of a learner is `entries[agent, arm]`, to which the agent's first slot is added unless it is a rank.
    Learners are written from `room[0]` on, which is moved on, and not beyond `room[1]`. Returns the first agent whose
    learners had no place, or `last`.
    """
    learners, ranks, learned, tallies = plan.learners, plan.ranks, search.learned, search.tallies
    by_rank = len(ranks) > 0
    for v in range(first, last):
        if is_set(stop):
            return v
        left = search.marks[v, HELD]
        if left == 0:
            continue
        if room[0] + search_from(v, arm, network, agents, rule, entries, search, plan) > room[1]:
            return v
        while left != 0:
            bit = np.uint64(lowest_bit(left))
            left &= left - ONE
            slot = agents.offsets[v] + agents.position[v, np.uint64(arm) + bit]
            begin, n_learners = room[0], tallies[bit, LEARNED]
            plan.records[slot, 0] = begin // UNIT
            if by_rank:
                for i in range(n_learners):
                    ranks[begin + i] = learned[bit, i]
            else:
                for i in range(n_learners):
                    learners[begin + i] = learned[bit, i]
            room[0] = begin + -(-n_learners // UNIT) * UNIT
    return last
