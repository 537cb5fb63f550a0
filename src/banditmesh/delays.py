"""When rewards come: laws of the number of rounds between a pull and the observation of its reward.

A law is written as a number of rounds or as a text, and its draws are numbers in (0, 1), one for each pull:

    10                  always this many rounds; 0 is at once
    "geometric(10)"     a geometric number with this mean, from 0 on
    "uniform(1, 20)"    one of these numbers, or of those between them, each as likely
    "never"             the reward is never observed
    "never(500)"        nor that of any pull in round 500 or later; earlier ones are observed at once
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from . import checks
from .draws import MAX_COUNTER, geometric_skip
from .errors import InputError

_WRITTEN: Final = re.compile(r"\s*([a-z]+)\s*(?:\(([^()]*)\))?\s*")


@dataclass(frozen=True)
class Delay:
    """Always the same number of rounds; other laws derive from it.

    Examples
    --------
    >>> [as_delay(given).rounds(t=1, u=0.5) for given in (3, "geometric(10)", "uniform(1, 20)", "never")]
    [3, 7, 11, None]
    """

    least: int = 0

    @property
    def written(self) -> int | str:
        """As it is written."""
        return self.least

    @property
    def longest(self) -> int | None:
        """The most rounds after which a reward is observed, if it ever is; None if there is no limit."""
        return self.least

    @property
    def mean(self) -> float:
        """The mean number of rounds of the rewards that are observed."""
        return self.least

    def rounds(self, t: int, u: float) -> int | None:
        """How many rounds after its pull in round `t` a reward is observed, from a number in (0, 1); None if never."""
        return self.least


@dataclass(frozen=True)
class _Geometric(Delay):
    average: float = 0.0

    @property
    def written(self) -> str:
        return f"geometric({self.average!r})"

    @property
    def longest(self) -> None:
        return None

    @property
    def mean(self) -> float:
        return self.average

    def rounds(self, t: int, u: float) -> int | None:
        # A geometric number with mean m fails with probability m / (1 + m) = 1 / (1 + 1 / m).
        return geometric_skip(u, -math.log1p(1.0 / self.average))


@dataclass(frozen=True)
class _Uniform(Delay):
    most: int = 0

    @property
    def written(self) -> str:
        return f"uniform({self.least}, {self.most})"

    @property
    def longest(self) -> int:
        return self.most

    @property
    def mean(self) -> float:
        return (self.least + self.most) / 2.0

    def rounds(self, t: int, u: float) -> int | None:
        return min(self.least + int(u * (self.most - self.least + 1)), self.most)


@dataclass(frozen=True)
class _Never(Delay):
    first: int = 1

    @property
    def written(self) -> str:
        return "never" if self.first == 1 else f"never({self.first})"

    def rounds(self, t: int, u: float) -> int | None:
        return None if t >= self.first else 0


def as_delay(given: object) -> Delay:
    """The law that a number or a text stands for.

    Raises
    ------
    InputError
        If it stands for none; its key is `reward_delay`.

    Examples
    --------
    >>> as_delay("uniform(1, 20)").longest, as_delay("geometric(0)").written
    (20, 0)
    """
    if not isinstance(given, str) or given.strip().isdecimal():
        return Delay(_rounds(_number(given, given) if isinstance(given, str) else given))
    match = _WRITTEN.fullmatch(given)
    make = None if match is None else _LAWS.get(match[1])
    if match is None or make is None:
        raise _refusal(given)
    numbers = [] if match[2] is None else [_number(one, given) for one in match[2].split(",")]
    return make(given, numbers)


def _refusal(given: object) -> InputError:
    return InputError(
        "must be a number of rounds, geometric(mean), uniform(least, most), never or never(first round), "
        f"got {checks.shown(given)}",
        key="reward_delay",
    )


def _number(text: str, given: str) -> int | float:
    if (number := checks.as_number(text)) is None:
        raise _refusal(given)
    return number


def _rounds(given: object, at_least: int = 0) -> int:
    return checks.integer("reward_delay", given, at_least=at_least, at_most=MAX_COUNTER)


def _geometric(given: str, numbers: list[int | float]) -> Delay:
    if len(numbers) != 1:
        raise _refusal(given)
    mean = checks.non_negative("reward_delay", numbers[0])
    if mean > MAX_COUNTER:
        raise InputError(f"must be at most {MAX_COUNTER} rounds, got {mean:g}", key="reward_delay")
    return _Geometric(average=int(mean) if mean == int(mean) else mean) if mean else Delay()


def _uniform(given: str, numbers: list[int | float]) -> Delay:
    if len(numbers) != 2:
        raise _refusal(given)
    least = _rounds(numbers[0])
    most = _rounds(numbers[1], at_least=least)
    return _Uniform(least, most) if least < most else Delay(least)


def _never(given: str, numbers: list[int | float]) -> Delay:
    if len(numbers) > 1:
        raise _refusal(given)
    return _Never(first=_rounds(numbers[0], at_least=1) if numbers else 1)


_LAWS: Final[dict[str, Callable[[str, list[int | float]], Delay]]] = {
    "geometric": _geometric,
    "uniform": _uniform,
    "never": _never,
}
