"""The courier that sums up along a tree, as `TreeAggregation` says.

Nothing is relayed, and no id is remembered. Whenever it is asked what to send, a courier looks, for each arm and each
neighbour in the tree, at what it could tell: the agent's own count and sum, and the latest that it had from its other
neighbours. What it hears travels on the next time that it is asked.

Counts decide what is told, and are integers: what all have said, less what one of them has said, is exact. Sums are
not, and are added up in the order of the neighbours, but only where they are told: hubs have many neighbours. Weights,
by a memory that discounts, are no integers either: all less one might fall, and would then be news of nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Any

from ..errors import InputError
from .courier import Courier
from .messages import ABSORBED, DUPLICATE, Copy, Message, Parcel, Receipt
from .telling import Told

if TYPE_CHECKING:
    from ..core.agent import Agent
    from .tree import TreeAggregation


class Merging(Courier):
    """A courier for one agent on a tree.

    Parameters
    ----------
    protocol : TreeAggregation
    wants : mapping
        For each neighbour in the tree, in their order, the arms that an agent beyond has.
    new_id : callable
        Gives the id of the next message to a neighbour.
    """

    most_hops = 1
    hears_sums = True

    def __init__(
        self, protocol: TreeAggregation, wants: Mapping[Any, Collection[Any]], new_id: Callable[[Any], Any]
    ) -> None:
        self._protocol = protocol
        self._wants = wants
        self._new_id = new_id
        self.restart()

    def restart(self) -> None:
        """Begin with nothing."""
        #: How often everything that came has been learned: the clock of pauses.
        self._now = 0
        #: By neighbour and arm: the latest count and sum that it said.
        self._heard: dict[Any, dict[Any, tuple[Any, float]]] = {neighbour: {} for neighbour in self._wants}
        #: By neighbour and arm: what it was last told.
        self._told: dict[Any, dict[Any, Told]] = {neighbour: {} for neighbour in self._wants}

    def send(self, agent: Agent, neighbours: Sequence[Any]) -> list[Parcel]:
        """The statistics that are due, by arm and neighbour."""
        arms = sorted({*agent.arms.names, *(arm for heard in self._heard.values() for arm in heard)})
        wanted = {agent.arms.names[position] for position in agent.wanted()}
        return [parcel for arm in arms for parcel in self._tell(agent, arm, arm in wanted)]

    def _tell(self, agent: Agent, arm: Any, is_wanted: bool) -> Iterator[Parcel]:
        """What neighbours are told of an arm now; also what the emission would keep back, if the chooser wants it."""
        before, total = agent.own(arm)
        heard = [said.get(arm, (0, 0.0)) for said in self._heard.values()]
        everything = before + sum([heard_count for heard_count, _ in heard])
        for place, (neighbour, wanted) in enumerate(self._wants.items()):
            heard_count, heard_total = heard[place]
            if arm in wanted:
                if type(everything) is int:
                    count = everything - heard_count
                else:
                    count = reduce(add, [later for later, _ in heard[place + 1 :]], before)
                if self._is_due(neighbour, arm, count, is_wanted):
                    whole = reduce(add, [later for _, later in heard[place + 1 :]], total)
                    number = self._new_id(neighbour)
                    message = Message(agent.name, number, arm, count, whole, agent.life, agent.recall.round)
                    yield Parcel(Copy(message, 1), [neighbour])
            before += heard_count
            total += heard_total

    def fade(self, agent: Agent, factor: float) -> None:
        """What neighbours said and were told goes over to a later scale; what they said may end there."""
        for neighbour, heard in self._heard.items():
            self._heard[neighbour] = {
                arm: kept for arm, statistic in heard.items() if (kept := agent.recall.faded(*statistic, factor))[0]
            }
        for row in self._told.values():
            for told in row.values():
                told.count *= factor

    def _is_due(self, neighbour: Any, arm: Any, count: float, is_wanted: bool) -> bool:
        """Whether a neighbour is told a count of an arm now; if so, it is noted."""
        emission, pause = self._protocol.emission, self._protocol.pause
        told = self._told[neighbour].get(arm)
        if told is None:
            told = self._told[neighbour][arm] = Told(when=self._now - pause)
        if not count:
            told.echoes = 0
        is_news = count > told.count and (is_wanted or told.is_news(emission, count))
        if not (is_news or told.echoes) or self._now - told.when < pause:
            return False
        told.tell(count, self._now, emission.n_echoes if is_news else told.echoes - 1)
        return True

    def receive(self, agent: Agent, copy: Copy, sender: Any, degree: int) -> Receipt:
        """Keep what a neighbour tells if it counts more than what it told before."""
        message = copy.message
        if sender not in self._heard:
            raise InputError(f"agent {agent.name!r} hears only its neighbours in the tree, got a copy from {sender!r}")
        statistic, known = agent.recall.enters(message), self._heard[sender].get(message.arm, (0, 0.0))
        if statistic[0] <= known[0]:
            return DUPLICATE
        kept = agent.recall.faded(*statistic, 1)
        if kept[0]:
            self._heard[sender][message.arm] = kept
        heard = agent.has(message.arm)
        if heard:
            agent.hear(message)
        return ABSORBED[heard]

    def settle(self) -> None:
        """Time goes on."""
        self._now += 1

    @property
    def state(self) -> dict[str, Any]:
        """The time, and what neighbours said and were told."""
        return {
            "now": self._now,
            "heard": [[w, arm, *statistic] for w, heard in self._heard.items() for arm, statistic in heard.items()],
            "told": [[w, arm, *told.as_list()] for w, row in self._told.items() for arm, told in row.items()],
        }

    @state.setter
    def state(self, value: dict[str, Any]) -> None:
        self.restart()
        self._now = value["now"]
        for neighbour, arm, count, total in value["heard"]:
            self._heard[neighbour][arm] = count, total
        for neighbour, arm, *told in value["told"]:
            self._told[neighbour][arm] = Told(*told)
