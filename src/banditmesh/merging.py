"""An agent that sends merged statistics along a tree, as `TreeAggregation` says.

It is driven as any agent is. What differs: nothing is relayed and no id is remembered. In each round, after the pulls,
it looks for each arm and each neighbour in the tree at what it could tell: its own count and sum, and the latest that
it had from its other neighbours. What it hears in a round travels on in the next.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from .agent import Agent, Fate, Message, Receipt
from .protocols.tree import TreeAggregation


class MergingAgent(Agent):
    """An agent on a tree.

    Parameters
    ----------
    neighbours : sequence of int
        The agent's neighbours in the tree, ascending.
    wants : sequence of collections of int
        For each of these neighbours the arms that somebody beyond has.
    protocol : TreeAggregation
    others
        As of `Agent`.
    """

    def __init__(
        self,
        neighbours: Sequence[int],
        wants: Sequence[Collection[int]],
        protocol: TreeAggregation,
        **others: Any,
    ) -> None:
        self._wants = dict(zip(neighbours, wants, strict=True))
        self._pause = protocol.pause
        self._round = 1
        super().__init__(protocol=protocol, **others)

    def restart(self) -> None:
        """Begin with nothing."""
        super().restart()
        #: By neighbour: the latest (count, sum) of each arm that it told.
        self._told: dict[int, dict[int, tuple[int, float]]] = {w: {} for w in self._wants}
        #: By neighbour: the count of each arm when it was last told, and in which round.
        self._sent: dict[int, dict[int, tuple[int, int]]] = {w: {} for w in self._wants}
        #: By neighbour: how often each arm is still to be echoed.
        self._echoes_of: dict[int, dict[int, int]] = {w: {} for w in self._wants}
        self._n_sent = dict.fromkeys(self._wants, 0)
        self._targets: dict[Message, list[int]] = {}

    def _make_message(self, t: int, position: int, reward: float) -> None:
        """What there is to tell is told when the outbox is taken."""

    def take_outbox(self) -> list[Message]:
        """The statistics to send in this round, by arm and neighbour; each link numbers its own."""
        self._targets = {}
        arms = sorted({*self.arm_set, *(arm for told in self._told.values() for arm in told)})
        for arm in arms:
            for neighbour, wanted in self._wants.items():
                if arm in wanted:
                    self._tell(neighbour, arm)
        return list(self._targets)

    def _tell(self, neighbour: int, arm: int) -> None:
        count, total = 0, 0.0
        if self.has(arm):
            position = self._position[arm]
            count, total = self.pulls[position], self._own_total[position]
        for other, told in self._told.items():
            if other != neighbour:
                told_count, told_total = told.get(arm, (0, 0.0))
                count += told_count
                total += told_total
        sent_count, sent_round = self._sent[neighbour].get(arm, (0, 1 - self._pause))
        emission = self._protocol.emission
        echoes_left = self._echoes_of[neighbour].get(arm, 0)
        is_new = count > sent_count and emission.sends(count, sent_count, False, emission.parameter)
        if (is_new or echoes_left) and self._round - sent_round >= self._pause:
            self._echoes_of[neighbour][arm] = emission.n_echoes if is_new else echoes_left - 1
            self._sent[neighbour][arm] = count, self._round
            self._n_sent[neighbour] += 1
            message = Message(self.number, self._n_sent[neighbour], arm, count, total, self.number, 1)
            self._targets.setdefault(message, []).append(neighbour)

    def targets(self, message: Message, neighbours: Sequence[int]) -> Sequence[int]:
        """The one neighbour, or several who are told the same, that a message from the outbox goes to."""
        return self._targets[message]

    def receive(self, message: Message, sender: int, degree: int) -> Receipt:
        """Keep what a neighbour tells if it counts more than what it told before."""
        known_count, known_total = self._told[sender].get(message.arm, (0, 0.0))
        if message.n_pulls <= known_count:
            return Receipt(Fate.DUPLICATE, False)
        self._told[sender][message.arm] = message.n_pulls, message.total
        learned = self.has(message.arm)
        if learned:
            position = self._position[message.arm]
            self.estimates.add(position, message.n_pulls - known_count, message.total - known_total)
        return Receipt(Fate.ABSORBED, learned)

    def settle(self, t: int) -> None:
        """Round `t` ends."""
        self._round = t + 1
