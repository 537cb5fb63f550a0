"""Which links planned messages take: found once for a plan, and added up chunk by chunk from what was made when.

By a plan nothing is sent while rounds are simulated. A message's copies of hop h are sent h - 1 rounds after it is
made, each along a link that depends on its slot alone; where holders relay as all others do, on its origin alone.
"""

from __future__ import annotations

import numpy as np

from ....protocols.relaying import RELAY
from .compiling import kernel
from .layout import MARK, PREVIOUS, ZERO, Agents, Int32s, Int64s, Network, OnLinks, Rule, Scratch, Ways
from .spread import send
from .stopping import is_set


@kernel
def find_ways(network: Network, agents: Agents, rule: Rule, scratch: Scratch, ways: Ways, stop: Int64s) -> None:
    """Write the places of all ways, whose ends are given.

    Follows `spread` for a rule that draws nothing, where nothing is lost.
    """
    starts, indices, offsets, position = network.starts[0], network.indices, agents.offsets, agents.position
    seen, senders, receivers, decision_table = scratch.seen, scratch.senders, scratch.receivers, rule.decision
    ends, places, asks_degree = ways.ends, ways.places, rule.decision.shape[2] > 1
    origin = ZERO
    for k in range(len(ends)):
        if is_set(stop):
            return
        if ways.of_agents:
            origin = k
        while offsets[origin + 1] <= k and not ways.of_agents:
            origin += 1
        arm = agents.arms[offsets[origin] if ways.of_agents else k]
        oldest, end = scratch.next_mark[0], ends[k, 0]
        scratch.next_mark[0] = oldest + rule.reach + 1
        if rule.origin_remembers:
            seen[origin, MARK] = oldest
        seen[origin, PREVIOUS] = -1
        senders[0], n_senders = origin, 1
        for hop in range(1, rule.reach + 1):
            n_receivers = ZERO
            for s in range(n_senders):
                sender = np.int64(senders[s])
                excluded = -1 if rule.relay_to_sender else seen[sender, PREVIOUS]
                lowest, highest = starts[sender], starts[sender + 1]
                for i in range(lowest, highest):
                    if indices[i] != excluded:
                        places[end] = i
                        end += 1
                _, n_receivers = send(
                    sender, excluded, lowest, highest, indices, oldest, oldest + hop, seen, receivers, n_receivers
                )
            n_senders = 0
            for r in range(n_receivers if hop < rule.ttl else 0):
                receiver = np.int64(receivers[r])
                degree = starts[receiver + 1] - starts[receiver] if asks_degree else 0
                holds = 1 if position[receiver, arm] >= 0 else 0
                if decision_table[holds, hop - 1, degree] == RELAY:
                    senders[n_senders] = receiver
                    n_senders += 1


@kernel
def count_on_links(
    first: int, horizon: int, made: Int32s, ways: Ways, n_made: Int64s, links: OnLinks, stop: Int64s
) -> None:
    """Count where the messages made from round `first` on are sent, up to the horizon; `n_made` is workspace by agent.

    Where ways are agents', messages are counted first: those of a hop that fall into one record go on links together.
    """
    ends, places, rows, on_link, reach = ways.ends, ways.places, links.rows, links.on_link, ways.ends.shape[1] - 1
    n_agents = made.shape[1]
    for hop in range(reach):
        # The copies of this hop that are sent before or at the horizon.
        n_rounds = min(len(made), horizon - hop - first + 1)
        for i in range(n_rounds):
            if is_set(stop):
                return
            place = first + i + hop - links.first_round
            row = rows[place]
            if not ways.of_agents:
                for v in range(n_agents):
                    slot = made[i, v]
                    if slot >= 0:
                        for p in range(ends[slot, hop], ends[slot, hop + 1]):
                            on_link[row + places[p]] += 1
                continue
            for v in range(n_agents):
                n_made[v] += 1 if made[i, v] >= 0 else 0
            if i + 1 == n_rounds or rows[place + 1] != row:
                for v in range(n_agents):
                    for p in range(ends[v, hop], ends[v, hop + 1]):
                        on_link[row + places[p]] += n_made[v]
                    n_made[v] = 0
