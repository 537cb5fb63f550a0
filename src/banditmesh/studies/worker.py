"""What a worker does: simulate the runs of a chunk and return them as one Parquet shard, in bytes.

A shard is a pure function of its chunk, so it does not matter which worker computes it, or when.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..problem import Problem
    from ..settings.problems import FileTable
    from ..sim.result import Result
    from .shards import Layout


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
    layout : Layout
        How the study's shards look, with the fingerprint of all that its numbers depend on.
    networks : mapping
        Networks that were read from files, by the kind and the path that the spec gives them.
    record_every : int
        Which rounds are kept for the curves; 0 for none.
    own_texts : mapping
        The users' own modules that the spec names, see `lookup.own`.
    """

    number: int
    work: Sequence[Work]
    layout: Layout
    networks: Mapping[FileTable, Any]
    record_every: int
    own_texts: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Shard:
    """What a worker returns: the Parquet file as bytes, and what the parent needs to know without reading it."""

    number: int
    content: bytes
    n_runs: int
    errors: Sequence[str]
    seconds: float
    versions: Mapping[str, str]


def run_chunk(chunk: Chunk) -> Shard:
    """Simulate a chunk. A run that fails is kept as a row with its error, and the others go on."""
    from ..lookup import own
    from .manifest import versions

    began = time.perf_counter()
    own.add_texts(chunk.own_texts)
    rows: list[dict[str, Any]] = []
    for work in chunk.work:
        rows += _run_point(chunk, work)
    errors = [row["error"] for row in rows if row["error"] is not None]
    content = chunk.layout.encode(chunk.number, rows, len(errors))
    return Shard(chunk.number, content, len(rows), errors, time.perf_counter() - began, versions())


def _run_point(chunk: Chunk, work: Work) -> list[dict[str, Any]]:
    from ..settings.parts import build_policy, build_protocol, read_faults
    from ..sim.engine import simulate
    from .shards import CHANGES_COLUMN

    settings = work.settings
    rows = []
    for run, replicate, seed in work.runs:
        row: dict[str, Any] = {"run": run, "point": work.point, "replicate": replicate, "seed": seed, "error": None}
        row |= work.labels
        try:
            problem = _problem(chunk, work)
            result = simulate(
                problem,
                build_protocol(settings),
                policy=build_policy(settings),
                horizon=settings["horizon"],
                seed=seed,
                rules=settings["rules"],
                engine=settings["engine"],
                every=settings["every"],
                trim=settings["trim"],
                faults=read_faults(settings["faults"]).effective(),
                record_every=chunk.record_every or settings["horizon"],
                progress=False,
                threads=1,  # the workers already share the machine
            )
            row |= _outcome(result, bool(chunk.record_every)) | _used_up(problem, result)
            if CHANGES_COLUMN in chunk.layout.columns:
                row[CHANGES_COLUMN] = ",".join(map(str, result.changes[0].tolist()))
        except Exception as error:  # whatever goes wrong in a run is that run's result
            row["error"] = f"{type(error).__name__}: {' '.join(str(error).split())}"
        rows.append(row)
    return rows


_latest: tuple[str, Problem] | None = None


def _problem(chunk: Chunk, work: Work) -> Problem:
    """The problem of a point; the latest is kept, since neighbouring points often share it.

    It depends on three tables, on the horizon that periods of a log are laid out over and, if the network comes from a
    file, on what the file holds, of which the layout's fingerprint is one.
    """
    global _latest
    import json

    from ..settings.problems import build_problem

    named = {table: work.settings[table] for table in ("network", "dynamics", "arms")}
    if "periods" in named["arms"]:
        named["horizon"] = work.settings["horizon"]
    key = f"{chunk.layout.fingerprint} {json.dumps(named, sort_keys=True)}"
    # Read once: on an executor of threads another one may replace it at any time.
    latest = _latest
    if latest is None or latest[0] != key:
        latest = _latest = key, build_problem(work.settings, chunk.networks)
    return latest[1]


def _used_up(problem: Problem, result: Result) -> dict[str, int]:
    """What a run has used up of a log that it replays; nothing if it replays none."""
    from ..sim.replay import replayed, replays
    from .shards import REPLAY_COLUMNS

    if not replays(problem):
        return {}
    found = replayed(problem, result)
    return dict(zip(REPLAY_COLUMNS, (int(found.n_used_up), int(found.n_stopped)), strict=True))


def _outcome(result: Result, with_curves: bool) -> dict[str, Any]:
    row: dict[str, Any] = {"regret": float(result.regret[0, -1]), "messages": int(result.transmissions[0, -1])}
    row |= {name: int(totals[0]) for name, totals in result.traffic.items()}
    if with_curves:
        row["rounds"] = result.rounds
        row["regret_curve"] = result.regret[0]
        row["messages_curve"] = result.transmissions[0]
    return row
