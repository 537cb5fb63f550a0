"""How many transmissions a protocol can cost, as published and as it is (the paper's Sections 3.3 and 4).

By the sound rules an agent passes a message on at most once, to all neighbours but the one it came from. So a message
costs at most `2 |E| - N + 1` transmissions in a connected network, whatever the ttl: its origin sends to all its
neighbours, each other agent to all but one. With the ttl in view the count is sharper, and exact for Flooding, whose
traffic does not depend on rewards. Under growth an agent makes few messages: an arm that was pulled n times was sent at
most `1 + log n / log(1 + factor)` times, and each time echoed so often.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..networks.csr import Links
from ..problem import Problem
from ..protocols import (
    AnyProtocol,
    EveryPull,
    Flooding,
    FloodingWithAbsorption,
    Gossip,
    Growth,
    InstantRewardSharing,
    TreeAggregation,
)
from ..protocols.notation import as_protocol
from ..protocols.spanning import spanning_tree
from . import powers


@dataclass(frozen=True)
class Traffic:
    """Upper bounds on the transmissions of a run.

    Attributes
    ----------
    published : float
        What the paper states; nan where it states nothing.
    corrected : int
        At most `2 |E| - N + 1` per message, in each component; of tree aggregation, one per pause for each link of the
        tree and arm that somebody beyond has.
    within_ttl : int
        At most this, with ttl, arm sets and growth in view.
    exact : bool
        Whether `within_ttl` is the very number, by the sound rules.

    Examples
    --------
    >>> import banditmesh as bm
    >>> bm.bounds(bm.Problem.paper("er"), bm.IRS(), cover="greedy").traffic.corrected
    306000
    """

    published: float
    corrected: int
    within_ttl: int
    exact: bool


def traffic_bounds(problem: Problem, protocol: AnyProtocol | str, horizon: int) -> Traffic:
    """How many transmissions a run of `horizon` rounds can cost by the sound rules.

    Parameters
    ----------
    problem : Problem
        With a static network.
    protocol : AnyProtocol or str
        Any protocol; its own relay rule can only save transmissions.
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
    links = powers.static_links(problem)
    if protocol.most_hops == 0:
        return Traffic(0.0, 0, 0, True)
    if isinstance(protocol, TreeAggregation):
        # Each arm that is wanted beyond a link, once in every pause; merged counts are of all but the receiver.
        tree = spanning_tree(links, problem.arm_offsets, problem.arm_indices, problem.n_arms)
        wanted = tree.wants.sum(axis=1)
        sent = wanted * -(-horizon // protocol.pause)
        most = int(sent.sum()) + tree.n_control
        if isinstance(protocol.emission, Growth):
            sent = np.minimum(sent, _grown(wanted, protocol.emission, max(1, links.n_agents - 1) * horizon))
        return Traffic(math.nan, most, int(sent.sum()) + tree.n_control, False)
    corrected = _per_round(links) * horizon
    every = type(protocol.emission) is EveryPull
    if protocol.most_hops == 1:
        corrected = 2 * links.n_links * horizon
    absorbs = isinstance(protocol, FloodingWithAbsorption)
    copies = (
        _absorbed_copies(problem, links, protocol.most_hops) if absorbs else _flooded_copies(links, protocol.most_hops)
    )
    within = min(int(copies.sum()) * horizon, corrected) if absorbs else _flooded(links, protocol.most_hops, horizon)
    if isinstance(protocol, Gossip):
        fewest = sum(protocol.fanout**hop for hop in range(1, protocol.most_hops + 1))
        copies = np.minimum(copies, fewest)
        within = min(within, fewest * links.n_agents * horizon)
    if isinstance(protocol.emission, Growth):
        sizes = np.diff(problem.arm_offsets)
        within = min(within, int(copies @ np.minimum(_grown(sizes, protocol.emission, horizon), horizon)))
    exact = type(protocol) in (Flooding, InstantRewardSharing) and every
    return Traffic(_published(links, protocol, horizon), corrected, within, exact)


def _published(links: Links, protocol: AnyProtocol, horizon: int) -> float:
    if type(protocol) not in (Flooding, InstantRewardSharing, FloodingWithAbsorption):
        return math.nan
    return float(protocol.most_hops * links.n_agents * links.n_links * horizon)


def _per_round(links: Links) -> int:
    """Every agent's message of one round, passed on by everybody who is connected with it."""
    labels = links.components()
    agents = np.bincount(labels)
    directed = np.bincount(labels, weights=links.degrees).astype(np.int64)
    return int((agents * (directed - agents + 1)).sum())


def _flooded(links: Links, ttl: int, horizon: int) -> int:
    """Transmissions of Flooding in so many rounds; what is still queued at the horizon is not sent."""
    total = int(links.degrees.sum()) * horizon
    for sources in powers.blocks(links.n_agents):
        for hop, reached in enumerate(powers.spread(links, sources, None, ttl - 1), start=1):
            copies = reached.sum(axis=1, dtype=np.int64) @ (links.degrees - 1)
            total += int(copies) * max(horizon - hop, 0)
    return total


def _flooded_copies(links: Links, ttl: int) -> NDArray[np.int64]:
    """For each agent what one of its messages costs under Flooding."""
    copies = links.degrees.astype(np.int64)
    for sources in powers.blocks(links.n_agents):
        for reached in powers.spread(links, sources, None, ttl - 1):
            copies[sources] += (links.degrees - 1) @ reached.astype(np.int64)
    return copies


def _absorbed_copies(problem: Problem, links: Links, ttl: int) -> NDArray[np.int64]:
    """For each agent what one of its messages costs with absorption, of the arm whose messages go farthest."""
    most = np.zeros(links.n_agents, dtype=np.int64)
    for index in range(problem.n_arms):
        holds = powers.holds(problem, index)
        holders = np.flatnonzero(holds)
        passed_on = np.where(holds, 0, links.degrees - 1)
        copies = links.degrees[holders]
        for reached in powers.spread(links, holders, ~holds, ttl - 1):
            copies = copies + passed_on @ reached.astype(np.int64)
        most[holders] = np.maximum(most[holders], copies)
    return most


def _grown(sizes: NDArray[np.int64], emission: Growth, pulls: int) -> NDArray[np.int64]:
    """How many times counts are sent at most, of so many arms each, that add up to `pulls`.

    Counts at which an arm is sent grow by the factor at least. The sum of `1 + log n / log(1 + factor)` over so many
    arms is largest if all are pulled equally often, and of how many arms is tried.
    """
    if emission.factor == 0.0:
        return np.where(sizes > 0, (1 + emission.echoes) * pulls, 0)
    n_arms = np.arange(1, max(1, min(int(sizes.max(initial=0)), pulls)) + 1)
    sent = n_arms * (1.0 + np.log(pulls / n_arms) / math.log1p(emission.factor))
    most = np.concatenate([[0.0], np.maximum.accumulate(sent)])[np.minimum(sizes, len(n_arms))]
    times = 1 + emission.echoes
    return np.asarray(np.minimum(np.floor(times * (most + 1e-9)), times * pulls).astype(np.int64))
