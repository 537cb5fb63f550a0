"""Which protocols the paper's theorems speak of, and who hears whom under each of them.

They are about protocols in which an observation's fate follows from its origin and its arm: Flooding (Theorem 1), of
which Instant Reward Sharing is ttl 1, and Flooding with Absorption (Theorem 2). No cooperation is ttl 0, and
Centralised is Instant Reward Sharing on the complete network. Of protocols that relay by chance or do not send every
observation only the delivery theorem speaks (`delivery`), and of anybody's own protocol nothing does.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..networks.csr import Links
from ..problem import Problem
from ..protocols import AnyProtocol, EveryPull
from . import powers


def claims_bound(protocol: AnyProtocol) -> bool:
    """Whether Theorems 1 and 2, with their cliques, speak of this protocol.

    Examples
    --------
    >>> import banditmesh as bm
    >>> bm.theory.claims_bound(bm.FwA(4)), bm.theory.claims_bound(bm.Gossip(4))
    (True, False)
    """
    facts = protocol.facts
    return facts is not None and not (facts.merges or facts.by_chance) and type(protocol.emission) is EveryPull


@dataclass(frozen=True, eq=False)
class Hearing:
    """Who hears whom under a protocol.

    Attributes
    ----------
    links : Links
    ttl : int
        The paper's gamma: 0 without cooperation, 1 if everybody hears everything at once.
    absorbs : bool
        Whether holders of an arm stop its messages.
    central : bool
        Whether the network plays no part.
    """

    problem: Problem
    links: Links
    ttl: int
    absorbs: bool
    central: bool

    @classmethod
    def under(cls, problem: Problem, protocol: AnyProtocol) -> Hearing:
        """Who hears whom in that problem under that protocol, of which the paper's theorems must speak."""
        if not claims_bound(protocol):
            raise InputError(
                f"no clique bound is claimed for {protocol!r}; give Flooding, FwA, IRS, NoCooperation or Centralised, "
                "which send every pull and relay without chance"
            )
        facts = protocol.facts
        assert facts is not None
        return cls(
            problem=problem,
            links=powers.static_links(problem),
            ttl=1 if facts.central else facts.hops,
            absorbs=facts.absorbs,
            central=facts.central,
        )

    def adjacency(self, arm: int, agents: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which of these holders of an arm hear each other on it: a symmetric array, False on the diagonal."""
        if self.central:
            return ~np.eye(len(agents), dtype=np.bool_)
        if len(agents) < 2:
            return np.zeros((len(agents), len(agents)), dtype=np.bool_)
        return powers.adjacency(self.links, agents, self._relays(arm), self.ttl)

    def _relays(self, arm: int) -> NDArray[np.bool_] | None:
        return ~powers.holds(self.problem, arm) if self.absorbs else None
