"""The reference engine: a loop over the stepper, with its books."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Final

import numpy as np

from .books import Books
from .run import Outcome, Run
from .stepper import Stepper

#: How long the pilot of an estimate may take, in seconds.
PILOT_SECONDS: Final = 1.0


def run_replicate(run: Run, replicate: int, advance: Callable[[], None]) -> Outcome:
    """Simulate one replicate; `advance` is called after every round."""
    books = Books(run, replicate)
    stepper = Stepper(run, replicate, books.observers)
    while stepper.t <= run.horizon:
        stepper.step()
        advance()
    return books.close()


def estimated_seconds(run: Run) -> float:
    """About how long the run will take, from its first rounds, or from the first second if that ends before.

    Traffic grows until messages are ttl hops old; then as many rounds as the slowest agent's pause are timed.
    """
    n_timed = int(run.every.max())
    rounds_a_hop = 1 if run.faults is None else 1 + run.faults.delay + math.ceil(run.faults.jitter)
    pilot = min(run.horizon, run.protocol.ttl * rounds_a_hop + n_timed)
    short = replace(run, horizon=pilot, records=np.array([pilot]), link_traffic=False, trace=False)
    times = [time.perf_counter()]

    def note() -> None:
        times.append(time.perf_counter())
        if times[-1] - times[0] > PILOT_SECONDS:
            raise _Enough

    with suppress(_Enough):
        run_replicate(short, 0, note)
    timed = times[-min(n_timed, len(times) - 1) - 1 :]
    return (timed[-1] - timed[0]) / (len(timed) - 1) * run.horizon * run.replicates


class _Enough(Exception):
    """The pilot has run for long enough."""
