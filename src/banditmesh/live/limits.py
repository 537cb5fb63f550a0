"""Limits of what a node keeps and accepts.

Rules kept here: beyond a cap the new thing is refused and counted, and nothing is evicted; from 75 per cent of a cap on
the node warns. A count is at least 1 and below 2^53; a reward is at most 1e12 in size.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from .. import checks

MOST_COUNT: Final = 2**53 - 1
#: The limit of the wire format (docs/live/wire.md), smaller than that of simulated arms: every node refuses more.
MOST_REWARD: Final = 1e12
#: How many of the last choices can still be settled, unless the configuration says otherwise (`open_choices`).
OPEN_CHOICES: Final = 100_000
MOST_OPEN_CHOICES: Final = 100_000_000
#: How many of the last callers' keys are remembered.
LAST_KEYS: Final = 100_000
#: Tickets of older starts have lapsed, however quickly the starts followed each other.
LAST_STARTS: Final = 1_000
#: The part of a cap from which on a node warns.
WARN_FROM: Final = 0.75


class Caps(Struct, frozen=True, forbid_unknown_fields=True):
    """The most that a node keeps of each kind.

    Attributes
    ----------
    origins : int
        Names of other nodes in the table.
    epochs : int
        Lives of one origin.
    arms : int
        Arms, its own and those that it only relays.
    entries : int
        Statistics of others.
    links : int
        Neighbours that are linked at a time.
    notices : int
        Notices of the authority.

    Examples
    --------
    >>> Caps(entries=1_000).arms
    10000
    """

    origins: int = 10_000
    epochs: int = 64
    arms: int = 10_000
    entries: int = 200_000
    links: int = 256
    notices: int = 10_000

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            checks.integer(f"caps.{name}", getattr(self, name), at_least=1)
