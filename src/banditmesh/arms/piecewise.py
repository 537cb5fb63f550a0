"""Laws that jump to another one in given rounds."""

# Methods that override those of `Law` are documented there.
# ruff: noqa: D102

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from .. import checks
from ..errors import ArmError
from .base import Law, derive
from .changing import ChangingLaw, Rows, same_kind


@dataclass(frozen=True)
class Piecewise(ChangingLaw):
    """A law that is another one from given rounds on, all of one kind.

    Parameters
    ----------
    pieces : mapping from int to Law
        The rounds in which a law begins, ascending; 1 must be among them. Of laws other than `Gaussian`, `Bernoulli`
        and `Uniform` this is the one way to change; a `Replay` cannot.

    Examples
    --------
    >>> import banditmesh as bm
    >>> law = Piecewise({1: bm.arms.Bernoulli(0.2), 501: bm.arms.Bernoulli(0.8)})
    >>> law.at(500).mean, law.at(501).mean
    (0.2, 0.8)
    """

    jumps = True
    pieces: Mapping[int, Law]

    def __post_init__(self) -> None:
        if not isinstance(self.pieces, Mapping) or not self.pieces:
            got = "an empty schedule" if isinstance(self.pieces, Mapping) else checks.shown(self.pieces)
            raise ArmError(f"pieces must be a mapping from rounds to laws, as in {{1: law, 501: law}}, got {got}")
        rounds = [checks.integer("the rounds of pieces", t, at_least=1) for t in self.pieces]
        if rounds[0] != 1 or any(later <= earlier for earlier, later in pairwise(rounds)):
            raise ArmError(f"the rounds of pieces must ascend from 1, got {checks.shown(rounds)}")
        laws = list(self.pieces.values())
        for law in laws:
            same_kind(laws[0], law, "pieces")
        derive(self, pieces=dict(zip(rounds, laws, strict=True)))

    def __hash__(self) -> int:
        return hash((type(self), *self.pieces.items()))

    @property
    def least_horizon(self) -> int:  # type: ignore[override]
        return max(self.pieces)

    @cached_property
    def sigma(self) -> float | None:  # type: ignore[override]
        return self._largest(list(self.pieces.values()))

    @cached_property
    def continuous(self) -> bool:  # type: ignore[override]
        return all(law.continuous for law in self.pieces.values())

    def at(self, t: int) -> Law:
        rounds = list(self.pieces)
        return self.pieces[rounds[bisect_right(rounds, checks.integer("t", t, at_least=1)) - 1]]

    def rows(self, first: int, last: int) -> Rows:
        laws = list(self.pieces.values())
        piece = np.searchsorted(list(self.pieces), np.arange(first, last), side="right") - 1
        numbers = [(law.mean, *(law.kernel or (0, float(k), 0.0))[1:]) for k, law in enumerate(laws)]
        means, a, b = np.array(numbers, dtype=np.float64)[piece].T
        return Rows(means, a, b)

    def describe(self) -> dict[str, Any]:
        return {"law": "piecewise", "pieces": [[t, law.describe()] for t, law in self.pieces.items()]}
