"""The whole fate of one message, worked out when it is made.

By the sound rules nothing that other messages do changes a message's way: it is fixed by its origin, its arm, its own
draws and the networks of the next ttl rounds, and none of these depends on what agents learn. So the message is spread
at once, hop by hop, over the networks that it will meet.

Within a hop the order of senders does not matter: the first copy is the one from the lowest-numbered sender, which is
kept as a minimum.
"""

from __future__ import annotations

import numpy as np

from ....draws import TARGET_STRIDE
from ....protocols.relaying import ABSORB, STOP
from . import fate
from .compiling import block, helper, kernel, scalar
from .faults import keep_arriving
from .layout import (
    FIRST_ROUND,
    MARK,
    NO_AGENT,
    PREVIOUS,
    ZERO,
    Agents,
    Fates,
    FaultRows,
    Int32s,
    Int64s,
    Network,
    OnLinks,
    Rule,
    Scratch,
)
from .scalars import random_relay, uniform
from .sets import count_fates
from .stopping import is_set


@helper
def pick_neighbours(
    origin: int,
    sequence: int,
    sender: int,
    ttl: int,
    excluded: int,
    lowest: int,
    highest: int,
    indices: Int32s,
    rule: Rule,
    picks: Int32s,
) -> int:
    """Write drawn neighbours' places in `indices` to `picks`, as `draws.pick_targets` draws them; how many."""
    n_candidates = 0
    for i in range(lowest, highest):
        if indices[i] != excluded:
            picks[n_candidates] = i
            n_candidates += 1
    n_picked = min(rule.n_targets, n_candidates)
    for k in range(n_picked):
        u = uniform(rule.target_k0, rule.target_k1, origin, sequence, sender, ttl * TARGET_STRIDE + k)
        j = k + int(u * (n_candidates - k))
        picks[k], picks[j] = picks[j], picks[k]
    return n_picked


@scalar
def send(
    sender: int,
    excluded: int,
    lowest: int,
    highest: int,
    neighbours: Int32s,
    oldest: int,
    newest: int,
    seen: Int64s,
    receivers: Int32s,
    n_receivers: int,
) -> tuple[int, int]:
    """Send to all of these neighbours but one; how many were sent to, and how many now have a first copy in this hop.

    The neighbours are those at the places `lowest` to before `highest`; the one is who the sender had the message from.
    It has seen the message, so taking it along changes nothing but the number. There is no branch, since whether a copy
    is the first cannot be predicted.
    """
    n_sent = 0
    for i in range(np.uint64(lowest), np.uint64(highest)):
        neighbour = neighbours[i]
        receiver = np.uint64(neighbour)
        n_sent += 1 if neighbour != excluded else 0
        mark, first_from = seen[receiver, MARK], seen[receiver, PREVIOUS]
        is_new = mark < oldest
        receivers[np.uint64(n_receivers)] = neighbour
        n_receivers += 1 if is_new else 0
        seen[receiver, MARK] = newest if is_new else mark
        is_earlier = is_new or (mark == newest and sender < first_from)
        seen[receiver, PREVIOUS] = sender if is_earlier else first_from
    return n_sent, n_receivers


@helper
def send_hop(
    origin: int,
    sequence: int,
    t: int,
    ttl: int,
    oldest: int,
    newest: int,
    n_senders: int,
    starts: Int64s,
    indices: Int32s,
    rule: Rule,
    scratch: Scratch,
    links: OnLinks,
    faults: FaultRows,
) -> tuple[int, int, int]:
    """All senders of a hop send; how many copies were sent, how many of these were lost, and how many agents have one.

    `ttl` is how many hops the copies have left. What is `newest` marks the agents that have their first copy now; who
    has a mark that is at least `oldest` has seen the message before.
    """
    senders, receivers, seen = scratch.senders, scratch.receivers, scratch.seen
    picks, drawn, chances = scratch.picks, scratch.drawn, scratch.chances
    up, on_link, counts_links = faults.up, links.on_link, len(links.on_link) > 0
    has_outages = up.shape[1] > 0
    is_faulty = has_outages or faults.loss > 0.0
    link_row = links.rows[t - links.first_round] if counts_links and n_senders > 0 else 0
    n_sent = n_lost = 0
    n_receivers = ZERO
    for s in range(n_senders):
        sender = np.int64(senders[s])
        if has_outages and up[t - faults.first_round, sender] == 0:
            continue
        excluded = -1 if rule.relay_to_sender else seen[sender, PREVIOUS]
        lowest, highest = starts[sender], starts[sender + 1]
        n_picked = 0
        if rule.n_targets > 0:
            n_picked = pick_neighbours(origin, sequence, sender, ttl, excluded, lowest, highest, indices, rule, picks)
            for k in range(n_picked):
                drawn[k] = indices[picks[k]]
                if counts_links:
                    on_link[link_row + picks[k]] += 1
        elif counts_links or is_faulty:
            for i in range(lowest, highest):
                if indices[i] != excluded:
                    drawn[n_picked] = indices[i]
                    n_picked += 1
                    if counts_links:
                        on_link[link_row + i] += 1
        if is_faulty:
            n_arriving = keep_arriving(origin, sequence, t, sender, n_picked, drawn, chances, faults)
            n_lost += n_picked - n_arriving
            n_sent += n_picked - n_arriving
            n_picked = n_arriving
        if rule.n_targets > 0 or is_faulty:
            sent_now, n_receivers = send(
                sender, NO_AGENT, ZERO, n_picked, drawn, oldest, newest, seen, receivers, n_receivers
            )
        else:
            sent_now, n_receivers = send(
                sender, excluded, lowest, highest, indices, oldest, newest, seen, receivers, n_receivers
            )
        n_sent += sent_now
    return n_sent, n_lost, n_receivers


@block
def spread(
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
    links: OnLinks,
    faults: FaultRows,
) -> int:
    """Spread the message that `origin` makes of `arm` in round `sequence`.

    Writes transmissions by hop under `key` and, unless there is no place for any, learners behind `base`; adds the
    numbers of fates to `counts`, and every transmission to its link. Returns the number of learners.
    """
    indices, position, offsets = network.indices, agents.position, agents.offsets
    seen, senders, receivers = scratch.seen, scratch.senders, scratch.receivers
    learners, sent_by_hop, end_by_hop = fates.learners, fates.sent, fates.end
    decision_table, stores = rule.decision, fates.learners.shape[1] > 0
    asks_degree = rule.is_random or decision_table.shape[2] > 1
    restart_starts, restarts, has_outages = faults.restart_starts, faults.restarts, faults.up.shape[1] > 0
    oldest = scratch.next_mark[0]
    scratch.next_mark[0] = oldest + rule.reach + 1
    if rule.origin_remembers:
        seen[origin, MARK] = oldest
    seen[origin, PREVIOUS] = -1
    senders[0] = origin
    n_senders = 1
    n_learners = n_delivered = n_absorbed = n_expired = n_stopped = n_queued = n_lost = 0
    fates.base[key] = base
    for hop in range(1, rule.reach + 1):
        t = sequence + hop - 1
        if t > rule.horizon:
            n_senders = 0
        starts = network.starts[0 if network.is_static or n_senders == 0 else t - network.first_round]
        ttl = rule.ttl - hop
        newest = oldest + hop
        if has_outages and hop > 1 and n_senders > 0:
            up_row = t - faults.first_round
            for i in range(restart_starts[up_row], restart_starts[up_row + 1]):
                seen[restarts[i], MARK] = 0
        n_sent, n_lost_now, n_receivers = send_hop(
            origin, sequence, t, ttl + 1, oldest, newest, n_senders, starts, indices, rule, scratch, links, faults
        )
        n_lost += n_lost_now
        n_senders = 0
        for r in range(n_receivers):
            receiver = np.int64(receivers[r])
            place = position[np.uint64(receiver), np.uint64(arm)]
            has_arm = place >= 0
            degree = 0
            if asks_degree:
                degree = starts[receiver + 1] - starts[receiver]
            if rule.is_random:
                u = uniform(rule.stop_k0, rule.stop_k1, origin, sequence, receiver, ttl)
                decision = random_relay(has_arm, ttl, degree, u, rule.parameter)
            else:
                decision = decision_table[np.uint64(1 if has_arm else 0), np.uint64(hop - 1), np.uint64(degree)]
            if has_arm and not (decision == STOP and rule.stop_before_use):
                if stores:
                    learners[learner_row, base + n_learners] = offsets[np.uint64(receiver)] + place
                n_learners += 1
            if decision == ABSORB:
                n_absorbed += 1
            elif decision == STOP:
                n_stopped += 1
            elif ttl < 1:
                n_expired += 1
            else:
                senders[n_senders] = receiver
                n_senders += 1
        if t == rule.horizon:
            n_queued = n_senders
        n_delivered += n_receivers
        counts[fate.SENT] += n_sent
        sent_by_hop[key, hop - 1] = n_sent
        end_by_hop[key, hop - 1] = n_learners
    count_fates(n_delivered, n_absorbed, n_expired, n_stopped, n_queued, n_learners, counts)
    counts[fate.LOST] += n_lost
    return n_learners


@kernel
def spread_slots(
    network: Network,
    agents: Agents,
    rule: Rule,
    slots: Int64s,
    scratch: Scratch,
    fates: Fates,
    counts: Int64s,
    links: OnLinks,
    faults: FaultRows,
    stop: Int64s,
) -> None:
    """Spread one message, made in the first round, of each of some slots.

    What becomes of them is added to `counts`; nothing else is kept.
    """
    v = 0
    for slot in slots:
        if is_set(stop):
            return
        while agents.offsets[v + 1] <= slot:
            v += 1
        spread(
            v,
            agents.arms[slot],
            FIRST_ROUND,
            network,
            agents,
            rule,
            scratch,
            ZERO,
            ZERO,
            ZERO,
            fates,
            counts,
            links,
            faults,
        )
