"""Laws whose mean moves evenly from one value to another."""

# Methods that override those of `Law` are documented there.
# ruff: noqa: D102

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import checks
from ..errors import ArmError
from .base import Floats, Law, derive
from .changing import ShiftedLaw, can_shift, same_kind, shifted


@dataclass(frozen=True)
class Drifting(ShiftedLaw):
    """A law whose mean moves in a straight line from round `first` to `last`, and rests before and after.

    Parameters
    ----------
    law, to : Law
        What pays up to the first of these rounds, and from the last one on; they differ in the mean alone.
    first, last : int
        When the mean begins to move, and when it has arrived. In round t between them it is
        a + (b - a) (t - first) / (last - first).

    Examples
    --------
    >>> import banditmesh as bm
    >>> law = Drifting(bm.arms.Gaussian(0.0, 1.0), bm.arms.Gaussian(1.0, 1.0), 101, 201)
    >>> [law.at(t).mean for t in (1, 101, 126, 201, 999)]
    [0.0, 0.0, 0.25, 1.0, 1.0]
    """

    law: Law
    to: Law
    first: int
    last: int

    def __post_init__(self) -> None:
        first = checks.integer("first", self.first, at_least=1)
        last = checks.integer("last", self.last, at_least=1)
        if not first < last:
            raise ArmError(f"last must be after first, got {first} and {last}")
        same_kind(self.law, self.to, "both ends of Drifting")
        can_shift(self.law)
        moved, tolerance = shifted(self.law, self.to.mean), 1e-9 * (abs(self.law.mean) + abs(self.to.mean))
        assert moved.kernel is not None
        assert self.to.kernel is not None
        if not np.allclose(moved.kernel, self.to.kernel, rtol=1e-9, atol=tolerance):
            raise ArmError(f"both ends of Drifting must differ only in the mean, got {self.law!r} and {self.to!r}")
        derive(self, first=first, last=last)

    @property
    def least_horizon(self) -> int:  # type: ignore[override]
        return self.first + 1

    def means(self, first: int, last: int) -> Floats:
        a, b, begin, end = self.law.mean, self.to.mean, self.first, self.last
        rounds = np.arange(first, last)
        moving = a + (b - a) * (rounds - begin) / (end - begin)
        return np.where(rounds <= begin, a, np.where(rounds >= end, b, moving))

    def describe(self) -> dict[str, Any]:
        rounds = {"first": self.first, "last": self.last}
        return {"law": "drifting", "start": self.law.describe(), "to": self.to.describe(), **rounds}
