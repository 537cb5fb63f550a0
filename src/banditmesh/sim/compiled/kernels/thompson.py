"""Bounds and brackets of the index of `ThompsonSampling`, for `choices`. `scores[DRAWS]` holds the arms' draws."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from ....draws import normal_quantile
from ....policies import ThompsonSampling
from ....policies.thompson import MAX_ATTEMPTS, beta_shapes, gamma_attempt, gamma_variate, generator_of
from .compiling import helper, lowest_bit, routine
from .forgetting import count_of, root_of
from .lanes import padded
from .layout import (
    CHANCE,
    COIN,
    COUNT,
    DRAWS,
    INVERSE,
    NO_BITS,
    NORMAL,
    ONE,
    OTHER_CHANCE,
    OTHER_NORMAL,
    OTHERS,
    PAIR,
    PLACES,
    ROOT,
    SCORES,
    TOTAL,
    WORDS,
    ZERO,
    ZERO_SLOT,
    Agents,
    Floats,
    State,
)
from .scalars import compile_rule, inlined_uniform, uniform

_N_PARTS: Final = 2048
#: What a coin's score is until it is looked at again, where a first attempt is not surely accepted: the one at the
#: ones, the one at the zeros, or both. Bounds are above 0.
UNSURE, OTHER_UNSURE, BOTH_UNSURE = -1.0, -2.0, -3.0
#: Sums that were given or changed may be of any size; beyond this nothing is said of them. Counts are below 2^31.
_MAX_D: Final = 1e9
#: The second stream of a key, and the second draw or attempt.
SECOND: Any = np.int64(1)
LAST: Any = np.int64(MAX_ATTEMPTS - 1)

index_rule = compile_rule(ThompsonSampling.index)
#: What reads counts, and how it is compiled: for `choices`, which binds it to other memories.
READING: Final = {
    "write_normal_bounds": routine,
    "shapes_of": helper,
    "write_beta_bounds": routine,
    "draw_again": routine,
    "draw_on": routine,
    "look_again": helper,
    "write_bounds": helper,
    "index_of": helper,
    "bracket": helper,
}
attempt_rule = compile_rule(gamma_attempt)
variate_rule = compile_rule(gamma_variate)
quantile_rule = compile_rule(normal_quantile)
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
#: No quantile in the first or the last part is nearer to 0.
_END: Final = normal_quantile(1.0 - 1.0 / _N_PARTS) - 1e-9


@helper
def quantile_above(u: float) -> float:
    """A number that the normal quantile of `u`, as computed, is not above. That of 1 - u is as far below 0."""
    above: float = QUANTILES_ABOVE[np.uint32(np.int32(u * _N_PARTS))]
    return above


@helper
def far(above: float) -> float:
    """From `quantile_above`, a number at least as far from 0 as the quantile, and on the same side.

    No part is wider than this. Within 0.03 of 0 that may not be so, which does not matter there.
    """
    return min(above, 1.07 * above - 2e-3)


@helper
def near(u: float) -> float:
    """A number that is at most as far from 0 as the normal quantile of `u`, and on the same side, or 0."""
    above, below = quantile_above(u), -quantile_above(1.0 - u)
    return min(above, 0.0) + max(below, 0.0) if abs(u - 0.5) < 0.5 - 1.0 / _N_PARTS else math.copysign(_END, u - 0.5)


@helper
def end(u: float) -> float:
    """A number at least as far from 0 as the normal quantile of `u`, and on the same side: closer than `far`.

    Within 0.03 of 0 that may not be so, either.
    """
    above: float = quantile_above(u)
    below: float = -quantile_above(1.0 - u)
    return above if above > 0.0 else below


@helper
def reach(u: float) -> float:
    """The same, and in the first and the last part the quantile itself."""
    q: float = end(u)
    return q if abs(q) < math.inf else quantile_rule(u)


@routine
def write_normal_bounds(first: Any, n_arms: Any, root: float, widths: Floats, pairs: Floats, scores: Floats) -> None:
    """Write bounds on the indices of other arms than coins, to a row of their own.

    The quantile in the index is replaced by one that is not below it. Products with a number that is not negative, and
    sums, keep that order when they are rounded.
    """
    for j in range(n_arms):
        slot = first + j
        weight = pairs[PAIR * slot]
        bound = widths[slot] * root_of(weight, root) * quantile_above(scores[DRAWS, j])
        scores[OTHERS, j] = pairs[PAIR * slot + ONE] / weight + bound


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
def is_sizeable(d: float, root: float, q: float) -> bool:
    """Whether something can be said of a variate: it is not too near to 0, and d not so large that roundings count."""
    return (root + q * (1.0 / 3.0) > 0.01 * root) & (d < _MAX_D)


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
    return bool(is_low & is_sizeable(d, root, q))


@helper
def passes(d: float, root: float, q: float, w: float) -> bool:
    """The same as `is_accepted`, with sharper bounds that take longer: surely accepted, or nothing is said.

    Times x^4 / (108 d), -h is a mean of 1 / (1 + s) by the weight s^3, for s from 0 to z. Lobatto's rule with the nodes
    0, 5 z / 7 and z, and the weights 1 / 75, 49 / 75 and 1 / 3, is not below this mean, since the fourth derivative is
    positive. Each of its terms by x^4 is the greater the farther x is from 0. And -log(w) is the integral of
    1 / (1 - s) from 0 to e = 1 - w, for the same reason not below Gauss's rule with two nodes,
    3 e (2 - e) / (6 - 6 e + e^2).
    """
    e = 1.0 - w
    chance = (3.0 * e * (2.0 - e) - 6e-5) * (108.0 * (1.0 - 1e-5) * d)
    square = q * q
    z, third = root + q * (5.0 / 21.0), root + q * (1.0 / 3.0)
    least = square * square * (d + q * (root * (32.0 / 105.0) + q * (1.0 / 945.0))) * (6.0 - e * (6.0 - e))
    return bool((least < chance * (z * third)) & is_sizeable(d, root, q))


@helper
def is_rejected(d: float, root: float, q: float, w: float) -> bool:
    """Whether an attempt surely fails whose normal quantile is at least as far from 0 as `q`, on the same side.

    It does if log(w) is not below h, which is then not above its value at `q`: see `passes`. The mean of 1 / (1 + s) is
    not below Gauss's rule with two nodes, the zeros of 21 s^2 - 30 z s + 10 z^2, and -log(w) not above Simpson's rule,
    e (12 w + e^2) / (6 w (1 + w)). Besides, the attempt must fail the first test of `gamma_attempt`. Or 1 + z is below
    0; the last number is more than what d may be wrong by, see `write_beta_bounds`.
    """
    e = 1.0 - w
    chance = e * (12.0 * w + e * e) + 12e-5
    square = q * q
    fourth = square * square
    two = d + q * (root * (10.0 / 21.0) + q * (10.0 / 189.0))
    most = 6.0 * w * (1.0 + w) * fourth * (root * (root + q * (22.0 / 105.0)))
    is_high = most > chance * (108.0 * (1.0 + 1e-5) * d) * two
    return (e < 0.033 * fourth) & (is_high | (root + q * (1.0 / 3.0) < -1e-5 * root)) & (d < _MAX_D)


@helper
def shapes_of(slot: Any, inverse: float, pairs: Floats) -> tuple[float, float]:
    """The d of a coin's two Gamma variates: of the ones not below, of the zeros not above what the index takes."""
    count, total = count_of(pairs[PAIR * slot], inverse), count_of(pairs[PAIR * slot + ONE], inverse)
    ones, zeros = total * (1.0 + 1e-15), count - total - 1e-15 * count
    return max(ones, 0.0) + 2.0 / 3.0, max(zeros, 0.0) + 2.0 / 3.0


@routine
def write_beta_bounds(first: Any, n_arms: Any, inverse: float, pairs: Floats, scores: Floats) -> None:
    """Write bounds on coins' indices x / (x + y): x is at most, and y at least, what the first attempt at it may give.

    A variate d (1 + q / (3 root))^3, for the root of d, is (root + q / 3)^3 / root. It rises with q and, where q is
    below 6 root, with d. The sum of a coin's rewards and mean times count differ by a few roundings, hence the ones are
    taken a little above, the zeros a little below. (By a memory that discounts, both are products with one over a
    weight: four roundings of 1.2e-16 each, where 1e-15 allows for eight.) What is left of roundings is far below the
    last factor, since root + q / 3 is not below a hundredth of root where an attempt is accepted. Nothing asks for
    counts of at least 1: an arm without ones, or without zeros, has a d of 2/3, the least.

    Where it is not sure that an attempt is accepted, a later one may take any quantile, and the score says of which of
    the two variates nothing is known: see `look_again`.
    """
    for j in range(n_arms):
        d, other_d = shapes_of(first + j, inverse, pairs)
        root, other_root = math.sqrt(d), math.sqrt(other_d)
        most, minus_least = quantile_above(scores[NORMAL, j]), quantile_above(1.0 - scores[OTHER_NORMAL, j])
        is_sure = is_accepted(d, root, far(most), scores[CHANCE, j])
        is_other_sure = is_accepted(other_d, other_root, -far(minus_least), scores[OTHER_CHANCE, j])
        bound = bound_of(root, other_root, most, -minus_least)
        unsure = (0.0 if is_sure else UNSURE) + (0.0 if is_other_sure else OTHER_UNSURE)
        scores[SCORES, j] = bound if unsure == 0.0 else unsure


@helper
def list_unsure(first: np.uint64, n_slots: np.uint64, state: State) -> np.uint64:
    """List the arms whose first attempts are not both surely accepted: their places, sums, scores and draws."""
    scores, again, pairs, again_pairs = state.scores, state.again, state.pairs, state.again_pairs
    n = np.uint64(0)
    for start in range(ZERO_SLOT, n_slots, WORDS):
        unsure = NO_BITS
        for k in range(min(WORDS, n_slots - start)):
            unsure |= ONE << k if scores[SCORES, start + k] <= UNSURE else NO_BITS
        while unsure != NO_BITS:
            j = start + np.uint64(lowest_bit(unsure))
            unsure &= unsure - ONE
            again[PLACES, n] = np.float64(j)
            again_pairs[PAIR * n] = pairs[PAIR * (first + j)]
            again_pairs[PAIR * n + ONE] = pairs[PAIR * (first + j) + ONE]
            for row in range(SCORES, OTHER_CHANCE + 1):
                again[row, n] = scores[row, j]
            n += ONE
    return n


@routine
def draw_again(n_arms: Any, inverse: float, pairs: Floats, again: Floats) -> None:
    """Draw second attempts in the place of first ones that surely fail, and write bounds where they are accepted.

    Where neither first attempt at an arm is surely accepted, only that at the ones is looked at, and no bound is
    written: such arms are few.
    """
    for i in range(n_arms):
        ones, zeros = shapes_of(i, inverse, pairs)
        unsure, u, w, other_u, other_w = (
            again[SCORES, i],
            again[NORMAL, i],
            again[CHANCE, i],
            again[OTHER_NORMAL, i],
            again[OTHER_CHANCE, i],
        )
        is_other = unsure == OTHER_UNSURE
        d, new_u, new_w = zeros if is_other else ones, other_u if is_other else u, other_w if is_other else w
        ones_root, zeros_root = math.sqrt(ones), math.sqrt(zeros)
        root = zeros_root if is_other else ones_root
        fails = is_rejected(d, root, near(new_u), new_w)
        k0, k1 = inlined_generator(again[DRAWS, i])
        stream = SECOND if is_other else ZERO
        new_u = inlined_uniform(k0, k1, SECOND, stream, ZERO, ZERO) if fails else new_u
        new_w = inlined_uniform(k0, k1, SECOND, stream, SECOND, ZERO) if fails else new_w
        is_sure = passes(d, root, end(new_u), new_w) & (unsure != BOTH_UNSURE)
        u, w = u if is_other else new_u, w if is_other else new_w
        other_u, other_w = new_u if is_other else other_u, new_w if is_other else other_w
        again[NORMAL, i], again[CHANCE, i], again[OTHER_NORMAL, i], again[OTHER_CHANCE, i] = u, w, other_u, other_w
        bound = bound_of(ones_root, zeros_root, quantile_above(u), -quantile_above(1.0 - other_u))
        again[SCORES, i] = bound if is_sure else unsure


@routine
def draw_on(i: Any, j: Any, inverse: float, scores: Floats, pairs: Floats, again: Floats) -> None:
    """Draw attempts until both of an arm's variates have an accepted one, and write the arm's bound.

    An attempt that no bound decides is worked out.
    """
    weight, unsure = pairs[PAIR * i], again[SCORES, i]
    a, b = inlined_shapes(pairs[PAIR * i + ONE] / weight, count_of(weight, inverse))
    ones, zeros = shapes_of(i, inverse, pairs)
    k0, k1 = inlined_generator(again[DRAWS, i])
    is_sure = True
    for stream in range(2):
        if unsure == (UNSURE if stream else OTHER_UNSURE):
            continue
        row, shape, d = NORMAL + 2 * stream, b if stream else a, zeros if stream else ones
        u, w, root = again[row, i], again[row + 1, i], math.sqrt(d)
        nth = ZERO if u == scores[row, j] and w == scores[row + 1, j] else SECOND
        while not passes(d, root, reach(u), w) and attempt_rule(shape, u, w) == 0.0:
            if nth == LAST:
                is_sure = False
                break
            nth += SECOND
            u = uniform(k0, k1, nth, np.int64(stream), ZERO, ZERO)
            w = uniform(k0, k1, nth, np.int64(stream), SECOND, ZERO)
        again[row, i], again[row + 1, i] = u, w
        is_sure &= is_sizeable(d, root, reach(u))
    u, other_u = again[NORMAL, i], again[OTHER_NORMAL, i]
    most, least = quantile_above(u), -quantile_above(1.0 - other_u)
    most, least = most if most < math.inf else quantile_rule(u), least if least > -math.inf else quantile_rule(other_u)
    again[SCORES, i] = bound_of(math.sqrt(ones), math.sqrt(zeros), most, least) if is_sure else math.inf


@helper
def look_again(first: np.uint64, n_slots: np.uint64, inverse: float, state: State) -> None:
    """Where first attempts are not surely accepted, find the ones that are, and write bounds.

    Their draws take the places of the first ones', so that brackets and indices are made of them as of any.
    """
    scores, again, pairs = state.scores, state.again, state.again_pairs
    n_arms = list_unsure(first, n_slots, state)
    draw_again(padded(ZERO_SLOT, n_arms, again.shape[1]), inverse, pairs, again)
    for i in range(n_arms):
        j = np.uint64(again[PLACES, i])
        if again[SCORES, i] <= UNSURE:
            draw_on(i, j, inverse, scores, pairs, again)
        scores[SCORES, j] = again[SCORES, i]
        for row in range(NORMAL, OTHER_CHANCE + 1):
            scores[row, j] = again[row, i]


@helper
def bound_of(root: float, other_root: float, most: float, least: float) -> float:
    """A number that a coin's index is not above, from bounds on its variates' quantiles, see `write_beta_bounds`."""
    bound: float = beta_of(root, other_root, most, least) * (1.0 + 1e-11)
    return bound


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
    n_coins = n_slots
    if not agents.only_coins:
        n_coins = np.uint64(0)
        for j in range(n_slots):
            n_coins += ONE if widths[first + j] == COIN else np.uint64(0)
    if n_coins < n_slots:
        write_normal_bounds(first, n_written, state.now[ROOT], widths, pairs, scores)
    if n_coins > 0:
        draw_for_gammas(n_written, scores)
        write_beta_bounds(first, n_written, state.now[INVERSE], pairs, scores)
        look_again(first, n_slots, state.now[INVERSE], state)
    if n_coins < n_slots:
        for j in range(n_slots):
            if widths[first + j] != COIN:
                scores[SCORES, j] = scores[OTHERS, j]


@helper
def are_equal(slot: np.uint64, other: np.uint64, agents: Agents, state: State) -> bool:
    """Every arm has a draw of its own: that the same was seen of two says nothing."""
    return False


@helper
def bracket(
    slot: np.uint64, place: np.uint64, clock: float, parameter: float, agents: Agents, state: State
) -> tuple[float, float]:
    """Two numbers that a slot's index lies between: the bound, and one that is made like it.

    Where one of them says nothing, the index itself is both.
    """
    scores, width, high = state.scores, agents.widths[slot], state.scores[SCORES, place]
    weight, inverse = state.sums[slot, COUNT], state.now[INVERSE]
    low, is_known = high, high < math.inf
    if width != COIN:
        mean = state.sums[slot, TOTAL] / weight
        low = mean + width * root_of(weight, state.now[ROOT]) * -quantile_above(1.0 - scores[DRAWS, place])
    elif is_known:
        count, total = count_of(weight, inverse), count_of(state.sums[slot, TOTAL], inverse)
        zeros = max(count - total * (1.0 - 1e-15) + 1e-15 * count, 0.0)
        root, other_root = math.sqrt(max(total * (1.0 - 1e-15), 0.0) + 2.0 / 3.0), math.sqrt(zeros + 2.0 / 3.0)
        least, most = -quantile_above(1.0 - scores[NORMAL, place]), quantile_above(scores[OTHER_NORMAL, place])
        low = beta_of(root, other_root, least, most) * (1.0 - 1e-11)
        is_known = low > 0.0
    if not is_known:
        low = high = index_of(slot, place, clock, parameter, agents, state)
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
