"""The first planned run on a machine: another process compiles what makes plans, while this one compiles its rounds.

Compiling holds Python's lock, so a second thread would not help. A second process that plans a small run leaves what it
compiles in the cache. Nothing depends on it: where it cannot be started, dies or comes late, this process compiles
that itself, see `turns`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

from ...draws import Draws
from ...machine.cores import count_cores
from ...machine.executors import beside
from ..run import Run
from . import plans
from .crew import Stop, alone
from .engine import delivery_of, kernels_of
from .kernels import cache
from .kernels.planning import plan_slots
from .packing import Packed, pack
from .spreading import Spread


@contextmanager
def planning_beside(small: Run) -> Iterator[None]:
    """While this is open, another process may plan a small run, whose rounds are compiled before it is open.

    Only if neither is in the cache yet: what is there is read sooner than a process starts.
    """
    kernels = kernels_of(small)
    is_planned = kernels.is_built_in and delivery_of(small) is Spread and plans.pays(small)
    if is_planned and count_cores() > 1 and all(map(cache.is_missing, (plan_slots, kernels.plan_rounds))):
        with beside(compile_planning, small):
            compile_rounds(small)
            yield
    else:
        yield


def compile_planning(run: Run) -> None:
    """Make a run's plan, and deliver by one: this compiles what does so, or reads it from the cache.

    Delivering comes first, since rounds have it as well.
    """
    packed, stop = pack(run), Stop()
    _without_messages(packed, stop).deliver(1)
    rule = packed.rule(Draws(run.seed, 0))
    outlined = plans.outline(packed, rule, 1, stop)
    assert outlined is not None
    plans.build(packed, rule, outlined, 1, stop)


def compile_rounds(run: Run) -> None:
    """Simulate a planned round before there is a plan, which compiles rounds or reads them from the cache."""
    stop = Stop()
    alone(partial(_without_messages(pack(replace(run, link_traffic=False)), stop).advance, 2), stop)


def _without_messages(packed: Packed, stop: Stop) -> Spread:
    """A replicate by a plan in which no message is sent."""
    plan = plans.make_plan(len(packed.agents.arms), packed.traits.reach)
    return Spread(packed, kernels_of(packed.run), 0, plan, stop)
