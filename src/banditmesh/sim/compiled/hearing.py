"""When agents first hear of each holder of an arm, where messages are planned.

A plan says which agents learn each message, and in which hop. So of the rounds one needs to know only who makes
messages about the arm in them, until every holder has made one and it has arrived.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from ...draws import Draws
from ..run import Run
from . import crew, plans
from .crew import Stop
from .engine import delivery_of, kernels_of
from .kernels.layout import UNIT
from .packing import pack, unsupported
from .spreading import Spread
from .warmup import prepare, unknown


def first_heard(run: Run, arm: int, max_rounds: int) -> NDArray[np.int64] | None:
    """When agents first learn something of each holder of an arm, in the run's first replicate.

    Parameters
    ----------
    run : Run
        What is simulated.
    arm : int
        The arm, by number.
    max_rounds : int
        How many rounds may be simulated.

    Returns
    -------
    int array (n, 2) or None
        Rounds, ascending, each with the number of an agent that first learns of one more holder in it. None if messages
        are not planned, or if more rounds are needed.

    Examples
    --------
    >>> import banditmesh as bm
    >>> from banditmesh.sim.arguments import read_run
    >>> problem = bm.Problem.random(bm.networks.path(3), n_arms=2, per_agent=2, seed=0)
    >>> run = read_run(problem, bm.FwA(2), horizon=50, seed=0)
    >>> first_heard(run, 1, max_rounds=50).tolist()
    [[2, 1], [2, 0], [2, 2], [2, 1]]
    """
    if unsupported(run) or delivery_of(run) is not Spread or not plans.pays(run) or unknown(run) or prepare(run):
        return None
    stop = Stop()
    return crew.alone(partial(_first_heard, run, arm, max_rounds, stop), stop)


def _first_heard(run: Run, arm: int, max_rounds: int, stop: Stop) -> NDArray[np.int64] | None:
    packed = pack(run)
    rule = packed.rule(Draws(run.seed, 0))
    outlined = plans.outline(packed, rule, 1, stop)
    if outlined is None or outlined.by_rank:
        return None
    plan = plans.build(packed, rule, outlined, 1, stop)
    one = Spread(packed, kernels_of(run), 0, plan, stop)
    slots = packed.holder_slots[packed.holder_starts[arm] : packed.holder_starts[arm + 1]]
    holders, reach = run.problem.owners[slots], rule.reach
    #: Where those begin and end who learn in each hop, and who has learned of nothing yet.
    ends = UNIT * plan.records[slots, :1].astype(np.int64) + np.pad(
        plan.records[slots, 1 : 1 + reach], ((0, 0), (1, 0))
    )
    waits = np.diff(ends) > 0
    found: list[NDArray[np.int64]] = [np.empty((0, 2), dtype=np.int64)]
    while waits.any() and one.t <= run.horizon:
        if one.t > max_rounds:
            return None
        t = one.t
        one.advance(t + 1)
        made, amounts = one.messages.slots[holders], one.messages.amounts[holders]
        for hop in range(min(reach, t)):
            row = (t - hop) % reach
            # A weight may be lost on the way: then there is nothing to be learned.
            arrives = waits[:, hop] & (made[:, row] == slots) & (amounts[:, row] != 0.0)
            waits[arrives, hop] = False
            for place in np.flatnonzero(arrives):
                learners = run.problem.owners[plan.learners[ends[place, hop] : ends[place, hop + 1]]]
                found.append(np.stack([np.full_like(learners, t), learners], axis=1))
    return np.concatenate(found)
