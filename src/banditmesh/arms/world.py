"""The world of one replicate: what all arms pay in each round, worked out in order and in blocks of rounds.

Both engines read it, so that they meet the same means; memory does not grow with the horizon. What is drawn, is drawn
by (seed, replicate, purpose, arm, round), so that every protocol, policy and number of workers meets the same world.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ..draws import CHANGE, MEAN, Draws, normal_quantile, uniform
from ..errors import ArmError
from .base import Floats, Law, reward_of
from .changing import ChangingLaw, RandomLaw, Rows, ShiftedLaw, Shifting, check_mean
from .quantiles import law_quantile
from .seasonal import Seasonal, swinging
from .switching import SWITCHING, switched
from .wandering import wandered

#: Rounds in the first block, and the most in later ones.
FEWEST_ROUNDS: Final = 64
MAX_ROUNDS: Final = 512
#: With many arms blocks are shorter, to hold about this many numbers of each kind.
BLOCK_SIZE: Final = 2**17
#: How many rounds of change are kept of a replicate.
MAX_CHANGES: Final = 1000


def draw_steps(
    k0: int, k1: int, arm: int, begin: int, hold: int, n_steps: int, is_normal: bool, uniforms: Floats, drawn: Floats
) -> None:
    """Write what is drawn for steps in rounds begin, begin + hold, ...: uniform numbers, or their normal quantiles.

    Compiled, another function takes its place, which draws many numbers at a time.
    """
    for i in range(n_steps):
        u = uniform(k0, k1, arm, begin + i * hold, 0, 0)
        drawn[i] = normal_quantile(u) if is_normal else u


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
    uniforms: Floats,
    drawn: Floats,
    means: Floats,
) -> None:
    """Walk the means of the arms that change at random through the rounds from `first` to before `last`.

    Plain Python and compiled code share it. `numbers` has a row for each of the arms: rate or step, low, and high.
    `now` is the mean of each before these rounds, and after them; `means`, (rounds, arms), is written. `uniforms` and
    `drawn` have room for a number of each round.
    """
    for k in range(len(arms)):
        arm, recipe, hold, mean = int(arms[k]), int(recipes[k]), int(holds[k]), float(now[k])
        amount, low, high = float(numbers[k, 0]), float(numbers[k, 1]), float(numbers[k, 2])
        # Steps are in rounds 1 + hold, 1 + 2 hold and so on; this is the first one from here on.
        begin = 1 + hold * max(1, (first - 2 + hold) // hold)
        n_steps = max(0, (last - begin - 1 + hold) // hold)
        is_switching = recipe == SWITCHING
        k0, k1 = (change_k0, change_k1) if is_switching else (mean_k0, mean_k1)
        draw_steps(k0, k1, arm, begin, hold, n_steps, not is_switching, uniforms, drawn)
        i, step = 0, begin
        for t in range(first, last):
            if t == step:
                if not is_switching:
                    mean = wandered(mean, drawn[i], amount, low, high)
                elif drawn[i] < amount:
                    mean = switched(uniform(mean_k0, mean_k1, arm, t, 0, 0), low, high)
                i, step = i + 1, step + hold
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
        self._shifted = [(arm, law) for arm, law in self._changing if isinstance(law, ShiftedLaw)]
        self._jumping = np.array([arm for arm, law in self._changing if law.jumps], dtype=np.int64)
        self._shifted_arms = np.array([arm for arm, _ in self._shifted], dtype=np.int64)
        drawn = [(k, law) for k, (_, law) in enumerate(self._shifted) if isinstance(law, RandomLaw)]
        #: Places among the shifted laws of those that `walk_means` knows, and of the user's own.
        self._built_in = [(k, law) for k, law in drawn if law.recipe is not None]
        self._own = [(k, law) for k, law in drawn if law.recipe is None]
        #: And of those that do not change at random: all seasonal ones are worked out together.
        certain = [(k, law) for k, (_, law) in enumerate(self._shifted) if not isinstance(law, RandomLaw)]
        self._swinging = [k for k, law in certain if type(law) is Seasonal]
        self._swings = np.array([law.swing for _, law in certain if type(law) is Seasonal]).reshape(-1, 4).T
        self._moving = [(k, law) for k, law in certain if type(law) is not Seasonal]
        recipes = [law.recipe for _, law in self._built_in]
        self._arms = np.array([self._shifted[k][0] for k, _ in self._built_in], dtype=np.int64)
        self._recipes = np.array([recipe for recipe, _, _ in recipes], dtype=np.int64)
        self._holds = np.array([hold for _, _, hold in recipes], dtype=np.int64)
        numbers = [
            (amount, law.low, law.high) for (_, amount, _), (_, law) in zip(recipes, self._built_in, strict=True)
        ]
        self._numbers = np.array(numbers, dtype=np.float64).reshape(-1, 3)
        fixed = [(0.0,) * 3 if law.changes else (law.mean, *(law.kernel or (0, 0.0, 0.0))[1:]) for law in laws]
        self._fixed = np.array(fixed, dtype=np.float64).T
        self._shifting = Shifting([law.law for _, law in self._shifted])
        self._begin()

    def _begin(self) -> None:
        """Nothing is worked out yet."""
        self._first = self._last = 1
        shape = (0, len(self._laws))
        self._block = Rows(np.zeros(shape), np.zeros(shape), np.zeros(shape))
        self._now = np.array([law.law.mean for _, law in self._built_in], dtype=np.float64)
        self._walks = [
            law.walk(self._chance(CHANGE, self._shifted[k][0]), self._chance(MEAN, self._shifted[k][0]))
            for k, law in self._own
        ]
        self._changes: list[int] = []

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

    def end_of_block(self, t: int) -> int:
        """The round before which the block of round `t` ends: up to there, rows need not be copied."""
        self.rows(t, t + 1)
        return self._last

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
        while self._last <= horizon and len(self._changes) < MAX_CHANGES:
            self._next_block()
        return np.array([t for t in self._changes if t <= horizon][:MAX_CHANGES], dtype=np.int64)

    def _next_block(self) -> None:
        """Work out the rounds after the last block: twice as many as that had, up to a limit."""
        most = max(1, min(MAX_ROUNDS, BLOCK_SIZE // len(self._laws)))
        n_rounds = min(most, max(FEWEST_ROUNDS, 2 * (self._last - self._first)))
        first, last = self._last, self._last + n_rounds
        if len(self._shifted) == len(self._laws):
            block = Rows(*map(np.ascontiguousarray, self._shift(first, last)))
        else:
            block = Rows(*(np.tile(column, (n_rounds, 1)) for column in self._fixed))
            for array, rows in zip(block, self._shift(first, last), strict=True):
                array[:, self._shifted_arms] = rows
        for arm, law in self._changing:
            if not isinstance(law, ShiftedLaw):
                for array, column in zip(block, law.rows(first, last), strict=True):
                    array[:, arm] = column
        if len(self._changes) < MAX_CHANGES and len(self._jumping):
            self._keep_changes(first, block)
        self._first, self._last, self._block = first, last, block

    def _keep_changes(self, first: int, block: Rows) -> None:
        """Keep the rounds of the next block in which an arm jumps."""
        changed = np.zeros(len(block.means), dtype=np.bool_)
        for last_block, array in zip(self._block, block, strict=True):
            now = array if len(self._jumping) == len(self._laws) else array[:, self._jumping]
            changed[1:] |= (now[1:] != now[:-1]).any(axis=1)
            if first > 1:
                changed[0] |= (array[0] != last_block[-1])[self._jumping].any()
        self._changes += (first + np.flatnonzero(changed)).tolist()

    def _shift(self, first: int, last: int) -> Rows:
        """The laws whose means alone change, in some rounds, a column for each."""
        means = np.zeros((last - first, len(self._shifted)))
        if self._built_in:
            drawn = np.zeros((last - first, len(self._built_in)))
            keys = (*self._draws.key(CHANGE), *self._draws.key(MEAN))
            state = (self._now, *np.empty((2, last - first)))
            self._walk(first, last, *keys, self._arms, self._recipes, self._holds, self._numbers, *state, drawn)
            if len(self._built_in) == len(self._shifted):
                means = drawn
            else:
                means[:, [k for k, _ in self._built_in]] = drawn
        for (k, own), walk in zip(self._own, self._walks, strict=True):
            means[:, k] = [_own_mean(own, next(walk, None)) for _ in range(first, last)]
        if self._swinging:
            means[:, self._swinging] = swinging(np.arange(first, last)[:, None], *self._swings)
        for k, law in self._moving:
            means[:, k] = law.means(first, last)
        return self._shifting.rows(means)


def _own_mean(law: RandomLaw, mean: Any) -> float:
    """A mean that a law of the user's own gives, checked."""
    if mean is None:
        raise ArmError(f"walk() of the law {type(law).__name__} must give a mean for every round, got an end")
    check_mean(law.law, mean, f"a round of {type(law).__name__}")
    return float(mean)
