"""The courier that relays messages hop by hop, as the paper's protocols do.

Rules kept here, and nowhere else: a message's ttl falls by one at each receipt and it is relayed only while at least
one hop remains; an agent uses a message whose arm it has; a relay goes to all neighbours but the one that it came from
(all, by the published rules), or to as many of them as the protocol draws; what waits is sent last in, first out; an
agent makes one message a pull at most: what its emission says, else what its chooser wants to be told, else an echo. Of
several arms that it could tell of, it takes the one that was told least recently, the first of equals.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final
from typing import Protocol as Interface

from ..errors import InputError
from ..rules import SOUND, Rules
from .courier import Courier
from .messages import DUPLICATE, RECEIPTS, Copy, Fate, Message, Parcel, Receipt, parcel_of
from .telling import Told

if TYPE_CHECKING:
    from ..core.agent import Agent
    from .base import Protocol

#: What a relay rule may say of a message that an agent has not seen.
RELAY: Final = 0
ABSORB: Final = 1
STOP: Final = 2


# Members of an enumeration take their time to be found, and there are many copies.
RELAYED, EXPIRED, ABSORBED, STOPPED = Fate.RELAYED, Fate.EXPIRED, Fate.ABSORBED, Fate.STOPPED


class Chances(Interface):
    """Everything that an agent leaves to chance. Each draw is given what it decides, so that it may be keyed by it."""

    def index(self, agent: Any, arm: Any) -> float:
        """A number in (0, 1) for a policy that draws."""

    def relay(self, message: Message, agent: Any, ttl: int) -> float:
        """A number in (0, 1) for a relay rule that draws, when this many hops remain."""

    def targets(self, message: Message, agent: Any, ttl: int, candidates: Sequence[Any], n: int) -> Sequence[Any]:
        """`n` of the candidates, or all if there are no more."""


class Seen(Interface):
    """Which messages an agent has seen."""

    def accept(self, message: Message) -> bool:
        """Remember a message; whether it was new."""

    def restart(self) -> None:
        """Forget everything."""

    @property
    def state(self) -> Any:
        """All that is remembered, as lists and numbers."""

    @state.setter
    def state(self, value: Any) -> None: ...


class AllIds:
    """A memory that forgets nothing.

    Examples
    --------
    >>> seen, message = AllIds(), Message(origin=0, id=1, arm="red", n_pulls=1, total=0.5)
    >>> seen.accept(message), seen.accept(message)
    (True, False)
    """

    def __init__(self) -> None:
        self._ids: set[tuple[Any, Any]] = set()

    def accept(self, message: Message) -> bool:
        """Remember a message; whether it was new."""
        key = message.origin, message.id
        if key in self._ids:
            return False
        self._ids.add(key)
        return True

    def restart(self) -> None:
        """Forget everything."""
        self._ids.clear()

    @property
    def state(self) -> list[list[Any]]:
        """All ids."""
        return sorted([*key] for key in self._ids)

    @state.setter
    def state(self, value: list[list[Any]]) -> None:
        self._ids = {(origin, number) for origin, number in value}


def check_decision(protocol: Protocol, decision: object) -> int:
    """What a relay rule said, if it is something that a relay rule can say."""
    if isinstance(decision, int) and decision in (RELAY, ABSORB, STOP):
        return decision
    raise _no_decision(protocol, decision)


def fate_of(protocol: Protocol, decision: int, ttl: int) -> Fate:
    """What becomes of a new message by what the relay rule said of it, when this many hops remain.

    Examples
    --------
    >>> import banditmesh as bm
    >>> fate_of(bm.FwA(4), bm.RELAY, 1), fate_of(bm.FwA(4), bm.RELAY, 0)
    (<Fate.RELAYED: 4>, <Fate.EXPIRED: 2>)
    """
    if decision == RELAY:
        return RELAYED if ttl >= 1 else EXPIRED
    if decision == ABSORB:
        return ABSORBED
    if decision == STOP:
        return STOPPED
    raise _no_decision(protocol, decision)


def _no_decision(protocol: Protocol, decision: object) -> InputError:
    return InputError(f"the relay rule of {protocol.name!r} must return RELAY, ABSORB or STOP, got {decision!r}")


class Relaying(Courier):
    """A courier for one agent.

    Parameters
    ----------
    protocol : Protocol
        What is relayed, absorbed and stopped, and what is sent of the agent's own.
    chances : Chances
        What relay rules and targets are drawn from.
    seen : Seen
        The agent's memory of messages.
    new_id : callable
        Gives the id of the next message that the agent makes.
    rules : Rules
        The rule set.
    """

    def __init__(
        self,
        protocol: Protocol,
        chances: Chances | None,
        seen: Seen,
        new_id: Callable[[], Any],
        rules: Rules = SOUND,
    ) -> None:
        self._protocol = protocol
        self._chances: Any = chances  # None where nothing is drawn
        self._seen = seen
        self._new_id = new_id
        self._rules = rules
        self._accept = seen.accept
        self._decide = protocol.relay
        self._random = protocol.random
        self._parameter = protocol.parameter
        self.most_hops = protocol.ttl
        self.hears_sums = protocol.emission.cumulative
        self.asks_best = protocol.emission.asks_best
        self.restart()

    def restart(self) -> None:
        """Begin with nothing."""
        #: What waits to be sent: message, ttl, and the neighbour that it came from (None of the agent's own).
        self._queue: list[tuple[Message, int, Any]] = []
        self._told: dict[int, Told] = {}
        self._n_told = 0
        self._seen.restart()

    def fade(self, agent: Agent, factor: float) -> None:
        """What was told is worth less; an arm of which nothing of the agent's own is left has no echoes."""
        if self.hears_sums:
            for position, told in self._told.items():
                told.count *= factor
                if not agent.recall.own_weight[position]:
                    told.echoes = 0

    def observed(self, agent: Agent, position: int, reward: float, was_best: bool) -> None:
        """Make a message of the reward if the emission says so; otherwise an earlier one may be repeated."""
        emission = self._protocol.emission
        counts = agent.recall.own_weight if emission.cumulative else agent.own_count
        told = self._told.get(position)
        if told is None:
            told = self._told[position] = Told()
        echoes = emission.n_echoes
        # Nothing is left of an own reward that came too late for a memory that forgets.
        if not (counts[position] and told.is_news(emission, counts[position], was_best)):
            wanted = self._wanted(agent, position)
            waiting = wanted or [(other.when, place) for place, other in self._told.items() if other.echoes]
            if not waiting:
                return
            _, position = min(waiting)
            told = self._told[position]
            echoes = told.echoes if wanted else told.echoes - 1
        self._n_told += 1
        told.tell(counts[position], self._n_told, echoes)
        count, total = (told.count, agent.recall.own_total[position]) if emission.cumulative else (1, reward)
        arm = agent.arms.names[position]
        made = agent.recall.round if emission.cumulative else agent.pulled_in
        message = Message(agent.name, self._new_id(), arm, count, total, agent.life, made)
        if self._rules.origin_remembers:
            self._seen.accept(message)
        self._queue.append((message, self._protocol.ttl, None))

    def _wanted(self, agent: Agent, pulled: int) -> list[tuple[int, int]]:
        """When the arms were last told of that the chooser wants to be told of now, and their positions."""
        wanted = []
        for position in agent.wanted():
            told = self._told.setdefault(position, Told())
            can_be_told = self._protocol.emission.cumulative or position == pulled
            if can_be_told and agent.own_count[position] > told.count:
                wanted.append((told.when, position))
        return wanted

    def send(self, agent: Agent, neighbours: Sequence[Any]) -> list[Parcel]:
        """What waits, the newest first; nothing waits after it."""
        parcels = []
        n_targets, spares_sender = self._protocol.n_targets, not self._rules.relay_to_sender
        #: By the neighbour that a message came from, those that it goes to.
        to: dict[Any, Sequence[Any]] = {None: neighbours}
        for message, ttl, previous in reversed(self._queue):
            targets = to.get(previous)
            if targets is None:
                targets = [one for one in neighbours if one != previous] if spares_sender else neighbours
                to[previous] = targets
            if n_targets is not None:
                targets = self._chances.targets(message, agent.name, ttl, targets, n_targets)
            parcels.append(parcel_of(message, ttl, targets))
        self._queue.clear()
        return parcels

    def receive(self, agent: Agent, copy: Copy, sender: Any, degree: int) -> Receipt:
        """Drop what was seen; else use it if the agent has the arm, and relay, absorb or stop it."""
        message, ttl = copy
        if not self._accept(message):
            return DUPLICATE
        ttl -= 1
        heard = agent.has(message.arm)
        u = self._chances.relay(message, agent.name, ttl) if self._random else 0.0
        fate = fate_of(self._protocol, self._decide(heard, ttl, degree, u, self._parameter), ttl)
        if fate is RELAYED:
            self._queue.append((message, ttl, sender))
        elif fate is STOPPED:
            heard = heard and not self._rules.stop_before_use
        if heard:
            agent.hear(message)
        return RECEIPTS[fate][heard]

    def drop(self) -> None:
        """What waits to be sent is gone."""
        self._queue.clear()

    def drop_last(self) -> None:
        """What came last, and waits to be relayed, is not: for couriers that decide after this one."""
        self._queue.pop()

    @property
    def state(self) -> dict[str, Any]:
        """What waits, what was told, and what was seen."""
        return {
            "queue": [[[*message], ttl, previous] for message, ttl, previous in self._queue],
            "told": [[position, *told.as_list()] for position, told in self._told.items()],
            "n_told": self._n_told,
            "seen": self._seen.state,
        }

    @state.setter
    def state(self, value: dict[str, Any]) -> None:
        self._queue = [(Message(*message), ttl, previous) for message, ttl, previous in value["queue"]]
        self._told = {position: Told(*told) for position, *told in value["told"]}
        self._n_told = value["n_told"]
        self._seen.state = value["seen"]
