"""The table: for every key of another life the largest statistic heard, whether or not the node has the arm.

Rules kept here, for a statistic (origin, epoch, arm, count, sum, ttl) that came from neighbour p:

1. A field out of its range is refused, and so is a sum that the arm's `reward_range` does not allow. What is known of
   another and is outside of a range that came later is kept, unused and not passed on, until it is inside again.
2. The ttl becomes min(ttl, `max_ttl`) - 1; below 0 it is refused.
3. A statistic above the known one, or of a key not known, is news: the difference is to be learned if the node has the
   arm. The same values with a larger ttl are extended: nothing is learned, but they may travel further. The same values
   under a certificate that began later are renewed: stored, and passed on as extended. Unsigned, the same count and sum
   once with a stamp and once without, as relays of version 1 strip it: the one with the stamp stands, as news, with the
   larger ttl of the two. The same count with other values is a conflict, which only a forked life or a liar causes: the
   larger values win, as news. All else is stale.
   Where there are keys, news and renewed ones need a certificate that counts, and their signature is checked by the
   caller, who then lets them be heard once more. Which certificates count, `signing` says.
4. Of news and extended ones the relay rule says whether they pass. What passes, with at least one hop left, goes to all
   links but p's, or to as many drawn ones as the protocol says.
5. News whose origin is itself linked, and not p, also goes there: its memory, should it have lost it.
6. Own name and another epoch, an earlier life: news has the full ttl, passes, and goes to all links, p's too; all else
   is stale. Own name and present epoch, with a count above what it told, or that count and other values: the state is
   an older copy, and the node needs a new life. What proved it is kept until then. All else is stale. Where there are
   keys, of its own name a node believes only what is signed.
7. A row leaves when its certificate stops counting, unless the node observed it itself on this disk.
8. At the start, and when the protocol changes, it is decided anew what passes; of an arm that comes or goes, what of
   that arm does. What newly passes goes to all links, and so does what is of its own earlier lives, if it may travel
   further than before.

Whether a statistic passes is decided by the core: by `relay` of the protocol, `fate_of` and the draws of `Chances`. Its
courier is not used: that queues messages, each of which is seen once, and here a row waits with what it holds when its
turn comes.

Which keys there may be is in `Roster`. Whatever is refused is counted by its reason.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Generator, Iterable, Iterator
from copy import copy
from itertools import chain, islice
from operator import attrgetter
from typing import Final, TypeVar

from ...core import Fate, fate_of
from ...protocols.base import AnyProtocol, Protocol
from ..certificates import REQUIRED, UNSIGNED, Certificates
from ..forgetting import NO_PART, Fading, Part, TimeOfDay
from ..names import MAX_COUNT, MAX_REWARD, OWN_ENTRIES, Caps
from ..statistics import (
    CERTIFICATE_BYTES,
    NOTHING,
    SIGNATURE_BYTES,
    Entry,
    Key,
    Known,
    Statistic,
    Values,
    why_refused,
)
from .outboxes import EXTENDED, MEMORY, NEWS, OFFER, LiveChances, Outboxes
from .roster import Roster
from .walks import BIT

_Thing = TypeVar("_Thing")

RELAYED: Final = Fate.RELAYED
#: What becomes of news is counted under these names.
FATES: Final = {
    Fate.ABSORBED: "news_absorbed",
    Fate.EXPIRED: "news_expired",
    Fate.STOPPED: "news_stopped",
    Fate.RELAYED: "news_relayed",
}


class StatisticTable:
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
    certificates : Certificates
        Those that rows are signed by.
    time : TimeOfDay
        By which stamps are judged that are ahead.

    Attributes
    ----------
    signatures : str
        Whether statistics must be signed (`REQUIRED`), may be (`ACCEPTED`), or are not looked at (`UNSIGNED`).
    fell : set
        Arms of which less is known than was learned, so that they must be summed anew.
    unknown : dict
        The ids of unknown certificates by which something was signed, since it was last emptied.
    heard : list
        What is to be learned, and has not been yet.
    fadings : dict
        By arm, of those that the node forgets: the scale in which its weights are kept.
    proofs : dict
        By arm, the largest statistic of the node's present life that it did not tell: it has told it all the same,
        before its state became an older copy.
    told : dict
        By arm, what the present life told.
    epoch : int
        The present life; -1 before the first.
    full_ttl : int
        The ttl of what is of the node's own lives: the protocol's.
    """

    def __init__(
        self,
        node: str,
        outboxes: Outboxes,
        chances: LiveChances,
        caps: Caps,
        counters: Counter[str],
        certificates: Certificates,
        signatures: str = UNSIGNED,
        time: TimeOfDay | None = None,
    ) -> None:
        self.certificates = certificates
        self.signatures = signatures
        self.fell: set[str] = set()
        self.unknown: dict[bytes, None] = {}
        self.heard: list[tuple[str, int, str, float, float]] = []
        self.fadings: dict[str, Fading] = {}
        self._time = TimeOfDay() if time is None else time
        #: Of rows that count by weight: when they count as seen, and what they add to what is known.
        self._faded: dict[Known, tuple[float, Part]] = {}
        self.proofs: dict[str, Statistic] = {}
        self.told: dict[str, Known] = {}
        self.roster = Roster(node, caps)
        self.epoch = -1
        self.full_ttl = 0
        self._n_targets: int | None = None
        self._node = node
        self._outboxes = outboxes
        self._chances = chances
        self._most_proofs = caps.entries_per_origin
        self._counters = counters
        self._rows: dict[Key, Known] = {}
        #: By arm: its rows, so that a change of an arm costs what it changes.
        self._of_arm: dict[str, list[Known]] = {}
        #: The arms that the node has, and the ranges of rewards of those that have one.
        self._held: set[str] = set()
        self._ranges: dict[str, tuple[float, float]] = {}
        #: Those of them of which something was refused.
        self._out_of_range: set[str] = set()
        self._protocol: AnyProtocol | None = None
        self._max_ttl = 0
        #: What the relay rule says of a ttl, inverted (~ttl) if the node has the arm; empty if it draws.
        self._fates: dict[int, int] = {}
        #: The rows that are dirty, in the order in which they became it.
        self._dirty: dict[Known, None] = {}
        self._removed: dict[Key, None] = {}

    # What the rules depend on

    def have_arm(self, arm: str, range_: tuple[float, float] | None) -> bool:
        """The node has an arm now, with this range. What it does not allow is not used, but for the node's own.

        Returns
        -------
        bool
            Whether something was refused of which the range is another one now: it should be offered once more.
        """
        if arm not in self._held:
            self._held.add(arm)
            self.roster.hold_arm(arm)
        return self._use_range(arm, range_)

    def drop_arm(self, arm: str) -> bool:
        """The node has an arm no more. Returns what `have_arm` does."""
        self._held.remove(arm)
        self.roster.release_arm(arm)
        return self._use_range(arm, None)

    def _use_range(self, arm: str, range_: tuple[float, float] | None) -> bool:
        is_other = self._ranges.pop(arm, None) != range_
        if range_ is not None:
            self._ranges[arm] = range_
        has_arm, told = arm in self._held, self.told.get(arm)
        for row in self._of_arm.get(arm, ()):
            row.has_arm = has_arm
            row.is_outside = not row.is_own and not self._allows(arm, row.values)
            self._decide(row)
        if told is not None:
            told.has_arm = has_arm
        if not is_other or arm not in self._out_of_range:
            return False
        self._out_of_range.remove(arm)
        return True

    def _allows(self, arm: str, values: Values) -> bool:
        """Whether the range of an arm, if it has one, allows such sums."""
        range_ = self._ranges.get(arm)
        return range_ is None or why_refused(values, *range_) is None

    def use_protocol(self, protocol: AnyProtocol, max_ttl: int | None) -> None:
        """Relay by this protocol from now on; `max_ttl` is its ttl unless given."""
        self._protocol = protocol
        self.full_ttl = protocol.most_hops
        self._n_targets = protocol.n_targets if isinstance(protocol, Protocol) else None
        self._max_ttl = self.full_ttl if max_ttl is None else max_ttl
        self._fates.clear()

    def use_life(self, epoch: int) -> None:
        """Begin this life, which has told nothing yet."""
        for row in self.told.values():
            self._outboxes.discard(row)
        self.told.clear()
        self.proofs.clear()
        self.epoch = epoch

    def forget_fates(self) -> None:
        """The number of links, which a relay rule may ask for, is another one."""
        self._fates.clear()

    def tell(self, arm: str, values: Values, certificate: bytes = b"", signature: bytes = b"") -> None:
        """Tell what the node saw of an arm: with the full ttl, to all links or to as many as the protocol says."""
        row = self.told.get(arm)
        if row is None:
            row = self.told[arm] = Known((self._node, self.epoch, arm), arm in self._held, True)
        row.put(values, certificate, signature)
        row.ttl = self.full_ttl
        self._counters["waited_already"] += self._outboxes.put(row, NEWS, n_targets=self._n_targets)

    def told_of(self, arm: str) -> Values:
        """What the present life last told of an arm; nothing if it never has."""
        row = self.told.get(arm)
        return NOTHING if row is None else row.values

    def decide_anew(self) -> Iterator[int]:
        """Whether entries pass, by the arms and the protocol of now; what newly passes goes to all links. A walk."""
        rows = list(self.rows())
        for start in range(0, len(rows), BIT):
            for row in rows[start : start + BIT]:
                if self._is_there(row):
                    self._decide(row)
            yield BIT

    def _decide(self, row: Known) -> None:
        passed, ttl = row.passes, row.ttl
        if row.is_own:
            row.ttl = self.full_ttl
        else:
            fate = self._fates.get(~ttl if row.has_arm else ttl)
            if fate is None:
                fate = self._fate(row.has_arm, ttl)
            row.passes = not row.is_outside and fate == RELAYED
        if (row.passes and not passed) or row.ttl > ttl:
            self._outboxes.put(row, OFFER)
        if (row.passes != passed or row.ttl != ttl) and row.key in self._rows:
            self._mark_dirty(row)

    # Hearing

    def hear(self, statistics: Iterable[Statistic], peer: str, is_checked: bool = False) -> list[Statistic]:
        """Take statistics that came from a neighbour; what is to be learned of them is appended to `heard`.

        Returns
        -------
        list of Statistic
            Those whose signatures are to be checked. If they are right, they are to be heard again, as checked.
        """
        links, rows, ranges = self._outboxes.links, self._rows, self._ranges
        heard, dirty, counters, fates = self.heard, self._dirty, self._counters, self._fates
        n_targets, max_ttl, fadings = self._n_targets, self._max_ttl, self.fadings
        linked = links.keys() - {peer}
        others = [outbox for name, outbox in links.items() if name != peer]
        # Names of this call's own: they are looked up once for each statistic.
        refused, max_count, least, most, relayed = why_refused, MAX_COUNT, -MAX_REWARD, MAX_REWARD, int(RELAYED)
        has_keys, is_required = self.signatures != UNSIGNED, self.signatures == REQUIRED
        unchecked: list[Statistic] = []
        n_stale = n_own = n_merged = n_unsigned = 0
        n_fates, n_heard = [0] * len(Fate), len(heard)
        for one in statistics:
            origin, epoch, arm, count, total, ttl = one.origin, one.epoch, one.arm, one.count, one.total, one.ttl
            weight, weighted_total, stamp = one.weight, one.weighted_total, one.stamp
            # What nearly all are is allowed whatever the count, and quick to see.
            if not weight and not weighted_total and not stamp and 0 < count <= max_count and least <= total <= most:
                weight, weighted_total = count, total
            else:
                values = one.values
                if reason := refused(values):
                    counters[f"refused_{reason}"] += 1
                    continue
                _, _, weight, weighted_total, stamp = values
            ttl = (ttl if ttl < max_ttl else max_ttl) - 1
            if ttl < 0:
                counters["refused_ttl"] += 1
                continue
            is_signed = False
            if has_keys:
                is_signed = one.signature != b"" or one.certificate != b""
                if not is_signed and (is_required or origin == self._node):
                    counters["refused_unsigned"] += 1
                    continue
            # Whether it would be news, or renewed. Nothing changes before its signature is known to be right.
            row = rows.get((origin, epoch, arm))
            is_conflict = is_renewed = False
            if row is None:
                if not self._may_enter(one):
                    continue
                known, known_total, has_arm = 0, 0.0, arm in self._held
            else:
                known, known_total, has_arm = row.count, row.total, row.has_arm
                if ranges and arm in ranges and refused(one.values, *ranges[arm]):
                    self._refuse_range(arm)
                    continue
                if is_signed == (row.signature != b""):
                    if count < known:
                        n_stale += 1
                        continue
                    if count == known:
                        new, old = (count, total, stamp > 0, weight, weighted_total, stamp), row.values.order
                        if new == old:
                            is_renewed = is_signed and one.certificate != row.certificate and self._renews(one, row)
                            if not is_renewed:
                                if is_signed and one.certificate in self.unknown:
                                    counters["refused_unknown_certificate"] += 1
                                elif ttl <= row.ttl or row.is_own:
                                    n_stale += 1
                                else:
                                    self._extend(row, ttl, peer)
                                continue
                        elif not is_signed and total == row.total and not (stamp and row.stamp):
                            # One of the two was stripped of its memory: of the same rewards, so each says how far they
                            # may travel, and the other one stands.
                            if new < old:
                                if ttl <= row.ttl or row.is_own:
                                    n_stale += 1
                                else:
                                    self._extend(row, ttl, peer)
                                continue
                            ttl = max(ttl, row.ttl)
                        elif new < old:
                            counters["heard_conflicts"] += 1
                            n_stale += 1
                            continue
                        else:
                            is_conflict = True
                elif not is_signed:
                    n_stale += 1
                    continue
            if is_signed:
                if not self._counts(one):
                    continue
                if not is_checked:
                    unchecked.append(one)
                    continue
            # From here on it stands.
            if row is None:
                if origin == self._node and epoch == self.epoch:
                    self._keep_proof(one)
                    continue
                row = self._add(origin, epoch, arm)
            if is_signed:
                row.certificate, row.signature = self.certificates[one.certificate].id, one.signature
                if is_renewed:
                    self._renew(row, ttl, peer)
                    continue
                row.is_observed = False
                if count < known:
                    self.fell.add(arm)
            elif has_keys:
                n_unsigned += 1
            if is_conflict:
                counters["heard_conflicts"] += 1
            if row.is_outside:
                # Nothing of what was known is in use: all of this is new.
                row.is_outside = False
                known, known_total = 0, 0.0
            row.count = count
            row.total = total
            if stamp or row.stamp:
                row.weight, row.weighted_total, row.stamp = (
                    (weight, weighted_total, stamp) if stamp else (0.0, 0.0, 0.0)
                )
            if not row.is_dirty:
                row.is_dirty = True
                dirty[row] = None
            case = ttl
            if has_arm:
                case = ~ttl
                if fadings and arm in fadings:
                    heard.append((origin, epoch, arm, *self._fade(row)))
                else:
                    heard.append((origin, epoch, arm, count - known, total - known_total))
            if row.is_own:
                n_own += 1
                self._readvertise(row)
                continue
            # To set what a row is costs more than to look whether it is so already.
            if row.ttl != ttl:
                row.ttl = ttl
            fate = fates.get(case)
            if fate is None:
                fate = self._fate(has_arm, ttl)
            n_fates[fate] += 1
            if (fate == relayed) != row.passes:
                row.passes = fate == relayed
            if fate == relayed:
                if n_targets is None:
                    for outbox in others:
                        if row in outbox:
                            n_merged += 1
                        outbox[row] = NEWS
                else:
                    n_merged += self._outboxes.put(row, NEWS, peer, n_targets)
            if origin in linked:
                links[origin].setdefault(row, MEMORY)
        counters["heard_news"] += sum(n_fates) + n_own
        counters["heard_stale"] += n_stale
        if n_unsigned:
            counters["heard_unsigned"] += n_unsigned
        counters["learned"] += len(heard) - n_heard
        counters["waited_already"] += n_merged
        for fate_, name in FATES.items():
            counters[name] += n_fates[fate_]
        return unchecked

    def _may_enter(self, one: Statistic) -> bool:
        """Whether a statistic of a key that is not known may be taken; else it is counted why not."""
        origin, epoch, arm = one.key
        refusal = self.roster.refusal(origin, epoch, arm)
        is_present = origin == self._node and epoch == self.epoch
        if is_present and refusal == OWN_ENTRIES:
            # The present life has no rows here, and needs no room.
            refusal = None
        if refusal:
            self._counters[f"refused_{refusal}"] += 1
        elif not self._allows(arm, one.values):
            self._refuse_range(arm)
        elif is_present and (one.count < (told := self.told_of(arm)).count or self._says_no_more(one, told)):
            self._counters["heard_stale"] += 1
        else:
            return True
        return False

    @staticmethod
    def _says_no_more(one: Statistic, told: Values) -> bool:
        """Whether a statistic is what was told, or that as a relay of version 1 leaves it."""
        is_stripped = not one.signature and one.values == Values.of(told.count, told.total)
        return is_stripped or one.values == told

    def _counts(self, one: Statistic) -> bool:
        """Whether the certificate by which a statistic is signed counts; else it is counted why not."""
        reason: str | None = "signature"
        if len(one.certificate) == CERTIFICATE_BYTES and len(one.signature) == SIGNATURE_BYTES:
            reason = self.certificates.why_refused(one.certificate, one.origin)
        if reason == "unknown_certificate":
            self.unknown[one.certificate] = None
        if reason is not None:
            self._counters[f"refused_{reason}"] += 1
        return reason is None

    def _renews(self, one: Statistic, row: Known) -> bool:
        """Whether a statistic says what is known, under a certificate that began later."""
        if self.certificates.knows(one.certificate):
            is_its_own = self.certificates.counting.get(one.certificate) == one.origin
            return is_its_own and self.certificates.is_later(one.certificate, row.certificate)
        if len(one.certificate) == CERTIFICATE_BYTES:
            self.unknown[one.certificate] = None
        return False

    def _renew(self, row: Known, ttl: int, peer: str) -> None:
        """What is known is signed under a later certificate now: that travels as far as it did before."""
        self._counters["heard_renewed"] += 1
        self._pass_on(row, row.ttl if row.is_own else max(ttl, row.ttl), peer)

    def _extend(self, row: Known, ttl: int, peer: str) -> None:
        """What is known may travel further than was thought."""
        self._counters["heard_extended"] += 1
        self._pass_on(row, ttl, peer)

    def _pass_on(self, row: Known, ttl: int, peer: str) -> None:
        """Pass on what is known once more, with this many hops left, if the relay rule says so."""
        row.ttl = ttl
        passed = row.passes
        row.passes = row.is_own or (not row.is_outside and self._fate(row.has_arm, ttl) == RELAYED)
        self._mark_dirty(row)
        if row.passes:
            # What came first by a longer way, and went no further, is passed on only now: news to the neighbours.
            self._outboxes.put(row, EXTENDED if passed else NEWS, peer, self._n_targets)

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

    def _refuse_range(self, arm: str) -> None:
        """Count what the range of an arm does not allow."""
        self._counters["refused_reward_range"] += 1
        self._out_of_range.add(arm)

    def _readvertise(self, row: Known) -> None:
        """Advertise again, to all links, what the node saw in an earlier life."""
        row.ttl = self.full_ttl
        self._mark_dirty(row)
        self._outboxes.put(row, MEMORY)

    def _mark_dirty(self, row: Known) -> None:
        """A row has changed, and is to be stored."""
        row.is_dirty = True
        self._dirty[row] = None

    def _fate(self, has_arm: bool, ttl: int) -> int:
        """What becomes of news with `ttl` hops left, by the protocol's rule."""
        protocol = self._protocol
        if not isinstance(protocol, Protocol):
            return int(Fate.ABSORBED)
        u = self._chances.relay(None, self._node, ttl) if protocol.random else 0.0
        decision = protocol.relay(has_arm, ttl, len(self._outboxes.links), u, protocol.parameter)
        fate = int(fate_of(protocol, decision, ttl))
        if not protocol.random:
            self._fates[~ttl if has_arm else ttl] = fate
        return fate

    # Rows

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

    def _keep_proof(self, one: Statistic) -> None:
        """Hear something of the present life that it does not know to have told."""
        self._counters["heard_proofs"] += 1
        if one.arm in self.proofs or len(self.proofs) < self._most_proofs:
            self.proofs[one.arm] = max(self.proofs.get(one.arm, one), one, key=lambda proof: proof.rank)
        else:
            self._counters["proofs_without_room"] += 1

    def place(self, entry: Entry) -> None:
        """Put back an entry that was stored, unless it would be refused today."""
        origin, epoch, arm = key = entry.key
        if key in self._rows or (origin, epoch) == (self._node, self.epoch):
            return
        refusal = self.roster.refusal(origin, epoch, arm)
        if refusal and (origin != self._node or self.roster.is_unwanted(origin, epoch)):
            self._counters[f"refused_{refusal}"] += 1
            if self.roster.is_unwanted(origin, epoch):
                # The node ended before it had left the disk.
                self._removed[key] = None
            return
        certificate, signature = entry.certificate, entry.signature
        if self.signatures == UNSIGNED:
            certificate = signature = b""
        elif not entry.is_observed:
            # What the node observed itself is signed when all is in place.
            reason = self.certificates.why_refused(certificate, origin) if signature else "unsigned"
            if reason and (signature or self.signatures == REQUIRED):
                self._counters[f"refused_{reason}"] += 1
                self._removed[key] = None
                return
        row = self._add(origin, epoch, arm)
        row.put(entry.values, certificate, signature)
        row.ttl, row.passes, row.is_observed = entry.ttl, entry.passes or row.is_own, entry.is_observed
        row.is_outside = not row.is_own and not self._allows(arm, row.values)

    def adopt(self, entry: Entry) -> None:
        """What the life that has just ended told: it is the node's to pass on now, and goes to all links.

        What the node observed itself always has a place. What it only heard that it told, which others can invent, has
        one as long as there is room.
        """
        row = self._rows.get(entry.key)
        if row is None:
            if not entry.is_observed and self.roster.room_for_own() <= 0:
                self._counters["proofs_without_room"] += 1
                self._removed[entry.key] = None
                return
            row = self._add(*entry.key)
        if entry.rank > row.rank:
            row.put(entry.values, entry.certificate, entry.signature)
            row.is_observed = entry.is_observed
            self._faded.pop(row, None)
        self._readvertise(row)

    def leave_with_certificates(self, left: Callable[[str], None]) -> Generator[int, None, set[str]]:
        """Let rows leave whose certificates do not count any more; of which origins they were. A walk, as `_remove`.

        What the node observed itself stays. Where rows must be signed, others that are not leave, too.
        """
        counting = self.certificates.counting

        def goes(row: Known) -> bool:
            if row.is_observed:
                return False
            return counting.get(row.certificate) != row.key[0] if row.signature else self.signatures == REQUIRED

        rows, gone = list(self._rows.values()), list[Known]()
        for start in range(0, len(rows), BIT):
            gone += filter(goes, rows[start : start + BIT])
            yield BIT // 8
        self._counters["left_with_certificates"] += len(gone)
        yield from self._remove(gone, goes, left)
        return {row.key[0] for row in gone}

    def to_sign(self, certificate: bytes) -> list[Known]:
        """Copies of what the node told or observed itself, as far as it is not signed under this certificate."""
        own = chain(self.told.values(), (row for row in self._rows.values() if row.is_observed))
        return [copy(row) for row in own if row.certificate != certificate]

    def sign(self, signed: Iterable[Known]) -> None:
        """These copies are signed: what still says the same stands under that signature, and goes out once more."""
        for one in signed:
            told = self.told.get(one.key[2])
            row = told if told is not None and told.key == one.key else self._rows.get(one.key)
            if row is not None and row.values == one.values and (row is told or row.is_observed):
                row.put(one.values, one.certificate, one.signature)
                if row is not told:
                    self._mark_dirty(row)
                self._outboxes.put(row, EXTENDED)

    def offer_again(self, peer: str, certificates: Collection[bytes], names: Collection[str]) -> None:
        """Offer a neighbour once more what is signed by these certificates, and what is of these origins."""
        outbox = self._outboxes.links.get(peer, {})
        for row in self.rows():
            if (row.certificate in certificates and row.signature) or row.key[0] in names:
                outbox.setdefault(row, OFFER)

    def needed_certificates(self) -> set[bytes]:
        """The ids of all certificates by which rows are signed."""
        return {row.certificate for row in self.rows() if row.signature}

    def purge(self, left: Callable[[str], None]) -> Iterator[int]:
        """Let all lives that are not wanted any more leave. A walk, as `_remove`."""
        unwanted = {life for life in self.roster.lives() if self.roster.is_unwanted(*life)}
        if unwanted:
            names = {name for name, _ in unwanted}
            gone = [row for key, row in self._rows.items() if key[0] in names and key[:2] in unwanted]
            yield len(self._rows) // 8
            yield from self._remove(gone, lambda row: self.roster.is_unwanted(*row.key[:2]), left)

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

    def signed_by_origin(self) -> dict[str, tuple[int, int, int]]:
        """By other origin: how many entries are signed, how many are not, and of how many the certificate has ended."""
        signed, expired = Counter[str](), Counter[str]()
        if self.signatures != UNSIGNED:
            # What is signed here is signed by its origin; so this is quick for a large table, too.
            ended, counting = self.certificates.ended(self._time.now), self.certificates.counting
            for certificate, n in Counter(map(attrgetter("certificate"), self._rows.values())).items():
                if certificate in counting:
                    signed[counting[certificate]] += n
                    expired[counting[certificate]] += n * (certificate in ended)
        return {name: (signed[name], n - signed[name], expired[name]) for name, n in self.roster.rows_by_origin()}

    def n_of_its_own(self) -> int:
        """How many statistics of its own lives the node has: what it told in the present one, and of earlier ones."""
        return self.roster.n_rows_of(self._node) + len(self.told)

    def outside_by_arm(self) -> dict[str, int]:
        """How many entries of each arm are outside of its range, and unused; only of arms that have some."""
        return dict(Counter(row.key[2] for row in self._rows.values() if row.is_outside)) if self._ranges else {}

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
