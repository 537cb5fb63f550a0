"""The reference engine: a loop over the stepper, with its books."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np

from ..machine.collection import RARELY
from .books import Books, Traffic
from .run import Outcome, Run
from .stepper import Stepper
from .watching import Watch

#: How long the pilot of an estimate may take, in seconds of CPU time.
PILOT_SECONDS: Final = 1.0
#: How many times a pilot measures the same: whatever else a machine or Python does only adds, so the least counts.
N_LOOKS: Final = 4


def run_replicate(run: Run, replicate: int, advance: Callable[[], None], watch: Watch | None = None) -> Outcome:
    """Simulate one replicate; `advance` is called after every round, and so is `watch`."""
    watching = watch or Watch(run.records, run.replicates, None)
    books = Books(run, replicate)
    watching.begin(replicate, books.curve)
    stepper = Stepper(run, replicate, books.observers)
    with RARELY:
        while stepper.t <= run.horizon:
            stepper.step()
            advance()
            watching.look()
    return books.close()


def estimated_seconds(run: Run) -> float:
    """About how long the run will take."""
    return _from_pilot(run).seconds


def expected_events(run: Run) -> float:
    """About how many copies will be sent."""
    return _from_pilot(run).n_sent


class _Cost(NamedTuple):
    seconds: float
    n_sent: float


def _from_pilot(run: Run) -> _Cost:
    """What the run will cost, from its first rounds, or from the first second if that ends before.

    Traffic grows until messages are ttl hops old; from then on, each look takes as many rounds as the slowest agent's
    pause.
    """
    n_rounds = int(run.every.max())
    rounds_a_hop = 1 if run.faults is None else 1 + run.faults.delay + math.ceil(run.faults.jitter)
    growing = run.protocol.most_hops * rounds_a_hop
    if run.faults is not None:
        growing += math.ceil(run.faults.mean_reward_delay)
    pilot = min(run.horizon, growing + N_LOOKS * n_rounds)
    short = replace(run, horizon=pilot, records=np.array([pilot]), link_traffic=False, trace=False)
    traffic = Traffic(short)
    stepper = Stepper(short, 0, [traffic])
    seen = [_Cost(time.thread_time(), 0.0)]
    while stepper.t <= pilot and seen[-1].seconds - seen[0].seconds <= PILOT_SECONDS:
        stepper.step()
        seen.append(_Cost(time.thread_time(), float(traffic.n_sent)))
    n_rounds = min(n_rounds, len(seen) - 1)
    last = len(seen) - 1 - n_rounds
    looks = [
        _Cost(seen[first + n_rounds].seconds - seen[first].seconds, seen[first + n_rounds].n_sent - seen[first].n_sent)
        for first in range(last, min(growing, last) - 1, -n_rounds)
    ]
    n_times = run.horizon * run.replicates / n_rounds
    return _Cost(min(look.seconds for look in looks) * n_times, looks[0].n_sent * n_times)
