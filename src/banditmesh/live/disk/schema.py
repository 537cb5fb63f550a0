"""What the state file of a node holds, and what each row may be.

A row is written with a checksum over its table and its values, so that a bit that fell over on the disk is noticed. It
is checked again when it is read: types and ranges first, then what rows say of each other. Epochs are 64 bits without
a sign, and SQLite's integers have one; so they are shifted.

This is format 2. A file of format 1, from before memories, signatures and seals of tickets, is read as it is, and the
first transaction that writes to it brings it up to date.
"""

from __future__ import annotations

import sqlite3
import zlib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from ...errors import StoreError
from ...protocols.base import MAX_TTL
from ..member.tickets import KEY_BYTES
from ..names import MAX_COUNT, is_name
from ..statistics import CERTIFICATE_BYTES, SIGNATURE_BYTES, Entry, Key, Values, certificate_id, why_refused
from . import (
    AgentClock,
    BanditMemory,
    CallerKey,
    Changes,
    Closed,
    Life,
    OpenTicket,
    OwnArm,
    Start,
    Stored,
    TicketBook,
)

#: Marks an SQLite file as the state of a node ("bmsh"), and says by which of our formats.
APPLICATION: Final = 0x626D7368
FORMAT: Final = 2
#: What a file is: a node's state, or a copy of it.
STATE: Final = "state"
BACKUP: Final = "backup"
#: No text or blob is longer.
LONGEST: Final = 1 << 20
_SHIFT: Final = 1 << 63

_ENCODE: Final = msgspec.msgpack.Encoder().encode

_Int = Annotated[int, Meta(ge=-_SHIFT, le=_SHIFT - 1)]
_Natural = Annotated[int, Meta(ge=0, le=_SHIFT - 1)]
_Count = Annotated[int, Meta(ge=0, le=MAX_COUNT)]
_Some = Annotated[int, Meta(ge=1, le=MAX_COUNT)]
_Ttl = Annotated[int, Meta(ge=0, le=MAX_TTL)]
_Flag = Annotated[int, Meta(ge=0, le=1)]
_Text = Annotated[str, Meta(min_length=1)]
_Finite = Annotated[float, Meta(ge=-1.7e308, le=1.7e308)]
_Uptime = Annotated[float, Meta(ge=0.0, le=1.7e308)]


class UnusableError(StoreError):
    """A file that cannot be the state of a node; the message goes on behind its name."""

    @classmethod
    def damaged(cls, what: str) -> UnusableError:
        """One that says what cannot be, or is not as it was written."""
        return cls(f"is damaged: {what}")


@dataclass(frozen=True)
class SqlTable:
    """A table: its columns, of which the first `n_key` are the key, and what its rows are."""

    name: str
    columns: tuple[str, ...]
    n_key: int
    row: Any

    @cached_property
    def create(self) -> str:
        """The statement that makes it."""
        columns = ", ".join(f"{column} NOT NULL" for column in (*self.columns, "checksum INTEGER"))
        return f"CREATE TABLE {self.name} ({columns}, PRIMARY KEY ({', '.join(self.keys)})) WITHOUT ROWID"

    @cached_property
    def keys(self) -> list[str]:
        """The names of the key's columns."""
        return [column.split()[0] for column in self.columns[: self.n_key]]

    def put(self, db: sqlite3.Connection, rows: Iterable[tuple[Any, ...]]) -> None:
        """Write rows; each replaces the one of the same key."""
        if rows := list(rows):
            sealed = ((*row, checksum) for row, checksum in zip(rows, self._checksums(rows), strict=True))
            db.executemany(self._put, sealed)

    def remove(self, db: sqlite3.Connection, keys: Iterable[tuple[Any, ...]]) -> None:
        """Delete rows by their keys."""
        if keys := list(keys):
            db.executemany(self._remove, keys)

    @cached_property
    def _put(self) -> str:
        return f"INSERT OR REPLACE INTO {self.name} VALUES ({', '.join('?' * (len(self.columns) + 1))})"

    @cached_property
    def _remove(self) -> str:
        return f"DELETE FROM {self.name} WHERE {' AND '.join(f'{key} = ?' for key in self.keys)}"

    def clear(self, db: sqlite3.Connection) -> None:
        """Delete all rows."""
        db.execute(f"DELETE FROM {self.name}")

    def read(self, db: sqlite3.Connection) -> list[tuple[Any, ...]]:
        """All rows in the order of their keys, of the right types and ranges, and as they were written."""
        found = db.execute(f"SELECT * FROM {self.name} ORDER BY {', '.join(self.keys)}").fetchall()
        rows = [row[:-1] for row in found]
        if [row[-1] for row in found] != self._checksums(rows):
            raise UnusableError.damaged(f"a row of {self.name} is not as it was written")
        try:
            # Bytes as they are: otherwise a text would be taken for their base64.
            checked: list[tuple[Any, ...]] = msgspec.convert(
                rows,
                list[self.row],  # type: ignore[name-defined]
                builtin_types=(bytes,),
            )
        except msgspec.ValidationError:
            raise UnusableError.damaged(f"a row of {self.name} is out of range") from None
        if len({row[: self.n_key] for row in checked}) < len(checked):
            raise UnusableError.damaged(f"a key of {self.name} is there twice")
        return checked

    def _checksums(self, rows: list[tuple[Any, ...]]) -> list[int]:
        begin, crc = zlib.crc32(self.name.encode()), zlib.crc32
        return [crc(_ENCODE(row), begin) for row in rows]


ABOUT: Final = SqlTable("about", ("mesh TEXT", "node TEXT", "kind TEXT"), 2, tuple[_Text, _Text, _Text])
_LIFE_1: Final = SqlTable(
    "life", ("epoch INTEGER", "start INTEGER", "n_choices INTEGER"), 1, tuple[_Int, _Natural, _Natural]
)
LIFE: Final = SqlTable("life", (*_LIFE_1.columns, "uptime REAL"), 1, tuple[_Int, _Natural, _Natural, _Uptime])
_OWN_1: Final = SqlTable(
    "own",
    ("arm TEXT", "count INTEGER", "total REAL", "told_count INTEGER", "told_total REAL", "n_chosen INTEGER"),
    1,
    tuple[_Text, _Count, _Finite, _Count, _Finite, _Natural],
)
OWN: Final = SqlTable(
    "own",
    (
        *_OWN_1.columns,
        "weight REAL",
        "weighted_total REAL",
        "stamp REAL",
        "told_weight REAL",
        "told_weighted_total REAL",
        "told_stamp REAL",
    ),
    1,
    tuple[_Text, _Count, _Finite, _Count, _Finite, _Natural, _Finite, _Finite, _Finite, _Finite, _Finite, _Finite],
)
STARTS: Final = SqlTable("starts", ("start INTEGER", "begun_at REAL"), 1, tuple[_Natural, _Finite])
CLOSED: Final = SqlTable(
    "closed", ("start INTEGER", "first INTEGER", "last INTEGER"), 2, tuple[_Natural, _Natural, _Natural]
)
CALLER_KEYS: Final = SqlTable("caller_keys", ("number INTEGER", "key TEXT"), 1, tuple[_Natural, str])
_ENTRIES_1: Final = SqlTable(
    "entries",
    (
        "origin TEXT",
        "epoch INTEGER",
        "arm TEXT",
        "count INTEGER",
        "total REAL",
        "ttl INTEGER",
        "passes INTEGER",
    ),
    3,
    tuple[_Text, _Int, _Text, _Some, _Finite, _Ttl, _Flag],
)
ENTRIES: Final = SqlTable(
    "entries",
    (
        *_ENTRIES_1.columns,
        "is_observed INTEGER",
        "weight REAL",
        "weighted_total REAL",
        "stamp REAL",
        "certificate BLOB",
        "signature BLOB",
    ),
    3,
    tuple[_Text, _Int, _Text, _Some, _Finite, _Ttl, _Flag, _Flag, _Finite, _Finite, _Finite, bytes, bytes],
)
CERTIFICATES: Final = SqlTable("certificates", ("id BLOB", "certificate BLOB"), 1, tuple[bytes, bytes])
OPEN_TICKETS: Final = SqlTable(
    "open_tickets",
    ("start INTEGER", "number INTEGER", "arm TEXT", "uptime REAL"),
    2,
    tuple[_Natural, _Natural, _Text, _Uptime],
)
MEMORIES: Final = SqlTable("memories", ("bandit TEXT", "memory TEXT"), 1, tuple[_Text, str])
CLOCKS: Final = SqlTable(
    "clocks",
    ("bandit TEXT", "segment TEXT", "n_choices INTEGER", "weight REAL", "stamp REAL"),
    2,
    tuple[_Text, str, _Natural, _Finite, _Finite],
)
NOTICES: Final = SqlTable("notices", ("notice BLOB",), 1, tuple[bytes])
RETIRED: Final = SqlTable("retired", ("node TEXT", "epoch INTEGER"), 2, tuple[_Text, _Int])
TICKET_BOOK: Final = SqlTable(
    "ticket_book",
    ("key BLOB", "since INTEGER", "open_choices INTEGER", "lapsed INTEGER"),
    1,
    tuple[bytes, _Natural, _Natural, _Natural],
)
_UNCHANGED: Final = (ABOUT, STARTS, CLOSED, CALLER_KEYS, NOTICES, RETIRED)
_NEW: Final = (TICKET_BOOK, CERTIFICATES, OPEN_TICKETS, MEMORIES, CLOCKS)
TABLES: Final = (*_UNCHANGED, LIFE, OWN, ENTRIES, *_NEW)
#: The tables of each format.
_BY_FORMAT: Final = {1: (*_UNCHANGED, _LIFE_1, _OWN_1, _ENTRIES_1), FORMAT: TABLES}


def create(db: sqlite3.Connection, mesh: str, node: str) -> None:
    """Make all tables of a node that has no state yet."""
    db.execute(f"PRAGMA application_id = {APPLICATION}")
    db.execute(f"PRAGMA user_version = {FORMAT}")
    for table in TABLES:
        db.execute(table.create)
    ABOUT.put(db, [(mesh, node, STATE)])


def mark(db: sqlite3.Connection, kind: str) -> None:
    """Say of a file that it is a node's state, or a copy of it."""
    ABOUT.put(db, [(mesh, node, kind) for mesh, node, _ in ABOUT.read(db)])


def identify(db: sqlite3.Connection) -> tuple[str, str, str]:
    """The mesh and the node that a file is of, and its kind, once it is known to be whole."""
    [[application]], version = db.execute("PRAGMA application_id"), _format(db)
    if application != APPLICATION:
        raise UnusableError.damaged("it is not the state of a node")
    if version > FORMAT:
        raise UnusableError(f"has format {version}, of a later banditmesh than this one, which reads up to {FORMAT}")
    made = Counter(sql for (sql,) in db.execute("SELECT sql FROM sqlite_master"))
    if made != Counter(table.create for table in _BY_FORMAT.get(version, ())):
        raise UnusableError.damaged("its tables are not those of its format")
    [verdict], *more = db.execute("PRAGMA quick_check(1)").fetchall()
    if verdict != "ok" or more:
        raise UnusableError.damaged(" ".join(str(verdict).split()))
    rows = ABOUT.read(db)
    if len(rows) != 1 or not (is_name(rows[0][0]) and is_name(rows[0][1]) and rows[0][2] in (STATE, BACKUP)):
        raise UnusableError.damaged("it does not say of which node it is")
    mesh, node, kind = rows[0]
    return mesh, node, kind


def read(db: sqlite3.Connection) -> Stored | None:
    """Everything in a file; None if no life has begun in it."""
    mesh, node, kind = identify(db)
    tables = _BY_FORMAT[_format(db)]
    rows = {table.name: table.read(db) for table in tables if table is not ABOUT}
    for table in _NEW:
        rows.setdefault(table.name, [])
    lives = [Life(_unshifted(epoch), *more) for epoch, *more in rows["life"]]
    if not lives:
        if any(rows.values()):
            raise UnusableError.damaged("it has rows, but no life")
        return None
    books = rows["ticket_book"]
    stored = Stored(
        mesh=mesh,
        node=node,
        life=lives[0],
        own=[OwnArm(*row) for row in rows["own"]],
        starts=[Start(*row) for row in rows["starts"]],
        closed=[Closed(*row) for row in rows["closed"]],
        caller_keys=[CallerKey(*row) for row in rows["caller_keys"]],
        entries=[_entry(*row) for row in rows["entries"]],
        notices=[notice for (notice,) in rows["notices"]],
        retired=[(name, _unshifted(epoch)) for name, epoch in rows["retired"]],
        is_backup=kind == BACKUP,
        ticket_book=TicketBook(*books[0]) if books else None,
        certificates=[certificate for _, certificate in rows["certificates"]],
        open_tickets=[OpenTicket(*row) for row in rows["open_tickets"]],
        memories=[BanditMemory(*row) for row in rows["memories"]],
        clocks=[AgentClock(*row) for row in rows["clocks"]],
    )
    if len(lives) > 1 or len(books) > 1:
        raise UnusableError.damaged("it has more than one life or key")
    _check(stored)
    return stored


def _entry(
    origin: str,
    epoch: int,
    arm: str,
    count: int,
    total: float,
    ttl: int,
    passes: int,
    is_observed: int = 0,
    *more: Any,
) -> Entry:
    """An entry of either format."""
    life = origin, _unshifted(epoch)
    return Entry(*life, arm, count, total, ttl, *more, passes=passes == 1, is_observed=is_observed == 1)


def _check(stored: Stored) -> None:
    """What no row says alone."""
    life, here = stored.life, (stored.node, stored.life.epoch)
    names = {one.arm for one in stored.own} | {name for name, _ in stored.retired}
    names |= {one.arm for one in stored.open_tickets} | {one.bandit for one in stored.memories}
    names |= {one.bandit for one in stored.clocks}
    names |= {entry.origin for entry in stored.entries} | {entry.arm for entry in stored.entries}
    wrong = {
        "a name": not all(map(is_name, names)),
        "an own statistic": not all(
            one.told_count <= one.count and _may_be(one.values) and _may_be(one.told) for one in stored.own
        ),
        "a statistic of others": any(why_refused(entry.values) for entry in stored.entries),
        "a signature": any(
            (len(entry.certificate), len(entry.signature)) not in ((0, 0), (CERTIFICATE_BYTES, SIGNATURE_BYTES))
            for entry in stored.entries
        ),
        "an entry of the present life": any((entry.origin, entry.epoch) == here for entry in stored.entries),
        "a key": stored.ticket_book is not None and len(stored.ticket_book.key) != KEY_BYTES,
        "a start": any(one.start > life.start for one in stored.starts),
        "an open ticket": any(one.start > life.start for one in stored.open_tickets),
        "a closed ticket": any(one.start > life.start or one.first > one.last for one in stored.closed)
        or any(one.start == other.start and one.last >= other.first for one, other in pairwise(stored.closed)),
    }
    for what, is_wrong in wrong.items():
        if is_wrong:
            raise UnusableError.damaged(f"{what} in it cannot be")


def _may_be(values: Values) -> bool:
    """Whether a node can have observed that; nothing at all, too."""
    return why_refused(values) is None if values.count else not any(values)


def write(db: sqlite3.Connection, changes: Changes) -> None:
    """Write what one transaction takes, in the order that `disk` states."""
    _upgrade(db)
    if changes.clear_own:
        for table in (OWN, STARTS, CLOSED, OPEN_TICKETS):
            table.clear(db)
    STARTS.remove(db, [(start,) for start in changes.forgotten_starts])
    if changes.forgotten_starts:
        db.executemany("DELETE FROM closed WHERE start = ?", [(start,) for start in changes.forgotten_starts])
    CLOSED.remove(db, changes.forgotten_closed)
    if changes.forgotten_caller_keys:
        db.execute("DELETE FROM caller_keys WHERE number <= ?", (changes.forgotten_caller_keys,))
    if changes.life is not None:
        LIFE.clear(db)
        _put_life(db, changes.life)
    if changes.ticket_book is not None:
        TICKET_BOOK.clear(db)
        TICKET_BOOK.put(db, [msgspec.structs.astuple(changes.ticket_book)])
    OPEN_TICKETS.remove(db, changes.settled_tickets)
    _put_own(db, changes.own)
    STARTS.put(db, ((one.start, _real(one.begun_at)) for one in changes.starts))
    CLOSED.put(db, map(msgspec.structs.astuple, changes.closed))
    CALLER_KEYS.put(db, map(msgspec.structs.astuple, changes.caller_keys))
    NOTICES.put(db, ((notice,) for notice in changes.notices))
    RETIRED.put(db, ((name, _shifted(epoch)) for name, epoch in changes.retired))
    OPEN_TICKETS.put(db, ((one.start, one.number, one.arm, _real(one.uptime)) for one in changes.open_tickets))
    MEMORIES.put(db, map(msgspec.structs.astuple, changes.memories))
    CLOCKS.put(
        db,
        ((one.bandit, one.segment, one.n_choices, _real(one.weight), _real(one.stamp)) for one in changes.clocks),
    )
    write_certificates(db, changes.certificates, changes.forgotten_certificates)
    write_entries(db, changes.entries, changes.removed)


def write_certificates(db: sqlite3.Connection, certificates: Iterable[bytes], forgotten: Iterable[bytes]) -> None:
    """Write certificates, after removing those of these ids."""
    CERTIFICATES.remove(db, ((one,) for one in forgotten))
    CERTIFICATES.put(db, ((certificate_id(certificate), certificate) for certificate in certificates))


def write_entries(db: sqlite3.Connection, entries: Iterable[Entry], removed: Iterable[Key]) -> None:
    """Write rows of the table, after removing others."""
    _upgrade(db)
    ENTRIES.remove(db, ((origin, _shifted(epoch), arm) for origin, epoch, arm in removed))
    _put_entries(db, entries)


def _upgrade(db: sqlite3.Connection) -> None:
    """Bring a file of format 1 up to date, within the transaction under way."""
    if _format(db) == FORMAT:
        return
    stored = read(db)
    for table in (_LIFE_1, _OWN_1, _ENTRIES_1):
        db.execute(f"DROP TABLE {table.name}")
    for table in (LIFE, OWN, ENTRIES, *_NEW):
        db.execute(table.create)
    db.execute(f"PRAGMA user_version = {FORMAT}")
    if stored is not None:
        _put_life(db, stored.life)
        _put_own(db, stored.own)
        _put_entries(db, stored.entries)


def _put_life(db: sqlite3.Connection, life: Life) -> None:
    LIFE.put(db, [(_shifted(life.epoch), life.start, life.n_choices, _real(life.uptime))])


def _put_own(db: sqlite3.Connection, own: Iterable[OwnArm]) -> None:
    OWN.put(
        db,
        (
            (
                one.arm,
                one.count,
                _real(one.total),
                one.told_count,
                _real(one.told_total),
                one.n_chosen,
                *map(_real, (one.weight, one.weighted_total, one.stamp)),
                *map(_real, (one.told_weight, one.told_weighted_total, one.told_stamp)),
            )
            for one in own
        ),
    )


def _put_entries(db: sqlite3.Connection, entries: Iterable[Entry]) -> None:
    ENTRIES.put(
        db,
        (
            (
                one.origin,
                _shifted(one.epoch),
                one.arm,
                one.count,
                _real(one.total),
                one.ttl,
                int(one.passes),
                int(one.is_observed),
                _real(one.weight),
                _real(one.weighted_total),
                _real(one.stamp),
                one.certificate,
                one.signature,
            )
            for one in entries
        ),
    )


def _format(db: sqlite3.Connection) -> int:
    [[version]] = db.execute("PRAGMA user_version")
    return int(version)


def _real(value: float) -> float:
    """A number as SQLite gives it back: a float, and without the sign of a zero."""
    return float(value) + 0.0


def _shifted(epoch: int) -> int:
    return epoch - _SHIFT


def _unshifted(value: int) -> int:
    return value + _SHIFT
