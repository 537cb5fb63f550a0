"""Kernels for a user's own rules: the same loops, with the user's functions in the place of the built-in ones."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

from . import emissions, pulls, rounds, spread, walk
from .compiling import helper, rebind, scalar, uncached
from .scalars import index_rule, random_relay


class Kernels(NamedTuple):
    """The kernels that depend on a policy's index, on a relay rule that draws, or on an emission."""

    run_rounds: Any
    walk_rounds: Any


BUILT_IN = Kernels(rounds.run_rounds, walk.walk_rounds)


@lru_cache(maxsize=32)
def specialise(
    index: Callable[..., float], relay: Callable[..., int] | None, sends: Callable[..., bool] | None
) -> Kernels:
    """The kernels for a policy's `index`, a `relay` that draws (None if it does not) and a user's emission, if any.

    Those of the built-in rules are cached on disk; a user's own are compiled once in a process.
    """
    if index is index_rule.py_func and relay in (None, random_relay.py_func) and sends is None:
        return BUILT_IN
    relays = scalar(relay) if relay is not None else random_relay
    sending = scalar(sends) if sends is not None else emissions.own_sends
    pull_agents = helper(rebind(pulls.pull_agents, index_rule=scalar(index)))
    emit = helper(rebind(emissions.emit, own_sends=sending))
    spreads = helper(rebind(spread.spread, random_relay=relays))
    return Kernels(
        run_rounds=uncached(rebind(rounds.run_rounds, pull_agents=pull_agents, emit=emit, spread=spreads)),
        walk_rounds=uncached(rebind(walk.walk_rounds, pull_agents=pull_agents, emit=emit, random_relay=relays)),
    )
