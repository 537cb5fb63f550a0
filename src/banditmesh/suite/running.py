"""Runs the suite on any executor, continues a run that was stopped, and says how long one takes.

Rules kept here: a *cell* is some replicates of a row on a problem; what it gives depends on the cell alone. Cells are
stored as they are computed, in a folder next to the results, so a run that was stopped continues there. A row that
refuses a problem is a result, with its reason; one that fails is too, but is tried again in the next run.
"""

from __future__ import annotations

import itertools
import math
import time
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any, Final, TypeAlias

from .. import checks
from ..comparisons.kept import Kept
from ..comparisons.measuring import Task, measure
from ..errors import InputError, UnsupportedError
from ..lookup import own
from ..machine.executors import MAX_WORKERS, in_turn, open_executor
from ..settings.parts import as_policy
from ..sim.limits import MAX_ROUNDS
from ..sim.progress import Progress
from ..sim.run import ProgressCallback
from ..studies.manifest import versions
from .problems import NAME, PROBLEMS, SEED, SIZES
from .records import FORMAT, MEASURES, VERSION, Kind, ProblemRecord, RowRecord, SuiteRecord, content_hash, decided_by
from .result import RESULTS, SuiteResult
from .rows import Entry, Row, make_row, read_entries, read_row, row_texts

#: What a cell gives: a list for each measure, or a reason under "refused" or "failed".
Given: TypeAlias = dict[str, Any]
#: The most replicates of a cell. Not a matter of workers: a run may continue with another number of them.
_CELL: Final = 5
#: To estimate, a row runs for this share of its rounds, once.
_TRIED: Final = 0.02
_LEAST_TRIED: Final = 10
#: What to do if a worker dies.
_REMEDY: Final = "run the same again with fewer workers: what is done is kept, if out names a folder"


@dataclass(frozen=True, eq=False)
class Cell:
    """Some replicates of a row on a problem: `replicates` of `in_all`, from `first` on."""

    problem: str
    row: Row
    horizon: int
    first: int
    replicates: int
    in_all: int
    engine: str = "auto"

    @property
    def n_pulls(self) -> int:
        """How many rounds of agents it simulates."""
        return PROBLEMS[self.problem].problem.n_agents * self.horizon * self.replicates

    def pack(self) -> own.Packed:
        """The cell for another process, with the source of the author's own classes."""
        return own.Packed(self)


def run(
    size: str = "small",
    *,
    problems: str | Sequence[str] | None = None,
    rows: str | Sequence[str] | None = None,
    entries: Entry | Iterable[Entry] | Mapping[str, Entry] = (),
    out: str | PathLike[str] | None = None,
    horizon: int | None = None,
    replicates: int | None = None,
    engine: str = "auto",
    executor: Executor | str | None = None,
    workers: int | None = None,
    progress: bool | ProgressCallback | None = None,
) -> SuiteResult:
    """Run the suite, or what is left of it.

    Parameters
    ----------
    size : str
        "small", in minutes, or "full", in hours.
    problems : str or sequence of str, optional
        Only these problems; all if not given.
    rows : str or sequence of str, optional
        Only these rows, such as "none", "fwa(diameter)" or "fwa(4), klucb"; all if not given.
    entries : one or several of what is entered beside the rows, optional
        A protocol or algorithm, its text such as "my_module:Mine(4)", or a pair of it and a policy; a mapping names
        them. A text without a ttl that needs one gets the diameter of each network.
    out : str or path, optional
        A folder for the results, in which a run that was stopped continues.
    horizon, replicates : int, optional
        Instead of those of the size, to try something out; the results then say "custom".
    engine : str
        As for `simulate`; results do not depend on it.
    executor : concurrent.futures.Executor or str, optional
        Where to run, as for `run_study`: any executor, "dask", "dask:ADDRESS", "ray" or "ray:ADDRESS"; local processes
        if not given.
    workers : int, optional
        How many local processes, or cells at once on your own executor; by default one per core. Results do not depend
        on it.
    progress : bool or callable, optional
        As for `simulate`; counts the pulls of all agents.

    Returns
    -------
    SuiteResult
        With tables, fronts, budgets and sentences on the entries; `out` has it as a file.

    Examples
    --------
    >>> import banditmesh as bm
    >>> quick = {"horizon": 20, "replicates": 2, "workers": 1, "engine": "reference"}
    >>> found = bm.suite.run(problems="equal-ring", rows=["none", "irs"], **quick)
    >>> found.frontier("equal-ring").front
    ('none', 'irs')
    """
    cells = _cells(size, problems, rows, entries, horizon, replicates, engine)
    workers = None if workers is None else checks.integer("workers", workers, at_least=1, at_most=MAX_WORKERS)
    folder = None if out is None else _made(Path(out))
    kept = {cell.problem: _kept(folder, cell) for cell in cells}
    found: dict[Cell, Given] = {}
    with Progress(progress, sum(cell.n_pulls for cell in cells), NAME, "pulls") as bar:
        for cell in cells:
            stored = kept[cell.problem].find(*_key(cell))
            if stored is not None and _is_whole(stored, cell) and own.UNKNOWN_SOURCE not in cell.row.source:
                found[cell] = stored
                bar.advance(cell.n_pulls)
        for cell, given in _computed([cell for cell in cells if cell not in found], executor, workers):
            found[cell] = given
            if "failed" not in given:
                kept[cell.problem].keep(given, *_key(cell))
            bar.advance(cell.n_pulls)
    own_size = horizon is not None or replicates is not None
    result = SuiteResult(_record("custom" if own_size else size, list(read_entries(entries)), found, cells))
    if folder is not None:
        result.save(folder / RESULTS)
    return result


def estimate(size: str = "full", *, progress: bool | ProgressCallback | None = None, **chosen: Any) -> dict[str, float]:
    """How many seconds of one core each problem takes, from short runs of all of its rows.

    Parameters
    ----------
    size : str
        "small" or "full".
    progress : bool or callable, optional
        As for `simulate`; counts the rows that were tried.
    **chosen
        problems, rows, entries, horizon, replicates and engine, as for `run`.

    Examples
    --------
    >>> import banditmesh as bm
    >>> list(bm.suite.estimate("small", problems="equal-ring", rows="irs", engine="reference"))
    ['equal-ring']
    """
    seconds: dict[str, float] = {}
    cells = _cells(size, **{"problems": None, "rows": None, "entries": ()} | chosen)
    # All cells of a row take as long for each of their replicates.
    tried = [cell for cell in cells if not cell.first]
    with Progress(progress, len(tried), "estimate", "rows") as bar:
        for cell in tried:
            before = seconds.get(cell.problem, 0.0)
            seconds[cell.problem] = before + _per_round(cell) * cell.horizon * cell.in_all
            bar.advance()
    return seconds


def _per_round(cell: Cell) -> float:
    """Seconds of a core for a round of one replicate, from a few rounds: those of other processes do not count."""
    rounds = max(_LEAST_TRIED, int(_TRIED * cell.horizon))
    times = []
    # Of two runs of one round, the first compiles the kernels, and the second has the fixed cost of any run.
    for horizon in (1, 1, rounds):
        began = time.process_time()
        run_cell(replace(cell, horizon=horizon, first=0, replicates=1).pack())
        times.append(time.process_time() - began)
    return max(0.0, times[2] - times[1]) / (rounds - 1)


def run_cell(packed: own.Packed) -> Given:
    """Simulate a cell, in any process."""
    cell: Cell = packed.unpack()
    problem = PROBLEMS[cell.problem]
    if cell.row.protocol.name in problem.too_long:
        return {"refused": f"{cell.row.protocol.name} would take hours here, and is left out of the suite"}
    task = Task(
        cell.row.name,
        cell.row.protocol,
        cell.horizon,
        cell.replicates,
        first=cell.first,
        policy=cell.row.policy,
    )
    try:
        with warnings.catch_warnings():
            # That the reference engine takes long is known: the estimate says so.
            warnings.simplefilter("ignore", UserWarning)
            measured = measure(problem.problem, task, {**problem.settings, "engine": cell.engine, "threads": 1}, False)
    except (InputError, UnsupportedError) as error:
        return {"refused": _one_line(error)}
    except Exception as error:  # whatever goes wrong in a row is that row's result
        return {"failed": f"{type(error).__name__}: {_one_line(error)}"}
    return {name: getattr(measured.configuration, name).tolist() for name in MEASURES}


def _one_line(error: Exception) -> str:
    return own.plain(" ".join(str(error).split()))[:500]


def _cells(
    size: str,
    problems: str | Sequence[str] | None,
    rows: str | Sequence[str] | None,
    entries: Entry | Iterable[Entry] | Mapping[str, Entry],
    horizon: int | None = None,
    replicates: int | None = None,
    engine: str = "auto",
) -> list[Cell]:
    checks.choice("size", size, SIZES)
    names = list(PROBLEMS) if problems is None else _listed("problems", problems)
    if len(set(names)) < len(names):
        raise InputError("problems must differ from each other, got the same one twice")
    cells = []
    for name in names:
        problem = PROBLEMS[checks.choice("problems", name, PROBLEMS)]
        rounds, repeats = problem.size(size)
        rounds = rounds if horizon is None else checks.integer("horizon", horizon, at_least=1, at_most=MAX_ROUNDS)
        repeats = repeats if replicates is None else checks.integer("replicates", replicates, at_least=1)
        made = [read_row(text, problem) for text in (row_texts(problem) if rows is None else _listed("rows", rows))]
        made += [make_row(title, entry, problem) for title, entry in read_entries(entries).items()]
        if len({row.name for row in made}) < len(made):
            raise InputError("rows and entries must differ from each other, got the same one twice")
        for row, first in itertools.product(made, range(0, repeats, _CELL)):
            cells.append(Cell(name, row, rounds, first, min(_CELL, repeats - first), repeats, engine))
    return cells


def _listed(what: str, given: str | Sequence[str]) -> list[str]:
    """One or several names."""
    names = [given] if isinstance(given, str) else list(given) if isinstance(given, Iterable) else []
    if not names or not all(isinstance(name, str) for name in names):
        raise InputError(f"{what} must name at least one, got {checks.shown(given)}; leave {what} out for all")
    return names


def _made(folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"out must be a folder that can be written, got {folder} ({error.strerror})") from None
    return folder


def _kept(folder: Path | None, cell: Cell) -> Kept:
    return Kept(None if folder is None else folder / "cells", NAME, PROBLEMS[cell.problem].hash, cell.horizon, SEED)


def _key(cell: Cell) -> tuple[Any, ...]:
    return (repr(cell.row.protocol), repr(cell.row.policy), cell.row.source, cell.first, cell.replicates)


def _computed(
    cells: Sequence[Cell], executor: Executor | str | None, workers: int | None
) -> Iterator[tuple[Cell, Given]]:
    """What each cell gives, as soon as it is known."""
    if not cells:
        return
    with open_executor(executor, workers) as (opened, n_workers):
        yield from in_turn(opened, run_cell, ((cell, cell.pack()) for cell in cells), n_workers, lambda: _REMEDY)


def _is_whole(given: Given, cell: Cell) -> bool:
    """Whether what was stored for a cell is what a cell gives: a reason, or a number of every replicate."""
    if isinstance(given.get("refused"), str):
        return True
    values = [given.get(name) for name in MEASURES]
    return all(
        isinstance(one, list)
        and len(one) == cell.replicates
        and all(isinstance(number, int | float) and math.isfinite(number) for number in one)
        for one in values
    )


def _record(size: str, entries: list[str], found: Mapping[Cell, Given], cells: Sequence[Cell]) -> SuiteRecord:
    suite = SuiteRecord(FORMAT, VERSION, NAME, size, versions(), entries, {})
    for cell in cells:
        problem = suite.problems.setdefault(
            cell.problem, ProblemRecord(PROBLEMS[cell.problem].hash, cell.horizon, cell.in_all, SEED, {})
        )
        row = problem.rows.setdefault(cell.row.name, row_record(cell.problem, cell.row))
        given = found[cell]
        row.refused, row.failed = row.refused or given.get("refused", ""), row.failed or given.get("failed", "")
        for name in MEASURES if set(MEASURES) <= set(given) else ():
            row.values.setdefault(name, []).extend(given[name])
    for name, problem in suite.problems.items():
        for row in problem.rows.values():
            row.values = {} if row.refused or row.failed else row.values
            row.decided_by = decided_by(suite, name, row)
    suite.hash = content_hash(suite)
    return suite


def row_record(problem: str, row: Row) -> RowRecord:
    """What a file says of a row, without its values."""
    policy = as_policy(PROBLEMS[problem].policy) if row.policy is None else row.policy
    kind: Kind = "central" if row.protocol.is_central else "sends" if row.protocol.sends_messages else "alone"
    return RowRecord(repr(row.protocol), repr(policy), row.source, kind, "", {})
