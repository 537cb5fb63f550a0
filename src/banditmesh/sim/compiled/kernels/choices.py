"""How the arm with the highest index is found where an index takes long: by two numbers that it lies between.

First a number is written for each arm that its index is not above, by a loop without a branch, which becomes vector
instructions. The arm for which it is highest is looked at more closely: it gets a *bracket* of two numbers, cheap as
well, and all arms whose bound is below the lower one are ruled out. Mostly no other is left.

Bounds and brackets belong to one index function: a policy with another one has none, and all of its indices are worked
out. That an index lies where they say must hold of the numbers that are computed, roundings included; `klucb` and
`thompson` say why. In their functions `place` says where the scores of an arm are. It is unsigned, and so are slots and
numbers of arms: see `pulls`. `agents.widths[slot]` is the sigma of an arm's law, or `COIN`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any, Final

import numpy as np

from ....arms import BERNOULLI
from ....policies import KLUCB, ThompsonSampling
from . import klucb, thompson
from .compiling import helper, rebind
from .forgetting import BY_MEMORY
from .layout import COIN, FIRST_TANGENT, ONE, SCORES, Agents, Floats, Int64s, State
from .pulls import highest_score
from .replaying import CHOOSING, is_open

#: Those of one policy; others take their places, see `choices_by`.
are_equal, bracket, index_of = klucb.are_equal, klucb.bracket, klucb.index_of


@helper
def n_not_below(least: float, place: np.uint64, n_arms: np.uint64, scores: Floats) -> np.uint64:
    """How many of an agent's indices are not surely below a number."""
    n = np.uint64(0)
    for j in range(n_arms):
        n += np.uint64(0) if scores[SCORES, place + j] < least else ONE
    return n


@helper
def highest_of_brackets(
    first: np.uint64,
    place: np.uint64,
    n_arms: np.uint64,
    clock: float,
    parameter: float,
    agents: Agents,
    state: State,
) -> np.uint64:
    """The position of an agent's arm with the highest index, the first of equals; its bounds are from `place` on.

    Arms are looked at whose bound is not below what the best one's index is at least; a bound that is no number rules
    out nothing. Only where brackets do not tell which of two is higher are the indices themselves worked out.
    """
    scores = state.scores
    likely = highest_score(first, place, n_arms, clock, parameter, agents, state)
    position: np.uint64 = likely
    low = high = -math.inf
    n_left = n_arms + ONE
    for turn in range(n_arms + ONE):
        # The arm with the highest bound comes first: it rules out most of the others.
        j = likely if turn == 0 else np.uint64(turn) - ONE
        is_out = not is_open(first + j, state.logged) or scores[SCORES, place + j] < low
        if is_out or (turn > 0 and j == likely):
            continue
        n_left -= ONE
        slot, best = first + j, first + position
        if turn > 0 and are_equal(slot, best, agents, state):
            position = min(position, j)
            continue
        own_low, own_high = bracket(slot, place + j, clock, parameter, agents, state)
        if own_high < low:
            continue
        if own_low <= high and own_low < own_high:
            own_low = own_high = index_of(slot, place + j, clock, parameter, agents, state)
        if own_low <= high and low < high:
            low = high = index_of(best, place + position, clock, parameter, agents, state)
        if own_low > high or (own_low == high and j < position):
            position, low, high = j, own_low, own_high
        if turn == 0:
            n_left = n_not_below(low, place, n_arms, scores) - ONE
        if n_left == 0:
            break
    return position


#: The module of bounds and brackets, by index function.
CHOICES: Final[dict[Callable[..., float], Any]] = {KLUCB.index: klucb, ThompsonSampling.index: thompson}


@cache
def choices_by(index: Callable[..., float], memory: str, replays: bool) -> tuple[Any, Any]:
    """What takes the places of `pulls.write_indices` and `pulls.highest_score`, for an index and a kind of memory.

    Where rewards are replayed, the choice is among the arms that are not used up.
    """
    module: Any = CHOICES[index]
    names = {name: getattr(module, name) for name in ("are_equal", "write_bounds", "bracket", "index_of")}
    reading = {name: BY_MEMORY[memory][name] for name in ("count_of", "root_of") if name in BY_MEMORY[memory]}
    if reading:
        for name, compiling in module.READING.items():
            names[name] = reading[name] = compiling(rebind(getattr(module, name), **reading))
    write_bounds = names.pop("write_bounds")
    names |= CHOOSING if replays else {}
    return write_bounds, helper(rebind(highest_of_brackets, **names))


def widths_of(index: Callable[..., float], sigmas: Floats, laws: Int64s) -> Floats:
    """The slots' widths, from their arms' sigmas and laws; none if this index has no bounds."""
    return np.where(laws == BERNOULLI, COIN, sigmas) if index in CHOICES else np.zeros(0)


def needs_tangents(index: Callable[..., float]) -> bool:
    """Whether bounds on this index are made of what was noted."""
    return index is KLUCB.index


def looks_again(index: Callable[..., float]) -> bool:
    """Whether some bounds on this index are worked out twice."""
    return index is ThompsonSampling.index


def first_tangents(index: Callable[..., float], n_slots: int) -> Floats:
    """Bounds as they are before an index is known."""
    tangents = np.zeros((3, n_slots if needs_tangents(index) else 0))
    tangents[0] = FIRST_TANGENT
    return tangents
