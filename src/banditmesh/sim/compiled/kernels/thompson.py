"""Bounds and brackets of the index of `ThompsonSampling`, for `choices`. `scores[DRAWS]` holds the arms' draws."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from ....draws import GREATEST_UNIFORM, normal_quantile
from ....policies import ThompsonSampling
from ....policies.thompson import beta_shapes, gamma_attempt, gamma_variate, generator_of
from .compiling import helper, routine
from .forgetting import count_of, root_of
from .lanes import padded
from .layout import (
    CHANCE,
    COIN,
    COUNT,
    DRAWS,
    INVERSE,
    NORMAL,
    ONE,
    OTHER_CHANCE,
    OTHER_NORMAL,
    OTHERS,
    PAIR,
    ROOT,
    SCORES,
    TOTAL,
    ZERO,
    Agents,
    Floats,
    State,
)
from .scalars import compile_rule, inlined_uniform

_N_PARTS: Final = 2048
#: No normal quantile of a draw is farther from 0.
_FARTHEST: Final = normal_quantile(GREATEST_UNIFORM) + 1e-9
#: What is taken off a coin's bound where little is sure: far more than indices are below 0, and exact to 1e-9.
_UNSURE: Final = 1e6
#: Sums that were given or changed may be of any size; beyond this nothing is said of them. Counts are below 2^31.
_MAX_D: Final = 1e9
#: The second stream of a key, and the second draw or attempt.
SECOND: Any = np.int64(1)

index_rule = compile_rule(ThompsonSampling.index)
#: What reads counts, and how it is compiled: for `choices`, which binds it to other memories.
READING: Final = {
    "write_normal_bounds": routine,
    "write_beta_bounds": routine,
    "write_bounds": helper,
    "index_of": helper,
    "bracket": helper,
}
attempt_rule = compile_rule(gamma_attempt)
variate_rule = compile_rule(gamma_variate)
inlined_shapes = helper(beta_shapes)
inlined_generator = helper(generator_of)


def _quantiles_above() -> Floats:
    """For each part of the unit interval a number that no normal quantile in it is above.

    In the first and the last part, where the quantile has no end, it is infinite.
    """
    quantiles = np.full(_N_PARTS, math.inf)
    for part in range(1, _N_PARTS - 1):
        # The quantile rises, and is computed with a relative error of about 1e-16.
        quantiles[part] = normal_quantile((part + 1) / _N_PARTS) + 1e-9
    return quantiles


QUANTILES_ABOVE: Final = _quantiles_above()


@helper
def quantile_above(u: float) -> float:
    """A number that the normal quantile of `u`, as computed, is not above. That of 1 - u is as far below 0."""
    above: float = QUANTILES_ABOVE[np.uint32(np.int32(u * _N_PARTS))]
    return above


@helper
def far(above: float) -> float:
    """From `quantile_above`, a number at least as far from 0 as the quantile, and on the same side.

    No part is wider than this. Within 0.002 of 0 it may be on the other side, which does not matter there.
    """
    return above if above > 1e-3 else 1.07 * above - 2e-3


@routine
def write_normal_bounds(
    row: int, first: Any, n_arms: Any, root: float, widths: Floats, pairs: Floats, scores: Floats
) -> None:
    """Write bounds on the indices of other arms than coins to a row of the scores.

    The quantile in the index is replaced by one that is not below it. Products with a number that is not negative, and
    sums, keep that order when they are rounded.
    """
    for j in range(n_arms):
        slot = first + j
        weight = pairs[PAIR * slot]
        bound = widths[slot] * root_of(weight, root) * quantile_above(scores[DRAWS, j])
        scores[row, j] = pairs[PAIR * slot + ONE] / weight + bound


@routine
def draw_for_gammas(n_arms: Any, scores: Floats) -> None:
    """Draw, for each arm, what decides the first attempts at the two Gamma variates of `beta_variate`."""
    for j in range(n_arms):
        k0, k1 = inlined_generator(scores[DRAWS, j])
        scores[NORMAL, j] = inlined_uniform(k0, k1, ZERO, ZERO, ZERO, ZERO)
        scores[CHANCE, j] = inlined_uniform(k0, k1, ZERO, ZERO, SECOND, ZERO)
        scores[OTHER_NORMAL, j] = inlined_uniform(k0, k1, ZERO, SECOND, ZERO, ZERO)
        scores[OTHER_CHANCE, j] = inlined_uniform(k0, k1, ZERO, SECOND, SECOND, ZERO)


@helper
def is_accepted(d: float, root: float, q: float, w: float) -> bool:
    """Whether an attempt is surely accepted whose normal quantile x lies between 0 and `q`; `root` is that of d.

    It is if log(w) is below h = x^2 / 2 + d (1 - v + log(v)), where v = (1 + z)^3 and z = x / (3 root). Now h / d is -3
    times the integral from 0 to z of s^3 / (1 + s), and 1 / (1 + s) lies below its chord 1 - s / (1 + z): so h is at
    least -x^4 / (108 d) (1 + z / 5) / (1 + z), which is farther from 0 the farther x is. And -log(w) is at least
    e + e^2 / 2 + e^3 / 3 for e = 1 - w. Roundings of h are below 1e-5, as d is below `_MAX_D`; others are far below
    what the last factor allows for.
    """
    e = 1.0 - w
    chance = e * (1.0 + e * (0.5 + e * (1.0 / 3.0))) - 1e-5
    third = root + q * (1.0 / 3.0)
    square = q * q
    is_low = square * square * (root + q * (1.0 / 15.0)) < chance * (108.0 * (1.0 - 1e-5) * d) * third
    return is_low & (third > 0.01 * root) & (d < _MAX_D)


@routine
def write_beta_bounds(first: Any, n_arms: Any, inverse: float, widths: Floats, pairs: Floats, scores: Floats) -> None:
    """Write bounds on coins' indices x / (x + y): x is at most, and y at least, what the first attempt at it may give.

    A variate d (1 + q / (3 root))^3, for the root of d, is (root + q / 3)^3 / root. It rises with q and, where q is
    below 6 root, with d. The sum of a coin's rewards and mean times count differ by a few roundings, hence the ones are
    taken a little above, the zeros a little below. (By a memory that discounts, both are products with one over a
    weight: four roundings of 1.2e-16 each, where 1e-15 allows for eight.) What is left of roundings is far below the
    last factor, since root + q / 3 is not below a hundredth of root; where it may be, the 1e-9 in `_FARTHEST` are far
    more. Nothing asks for counts of at least 1: an arm without ones, or without zeros, has a d of 2/3, the least.

    Where it is not sure that an attempt is accepted, a later one may take any quantile. Such a bound is far above most
    indices, and written less `_UNSURE`, so that it is not taken for the highest: see `limit_of`. Bounds of others than
    coins come from a row of their own: a loop that reads what it writes becomes no vector instructions.
    """
    for j in range(n_arms):
        slot = first + j
        count, total = count_of(pairs[PAIR * slot], inverse), count_of(pairs[PAIR * slot + ONE], inverse)
        d = max(total * (1.0 + 1e-15), 0.0) + 2.0 / 3.0
        other_d = max(count - total - 1e-15 * count, 0.0) + 2.0 / 3.0
        root, other_root = math.sqrt(d), math.sqrt(other_d)
        most, minus_least = quantile_above(scores[NORMAL, j]), quantile_above(1.0 - scores[OTHER_NORMAL, j])
        is_sure = is_accepted(d, root, far(most), scores[CHANCE, j])
        is_other_sure = is_accepted(other_d, other_root, -far(minus_least), scores[OTHER_CHANCE, j])
        most, minus_least = most if is_sure else _FARTHEST, minus_least if is_other_sure else _FARTHEST
        bound = beta_of(root, other_root, most, -minus_least) * (1.0 + 1e-11)
        bound = bound if is_sure & is_other_sure else bound - _UNSURE
        scores[SCORES, j] = bound if widths[slot] == COIN else scores[OTHERS, j]


@helper
def beta_of(root: float, other_root: float, q: float, other_q: float) -> float:
    """What two Gamma variates give, from the roots of their d and from their normal quantiles."""
    x, y = root + q * (1.0 / 3.0), max(other_root + other_q * (1.0 / 3.0), 0.0)
    x, y = x * x * x * other_root, y * y * y * root
    return x / (x + y)


@helper
def write_bounds(
    first: np.uint64, n_slots: np.uint64, clock: float, parameter: float, agents: Agents, state: State
) -> None:
    """Write the bounds of `n_slots` slots, and of some beyond, see `lanes`."""
    widths, pairs, scores = agents.widths, state.pairs, state.scores
    n_written = padded(first, n_slots, len(agents.arms))
    n_coins = np.uint64(0)
    for j in range(n_slots):
        n_coins += ONE if widths[first + j] == COIN else np.uint64(0)
    if n_coins < n_slots:
        row = np.int64(OTHERS if n_coins > 0 else SCORES)
        write_normal_bounds(row, first, n_written, state.now[ROOT], widths, pairs, scores)
    if n_coins > 0:
        draw_for_gammas(n_written, scores)
        write_beta_bounds(first, n_written, state.now[INVERSE], widths, pairs, scores)


@helper
def limit_of(score: float) -> float:
    """What an index is not above: the score, or a coin's bound that was written less `_UNSURE`."""
    return score + (_UNSURE + 1e-9) if score < -0.5 * _UNSURE else score


@helper
def are_equal(slot: np.uint64, other: np.uint64, agents: Agents, state: State) -> bool:
    """Every arm has a draw of its own: that the same was seen of two says nothing."""
    return False


@helper
def bracket(
    slot: np.uint64, place: np.uint64, clock: float, parameter: float, agents: Agents, state: State
) -> tuple[float, float]:
    """Two numbers that a slot's index lies between: the bound, and one that is made like it.

    Where the bound is infinite or no number, or a coin's attempts are not surely accepted, the index itself is both.
    """
    scores, width, high = state.scores, agents.widths[slot], state.scores[SCORES, place]
    weight, inverse = state.sums[slot, COUNT], state.now[INVERSE]
    if not high < math.inf or (width == COIN and high < 0.0):
        low = high = index_of(slot, place, clock, parameter, agents, state)
    elif width != COIN:
        mean = state.sums[slot, TOTAL] / weight
        low = mean + width * root_of(weight, state.now[ROOT]) * -quantile_above(1.0 - scores[DRAWS, place])
    else:
        count, total = count_of(weight, inverse), count_of(state.sums[slot, TOTAL], inverse)
        zeros = max(count - total * (1.0 - 1e-15) + 1e-15 * count, 0.0)
        root, other_root = math.sqrt(max(total * (1.0 - 1e-15), 0.0) + 2.0 / 3.0), math.sqrt(zeros + 2.0 / 3.0)
        least, most = -quantile_above(1.0 - scores[NORMAL, place]), quantile_above(scores[OTHER_NORMAL, place])
        low = beta_of(root, other_root, least, most) * (1.0 - 1e-11)
    return low, high


@helper
def index_of(slot: np.uint64, place: np.uint64, clock: float, parameter: float, agents: Agents, state: State) -> float:
    """The index of a slot. Of a coin, attempts after the first are drawn if that fails."""
    scores, arm, weight = state.scores, agents.arms[slot], state.sums[slot, COUNT]
    mean, count = state.sums[slot, TOTAL] / weight, count_of(weight, state.now[INVERSE])
    if agents.widths[slot] != COIN:
        normal: float = index_rule(
            mean,
            count,
            root_of(weight, state.now[ROOT]),
            clock,
            agents.sigmas[arm],
            agents.law_code[arm],
            scores[DRAWS, place],
            parameter,
        )
        return normal
    a, b = inlined_shapes(mean, count)
    x = attempt_rule(a, scores[NORMAL, place], scores[CHANCE, place])
    y = attempt_rule(b, scores[OTHER_NORMAL, place], scores[OTHER_CHANCE, place])
    if x == 0.0 or y == 0.0:
        k0, k1 = inlined_generator(scores[DRAWS, place])
        x = variate_rule(a, k0, k1, ZERO, SECOND) if x == 0.0 else x
        y = variate_rule(b, k0, k1, SECOND, SECOND) if y == 0.0 else y
    index: float = x / (x + y)
    return index
