"""ODC: pairs of neighbours exchange their statistics when both have pulled enough since the last time."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar, Final

from .. import checks
from ..core import Agent, Copy, Message, Note, Parcel, Place, Receipt
from ..policies.memory import MAX_PULLS
from ..protocols.messages import ABSORBED, DUPLICATE
from .base import HEADER_BYTES, NUMBER_BYTES, Algorithm
from .noting import NotedAgent, NoteTaker

DEMAND: Final = "demand"


@dataclass(frozen=True)
class ODC(Algorithm):
    """On-demand communication, after ODC: neighbours exchange statistics when both have pulled enough.

    For each neighbour an agent counts the pulls that it has not told it of. When they reach a threshold, it has
    something to tell and could use news itself: it sends a *demand*. Once it has the neighbour's demand, too, it sends
    its count and sum of every arm that it has pulled since, and counts from zero again. So a fast agent waits for a
    slow one, and how much a pair sends follows the slower of the two. Arms are chosen by the run's policy: with `UCB`
    it is what the paper calls UCB-ODC, with `Elimination` AAE-ODC.

    Parameters
    ----------
    threshold : int
        How many pulls come before the first exchange of a pair.
    factor : float
        By how much the threshold grows from one exchange of a pair to the next: after k of them it is
        `threshold * (1 + factor) ** k`, rounded up. With 0 it stays.

    Notes
    -----
    Chen, Yang, Wang, Liu, Hajiesmaili, Lui and Towsley, "On-Demand Communication for Asynchronous Multi-Agent Bandits",
    AISTATS 2023, with equal arm sets and all agents in reach of each other. It matters where agents pull at different
    rates (`every`). A statistic takes 32 bytes: a header of 16, a count and a sum. A demand takes 24: a header, and the
    number of the exchange that it is for.

    What is ours: the paper was read in its abstract and in what others write of it, not in full. Only neighbours
    exchange; for the paper's setting take a complete network. Arm sets may differ: what a neighbour does not have is of
    no use to it. Demands carry the number of the exchange, so that one that is late is not taken for another, and a
    demand that is not met is repeated each time that the untold pulls have doubled, since it may have been lost. What
    is lost of an exchange is made up for when the arm is told again; links with a cap drop parts of it.

    Examples
    --------
    >>> import banditmesh as bm
    >>> problem = bm.Problem(bm.networks.complete(4), [range(3)] * 4, [bm.arms.Bernoulli(p) for p in (0.3, 0.5, 0.7)])
    >>> every = [1, 1, 1, 50]
    >>> odc, irs = (
    ...     bm.simulate(problem, protocol, horizon=500, seed=0, every=every, engine="reference")
    ...     for protocol in ("odc(10, factor=0)", "irs")
    ... )
    >>> int(odc.traffic["sent"][0]), int(irs.traffic["sent"][0])
    (732, 4530)
    """

    threshold: int = 8
    factor: float = 0.25
    name: ClassVar[str] = "odc"
    chooses: ClassVar[bool] = False
    refuses: ClassVar[Mapping[str, str]] = {}

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "threshold", checks.integer("threshold", self.threshold, at_least=1, at_most=MAX_PULLS)
        )
        object.__setattr__(self, "factor", checks.non_negative("factor", self.factor))

    def enough(self, n_exchanges: int) -> int:
        """How many untold pulls the next exchange takes, after this many of them.

        Examples
        --------
        >>> [ODC(8, factor=0.25).enough(k) for k in range(4)]
        [8, 10, 13, 16]
        """
        return math.ceil(min(self.threshold * (1.0 + self.factor) ** n_exchanges, MAX_PULLS))

    def size(self, message: Message | Note) -> int:
        """A statistic has two numbers, a demand one."""
        return HEADER_BYTES + NUMBER_BYTES * (2 if isinstance(message, Message) else 1)

    def seat(self, place: Place) -> Agent:
        """The core's agent, which chooses by the run's policy."""
        return NotedAgent(place.name, place.arms, place.policy, OnDemand(self, place), place.chances, place.age_of)


@dataclass
class Pair:
    """What an agent keeps for one neighbour.

    Attributes
    ----------
    n_exchanges : int
        How often it has told the neighbour what it had.
    told_after : int
        How many pulls it had made by then.
    demanded_at : int
        How many pulls were untold when it last sent a demand for the next exchange; 0 if it has not.
    wanted : int
        The number of the latest exchange that the neighbour has demanded.
    told : dict
        By position, the count that the neighbour was last told.
    """

    n_exchanges: int = 0
    told_after: int = 0
    demanded_at: int = 0
    wanted: int = 0
    told: dict[int, int] = field(default_factory=dict)


class OnDemand(NoteTaker):
    """A courier that exchanges statistics with each neighbour when both have pulled enough."""

    kind = DEMAND
    most_hops = 1
    hears_sums = True

    def __init__(self, algorithm: ODC, place: Place) -> None:
        self._algorithm = algorithm
        self._new_id = place.new_link_id
        self.restart()

    def restart(self) -> None:
        """Begin with nothing."""
        self._n_pulls = 0
        self._pairs: dict[Any, Pair] = {}

    def observed(self, agent: Agent, position: int, reward: float, was_best: bool) -> None:
        """A pull that no other agent has been told of."""
        self._n_pulls += 1

    def send(self, agent: Agent, neighbours: Sequence[Any]) -> list[Parcel]:
        """Demands and statistics, to neighbours to which enough is untold."""
        parcels = []
        for neighbour in neighbours:
            pair = self._pairs.setdefault(neighbour, Pair())
            untold = self._n_pulls - pair.told_after
            if untold < self._algorithm.enough(pair.n_exchanges):
                continue
            if untold >= 2 * pair.demanded_at:
                pair.demanded_at = untold
                note = Note(agent.name, self._new_id(neighbour), DEMAND, None, (pair.n_exchanges + 1,))
                parcels.append(Parcel(Copy(note, 1), [neighbour]))
            if pair.wanted > pair.n_exchanges:
                parcels += self._tell(agent, neighbour, pair)
        return parcels

    def _tell(self, agent: Agent, neighbour: Any, pair: Pair) -> list[Parcel]:
        """Everything that a neighbour has not been told."""
        pair.n_exchanges += 1
        pair.told_after, pair.demanded_at = self._n_pulls, 0
        parcels = []
        for position, count in enumerate(agent.own_count):
            weight = agent.recall.own_weight[position]
            if count > pair.told.get(position, 0) and weight:
                pair.told[position] = count
                arm, total = agent.arms.names[position], agent.recall.own_total[position]
                number = self._new_id(neighbour)
                message = Message(agent.name, number, arm, weight, total, agent.life, agent.recall.round)
                parcels.append(Parcel(Copy(message, 1), [neighbour]))
        return parcels

    def receive(self, agent: Agent, copy: Copy, sender: Any, degree: int) -> Receipt:
        """Take a demand, or learn what a neighbour tells, if the agent has the arm."""
        if isinstance(copy.message, Note):
            return self.take(agent, copy.message, sender)
        heard = agent.has(copy.message.arm)
        if heard:
            agent.hear(copy.message)
        return ABSORBED[heard]

    def take(self, agent: Agent, note: Note, sender: Any) -> Receipt:
        """A neighbour demands an exchange."""
        pair = self._pairs.setdefault(sender, Pair())
        if note.values[0] <= pair.wanted:
            return DUPLICATE
        pair.wanted = int(note.values[0])
        return ABSORBED[False]

    @property
    def state(self) -> dict[str, Any]:
        """The number of pulls, and what is kept for each neighbour."""
        pairs = [[neighbour, asdict(pair) | {"told": [*pair.told.items()]}] for neighbour, pair in self._pairs.items()]
        return {"n_pulls": self._n_pulls, "pairs": pairs}

    @state.setter
    def state(self, value: dict[str, Any]) -> None:
        self._n_pulls = value["n_pulls"]
        self._pairs = {w: Pair(**kept | {"told": dict(kept["told"])}) for w, kept in value["pairs"]}
