"""How many transmissions a protocol can cost, as published and as it is (the paper's Sections 3.3 and 4).

Under the sound rules an agent passes a message on at most once, to all neighbours except the one it came from. So a
message costs at most `2 |E| - N + 1` transmissions in a connected network, whatever the ttl: its origin sends to all
its neighbours, each other agent to all but one. Taking the ttl into account the count is sharper, and exact for
Flooding, whose traffic does not depend on rewards. Under growth an agent makes few messages: an arm that was pulled n
times was sent at most `1 + log n / log(1 + factor)` times, each with its echoes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..networks.csr import Links
from ..problem import Problem
from ..protocols import AnyProtocol, EveryPull, Facts, Growth
from ..protocols.notation import as_protocol
from . import powers


@dataclass(frozen=True)
class Traffic:
    """Upper bounds on the transmissions of a run.

    Attributes
    ----------
    published : float
        What the paper states; nan where it states nothing.
    corrected : float
        At most `2 |E| - N + 1` per message, in each component; for tree aggregation, one per pause for each link of the
        tree and arm that an agent beyond it has.
    within_ttl : float
        At most this, taking ttl, arm sets and growth into account.
    exact : bool
        Whether `within_ttl` is the exact number, under the sound rules.

    Examples
    --------
    >>> import banditmesh as bm
    >>> bm.bounds(bm.Problem.paper("er"), bm.IRS(), cover="greedy").traffic.corrected
    306000
    """

    published: float
    corrected: float
    within_ttl: float
    exact: bool


def traffic_bounds(problem: Problem, protocol: AnyProtocol | str, horizon: int) -> Traffic:
    """How many transmissions a run of `horizon` rounds can cost under the sound rules.

    Parameters
    ----------
    problem : Problem
        With a static network.
    protocol : AnyProtocol or str
        Any protocol; your own relay rule can only save transmissions. For a protocol with its own courier or agent
        nothing is known: nan.
    horizon : int
        The number of rounds, every agent pulling in each.

    Examples
    --------
    >>> import banditmesh as bm
    >>> problem = bm.Problem.paper("er", seed=0)
    >>> traffic = bm.theory.traffic_bounds(problem, bm.Flooding(4), horizon=1000)
    >>> traffic.within_ttl, traffic.exact, traffic.corrected, traffic.published
    (7810364, True, 20700000, 61200000.0)
    """
    protocol = as_protocol(protocol)
    links, facts = powers.static_links(problem), protocol.facts
    if not protocol.sends_messages:
        return Traffic(0.0, 0, 0, True)
    if facts is not None and facts.merges:
        # Each arm that agents beyond a link have, once in every pause; merged counts are of all but the receiver.
        tree = protocol.plan(problem)
        wanted = tree.wants.sum(axis=1)
        sent = wanted * -(-horizon // facts.pause)
        most = int(sent.sum()) + tree.n_control
        if isinstance(protocol.emission, Growth):
            sent = np.minimum(sent, _grown(wanted, protocol.emission, max(1, links.n_agents - 1) * horizon))
        return Traffic(math.nan, most, int(sent.sum()) + tree.n_control, False)
    if not protocol.relays_by_rule:
        return Traffic(math.nan, math.nan, math.nan, False)
    if facts is None:
        # Whatever its rule, an agent passes a message on at most once: it may do so always.
        facts = Facts(hops=protocol.most_hops, passes=math.nan)
    corrected = (_per_round(links) if facts.hops > 1 else 2 * links.n_links) * horizon
    if facts.absorbs:
        copies = _absorbed_copies(problem, links, facts.hops)
        within = min(int(copies.sum()) * horizon, corrected)
    else:
        by_hop = _flooded_copies(links, facts.hops)
        copies = by_hop.sum(axis=0)
        # Messages still queued at the horizon are not sent.
        within = sum(int(sent.sum()) * max(horizon - hop, 0) for hop, sent in enumerate(by_hop))
    if facts.fanout is not None:
        fewest = sum(facts.fanout**hop for hop in range(1, facts.hops + 1))
        copies = np.minimum(copies, fewest)
        within = min(within, fewest * links.n_agents * horizon)
    if isinstance(protocol.emission, Growth):
        sizes = np.diff(problem.arm_offsets)
        within = min(within, int(copies @ np.minimum(_grown(sizes, protocol.emission, horizon), horizon)))
    sure = facts.passes == 1.0 and facts.fanout is None
    exact = sure and not facts.absorbs and type(protocol.emission) is EveryPull
    published = float(facts.hops * links.n_agents * links.n_links * horizon) if sure else math.nan
    return Traffic(published, corrected, within, exact)


def _per_round(links: Links) -> int:
    """Every agent's message of one round, passed on by all agents connected with it."""
    labels = links.components()
    agents = np.bincount(labels)
    directed = np.bincount(labels, weights=links.degrees).astype(np.int64)
    return int((agents * (directed - agents + 1)).sum())


def _flooded_copies(links: Links, ttl: int) -> NDArray[np.int64]:
    """What a message of each agent costs under Flooding in its first round, the second, ...: (rounds, agents)."""
    copies = [links.degrees.astype(np.int64)]
    for sources in powers.blocks(links.n_agents):
        for hop, reached in enumerate(powers.spread(links, sources, None, ttl - 1), start=1):
            if hop == len(copies):
                copies.append(np.zeros(links.n_agents, dtype=np.int64))
            copies[hop][sources] = (links.degrees - 1) @ reached.astype(np.int64)
    return np.array(copies)


def _absorbed_copies(problem: Problem, links: Links, ttl: int) -> NDArray[np.int64]:
    """For each agent what one of its messages costs with absorption, of the arm whose messages go farthest."""
    most = np.zeros(links.n_agents, dtype=np.int64)
    for index in range(problem.n_arms):
        holds = problem.who_has(index)
        holders = np.flatnonzero(holds)
        passed_on = np.where(holds, 0, links.degrees - 1)
        copies = links.degrees[holders]
        for reached in powers.spread(links, holders, ~holds, ttl - 1):
            copies = copies + passed_on @ reached.astype(np.int64)
        most[holders] = np.maximum(most[holders], copies)
    return most


def _grown(sizes: NDArray[np.int64], emission: Growth, pulls: int) -> NDArray[np.int64]:
    """The most times that counts of `sizes` arms are sent, if they add up to `pulls`.

    The counts sent grow by at least the factor. The sum of `1 + log n / log(1 + factor)` over some arms is largest if
    all are pulled equally often; every number of arms up to the size is tried.
    """
    if emission.factor == 0.0:
        return np.where(sizes > 0, (1 + emission.echoes) * pulls, 0)
    n_arms = np.arange(1, max(1, min(int(sizes.max(initial=0)), pulls)) + 1)
    sent = n_arms * (1.0 + np.log(pulls / n_arms) / math.log1p(emission.factor))
    most = np.concatenate([[0.0], np.maximum.accumulate(sent)])[np.minimum(sizes, len(n_arms))]
    times = 1 + emission.echoes
    return np.asarray(np.minimum(np.floor(times * (most + 1e-9)), times * pulls).astype(np.int64))
