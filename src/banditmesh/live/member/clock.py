"""The clock of a member: what is ahead of it, and whether it is behind the node's own observations.

Rules kept here. What is ahead of the clock counts as of now, judged once more whenever the clock is set. A clock that
has been behind the node's own stamps for ten minutes had been ahead: with these, the node would not forget until that
day, and so it begins a new life.
"""

from __future__ import annotations

from ..forgetting import BEHIND_FOR
from .agents import settle
from .parts import MemberParts


class Clock:
    """The clock of one member."""

    def __init__(self, parts: MemberParts) -> None:
        self._parts = parts
        #: Since which uptime it has been behind.
        self._behind_since: float | None = None

    def was_set(self, now: float) -> None:
        """The clock was set, or the node starts: whatever is ahead is judged by the clock as it is now."""
        parts = self._parts
        parts.time.now = now
        settle(parts.bandits.holder, parts.table)
        parts.table.look_anew()
        for agent in parts.bandits.agents.values():
            if agent.fading is not None:
                agent.look_anew()

    def look(self, uptime: float) -> None:
        """Look whether the clock, which was told just now, is behind the node's own stamps."""
        latest = max((own.values.stamp for own in self._parts.ledger.own.values()), default=0.0)
        if latest <= self._parts.time.horizon:
            self.begin_life()
        elif self._behind_since is None:
            self._behind_since = uptime
        elif uptime - self._behind_since >= BEHIND_FOR:
            self._parts.is_behind = True

    def begin_life(self) -> None:
        """Nothing is ahead of the clock any more, or a life begins, which has no stamps yet."""
        self._behind_since, self._parts.is_behind = None, False
