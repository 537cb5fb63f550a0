"""CO-AAE: elimination over flooding, in which an agent that has made up its mind is silent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from .. import checks
from ..core import Agent, Place, Relaying
from ..protocols import Contested, Flooding
from ..protocols.base import MAX_TTL
from .base import Algorithm
from .elimination import Elimination


@dataclass(frozen=True)
class CoAAE(Algorithm):
    """Cooperative active arm elimination, after CO-AAE: agents eliminate arms, and are silent once one is left.

    An agent pulls each of its arms once, and then by `Elimination`: the candidate of which it has the fewest
    observations, its own and those that it heard of. Every observation is flooded, except those of a last candidate: an
    agent that has one has nothing to tell, and only relays.

    Parameters
    ----------
    ttl : int
        How many hops an observation may travel.
    alpha : float
        The width of the confidence bounds, `sqrt(alpha * log(t) / count)`, as in `UCB`.

    Notes
    -----
    Yang, Chen, Hajiesmaili, Lui and Towsley, "Distributed Bandits with Heterogeneous Agents", INFOCOM 2022. A
    transmission is one observation of 24 bytes, as with flooding. Works with unequal arm sets, which the paper is
    about, on dynamic networks, with all faults and with agents that pull at different rates.

    What is ours: in the paper agents reach all others, and send an observation only to those that can use it. On a
    network without addresses that is not possible; here observations are flooded, as those of the other rows are.

    Examples
    --------
    >>> import banditmesh as bm
    >>> arms = [bm.arms.Gaussian(mean, 0.1) for mean in (0.0, 1.0, 0.5)]
    >>> problem = bm.Problem(bm.networks.ring(4), [[0, 1], [1, 2], [0, 2], [0, 1, 2]], arms)
    >>> early, late = (bm.simulate(problem, "co-aae(2, alpha=0.1)", horizon=T, seed=0) for T in (100, 200))
    >>> bool(early.transmissions[0, -1] == late.transmissions[0, -1]), bool(early.regret[0, -1] == late.regret[0, -1])
    (True, True)
    """

    ttl: int = 4
    alpha: float = 3.0
    name: ClassVar[str] = "co-aae"
    refuses: ClassVar[Mapping[str, str]] = {}

    def __post_init__(self) -> None:
        object.__setattr__(self, "ttl", checks.integer("ttl", self.ttl, at_least=1, at_most=MAX_TTL))
        object.__setattr__(self, "alpha", checks.positive("alpha", self.alpha))

    @property
    def most_hops(self) -> int:
        """The ttl."""
        return self.ttl

    def seat(self, place: Place) -> Agent:
        """The core's agent, which eliminates and floods."""
        flooding = Flooding(self.ttl, emission=Contested())
        courier = Relaying(flooding, place.chances, place.seen(self.ttl), place.new_id, place.rules)
        return Agent(place.name, place.arms, Elimination(self.alpha), courier, place.chances, place.age_of)
