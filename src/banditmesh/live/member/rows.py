"""The rows of a node's table: kept by key and by arm, summed, and handed over to be stored.

Whatever a row says of the arms that the node has is in what its agents know; so where rows leave, these are summed anew
(`left`). Rows leave in pieces, see `walks`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from typing import TypeVar

from ..forgetting import NO_PART, Fading, Part, TimeOfDay
from ..names import Caps
from ..statistics import Entry, Key, Known
from .outboxes import Outboxes
from .roster import Roster
from .walks import BIT

_Thing = TypeVar("_Thing")


class Rows:
    """The rows of one node.

    Parameters
    ----------
    node : str
        The node's own name.
    outboxes : Outboxes
        Which rows leave, too.
    caps : Caps
    time : TimeOfDay
        By which stamps are judged that are ahead.

    Attributes
    ----------
    told : dict
        By arm, what the present life told.
    roster : Roster
        Which lives and arms there are rows of.
    fadings : dict
        By arm, of those that the node forgets: the scale in which its weights are kept.
    """

    def __init__(self, node: str, outboxes: Outboxes, caps: Caps, time: TimeOfDay) -> None:
        self.told: dict[str, Known] = {}
        self.roster = Roster(node, caps)
        self.fadings: dict[str, Fading] = {}
        self._node = node
        self._outboxes = outboxes
        self._time = time
        self._rows: dict[Key, Known] = {}
        #: By arm: its rows, so that a change of an arm costs what it changes.
        self._of_arm: dict[str, list[Known]] = {}
        #: The arms that the node has.
        self._held: set[str] = set()
        #: Of rows that count by weight: when they count as seen, and what they add to what is known.
        self._faded: dict[Known, tuple[float, Part]] = {}
        #: The rows that are dirty, in the order in which they became it.
        self._dirty: dict[Known, None] = {}
        self._removed: dict[Key, None] = {}

    # Coming and going

    def _add(self, origin: str, epoch: int, arm: str) -> Known:
        key = self.roster.enter(origin, epoch, arm)
        row = self._rows[key] = Known(key, arm in self._held, origin == self._node)
        self._of_arm.setdefault(key[2], []).append(row)
        if self._removed:
            self._removed.pop(key, None)
        return row

    def _is_there(self, row: Known) -> bool:
        """Whether a row has not left."""
        return self._rows.get(row.key) is row or self.told.get(row.key[2]) is row

    def _mark_dirty(self, row: Known) -> None:
        """A row has changed, and is to be stored."""
        row.is_dirty = True
        self._dirty[row] = None

    def _remove(
        self, rows: Iterable[Known], goes: Callable[[Known], bool], left: Callable[[str], None]
    ) -> Iterator[int]:
        """Let rows leave that go when their turn comes; `left` is called with the arm of each that has. A walk."""
        by_arm: dict[str, list[Known]] = {}
        for row in rows:
            by_arm.setdefault(row.key[2], []).append(row)
        for arm, some in by_arm.items():
            for start in range(0, len(some), BIT):
                gone = {row for row in some[start : start + BIT] if self._rows.get(row.key) is row and goes(row)}
                of_arm = self._of_arm.pop(arm, [])
                for row in gone:
                    self._forget(row)
                if others := [row for row in of_arm if row not in gone]:
                    self._of_arm[arm] = others
                left(arm)
                yield len(gone) + len(of_arm) // 4

    def _forget(self, row: Known) -> None:
        self.roster.leave(*row.key)
        del self._rows[row.key]
        self._outboxes.discard(row)
        self._dirty.pop(row, None)
        self._faded.pop(row, None)
        self._removed[row.key] = None

    # What counts by weight

    def _fade(self, row: Known) -> Part:
        """What a row that has changed adds to what is known by weight, beyond what it added before."""
        _, before = self._faded.get(row, (0.0, NO_PART))
        part = self._see(row, min(row.stamp, self._time.horizon))
        return Part(part.weight - before.weight, part.total - before.total)

    def _see(self, row: Known, seen: float) -> Part:
        # What has no stamp is of an origin without a memory, and says nothing about when.
        part = self.fadings[row.key[2]].part(row.weight, row.weighted_total, seen) if row.stamp else NO_PART
        self._faded[row] = seen, part
        return part

    def look_anew(self) -> None:
        """The node's clock was set: when rows count as seen is judged by it once more; all arms must be summed anew."""
        self._faded.clear()

    # Looking, and storing

    def rows(self) -> Iterable[Known]:
        """All that may be offered: what was told, and all entries."""
        return chain(self.told.values(), self._rows.values())

    def sums_of(self, arm: str, by_weight: bool = False) -> tuple[float, float]:
        """All that the table knows of an arm: count and sum, rounded once.

        With `by_weight`, weight and weighted total, in the arm's scale as it is now.
        """
        parts = [part for _, part in self._parts_of(arm, by_weight)]
        weights = (part[0] for part in parts)
        return math.fsum(weights) if by_weight else sum(weights), math.fsum(part[1] for part in parts)

    def by_origin(self, arm: str, by_weight: bool = False) -> dict[str, tuple[float, float]]:
        """The same by origin, all its lives together; the node itself with its earlier lives."""
        parts: dict[str, list[tuple[float, float]]] = {}
        for row, part in self._parts_of(arm, by_weight):
            parts.setdefault(row.key[0], []).append(part)
        return {
            name: some[0] if len(some) == 1 else (sum(part[0] for part in some), math.fsum(part[1] for part in some))
            for name, some in parts.items()
        }

    def _parts_of(self, arm: str, by_weight: bool) -> list[tuple[Known, tuple[float, float]]]:
        """The rows of an arm that are in use, with their counts and sums, or weights and weighted totals."""
        rows = [row for row in self._of_arm.get(arm, ()) if not row.is_outside]
        if not by_weight:
            return [(row, (row.count, row.total)) for row in rows]
        for row in self._of_arm.get(arm, ()):
            if row.is_outside:
                self._faded.pop(row, None)
        horizon, faded = self._time.horizon, self._faded
        return [(row, self._see(row, faded[row][0] if row in faded else min(row.stamp, horizon))) for row in rows]

    def entries(self) -> list[Entry]:
        """All entries, as they are stored."""
        return [row.entry() for row in self._rows.values()]

    def n_rows_of(self, arm: str) -> int:
        """How many rows an arm has."""
        return len(self._of_arm.get(arm, ()))

    def n_origins(self, arm: str) -> int:
        """How many other nodes the table has something of an arm from."""
        return len({row.key[0] for row in self._of_arm.get(arm, ()) if not row.is_outside} - {self._node})

    def take_dirty(self, most: int) -> tuple[list[Entry], list[Key]]:
        """Some entries that were changed, and keys that were removed, since they were last taken."""
        rows, removed = _pop(self._dirty, most), _pop(self._removed, most)
        for row in rows:
            row.is_dirty = False
        return [row.entry() for row in rows], removed

    def give_back(self, entries: Iterable[Entry], removed: Iterable[Key]) -> None:
        """What was taken could not be stored: it is to be taken again."""
        for entry in entries:
            if entry.key in self._rows:
                self._mark_dirty(self._rows[entry.key])
        self._removed.update(dict.fromkeys(key for key in removed if key not in self._rows))


def _pop(things: dict[_Thing, None], most: int) -> list[_Thing]:
    """Take the first of an ordered set. All at once give their memory back."""
    first = list(islice(things, most))
    if len(first) == len(things):
        things.clear()
    else:
        for one in first:
            del things[one]
    return first
