"""Where many runs are computed: here, in local processes, or on a Dask or Ray cluster.

All are `concurrent.futures.Executor`s, and any of them works wherever another does. Importing this is deliberately
cheap: a new worker process imports it before its numeric libraries, in time to keep them to one thread.
"""

from __future__ import annotations

import logging
import os
import pickle
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    CancelledError,
    Executor,
    Future,
    ProcessPoolExecutor,
    wait,
)
from contextlib import contextmanager, suppress
from itertools import islice
from multiprocessing import parent_process, resource_tracker
from multiprocessing.context import SpawnContext, SpawnProcess
from pathlib import Path
from types import ModuleType
from typing import Any, Final, TypeVar

from .. import checks
from ..errors import InputError, StudyError, need
from .cores import count_cores

T = TypeVar("T")
K = TypeVar("K")

#: More than any machine has cores.
MAX_WORKERS: Final = 10_000
_hiding: Final = threading.Lock()
_THREAD_LIMITS: Final = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


class InlineExecutor(Executor):
    """Computes a task in this process when it is submitted.

    Examples
    --------
    >>> InlineExecutor().submit(max, 1, 2).result()
    2
    """

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:  # noqa: D102
        future: Future[T] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


class RayExecutor(Executor):
    """Sends tasks to a Ray cluster; `ray` must have been initialised."""

    def __init__(self) -> None:
        import ray

        self._ray = ray

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:  # noqa: D102
        # Retries are for lost nodes; an exception of the task itself is never retried.
        future: Future[T] = self._ray.remote(max_retries=2)(fn).remote(*args, **kwargs).future()
        return future


def submit(executor: Executor, task: Callable[..., T], *args: Any) -> Future[T]:
    """A task on its way; that it cannot be sent is what `result_of` tells, and no error here."""
    try:
        return executor.submit(task, *args)
    except Exception as error:
        future: Future[T] = Future()
        future.set_exception(error)
        return future


def result_of(future: Future[T], remedy: str, lost: type[Exception] = BrokenExecutor) -> T:
    """What a task gave; that it was lost is an error of one line, which ends with what to do.

    An executor of any kind says in its own way that its workers or its scheduler are gone: of a task that never fails
    itself, `lost` is any error.
    """
    try:
        return future.result()
    except (CancelledError, lost) as error:
        name = type(error).__name__
        what = f"a task was lost with {name}: {' '.join(str(error).split())[:200]}"
        if isinstance(error, BrokenExecutor):
            what = f"a worker died, perhaps for lack of memory ({name})"
        elif isinstance(error, CancelledError):
            what = f"the executor gave up a task, perhaps because its scheduler is gone ({name})"
        raise StudyError(f"{what}; {remedy}") from error


def in_turn(
    executor: Executor,
    task: Callable[[Any], T],
    jobs: Iterable[tuple[K, Any]],
    n_workers: int,
    remedy: Callable[[], str],
) -> Iterator[tuple[K, T]]:
    """What a task that never fails itself gives for each job, a key and an argument, as soon as it is known.

    One job in work and one waiting for each worker keep them busy: what is done can be stored before much else begins.
    """
    waiting = iter(jobs)
    pending: dict[Future[T], K] = {}

    def send(n: int) -> None:
        pending.update((submit(executor, task, argument), key) for key, argument in islice(waiting, n))

    send(2 * n_workers)
    while pending:
        for future in wait(pending, return_when=FIRST_COMPLETED).done:
            yield pending.pop(future), result_of(future, remedy(), Exception)
            send(1)


@contextmanager
def open_executor(name: Executor | str | None = None, workers: int | None = None) -> Iterator[tuple[Executor, int]]:
    """An executor, and how many tasks it can work on at once.

    Parameters
    ----------
    name : Executor or str, optional
        An executor, "dask", "dask:ADDRESS", "ray" or "ray:ADDRESS"; local processes if not given.
    workers : int, optional
        How many local processes, or tasks at once on an executor that was given; by default one per core. A cluster
        given by its address has its own. None of them runs the user's script again, so that it needs no `if __name__ ==
        "__main__"`: see `lookup.own.Packed`.
    """
    if isinstance(name, Executor):
        yield name, workers or count_cores()
        return
    kind, address = read_name(name, workers)
    if kind == "processes":
        opened = _processes(workers or count_cores())
    else:
        opened = _dask(address, workers) if kind == "dask" else _ray(address, workers)
    with opened as pair:
        yield pair


@contextmanager
def executor_or_none(executor: Executor | str | None, workers: int | None) -> Iterator[Executor | None]:
    """An executor, the one that is given or one to be opened; None, for this process, if no other is asked for.

    No process is started before there is a task for it.
    """
    if executor is None and workers in (None, 1):
        yield None
        return
    with open_executor(executor, workers) as (opened, _):
        yield opened


def read_name(name: object, workers: int | None) -> tuple[str, str]:
    """The kind of an executor and its address, "" if it has none.

    Examples
    --------
    >>> read_name("dask:tcp://127.0.0.1:8786", None), read_name(None, 2)
    (('dask', 'tcp://127.0.0.1:8786'), ('processes', ''))
    """
    if name is None:
        return "processes", ""
    kind, colon, address = name.partition(":") if isinstance(name, str) else ("", "", "")
    if kind not in ("dask", "ray") or bool(colon) != bool(address):
        remedy = "; give client.get_executor()" if hasattr(name, "get_executor") else ""
        raise InputError(
            f"executor must be dask, dask:ADDRESS, ray, ray:ADDRESS or an Executor; got {checks.shown(name)}{remedy}"
        )
    if address and workers is not None:
        raise InputError(f"workers are for processes on this machine, got {workers} and a cluster's address; give one")
    return kind, address


def start_worker() -> None:
    """Prepare a process of the pool: one numeric thread, silent, ignoring Ctrl-C, and ending with its parent.

    The parent prints and handles Ctrl-C for all; a killed parent cannot tell its workers, so they watch it.
    """
    sys.stderr = open(os.devnull, "w")  # noqa: SIM115 (for as long as the process lives)
    for name in _THREAD_LIMITS:
        os.environ[name] = "1"
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_leave_with_parent, daemon=True).start()


def _leave_with_parent() -> None:
    from multiprocessing.connection import wait

    parent = parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)


@contextmanager
def _script_hidden() -> Iterator[None]:
    """Make the main module look like one without a file, which a new process does not run again."""
    with _hiding:
        script = sys.modules["__main__"]
        sys.modules["__main__"] = ModuleType("__main__")
        try:
            yield
        finally:
            sys.modules["__main__"] = script


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Hold Ctrl-C back until the end, and for good in a process started here, which would print a traceback.

    The signal is blocked in this thread, and so in the new process. Another thread may still take it, and Python then
    interrupts the main thread, perhaps before the new process has been told what to do; so the main thread only notes
    it until the end. Handlers that others have set, such as an event loop's, are left alone.
    """
    noted: list[int] = []
    usual = signal.default_int_handler
    notes = threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) is usual
    blocks = hasattr(signal, "pthread_sigmask")
    if blocks:
        # It lets interrupts through when it has started its own process.
        resource_tracker.ensure_running()
    if notes:
        signal.signal(signal.SIGINT, lambda number, _: noted.append(number))
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT}) if blocks else set()
    try:
        yield
    finally:
        if blocks:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        if notes:
            signal.signal(signal.SIGINT, usual)
        if noted:
            signal.raise_signal(signal.SIGINT)


class _Process(SpawnProcess):
    """A fresh interpreter that leaves the user's script and Ctrl-C alone."""

    @staticmethod
    def _Popen(process_obj: Any) -> Any:
        with _script_hidden(), _interrupts_held():
            return SpawnProcess._Popen(process_obj)


class _Context(SpawnContext):
    Process = _Process


class _Pool(ProcessPoolExecutor):
    """Fresh interpreters: forking a process that may already have threads can deadlock its children."""

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        """Hand a task over; on Ctrl-C, a process that this starts must already be among those to be ended."""
        with _interrupts_held():
            return super().submit(fn, *args, **kwargs)


@contextmanager
def beside(task: Callable[..., object], *args: Any) -> Iterator[None]:
    """While this is open, another process does a task, if one can be started; then it is killed, done or not.

    For what may be left undone at any point. Not in a process that is a worker itself, nor where this interpreter is
    another program's, which would be started in its place.
    """
    if parent_process() is not None or getattr(sys, "frozen", False) or "python" not in Path(sys.executable or "").name:
        yield
        return
    process = None
    try:
        # Whatever keeps it from being started, the task is left undone.
        with suppress(Exception), _interrupts_held():
            process = _Process(target=_do_as_worker, args=(pickle.dumps((task, args)),), daemon=True)
            process.start()
        yield
    finally:
        if process is not None and process.pid is not None:
            process.kill()
            process.join()


def _do_as_worker(packed: bytes) -> None:
    start_worker()
    task, args = pickle.loads(packed)
    task(*args)


@contextmanager
def _processes(workers: int) -> Iterator[tuple[Executor, int]]:
    if workers == 1:
        yield InlineExecutor(), 1
        return
    pool = _Pool(workers, mp_context=_Context(), initializer=start_worker)
    try:
        yield pool, workers
    except BaseException:
        # On an error or Ctrl-C do not wait for the chunks in progress: they are computed again another time.
        for process in list((pool._processes or {}).values()):
            process.terminate()
        pool.shutdown(wait=False, cancel_futures=True)
        raise
    pool.shutdown()


@contextmanager
def _dask(address: str, workers: int | None) -> Iterator[tuple[Executor, int]]:
    need("distributed", "dask", "the dask executor")
    with _quiet("distributed"), _dask_client(address, workers) as client:
        n_threads = sum(client.nthreads().values())
        if not n_threads:
            raise StudyError(f"the Dask scheduler at {address} has no workers; start some and run again")
        yield client.get_executor(pure=False), n_threads


@contextmanager
def _dask_client(address: str, workers: int | None) -> Iterator[Any]:
    from distributed import Client, LocalCluster

    class OwnClient(Client):  # type: ignore[misc]
        def __del__(self) -> None:
            """Do nothing: it is closed below, and one that never had a scheduler complains at length when closed."""

    if address:
        try:
            client = OwnClient(address, timeout=5, set_as_default=False)
        except (OSError, TypeError, ValueError, RuntimeError) as error:
            raise StudyError(
                f"cannot reach a Dask scheduler at {address} ({type(error).__name__}); "
                "start one, or give its address as in dask:tcp://127.0.0.1:8786"
            ) from None
        cluster = None
    else:
        # Dask sends definitions from a script along with the tasks, so its workers need not run the script.
        with _script_hidden():
            cluster = LocalCluster(
                n_workers=workers or count_cores(),
                threads_per_worker=1,
                host="127.0.0.1",
                dashboard_address=None,
            )
        client = OwnClient(cluster, set_as_default=False)
    try:
        yield client
    finally:
        client.close()
        if cluster is not None:
            cluster.close()


@contextmanager
def _quiet(name: str) -> Iterator[None]:
    """Silence a library's log: failures are reported once, as an error."""
    known = [logging.getLogger(one) for one in logging.root.manager.loggerDict if one.partition(".")[0] == name]
    were = [logger.disabled for logger in known]
    for logger in known:
        logger.disabled = True
    try:
        yield
    finally:
        for logger, was in zip(known, were, strict=True):
            logger.disabled = was


@contextmanager
def _ray(address: str, workers: int | None) -> Iterator[tuple[Executor, int]]:
    ray = need("ray", "ray", "the ray executor")
    try:
        quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
        if address:
            ray.init(address=address, **quiet)
        else:
            ray.init(num_cpus=workers or count_cores(), include_dashboard=False, **quiet)
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise StudyError(f"cannot start or reach Ray: {' '.join(str(error).split())[:200]}") from None
    try:
        yield RayExecutor(), int(ray.cluster_resources().get("CPU", 1))
    finally:
        ray.shutdown()
