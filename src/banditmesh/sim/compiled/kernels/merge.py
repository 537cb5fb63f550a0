"""Rounds in which agents send merged statistics along a tree, as `core.Merging` does.

Whether an agent tells a neighbour something depends on what it knew when the round's outboxes were filled, so all
decide before anything arrives. Totals are added up anew whenever they are sent, in the order of neighbours: a running
total would round differently.
"""

from __future__ import annotations

from . import fate
from .compiling import helper, kernel, routine
from .emissions import sends_now
from .faults import arrives, restart
from .forgetting import add_own, begin_merged
from .layout import COUNT, NEVER_TOLD, TOTAL, Agents, Arrays, Chunk, FaultRows, Int64s, Merged, Rule, State, TreeLinks
from .pulls import pull_rounds
from .stopping import is_set


@routine
def restart_merged(t: int, tree: TreeLinks, faults: FaultRows, merged: Merged) -> None:
    """Agents that come up in round `t` without their memory have told nothing, and have been told nothing.

    Messages are numbered on: one that follows is not one that went before, and meets losses of its own.
    """
    row = t - faults.first_round
    for i in range(faults.restart_starts[row], faults.restart_starts[row + 1]):
        v = faults.restarts[i]
        merged.counts[v, :] = 0
        merged.is_open[v, :] = 0
        for link in range(tree.starts[v], tree.starts[v + 1]):
            merged.told_counts[link, :] = 0
            merged.told_totals[link, :] = 0.0
            merged.sent_counts[link, :] = 0
            merged.sent_rounds[link, :] = NEVER_TOLD
            merged.echoes_left[link, :] = 0


@helper
def count_beside(v: int, arm: int, link: int, agents: Agents, tree: TreeLinks, merged: Merged, state: State) -> int:
    """What v could tell the neighbour at a link: all that it knows of, less what it has from there."""
    return int(merged.counts[v, arm] - merged.told_counts[link, arm])


@helper
def told_count(link: int, arm: int, merged: Merged) -> int:
    """What the neighbour at a link was last told."""
    return int(merged.sent_counts[link, arm])


@helper
def weight_beside(v: int, arm: int, link: int, agents: Agents, tree: TreeLinks, merged: Merged, state: State) -> float:
    """In the place of `count_beside` by memories that discount: weights are added up anew, as sums are."""
    place = agents.position[v, arm]
    weight: float = state.own_weights[agents.offsets[v] + place] if place >= 0 else 0.0
    for other in range(tree.starts[v], tree.starts[v + 1]):
        if other != link:
            weight += merged.told_counts[other, arm]
    return weight


@helper
def told_weight(link: int, arm: int, merged: Merged) -> float:
    """In the place of `told_count`."""
    weight: float = merged.sent_counts[link, arm]
    return weight


@routine
def decide(
    t: int, pause: int, rule: Rule, agents: Agents, tree: TreeLinks, chunk: Chunk, merged: Merged, state: State
) -> None:
    """Note what every agent that is up tells its neighbours in round `t`.

    An arm stays open while a link's pause keeps something back or an echo is left. Otherwise it is looked at again when
    something new is known of it: the same counts would give the same answer.
    """
    starts, wants, position, offsets = tree.starts, tree.wants, agents.position, agents.offsets
    told_totals, counts, own = merged.told_totals, merged.counts, state.own_totals
    sent_counts, sent_totals, sent_rounds = merged.sent_counts, merged.sent_totals, merged.sent_rounds
    is_open, tells, echoes_left = merged.is_open, merged.tells, merged.echoes_left
    up, up_row, stop = chunk.faults.up, t - chunk.faults.first_round, chunk.stop
    for v in range(len(counts)):
        if is_set(stop):
            return
        if up.shape[1] > 0 and up[up_row, v] == 0:
            continue
        first, last = starts[v], starts[v + 1]
        for arm in range(counts.shape[1]):
            if is_open[v, arm] == 0:
                continue
            is_open[v, arm] = 0
            for link in range(first, last):
                if wants[link, arm] == 0:
                    continue
                count = count_beside(v, arm, link, agents, tree, merged, state)
                sent_count = told_count(link, arm, merged)
                if count == 0:
                    echoes_left[link, arm] = 0
                left = echoes_left[link, arm]
                if count <= sent_count and left == 0:
                    continue
                if t - sent_rounds[link, arm] < pause:
                    is_open[v, arm] = 1
                    continue
                is_new = count > sent_count and sends_now(rule, count, sent_count, False)
                if not is_new and left == 0:
                    continue
                left = rule.n_echoes if is_new else left - 1
                echoes_left[link, arm] = left
                if left > 0:
                    is_open[v, arm] = 1
                if is_set(stop):
                    return
                place = position[v, arm]
                total = own[offsets[v] + place] if place >= 0 else 0.0
                for other in range(first, last):
                    if other != link:
                        total += told_totals[other, arm]
                sent_counts[link, arm] = count
                sent_totals[link, arm] = total
                sent_rounds[link, arm] = t
                tells[v, arm] = 1


@routine
def tell(t: int, agents: Agents, tree: TreeLinks, chunk: Chunk, merged: Merged, state: State, fates: Int64s) -> int:
    """Deliver what agents tell in round `t`; how many messages."""
    starts, neighbours, backward, places = tree.starts, tree.neighbours, tree.backward, tree.places
    told_counts, told_totals, counts = merged.told_counts, merged.told_totals, merged.counts
    sent_counts, sent_totals, sent_rounds = merged.sent_counts, merged.sent_totals, merged.sent_rounds
    is_open, tells, n_sent = merged.is_open, merged.tells, merged.n_sent
    position, offsets, stop = agents.position, agents.offsets, chunk.stop
    links, on_link, faults = chunk.links, chunk.links.on_link, chunk.faults
    sums = state.sums
    n_messages = 0
    for v in range(len(counts)):
        if is_set(stop):
            return n_messages
        for arm in range(counts.shape[1]):
            if tells[v, arm] == 0:
                continue
            tells[v, arm] = 0
            for link in range(starts[v], starts[v + 1]):
                if sent_rounds[link, arm] != t:
                    continue
                receiver, back = neighbours[link], backward[link]
                n_sent[link] += 1
                n_messages += 1
                if len(on_link) > 0:
                    on_link[links.rows[t - links.first_round] + places[link]] += 1
                if not arrives(v, n_sent[link], v, receiver, t, faults):
                    fates[fate.LOST] += 1
                    continue
                count, before = sent_counts[link, arm], told_counts[back, arm]
                if count <= before:
                    continue
                fates[fate.DELIVERED] += 1
                fates[fate.ABSORBED] += 1
                place = position[receiver, arm]
                if place >= 0:
                    sums[offsets[receiver] + place, COUNT] += count - before
                    sums[offsets[receiver] + place, TOTAL] += sent_totals[link, arm] - told_totals[back, arm]
                    fates[fate.HEARD] += 1
                told_counts[back, arm] = count
                told_totals[back, arm] = sent_totals[link, arm]
                counts[receiver, arm] += count - before
                is_open[receiver, arm] = 1
    return n_messages


@kernel
def merge_rounds(last: int, chunk: Chunk, arrays: Arrays, pause: int, tree: TreeLinks, merged: Merged) -> None:
    """Simulate the rounds of a chunk, up to before `last`."""
    agents, rule, keys, state = arrays.agents, arrays.rule, arrays.keys, arrays.state
    known, pulls, counts = arrays.known, arrays.pulls, arrays.counts
    slots, rewards, own_totals = pulls.slots, pulls.rewards, state.own_totals
    for t in range(chunk.first, last):
        begin_merged(t, keys, merged)
        if len(chunk.faults.restarts) > 0:
            restart(t, agents, chunk, known, state)
            restart_merged(t, tree, chunk.faults, merged)
        step = t - chunk.first
        pull_rounds(t, t + 1, agents, chunk, keys, rule.asks_best, state, pulls)
        for v in range(len(slots)):
            slot = slots[v]
            if slot >= 0:
                arm = agents.arms[slot]
                own_totals[slot] += rewards[v]
                add_own(slot, pulls.amounts[v], state)
                merged.counts[v, arm] += 1
                merged.is_open[v, arm] = 1
        decide(t, pause, rule, agents, tree, chunk, merged, state)
        n_sent = tell(t, agents, tree, chunk, merged, state, counts)
        chunk.sent[step] = n_sent
        counts[fate.SENT] += n_sent
        if is_set(chunk.stop):
            return
