"""A kernel that is compiled by a second process while this one compiles others: in a process, numba does one at a time.

The second process leaves the kernel in the cache, where this one finds it. Nothing depends on that: whatever it does
not do, this process does itself.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from ...arms import Gaussian
from ...draws import Draws
from ...machine.cores import count_cores
from ...networks.csr import Links
from ...policies import UCB
from ...problem import Problem
from ...protocols import FwA
from ...rules import SOUND
from ..run import Run
from . import plans
from .crew import Stop
from .kernels import cache
from .kernels.planning import plan_slots
from .packing import pack


@contextlib.contextmanager
def planning() -> Iterator[bool]:
    """While this is open, another process compiles what makes plans, if that is worth it; gives whether one does."""
    if not _is_worth_it():
        yield False
        return
    # The same package is found in the same place, and no file of the user's is run.
    code = f"import sys; sys.path[:] = {sys.path!r}; from {__name__} import make_small_plan; make_small_plan()"
    nothing = subprocess.DEVNULL
    try:
        process = subprocess.Popen([sys.executable, "-c", code], stdin=nothing, stdout=nothing, stderr=nothing)
    except OSError:
        yield False
        return
    try:
        yield True
    finally:
        # By now the kernel is here, whoever compiled it.
        process.kill()
        process.wait()


def make_small_plan() -> None:
    """Make the plan of two agents, so that the kernel for it is compiled."""
    run = Run(
        problem=Problem(Links.from_pairs(2, [(0, 1)]), [[0], [0]], [Gaussian(0.0, 1.0)]),
        protocol=FwA(1),
        policies=(UCB(), UCB()),
        rules=SOUND,
        horizon=1,
        replicates=1,
        seed=0,
        every=np.ones(2, dtype=np.int64),
        tape=None,
        records=np.ones(1, dtype=np.int64),
        link_traffic=False,
        trace=False,
    )
    packed, stop = pack(run), Stop()
    rule = packed.rule(Draws(run.seed, 0))
    outline = plans.outline(packed, rule, 1, stop)
    assert outline is not None
    plans.build(packed, rule, outline, 1, stop)


def _is_worth_it() -> bool:
    """Whether the kernel must be compiled, and another process could, on another core."""
    if plan_slots.signatures or cache.has_some(plan_slots) is not False or count_cores() == 1:
        return False
    # Those who start several processes have no core to spare. An application that holds its own interpreter names
    # itself as the executable.
    is_alone = multiprocessing.parent_process() is None
    return is_alone and Path(sys.executable or "").name.startswith("python") and not hasattr(sys, "frozen")
