"""What happens to copies between sender and receiver: they may be lost, changed or late.

A copy that is sent in round t and is d rounds late arrives in round t + d, also if the link has vanished since. It is
lost if it is drawn so, if its receiver is down when it arrives, or if it has not arrived by the horizon.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import attrgetter
from typing import NamedTuple

from ..core import Copy, Message
from ..draws import CORRUPT, DELAY, LOSS, NOISE, Draws
from ..faults import Faults
from .chances import sequence_of


class Transmission(NamedTuple):
    """A copy that goes over one link, and the round in which it was sent."""

    copy: Copy
    sender: int
    receiver: int
    round: int


_SENDER = attrgetter("sender")


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
        Which agents are up in the round under way; the caller keeps it up to date.
    lose : callable
        Told of every copy that is lost, with the round in which it would have arrived.
    unit : callable
        What one observation weighs in the numbers of a message, see `Memory.unit`.
    """

    def __init__(
        self,
        faults: Faults,
        horizon: int,
        draws: Draws,
        up: Sequence[bool],
        lose: Callable[[Transmission, int], None],
        unit: Callable[[Message], float],
    ) -> None:
        self._faults = faults
        self._horizon = horizon
        self._draws = draws
        self._up = up
        self._lose = lose
        self._unit = unit
        self._due: defaultdict[int, list[Transmission]] = defaultdict(list)

    def carry(self, t: int, sent: Iterable[Transmission]) -> Iterator[Transmission]:
        """Take what is sent in round `t`; gives what arrives in it, by sender and then in the order of sending."""
        faults, sent = self._faults, list(sent)
        late = self._draw_each(DELAY, sent) if faults.jitter else itertools.repeat(0.5)
        lost = self._draw_each(LOSS, sent) if faults.loss else itertools.repeat(1.0)
        for one, u_late, u_lost in zip(sent, late, lost, strict=False):
            arrival = t + faults.lateness(u_late)
            if u_lost < faults.loss or arrival > self._horizon:
                self._lose(one, arrival)
            else:
                self._due[arrival].append(self._as_it_arrives(one))
        # What a sender sent is in order already, and sorting keeps equals as they are.
        for one in sorted(self._due.pop(t, ()), key=_SENDER):
            if self._up[one.receiver]:
                yield one
            else:
                self._lose(one, t)

    def _as_it_arrives(self, one: Transmission) -> Transmission:
        corruption = self._faults.corruption
        if corruption is None or self._draw(CORRUPT, one) >= corruption.probability:
            return one
        message, ttl = one.copy
        if not isinstance(message, Message):
            return one
        total = corruption.changed(message.total, self._draw(NOISE, one), self._unit(message))
        return one._replace(copy=Copy(message._replace(total=total), ttl))

    def _draw(self, purpose: str, one: Transmission) -> float:
        return self._draws.uniform(purpose, *_counter(one))

    def _draw_each(self, purpose: str, sent: Sequence[Transmission]) -> list[float]:
        return self._draws.uniform_of_each(purpose, [_counter(one) for one in sent])


def _counter(one: Transmission) -> tuple[int, int, int, int]:
    message = one.copy.message
    return message.origin, sequence_of(message), one.sender, one.receiver
