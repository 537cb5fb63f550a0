"""Kernels for rules other than the usual ones: the same loops, with other functions in the places of theirs.

The built-in policies each have kernels of their own, cached on disk; those of a user's rules are compiled in every
process.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final, NamedTuple

from ...policies import KLUCB, ThompsonSampling
from . import emissions, merge, pulls, rounds, spread, walk
from .compiling import helper, kernel, rebind, routine, uncached
from .scalars import compile_rule, index_rule, random_relay


class Kernels(NamedTuple):
    """The kernels that depend on a policy's index, on a relay rule that draws, or on an emission."""

    plan_rounds: Any
    spread_rounds: Any
    walk_rounds: Any
    merge_rounds: Any
    #: Whether they are of built-in rules alone, so that they are cached.
    is_built_in: bool


USUAL: Final = Kernels(rounds.plan_rounds, rounds.spread_rounds, walk.walk_rounds, merge.merge_rounds, is_built_in=True)
#: The policies, other than the usual one, whose kernels are cached, by their index and under their name.
_NAMES: Final = {policy.index: policy.name for policy in (KLUCB, ThompsonSampling)}


@lru_cache(maxsize=32)
def specialise(
    index: Callable[..., float], relay: Callable[..., int] | None, sends: Callable[..., bool] | None
) -> Kernels:
    """The kernels for a policy's `index`, a `relay` that draws (None if it does not) and a user's emission, if any."""
    relay_is_built_in = relay in (None, random_relay.py_func)
    if index is index_rule.py_func and relay_is_built_in and sends is None:
        return USUAL
    is_built_in = index in _NAMES and relay_is_built_in and sends is None
    relays = random_relay if relay is None or relay_is_built_in else compile_rule(relay)
    sending = emissions.own_sends if sends is None else compile_rule(sends)
    pull_agents = routine(rebind(pulls.pull_agents, index_rule=compile_rule(index)))
    sends_now = helper(rebind(emissions.sends_now, own_sends=sending))
    emit = routine(rebind(emissions.emit, sends_now=sends_now))
    decide = routine(rebind(merge.decide, sends_now=sends_now))
    spreads = helper(rebind(spread.spread, random_relay=relays))
    begin = helper(rebind(rounds.begin, pull_agents=pull_agents, emit=emit))
    plan_rounds = rebind(rounds.plan_rounds, begin=begin)
    spread_rounds = rebind(rounds.spread_rounds, begin=begin, spread=spreads)
    walk_rounds = rebind(walk.walk_rounds, pull_agents=pull_agents, emit=emit, random_relay=relays)
    merge_rounds = rebind(merge.merge_rounds, pull_agents=pull_agents, decide=decide)
    rounds_of_all = (plan_rounds, spread_rounds, walk_rounds, merge_rounds)
    if is_built_in:
        for function in rounds_of_all:
            # A cache file is named after its function: each policy has its own.
            function.__qualname__ = f"{function.__name__}_{_NAMES[index]}"
    compiling = kernel if is_built_in else uncached
    planned, spreading, walking, merging = (compiling(function) for function in rounds_of_all)
    return Kernels(planned, spreading, walking, merging, is_built_in)
