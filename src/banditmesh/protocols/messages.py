"""What travels between agents, and what becomes of it."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import Any, Final, NamedTuple


class Message(NamedTuple):
    """Observations of one arm by one origin: what is the same on every hop.

    Origin, id and arm are names that can be hashed and sorted; the simulator uses numbers. An origin never uses an id
    twice, and its ids ascend. `total` is the sum of the rewards of `n_pulls` pulls. An origin that has lost its state
    begins another `life`, in which it counts its pulls from zero again. `round` is that of the pull or, of a statistic,
    that of sending; 0 if the driver has no rounds. By a memory that discounts, a statistic's `n_pulls` and `total` are
    a weight and a weighted sum, in the scale of that round.
    """

    origin: Any
    id: Any
    arm: Any
    n_pulls: Any
    total: float
    life: int = 0
    round: int = 0


class Note(NamedTuple):
    """A message of another kind, for algorithms that send something else than observations.

    `kind` is a word of the algorithm's own ("recommendation"), `arm` what it is about, or None, and `values` whatever
    numbers go along. Copies of it meet the same fates as those of a `Message`: what its receiver uses up is absorbed.
    """

    origin: Any
    id: Any
    kind: str
    arm: Any = None
    values: tuple[float, ...] = ()


class Copy(NamedTuple):
    """A message (or a note) on its way, and how many hops it may still travel: the hop that it is on is one of them."""

    message: Any
    ttl: int


class Parcel(NamedTuple):
    """A copy that is to be sent, and the neighbours that it goes to."""

    copy: Copy
    targets: Sequence[Any]


def parcel_of(message: Any, ttl: int, targets: Sequence[Any]) -> Parcel:
    """`Parcel(Copy(message, ttl), targets)`, in a third of the time: nothing else is made as often."""
    return _new(Parcel, (_new(Copy, (message, ttl)), targets))


_new: Final = tuple.__new__


class Fate(IntEnum):
    """What became of one copy of a message."""

    DUPLICATE = 0
    ABSORBED = 1
    EXPIRED = 2
    STOPPED = 3
    RELAYED = 4
    LOST = 5
    QUEUED = 6


class Receipt(NamedTuple):
    """The effect of receiving one copy: its fate, and whether the agent will learn from it when it settles."""

    fate: Fate
    heard: bool


# Receipts are many, and few are different: by fate, each not heard and heard.
RECEIPTS: Final = tuple((Receipt(fate, False), Receipt(fate, True)) for fate in Fate)
DUPLICATE: Final = RECEIPTS[Fate.DUPLICATE][False]
ABSORBED: Final = RECEIPTS[Fate.ABSORBED]
