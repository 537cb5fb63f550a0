"""The world of one replicate: what all arms pay in each round, worked out in order and in blocks of rounds.

Both engines read it, so that they meet the same means; memory does not grow with the horizon. What is drawn, is drawn
by (seed, replicate, purpose, arm, round), so that every protocol, policy and number of workers meets the same world.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ..draws import CHANGE, MEAN, Draws, uniform
from ..errors import ArmError
from .base import Floats, Law, reward_of
from .changing import ChangingLaw, RandomLaw, Rows, check_mean, shifted_rows
from .quantiles import law_quantile
from .switching import SWITCHING, switched
from .wandering import wandered

#: A block has this many rounds, or fewer if there are many arms: then it has about so many numbers of each kind.
MOST_ROUNDS: Final = 256
BLOCK_SIZE: Final = 2**17
#: How many rounds of change are kept of a replicate.
MOST_CHANGES: Final = 1000


def walk_means(
    first: int,
    last: int,
    change_k0: int,
    change_k1: int,
    mean_k0: int,
    mean_k1: int,
    arms: npt.NDArray[np.int64],
    recipes: npt.NDArray[np.int64],
    holds: npt.NDArray[np.int64],
    numbers: Floats,
    now: Floats,
    means: Floats,
) -> None:
    """Walk the means of the arms that change at random through the rounds from `first` to before `last`.

    Plain Python and compiled code share it. `numbers` has a row for each of the arms: rate or step, low, and high.
    `now` is the mean of each before these rounds, and after them; `means`, (rounds, arms), is written.
    """
    for k in range(len(arms)):
        arm, recipe, hold, mean = int(arms[k]), int(recipes[k]), int(holds[k]), float(now[k])
        amount, low, high = float(numbers[k, 0]), float(numbers[k, 1]), float(numbers[k, 2])
        for t in range(first, last):
            if t > 1:
                if recipe == SWITCHING:
                    if uniform(change_k0, change_k1, arm, t, 0, 0) < amount:
                        mean = switched(uniform(mean_k0, mean_k1, arm, t, 0, 0), low, high)
                elif (t - 1) % hold == 0:
                    mean = wandered(mean, uniform(mean_k0, mean_k1, arm, t, 0, 0), amount, low, high)
            means[t - first, k] = mean
        now[k] = mean


class World:
    """What the arms of a problem pay in one replicate, round by round.

    Parameters
    ----------
    laws : sequence of Law
        The arms' laws.
    draws : Draws
        Those of the replicate.
    walk : callable
        `walk_means`, or the same compiled.

    Examples
    --------
    >>> import banditmesh as bm
    >>> laws = [bm.arms.Gaussian(0.5), bm.arms.Piecewise({1: bm.arms.Gaussian(0.0), 3: bm.arms.Gaussian(1.0)})]
    >>> world = World(laws, Draws(0, 0))
    >>> world.rows(1, 5).means.tolist(), world.changes(4).tolist()
    ([[0.5, 0.0], [0.5, 0.0], [0.5, 1.0], [0.5, 1.0]], [3])
    """

    def __init__(self, laws: Sequence[Law], draws: Draws, walk: Callable[..., None] = walk_means) -> None:
        self._laws = laws
        self._draws = draws
        self._walk = walk
        self._changing = [(arm, law) for arm, law in enumerate(laws) if isinstance(law, ChangingLaw)]
        drawn = [(arm, law) for arm, law in self._changing if isinstance(law, RandomLaw)]
        self._built_in = [(arm, law, law.recipe) for arm, law in drawn if law.recipe is not None]
        self._own = [(arm, law) for arm, law in drawn if law.recipe is None]
        self._arms = np.array([arm for arm, _, _ in self._built_in], dtype=np.int64)
        self._recipes = np.array([recipe for _, _, (recipe, _, _) in self._built_in], dtype=np.int64)
        self._holds = np.array([hold for _, _, (_, _, hold) in self._built_in], dtype=np.int64)
        numbers = [(amount, law.low, law.high) for _, law, (_, amount, _) in self._built_in]
        self._numbers = np.array(numbers, dtype=np.float64).reshape(-1, 3)
        self._n_rounds = max(1, min(MOST_ROUNDS, BLOCK_SIZE // len(laws)))
        self._begin()

    def _begin(self) -> None:
        """Nothing is worked out yet."""
        self._first = self._last = 1
        shape = (0, len(self._laws))
        self._block = Rows(np.zeros(shape), np.zeros(shape), np.zeros(shape))
        self._now = np.array([law.law.mean for _, law, _ in self._built_in], dtype=np.float64)
        self._walks = [law.walk(self._chance(CHANGE, arm), self._chance(MEAN, arm)) for arm, law in self._own]
        self._changes: set[int] = set()

    def _chance(self, purpose: str, arm: int) -> Callable[[int], float]:
        return lambda t: self._draws.uniform(purpose, arm, t)

    def rows(self, first: int, last: int) -> Rows:
        """Means and numbers of all laws in the rounds from `first` to before `last`: arrays (rounds, arms).

        Rounds that were passed are worked out again, from the first one on.
        """
        if first < self._first:
            self._begin()
        parts = []
        t = first
        while t < last:
            while t >= self._last:
                self._next_block()
            end = min(last, self._last)
            parts.append(Rows(*(array[t - self._first : end - self._first] for array in self._block)))
            t = end
        return parts[0] if len(parts) == 1 else Rows(*map(np.concatenate, zip(*parts, strict=True)))

    def means(self, t: int) -> Floats:
        """The means in round `t`."""
        return np.asarray(self.rows(t, t + 1).means[0])

    def pay(self, t: int, arm: int, u: float) -> float:
        """What an arm pays in round `t` for the uniform number `u`."""
        law = self._laws[arm]
        if law.kernel is None or not law.changes:
            return reward_of(law.at(t), u)
        if not self._first <= t < self._last:
            self.rows(t, t + 1)
        row = t - self._first
        return law_quantile(law.code, float(self._block.a[row, arm]), float(self._block.b[row, arm]), u)

    def changes(self, horizon: int) -> npt.NDArray[np.int64]:
        """The rounds up to the horizon in which an arm jumps, ascending; the first 1,000."""
        while self._last <= horizon and len(self._changes) < MOST_CHANGES:
            self._next_block()
        return np.array(sorted(t for t in self._changes if t <= horizon)[:MOST_CHANGES], dtype=np.int64)

    def _next_block(self) -> None:
        first, last = self._last, self._last + self._n_rounds
        shape = (self._n_rounds, len(self._laws))
        before = self._block.means[-1].copy() if first > 1 else None
        block = Rows(np.zeros(shape), np.zeros(shape), np.zeros(shape))
        if first == 1:
            for arm, law in enumerate(self._laws):
                if not law.changes:
                    _, a, b = law.kernel or (0, 0.0, 0.0)
                    self._fill(block, arm, Rows(*(np.full(self._n_rounds, number) for number in (law.mean, a, b))))
        else:
            # What does not change is there already.
            block = Rows(*(array.copy() for array in self._block))
        drawn = self._drawn(first, last)
        keeps = len(self._changes) < MOST_CHANGES
        for arm, law in self._changing:
            rows = shifted_rows(law.law, drawn[arm]) if isinstance(law, RandomLaw) else law.rows(first, last)
            self._fill(block, arm, rows)
            if keeps:
                self._changes.update(
                    law.changed_in(first, last, block.means[:, arm], None if before is None else float(before[arm]))
                )
        self._first, self._last, self._block = first, last, block

    @staticmethod
    def _fill(block: Rows, arm: int, rows: Rows) -> None:
        for array, column in zip(block, rows, strict=True):
            array[:, arm] = column

    def _drawn(self, first: int, last: int) -> dict[int, Floats]:
        """The means of the arms that change at random, by arm."""
        found: dict[int, Floats] = {}
        if self._built_in:
            means = np.zeros((last - first, len(self._built_in)))
            keys = (*self._draws.key(CHANGE), *self._draws.key(MEAN))
            self._walk(first, last, *keys, self._arms, self._recipes, self._holds, self._numbers, self._now, means)
            found = {arm: means[:, k] for k, (arm, _, _) in enumerate(self._built_in)}
        for (arm, law), walk in zip(self._own, self._walks, strict=True):
            found[arm] = np.array([_own_mean(law, next(walk, None)) for _ in range(first, last)])
        return found


def _own_mean(law: RandomLaw, mean: Any) -> float:
    """A mean that a law of the user's own gives, checked."""
    if mean is None:
        raise ArmError(f"walk() of the law {type(law).__name__} must give a mean for every round, got an end")
    check_mean(law.law, mean, f"a round of {type(law).__name__}")
    return float(mean)
