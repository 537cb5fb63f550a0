"""What a node writes down and reads back: plain values, all of them frozen.

    Stored    everything, as it was read at the start
    Changes   what one transaction must write, whole or not at all
    Entry     a row of the table; it may lag behind, since neighbours offer it again

How a `Changes` is to be applied, in this order: if `clear_own`, all rows of `own`, `starts`, `closed` and
`open_tickets` go; then rows of `forgotten_*`, `settled_tickets` and `removed` go; then every other row replaces the one
of the same key, which is in each class's docstring. A field that is empty or None changes nothing.
"""

from __future__ import annotations

from msgspec import Struct

from ..statistics import Entry, Key, Values


class Life(Struct, frozen=True):
    """The one life under way: its epoch, how often it was started, and how many choices it has made.

    `uptime` is how long processes have run on this state so far, in seconds, as far as that is stored.
    """

    epoch: int
    start: int
    n_choices: int
    uptime: float = 0.0


class OwnArm(Struct, frozen=True):
    """What the node saw itself of an arm in this life, and what it told of that. Key: `arm`.

    `n_chosen` counts choices; it only decides which of several unknown arms is chosen next. Weight, weighted total and
    stamp of 0 say that there is no memory; `values` and `told` have them filled in.
    """

    arm: str
    count: int
    total: float
    told_count: int = 0
    told_total: float = 0.0
    n_chosen: int = 0
    weight: float = 0.0
    weighted_total: float = 0.0
    stamp: float = 0.0
    told_weight: float = 0.0
    told_weighted_total: float = 0.0
    told_stamp: float = 0.0

    @property
    def values(self) -> Values:
        """What it observed."""
        return Values.of(self.count, self.total, self.weight, self.weighted_total, self.stamp)

    @property
    def told(self) -> Values:
        """What it told."""
        return Values.of(self.told_count, self.told_total, self.told_weight, self.told_weighted_total, self.told_stamp)


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


class OpenTicket(Struct, frozen=True):
    """A ticket that will count as an observation if it is never settled. Key: `start`, `number`.

    `uptime` is the node's when the choice was made.
    """

    start: int
    number: int
    arm: str
    uptime: float


class BanditMemory(Struct, frozen=True):
    """By which memory, as it is written, the present life observes a bandit's arms; empty for none. Key: `bandit`."""

    bandit: str
    memory: str


class AgentClock(Struct, frozen=True):
    """The choices of one agent: a bandit, and a segment of it (empty without one). Key: `bandit`, `segment`.

    `weight` is their discounted number at the time `stamp`, where the bandit has a memory.
    """

    bandit: str
    segment: str
    n_choices: int
    weight: float = 0.0
    stamp: float = 0.0


class CallerKey(Struct, frozen=True):
    """A caller's own key of a reward that was counted; `number` ascends. Key: `number`."""

    number: int
    key: str


class _Rows(Struct, frozen=True, kw_only=True):
    """What is read at the start, and may be written by a transaction.

    `notices` are the signed bytes as they travel; `retired` are the lives (node, epoch) that they name. `certificates`
    are those by which entries are signed, in DER.
    """

    own: list[OwnArm] = []
    starts: list[Start] = []
    closed: list[Closed] = []
    caller_keys: list[CallerKey] = []
    entries: list[Entry] = []
    notices: list[bytes] = []
    retired: list[tuple[str, int]] = []
    ticket_book: TicketBook | None = None
    certificates: list[bytes] = []
    open_tickets: list[OpenTicket] = []
    memories: list[BanditMemory] = []
    clocks: list[AgentClock] = []


class Stored(_Rows, frozen=True):
    """Everything that a node has written down.

    `is_backup` says that it was read from a backup, behind which the node may have gone on: a new life must begin.
    """

    mesh: str
    node: str
    life: Life
    is_backup: bool = False


class Changes(_Rows, frozen=True):
    """What one transaction writes; see the top of this file for how.

    `forgotten_starts` are keys of `starts` whose `closed` rows go as well; `forgotten_closed` keys (start, first) of
    `closed`. Caller keys with a number up to `forgotten_caller_keys` go. `removed` are keys of the table,
    `settled_tickets` keys of `open_tickets`, and `forgotten_certificates` the ids of certificates.
    """

    life: Life | None = None
    clear_own: bool = False
    forgotten_starts: list[int] = []
    forgotten_closed: list[tuple[int, int]] = []
    forgotten_caller_keys: int = 0
    removed: list[Key] = []
    settled_tickets: list[tuple[int, int]] = []
    forgotten_certificates: list[bytes] = []
