"""Bounds on the indices of policies whose index takes long: cheap numbers that no index of theirs is above.

An arm whose bound is below the index of another need not be looked at closely, so an agent of twenty arms works out one
index or two. Of each such policy there are two functions here: one writes the bounds of an agent's arms, without a
branch, so that it becomes vector instructions; the other is told every index that was worked out, and may note what
makes later bounds sharper. They belong to one index function: a policy with another one has none. That an index is not
above its bound must hold of the numbers that are computed, roundings included; each function says why.

In all of them `first` is the slot of an agent's first arm, and unsigned: see `pulls`. `widths[slot]` is the sigma of an
arm's law, or `COIN`; `pairs` are the agents' sums, see `State`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from ....arms import BERNOULLI
from ....draws import GREATEST_UNIFORM, normal_quantile
from ....policies import KLUCB, ThompsonSampling
from ....policies.thompson import TWO_POW_52, WORD
from .compiling import routine
from .layout import (
    CHANCE,
    DRAWS,
    FIRST_TANGENT,
    NORMAL,
    ONE,
    OTHER_CHANCE,
    OTHER_NORMAL,
    PAIR,
    SCORES,
    ZERO,
    Floats,
    Int64s,
)
from .scalars import inlined_uniform

#: What a coin has in the place of a sigma, which is never negative.
COIN: Final = -1.0
_N_QUANTILES: Final = 1024
#: More than all roundings of a bound by a tangent and of the index itself, see `klucb_bounds`.
_SLACK: Final = 1e-7
#: Tangents touch above a mean that is not below this.
_LEAST_MEAN: Final = 1e-4


def _quantiles_above() -> Floats:
    """For each part of the unit interval a number that no normal quantile of it, as computed, is above."""
    ends = [min((part + 1) / _N_QUANTILES, GREATEST_UNIFORM) for part in range(_N_QUANTILES)]
    # The quantile rises, and is computed with a relative error of about 1e-16.
    return np.array([normal_quantile(end) + 1e-9 for end in ends])


QUANTILES_ABOVE: Final = _quantiles_above()
#: The same, from below: the normal law is symmetric.
QUANTILES_BELOW: Final = -QUANTILES_ABOVE[::-1].copy()
#: The second stream of a key, and the second draw of an attempt.
SECOND: Any = np.int64(1)
#: Above all Gamma variates.
FAR: Final = 1e300


def klucb_bounds(
    first: Any,
    n_arms: Any,
    clock: float,
    widths: Floats,
    pairs: Floats,
    tangents: Floats,
    scores: Floats,
) -> None:
    """Bounds on the indices of `KLUCB`, by a tangent for each coin; of other laws the index itself.

    A coin's index q is the greatest with d(mean, q) <= budget. The divergence is convex in both its arguments, so q is
    concave in mean and budget, and lies below each of its tangent planes: wherever the plane touches, it is a bound for
    all means and budgets, and never has to be taken back. `tangents[:, slot]` is the last one noted, which is close as
    long as mean and budget have changed little; at first it is the constant 1.

    Computed, a tangent's slopes have relative errors of up to 1e-11, because the index may be as near to the mean as
    1e-5 (a budget is at least log 2 by the most observations, 2^31). Where a bound is at most 1, the products with
    them are below 50, so that it is wrong by less than 1e-9; the index is wrong by less than 1e-12.
    """
    other_clock = math.sqrt(2.0 * clock)
    for j in range(n_arms):
        slot = first + j
        count, width = pairs[PAIR * slot], widths[slot]
        mean = pairs[PAIR * slot + ONE] / count
        inside = min(max(mean, 0.0), 1.0)
        of_coin = tangents[0, slot] + tangents[1, slot] * inside + tangents[2, slot] * (clock / count)
        of_other = mean + width * other_clock * (1.0 / math.sqrt(count))
        scores[SCORES, j] = of_coin if width == COIN else of_other


def note_klucb(mean: float, law: int, index: float, slot: Any, tangents: Floats) -> None:
    """Note the tangent that touches at a coin's mean and index, since these change little until they are next needed.

    At a mean of 0 the plane would be vertical, and so it touches above a mean that is a little higher.
    """
    mean = max(mean, _LEAST_MEAN)
    if law == BERNOULLI and mean < index < 1.0:
        log, log_of_rest = math.log(index / mean), math.log((1.0 - mean) / (1.0 - index))
        budget = (1.0 - mean) * log_of_rest - mean * log
        by_budget = index * (1.0 - index) / (index - mean)
        by_mean = (log + log_of_rest) * by_budget
        tangents[0, slot] = index - by_mean * mean - by_budget * budget + _SLACK
        tangents[1, slot] = by_mean
        tangents[2, slot] = by_budget


def thompson_bounds(
    first: Any,
    n_arms: Any,
    clock: float,
    widths: Floats,
    pairs: Floats,
    tangents: Floats,
    scores: Floats,
) -> None:
    """Bounds on the indices of `ThompsonSampling`.

    Of a Gaussian arm the quantile in the index is replaced by one that is not below it. Products with a number that is
    not negative, and sums, keep that order when they are rounded. For a coin see `write_beta_bounds`.
    """
    n_coins = 0
    for j in range(n_arms):
        slot = first + j
        count, width = pairs[PAIR * slot], widths[slot]
        n_coins += 1 if width == COIN else 0
        quantile = QUANTILES_ABOVE[np.uint32(np.int32(scores[DRAWS, j] * _N_QUANTILES))]
        scores[SCORES, j] = pairs[PAIR * slot + ONE] / count + width * (1.0 / math.sqrt(count)) * quantile
    if n_coins > 0:
        draw_for_gammas(n_arms, scores)
        write_beta_bounds(first, n_arms, widths, pairs, scores)


@routine
def draw_for_gammas(n_arms: Any, scores: Floats) -> None:
    """Draw, for each arm, what decides the first attempts at the two Gamma variates of `beta_variate`."""
    for j in range(n_arms):
        bits = np.int64(scores[DRAWS, j] * TWO_POW_52)
        k0, k1 = bits >> WORD, bits & ((1 << WORD) - 1)
        scores[NORMAL, j] = inlined_uniform(k0, k1, ZERO, ZERO, ZERO, ZERO)
        scores[CHANCE, j] = inlined_uniform(k0, k1, ZERO, ZERO, SECOND, ZERO)
        scores[OTHER_NORMAL, j] = inlined_uniform(k0, k1, ZERO, SECOND, ZERO, ZERO)
        scores[OTHER_CHANCE, j] = inlined_uniform(k0, k1, ZERO, SECOND, SECOND, ZERO)


@routine
def write_beta_bounds(first: Any, n_arms: Any, widths: Floats, pairs: Floats, scores: Floats) -> None:
    """Write bounds on coins' indices x / (x + y): x is at most, and y at least, what the first attempt at it may give.

    A variate d (1 + c q)^3 rises with the normal quantile q, which lies between two numbers of a table; operation by
    operation that also holds when it is rounded. The attempt is accepted if its chance w is below 1 - 0.0331 q^4, or if
    log(w) is below h = q^2 / 2 + d (1 - v + log(v)). That is -(3/4) d z^4 + (3/5) d z^5 - ... for z = c q, so it is at
    least -q^4 / (108 d (1 - |z|)); and log(w) is at most w - 1. Roundings of h are far below 1e-5: d is below 2^31.

    Where it is not sure that the attempt is accepted, x is far above and y is 0, which gives 1. One more factor makes
    up for the roundings of the last division.
    """
    for other in range(2):
        drawn, chances = scores[NORMAL + 2 * other], scores[CHANCE + 2 * other]
        for j in range(n_arms):
            count = pairs[PAIR * (first + j)]
            ones = pairs[PAIR * (first + j) + ONE] / count * count
            seen = count - ones if other == 1 else ones
            d = (1.0 + seen if seen > 0.0 else 1.0) - 1.0 / 3.0
            c = 1.0 / math.sqrt(9.0 * d)
            part = np.uint32(np.int32(drawn[j] * _N_QUANTILES))
            least, most, w = QUANTILES_BELOW[part], QUANTILES_ABOVE[part], chances[j]
            farthest = max(-least, most)
            square, z = farthest * farthest, c * farthest
            by_squeeze = w < 1.0 - 0.0331 * square * square
            by_log = (w < 1.0 - square * square / (108.0 * d * (1.0 - min(z, 0.5))) - 1e-5) & (z <= 0.5)
            low, high = 1.0 + c * least, 1.0 + c * most
            is_sure = (by_squeeze | by_log) & (low > 0.0)
            at_least = d * (low * low * low) if is_sure else 0.0
            at_most = d * (high * high * high) if is_sure else FAR
            drawn[j] = at_least if other == 1 else at_most
    for j in range(n_arms):
        bound = scores[NORMAL, j] / (scores[NORMAL, j] + scores[OTHER_NORMAL, j]) * (1.0 + 1e-12)
        scores[SCORES, j] = bound if widths[first + j] == COIN else scores[SCORES, j]


def note_nothing(mean: float, law: int, index: float, slot: Any, tangents: Floats) -> None:
    """For bounds that need nothing."""


#: By index function: what writes bounds, and what is told the indices that were worked out.
BOUNDS: Final[dict[Callable[..., float], tuple[Callable[..., None], Callable[..., None]]]] = {
    KLUCB.index: (klucb_bounds, note_klucb),
    ThompsonSampling.index: (thompson_bounds, note_nothing),
}


def widths_of(index: Callable[..., float], sigmas: Floats, laws: Int64s) -> Floats:
    """The slots' widths, from their arms' sigmas and laws; none if this index has no bounds."""
    return np.where(laws == BERNOULLI, COIN, sigmas) if index in BOUNDS else np.zeros(0)


def needs_tangents(index: Callable[..., float]) -> bool:
    """Whether bounds on this index are made of what was noted."""
    return index is KLUCB.index


def first_tangents(index: Callable[..., float], n_slots: int) -> Floats:
    """Bounds as they are before an index is known."""
    tangents = np.zeros((3, n_slots if needs_tangents(index) else 0))
    tangents[0] = FIRST_TANGENT
    return tangents
