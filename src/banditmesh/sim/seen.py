"""Agents' memories of the messages that they have seen, by the two rule sets."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from ..core import Message


class RecentIds:
    """The sound memory: messages differ by origin and id, and none is forgotten while a copy can still come.

    The id is the round of the pull that a message was made after. A copy lives for ttl rounds from the one on in which
    it was made, and for the delay of ttl hops; without a longest delay nothing is ever forgotten.

    Parameters
    ----------
    ttl : int
        The most hops of a message.
    longest_delay : int or None
        The most rounds that a copy can be late on one hop; None if there is no most.
    longest_wait : int or None
        The most rounds between the pull and the message.
    """

    def __init__(self, ttl: int, longest_delay: int | None = 0, longest_wait: int | None = 0) -> None:
        self._lifetime = None
        if longest_delay is not None and longest_wait is not None:
            self._lifetime = ttl * (1 + longest_delay) + longest_wait
        self._origins: dict[int, set[int]] = {}

    def accept(self, message: Message) -> bool:
        """Remember a message; whether it was new."""
        origin, sequence = message[0], message[1]
        origins = self._origins.get(sequence)
        if origins is None:
            self._origins[sequence] = {origin}
            return True
        if origin in origins:
            return False
        origins.add(origin)
        return True

    def forget(self, t: int) -> None:
        """Drop the ids of messages that no copy is left of after round `t`."""
        if self._lifetime is not None:
            self._origins.pop(t - self._lifetime + 1, None)

    def restart(self) -> None:
        """Forget everything."""
        self._origins.clear()

    @property
    def state(self) -> list[Any]:
        """By id, the origins."""
        return [[sequence, sorted(origins)] for sequence, origins in self._origins.items()]

    @state.setter
    def state(self, value: list[Any]) -> None:
        self._origins = {sequence: set(origins) for sequence, origins in value}


class RecentRewards:
    """The published memory: messages differ by origin, arm and reward; beyond ttl * n_agents the oldest goes.

    Equal rewards are taken for the same message, and a forgotten message is accepted again.

    Parameters
    ----------
    ttl : int
        The most hops of a message.
    n_agents : int
        How many agents there are.
    stamp : callable, optional
        What else tells messages apart, see `Memory.stamp`.
    """

    def __init__(self, ttl: int, n_agents: int, stamp: Callable[[Message], int] | None = None) -> None:
        self._size = ttl * n_agents
        self._stamp = stamp
        self._queue: deque[tuple[int, int, float, float, int]] = deque()
        self._ids: set[tuple[int, int, float, float, int]] = set()

    def accept(self, message: Message) -> bool:
        """Remember a message; whether it was new."""
        stamp = 0 if self._stamp is None else self._stamp(message)
        key = message.origin, message.arm, message.n_pulls, message.total, stamp
        if key in self._ids:
            return False
        self._ids.add(key)
        self._queue.append(key)
        if len(self._queue) > self._size:
            self._ids.discard(self._queue.popleft())
        return True

    def forget(self, t: int) -> None:
        """Nothing: this memory forgets by its size alone."""

    def restart(self) -> None:
        """Forget everything."""
        self._queue.clear()
        self._ids.clear()

    @property
    def state(self) -> list[Any]:
        """What is remembered, the oldest first."""
        return [[*key] for key in self._queue]

    @state.setter
    def state(self, value: list[Any]) -> None:
        self._queue = deque((origin, arm, count, total, stamp) for origin, arm, count, total, stamp in value)
        self._ids = set(self._queue)
