"""The scalar rules, compiled. Nothing is written here: each is the Python function that the reference engine calls."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any, Final

from .... import arms, draws
from ....networks import dynamic
from ....policies.ucb import UCB
from ....protocols.flooding import ProbabilisticFlooding
from .compiling import helper, rebind, scalar

philox = scalar(draws.philox)
uniform = scalar(rebind(draws.uniform, philox=philox))
normal_quantile = scalar(draws.normal_quantile)
law_quantile = scalar(rebind(arms.law_quantile, normal_quantile=normal_quantile))
geometric_skip = scalar(draws.geometric_skip)
edge_markovian_step = helper(rebind(dynamic.edge_markovian_step, uniform=uniform, geometric_skip=geometric_skip))

#: The usual policy and the one built-in relay rule that draws. Others take their places, see `specialise`.
index_rule = scalar(UCB.index)
random_relay = scalar(ProbabilisticFlooding.relay)

_COMPILED: Final = {
    draws.philox: philox,
    draws.uniform: uniform,
    draws.normal_quantile: normal_quantile,
    draws.geometric_skip: geometric_skip,
    arms.law_quantile: law_quantile,
}


def compile_rule(rule: Callable[..., Any], _callers: tuple[object, ...] = ()) -> Any:
    """Compile a rule with the plain functions that it calls by name, such as those of `draws` or of its own module."""
    if rule in _COMPILED:
        return _COMPILED[rule]
    if not isinstance(rule, FunctionType):
        return scalar(rule)
    named = {name: rule.__globals__.get(name) for name in rule.__code__.co_names}
    callers = (*_callers, rule)
    calls = {
        name: compile_rule(value, callers)
        for name, value in named.items()
        # What calls itself, perhaps by way of others, does not compile, and numba says so.
        if isinstance(value, FunctionType) and value not in callers
    }
    return scalar(rebind(rule, **calls) if calls else rule)
