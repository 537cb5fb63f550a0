"""LCC-UCB-GRAPH: epochs of UCB on a few arms, after which neighbours recommend the arm that they played most."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from .. import checks
from ..core import Note, Parcel, Place
from ..networks.distances import diameter
from .base import DYNAMIC, NOTES_ARE_EXACT, UNEQUAL, Actor, Algorithm, Standing, components
from .gosine import ONE_BEST, RECOMMENDATION

if TYPE_CHECKING:
    from ..problem import Problem


@dataclass(frozen=True)
class LCCUCB(Algorithm):
    """Limited Communication Collaboration UCB on a graph (LCC-UCB-GRAPH); on a complete network it is LCC-UCB.

    With K arms and N agents, each agent keeps its own block of ceil(K/N) arms. Epoch j = 0, 1, ... has D sub-epochs, D
    being the diameter. In a sub-epoch of K' (K' + 1) 2 ** j rounds, with K' = ceil(K/N) + the largest degree, an agent
    plays UCB on its block and on the arms that its neighbours last recommended, with counts that begin at zero and the
    index `mean + sqrt(alpha log(t) / n)`, t being the round of the sub-epoch. At its end the agent tells each neighbour
    the arm that it played most; what was recommended before is dropped.

    Parameters
    ----------
    alpha : float
        The width of the confidence bound, as in `UCB`; 2 in the paper, for rewards between 0 and 1.

    Notes
    -----
    Agarwal, Aggarwal and Azizzadenesheli, "Multi-Agent Multi-Armed Bandits with Limited Communication", JMLR 23, 2022.
    A recommendation holds an arm and no number: a header of 16 bytes. One goes over each link, both ways, for each
    sub-epoch, so an agent sends O(degree * D log T) in all.

    What differs: nothing on a connected static network. On a network of several components, each counts its agents,
    diameter and degrees by itself. A recommendation that comes late is used from the next sub-epoch on.

    Examples
    --------
    >>> import banditmesh as bm
    >>> arms = [bm.arms.Bernoulli(0.9 if arm == 7 else 0.4) for arm in range(12)]
    >>> problem = bm.Problem(bm.networks.ring(6), [range(12)] * 6, arms)
    >>> bm.algorithms.LCCUCB().plan(problem)[0]
    Schedule(block=[0, 1], n_parts=3, n_rounds=20)
    >>> result = bm.simulate(problem, bm.algorithms.LCCUCB(), horizon=500, seed=0)
    >>> int(result.traffic["sent"][0])  # 6 links, both ways, after 20, 40, 60, 100, 140, 180, 260, 340 and 420 rounds
    108
    """

    alpha: float = 2.0
    name: ClassVar[str] = "lcc-ucb-graph"
    refuses: ClassVar[Mapping[str, str]] = {
        **NOTES_ARE_EXACT,
        UNEQUAL: ONE_BEST,
        DYNAMIC: "the length of its epochs follows from the diameter and the largest degree",
    }

    def __post_init__(self) -> None:
        object.__setattr__(self, "alpha", checks.positive("alpha", self.alpha))

    def plan(self, problem: Problem) -> list[Schedule]:
        """Each agent's schedule."""
        found = {}
        for members, links in components(problem):
            n_parts, degree = max(1, diameter(links)), int(links.degrees.max(initial=0))
            for number, agent in enumerate(members):
                found[agent] = _schedule(Standing(number, len(members)), problem.n_arms, n_parts, degree)
        return [found[agent] for agent in range(problem.n_agents)]

    def seat(self, place: Place) -> Recommender:
        """The agent at a place."""
        return Recommender(self, place)


class Schedule(NamedTuple):
    """What an agent of `LCCUCB` knows beforehand.

    Attributes
    ----------
    block : list of int
        The positions of its own arms.
    n_parts : int
        How many sub-epochs an epoch has.
    n_rounds : int
        How many rounds a sub-epoch of the first epoch lasts.
    """

    block: list[int]
    n_parts: int
    n_rounds: int


def _schedule(standing: Standing, n_arms: int, n_parts: int, degree: int) -> Schedule:
    block = standing.block(n_arms)
    n_played = len(block) + degree
    return Schedule(block, n_parts, n_played * (n_played + 1))


class Recommender(Actor):
    """An agent of `LCCUCB`."""

    kinds = (RECOMMENDATION,)
    kept = ("part", "first", "last", "count", "total", "active", "recommended")

    def __init__(self, algorithm: LCCUCB, place: Place) -> None:
        self._algorithm = algorithm
        alone = _schedule(Standing(place.number, place.n_agents), len(place.arms.names), 1, 0)
        self._schedule = alone if place.plan is None else place.plan[place.number]
        super().__init__(place)

    def start(self) -> None:
        """The first sub-epoch, or that of the round in which a new life begins, with nothing recommended."""
        self.part, self.first, self.last = -1, 1, 0
        self.recommended: list[int] = []
        while self.last < max(1, self.place.now()):
            self._next_part()

    def _next_part(self) -> None:
        """Begin the next sub-epoch, with counts of zero and the arms that were recommended."""
        self.part += 1
        self.first, length = self.last + 1, self._schedule.n_rounds * 2 ** (self.part // self._schedule.n_parts)
        self.last += length
        n_arms = len(self.arms.names)
        self.count, self.total = [0] * n_arms, [0.0] * n_arms
        #: The arms that it plays: its block, and those that were recommended, in the order in which they came.
        self.active = list(dict.fromkeys((*self._schedule.block, *self.recommended)))
        self.recommended = []

    def pick(self, clock: int, positions: Sequence[int]) -> int:
        """The active arm with the highest index, or one not yet played in this sub-epoch; the first of equals."""
        width = self._algorithm.alpha * math.log(max(1, clock - self.first + 1))

        def index(position: int) -> float:
            count = self.count[position]
            return self.total[position] / count + math.sqrt(width / count) if count else math.inf

        return max([one for one in self.active if one in positions] or positions, key=index)

    def took(self, position: int, reward: float) -> None:
        """A pull of this sub-epoch."""
        self.count[position] += 1
        self.total[position] += reward

    def send(self, neighbours: Sequence[Any]) -> list[Parcel]:
        """At the end of a sub-epoch, the arm that was played most."""
        if self.place.now() != self.last or not any(self.count):
            return []
        return self.notes(neighbours, RECOMMENDATION, self.arms.names[self.count.index(max(self.count))])

    def take(self, note: Note, sender: Any) -> bool:
        """Remember the arm for the next sub-epoch."""
        position = self.position_of(note.arm)
        if position is None or position in self.recommended:
            return False
        self.recommended.append(position)
        return True

    def over(self) -> None:
        """Go on to the next sub-epoch when this one has ended."""
        if self.place.now() >= self.last:
            self._next_part()
