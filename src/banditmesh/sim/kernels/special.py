"""Kernels for a user's own rules: the same loops, with the user's functions in the place of the built-in ones."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

from . import pulls, rounds, spread, walk
from .compiling import helper, rebind, scalar, uncached
from .scalars import index_rule, random_relay


class Kernels(NamedTuple):
    """The kernels that depend on a policy's index or on a relay rule that draws."""

    run_rounds: Any
    walk_rounds: Any


BUILT_IN = Kernels(rounds.run_rounds, walk.walk_rounds)


@lru_cache(maxsize=32)
def specialise(index: Callable[..., float], relay: Callable[..., int] | None) -> Kernels:
    """The kernels for this policy's `index` and this random `relay`, None if the relay rule does not draw.

    Those of the built-in rules are cached on disk; a user's own are compiled once in a process.
    """
    if index is index_rule.py_func and relay in (None, random_relay.py_func):
        return BUILT_IN
    relays = scalar(relay) if relay is not None else random_relay
    pull_agents = helper(rebind(pulls.pull_agents, index_rule=scalar(index)))
    spreads = helper(rebind(spread.spread, random_relay=relays))
    own = {"pull_agents": pull_agents, "spread": spreads}
    return Kernels(
        run_rounds=uncached(rebind(rounds.run_rounds, **own)),
        walk_rounds=uncached(rebind(walk.walk_rounds, pull_agents=pull_agents, random_relay=relays)),
    )
