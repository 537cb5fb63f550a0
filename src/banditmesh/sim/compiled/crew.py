"""Threads that work side by side, and how they are stopped: by Ctrl-C, or when one of them fails.

The thread that waits for them runs no kernel itself, so it hears a signal at once, however much the others have to do.
Kernels look whether to stop; what compiles them does not, so it is ended by an exception, as Ctrl-C would end it in the
main thread: what is compiled is lost, and files are whole or not there.
"""

from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import Any, Final, TypeVar

import numpy as np

from .kernels.layout import Int64s

#: How often the waiting thread has a look, in seconds.
LOOK_SECONDS: Final = 0.1

T = TypeVar("T")


class Stopped(Exception):
    """Work that was given up because it was asked to stop; it never leaves the crew."""


class _Ended(BaseException):
    """What ends a thread that does not look whether to stop; like `KeyboardInterrupt` it is no error to be handled."""


class _Busy:
    """The threads that are at work, and how to end what they do."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._threads: set[int] = set()

    def do(self, job: Callable[[], T]) -> T:
        """Do a job in this thread."""
        with self._lock:
            self._threads.add(threading.get_ident())
        try:
            return job()
        finally:
            with self._lock:
                self._threads.discard(threading.get_ident())

    def end(self) -> None:
        """Raise `_Ended` in every thread that is at work, as soon as it runs Python."""
        with self._lock:
            for thread in self._threads:
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(_Ended))


@contextmanager
def _dropped_in_silence() -> Iterator[None]:
    """Say nothing of a thread that is ended in a function that C has called, which drops exceptions: it ends later."""
    before = sys.unraisablehook

    def look(dropped: Any) -> None:
        if dropped.exc_type is not _Ended:
            before(dropped)

    sys.unraisablehook = look
    try:
        yield
    finally:
        sys.unraisablehook = before


class Stop:
    """A request to stop, for Python and kernels alike.

    Examples
    --------
    >>> stop = Stop()
    >>> stop.check()
    >>> stop.set()
    >>> stop.flag.tolist()
    [1]
    """

    def __init__(self) -> None:
        #: What kernels look at: not 0 once they must return.
        self.flag: Int64s = np.zeros(1, dtype=np.int64)

    def set(self) -> None:
        """Ask for it."""
        self.flag[0] = 1

    def check(self) -> None:
        """Give up here if it was asked for: between two kernels, and whenever one may have returned early."""
        if self.flag[0]:
            raise Stopped


def work(jobs: Iterable[Callable[[], T]], threads: int, stop: Stop, look: Callable[[], None] = lambda: None) -> list[T]:
    """What the jobs give, `threads` at a time; meanwhile this thread calls `look`.

    If one fails, or if this thread is interrupted, the others are asked to stop, and are waited for; if it is
    interrupted, what they compile is given up as well.
    """
    jobs = list(jobs)
    busy = _Busy()
    pool = ThreadPoolExecutor(max(1, min(threads, len(jobs))))
    try:
        futures = [pool.submit(busy.do, job) for job in jobs]
        pending = set(futures)
        while pending:
            finished, pending = wait(pending, timeout=LOOK_SECONDS, return_when=FIRST_EXCEPTION)
            look()
            for future in finished:
                future.result()
        return [future.result() for future in futures]
    except BaseException as error:
        stop.set()
        if isinstance(error, KeyboardInterrupt):
            with _dropped_in_silence():
                busy.end()
                pool.shutdown(wait=True, cancel_futures=True)
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def alone(job: Callable[[], T], stop: Stop) -> T:
    """What one job gives, done in another thread than this one, which may have to hear signals."""
    return work([job], 1, stop)[0]
