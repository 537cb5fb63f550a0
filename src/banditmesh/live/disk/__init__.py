"""What a node writes down and reads back: plain values, all of them frozen.

    Stored    everything, as it was read at the start
    Changes   what one transaction must write, whole or not at all
    Entry     a row of the table; it may lag behind, since neighbours offer it again

How a `Changes` is to be applied, in this order: if `clear_own`, all rows of `own`, `starts` and `closed` go; then
`forgotten_*` rows go; then every other row replaces the one of the same key, which is in each class's docstring.
A field that is empty or None changes nothing.
"""

from __future__ import annotations

from typing import NamedTuple

from msgspec import Struct


class Key(NamedTuple):
    """What a statistic is of: an arm, as one life of a node saw it."""

    origin: str
    epoch: int
    arm: str


class Life(Struct, frozen=True):
    """The one life under way: its epoch, how often it was started, and how many choices it has made."""

    epoch: int
    start: int
    n_choices: int


class OwnArm(Struct, frozen=True):
    """What the node saw itself of an arm in this life, and what it told of that. Key: `arm`.

    `n_chosen` counts choices; it only decides which of several unknown arms is chosen next.
    """

    arm: str
    count: int
    total: float
    told_count: int = 0
    told_total: float = 0.0
    n_chosen: int = 0


class Entry(Struct, frozen=True, gc=False):
    """What the node knows of another key, with the hops that are left, and whether it passes it on.

    Key: `origin`, `epoch`, `arm`.
    """

    origin: str
    epoch: int
    arm: str
    count: int
    total: float
    ttl: int
    passes: bool

    @property
    def key(self) -> Key:
        """What it is of."""
        return Key(self.origin, self.epoch, self.arm)


class Start(Struct, frozen=True):
    """One start of this life, and when it began, by the node's own clock. Key: `start`."""

    start: int
    begun_at: float


class Closed(Struct, frozen=True):
    """Tickets of a start that are closed, from number `first` to `last`, both included. Key: `start`, `first`."""

    start: int
    first: int
    last: int


class TicketBook(Struct, frozen=True):
    """What a node needs to know its own tickets again. There is one.

    `key` seals them, from start `since` of this life on; those before have no seal. `open_choices` is how many of the
    last choices could still be settled when it was written, and `lapsed` the last number that had lapsed by then.
    """

    key: bytes
    since: int
    open_choices: int
    lapsed: int


class CallerKey(Struct, frozen=True):
    """A caller's own key of a reward that was counted; `number` ascends. Key: `number`."""

    number: int
    key: str


class Stored(Struct, frozen=True):
    """Everything that a node has written down.

    `notices` are the signed bytes as they travel; `retired` are the lives (node, epoch) that they name. `is_backup`
    says that it was read from a backup, behind which the node may have gone on: a new life must begin.
    """

    mesh: str
    node: str
    life: Life
    own: list[OwnArm] = []
    starts: list[Start] = []
    closed: list[Closed] = []
    caller_keys: list[CallerKey] = []
    entries: list[Entry] = []
    notices: list[bytes] = []
    retired: list[tuple[str, int]] = []
    is_backup: bool = False
    ticket_book: TicketBook | None = None


class Changes(Struct, frozen=True):
    """What one transaction writes; see the top of this file for how.

    `forgotten_starts` are keys of `starts` whose `closed` rows go as well; `forgotten_closed` keys (start, first) of
    `closed`. Caller keys with a number up to `forgotten_caller_keys` go. `removed` are keys of the table.
    """

    life: Life | None = None
    ticket_book: TicketBook | None = None
    clear_own: bool = False
    forgotten_starts: list[int] = []
    forgotten_closed: list[tuple[int, int]] = []
    forgotten_caller_keys: int = 0
    removed: list[Key] = []
    own: list[OwnArm] = []
    starts: list[Start] = []
    closed: list[Closed] = []
    caller_keys: list[CallerKey] = []
    entries: list[Entry] = []
    notices: list[bytes] = []
    retired: list[tuple[str, int]] = []
