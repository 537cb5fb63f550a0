"""Rewards that never come: tickets that count as an observation of the bandit's `lapse_reward` if nothing settles them.

Rules kept here. A ticket lapses, once, when it is older than its lifetime or than the last choices, whichever is first.
Ages are by the node's uptime, which is stored and goes on from there: neither a clock that is set nor a night without
the node makes silence of what is still under way. A lapse goes the way of a reward: one transaction counts it and
closes the ticket, so that it is one or the other; while that cannot be written, it waits. Open tickets are written with
the next transaction; one that was given less than that before a crash never lapses, but its reward still counts. A new
life drops them: they would count in both.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from ..disk import OpenTicket

_Key = tuple[int, int]


class Lapses:
    """The open tickets of bandits with a `lapse_reward`.

    Parameters
    ----------
    lifetime : float
        How long a ticket is good for, in seconds of uptime.
    open_choices : int
        How many of the last choices can still be settled.

    Examples
    --------
    >>> lapses = Lapses(lifetime=60.0, open_choices=100)
    >>> lapses.give(OpenTicket(1, 7, "red", uptime=10.0))
    >>> lapses.due(n_choices=7, uptime=70.0), [one.number for one in lapses.due(n_choices=7, uptime=71.0)]
    ([], [7])
    """

    def __init__(self, lifetime: float, open_choices: int) -> None:
        self._lifetime = lifetime
        self._open_choices = open_choices
        #: The oldest first.
        self.open: dict[_Key, OpenTicket] = {}
        self._unwritten: dict[_Key, None] = {}
        #: The last ones that lapsed: a later reward is refused as such.
        self._lapsed: set[_Key] = set()
        self._last_lapsed: deque[_Key] = deque()

    def restore(self, tickets: Iterable[OpenTicket]) -> None:
        """Put back what was stored."""
        for one in sorted(tickets, key=lambda one: (one.uptime, one.start, one.number)):
            self.open[one.start, one.number] = one

    def give(self, ticket: OpenTicket) -> None:
        """A ticket was given."""
        key = ticket.start, ticket.number
        self.open[key] = ticket
        self._unwritten[key] = None

    def has_lapsed(self, key: _Key) -> bool:
        """Whether a ticket is known to have lapsed."""
        return key in self._lapsed

    def due(self, n_choices: int, uptime: float, most: int = 1_000) -> list[OpenTicket]:
        """Tickets that lapse now, the oldest first."""
        found: list[OpenTicket] = []
        for one in self.open.values():
            if uptime - one.uptime <= self._lifetime and one.number > n_choices - self._open_choices:
                break
            found.append(one)
            if len(found) == most:
                break
        return found

    def unwritten(self, settled: Iterable[_Key]) -> tuple[list[OpenTicket], list[_Key]]:
        """What a transaction that settles these tickets writes: rows that come, and rows that go."""
        gone = [key for key in settled if key in self.open]
        come = [self.open[key] for key in self._unwritten.keys() - set(gone)]
        return come, [key for key in gone if key not in self._unwritten]

    @property
    def has_unwritten(self) -> bool:
        """Whether a ticket waits to be written."""
        return bool(self._unwritten)

    def written(self, come: Iterable[OpenTicket], settled: Iterable[_Key], lapsed: Iterable[_Key]) -> None:
        """That is stored: these are written, these are settled, and these of them have lapsed."""
        for one in come:
            self._unwritten.pop((one.start, one.number), None)
        for key in settled:
            self.open.pop(key, None)
            self._unwritten.pop(key, None)
        for key in lapsed:
            self._lapsed.add(key)
            self._last_lapsed.append(key)
        while len(self._last_lapsed) > self._open_choices:
            self._lapsed.discard(self._last_lapsed.popleft())

    def clear(self) -> None:
        """A new life begins."""
        self.open.clear()
        self._unwritten.clear()
        self._lapsed.clear()
        self._last_lapsed.clear()
