"""The reference engine: a loop over the stepper, with its books."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np

from .books import Books, Traffic
from .run import Outcome, Run
from .stepper import Stepper
from .watching import Watch

#: How long the pilot of an estimate may take, in seconds.
PILOT_SECONDS: Final = 1.0


def run_replicate(run: Run, replicate: int, advance: Callable[[], None], watch: Watch | None = None) -> Outcome:
    """Simulate one replicate; `advance` is called after every round, and so is `watch`."""
    watching = watch or Watch(run.records, run.replicates, None)
    books = Books(run, replicate)
    watching.begin(replicate, books.curve)
    stepper = Stepper(run, replicate, books.observers)
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

    Traffic grows until messages are ttl hops old; then as many rounds as the slowest agent's pause are looked at.
    """
    n_looked_at = int(run.every.max())
    rounds_a_hop = 1 if run.faults is None else 1 + run.faults.delay + math.ceil(run.faults.jitter)
    pilot = min(run.horizon, run.protocol.most_hops * rounds_a_hop + n_looked_at)
    short = replace(run, horizon=pilot, records=np.array([pilot]), link_traffic=False, trace=False)
    traffic = Traffic(short)
    stepper = Stepper(short, 0, [traffic])
    seen = [_Cost(time.perf_counter(), 0.0)]
    while stepper.t <= pilot and seen[-1].seconds - seen[0].seconds <= PILOT_SECONDS:
        stepper.step()
        seen.append(_Cost(time.perf_counter(), float(traffic.n_sent)))
    n_looked_at = min(n_looked_at, len(seen) - 1)
    before, after = seen[-1 - n_looked_at], seen[-1]
    n_times = run.horizon * run.replicates / n_looked_at
    return _Cost((after.seconds - before.seconds) * n_times, (after.n_sent - before.n_sent) * n_times)
