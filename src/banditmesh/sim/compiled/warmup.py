"""Compilation, brought forward, and a check: the kernels that a run needs do a small run, as the reference does.

The kernels are compiled, or read from the cache, when they do it. What they give is compared with what the reference
engine gives, bit by bit, once for each kind of kernel in a process. Kernels of built-in rules that differ are compiled
again, and the cache is removed; if that does not help, or any part of the run is a user's own, the run stays with the
reference. The cache is judged by shipped classes alone: whatever a user's class does wrong says nothing of it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final

import numpy as np
from numba.core import event
from numba.core.errors import NumbaError

from ...arms import Bernoulli, Beta, Gaussian, Law, Replay, Switching
from ...lookup import registry
from ...machine.collection import RARELY
from ...networks.csr import Links
from ...networks.dynamic import EdgeMarkovian
from ...policies import Policy
from ...problem import Problem
from ...protocols import AnyProtocol, Emission
from .. import reference
from ..run import Run
from . import engine as compiled
from . import plans
from .kernels import cache
from .kernels.identity import Undescribed
from .kernels.special import Kernels, distrust, is_built_in
from .kernels.turns import WAITING
from .packing import traits
from .planning_beside import planning_beside
from .spreading import Spread

#: What is said of a rule that fails the check.
DIFFERS: Final = "gives other numbers compiled than in Python"
#: How many rounds the small run lasts.
_HORIZON: Final = 24
_ready: set[Any] = set()
#: By kind of run, why its kernels do not compile: they are not tried again.
_failed: dict[Any, str] = {}
#: What has been said in this process, and of which kernels if they are of a user's own rules.
_said: set[tuple[str, Kernels | None]] = set()
_DURATION: Final = "this takes some seconds ..."


class Differs(str):
    """The reason why a rule cannot be used compiled if it fails the check."""


def prepare(run: Run) -> str | None:
    """Make the run's kernels ready; why they cannot be used, or None if they can."""
    if _kind(run) in _ready:
        return None
    rules = f"the index of {run.policies[0].name!r}, the relay rule of {run.protocol.name!r} or the emission"
    if _kind(run) in _failed:
        return f"{rules} {run.protocol.emission.name!r} does not compile ({_failed[_kind(run)]})"
    try:
        # Numba makes millions of objects, and looking for garbage among them took a tenth of the time.
        with RARELY, announced(run), planning_beside(_small(run)):
            equal = equals_reference(run)
            if not equal and is_built_in(compiled.rules_of(run)) and _is_shipped(run):
                _say("kernels read from the cache gave wrong numbers; they are removed and compiled again")
                distrust(compiled.rules_of(run))
                equal = equals_reference(run)
    except NumbaError as error:
        _failed[_kind(run)] = " ".join(str(error).split())[:200]
        return prepare(run)
    if not equal:
        return Differs(f"{rules} {run.protocol.emission.name!r} {DIFFERS}")
    _ready.add(_kind(run))
    return None


def _is_shipped(run: Run) -> bool:
    """Whether policy, protocol and emission are classes of this package, not just functions of theirs."""
    parts = ((Policy, run.policies[0]), (AnyProtocol, run.protocol), (Emission, run.protocol.emission))
    return all(type(one) in registry.shipped(base) for base, one in parts)


def equals_reference(run: Run) -> bool:
    """Whether the run's kernels do a small run of its kind exactly as the reference does."""
    small = _small(run)
    theirs = reference.run_replicate(small, 0, lambda *_: None)
    return all(
        np.array_equal(getattr(ours, name), getattr(theirs, name))
        # Kernels for threads that share a replicate are others.
        for ours in compiled.run_all(small, 1, lambda *_: None, threads_each=2 if _may_be_shared(run) else 1)
        for name in ("regret", "transmissions", "traffic", "pulls", *["link_traffic"] * small.link_traffic)
    )


def unknown(run: Run) -> str | None:
    """Why it would go unnoticed if a rule of the user's own changed, or None if that would be noticed."""
    try:
        compiled.kernels_of(run)
    except Undescribed as error:
        return f"a rule reads {error}; a change of that would go unnoticed"
    return None


@contextmanager
def announced(run: Run) -> Iterator[None]:
    """While this is open, whatever is compiled or waited for is announced, once in a process.

    The engine has several parts, each compiled when a run first needs it; one line speaks for all.
    """
    notice = _Notice(compiled.kernels_of(run))
    with event.install_listener("numba:compile", notice), event.install_listener(WAITING, notice):
        yield


def is_prompt(run: Run) -> bool:
    """Whether the run's kernels come from the cache or are ready, so that they need not be compiled first."""
    return compiled.kernels_of(run).is_built_in or _kind(run) in _ready


def _kind(run: Run) -> tuple[object, ...]:
    delivery = compiled.delivery_of(run)
    by_plan = delivery is Spread and (plans.pays(run) or run.protocol.most_hops == 0)
    counts_links = run.link_traffic and plans.pays(run)
    which = counts_links, run.problem.is_dynamic, traits(run).has_tape, _may_be_shared(run), run.means_change
    return compiled.kernels_of(run), delivery, by_plan, *which


def _may_be_shared(run: Run) -> bool:
    """Whether several threads may share a replicate."""
    return plans.parts_for(run, 2 * run.replicates) > 1


def _small(run: Run) -> Run:
    """The same kind of run with four agents, long enough that policies differ and a plan is made where one pays."""
    links = Links.from_pairs(4, [(0, 1), (1, 2), (2, 3)])
    network: Any = EdgeMarkovian(links, 0.5, 0.5) if run.problem.is_dynamic else links
    # Laws that lead to the same kernels: by the published rules a coin needs the walk; beta needs a tape.
    coins = {0, 1, 2} if traits(run).walks else set() if run.rules.id_is_reward else {0, 2}
    means = enumerate((0.3, 0.5, 0.7))
    laws: list[Law] = [Bernoulli(mean) if arm in coins else Gaussian(mean, 1.0) for arm, mean in means]
    if run.means_change:
        laws[0], laws[1] = (Switching(law, 0.2, 0.2, 0.8) for law in laws[:2])
    if traits(run).replays:
        laws[2] = Replay([0.0, 1.0, 1.0, 0.0, 1.0])
    laws.append(Beta(2.0, 2.0) if traits(run).has_tape else laws[2])
    return replace(
        run,
        problem=Problem(network, [[0, 1, 2], [1, 2, 3], [2, 3, 0], [0, 1]], laws),
        policies=run.policies[:1] * 4,
        horizon=_HORIZON,
        replicates=1,
        seed=0,
        every=np.ones(4, dtype=np.int64),
        tape=None,
        means=None,
        records=np.arange(1, _HORIZON + 1),
        # Without a plan the same kernels count links; by a plan, others.
        link_traffic=run.link_traffic or not plans.pays(run),
    )


def _say(line: str) -> None:
    if sys.stderr is not None:
        print(f"banditmesh: {line}", file=sys.stderr, flush=True)


class _Notice:
    """Says, once in a process, that something is compiled or waited for; reading from the cache is no event.

    Events come from all threads, so what is compiled is looked at: it may be for another run, or none of ours.
    """

    def __init__(self, kernels: Kernels) -> None:
        self._kernels = kernels

    def notify(self, event: Any) -> None:
        """A compilation, or waiting for one, begins or ends."""
        if not event.is_start:
            return
        if event.kind == WAITING:
            _say_once("waiting until another process or thread has the engine ready ...")
            return
        dispatcher = event.data["dispatcher"]
        is_ours = any(one is dispatcher for one in self._kernels)
        if cache.is_kept(dispatcher) or (is_ours and self._kernels.is_built_in):
            _say_once(f"compiling the engine for this kind of run, once on this machine; {_DURATION}")
        elif is_ours:
            _say_once(f"compiling your rule, once in this process; {_DURATION}", self._kernels)


def _say_once(line: str, subject: Kernels | None = None) -> None:
    if (line, subject) not in _said:
        _said.add((line, subject))
        _say(line)


event.Listener.register(_Notice)
