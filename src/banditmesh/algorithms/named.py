"""Published algorithms that the package's protocols already are, under their own names.

Each is a protocol of `protocols/` with nothing changed but its name: the same rules, messages and bytes, on either
engine. So that a name means what its paper means, none takes another emission. The name does not set the policy, which
is the run's: each says which one its paper has.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from ..protocols import Contested, Emission, EveryPull, Flooding, InstantRewardSharing


@dataclass(frozen=True)
class ComEx(Flooding):
    """ComEx: agents send what they see when they explore, and nothing of the arm that seems best to them.

    `comex(g)` is `flooding(g)+contested`, and `comex(1)` is `irs+contested`: an agent sends an observation unless its
    arm had the highest mean when it was chosen.

    Parameters
    ----------
    ttl : int
        How many hops an observation may travel: 1 for instantaneous reward sharing, more for message passing.

    Notes
    -----
    Madhushani and Leonard, "When to Call Your Neighbor? Strategic Communication in Cooperative Stochastic Bandits",
    2021: O(log T) messages, and regret of the same order as with all of them. The policy is UCB. Observations of 24
    bytes. The paper was read in its abstract, not in full.

    Examples
    --------
    >>> import banditmesh as bm
    >>> problem = bm.Problem.random(bm.networks.ring(8), n_arms=4, per_agent=2, seed=0)
    >>> named, plain = (
    ...     bm.simulate(problem, text, horizon=50, seed=0, engine="reference")
    ...     for text in ("comex(3)", "flooding(3)+contested")
    ... )
    >>> named.protocol, bool((named.regret == plain.regret).all())
    ('comex', True)
    """

    emission: Emission = field(default_factory=Contested, init=False, repr=False)
    name: ClassVar[str] = "comex"


@dataclass(frozen=True)
class UCBNetwork(InstantRewardSharing):
    """UCB-Network: each agent sees what it and its neighbours pull, which is `irs`.

    Notes
    -----
    Kolla, Jagannathan and Gopalan, "Collaborative Learning of Stochastic Bandits over a Social Network", IEEE/ACM
    Transactions on Networking 26(4), 2018. Their policy is `UCB(alpha=2)`, over all that an agent has seen. In the
    paper neighbours see each other's pulls, at no cost; here a pull takes a message of 24 bytes to each of them.

    Examples
    --------
    >>> import banditmesh as bm
    >>> problem = bm.Problem(bm.networks.star(5), [[0, 1]] * 5, [bm.arms.Bernoulli(0.4), bm.arms.Bernoulli(0.6)])
    >>> result = bm.simulate(problem, "ucb-network", policy="ucb(2)", horizon=50, seed=0, engine="reference")
    >>> result.protocol, int(result.traffic["sent"][0])
    ('ucb-network', 400)
    """

    emission: Emission = field(default_factory=EveryPull, init=False, repr=False)
    name: ClassVar[str] = "ucb-network"


@dataclass(frozen=True)
class MPUCB(Flooding):
    """MP-UCB: observations are passed on for a number of hops, which is `flooding`.

    Parameters
    ----------
    ttl : int
        How many hops an observation may travel, gamma in the papers.

    Notes
    -----
    Dubey and Pentland, "Cooperative Multi-Agent Bandits with Heavy Tails", ICML 2020; with delays, losses and
    corruption Madhushani, Dubey, Leonard and Pentland, "One More Step Towards Reality: Cooperative Bandits with
    Imperfect Communication", 2021. The policy is UCB; the robust estimators that the first paper has for heavy tails
    are not part of this package, whose estimates are means. Observations of 24 bytes.

    Examples
    --------
    >>> import banditmesh as bm
    >>> bm.algorithms.MPUCB(4)
    MPUCB(ttl=4)
    """

    emission: Emission = field(default_factory=EveryPull, init=False, repr=False)
    name: ClassVar[str] = "mp-ucb"


@dataclass(frozen=True)
class CoUCB(Flooding):
    """CO-UCB: every observation reaches everybody who has its arm, which is `flooding` with a ttl that goes that far.

    Parameters
    ----------
    ttl : int
        How many hops an observation may travel; at least the network's diameter, for all to be reached.

    Notes
    -----
    Yang, Chen, Hajiesmaili, Lui and Towsley, "Distributed Bandits with Heterogeneous Agents", INFOCOM 2022, with
    unequal arm sets and agents that pull at different rates. The policy is UCB. In the paper agents send straight to
    those who have the arm; on a network an observation of 24 bytes is passed on from neighbour to neighbour.

    Examples
    --------
    >>> import banditmesh as bm
    >>> bm.protocols.notation.write(bm.algorithms.CoUCB(6))
    'co-ucb(6)'
    """

    emission: Emission = field(default_factory=EveryPull, init=False, repr=False)
    name: ClassVar[str] = "co-ucb"
