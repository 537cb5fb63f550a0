"""The table: for every key of another life the largest statistic heard, whether or not the node has the arm.

Rules kept here, for a statistic (origin, epoch, arm, count, sum, ttl) that came from neighbour p:

1. A field out of its range is refused, and so is a sum that the arm's `reward_range` does not allow.
2. The ttl becomes min(ttl, `max_ttl`) - 1; below 0 it is refused.
3. A count above the known one, or of a key not known, is news: the difference is to be learned if the node has the arm.
   The same count and sum with a larger ttl is extended: nothing is learned, but it may travel further. The same count
   with another sum is a conflict, which only a forked life causes: the larger sum wins, as news. All else is stale.
4. Of news and extended ones the relay rule says whether they pass. What passes, with at least one hop left, goes to all
   links but p's, or to as many drawn ones as the protocol says.
5. News whose origin is itself linked, and not p, also goes there: its memory, should it have lost it.
6. Own name and another epoch, an earlier life: news has the full ttl, passes, and goes to all links, p's too; all else
   is stale. Own name and present epoch, with a count above what it told, or that count and another sum: the node's state
   is an older copy, and it needs a new life. What proved it is kept until then. All else is stale.

Lives that are retired or ignored are refused, and leave. Beyond a cap a new key is refused. A node's own earlier lives
count towards no cap: it may hear as many entries of them as `caps.entries` says once more, and those that it has lived
itself always have a place. Whatever is refused is counted by its reason.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from itertools import chain, islice
from typing import Final

from ..core import Fate, fate_of
from ..protocols.base import AnyProtocol, Protocol
from .arms import ArmSpec, may_be_sum
from .chances import LiveChances
from .limits import MOST_COUNT, MOST_REWARD, Caps
from .names import is_epoch, is_name
from .outboxes import EXTENDED, MEMORY, NEWS, OFFER, Outboxes
from .records import Entry, Key
from .rows import Row

#: A statistic as it came: (origin, epoch, arm, count, sum, ttl). The types are right; nothing else is known of it.
Heard = tuple[str, int, str, int, float, int]
#: What is to be learned: (origin, epoch, position of the arm, how many more, what they add to the sum).
Part = tuple[str, int, int, int, float]

RELAYED: Final = Fate.RELAYED
#: What becomes of news is counted under these names.
FATES: Final = {
    Fate.ABSORBED: "news_absorbed",
    Fate.EXPIRED: "news_expired",
    Fate.STOPPED: "news_stopped",
    Fate.RELAYED: "news_relayed",
}


class _Life:
    """A life that the table has rows of."""

    __slots__ = ("epoch", "n_rows", "origin")

    def __init__(self, origin: str, epoch: int) -> None:
        self.origin = origin
        self.epoch = epoch
        self.n_rows = 0


class Table:
    """The table of one node.

    Parameters
    ----------
    node : str
        The node's own name.
    outboxes : Outboxes
    chances : LiveChances
    caps : Caps
    counters : Counter
        Where what becomes of statistics is counted, by outcome and reason.

    Attributes
    ----------
    heard : list
        What is to be learned, and has not been yet.
    proofs : dict
        By arm, the largest (count, sum) of the node's present life that it did not tell: it has told it all the same,
        before its state became an older copy.
    epoch : int
        The present life; -1 before the first.
    full_ttl : int
        The ttl of what the node stands for: the protocol's.
    """

    def __init__(self, node: str, outboxes: Outboxes, chances: LiveChances, caps: Caps, counters: Counter[str]) -> None:
        self.heard: list[Part] = []
        self.proofs: dict[str, tuple[int, float]] = {}
        self.epoch = -1
        self.full_ttl = 0
        self._n_targets: int | None = None
        self._node = node
        self._outboxes = outboxes
        self._chances = chances
        self._caps = caps
        self._counters = counters
        self._rows: dict[tuple[str, int, str], Row] = {}
        #: What the present life told, by arm.
        self._told: dict[str, Row] = {}
        self._lives: dict[tuple[str, int], _Life] = {}
        #: By origin, the node itself aside: how many lives.
        self._n_lives: Counter[str] = Counter()
        #: By arm: how many rows, and one more if the node has or has observed it.
        self._arms: Counter[str] = Counter()
        self._n_own_rows = 0
        self._specs: Sequence[ArmSpec] = ()
        self._position: dict[str, int] = {}
        self._protocol: AnyProtocol | None = None
        self._max_ttl = 0
        #: What the relay rule says of a ttl, inverted (~ttl) if the node has the arm; empty if it draws.
        self._fates: dict[int, int] = {}
        self._retired: set[tuple[str, int]] = set()
        self._ignored: set[str | tuple[str, int]] = set()
        self._dirty: dict[Row, None] = {}
        self._removed: dict[tuple[str, int, str], None] = {}

    # What the rules depend on

    def use_arms(self, specs: Sequence[ArmSpec]) -> None:
        """The node has these arms now. What their ranges do not allow leaves, but for what the node saw itself."""
        for arm, change in chain(((arm, -1) for arm in self._position), ((spec.name, 1) for spec in specs)):
            self.hold_arm(arm, change)
        self._specs = specs
        self._position = {spec.name: position for position, spec in enumerate(specs)}
        for row in list(self._rows.values()):
            row.position = self._position.get(row.key[2], -1)
            if row.position >= 0 and not row.stands and not specs[row.position].accepts_sum(row.count, row.total):
                self._counters["refused_reward_range"] += 1
                self._remove(row)

    def use_protocol(self, protocol: AnyProtocol, max_ttl: int | None) -> None:
        """Relay by this protocol from now on; what comes has `max_ttl` hops before it at most, or the protocol's ttl."""
        self._protocol = protocol
        self.full_ttl = protocol.most_hops
        self._n_targets = protocol.n_targets if isinstance(protocol, Protocol) else None
        self._max_ttl = self.full_ttl if max_ttl is None else max_ttl
        self._fates.clear()

    def use_life(self, epoch: int) -> None:
        """Begin this life, which has told nothing yet."""
        for row in self._told.values():
            self._outboxes.discard(row)
        self._told.clear()
        self.proofs.clear()
        self.epoch = epoch

    def forget_fates(self) -> None:
        """The number of links, which a relay rule may ask for, is another one."""
        self._fates.clear()

    def tell(self, arm: str, count: int, total: float) -> None:
        """Tell what the node saw of an arm: with the full ttl, to all links or to as many as the protocol says."""
        row = self._told.get(arm)
        if row is None:
            row = self._told[arm] = Row((self._node, self.epoch, arm), self._position.get(arm, -1), True)
        row.count, row.total, row.ttl = count, total, self.full_ttl
        self._counters["waited_already"] += self._outboxes.put(row, NEWS, n_targets=self._n_targets)

    def told_of(self, arm: str) -> tuple[int, float]:
        """Count and sum that the present life last told of an arm; none if it never has."""
        row = self._told.get(arm)
        return (0, 0.0) if row is None else (row.count, row.total)

    def decide_anew(self) -> None:
        """Whether entries pass, by the arms and the protocol of now; what newly passes goes to all links."""
        for row in self._told.values():
            row.ttl = self.full_ttl
        for row in self._rows.values():
            passed, ttl = row.passes, row.ttl
            if row.stands:
                row.ttl = self.full_ttl
            else:
                row.passes = self._fate(row.position >= 0, ttl) == RELAYED
                if row.passes and not passed:
                    self._outboxes.put(row, OFFER)
            if row.passes != passed or row.ttl != ttl:
                self._dirty[row] = None

    def hold_arm(self, arm: str, change: int = 1) -> None:
        """The node has or has observed that arm, or (-1) no longer."""
        self._arms[arm] += change
        if not self._arms[arm]:
            del self._arms[arm]

    def has_room_for_arm(self, arm: str) -> bool:
        """Whether the node may know of that arm."""
        return arm in self._arms or len(self._arms) < self._caps.arms

    # Hearing

    def hear(self, statistics: Iterable[Heard], peer: str) -> None:
        """Take statistics that came from a neighbour; what is to be learned of them is appended to `heard`."""
        links, rows, specs = self._outboxes.links, self._rows, self._specs
        heard, dirty, counters, fates = self.heard, self._dirty, self._counters, self._fates
        n_targets, max_ttl = self._n_targets, self._max_ttl
        others = [outbox for name, outbox in links.items() if name != peer]
        n_news = n_stale = n_learned = n_merged = 0
        n_fates = [0] * len(Fate)
        for origin, epoch, arm, count, total, ttl in statistics:
            bound = MOST_REWARD * count
            if not (1 <= count <= MOST_COUNT and (-bound <= total <= bound or may_be_sum(count, total))):
                counters["refused_sum" if 1 <= count <= MOST_COUNT else "refused_count"] += 1
                continue
            ttl = (ttl if ttl < max_ttl else max_ttl) - 1
            if ttl < 0:
                counters["refused_ttl"] += 1
                continue
            row = rows.get((origin, epoch, arm)) or self._candidate(origin, epoch, arm, count, total)
            if row is None:
                continue
            known, known_total, position = row.count, row.total, row.position
            if position >= 0 and specs[position].reward_range and not specs[position].accepts_sum(count, total):
                counters["refused_reward_range"] += 1
                continue
            if count <= known:
                if count < known or (total == known_total and (ttl <= row.ttl or row.stands)):
                    n_stale += 1
                    continue
                if total == known_total:
                    self._extend(row, ttl, peer)
                    continue
                counters["heard_conflicts"] += 1
                if total < known_total:
                    n_stale += 1
                    continue
            n_news += 1
            row.count = count
            row.total = total
            dirty[row] = None
            if not known:
                self._insert(row)
            if position >= 0:
                n_learned += 1
                heard.append((origin, epoch, position, count - known, total - known_total))
            if row.stands:
                self._stand_for(row)
                continue
            row.ttl = ttl
            fate = fates.get(ttl if position < 0 else ~ttl)
            if fate is None:
                fate = self._fate(position >= 0, ttl)
            n_fates[fate] += 1
            row.passes = fate == RELAYED
            if row.passes:
                if n_targets is None:
                    for outbox in others:
                        if row in outbox:
                            n_merged += 1
                        outbox[row] = NEWS
                else:
                    n_merged += self._outboxes.put(row, NEWS, peer, n_targets)
            if origin in links and origin != peer:
                links[origin].setdefault(row, MEMORY)
        counters["heard_news"] += n_news
        counters["heard_stale"] += n_stale
        counters["learned"] += n_learned
        counters["waited_already"] += n_merged
        for one, name in FATES.items():
            counters[name] += n_fates[one]

    def _extend(self, row: Row, ttl: int, peer: str) -> None:
        """What is known may travel further than was thought."""
        self._counters["heard_extended"] += 1
        row.ttl = ttl
        row.passes = self._fate(row.position >= 0, ttl) == RELAYED
        self._dirty[row] = None
        if row.passes:
            self._outboxes.put(row, EXTENDED, peer, self._n_targets)

    def _stand_for(self, row: Row) -> None:
        """The node stands for what it saw in an earlier life."""
        row.ttl = self.full_ttl
        self._dirty[row] = None
        self._outboxes.put(row, MEMORY)

    def _fate(self, has_arm: bool, ttl: int) -> int:
        """What becomes of news with so many hops left, by the protocol's rule."""
        protocol = self._protocol
        if not isinstance(protocol, Protocol):
            return int(Fate.ABSORBED)
        u = self._chances.uniform() if protocol.random else 0.0
        decision = protocol.relay(has_arm, ttl, len(self._outboxes.links), u, protocol.parameter)
        fate = int(fate_of(protocol, decision, ttl))
        if not protocol.random:
            self._fates[~ttl if has_arm else ttl] = fate
        return fate

    # Keys

    def _candidate(self, origin: str, epoch: int, arm: str, count: int, total: float) -> Row | None:
        """A row for a key that is not known, not yet in the table; None if it is refused, or the present life's."""
        refusal = self._refusal(origin, epoch, arm)
        position = self._position.get(arm, -1)
        if not refusal and position >= 0 and not self._specs[position].accepts_sum(count, total):
            refusal = "reward_range"
        if not refusal and origin == self._node and epoch == self.epoch:
            self._look_into_mirror(arm, count, total)
            return None
        if refusal:
            self._counters[f"refused_{refusal}"] += 1
            return None
        return Row((origin, epoch, arm), position, origin == self._node)

    def _refusal(self, origin: str, epoch: int, arm: str) -> str | None:
        """Why a new key cannot be taken, in a word."""
        if not (is_name(origin) and is_name(arm) and is_epoch(epoch)):
            return "names"
        if (origin, epoch) in self._retired:
            return "retired"
        if origin in self._ignored or (origin, epoch) in self._ignored:
            return "ignored"
        if origin == self._node:
            # The present life has no rows, and so needs no room.
            has_room = self._n_own_rows < self._caps.entries or epoch == self.epoch
            return None if has_room else "own_entries"
        if len(self._rows) - self._n_own_rows >= self._caps.entries:
            return "entries"
        if origin not in self._n_lives and len(self._n_lives) >= self._caps.origins:
            return "origins"
        if (origin, epoch) not in self._lives and self._n_lives[origin] >= self._caps.epochs:
            return "epochs"
        return None if self.has_room_for_arm(arm) else "arms"

    def _look_into_mirror(self, arm: str, count: int, total: float) -> None:
        """Hear of the present life: either what it told, or more than it knows to have told."""
        told_count, told_total = self.told_of(arm)
        if count < told_count or (count == told_count and total == told_total):
            self._counters["heard_stale"] += 1
            return
        self._counters["heard_proofs"] += 1
        if arm in self.proofs or len(self.proofs) < self._caps.arms:
            self.proofs[arm] = max(self.proofs.get(arm, (0, 0.0)), (count, total))

    def _insert(self, row: Row) -> None:
        """A new row enters the table. Names and epochs are the same objects in all rows of a life."""
        origin, epoch, arm = row.key
        life = self._lives.get((origin, epoch))
        if life is None:
            life = self._lives[origin, epoch] = _Life(sys.intern(origin), epoch)
            if not row.stands:
                self._n_lives[life.origin] += 1
        life.n_rows += 1
        row.key = life.origin, life.epoch, sys.intern(arm)
        self._rows[row.key] = row
        self._removed.pop(row.key, None)
        if row.stands:
            self._n_own_rows += 1
        else:
            self._arms[row.key[2]] += 1

    def _remove(self, row: Row) -> None:
        """A row leaves the table."""
        origin, epoch, arm = row.key
        del self._rows[row.key]
        life = self._lives[origin, epoch]
        life.n_rows -= 1
        if not life.n_rows:
            del self._lives[origin, epoch]
            if not row.stands:
                self._n_lives[origin] -= 1
                if not self._n_lives[origin]:
                    del self._n_lives[origin]
        if row.stands:
            self._n_own_rows -= 1
        else:
            self.hold_arm(arm, -1)
        self._outboxes.discard(row)
        self._dirty.pop(row, None)
        self._removed[row.key] = None

    def place(self, entry: Entry) -> None:
        """Put back an entry that was stored, unless it would be refused today."""
        key = entry.key
        if key in self._rows or (entry.origin, entry.epoch) == (self._node, self.epoch):
            return
        if entry.origin == self._node and not self.is_retired(entry.origin, entry.epoch):
            row: Row | None = Row(key, self._position.get(entry.arm, -1), True)
        else:
            row = self._candidate(*key, entry.count, entry.total)
        if row is not None:
            row.count, row.total, row.ttl, row.passes = entry.count, entry.total, entry.ttl, entry.passes or row.stands
            self._insert(row)

    def adopt(self, epoch: int, arm: str, count: int, total: float) -> None:
        """What the node saw in the life that has just ended: it stands for it now, and it goes to all links."""
        key = self._node, epoch, arm
        row = self._rows.get(key)
        if row is None:
            row = Row(key, self._position.get(arm, -1), True)
            self._insert(row)
        if (count, total) > (row.count, row.total):
            row.count, row.total = count, total
        self._stand_for(row)

    # Lives that are not wanted

    def retire(self, lives: Iterable[tuple[str, int]]) -> bool:
        """These lives leave, and are refused from now on; whether any left."""
        self._retired.update(lives)
        return self._purge()

    def ignore(self, ignored: Collection[str | tuple[str, int]]) -> bool:
        """These names and lives leave, and are refused until others are named; whether any left."""
        self._ignored = set(ignored)
        return self._purge()

    def is_retired(self, origin: str, epoch: int) -> bool:
        """Whether a life is retired or ignored."""
        return (origin, epoch) in self._retired or (origin, epoch) in self._ignored

    def _purge(self) -> bool:
        gone = [
            row for row in self._rows.values() if row.key[0] in self._ignored or self.is_retired(row.key[0], row.key[1])
        ]
        for row in gone:
            self._remove(row)
        return bool(gone)

    # Looking, and storing

    def rows(self) -> Iterable[Row]:
        """All that may be offered: what was told, and all entries."""
        return chain(self._told.values(), self._rows.values())

    def parts(self) -> list[Part]:
        """All that the table knows of the node's arms, in the order in which it is learned."""
        return sorted(
            (*row.key[:2], row.position, row.count, row.total) for row in self._rows.values() if row.position >= 0
        )

    def origins_by_arm(self) -> dict[str, set[str]]:
        """From whom the table knows something of each of the node's arms."""
        origins: dict[str, set[str]] = {arm: set() for arm in self._position}
        for (origin, _, arm), row in self._rows.items():
            if row.position >= 0:
                origins[arm].add(origin)
        return origins

    def lives(self) -> list[tuple[str, int]]:
        """All lives that the table has something of."""
        return list(self._lives)

    def usage(self) -> dict[str, int]:
        """How much there is of what has a cap."""
        return {
            "origins": len(self._n_lives),
            "epochs": max(self._n_lives.values(), default=0),
            "arms": len(self._arms),
            "entries": len(self._rows) - self._n_own_rows,
            "own_entries": self._n_own_rows,
        }

    def take_dirty(self, most: int) -> tuple[list[Entry], list[Key]]:
        """Some entries that were changed, and keys that were removed, since they were last taken."""
        rows = list(islice(self._dirty, most))
        removed = list(islice(self._removed, most))
        for row in rows:
            del self._dirty[row]
        for key in removed:
            del self._removed[key]
        return [row.entry() for row in rows], [Key(*key) for key in removed]

    def give_back(self, entries: Iterable[Entry], removed: Iterable[Key]) -> None:
        """What was taken could not be stored: it is to be taken again."""
        for entry in entries:
            if entry.key in self._rows:
                self._dirty[self._rows[entry.key]] = None
        self._removed.update(dict.fromkeys(key for key in removed if key not in self._rows))
