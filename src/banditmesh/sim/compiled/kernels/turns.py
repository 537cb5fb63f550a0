"""Processes that need the same kernel at the same time take turns, so that one compiles it and the others read it.

Without that, every worker of a study would compile everything on a machine's first run, all at once and each slower
for it. A turn is a lock beside the kernel's files. Right numbers do not depend on it: where no lock can be had, or its
holder takes too long, a kernel is compiled twice.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from numba.core import event

from ....files import locks

#: How long a process waits for another one, in seconds, and how often it looks: a kernel compiles in a few seconds.
PATIENCE: Final = 60.0
_LOOK: Final = 0.05
#: Whoever waits longer than this says so: a kernel that is read takes less.
_SILENT: Final = 1.0
#: The event of waiting for another process or thread, beside numba's own for compiling.
WAITING: Final = "banditmesh:wait"


@contextlib.contextmanager
def turn(path: Path) -> Iterator[None]:
    """Hold the lock of this path, if it can be had in time: a block, or each call of a function that this decorates."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError:
        yield
        return
    try:
        if not _wait(descriptor, _SILENT):
            with event.trigger_event(WAITING):
                _wait(descriptor, PATIENCE)
        yield
    finally:
        os.close(descriptor)


def _wait(descriptor: int, seconds: float) -> bool:
    """Wait for the lock, for at most so long; whether it was had."""
    until = time.monotonic() + seconds
    while not (taken := _taken(descriptor)) and time.monotonic() < until:
        time.sleep(_LOOK)
    return taken


def _taken(descriptor: int) -> bool:
    try:
        locks.take(descriptor)
    except OSError:
        return False
    return True
