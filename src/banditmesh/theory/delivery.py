"""What a protocol delivers: the share of an agent's pulls that another agent has, and how late.

The delivery theorem (docs/theory/delivery.md) requires two things of a protocol. *Share*: of agent j's pulls of an arm,
agent k has at least the share `share[j, k]` some `delay[j, k]` rounds later; a certain share, or the chance of each
pull to arrive. *Choice*: an agent's observations of an arm were chosen either before their rewards were known
("predictable"), or as a first part of each origin's pulls ("prefix"). Every shipped protocol has one of the two. Where
no share can be promised, an agent still has its own pulls: `share` is then 1 on the diagonal and 0 elsewhere.

The paper's theorems apply to fewer protocols: those in which an observation's fate follows from its origin and its arm,
namely Flooding (Theorem 1), of which Instant Reward Sharing is ttl 1, and Flooding with Absorption (Theorem 2). No
cooperation is ttl 0, and Centralised is Instant Reward Sharing on the complete network.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..faults import Faults
from ..networks.csr import Links
from ..problem import Problem
from ..protocols import AnyProtocol, Contested, EveryPull, Facts, Growth
from . import powers

#: Agents whose messages are followed at once; limits the memory, 8 bytes per directed link for each of them.
_BLOCK = 256


def claims_bound(protocol: AnyProtocol) -> bool:
    """Whether Theorems 1 and 2, with their cliques, cover this protocol.

    Examples
    --------
    >>> import banditmesh as bm
    >>> bm.theory.claims_bound(bm.FwA(4)), bm.theory.claims_bound(bm.Gossip(4))
    (True, False)
    """
    facts = protocol.facts
    return facts is not None and facts.is_settled and type(protocol.emission) is EveryPull


class Shares(NamedTuple):
    """What the second agent has of the first one's pulls: arrays (agents, agents).

    `share` is 1 on the diagonal, `delay` at least 1. `may` says whether the second may have anything at all from the
    first.
    """

    share: NDArray[np.float64]
    delay: NDArray[np.int64]
    may: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Flow:
    """What a protocol delivers in a problem.

    Attributes
    ----------
    problem : Problem
    links : Links
        The links that messages travel on; in tree aggregation, those of the tree.
    ttl : int
    first, relay : float arrays (agents,)
        The chance that a message gets from its origin, or from an agent that relays it, to a given neighbour.
    absorbs : bool
        Whether holders of an arm stop its messages.
    central : bool
        Whether every agent hears everything.
    held_back : float
        What a hop keeps of a share: 1, or `1 / (1 + factor)` under growth; once for all hops unless `each_hop`.
    each_hop : bool
        Whether every hop holds back, as in a tree.
    pace : int
        The most rounds that a hop takes.
    promises : bool
        Whether any share can be promised at all.
    prefix : bool
        Whether what an agent has is a first part of every origin's pulls, instead of a predictable choice.
    orderly : bool
        Whether what arrives does so within a fixed time, or is a first part anyway; the sharp constant requires it.
    """

    problem: Problem
    links: Links
    ttl: int
    first: NDArray[np.float64]
    relay: NDArray[np.float64]
    absorbs: bool
    central: bool
    held_back: float
    each_hop: bool
    pace: int
    promises: bool
    prefix: bool
    orderly: bool
    _known: dict[int, _Paths] = field(default_factory=dict, repr=False)

    @classmethod
    def under(cls, problem: Problem, protocol: AnyProtocol, faults: Faults | None = None) -> Flow | None:
        """What is delivered; None if the theorem does not cover the protocol or its emission."""
        facts = protocol.facts
        if facts is None or type(protocol.emission) not in (EveryPull, Growth, Contested):
            return None
        faults = (faults.effective() if faults is not None else None) or Faults()
        _refuse(faults)
        links = powers.static_links(problem)
        merges, central = facts.merges, facts.central
        if merges:
            links = protocol.plan(problem).links
        emission = protocol.emission
        cumulative = merges or (emission.cumulative and not central)
        grows = isinstance(emission, Growth) and not central
        first, relay = _chances(links, facts, faults.loss)
        chance = bool((first < 1.0).any() or (relay < 1.0).any())
        late = (faults.jitter > 0.0 and not central) or faults.outages is not None
        silent = isinstance(emission, Contested) and not merges and not central
        return cls(
            problem=problem,
            links=links,
            ttl=links.n_agents if merges else facts.hops,
            first=np.where(links.degrees > 0, first, 0.0),
            relay=np.where(links.degrees > 1, relay, 0.0),
            absorbs=facts.absorbs,
            central=central,
            held_back=1.0 / (1.0 + emission.parameter) if grows else 1.0,
            each_hop=merges,
            pace=facts.pause + faults.delay,
            promises=not (silent or late or (cumulative and chance)),
            prefix=cumulative,
            orderly=cumulative or faults.jitter == 0.0 or facts.hops == 0,
        )

    @classmethod
    def claimed(cls, problem: Problem, protocol: AnyProtocol) -> Flow:
        """What is delivered by a protocol that the paper's theorems must cover."""
        flow = cls.under(problem, protocol) if claims_bound(protocol) else None
        if flow is None:
            raise InputError(
                f"no clique bound is claimed for {protocol!r}; give Flooding, FwA, IRS, NoCooperation or Centralised, "
                "which send every pull and relay without randomness"
            )
        return flow

    @cached_property
    def sure(self) -> bool:
        """Whether delivery involves no randomness."""
        whole = self.central or bool(((self.first == 1.0) | (self.links.degrees == 0)).all())
        return whole and (self.central or bool(((self.relay == 1.0) | (self.links.degrees < 2)).all()))

    def shares(self, arm: int, agents: NDArray[np.int64]) -> Shares:
        """What each of these holders of an arm has of each one's pulls."""
        n = len(agents)
        found, hops, may = np.ones((n, n)), 1 - np.eye(n, dtype=np.int64), np.ones((n, n), dtype=np.bool_)
        if not self.central and n > 1:
            paths = self._paths(arm)
            places = np.searchsorted(paths.holders, agents)
            pairs = np.ix_(places, places)
            found, hops, may = paths.chances[pairs], paths.hops[pairs], paths.may[pairs]
        share = found * np.where(hops > 0, self.held_back ** (hops if self.each_hop else 1), 1.0)
        if not self.promises:
            share = np.zeros((n, n))
        np.fill_diagonal(share, 1.0)
        return Shares(share, np.maximum(hops, 0) * self.pace + (hops < 1), may)

    def joined(self, arm: int, agents: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which of these holders of an arm hear each other on it: a symmetric array, False on the diagonal."""
        if self.central:
            return ~np.eye(len(agents), dtype=np.bool_)
        relays = ~self.problem.who_has(arm) if self.absorbs else None
        return powers.adjacency(self.links, agents, relays, self.ttl)

    def _paths(self, arm: int) -> _Paths:
        """Between all holders of an arm; the last arm's paths are cached."""
        if arm not in self._known:
            self._known.clear()
            holds = self.problem.who_has(arm)
            holders = np.flatnonzero(holds)
            if self.sure:
                chances, hops = _first_hops(self.links, holders, ~holds if self.absorbs else None, self.ttl)
                may = hops >= 0
            else:
                relay = np.where(holds, 0.0, self.relay) if self.absorbs else self.relay
                chances, hops = best_paths(self.links, holders, self.first, relay, self.ttl)
                chances, hops = chances[:, holders], hops[:, holders]
                # Not from the chances: the product along a long path may be too small for a float.
                reached, _ = _first_hops(self.links, holders, relay > 0.0, self.ttl)
                may = (reached > 0.0) & (self.first[holders] > 0.0)[:, None] | np.eye(len(holders), dtype=np.bool_)
            self._known[arm] = _Paths(holders, chances, hops, may)
        return self._known[arm]


class _Paths(NamedTuple):
    """Between two holders of an arm: a message's best chance, the length of that path, and whether there is any."""

    holders: NDArray[np.int64]
    chances: NDArray[np.float64]
    hops: NDArray[np.int64]
    may: NDArray[np.bool_]


def best_paths(
    links: Links,
    sources: NDArray[np.int64],
    first: NDArray[np.float64],
    relay: NDArray[np.float64],
    ttl: int,
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """The best chance of each source's message to reach each agent on one path, and how long that path is.

    Examples
    --------
    Along a path of three agents whose relays pass on half of what they hear:

    >>> path = Links.from_pairs(3, [(0, 1), (1, 2)])
    >>> chance, hops = best_paths(path, np.array([0]), np.ones(3), np.full(3, 0.5), ttl=4)
    >>> chance[0].tolist(), hops[0].tolist()
    ([1.0, 1.0, 0.5], [0, 1, 2])
    """
    n_agents, n_sources = links.n_agents, len(sources)
    best, hops = np.zeros((n_sources, n_agents)), np.full((n_sources, n_agents), -1, dtype=np.int64)
    best[np.arange(n_sources), sources], hops[np.arange(n_sources), sources] = 1.0, 0
    linked = np.flatnonzero(links.degrees)
    if not linked.size:
        return best, hops
    for start in range(0, n_sources, _BLOCK):
        block = slice(start, min(start + _BLOCK, n_sources))
        fresh = best[block] * first
        for hop in range(1, ttl + 1):
            arriving = np.zeros_like(fresh)
            arriving[:, linked] = np.maximum.reduceat(fresh[:, links.indices], links.indptr[linked], axis=1)
            better = arriving > best[block]
            if not better.any():
                break
            best[block][better], hops[block][better] = arriving[better], hop
            fresh = np.where(better, arriving, 0.0) * relay
    return best, hops


def _first_hops(
    links: Links, agents: NDArray[np.int64], relays: NDArray[np.bool_] | None, ttl: int
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """What `best_paths` gives between these agents, if every agent that relays does so for certain."""
    hops = np.full((len(agents), len(agents)), -1, dtype=np.int64)
    np.fill_diagonal(hops, 0)
    for hop, reached in enumerate(powers.spread(links, agents, relays, ttl), start=1):
        hops.T[reached[agents]] = hop
    return (hops >= 0).astype(float), hops


def _chances(links: Links, facts: Facts, loss: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    degrees = np.maximum(links.degrees.astype(float), 1.0)
    fanout = links.n_agents if facts.fanout is None else facts.fanout
    first = (1.0 - loss) * np.minimum(1.0, fanout / degrees)
    relay = (1.0 - loss) * facts.passes * np.minimum(1.0, fanout / np.maximum(degrees - 1.0, 1.0))
    return first, relay


def _refuse(faults: Faults) -> None:
    outages = faults.outages
    forgets = outages is not None and not outages.memory
    if faults.corruption is not None or faults.link_cap is not None or faults.reward_delay or forgets or faults.liars:
        raise InputError(
            "bounds allow for losses, delays, jitter and outages with memory, got "
            f"{faults}; leave out corruption, link_cap, liars, reward_delay and outages that forget"
        )
