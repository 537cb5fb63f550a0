"""What a node sees when it chooses: its estimates, priors, and its choices in flight.

An open ticket is not nothing: a choice whose reward has not come yet counts, for choosing alone and never for what is
told, as one more pull of its arm. Rules kept here. While a ticket is younger than the patience with its arm, the pull
paid the arm's present mean; after that it paid what silence is taken for: the lowest of the arm's `reward_range` or,
without one, the lowest present mean of all arms, or 0 if nothing is known of any. Of an unknown arm a ticket always
counts as silence. The patience with an arm is given, or three times the longest of its last hundred times to a reward,
and at least a second. A ticket falls out when it is closed, has lapsed, or the node starts again.

So the best arm, should it stop answering, is left after the patience and a few choices, and a new one that never
answers at once. Ages are by the node's uptime, which no clock that is set forward or back changes.

A prior counts as that many rewards more of its arm. It spares no first pull, and is neither counted nor told.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from ...policies.base import Estimates
from ..statistics import ArmSpec
from .tickets import Ticket

#: Of how many times to a reward the longest counts, how many times that is waited for, and for how long at least.
LAST_TIMES: Final = 100
TIMES_LONGEST: Final = 3.0
LEAST_PATIENCE: Final = 1.0


class _Pair(NamedTuple):
    arm: str
    ticket: Ticket


class NodeChoice(_Pair):
    """An arm to pull, and the ticket by which its reward is reported; it unpacks into these two.

    Attributes
    ----------
    probability : float or None
        How probable the arm was, of those that were available; 1 for first pulls, None where the policy draws.
    """

    probability: float | None

    def __new__(cls, arm: str, ticket: Ticket, probability: float | None = None) -> NodeChoice:  # noqa: D102
        self = super().__new__(cls, arm, ticket)
        self.probability = probability
        return self


class _Open:
    """The open tickets of one arm, ascending: numbers, and when they were given."""

    def __init__(self) -> None:
        self.numbers = array("q")
        self.times = array("d")
        #: Those before this place have fallen out.
        self.first = 0
        self.waits: deque[float] = deque(maxlen=LAST_TIMES)
        self.longest = 0.0

    def __len__(self) -> int:
        return len(self.numbers) - self.first

    def drop(self, first: int) -> None:
        """Those before a place fall out."""
        self.first = max(self.first, first)
        if 2 * self.first > len(self.numbers):
            del self.numbers[: self.first], self.times[: self.first]
            self.first = 0


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
    (1, 1)
    >>> flights.settle("red", 1, now=4.0, is_reward=True)
    >>> flights.waiting("red", n_choices=2, now=4.0)
    (1, 0)
    """

    def __init__(self, lifetime: float, open_choices: int, patience: float | None = None) -> None:
        self._lifetime = lifetime
        self._open_choices = open_choices
        self._patience = patience
        self._open: dict[str, _Open] = {}
        self._now = 0.0

    def begin(self) -> None:
        """A start or a life begins: nothing is in flight. How long rewards take is remembered."""
        for one in self._open.values():
            one.drop(len(one.numbers))

    def give(self, arm: str, number: int, now: float) -> None:
        """A ticket was given."""
        one = self._open.get(arm)
        if one is None:
            one = self._open[arm] = _Open()
        one.numbers.append(number)
        one.times.append(self._time(now))

    def settle(self, arm: str, number: int, now: float, is_reward: bool) -> None:
        """A ticket was closed, by a reward or without one."""
        one = self._open.get(arm)
        if one is None:
            return
        place = bisect_left(one.numbers, number, one.first)
        if place == len(one.numbers) or one.numbers[place] != number:
            return
        if is_reward:
            one.waits.append(self._time(now) - one.times[place])
            one.longest = max(one.waits)
        del one.numbers[place], one.times[place]

    def arms(self) -> list[str]:
        """The arms with open tickets."""
        return [arm for arm, one in self._open.items() if len(one)]

    def waiting(self, arm: str, n_choices: int, now: float) -> tuple[int, int]:
        """How many open tickets an arm has that are waited for, and how many that count as silence."""
        one = self._open.get(arm)
        if one is None or not len(one):
            return 0, 0
        now = self._time(now)
        lapsed = bisect_right(one.numbers, n_choices - self._open_choices, one.first)
        one.drop(max(lapsed, bisect_left(one.times, now - self._lifetime, one.first)))
        patience = self._patience
        if patience is None:
            patience = max(LEAST_PATIENCE, TIMES_LONGEST * one.longest)
        n_silent = bisect_left(one.times, now - patience, one.first) - one.first
        return len(one) - n_silent, n_silent

    def _time(self, now: float) -> float:
        """The uptime, which never falls."""
        self._now = max(self._now, now)
        return self._now


def seen(estimates: Estimates, specs: Sequence[ArmSpec], waiting: Mapping[int, tuple[int, int]]) -> Estimates:
    """The estimates with priors and with choices in flight, by position: how many are waited for, and are silent.

    Examples
    --------
    >>> estimates = Estimates([1.0, 1.0], [0, 0])
    >>> estimates.add(0, count=3, total=3.0)
    >>> view = seen(estimates, [ArmSpec("red"), ArmSpec("blue", reward_range=(-1.0, 1.0))], {0: (2, 0), 1: (1, 0)})
    >>> view.count, view.mean
    ([5, 1], [1.0, -1.0])
    """
    priors = [(position, spec.prior) for position, spec in enumerate(specs) if spec.prior is not None]
    if not priors and not waiting:
        return estimates
    view = estimates.part(range(len(estimates)))
    for position, prior in priors:
        view.put(position, view.count[position] + prior.count, view.total[position] + prior.count * prior.mean)
    known = [mean for mean, count in zip(view.mean, view.count, strict=True) if count]
    lowest = min(known, default=0.0)
    for position, (n_young, n_silent) in waiting.items():
        reward_range = specs[position].reward_range
        silence = lowest if reward_range is None else reward_range[0]
        count, total = view.count[position], view.total[position]
        total += n_young * (view.mean[position] if count else silence) + n_silent * silence
        view.put(position, count + n_young + n_silent, total)
    return view
