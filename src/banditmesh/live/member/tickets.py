"""Tickets: each choice is counted once, however often and however late its reward is reported.

Rules kept here. A ticket names the life (epoch), the start of it, the number of the choice and the arm. Numbers are the
readings of the policy's clock; after a crash it may go back to what was stored, but then the start is another one, so
no ticket is given twice. All that is sealed with a key of the node's own, so that a ticket can be neither invented nor
edited; tickets of starts before there was a key have no seal, and need none.

Only closed tickets are remembered, per start, as intervals of numbers. A ticket has lapsed if it is older than the last
choices (`open_choices`), or than the lifetime: from when it was given or, of an earlier start, from the first restart
after it. So have tickets of all but the last 1,000 starts. What has lapsed may be forgotten, and is refused as "lapsed
or already counted"; neither a clock that is set back nor more open choices open what was forgotten.

Open tickets are known for as long as this start lasts: a choice in flight counts when others are made (see `choosing`).
The patience with an arm is given, or three times the longest of its last hundred times to a reward, and at least a
second. A ticket falls out when it is closed, has lapsed, or the node starts again. Ages are by the node's uptime, which
no clock that is set forward or back changes.
"""

from __future__ import annotations

import hashlib
import hmac
import math
import re
import struct
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable
from typing import Final, NamedTuple
from urllib.parse import quote, unquote

from ... import checks
from ...errors import InputError
from ..disk import Closed, Start, TicketBook
from ..names import LAST_STARTS, MAX_COUNT, OPEN_CHOICES, epoch_text, is_name, parse_epoch

#: Of how many times to a reward the longest counts, how many times that is waited for, and for how long at least.
LAST_TIMES: Final = 100
TIMES_LONGEST: Final = 3.0
LEAST_PATIENCE: Final = 1.0
#: The length of the key, and of what it makes.
KEY_BYTES: Final = 32
_SEAL_BYTES: Final = 12
_SEALED = re.compile(r"(.*):([0-9a-f]{24})", re.ASCII)
_NUMBERS = struct.Struct(">QQQ")


class Ticket(NamedTuple):
    """What a choice is known by; `seal` proves that the node gave it.

    Examples
    --------
    >>> str(Ticket(255, 1, 17, "red/2", "0123456789abcdef01234567"))
    '00000000000000ff-1-17-red%2F2:0123456789abcdef01234567'
    >>> Ticket.parse("00000000000000ff-1-17-red%2F2")
    Ticket(epoch=255, start=1, number=17, arm='red/2', seal='')
    """

    epoch: int
    start: int
    number: int
    arm: str
    seal: str = ""

    def __str__(self) -> str:
        # An arm's name, quoted, has no colon.
        end = f":{self.seal}" if self.seal else ""
        return f"{epoch_text(self.epoch)}-{self.start}-{self.number}-{quote(self.arm, safe='')}{end}"

    @classmethod
    def parse(cls, text: object) -> Ticket:
        """The ticket that a text stands for."""
        try:
            sealed = _SEALED.fullmatch(text)  # type: ignore[call-overload]
            plain, seal = sealed.groups() if sealed else (str(text), "")
            epoch, start, number, arm = plain.split("-", 3)
            ticket = cls(parse_epoch(epoch), int(start), int(number), unquote(arm, errors="strict"), seal)
            is_sound = is_name(ticket.arm) and str(ticket) == text and min(ticket.start, ticket.number) >= 1
        except (TypeError, ValueError):
            is_sound = False
        if not is_sound:
            raise InputError(f"a ticket must be one that choose() gave, got {checks.shown(text)}")
        return ticket


class Intervals:
    """A set of numbers, kept as the intervals that they fill."""

    def __init__(self) -> None:
        self._firsts: list[int] = []
        self._lasts: list[int] = []

    def __contains__(self, number: int) -> bool:
        place = bisect_right(self._firsts, number) - 1
        return place >= 0 and number <= self._lasts[place]

    def __len__(self) -> int:
        return len(self._firsts)

    def up_to(self, number: int) -> list[int]:
        """The first numbers of all intervals that end at that number or before."""
        return self._firsts[: bisect_right(self._lasts, number)]

    def with_more(self, numbers: Iterable[int]) -> tuple[list[int], list[tuple[int, int]]]:
        """What changes if these numbers, none of them in the set, join it.

        Returns
        -------
        gone : list of int
            The first numbers of intervals that are then parts of others, and begin none of them.
        grown : list of (int, int)
            The intervals that are new or longer, ascending.
        """
        pieces: set[tuple[int, int]] = set()
        old: set[int] = set()
        for number in numbers:
            pieces.add((number, number))
            place = bisect_right(self._firsts, number)
            for near in (place - 1, place):
                if 0 <= near < len(self._firsts) and (
                    self._lasts[near] == number - 1 or self._firsts[near] == number + 1
                ):
                    pieces.add((self._firsts[near], self._lasts[near]))
                    old.add(self._firsts[near])
        grown: list[tuple[int, int]] = []
        for first, last in sorted(pieces):
            if grown and grown[-1][1] == first - 1:
                grown[-1] = grown[-1][0], last
            else:
                grown.append((first, last))
        return sorted(old - {first for first, _ in grown}), grown

    def change(self, gone: Iterable[int], grown: Iterable[tuple[int, int]]) -> None:
        """Take intervals away, by their first numbers, and put these in the place of those that begin with them."""
        for first in gone:
            place = bisect_left(self._firsts, first)
            del self._firsts[place], self._lasts[place]
        for first, last in grown:
            place = bisect_left(self._firsts, first)
            if place < len(self._firsts) and self._firsts[place] == first:
                self._lasts[place] = last
            else:
                self._firsts.insert(place, first)
                self._lasts.insert(place, last)


class Closing(NamedTuple):
    """What is to be stored when tickets are closed: keys (start, first) that go, and intervals that come."""

    forgotten: list[tuple[int, int]]
    closed: list[Closed]


class Tickets:
    """The tickets of one life.

    Parameters
    ----------
    lifetime : float
        How long a ticket is good for, in seconds.
    open_choices : int
        How many of the last choices can still be settled.

    Attributes
    ----------
    book : TicketBook or None
        What is stored of all tickets together, once a start has begun.
    """

    def __init__(self, lifetime: float, open_choices: int = OPEN_CHOICES) -> None:
        self.book: TicketBook | None = None
        self._lifetime = lifetime
        self._open_choices = open_choices
        self._sealer = hashlib.blake2b()
        #: By start, ascending: when it began. The last one is the present one.
        self._begun: dict[int, float] = {}
        self._closed: dict[int, Intervals] = {}
        #: When the last choices of this start were made: in turn, from the number after `_n_before`.
        self._given_at = array("d")
        self._n_before = 0
        self.start = 0

    def restore(self, starts: Iterable[Start], closed: Iterable[Closed], book: TicketBook | None = None) -> None:
        """Put back what was stored."""
        self.book = book
        self._begun = {one.start: one.begun_at for one in sorted(starts, key=lambda one: one.start)}
        self._closed = {}
        for one in sorted(closed, key=lambda one: (one.start, one.first)):
            self._closed.setdefault(one.start, Intervals()).change((), [(one.first, one.last)])

    def lapsed_starts(self, now: float) -> list[int]:
        """Starts whose tickets have all lapsed; none is left out that is older than another one."""
        starts = list(self._begun)
        n_lapsed = max(0, len(starts) + 1 - LAST_STARTS)
        for place in range(n_lapsed, len(starts) - 1):
            if now - self._begun[starts[place + 1]] > self._lifetime:
                n_lapsed = place + 1
        return starts[:n_lapsed]

    def next_book(self, new_key: bytes, start: int, n_choices: int) -> TicketBook:
        """What is to be stored with a start that begins after `n_choices`; `new_key` is used if there is no key."""
        old = self.book or TicketBook(new_key, start, OPEN_CHOICES, 0)
        # What had lapsed when something was last stored may be forgotten, so it stays lapsed.
        lapsed = max(old.lapsed, n_choices - old.open_choices)
        return TicketBook(old.key, min(old.since, start), self._open_choices, lapsed)

    def begin(
        self, start: int, now: float, n_choices: int, forgotten: Iterable[int] = (), book: TicketBook | None = None
    ) -> None:
        """Begin a start, after `n_choices`."""
        self.book = self.book if book is None else book
        if self.book is not None:
            self._sealer = hashlib.blake2b(key=self.book.key, digest_size=_SEAL_BYTES)
        for one in forgotten:
            del self._begun[one]
            self._closed.pop(one, None)
        self._begun[start] = now
        self.start = start
        self._given_at = array("d")
        self._n_before = n_choices

    def give(self, number: int, now: float) -> None:
        """The next choice is made."""
        place = number - self._n_before - 1
        if place < self._open_choices:
            self._given_at.append(now)
        else:
            self._given_at[place % self._open_choices] = now

    def seal(self, epoch: int, start: int, number: int, arm: str) -> str:
        """What proves that this node gave that ticket: a hash of it that only the node's own key makes."""
        sealer = self._sealer.copy()
        sealer.update(_NUMBERS.pack(epoch, start, number) + arm.encode())
        return sealer.hexdigest()

    def is_genuine(self, ticket: Ticket) -> bool:
        """Whether this node gave a ticket of that text, as far as its seal says; one from before the key has none."""
        epoch, start, number, arm, seal = ticket
        if self.book is not None and start < self.book.since:
            return not seal
        try:
            return hmac.compare_digest(seal, self.seal(epoch, start, number, arm))
        except (AttributeError, TypeError, ValueError, struct.error):  # not even of the right types
            return False

    def is_closed(self, start: int, number: int) -> bool:
        """Whether a ticket is known to be closed."""
        return start in self._closed and number in self._closed[start]

    def has_lapsed(self, start: int, number: int, n_choices: int, now: float) -> bool:
        """Whether a ticket is too old, after `n_choices`."""
        if start not in self._begun or number <= self._last_lapsed(n_choices):
            return True
        if start == self.start:
            return now - self._given_at[(number - self._n_before - 1) % self._open_choices] > self._lifetime
        return now - self._begun.get(start + 1, float("-inf")) > self._lifetime

    def _last_lapsed(self, n_choices: int) -> int:
        """The last number that is too old, after `n_choices`."""
        return max(n_choices - self._open_choices, 0 if self.book is None else self.book.lapsed)

    def was_given(self, start: int, number: int, n_choices: int) -> bool:
        """Whether a ticket can have been given. How many earlier starts gave is not known."""
        if start == self.start:
            return self._n_before < number <= n_choices
        return 1 <= start < self.start and 1 <= number <= MAX_COUNT

    def closing(self, tickets: Collection[tuple[int, int]], n_choices: int) -> Closing:
        """What is to be stored when these open tickets (start, number) are closed, after `n_choices`."""
        numbers: dict[int, list[int]] = {}
        for start, number in tickets:
            numbers.setdefault(start, []).append(number)
        forgotten: list[tuple[int, int]] = []
        closed: list[Closed] = []
        for start in {**self._closed, **numbers}:
            intervals = self._closed.get(start) or Intervals()
            gone, grown = intervals.with_more(numbers.get(start, ()))
            # An interval that has lapsed may have just grown: then it is stored once more, and goes the next time.
            lapsed = set(intervals.up_to(self._last_lapsed(n_choices))) - {first for first, _ in grown}
            forgotten += [(start, first) for first in {*gone, *lapsed}]
            closed += [Closed(start, first, last) for first, last in grown]
        return Closing(forgotten, closed)

    def close(self, closing: Closing) -> None:
        """What was to be stored is stored."""
        for start, first in closing.forgotten:
            self._closed[start].change([first], ())
        for one in closing.closed:
            self._closed.setdefault(one.start, Intervals()).change((), [(one.first, one.last)])


class _Open:
    """The open tickets of one arm, ascending: numbers, and when they were given."""

    __slots__ = ("answered", "first", "longest", "numbers", "times", "until", "until_number", "waits")

    def __init__(self) -> None:
        self.numbers = array("q")
        self.times = array("d")
        #: Those before this place have fallen out.
        self.first = 0
        self.waits = array("d")
        self.longest = 0.0
        #: The last number of which a reward came.
        self.answered = 0
        #: Until when, and until how many choices, nothing but a change of theirs makes something else of them.
        self.until = math.inf
        self.until_number: float = math.inf

    def drop(self, first: int) -> None:
        """Those before a place fall out."""
        self.first = first
        if 2 * self.first > len(self.numbers):
            del self.numbers[: self.first], self.times[: self.first]
            self.first = 0

    def answer(self, number: int, wait: float) -> None:
        """A reward came, after that time."""
        waits = self.waits
        waits.append(wait)
        is_gone = len(waits) > LAST_TIMES and waits.pop(0) == self.longest
        if wait >= self.longest:
            self.longest = wait
        elif is_gone:
            self.longest = max(waits)
        self.answered = max(self.answered, number)


class Waiting(NamedTuple):
    """The open tickets of an arm.

    Attributes
    ----------
    n_young : int
        How many are waited for.
    n_silent : int
        How many are older than the patience: they count as silence.
    n_run : int
        How many of those were given after the last one that was answered: the run of silence under way.
    """

    n_young: int = 0
    n_silent: int = 0
    n_run: int = 0


NOT_WAITING: Final = Waiting()


class Flights:
    """The choices in flight of one start of a node.

    Parameters
    ----------
    lifetime : float
        How long a ticket is good for, in seconds.
    open_choices : int
        How many of the last choices can still be settled.
    patience : float, optional
        How long a reward is waited for before its choice counts as silence; from the times to rewards unless given.

    Examples
    --------
    >>> flights = Flights(lifetime=60.0, open_choices=100)
    >>> flights.give("red", 1, now=0.0)
    >>> flights.give("red", 2, now=0.5)
    >>> flights.waiting("red", n_choices=2, now=1.25)
    Waiting(n_young=1, n_silent=1, n_run=1)
    >>> flights.settle("red", 1, now=4.0, is_reward=True)
    >>> flights.waiting("red", n_choices=2, now=4.0)
    Waiting(n_young=1, n_silent=0, n_run=0)
    """

    def __init__(self, lifetime: float, open_choices: int, patience: float | None = None) -> None:
        self._lifetime = lifetime
        self._open_choices = open_choices
        self._patience = patience
        self._open: dict[str, _Open] = {}
        self._now = 0.0
        #: The arms with other tickets than `changes` told of, and until when nothing else becomes of any others.
        self._changed: set[str] = set()
        self._until = math.inf
        self._until_number: float = math.inf

    def begin(self) -> None:
        """A start or a life begins: nothing is in flight. How long rewards take is remembered."""
        for one in self._open.values():
            one.drop(len(one.numbers))
        self.tell_all()

    def give(self, arm: str, number: int, now: float) -> None:
        """A ticket was given."""
        one = self._open.get(arm)
        if one is None:
            one = self._open[arm] = _Open()
        one.numbers.append(number)
        one.times.append(self._time(now))
        self._changed.add(arm)

    def settle(self, arm: str, number: int, now: float, is_reward: bool) -> None:
        """A ticket was closed, by a reward or without one."""
        one = self._open.get(arm)
        if one is None:
            return
        place = bisect_left(one.numbers, number, one.first)
        if place == len(one.numbers) or one.numbers[place] != number:
            return
        if is_reward:
            one.answer(number, self._time(now) - one.times[place])
        del one.numbers[place], one.times[place]
        self._changed.add(arm)

    def tell_all(self) -> None:
        """Have `changes` tell of all arms, whatever it told before."""
        self._changed.update(self._open)

    def changes(self, n_choices: int, now: float) -> list[tuple[str, Waiting]]:
        """The arms of whose open tickets something else may be made than the last time, and what is."""
        now = self._time(now)
        if now >= self._until or n_choices >= self._until_number:
            opened = self._open.items()
            self._changed.update(arm for arm, one in opened if now >= one.until or n_choices >= one.until_number)
            rest = [one for arm, one in opened if arm not in self._changed]
            self._until = min((one.until for one in rest), default=math.inf)
            self._until_number = min((one.until_number for one in rest), default=math.inf)
        found = []
        for arm in self._changed:
            one = self._open[arm]
            found.append((arm, self._look(one, n_choices, now)))
            self._until = min(self._until, one.until)
            self._until_number = min(self._until_number, one.until_number)
        self._changed.clear()
        return found

    def waiting(self, arm: str, n_choices: int, now: float) -> Waiting:
        """How many open tickets an arm has, and what is made of them."""
        if arm not in self._open:
            return NOT_WAITING
        self._changed.add(arm)
        return self._look(self._open[arm], n_choices, self._time(now))

    def _look(self, one: _Open, n_choices: int, now: float) -> Waiting:
        """What is made of the open tickets of an arm; what has lapsed falls out."""
        numbers, times, first = one.numbers, one.times, one.first
        lapsed = bisect_right(numbers, n_choices - self._open_choices, first)
        lapsed = max(lapsed, bisect_left(times, now - self._lifetime, lapsed))
        if lapsed > first:
            one.drop(lapsed)
            first = one.first
        if first == len(numbers):
            one.until = one.until_number = math.inf
            return NOT_WAITING
        patience = self._patience
        if patience is None:
            patience = max(LEAST_PATIENCE, TIMES_LONGEST * one.longest)
        end = bisect_left(times, now - patience, first)
        young = times[end] if end < len(times) else math.inf
        # A little earlier, whatever rounding does.
        one.until = (1 - 1e-12) * min(times[first] + self._lifetime, young + patience)
        one.until_number = numbers[first] + self._open_choices
        run = bisect_right(numbers, one.answered, first)
        return Waiting(len(numbers) - end, end - first, max(0, end - run))

    def _time(self, now: float) -> float:
        """The uptime, which never falls."""
        self._now = max(self._now, now)
        return self._now
