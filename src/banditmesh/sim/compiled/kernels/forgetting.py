"""What a memory changes in a round: how counts are read, what is added to which sums, and what a new round does to it.

The first functions are those of agents that forget nothing; they are bound to the kernels as they are written, and
leave nothing behind in them. The others take their places, see `BY_MEMORY` and `specialise`.

By `Discount` every stored weight and sum is in the scale of the round under way: those of agents, what others said of
theirs, and what messages hold that are under way. So a round that has another scale begins with a product by a power of
two, after which all is as ever; `State.now` says what a weight is to be divided by when it is read.

By `Window` there are sums for each block beside those of all that counts, which are summed anew when a block begins.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from ....policies.discount import FLOOR, discounted_age, scale_of, weight_of
from .compiling import helper, routine, scalar
from .layout import (
    BLOCK,
    COUNT,
    INVERSE,
    ROOT,
    TOTAL,
    UNIT_WEIGHT,
    Agents,
    Floats,
    Keys,
    Known,
    Merged,
    Messages,
    Pulls,
    State,
)

scale_rule = scalar(scale_of)
weight_rule = scalar(weight_of)
age_rule = scalar(discounted_age)


@helper
def count_of(weight: float, inverse: float) -> float:
    """How many observations a weight stands for."""
    return weight


@helper
def root_of(weight: float, root: float) -> float:
    """One over the root of that."""
    return 1.0 / math.sqrt(weight)


@helper
def handed(count: float) -> Any:
    """A count as an index is given it."""
    return np.int64(count)


@helper
def age_of(t: int, keys: Keys) -> Any:
    """What clocks read in place of a round."""
    return t


@helper
def begin_round(t: int, agents: Agents, keys: Keys, state: State, pulls: Pulls) -> None:
    """Round `t` begins for some agents."""


@helper
def begin_heard(t: int, keys: Keys, messages: Messages, known: Known) -> None:
    """Round `t` begins for messages that are under way, and for what is known of others."""


@helper
def begin_merged(t: int, keys: Keys, merged: Merged) -> None:
    """Round `t` begins for what neighbours in a tree said and were told."""


@helper
def count_pull(v: int, slot: Any, reward: float, state: State, pulls: Pulls) -> None:
    """Agent v was paid a reward: it counts at once, and will be told."""
    state.sums[slot, COUNT] += 1.0
    state.sums[slot, TOTAL] += reward
    pulls.rewards[v] = reward


@helper
def block_of(made: int, t: int, keys: Keys) -> int:
    """The place of the block that an observation of round `made` counts in, in round `t`; -1 if it no longer counts."""
    return 0


@helper
def enter(slot: Any, amount: float, reward: float, block: int, sums: Floats, blocks: Floats) -> None:
    """An agent hears of a reward, or of several."""
    sums[slot, COUNT] += amount
    sums[slot, TOTAL] += reward


@helper
def add_own(slot: Any, amount: float, state: State) -> None:
    """A pull was added to the agent's own sum; its count is kept anyway."""


@helper
def first_unknown(v: int, first: np.uint64, n_arms: np.uint64, state: State) -> np.uint64:
    """The position of the arm that v pulls because nothing is known of it; the number of arms if there is none."""
    return n_arms


@helper
def least_pulled_unknown(v: int, first: np.uint64, n_arms: np.uint64, state: State) -> np.uint64:
    """In the place of `first_unknown`: of unknown arms the one least often pulled, the first of equals.

    An agent that knows all of its arms is not looked at again before it may have lost one: its `n_pulls`, which ends at
    the number of its arms, is one more until then. See `look_again`, and `restart`, which begins first pulls anew.
    """
    found = n_arms
    if np.uint64(state.n_pulls[v]) == n_arms:
        sums, own_counts = state.sums, state.pulls
        for j in range(n_arms):
            if sums[first + j, COUNT] == 0.0 and (found == n_arms or own_counts[first + j] < own_counts[first + found]):
                found = np.uint64(j)
        if found == n_arms:
            state.n_pulls[v] += 1
    return found


@helper
def look_again(agents: Agents, state: State, pulls: Pulls) -> None:
    """Agents may have lost all that they knew of an arm."""
    for v in range(pulls.first, pulls.last):
        state.n_pulls[v] = min(state.n_pulls[v], agents.offsets[v + 1] - agents.offsets[v])


@helper
def discounted_count(weight: float, inverse: float) -> float:
    """In the place of `count_of`."""
    return weight * inverse


@helper
def discounted_root(weight: float, root: float) -> float:
    """In the place of `root_of`."""
    return (1.0 / math.sqrt(weight)) * root


@helper
def handed_whole(count: float) -> Any:
    """In the place of `handed`: a sum of weights is no integer."""
    return count


@helper
def discounted(t: int, keys: Keys) -> Any:
    """In the place of `age_of`."""
    return age_rule(t, keys.gamma)


@routine
def factor_in(t: int, rate: float) -> float:
    """What weights are multiplied by when round `t` begins: 1, or a power of two that is less."""
    factor = 1.0
    for _ in range(scale_rule(t - 1, rate), scale_rule(t, rate)):
        factor *= 0.5
    return factor


@helper
def fade(weights: Floats, totals: Floats, place: Any, factor: float) -> None:
    """A weight and its sum go over to a later scale, as `policies.discount.faded` says."""
    weight = weights[place] * factor
    is_kept = weight >= FLOOR
    weights[place] = weight if is_kept else 0.0
    totals[place] = totals[place] * factor if is_kept else 0.0


@routine
def fade_agents(t: int, agents: Agents, keys: Keys, state: State, pulls: Pulls) -> None:
    """In the place of `begin_round`."""
    unit = weight_rule(t, keys.rate)
    state.now[UNIT_WEIGHT], state.now[INVERSE], state.now[ROOT] = unit, 1.0 / unit, math.sqrt(unit)
    factor = factor_in(t, keys.rate)
    if factor == 1.0:
        return
    weights, totals = state.sums[:, COUNT], state.sums[:, TOTAL]
    own_weights, own_totals, sent_weights = state.own_weights, state.own_totals, state.sent_weights
    look_again(agents, state, pulls)
    for slot in range(agents.offsets[pulls.first], agents.offsets[pulls.last]):
        fade(weights, totals, slot, factor)
        if len(own_weights) > 0:
            fade(own_weights, own_totals, slot, factor)
            sent_weights[slot] *= factor
            state.sent_totals[slot] *= factor
            if len(state.echoes_left) > 0 and own_weights[slot] == 0.0:
                state.echoes_left[slot] = 0


@routine
def fade_heard(t: int, keys: Keys, messages: Messages, known: Known) -> None:
    """In the place of `begin_heard`."""
    factor = factor_in(t, keys.rate)
    if factor == 1.0:
        return
    for v in range(len(messages.amounts)):
        for row in range(messages.amounts.shape[1]):
            fade(messages.amounts[v], messages.rewards[v], row, factor)
    for place in range(len(known.counts)):
        fade(known.counts, known.totals, place, factor)


@routine
def fade_merged(t: int, keys: Keys, merged: Merged) -> None:
    """In the place of `begin_merged`. Told weights are only scaled: the floor must not make news of nothing."""
    factor = factor_in(t, keys.rate)
    if factor == 1.0:
        return
    for link in range(len(merged.told_counts)):
        for arm in range(merged.told_counts.shape[1]):
            fade(merged.told_counts[link], merged.told_totals[link], arm, factor)
            merged.sent_counts[link, arm] *= factor


@helper
def count_discounted(v: int, slot: Any, reward: float, state: State, pulls: Pulls) -> None:
    """In the place of `count_pull`: the reward counts, and will be told, with the weight of the round."""
    unit = state.now[UNIT_WEIGHT]
    state.sums[slot, COUNT] += unit
    state.sums[slot, TOTAL] += unit * reward
    pulls.amounts[v] = unit
    pulls.rewards[v] = unit * reward


@helper
def add_own_weight(slot: Any, amount: float, state: State) -> None:
    """In the place of `add_own`."""
    state.own_weights[slot] += amount


@helper
def windowed(t: int, keys: Keys) -> Any:
    """In the place of `age_of`."""
    return max(np.int64(1), min(np.int64(t), np.int64(keys.window)))


@helper
def place_of_block(made: int, t: int, keys: Keys) -> int:
    """In the place of `block_of`."""
    block = (made - 1) // keys.block_rounds
    return block % keys.n_blocks if block > (t - 1) // keys.block_rounds - keys.n_blocks else -1


@routine
def begin_block(t: int, agents: Agents, keys: Keys, state: State, pulls: Pulls) -> None:
    """In the place of `begin_round`."""
    block, sums, blocks = (t - 1) // keys.block_rounds, state.sums, state.blocks
    now = block % keys.n_blocks
    state.now[BLOCK] = now
    if (t - 1) % keys.block_rounds != 0:
        return
    look_again(agents, state, pulls)
    for slot in range(agents.offsets[pulls.first], agents.offsets[pulls.last]):
        blocks[slot, now, COUNT] = blocks[slot, now, TOTAL] = 0.0
        count = total = 0.0
        # Oldest first; places behind this one that no block has been in yet are empty.
        for step in range(1, keys.n_blocks):
            place = (now + step) % keys.n_blocks
            count += blocks[slot, place, COUNT]
            total += blocks[slot, place, TOTAL]
        sums[slot, COUNT] = count
        sums[slot, TOTAL] = total


@helper
def enter_block(slot: Any, amount: float, reward: float, block: int, sums: Floats, blocks: Floats) -> None:
    """In the place of `enter`."""
    blocks[slot, block, COUNT] += amount
    blocks[slot, block, TOTAL] += reward
    sums[slot, COUNT] += amount
    sums[slot, TOTAL] += reward


@helper
def count_in_block(v: int, slot: Any, reward: float, state: State, pulls: Pulls) -> None:
    """In the place of `count_pull`."""
    enter_block(slot, 1.0, reward, int(state.now[BLOCK]), state.sums, state.blocks)
    pulls.rewards[v] = reward


_UNKNOWN: Final = {"first_unknown": least_pulled_unknown}
#: What takes the places of the first functions, by the kind of memory; "unknown" if only first pulls differ.
BY_MEMORY: Final[dict[str, dict[str, Any]]] = {
    "": {},
    "unknown": _UNKNOWN,
    "discount": {
        **_UNKNOWN,
        "count_of": discounted_count,
        "root_of": discounted_root,
        "handed": handed_whole,
        "age_of": discounted,
        "begin_round": fade_agents,
        "begin_heard": fade_heard,
        "begin_merged": fade_merged,
        "count_pull": count_discounted,
        "add_own": add_own_weight,
    },
    "window": {
        **_UNKNOWN,
        "age_of": windowed,
        "begin_round": begin_block,
        "count_pull": count_in_block,
        "block_of": place_of_block,
        "enter": enter_block,
    },
}
