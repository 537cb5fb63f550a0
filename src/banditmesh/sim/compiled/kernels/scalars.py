"""The scalar rules, compiled. Nothing is written here: each is the Python function that the reference engine calls."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any, Final

from .... import draws
from ....arms import quantiles
from ....networks.dynamic import edge_markovian
from ....policies.ucb import UCB
from ....protocols.flooding import ProbabilisticFlooding
from .compiling import helper, own_rule, rebind, scalar

philox = scalar(draws.philox)
uniform = scalar(rebind(draws.uniform, philox=philox))
tail_quantile = scalar(draws.tail_quantile)
normal_quantile = scalar(
    rebind(draws.normal_quantile, central_quantile=scalar(draws.central_quantile), tail_quantile=tail_quantile)
)
law_reward = scalar(quantiles.law_reward)
law_quantile = scalar(rebind(quantiles.law_quantile, normal_quantile=normal_quantile, law_reward=law_reward))
geometric_skip = scalar(draws.geometric_skip)
#: For loops over many numbers: written into them, these become vector instructions.
inlined_uniform = helper(rebind(draws.uniform, philox=helper(draws.philox)))
inlined_quantile = helper(draws.central_quantile)
draw_skips = scalar(rebind(edge_markovian.draw_skips, uniform=inlined_uniform))
births = helper(rebind(edge_markovian.births, draw_skips=draw_skips))
draw_deaths = scalar(rebind(edge_markovian.draw_deaths, uniform=inlined_uniform))
join = helper(edge_markovian.join)

#: The usual policy and the one built-in relay rule that draws. Others take their places, see `specialise`.
index_rule = scalar(UCB.index)
clock_rule = scalar(UCB.clock)
random_relay = scalar(ProbabilisticFlooding.relay)

_COMPILED: Final = {
    draws.philox: philox,
    draws.uniform: uniform,
    draws.normal_quantile: normal_quantile,
    draws.geometric_skip: geometric_skip,
    quantiles.law_quantile: law_quantile,
}


def compile_rule(rule: Callable[..., Any], _callers: tuple[object, ...] = ()) -> Any:
    """Compile a rule with the plain functions that it calls by name, such as those of `draws` or of its own module."""
    if rule in _COMPILED:
        return _COMPILED[rule]
    if not isinstance(rule, FunctionType):
        return own_rule(rule)
    named = {name: rule.__globals__.get(name) for name in rule.__code__.co_names}
    callers = (*_callers, rule)
    calls = {
        name: compile_rule(value, callers)
        for name, value in named.items()
        # What calls itself, perhaps by way of others, does not compile, and numba says so.
        if isinstance(value, FunctionType) and value not in callers
    }
    return own_rule(rebind(rule, **calls) if calls else rule)
