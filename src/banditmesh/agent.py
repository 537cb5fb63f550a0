"""An agent: policy, protocol and estimates as one state machine without I/O.

Events go in, effects come out; whoever drives the agent (a simulator, a live node) does the rest. In each round a
driver calls, in this order,

    choose(t)                     -> which arm to pull                  (if the agent pulls in this round)
    observe(t, position, reward)  the reward came; it counts at once and becomes a message
    take_outbox()                 -> the messages to send in this round; the queue is empty after it
    targets(message, neighbours)  -> which neighbours a message goes to
    receive(message, sender, degree) -> what became of a message that came
    settle(t)                     what was learned in the round enters the estimates

An agent never sleeps, opens or logs, and its randomness is a pure function that it is given (`Draws`).
Agents and arms are numbers here; names live in `Problem`.

Rules kept here, and nowhere else: the first pulls go once through the arm set; an agent uses a message whose arm it
has; a message's ttl falls by one at each receipt and it is relayed only while at least one hop remains; what was
learned in a round is added in ascending (origin, sequence number), whatever paths it took; of cumulative messages the
latest of each origin and arm counts, and an older one changes nothing; what is echoed is the arm that was sent least
recently, the first of equals.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple
from typing import Protocol as Interface

from . import draws as purposes
from .draws import Draws, pick_targets
from .errors import InputError
from .policies.base import Estimates, Policy
from .protocols.base import ABSORB, RELAY, STOP, Protocol
from .rules import Rules


class Message(NamedTuple):
    """What travels: observations of one arm by one origin.

    `sequence` is the round in which the message was made; an origin makes at most one a round. `total` is the sum of
    the rewards of `n_pulls` pulls. `previous` is the agent that it comes from (its origin, at first) and `ttl` how many
    hops remain.
    """

    origin: int
    sequence: int
    arm: int
    n_pulls: int
    total: float
    previous: int
    ttl: int


class Fate(IntEnum):
    """What became of one copy of a message."""

    DUPLICATE = 0
    ABSORBED = 1
    EXPIRED = 2
    STOPPED = 3
    RELAYED = 4
    LOST = 5
    QUEUED = 6


def check_decision(protocol: Protocol, decision: object) -> int:
    """What a relay rule said, if it is something that a relay rule can say."""
    if isinstance(decision, int) and decision in (RELAY, ABSORB, STOP):
        return decision
    raise InputError(f"the relay rule of {protocol.name!r} must return RELAY, ABSORB or STOP, got {decision!r}")


class Receipt(NamedTuple):
    """The effect of receiving one copy: its fate, and whether the agent learned from it."""

    fate: Fate
    learned: bool


class Memory(Interface):
    """Which messages an agent has seen."""

    def accept(self, message: Message) -> bool:
        """Remember a message; whether it was new."""

    def forget(self, t: int) -> None:
        """Drop what cannot matter any more after round `t`."""


class SequenceMemory:
    """The sound memory: ids are (origin, sequence number), and none is forgotten while a copy can still come.

    A copy lives for ttl rounds, the round of its making included, and for the delay of ttl hops; without a longest
    delay nothing is ever forgotten.
    """

    def __init__(self, ttl: int, longest_delay: int | None = 0) -> None:
        self._lifetime = None if longest_delay is None else ttl * (1 + longest_delay)
        self._origins: dict[int, set[int]] = {}

    def accept(self, message: Message) -> bool:
        """Remember a message; whether it was new."""
        origins = self._origins.setdefault(message.sequence, set())
        if message.origin in origins:
            return False
        origins.add(message.origin)
        return True

    def forget(self, t: int) -> None:
        """Drop the ids of messages that no copy is left of after round `t`."""
        if self._lifetime is not None:
            self._origins.pop(t - self._lifetime + 1, None)


class RewardMemory:
    """The published memory: ids are (origin, arm, reward), and beyond ttl * n_agents the oldest is forgotten.

    Equal rewards are taken for the same message, and a forgotten message is accepted again.
    """

    def __init__(self, ttl: int, n_agents: int) -> None:
        self._size = ttl * n_agents
        self._queue: deque[tuple[int, int, int, float]] = deque()
        self._ids: set[tuple[int, int, int, float]] = set()

    def accept(self, message: Message) -> bool:
        """Remember a message; whether it was new."""
        key = message.origin, message.arm, message.n_pulls, message.total
        if key in self._ids:
            return False
        self._ids.add(key)
        self._queue.append(key)
        if len(self._queue) > self._size:
            self._ids.discard(self._queue.popleft())
        return True

    def forget(self, t: int) -> None:
        """Nothing: this memory forgets by its size alone."""


class Agent:
    """One agent of a network.

    Parameters
    ----------
    number : int
        The agent's place in the network's order.
    arm_set : sequence of int
        The arms that it may pull, in the order of its first pulls.
    sigmas : sequence of float
        The sub-Gaussian parameter of each of these arms; nan where a law has none.
    laws : sequence of int
        The kind of law of each of these arms: `GAUSSIAN`, `BERNOULLI`, `UNIFORM` or `OTHER` of `banditmesh.arms`.
    policy, protocol, rules
        How it chooses, relays, and what the rule set says.
    draws : Draws
        The replicate's randomness.
    n_agents : int
        How many agents there are (the published rules size their memory by it).
    longest_delay : int or None
        The most rounds that a message can be on its way over one link; None if there is no most.

    Examples
    --------
    >>> import banditmesh as bm
    >>> from banditmesh.arms import GAUSSIAN
    >>> from banditmesh.draws import Draws
    >>> from banditmesh.rules import SOUND
    >>> alice, bob = (
    ...     Agent(number, [7, 8], [1.0, 1.0], [GAUSSIAN] * 2, bm.UCB(), bm.FwA(ttl=2), SOUND, Draws(0, 0), n_agents=2)
    ...     for number in (0, 1)
    ... )
    >>> alice.observe(1, alice.choose(1), reward=0.5)
    >>> [message] = alice.take_outbox()
    >>> alice.targets(message, neighbours=[1])
    [1]
    >>> bob.receive(message, sender=0, degree=1)
    Receipt(fate=<Fate.ABSORBED: 1>, learned=True)
    >>> bob.receive(message, sender=0, degree=1).fate.name
    'DUPLICATE'
    >>> bob.settle(1)
    >>> bob.estimates.count, bob.estimates.mean
    ([1, 0], [0.5, 0.0])
    """

    def __init__(
        self,
        number: int,
        arm_set: Sequence[int],
        sigmas: Sequence[float],
        laws: Sequence[int],
        policy: Policy,
        protocol: Protocol,
        rules: Rules,
        draws: Draws,
        n_agents: int,
        longest_delay: int | None = 0,
    ) -> None:
        self.number = number
        self.arm_set = list(arm_set)
        self._sigmas = list(sigmas)
        self._laws = list(laws)
        self._position = {arm: position for position, arm in enumerate(self.arm_set)}
        self._policy = policy
        self._protocol = protocol
        self._rules = rules
        self._draws = draws
        self._n_agents = n_agents
        self._longest_delay = longest_delay
        # Without messages agents hear single observations, whatever the emission.
        self._hears_sums = protocol.emission.cumulative and not protocol.central
        self.restart()

    def restart(self) -> None:
        """Begin with nothing: all that was observed, heard, sent, seen and queued is forgotten.

        Messages that it makes afterwards count its pulls from zero again. Others, who keep the larger count of a
        cumulative message, learn nothing from them until they count more than what was sent before.
        """
        n_arms = len(self.arm_set)
        self.estimates = Estimates(self._sigmas, self._laws)
        self.pulls = [0] * n_arms
        self._n_pulls = 0
        self._sent_count = [0] * n_arms
        self._sent_round = [0] * n_arms
        self._echoes_left = [0] * n_arms
        self._own_total = [0.0] * n_arms
        self._best_when_chosen = False
        self._known: dict[tuple[int, int], tuple[int, float]] = {}
        self._queue: list[Message] = []
        self._heard: list[Message] = []
        self._memory = self._new_memory()

    def _new_memory(self) -> Memory:
        ttl = self._protocol.ttl
        if self._rules.id_is_reward:
            return RewardMemory(ttl, self._n_agents)
        return SequenceMemory(ttl, self._longest_delay)

    def choose(self, t: int) -> int:
        """The position in the arm set of the arm to pull in round `t`."""
        if self._n_pulls < len(self.arm_set):
            self._best_when_chosen = False
            return self._n_pulls

        def draw(position: int) -> float:
            return self._draws.uniform(purposes.INDEX, self.number, t, self.arm_set[position])

        position = self._policy.choose(t - self._rules.clock_lag, self.estimates, draw)
        if self._protocol.emission.asks_best:
            means = self.estimates.mean
            self._best_when_chosen = means.index(max(means)) == position
        return position

    def observe(self, t: int, position: int, reward: float) -> None:
        """The reward of this round's pull came: it counts at once and, if the emission says so, becomes a message."""
        self._n_pulls += 1
        self.pulls[position] += 1
        self._own_total[position] += reward
        self.estimates.add(position, 1, reward)
        self._make_message(t, position, reward)

    def _make_message(self, t: int, position: int, reward: float) -> None:
        """The pull becomes a message if the emission says so; otherwise an earlier one may be echoed."""
        if self._protocol.ttl == 0:
            return
        emission = self._protocol.emission
        own_count, sent_count = self.pulls[position], self._sent_count[position]
        if emission.sends(own_count, sent_count, self._best_when_chosen, emission.parameter):
            self._echoes_left[position] = emission.n_echoes
        else:
            waiting = [(self._sent_round[place], place) for place, left in enumerate(self._echoes_left) if left]
            if not waiting:
                return
            _, position = min(waiting)
            own_count = self.pulls[position]
            self._echoes_left[position] -= 1
        self._sent_count[position], self._sent_round[position] = own_count, t
        count, total = (own_count, self._own_total[position]) if emission.cumulative else (1, reward)
        message = Message(self.number, t, self.arm_set[position], count, total, self.number, self._protocol.ttl)
        if self._rules.origin_remembers:
            self._memory.accept(message)
        self._queue.append(message)

    def drop_queue(self) -> None:
        """What was to be sent is gone."""
        self._queue.clear()

    def take_outbox(self) -> list[Message]:
        """The messages to send in this round, last in first out; the queue is empty after it."""
        outbox = self._queue[::-1]
        self._queue.clear()
        return outbox

    def targets(self, message: Message, neighbours: Sequence[int]) -> Sequence[int]:
        """Which of this round's neighbours (in ascending order) a message from the outbox goes to."""
        if not self._rules.relay_to_sender and message.previous != self.number:
            neighbours = [neighbour for neighbour in neighbours if neighbour != message.previous]
        n_targets = self._protocol.n_targets
        if n_targets is None:
            return neighbours
        k0, k1 = self._draws.key(purposes.TARGET)
        return pick_targets(k0, k1, message.origin, message.sequence, self.number, message.ttl, neighbours, n_targets)

    def receive(self, message: Message, sender: int, degree: int) -> Receipt:
        """What becomes of a copy that came from `sender`, when this agent has `degree` neighbours."""
        if not self._memory.accept(message):
            return Receipt(Fate.DUPLICATE, False)
        ttl = message.ttl - 1
        has_arm = self.has(message.arm)
        u = 0.0
        if self._protocol.random:
            u = self._draws.uniform(purposes.STOP, message.origin, message.sequence, self.number, ttl)
        decision = self._protocol.relay(has_arm, ttl, degree, u, self._protocol.parameter)
        learned = has_arm and not (decision == STOP and self._rules.stop_before_use)
        if learned:
            self._heard.append(message)
        if check_decision(self._protocol, decision) == ABSORB:
            fate = Fate.ABSORBED
        elif decision == STOP:
            fate = Fate.STOPPED
        elif ttl < 1:
            fate = Fate.EXPIRED
        else:
            fate = Fate.RELAYED
            self._queue.append(
                Message(message.origin, message.sequence, message.arm, message.n_pulls, message.total, sender, ttl)
            )
        return Receipt(fate, learned)

    def has(self, arm: int) -> bool:
        """Whether the agent may pull that arm."""
        return arm in self._position

    def hear(self, message: Message) -> None:
        """Learn from a message without any traffic, as under `Centralised`."""
        self._heard.append(message)

    def settle(self, t: int) -> None:
        """Round `t` ends: what was learned in it enters the estimates, in ascending (origin, sequence number)."""
        self._heard.sort()
        for message in self._heard:
            count, total = message.n_pulls, message.total
            if self._hears_sums:
                known_count, known_total = self._known.get((message.origin, message.arm), (0, 0.0))
                if count <= known_count:
                    continue
                self._known[message.origin, message.arm] = count, total
                count, total = count - known_count, total - known_total
            self.estimates.add(self._position[message.arm], count, total)
        self._heard.clear()
        self._memory.forget(t)
