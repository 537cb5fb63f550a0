"""Bounds and brackets of the index of `KLUCB`, for `choices`. Of other arms than coins the index itself is as cheap."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from ....arms import BERNOULLI
from ....policies import KLUCB
from .compiling import helper, routine
from .forgetting import count_of, root_of
from .lanes import padded
from .layout import COIN, COUNT, INVERSE, ONE, PAIR, ROOT, SCORES, TOTAL, Agents, Floats, State
from .scalars import compile_rule

#: More than all roundings of a bound by a tangent and of the index itself, see `write_planes`.
_SLACK: Final = 1e-7
#: Tangents touch above a mean that is not below this.
_LEAST_MEAN: Final = 1e-4
#: Tangents are for clocks that are not below this. From the second round on `KLUCB.clock` is above; another may not be.
_LEAST_CLOCK: Final = 0.5

index_rule = compile_rule(KLUCB.index)
#: What reads counts, and how it is compiled: for `choices`, which binds it to other memories.
READING: Final = {"write_planes": routine, "write_bounds": helper, "index_of": helper, "bracket": helper}


@routine
def write_planes(
    first: Any,
    n_arms: Any,
    clock: float,
    inverse: float,
    root: float,
    widths: Floats,
    pairs: Floats,
    tangents: Floats,
    scores: Floats,
) -> None:
    """Write a number for each arm that its index is not above: by a tangent for a coin, else the index itself.

    A coin's index q is the greatest with d(mean, q) <= budget. The divergence is convex in both its arguments, so q is
    concave in mean and budget, and lies below each of its tangent planes: wherever the plane touches, it is a bound for
    all means and budgets, and never has to be taken back. `tangents[:, slot]` is the last one noted, which is close as
    long as mean and budget have changed little; at first it is the constant 1. Where the clock is too low for tangents,
    nothing is known of a coin.

    Computed, a plane is wrong by about 2^-52 q (1 - q) / (q - mean). As q - mean is at least about the root of
    2 mean (1 - mean) budget, and a budget at least `_LEAST_CLOCK` by the most observations, 2^31, that is below 1e-10;
    and so is what the index is wrong by. Where a bound is at most 1, the products in it are below 50, and their
    roundings below 1e-13.

    By a memory that discounts, an observation weighs at most 1: counts have the same most, 2^31, and no least. A budget
    may then be as large as log(2^31) 2^288; products with it are finite, since no slope is above 1e8 (q - mean is at
    least about the root of 2 mean (1 - mean) budget, and tangents are for clocks, and so budgets, as above). Where they
    are large, so is the bound, and an index is at most 1: what is said of roundings is of bounds that are at most 1.
    """
    other_clock = math.sqrt(2.0 * clock)
    has_tangents = clock >= _LEAST_CLOCK
    for j in range(n_arms):
        slot = first + j
        weight, width = pairs[PAIR * slot], widths[slot]
        mean = pairs[PAIR * slot + ONE] / weight
        inside = min(max(mean, 0.0), 1.0)
        of_coin = (
            tangents[0, slot] + tangents[1, slot] * inside + tangents[2, slot] * (clock / count_of(weight, inverse))
        )
        of_other = mean + width * other_clock * root_of(weight, root)
        of_coin = of_coin if has_tangents else math.inf
        scores[SCORES, j] = of_coin if width == COIN else of_other


@helper
def write_bounds(
    first: np.uint64, n_slots: np.uint64, clock: float, parameter: float, agents: Agents, state: State
) -> None:
    """Write the bounds of `n_slots` slots, and of some beyond, see `lanes`."""
    n_written = padded(first, n_slots, len(agents.arms))
    inverse, root = state.now[INVERSE], state.now[ROOT]
    write_planes(first, n_written, clock, inverse, root, agents.widths, state.pairs, state.tangents, state.scores)


@helper
def are_equal(slot: np.uint64, other: np.uint64, agents: Agents, state: State) -> bool:
    """Whether both are coins of which the same was seen, so that their indices are equal."""
    sums, widths = state.sums, agents.widths
    are_coins = widths[slot] == COIN and widths[other] == COIN
    same_count, same_total = sums[slot, COUNT] == sums[other, COUNT], sums[slot, TOTAL] == sums[other, TOTAL]
    return bool(are_coins and same_count and same_total)


@routine
def note_tangent(mean: float, q: float, slot: Any, tangents: Floats) -> float:
    """Note the plane that touches where `q` is the index at this mean; returns the budget for which it is."""
    log, log_of_rest = math.log(q / mean), math.log((1.0 - mean) / (1.0 - q))
    budget = (1.0 - mean) * log_of_rest - mean * log
    by_budget = q * (1.0 - q) / (q - mean)
    by_mean = (log + log_of_rest) * by_budget
    tangents[0, slot] = q - by_mean * mean - by_budget * budget + _SLACK
    tangents[1, slot] = by_mean
    tangents[2, slot] = by_budget
    return budget


@routine
def bracket_coin(mean: float, budget: float, bound: float, slot: Any, tangents: Floats) -> tuple[float, float]:
    """Two numbers that a coin's index lies between, from a bound on it; a new tangent is noted, close to the index.

    Above the mean the excess g(q) = d(mean, q) - budget is convex and rises to 0 at the index. Newton's step s =
    g(b) / g'(b) from a bound b leads to a better one, b - s. Let m be the most that g'' is between b - 2 s and b. By
    Taylor, g is at most 2 m s^2 - g(b) at b - 2 s. If that is not above 0, the index is at most 2 s away from b. And
    g(b) - g'(b) x + m x^2 / 2 is not below 0 at its distance x, which is then at most s + 2 m s^2 / g'(b).

    Where that says nothing, the bracket is as wide as can be.
    """
    if _LEAST_MEAN <= mean < bound < 1.0:
        excess = note_tangent(mean, bound, slot, tangents) - budget
        by_budget = tangents[2, slot]
        step = max(0.0, excess * by_budget)
        least = bound - 2.0 * step
        curvature = mean / (least * least) + (1.0 - mean) / ((1.0 - bound) * (1.0 - bound))
        error = 2.0 * curvature * by_budget * step
        if mean < least and error <= 1.0:
            return bound - step - error * step - _SLACK, bound - step + _SLACK
    return -math.inf, math.inf


@helper
def bracket(
    slot: np.uint64, place: np.uint64, clock: float, parameter: float, agents: Agents, state: State
) -> tuple[float, float]:
    """Two numbers that a slot's index lies between; both are the index where no others are known."""
    score = state.scores[SCORES, place]
    if agents.widths[slot] != COIN:
        return score, score
    weight = state.sums[slot, COUNT]
    mean = state.sums[slot, TOTAL] / weight
    low, high = bracket_coin(mean, clock / count_of(weight, state.now[INVERSE]), score, slot, state.tangents)
    if low == -math.inf:
        low = high = index_of(slot, place, clock, parameter, agents, state)
        # At a mean of 0 the plane would be vertical, and so it touches above a mean that is a little higher.
        mean = max(mean, _LEAST_MEAN)
        if mean < low < 1.0 and clock >= _LEAST_CLOCK:
            note_tangent(mean, low, slot, state.tangents)
    return low, high


@helper
def index_of(slot: np.uint64, place: np.uint64, clock: float, parameter: float, agents: Agents, state: State) -> float:
    """The index of a slot that is a coin's."""
    weight = state.sums[slot, COUNT]
    index: float = index_rule(
        state.sums[slot, TOTAL] / weight,
        count_of(weight, state.now[INVERSE]),
        root_of(weight, state.now[ROOT]),
        clock,
        math.nan,
        BERNOULLI,
        0.0,
        parameter,
    )
    return index
