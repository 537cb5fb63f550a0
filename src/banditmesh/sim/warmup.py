"""Compilation, brought forward: the kernels that a run needs are compiled, or read from the cache, on a tiny run."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

import numpy as np
from numba.core import event
from numba.core.errors import NumbaError

from ..arms import Bernoulli, Beta, Gaussian, Law
from ..networks.csr import Links
from ..networks.dynamic import EdgeMarkovian
from ..problem import Problem
from . import compiled
from .kernels.special import Kernels
from .packing import traits
from .plans import pays
from .run import Run

_ready: set[Any] = set()


def prepare(run: Run) -> str | None:
    """Make the run's kernels ready; why they do not compile, or None if they do."""
    kind = _kind(run)
    if kind in _ready:
        return None
    try:
        with announced(run):
            compiled.run_all(_tiny(run), 1, lambda _: None)
    except NumbaError as error:
        cause = " ".join(str(error).split())
        index, relay = f"the index of {run.policies[0].name!r}", f"the relay rule of {run.protocol.name!r}"
        return f"{index}, {relay} or the emission {run.protocol.emission.name!r} does not compile ({cause[:200]})"
    _ready.add(kind)
    return None


def announced(run: Run) -> AbstractContextManager[None]:
    """While this is open, whatever is compiled is announced, once."""
    is_built_in = compiled.kernels_of(run).is_built_in
    notice = _Notice("the engine, once on this machine" if is_built_in else "your rule, once in this process")
    listening: AbstractContextManager[None] = event.install_listener("numba:compile", notice)
    return listening


def is_prompt(run: Run) -> bool:
    """Whether the run's kernels come from the cache or are ready, so that they need not be compiled first."""
    return compiled.kernels_of(run).is_built_in or _kind(run) in _ready


def _kind(run: Run) -> tuple[Kernels, str, bool, bool]:
    by_plan = pays(run) or run.protocol.ttl == 0
    delivery = "merge" if run.protocol.merges else "walk" if traits(run).walks else "plan" if by_plan else "spread"
    return compiled.kernels_of(run), delivery, run.problem.is_dynamic, traits(run).has_tape


def _tiny(run: Run) -> Run:
    """The same kind of run with two agents, long enough that a plan is made where one is possible."""
    links = Links.from_pairs(2, [(0, 1)])
    network: Any = EdgeMarkovian(links, 0.5, 0.5) if run.problem.is_dynamic else links
    # Laws that lead to the same kernels: by the published rules a coin needs the walk; beta needs a tape.
    laws: list[Law] = [Bernoulli(0.5) if traits(run).walks else Gaussian(0.0, 1.0)]
    laws += [Beta(2.0, 2.0)] * traits(run).has_tape
    return replace(
        run,
        problem=Problem(network, [range(len(laws))] * 2, laws),
        policies=run.policies[:1] * 2,
        horizon=4,
        replicates=1,
        every=np.ones(2, dtype=np.int64),
        tape=None,
        records=np.array([4]),
        # Link traffic is counted without a plan.
        link_traffic=not pays(run),
    )


class _Notice:
    """Says, once, that something is compiled; reading from the cache is no event."""

    def __init__(self, what: str) -> None:
        self._what: str | None = what

    def notify(self, event: Any) -> None:
        """A compilation begins or ends."""
        if event.is_start and self._what is not None:
            message = f"banditmesh: compiling {self._what}; this takes about ten seconds ..."
            print(message, file=sys.stderr, flush=True)
            self._what = None


event.Listener.register(_Notice)
