"""The roster: which lives and arms a node knows of, how many there may be, and which lives are not wanted.

Rules kept here. Beyond a cap a new name, life or entry is refused, and nothing is evicted. An origin has a share of the
entries, over all its lives (`caps.entries_per_origin`): what a member can fill is its share. Rows under the node's own
name count as entries, too; of what it only heard under its name it takes as many as its share, and what it lived itself
always has a place. `caps.arms` bounds the node's own arms alone: otherwise the arms of one member could keep out those
of another. Lives that are retired, by a notice of the authority, are refused permanently; names and lives that the
configuration ignores, as long as it does.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Collection, Iterable

from ..names import OWN_ENTRIES, WARN_FROM, Caps, is_epoch, is_name
from ..statistics import Key


class _Life:
    """A life that there are rows of."""

    __slots__ = ("epoch", "n_rows", "origin")

    def __init__(self, origin: str, epoch: int) -> None:
        self.origin = origin
        self.epoch = epoch
        self.n_rows = 0


class Roster:
    """The roster of one node.

    Parameters
    ----------
    node : str
        The node's own name.
    caps : Caps
    """

    def __init__(self, node: str, caps: Caps) -> None:
        self._node = node
        self._caps = caps
        self._lives: dict[tuple[str, int], _Life] = {}
        #: By origin, the node itself aside: how many lives.
        self._n_lives: Counter[str] = Counter()
        #: By arm: how many reasons the node has to know it: it has it, chose it, or observed it.
        self._arms: Counter[str] = Counter()
        #: By origin, the node itself too: how many rows.
        self._n_rows_of: Counter[str] = Counter()
        self._n_rows = 0
        self._n_own_lives = 0
        self._retired: set[tuple[str, int]] = set()
        self._ignored: set[str | tuple[str, int]] = set()

    def refusal(self, origin: str, epoch: int, arm: str) -> str | None:
        """Why a new key cannot be taken, in a word; None if it can."""
        if arm not in self._arms and not is_name(arm):
            return "names"
        # Also of a life of which there are rows: those of one that is not wanted any more may be about to leave.
        if (origin, epoch) in self._retired:
            return "retired"
        if origin in self._ignored or (origin, epoch) in self._ignored:
            return "ignored"
        if (origin, epoch) not in self._lives:
            if not (is_name(origin) and is_epoch(epoch)):
                return "names"
            if origin != self._node:
                if origin not in self._n_lives and len(self._n_lives) >= self._caps.origins:
                    return "origins"
                if self._n_lives[origin] >= self._caps.epochs:
                    return "epochs"
        if origin == self._node:
            return None if self.room_for_own() > 0 else OWN_ENTRIES
        if self._n_rows_of[origin] >= self._caps.entries_per_origin:
            return "entries_per_origin"
        return None if self._n_rows < self._caps.entries else "entries"

    def enter(self, origin: str, epoch: int, arm: str) -> Key:
        """There is one more row; its key, made of the same objects as those of other rows."""
        life = self._lives.get((origin, epoch))
        if life is None:
            life = _Life(sys.intern(origin), epoch)
            self._lives[life.origin, epoch] = life
            if origin == self._node:
                self._n_own_lives += 1
            else:
                self._n_lives[life.origin] += 1
        life.n_rows += 1
        self._n_rows += 1
        self._n_rows_of[life.origin] += 1
        return life.origin, life.epoch, sys.intern(arm)

    def leave(self, origin: str, epoch: int, arm: str) -> None:
        """There is one row less."""
        life = self._lives[origin, epoch]
        life.n_rows -= 1
        if not life.n_rows:
            del self._lives[origin, epoch]
            if origin == self._node:
                self._n_own_lives -= 1
            else:
                self._n_lives[origin] -= 1
                if not self._n_lives[origin]:
                    del self._n_lives[origin]
        self._n_rows -= 1
        self._n_rows_of[origin] -= 1
        if not self._n_rows_of[origin]:
            del self._n_rows_of[origin]

    def hold_arm(self, arm: str) -> None:
        """Know an arm for one more reason: the node has it, or chose or observed it."""
        self._arms[arm] += 1

    def release_arm(self, arm: str) -> None:
        """Know an arm for one reason less; without any it is forgotten."""
        self._arms[arm] -= 1
        if not self._arms[arm]:
            del self._arms[arm]

    def has_room_for_arms(self, arms: Iterable[str]) -> bool:
        """Whether the node may have these arms, or have observed them, too."""
        n_new = sum(arm not in self._arms for arm in arms)
        return not n_new or len(self._arms) + n_new <= self._caps.arms

    def room_for_own(self) -> int:
        """How many more entries of its own earlier lives the node may hear of; below 0 if it lived through more."""
        return self._caps.entries_per_origin - self._n_rows_of[self._node]

    def retire(self, lives: Iterable[tuple[str, int]]) -> None:
        """Refuse these lives permanently."""
        self._retired.update(lives)

    def ignore(self, ignored: Collection[str | tuple[str, int]]) -> None:
        """Refuse these names and lives, and no others, from now on."""
        self._ignored = set(ignored)

    def is_unwanted(self, origin: str, epoch: int) -> bool:
        """Whether a life is retired or ignored."""
        return (origin, epoch) in self._retired or origin in self._ignored or (origin, epoch) in self._ignored

    def lives(self) -> list[tuple[str, int]]:
        """All lives that there are rows of."""
        return list(self._lives)

    def many_lives(self) -> dict[str, int]:
        """Names with enough lives to warn about, the most first; the node's own with this one.

        Others refuse to hear of more lives than their own caps allow, and a name that has them is mute from then on.
        """
        found = {**self._n_lives, self._node: self._n_own_lives + 1}
        many = sorted((-n, name) for name, n in found.items() if n > 1 and n >= WARN_FROM * self._caps.epochs)
        return {name: -n for n, name in many}

    def n_rows_of(self, origin: str) -> int:
        """How many rows an origin has."""
        return self._n_rows_of[origin]

    def rows_by_origin(self) -> list[tuple[str, int]]:
        """How many rows each other origin has."""
        return [(name, n) for name, n in self._n_rows_of.items() if name != self._node]

    def usage(self, n_told: int = 0) -> dict[str, tuple[int, int]]:
        """How much there is of what has a cap, and the cap; the present life has told of `n_told` arms."""
        share, own = self._caps.entries_per_origin, self._n_rows_of[self._node] + n_told
        fullest = max((n for name, n in self._n_rows_of.items() if name != self._node), default=0)
        return {
            "origins": (len(self._n_lives), self._caps.origins),
            "epochs": (max(self._n_lives.values(), default=0), self._caps.epochs),
            "arms": (len(self._arms), self._caps.arms),
            "entries": (self._n_rows, self._caps.entries),
            "entries_per_origin": (fullest, share),
            OWN_ENTRIES: (own, share),
        }
