"""What a live node's agent leaves to chance: draws from a generator of its own."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, Final

from ...core import Message

_TWO_POW_52: Final = 2.0**52


class LiveChances:
    """Chances, as the core asks for them, that do not depend on what they decide.

    Parameters
    ----------
    rng : random.Random

    Examples
    --------
    >>> chances = LiveChances(random.Random(1))
    >>> 0.0 < chances.uniform() < 1.0, len(chances.pick(["a", "b", "c"], 2)), chances.pick(["a"], 2)
    (True, 2, ['a'])
    """

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng

    def uniform(self) -> float:
        """A number in (0, 1): of 52 random bits, as in the simulator."""
        return (self._rng.getrandbits(52) + 0.5) / _TWO_POW_52

    def pick(self, candidates: Sequence[str], n: int) -> Sequence[str]:
        """`n` of the candidates, or all if there are no more."""
        return candidates if n >= len(candidates) else self._rng.sample(candidates, n)

    def place(self, n: int) -> int:
        """A number from 0 to n - 1."""
        return self._rng.randrange(n)

    def index(self, agent: Any, arm: Any) -> float:
        """A number in (0, 1) for a policy that draws."""
        return self.uniform()

    def relay(self, message: Message, agent: Any, ttl: int) -> float:
        """A number in (0, 1) for a relay rule that draws."""
        return self.uniform()

    def targets(self, message: Message, agent: Any, ttl: int, candidates: Sequence[Any], n: int) -> Sequence[Any]:
        """`n` of the candidates, or all if there are no more."""
        return self.pick(candidates, n)
