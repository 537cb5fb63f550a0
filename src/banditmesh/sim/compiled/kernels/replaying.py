"""Rewards of a log, each used once by an agent: what a pull pays, and which arms are used up.

The first functions are those of runs without such arms; they are bound to the kernels as they are written, and leave
nothing behind in them. The others take their places, see `BY_LOG` and `specialise`. What is paid is what
`sim.replay.Walks` pays: the k-th step of a shuffle by Fisher and Yates, by a number that is drawn for agent, arm and k.
Places of a sample that have changed theirs are kept in a hash table for each agent, with a row for each pull and as
many to spare: a log may be long and agents many, and most of it is never reached.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from .compiling import helper, routine
from .forgetting import least_pulled_unknown
from .layout import COUNT, ONE, SCORES, TOTAL, ZERO, Agents, Floats, Int64s, Keys, Logged, State
from .scalars import uniform

#: Spreads keys over a table: 2^64 by the golden ratio, which is odd.
_GOLDEN: Final = np.uint64(0x9E3779B97F4A7C15)
_HALF: Final = np.uint64(32)
KEY, VALUE = 0, 1


@helper
def is_open(slot: Any, logged: Logged) -> bool:
    """Whether a slot's arm can be pulled."""
    return True


@helper
def has_stopped(first: np.uint64, n_arms: np.uint64, logged: Logged) -> bool:
    """Whether an agent has no arm left."""
    return False


@helper
def first_pull(v: int, first: np.uint64, n_arms: np.uint64, state: State) -> np.uint64:
    """The position of the arm that is v's next first pull; the number of arms, or more, if it has made them all."""
    return np.uint64(state.n_pulls[v])


@helper
def is_replayed(arm: int, logged: Logged) -> bool:
    """Whether an arm's rewards are those of a log."""
    return False


@helper
def next_logged(v: int, slot: np.uint64, arm: int, keys: Keys, logged: Logged) -> float:
    """What the next pull of a slot pays, if its arm is replayed."""
    return 0.0


@helper
def is_left(slot: Any, logged: Logged) -> bool:
    """In the place of `is_open`."""
    return bool(logged.left[slot] > 0)


@helper
def has_none_left(first: np.uint64, n_arms: np.uint64, logged: Logged) -> bool:
    """In the place of `has_stopped`."""
    j = np.uint64(0)
    while j < n_arms and not is_left(first + j, logged):
        j += ONE
    return bool(j == n_arms)


@helper
def first_pull_left(v: int, first: np.uint64, n_arms: np.uint64, state: State) -> np.uint64:
    """In the place of `first_pull`: an agent that begins anew may have used up some of its arms."""
    position = np.uint64(state.n_pulls[v])
    while position < n_arms and not is_left(first + position, state.logged):
        state.n_pulls[v] += 1
        position = np.uint64(state.n_pulls[v])
    return position


@helper
def unknown_left(v: int, first: np.uint64, n_arms: np.uint64, state: State) -> np.uint64:
    """In the place of `least_pulled_unknown`, of arms that can be pulled."""
    found = n_arms
    if np.uint64(state.n_pulls[v]) == n_arms:
        sums, own_counts = state.sums, state.pulls
        for j in range(n_arms):
            is_unknown = sums[first + j, COUNT] == 0.0 and is_left(first + j, state.logged)
            if is_unknown and (found == n_arms or own_counts[first + j] < own_counts[first + found]):
                found = np.uint64(j)
        if found == n_arms:
            state.n_pulls[v] += 1
    return found


@helper
def highest_left(
    first: np.uint64,
    place: np.uint64,
    n_arms: np.uint64,
    clock: float,
    parameter: float,
    agents: Agents,
    state: State,
) -> np.uint64:
    """In the place of `highest_score`: the first of the arms that can be pulled, unless another's score is higher."""
    scores, logged = state.scores, state.logged
    position, best = n_arms, -math.inf
    for j in range(n_arms):
        score = scores[SCORES, place + j]
        if is_left(first + j, logged) and (position == n_arms or score > best):
            # A score that is no number is higher than none, and any other is higher than it.
            position, best = np.uint64(j), score if score > best else best
    return position


@helper
def highest_mean_left(first: np.uint64, n_arms: np.uint64, sums: Floats, logged: Logged) -> np.uint64:
    """In the place of `highest_mean`."""
    position, best = n_arms, -math.inf
    for j in range(n_arms):
        mean = sums[first + j, TOTAL] / sums[first + j, COUNT]
        if is_left(first + j, logged) and (position == n_arms or mean > best):
            position, best = np.uint64(j), mean
    return position


@helper
def is_of_log(arm: int, logged: Logged) -> bool:
    """In the place of `is_replayed`."""
    return bool(logged.starts[arm] < logged.starts[arm + 1])


@routine
def row_of(v: int, key: int, room: int, moved: Int64s) -> int:
    """The row of a key in an agent's table, or the one where it belongs."""
    mask, first = np.uint64(room - 1), v * room
    at = ((np.uint64(key) * _GOLDEN) >> _HALF) & mask
    while moved[first + np.int64(at), KEY] != key and moved[first + np.int64(at), KEY] != 0:
        at = (at + ONE) & mask
    return first + int(at)


@routine
def pay_logged(v: int, slot: int, arm: int, k0: int, k1: int, logged: Logged) -> float:
    """The next reward of an agent's arm that is not used up."""
    moved, left, start = logged.moved, logged.left, logged.starts[arm]
    size = logged.starts[arm + 1] - start
    k = size - np.int64(left[slot])
    left[slot] -= 1
    room = len(moved) // logged.n_agents
    place = k + int(uniform(k0, k1, v, arm, k, ZERO) * (size - k))
    base = (slot + 1) << 32
    row, last = row_of(v, base + place, room, moved), row_of(v, base + k, room, moved)
    drawn = moved[row, VALUE] if moved[row, KEY] != 0 else place
    if place != k:
        value = moved[last, VALUE] if moved[last, KEY] != 0 else k
        moved[row, KEY] = base + place
        moved[row, VALUE] = value
    reward: float = logged.rewards[start + drawn]
    return reward


@helper
def walk_log(v: int, slot: np.uint64, arm: int, keys: Keys, logged: Logged) -> float:
    """In the place of `next_logged`."""
    reward: float = pay_logged(v, np.int64(slot), np.int64(arm), keys.draws[4], keys.draws[5], logged)
    return reward


#: What takes the places of the first functions, and of some that choose among all arms, where rewards are replayed.
BY_LOG: Final[dict[str, Any]] = {
    "has_stopped": has_none_left,
    "first_pull": first_pull_left,
    "highest_mean": highest_mean_left,
    "is_replayed": is_of_log,
    "next_logged": walk_log,
}
#: The same for the choice of an arm by brackets.
CHOOSING: Final[dict[str, Any]] = {"is_open": is_left, "highest_score": highest_left}
#: And for what a memory that may know nothing of an arm looks for.
UNKNOWN: Final[dict[Any, Any]] = {least_pulled_unknown: unknown_left}
