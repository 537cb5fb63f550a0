"""What the state file of a node holds, and what each row may be.

A row is written with a checksum over its table and its values, so that a bit that fell over on the disk is noticed. It
is checked again when it is read: types and ranges first, then what rows say of each other. Epochs are 64 bits without
a sign, and SQLite's integers have one; so they are shifted.
"""

from __future__ import annotations

import sqlite3
import zlib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from ...errors import StoreError
from ...protocols.base import MAX_TTL
from ..limits import MOST_COUNT, MOST_REWARD
from ..member.arms import may_be_sum
from ..member.tickets import KEY_BYTES
from ..names import is_name
from . import (
    CallerKey,
    Changes,
    Closed,
    Entry,
    Key,
    Life,
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

_Int = Annotated[int, Meta(ge=-_SHIFT, le=_SHIFT - 1)]
_Natural = Annotated[int, Meta(ge=0, le=_SHIFT - 1)]
_Count = Annotated[int, Meta(ge=0, le=MOST_COUNT)]
_Some = Annotated[int, Meta(ge=1, le=MOST_COUNT)]
_Ttl = Annotated[int, Meta(ge=0, le=MAX_TTL)]
_Flag = Annotated[int, Meta(ge=0, le=1)]
_Text = Annotated[str, Meta(min_length=1)]
_Finite = Annotated[float, Meta(ge=-1.7e308, le=1.7e308)]


class UnusableError(StoreError):
    """A file that cannot be the state of a node; the message goes on behind its name."""

    @classmethod
    def damaged(cls, what: str) -> UnusableError:
        """One that says what cannot be, or is not as it was written."""
        return cls(f"is damaged: {what}")


@dataclass(frozen=True)
class Table:
    """A table: its columns, of which the first `n_key` are the key, and what its rows are."""

    name: str
    columns: tuple[str, ...]
    n_key: int
    row: Any

    @property
    def create(self) -> str:
        """The statement that makes it."""
        columns = ", ".join(f"{column} NOT NULL" for column in (*self.columns, "checksum INTEGER"))
        return f"CREATE TABLE {self.name} ({columns}, PRIMARY KEY ({', '.join(self.keys)})) WITHOUT ROWID"

    @property
    def keys(self) -> list[str]:
        """The names of the key's columns."""
        return [column.split()[0] for column in self.columns[: self.n_key]]

    def put(self, db: sqlite3.Connection, rows: Iterable[tuple[Any, ...]]) -> None:
        """Write rows; each replaces the one of the same key."""
        marks = ", ".join("?" * (len(self.columns) + 1))
        rows = list(rows)
        sealed = ((*row, checksum) for row, checksum in zip(rows, self._checksums(rows), strict=True))
        db.executemany(f"INSERT OR REPLACE INTO {self.name} VALUES ({marks})", sealed)

    def remove(self, db: sqlite3.Connection, keys: Iterable[tuple[Any, ...]]) -> None:
        """Delete rows by their keys."""
        db.executemany(f"DELETE FROM {self.name} WHERE {' AND '.join(f'{key} = ?' for key in self.keys)}", keys)

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
        begin, encode, crc = zlib.crc32(self.name.encode()), msgspec.msgpack.Encoder().encode, zlib.crc32
        return [crc(encode(row), begin) for row in rows]


ABOUT: Final = Table("about", ("mesh TEXT", "node TEXT", "kind TEXT"), 2, tuple[_Text, _Text, _Text])
LIFE: Final = Table("life", ("epoch INTEGER", "start INTEGER", "n_choices INTEGER"), 1, tuple[_Int, _Natural, _Natural])
OWN: Final = Table(
    "own",
    ("arm TEXT", "count INTEGER", "total REAL", "told_count INTEGER", "told_total REAL", "n_chosen INTEGER"),
    1,
    tuple[_Text, _Count, _Finite, _Count, _Finite, _Natural],
)
STARTS: Final = Table("starts", ("start INTEGER", "begun_at REAL"), 1, tuple[_Natural, _Finite])
CLOSED: Final = Table(
    "closed", ("start INTEGER", "first INTEGER", "last INTEGER"), 2, tuple[_Natural, _Natural, _Natural]
)
CALLER_KEYS: Final = Table("caller_keys", ("number INTEGER", "key TEXT"), 1, tuple[_Natural, str])
ENTRIES: Final = Table(
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
NOTICES: Final = Table("notices", ("notice BLOB",), 1, tuple[bytes])
RETIRED: Final = Table("retired", ("node TEXT", "epoch INTEGER"), 2, tuple[_Text, _Int])
TICKET_BOOK: Final = Table(
    "ticket_book",
    ("key BLOB", "since INTEGER", "open_choices INTEGER", "lapsed INTEGER"),
    1,
    tuple[bytes, _Natural, _Natural, _Natural],
)
TABLES: Final = (ABOUT, LIFE, OWN, STARTS, CLOSED, CALLER_KEYS, ENTRIES, NOTICES, RETIRED, TICKET_BOOK)
#: The tables of each format. A file of format 1, when tickets had no seal, gets the present one when a node starts.
_BY_FORMAT: Final = {1: TABLES[:-1], FORMAT: TABLES}


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
    lives = [Life(_unshifted(epoch), start, n_choices) for epoch, start, n_choices in LIFE.read(db)]
    if not lives:
        if any(table.read(db) for table in _BY_FORMAT[_format(db)] if table is not ABOUT):
            raise UnusableError.damaged("it has rows, but no life")
        return None
    books = TICKET_BOOK.read(db) if _format(db) > 1 else []
    stored = Stored(
        mesh=mesh,
        node=node,
        life=lives[0],
        own=[OwnArm(*row) for row in OWN.read(db)],
        starts=[Start(*row) for row in STARTS.read(db)],
        closed=[Closed(*row) for row in CLOSED.read(db)],
        caller_keys=[CallerKey(*row) for row in CALLER_KEYS.read(db)],
        entries=[
            Entry(origin, _unshifted(epoch), arm, count, total, ttl, passes == 1)
            for origin, epoch, arm, count, total, ttl, passes in ENTRIES.read(db)
        ],
        notices=[notice for (notice,) in NOTICES.read(db)],
        retired=[(name, _unshifted(epoch)) for name, epoch in RETIRED.read(db)],
        is_backup=kind == BACKUP,
        ticket_book=TicketBook(*books[0]) if books else None,
    )
    if len(lives) > 1 or len(books) > 1:
        raise UnusableError.damaged("it has more than one life or key")
    _check(stored)
    return stored


def _check(stored: Stored) -> None:
    """What no row says alone."""
    life, here = stored.life, (stored.node, stored.life.epoch)
    names = {one.arm for one in stored.own} | {name for name, _ in stored.retired}
    names |= {entry.origin for entry in stored.entries} | {entry.arm for entry in stored.entries}
    wrong = {
        "a name": not all(map(is_name, names)),
        "an own statistic": not all(
            one.told_count <= one.count
            and may_be_sum(one.count, one.total)
            and may_be_sum(one.told_count, one.told_total)
            for one in stored.own
        ),
        # The first half is what nearly all of them are, and quick.
        "a statistic of others": not all(
            abs(entry.total) <= MOST_REWARD * entry.count or may_be_sum(entry.count, entry.total)
            for entry in stored.entries
        ),
        "an entry of the present life": any((entry.origin, entry.epoch) == here for entry in stored.entries),
        "a key": stored.ticket_book is not None and len(stored.ticket_book.key) != KEY_BYTES,
        "a start": any(one.start > life.start for one in stored.starts),
        "a closed ticket": any(one.start > life.start or one.first > one.last for one in stored.closed)
        or any(one.start == other.start and one.last >= other.first for one, other in pairwise(stored.closed)),
    }
    for what, is_wrong in wrong.items():
        if is_wrong:
            raise UnusableError.damaged(f"{what} in it cannot be")


def write(db: sqlite3.Connection, changes: Changes) -> None:
    """Write what one transaction takes, in the order that `records` states."""
    if changes.clear_own:
        for table in (OWN, STARTS, CLOSED):
            table.clear(db)
    STARTS.remove(db, [(start,) for start in changes.forgotten_starts])
    db.executemany("DELETE FROM closed WHERE start = ?", [(start,) for start in changes.forgotten_starts])
    CLOSED.remove(db, changes.forgotten_closed)
    if changes.forgotten_caller_keys:
        db.execute("DELETE FROM caller_keys WHERE number <= ?", (changes.forgotten_caller_keys,))
    if changes.life is not None:
        LIFE.clear(db)
        LIFE.put(db, [(_shifted(changes.life.epoch), changes.life.start, changes.life.n_choices)])
    if changes.ticket_book is not None:
        if _format(db) < FORMAT:
            db.execute(TICKET_BOOK.create)
            db.execute(f"PRAGMA user_version = {FORMAT}")
        TICKET_BOOK.clear(db)
        TICKET_BOOK.put(db, [msgspec.structs.astuple(changes.ticket_book)])
    OWN.put(
        db,
        (
            (one.arm, one.count, _real(one.total), one.told_count, _real(one.told_total), one.n_chosen)
            for one in changes.own
        ),
    )
    STARTS.put(db, ((one.start, _real(one.begun_at)) for one in changes.starts))
    CLOSED.put(db, map(msgspec.structs.astuple, changes.closed))
    CALLER_KEYS.put(db, map(msgspec.structs.astuple, changes.caller_keys))
    NOTICES.put(db, ((notice,) for notice in changes.notices))
    RETIRED.put(db, ((name, _shifted(epoch)) for name, epoch in changes.retired))
    write_entries(db, changes.entries, changes.removed)


def write_entries(db: sqlite3.Connection, entries: Iterable[Entry], removed: Iterable[Key]) -> None:
    """Write rows of the table, after removing others."""
    ENTRIES.remove(db, ((origin, _shifted(epoch), arm) for origin, epoch, arm in removed))
    ENTRIES.put(
        db,
        (
            (one.origin, _shifted(one.epoch), one.arm, one.count, _real(one.total), one.ttl, int(one.passes))
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
