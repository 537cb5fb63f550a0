"""Processes that work for one browser: one question at a time, with progress reports, and stopped at once.

A worker is a process of its own, so that the event loop answers whatever a simulation does, and a question is given up
by ending the process: within a moment, on either engine, and whatever it was doing. Its next question begins a new
one. Processes are forked from a server that has imported what they need, where the system can do that.

No worker takes more than its part of the machine's memory, where the system can limit that, and no visitor more than a
share of the workers. Those of tabs that are gone make way when another one is needed.

A worker answers over a pipe: ("tell", value) on the way, then ("answer", value), or ("failed", line) once.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Awaitable, Callable
from multiprocessing.connection import Connection
from typing import Any, Final

from ..errors import BanditmeshError
from ..machine import memory
from ..machine.cores import count_cores

#: The most workers of all browsers together.
MAX_WORKERS: Final = 32
#: The most of one visitor.
SHARE: Final = 8
#: What a worker may take besides what it has loaded, as a part of the machine's memory, and between which limits.
MEMORY_PART: Final = 1 / 16
MIN_MEMORY: Final = 1.5 * 2**30
MAX_MEMORY: Final = 8.0 * 2**30
#: Address space that a thread reserves without using it.
_THREAD_BYTES: Final = 80.0 * 2**20
#: By how much less urgent a worker is than the page.
NICE: Final = 5
#: The most letters of an error.
MAX_LETTERS: Final = 500
#: How long an ended process may take to go, in seconds.
PATIENCE: Final = 5.0
#: What workers need, imported once in the process that they are forked from: for each of them it would take longer
#: than many a run.
_PRELOADED: Final = [
    *("matplotlib.colors", "networkx", "pandas", "scipy.sparse.csgraph", "scipy.sparse.linalg"),
    *("banditmesh.animations", "banditmesh.comparisons.compare", "banditmesh.comparisons.frontier"),
    *("banditmesh.sim.compiled.engine", "banditmesh.sim.simulation"),
    *("banditmesh.studies.case", "banditmesh.studies.reading", "banditmesh.web.desk"),
]

_running: set[Worker] = set()


class WorkError(Exception):
    """A question that a worker could not answer, in one line for the user."""


class StoppedError(Exception):
    """A question that was cancelled on request."""


def prepare() -> None:
    """Start the process that others are forked from, in the background."""
    if "forkserver" in multiprocessing.get_all_start_methods():
        from multiprocessing import forkserver

        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(_PRELOADED)
        threading.Thread(target=forkserver.ensure_running, daemon=True).start()


def stop_all() -> None:
    """End all workers, at the end of the server."""
    for worker in list(_running):
        worker.stop()


class Worker:
    """A process that answers questions, begun when it is first needed.

    Parameters
    ----------
    visitor : str
        Who it works for.
    is_wanted : callable, optional
        Whether there still is a tab that waits for it.
    """

    def __init__(self, visitor: str = "", is_wanted: Callable[[], bool] = lambda: True) -> None:
        self.visitor = visitor
        self._is_wanted = is_wanted
        self._process: Any = None
        self._pipe: Connection | None = None
        #: The question that it works on; another one as soon as that one is given up.
        self._question: object | None = None

    @property
    def is_busy(self) -> bool:
        """Whether it works on a question."""
        return self._question is not None

    async def ask(self, question: str, *given: Any, tell: Callable[[Any], None] | None = None) -> Any:
        """What the desk's method of that name gives; `tell` is called, in the event loop, with what comes before.

        Raises
        ------
        WorkError
            It failed, and why.
        StoppedError
            It was stopped.
        """
        if self.is_busy:
            raise WorkError("something else is still running; stop it first")
        mine = self._question = object()
        loop = asyncio.get_running_loop()
        try:
            pipe = self._begin()
            pipe.send((question, given))
            while True:
                kind, value = await _received(loop, pipe)
                if self._question is not mine:
                    raise StoppedError
                if kind == "tell":
                    if tell is not None:
                        tell(value)
                elif kind == "answer":
                    return value
                else:
                    raise WorkError(value)
        except (EOFError, OSError):
            if self._question is not mine:
                raise StoppedError from None
            self.stop()
            raise WorkError("the worker process ended unexpectedly; memory may have run out") from None
        finally:
            if self._question is mine:
                self._question = None

    def stop(self) -> None:
        """End the process, whatever it does; what it kept is gone, and the next question may be asked at once."""
        self._question = None
        _running.discard(self)
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            threading.Thread(target=process.join, args=(PATIENCE,), daemon=True).start()
        # The reader closes the pipe, once the process's end of it is gone.
        self._pipe = None

    def _begin(self) -> Connection:
        if self._pipe is not None and self._process is not None and self._process.is_alive():
            return self._pipe
        self._make_room()
        methods = multiprocessing.get_all_start_methods()
        context: Any = multiprocessing.get_context("forkserver" if "forkserver" in methods else "spawn")
        ours: Connection
        ours, theirs = context.Pipe()
        self._process = context.Process(target=work, args=(theirs,), daemon=True)
        self._process.start()
        theirs.close()
        self._pipe = ours
        _running.add(self)
        return ours

    def _make_room(self) -> None:
        """Refuse one worker more than there may be; those that no tab waits for go first."""
        for most, whose, mine in ((SHARE, "of yours", [self.visitor]), (MAX_WORKERS, "of all visitors", None)):
            others = [one for one in _running if one is not self and (mine is None or one.visitor in mine)]
            gone = [one for one in others if not one._is_wanted()]
            for one in gone[: max(0, len(others) + 1 - most)]:
                one.stop()
            if len(others) - len(gone) >= most:
                raise WorkError(f"{most} workers {whose} are running, which is the most; close other tabs first")


class Latest:
    """Asks again after every change, one question at a time: changes in between are asked right after.

    Parameters
    ----------
    ask : callable
        Asks for what is chosen now, and shows the answer unless it `is_outdated`.
    """

    def __init__(self, ask: Callable[[], Awaitable[None]]) -> None:
        self._ask = ask
        #: Whether a question is on its way, and whether there have been changes since.
        self.is_asking = False
        self.is_outdated = False

    async def ask(self) -> None:
        """Ask, now or right after the question that is on its way."""
        self.is_outdated = True
        if self.is_asking:
            return
        self.is_asking = True
        try:
            while self.is_outdated:
                self.is_outdated = False
                await self._ask()
        finally:
            self.is_asking = False


async def _received(loop: asyncio.AbstractEventLoop, pipe: Connection) -> tuple[str, Any]:
    """What comes next; the waiting is done in a thread, since not every system can watch a pipe."""
    future: asyncio.Future[tuple[str, Any]] = loop.create_future()

    def receive() -> None:
        try:
            result, error = pipe.recv(), None
        except (EOFError, OSError) as ended:
            result, error = None, ended
        loop.call_soon_threadsafe(_settle, future, result, error)

    threading.Thread(target=receive, daemon=True).start()
    return await future


def _settle(future: asyncio.Future[Any], result: Any, error: BaseException | None) -> None:
    if not future.done():
        if error is None:
            future.set_result(result)
        else:
            future.set_exception(error)


def _line(error: str) -> str:
    """An error in one line that can be sent and read, whatever of the user's it has in it."""
    line = " ".join(error.split())
    line = line if len(line) <= MAX_LETTERS else f"{line[:MAX_LETTERS]} ..."
    return line.encode(errors="replace").decode()


def memory_limit() -> float:
    """How many bytes a worker may take besides what it has loaded.

    Examples
    --------
    >>> MIN_MEMORY <= memory_limit() <= MAX_MEMORY
    True
    """
    return min(MAX_MEMORY, max(MIN_MEMORY, MEMORY_PART * memory.total()))


def _limit_memory() -> None:
    """Have this process fail, instead of the machine, when it takes more than its part of the memory."""
    try:
        import resource
    except ImportError:  # no such limits on this system
        return
    mapped = memory.mapped()
    if mapped is None:
        return
    most = int(mapped + memory_limit() + _THREAD_BYTES * count_cores())
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    known = [most, *(one for one in (soft, hard) if one != resource.RLIM_INFINITY)]
    resource.setrlimit(resource.RLIMIT_AS, (min(known), hard))


def work(pipe: Connection) -> None:
    """What a worker process does until its pipe is closed."""
    # Ctrl-C is the server's to hear; it ends its workers itself.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # The page and the browser that shows it come first.
    if hasattr(os, "nice"):
        os.nice(NICE)
    _limit_memory()
    from ..lookup import own
    from .desk import Desk

    # Who may use the page may not run code on its machine.
    own.refuse()
    # Warnings of a run come with its answer.
    warnings.simplefilter("ignore")
    desk = Desk(lambda value: pipe.send(("tell", value)))
    while True:
        try:
            question, given = pipe.recv()
        except (EOFError, OSError):
            return
        try:
            answer = ("answer", getattr(desk, question)(*given))
        except (BanditmeshError, OSError) as error:
            answer = ("failed", _line(str(error)))
        except MemoryError:
            answer = ("failed", "not enough memory for this; take a smaller one")
        except Exception as error:  # a defect, which must reach the user in a line and the log in full
            traceback.print_exc(file=sys.stderr)
            answer = ("failed", _line(f"unexpected {type(error).__name__}: {error}"))
        try:
            pipe.send(answer)
        except OSError:
            return
