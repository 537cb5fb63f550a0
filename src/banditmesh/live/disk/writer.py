"""The thread that a store writes in.

An executor of one thread would do, but a small transaction takes hardly more time than an executor needs to hand it
over and back: a future with a lock of its own, which is chained to the event loop's.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, Final, TypeVar

NAME: Final = "banditmesh-state"

_Result = TypeVar("_Result")
_Job = tuple[Callable[[], Any], asyncio.AbstractEventLoop, "asyncio.Future[Any]"]


class Writer:
    """A thread that does one thing after the other; it begins with the first.

    Examples
    --------
    >>> async def main(writer):
    ...     return await writer.run(lambda: threading.current_thread().name)
    >>> writer = Writer()
    >>> asyncio.run(main(writer))
    'banditmesh-state'
    >>> writer.close()
    """

    def __init__(self) -> None:
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._thread: threading.Thread | None = None

    def run(self, function: Callable[[], _Result]) -> asyncio.Future[_Result]:
        """What a function returns, or raises; once it is asked for it is called, whatever becomes of who waits."""
        if self._thread is None:
            # What it writes is whole or not there, so a program that ends without closing need not wait for it.
            self._thread = threading.Thread(target=_work, args=(self._jobs,), name=NAME, daemon=True)
            self._thread.start()
        loop = asyncio.get_running_loop()
        future: asyncio.Future[_Result] = loop.create_future()
        self._jobs.put((function, loop, future))
        return future

    def close(self) -> None:
        """Finish what was asked for, and end."""
        if self._thread is not None:
            self._jobs.put(None)
            self._thread.join()
            self._thread = None


def _work(jobs: SimpleQueue[_Job | None]) -> None:
    while (job := jobs.get()) is not None:
        function, loop, future = job
        result, error = None, None
        try:
            result = function()
        except BaseException as raised:
            error = raised
        with suppress(RuntimeError):  # the event loop is closed, so nothing waits
            loop.call_soon_threadsafe(_settle, future, result, error)


def _settle(future: asyncio.Future[Any], result: object, error: BaseException | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)
