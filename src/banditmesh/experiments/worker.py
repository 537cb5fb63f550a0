"""What a worker does: simulate the runs of a chunk and hand them back as one Parquet shard, as bytes.

Importing this is cheap on purpose: a new worker process imports it before its numeric libraries, in time to keep
them to one thread. A shard is a pure function of its chunk, so it does not matter which worker computes it, or when.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import pyarrow as pa

    from ..problem import Problem
    from ..sim.result import Result

_THREAD_LIMITS: Final = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


@dataclass(frozen=True)
class Work:
    """The runs of one point that belong to a chunk: their numbers in the study, replicates and seeds."""

    point: int
    settings: Mapping[str, Any]
    labels: Mapping[str, Any]
    runs: Sequence[tuple[int, int, int]]


@dataclass(frozen=True)
class Chunk:
    """What a worker is given.

    Attributes
    ----------
    number : int
        Which chunk of the study.
    work : sequence of Work
        The runs.
    columns : mapping from str to str
        The label columns and their types.
    networks : mapping
        Networks that were read from files, by the name that the spec gives them.
    record_every : int
        Which rounds are kept for the curves; 0 for none.
    digest : str
        The study's fingerprint, written into the shard.
    """

    number: int
    work: Sequence[Work]
    columns: Mapping[str, str]
    networks: Mapping[str, Any]
    record_every: int
    digest: str


@dataclass(frozen=True)
class Shard:
    """What a worker hands back: the Parquet file as bytes, and what the parent wants to know without reading it."""

    number: int
    content: bytes
    n_runs: int
    errors: Sequence[str]
    seconds: float


def start_worker() -> None:
    """Prepare a process of the pool: one numeric thread, silent, deaf to Ctrl-C, and gone when its parent is.

    The parent speaks and answers Ctrl-C for all; a parent that was killed cannot tell its workers, so they watch it.
    """
    sys.stderr = open(os.devnull, "w")  # noqa: SIM115 (for as long as the process lives)
    for name in _THREAD_LIMITS:
        os.environ[name] = "1"
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_leave_with_parent, daemon=True).start()


def _leave_with_parent() -> None:
    from multiprocessing import parent_process
    from multiprocessing.connection import wait

    parent = parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)


def run_chunk(chunk: Chunk) -> Shard:
    """Simulate a chunk. A run that fails is kept as a row with its error, and the others go on."""
    began = time.perf_counter()
    rows: list[dict[str, Any]] = []
    for work in chunk.work:
        rows += _run_point(chunk, work)
    errors = [row["error"] for row in rows if row["error"] is not None]
    seconds = time.perf_counter() - began
    content = _to_parquet(rows, chunk, len(errors), seconds)
    return Shard(chunk.number, content, len(rows), errors, seconds)


def _run_point(chunk: Chunk, work: Work) -> list[dict[str, Any]]:
    from .faults import build_faults
    from .parts import build_policy, build_protocol

    settings = work.settings
    rows = []
    for run, replicate, seed in work.runs:
        row: dict[str, Any] = {"run": run, "point": work.point, "replicate": replicate, "seed": seed, "error": None}
        row |= work.labels
        try:
            result = _simulate(
                _problem(chunk, work),
                build_protocol(settings),
                policy=build_policy(settings),
                horizon=settings["horizon"],
                seed=seed,
                rules=settings["rules"],
                engine=settings["engine"],
                every=settings["every"],
                faults=build_faults(settings["faults"]),
                record_every=chunk.record_every or settings["horizon"],
                progress=False,
            )
            row |= _outcome(result, bool(chunk.record_every))
        except Exception as error:  # whatever goes wrong in a run is that run's result
            row["error"] = f"{type(error).__name__}: {' '.join(str(error).split())}"
        rows.append(row)
    return rows


def _simulate(*arguments: Any, **settings: Any) -> Result:
    from ..sim.engine import simulate

    # One thread for each worker: the workers already share the machine.
    return simulate(*arguments, threads=1, **settings)


_LATEST: dict[str, Problem] = {}


def _problem(chunk: Chunk, work: Work) -> Problem:
    """The problem of a point; the latest is kept, since neighbouring points often share it."""
    import json

    from .parts import build_problem

    named = {table: work.settings[table] for table in ("network", "dynamics", "arms")}
    key = f"{chunk.digest} {json.dumps(named, sort_keys=True)}"
    if key not in _LATEST:
        problem = build_problem(work.settings, chunk.networks)
        _LATEST.clear()
        _LATEST[key] = problem
    return _LATEST[key]


def _outcome(result: Result, with_curves: bool) -> dict[str, Any]:
    row: dict[str, Any] = {"regret": float(result.regret[0, -1]), "messages": int(result.messages[0, -1])}
    row |= {name: int(totals[0]) for name, totals in result.traffic.items()}
    if with_curves:
        row["rounds"] = result.rounds
        row["regret_curve"] = result.regret[0]
        row["messages_curve"] = result.messages[0]
    return row


@cache
def _schema(columns: tuple[tuple[str, str], ...]) -> pa.Schema:
    import pyarrow as pa

    from ..sim.run import TRAFFIC

    types = {"string": pa.string(), "bool": pa.bool_(), "int64": pa.int64(), "double": pa.float64()}
    fields = [(name, pa.int64()) for name in ("run", "point", "replicate", "seed")]
    fields += [(name, types[kind]) for name, kind in columns]
    fields += [("regret", pa.float64()), ("messages", pa.int64())]
    fields += [(name, pa.int64()) for name in TRAFFIC]
    fields += [("error", pa.string()), ("rounds", pa.list_(pa.int64()))]
    fields += [("regret_curve", pa.list_(pa.float64())), ("messages_curve", pa.list_(pa.int64()))]
    return pa.schema(fields)


def _to_parquet(rows: list[dict[str, Any]], chunk: Chunk, n_failed: int, seconds: float) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    about = {"study": chunk.digest, "chunk": str(chunk.number), "failed": str(n_failed), "seconds": f"{seconds:.6f}"}
    schema = _schema(tuple(chunk.columns.items())).with_metadata({f"banditmesh.{k}": v for k, v in about.items()})
    table = pa.Table.from_pylist(rows, schema=schema)
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd", write_page_checksum=True)
    return bytes(sink.getvalue().to_pybytes())
