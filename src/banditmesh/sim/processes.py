"""Replicates of the reference engine side by side: in processes of their own, or on an executor of the user's own.

Rules kept here: what a replicate gives depends on the run and its number alone, so results are the same for any number
of workers, in whatever order they finish. Events are traced in this process, since they are handed on in order. What
cannot be sent to another process runs in this one, with a warning.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from concurrent.futures import Executor, as_completed
from contextlib import AbstractContextManager
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from .. import checks
from ..errors import InputError, warn
from ..lookup import own
from ..machine.executors import MAX_WORKERS, executor_or_none, result_of, submit
from .reference import run_replicate
from .run import Outcome, Run
from .watching import Curve, Watch


def read_workers(workers: object) -> int | Executor:
    """How many processes, or which executor; this process alone if not given."""
    if isinstance(workers, Executor):
        return workers
    return 1 if workers is None else checks.integer("workers", workers, at_least=1, at_most=MAX_WORKERS)


def open_workers(workers: int | Executor) -> AbstractContextManager[Executor | None]:
    """What runs replicates, also of several runs; None for this process."""
    if isinstance(workers, Executor):
        return executor_or_none(workers, None)
    return executor_or_none(None, workers)


def run_all(run: Run, workers: int | Executor, advance: Callable[..., None], watch: Watch) -> list[Outcome]:
    """All replicates; `advance` is called with the number of rounds that are done, of whole replicates elsewhere."""
    replicates = range(run.replicates)
    outcomes: dict[int, Outcome] = {}
    with open_workers(workers) as executor:
        packed = None if executor is None or run.trace or run.replicates == 1 else _packed(run)
        if executor is None or packed is None:
            return [run_replicate(run, replicate, advance, watch) for replicate in replicates]
        futures = {submit(executor, _run_there, packed, one, *_arrays(run, one)): one for one in replicates}
        try:
            for future in as_completed(futures):
                outcome = result_of(future, "run again with fewer workers")
                outcomes[futures[future]] = outcome
                watch.begin(futures[future], Curve.whole(outcome.regret, outcome.transmissions))
                advance(run.horizon)
                watch.look()
        except BaseException:
            for future in futures:
                future.cancel()
            raise
    return [outcomes[replicate] for replicate in replicates]


def _packed(run: Run) -> own.Packed | None:
    """The run for another process; None, with a warning, if it cannot be sent."""
    packed = own.Packed(replace(run, tape=None, means=None))
    try:
        packed.pack()
    except InputError as error:
        warn(f"all replicates run in this process, one after the other: {error}")
        return None
    return packed


def _arrays(run: Run, replicate: int) -> list[NDArray[np.float64] | None]:
    """A replicate's part of tape and means."""
    given = (run.tape, run.means)
    return [one if one is None or len(one) == 1 else one[replicate : replicate + 1] for one in given]


def _run_there(
    packed: own.Packed, replicate: int, tape: NDArray[np.float64] | None, means: NDArray[np.float64] | None
) -> Outcome:
    """One replicate in another process."""
    try:
        return run_replicate(replace(packed.unpack(), tape=tape, means=means), replicate, lambda: None)
    except Exception as error:
        try:
            pickle.loads(pickle.dumps(error))
        except Exception:  # a class of a script's own, say
            raise InputError(f"a replicate failed with {own.in_words(error)}") from None
        raise
