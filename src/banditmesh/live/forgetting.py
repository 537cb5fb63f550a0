"""What a bandit forgets: weights that halve with time, and the clocks that they rest on.

A memory is written `discount(half_life = 86400)`, in seconds. An origin then keeps, beside count and sum of an arm's
rewards, their *weight* and *weighted total*, discounted to the time of the last one, the *stamp*.

Rules kept here. The time of an observation is the origin's clock when its transaction begins, but never before the
arm's stamp: so stamps do not fall, and a weight is at least 1 and at most the count. A stamp that is ahead of the
node's own clock is not refused; it counts as *seen* at most `max_clock_skew` ahead of when it was stored, so that a
wrong clock does not weigh for longer than that. What is known of an arm is read at a time `now`: all weights times
2^-((now - seen) / half_life), summed. A weight below 2^-256 is 0, and the arm then an unknown one.

Inside, weights grow with time instead of all of them falling: what is known is kept in the scale of a moment
(`Fading`), and only reading divides by today's unit.
"""

from __future__ import annotations

import math
import re
from typing import Final, NamedTuple

from .. import checks
from ..errors import InputError
from .statistics import MAX_STAMP, Values

_LOG_2: Final = math.log(2.0)
#: A weight below this is 0.
LEAST_WEIGHT: Final = 2.0**-256
#: After this many half-lives a scale begins anew.
MAX_HALF_LIVES: Final = 32.0
#: How far clocks of members may be apart, in seconds, unless the configuration says otherwise; and how many times that
#: the shortest half-life is.
MAX_CLOCK_SKEW: Final = 60.0
LEAST_SKEWS: Final = 10.0
#: How long, in seconds, a node's clock may be behind its own stamps before a new life begins.
BEHIND_FOR: Final = 600.0
EVERYTHING: Final = "everything"
_WRITTEN: Final = re.compile(r"\s*discount\s*\(\s*half_life\s*=\s*([^()=,]+?)\s*\)\s*")
_EXAMPLE: Final = 'memory = "discount(half_life = 86400)", in seconds'


def read_memory(key: str, value: object) -> str:
    """A memory, as it is written everywhere: "everything", or "discount(half_life = 86400)" with its number in short.

    Examples
    --------
    >>> read_memory("memory", "discount( half_life=86400.0 )")
    'discount(half_life = 86400)'
    """
    if value == EVERYTHING:
        return EVERYTHING
    written = _WRITTEN.fullmatch(value) if isinstance(value, str) else None
    try:
        if written is None:
            raise ValueError
        half_life = float(written[1])
    except ValueError:
        raise InputError(
            f'{key} must be "{EVERYTHING}" or like "discount(half_life = 86400)", in seconds, got {checks.shown(value)}'
        ) from None
    checks.positive(f"half_life of {key}", half_life)
    return f"discount(half_life = {half_life:.17g})" if half_life % 1 else f"discount(half_life = {half_life:.0f})"


def half_life_of(memory: str) -> float | None:
    """The half-life of a memory, in seconds; None if it forgets nothing.

    Examples
    --------
    >>> half_life_of("discount(half_life = 3600)"), half_life_of("everything")
    (3600.0, None)
    """
    written = _WRITTEN.fullmatch(memory)
    return None if written is None else float(written[1])


def told_memory(memory: str) -> str:
    """A memory as hellos and the state have it: empty if it forgets nothing."""
    return "" if memory == EVERYTHING else memory


def memory_by_rounds(label: str) -> str:
    """Why a policy's own memory, which counts rounds, cannot run live, and what to write instead."""
    return f"memory {label!r} cannot run live: it forgets by rounds, and a node has none; write {_EXAMPLE}, instead"


def faded(age: float, half_life: float) -> float:
    """How much of a weight is left after that many seconds; all of it if they are negative.

    Examples
    --------
    >>> faded(0.0, 10.0), faded(-5.0, 10.0), round(faded(20.0, 10.0), 12)
    (1.0, 1.0, 0.25)
    """
    return math.exp(-_LOG_2 * age / half_life) if age > 0.0 else 1.0


def observed(before: Values, reward: float, now: float, half_life: float) -> Values:
    """What has been observed of an arm with one more reward, by a memory.

    Examples
    --------
    >>> once = observed(Values.of(0, 0.0), 1.0, 1000.0, half_life=10.0)
    >>> observed(once, 0.0, 1010.0, half_life=10.0)
    Values(count=2, total=1.0, weight=1.5, weighted_total=0.5, stamp=1010.0)
    """
    count, total = before.count + 1, before.total + reward
    # A stamp of 0 would say that there is no memory.
    stamp = min(max(now, before.stamp, 1.0), MAX_STAMP)
    left = faded(stamp - before.stamp, half_life) if before.count else 0.0
    return Values(count, total, before.weight * left + 1.0, before.weighted_total * left + reward, stamp)


class TimeOfDay:
    """The time of day as a node was last told of it, by which its member, table and agents go.

    Parameters
    ----------
    max_clock_skew : float
        How far ahead of it a stamp counts as it is, in seconds.

    Attributes
    ----------
    now : float
        In seconds since 1970.
    """

    def __init__(self, max_clock_skew: float = MAX_CLOCK_SKEW) -> None:
        self.now = 0.0
        self.max_clock_skew = max_clock_skew

    @property
    def horizon(self) -> float:
        """The latest that a stamp is taken for."""
        return self.now + self.max_clock_skew


class Part(NamedTuple):
    """What an origin adds to what is known of an arm: weight and weighted total, in the scale of a `Fading`."""

    weight: float
    total: float


#: What an origin without a memory adds to what one with a memory knows.
NO_PART: Final = Part(0.0, 0.0)


class Fading:
    """The scale in which what a bandit's agent knows is kept.

    Parameters
    ----------
    half_life : float
        In seconds.

    Attributes
    ----------
    since : float
        The time whose unit is 1.

    Examples
    --------
    >>> fading = Fading(half_life=10.0)
    >>> fading.begin(now=1000.0)
    >>> part = fading.part(weight=4.0, total=2.0, seen=990.0)
    >>> [round(number / fading.unit(1010.0), 12) for number in part]
    [1.0, 0.5]
    """

    def __init__(self, half_life: float) -> None:
        self.half_life = half_life
        self.since = 0.0

    def begin(self, now: float) -> None:
        """The scale is that of now: everything must be summed anew."""
        self.since = now

    def is_old(self, now: float) -> bool:
        """Whether the scale should begin anew, so that weights neither grow nor fall without end."""
        return abs(now - self.since) > MAX_HALF_LIVES * self.half_life

    def unit(self, time: float) -> float:
        """The weight, in this scale, of an observation of that time."""
        halves = (time - self.since) / self.half_life
        return math.exp(_LOG_2 * max(-1000.0, min(halves, 1000.0)))

    def part(self, weight: float, total: float, seen: float) -> Part:
        """What an origin adds whose weight and weighted total are those of the time `seen`."""
        unit = self.unit(seen)
        return Part(weight * unit, total * unit) if weight * unit >= LEAST_WEIGHT else NO_PART


class ChoiceClock:
    """The clock of a policy that forgets: the discounted number of choices.

    Parameters
    ----------
    weight, stamp : float
        As it was last stored.

    Examples
    --------
    >>> clock = ChoiceClock()
    >>> clock.tick(100.0, half_life=10.0), clock.tick(110.0, half_life=10.0), clock.read(120.0, half_life=10.0)
    (1.0, 1.5, 1.75)
    """

    def __init__(self, weight: float = 0.0, stamp: float = 0.0) -> None:
        self.weight = weight
        self.stamp = stamp

    def read(self, now: float, half_life: float) -> float:
        """What it will read at the next choice, if that is now."""
        return max(1.0, self.weight * faded(now - self.stamp, half_life) + 1.0)

    def tick(self, now: float, half_life: float) -> float:
        """One more choice: what it reads."""
        self.weight, self.stamp = self.read(now, half_life), now
        return self.weight
