"""What happens to copies between sender and receiver: they may be lost, changed or late.

A copy that is sent in round t and is d rounds late arrives in round t + d, also if the link has vanished since. It is
lost if it is drawn so, if its receiver is down when it arrives, or if it has not arrived by the horizon.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import itemgetter
from typing import TypeAlias

from ..agent import Message
from ..draws import CORRUPT, DELAY, LOSS, NOISE, Draws
from ..faults import Faults

#: A message on its way: message, sender, receiver, and the round in which it was sent.
Copy: TypeAlias = tuple[Message, int, int, int]
_SENDER = itemgetter(1)


class Transit:
    """All links of a network, and what is under way on them.

    Parameters
    ----------
    faults : Faults
    horizon : int
        The last round.
    draws : Draws
        The replicate's randomness.
    up : sequence of bool
        Which agents are up in the round under way; somebody else keeps it.
    lose : callable
        Told of every copy that is lost, with the round in which it would have arrived.
    """

    def __init__(
        self, faults: Faults, horizon: int, draws: Draws, up: Sequence[bool], lose: Callable[[Copy, int], None]
    ) -> None:
        self._faults = faults
        self._horizon = horizon
        self._draws = draws
        self._up = up
        self._lose = lose
        self._due: defaultdict[int, list[Copy]] = defaultdict(list)

    def carry(self, t: int, copies: Iterable[Copy]) -> Iterator[Copy]:
        """Take what is sent in round `t`; gives what arrives in it, by sender and then in the order of sending."""
        for copy in copies:
            arrival = t + self._lateness(copy)
            if self._is_lost(copy) or arrival > self._horizon:
                self._lose(copy, arrival)
            else:
                self._due[arrival].append(self._as_it_arrives(copy))
        # A sender's copies are in order already, and sorting keeps equals as they are.
        for copy in sorted(self._due.pop(t, ()), key=_SENDER):
            _, _, receiver, _ = copy
            if self._up[receiver]:
                yield copy
            else:
                self._lose(copy, t)

    def _is_lost(self, copy: Copy) -> bool:
        return self._faults.loss > 0.0 and self._draw(LOSS, copy) < self._faults.loss

    def _lateness(self, copy: Copy) -> int:
        return self._faults.lateness(self._draw(DELAY, copy) if self._faults.jitter else 0.5)

    def _as_it_arrives(self, copy: Copy) -> Copy:
        corruption = self._faults.corruption
        if corruption is None or self._draw(CORRUPT, copy) >= corruption.probability:
            return copy
        message, sender, receiver, sent_in = copy
        total = corruption.changed(message.total, self._draw(NOISE, copy))
        return message._replace(total=total), sender, receiver, sent_in

    def _draw(self, purpose: str, copy: Copy) -> float:
        message, sender, receiver, _ = copy
        return self._draws.uniform(purpose, message.origin, message.sequence, sender, receiver)
