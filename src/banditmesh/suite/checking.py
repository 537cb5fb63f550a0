"""Runs a sample of published results again, and says which rows hold.

Rules kept here: a row holds if the same replicates give the same numbers to the last bit. Which replicates are run
again is drawn afresh, unless a seed is given, so that an author cannot know which numbers will be looked at. A file is
not trusted: code of its author is run only if the caller enters it, and counts only if its source is the same.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from os import PathLike
from typing import Any

from .. import checks
from ..draws import fresh_seed
from ..errors import BanditmeshError
from .problems import PROBLEMS
from .records import MEASURES, ProblemRecord, RowRecord
from .result import SuiteResult
from .rows import Entry, Row, make_row, read_entries
from .running import Cell, row_record, run_cell

#: Called with how many were run again, how many there are, and what comes next.
CheckProgress = Callable[[int, int, str], None]


@dataclass(frozen=True)
class Checked:
    """One replicate of a row that was run again.

    Attributes
    ----------
    problem, row : str
    replicate : int
    verdict : str
        "holds", "differs", or "open" if it cannot be run here.
    why : str
        What differs, or why it cannot be run.
    """

    problem: str
    row: str
    replicate: int
    verdict: str
    why: str = ""


def check(
    path: str | PathLike[str],
    *,
    sample: int = 10,
    rows: str | None = None,
    seed: int | None = None,
    entries: Entry | Iterable[Entry] | Mapping[str, Entry] = (),
    engine: str = "auto",
    progress: CheckProgress | None = None,
) -> list[Checked]:
    """Run a sample of a file of results again.

    Parameters
    ----------
    path : str or path
        The file; it must agree with its own hash.
    sample : int
        How many replicates of rows to run again, drawn from all rows that ran.
    rows : str, optional
        Only rows whose name contains this.
    seed : int, optional
        Draws the sample; a fresh one if not given.
    entries : one or several of what was entered, optional
        As for `run`: the author's own classes, which are not loaded otherwise.
    engine : str
        As for `simulate`.
    progress : callable, optional
        Called with how many were run again, how many there are, and what comes next.

    Examples
    --------
    >>> import tempfile, banditmesh as bm
    >>> quick = {"horizon": 9, "replicates": 2, "workers": 1, "engine": "reference"}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = bm.suite.run(problems="equal-ring", rows="irs", out=folder, **quick)
    ...     [one.verdict for one in bm.suite.check(f"{folder}/results.json", engine="reference")]
    ['holds', 'holds']
    """
    sample, entered = checks.integer("sample", sample, at_least=1), read_entries(entries)
    result = SuiteResult.load(path)
    possible = [
        (name, row, replicate)
        for name, problem in result.record.problems.items()
        for row, record in problem.rows.items()
        if record.values and (rows is None or rows in row)
        for replicate in range(problem.replicates)
    ]
    draw = random.Random(fresh_seed() if seed is None else checks.seed(seed))
    drawn = sorted(draw.sample(possible, min(sample, len(possible))))
    found = []
    for done, (name, row, replicate) in enumerate(drawn):
        if progress is not None:
            progress(done, len(drawn), f"{row} on {name}")
        made = _found(result.record.problems[name].rows[row], name, row, entered)
        if isinstance(made, str):
            found.append(Checked(name, row, replicate, "open", made))
        else:
            found.append(_again(result.record.problems[name], name, made, replicate, engine))
    return found


def _again(problem: ProblemRecord, name: str, row: Row, replicate: int, engine: str) -> Checked:
    given = run_cell(Cell(name, row, problem.horizon, replicate, 1, 1, engine).pack())
    why = _difference(problem.rows[row.name], given, replicate)
    if problem.hash != PROBLEMS[name].hash:
        why = "the problem of that name is another one here"
    return Checked(name, row.name, replicate, "differs" if why else "holds", why)


def _found(record: RowRecord, problem: str, title: str, entered: Mapping[str, Entry]) -> Row | str:
    """The row as it is here, or why it cannot be run."""
    if title not in entered and (record.source or ":" in title):
        return "is of its author's own classes; enter it to run it"
    try:
        row = make_row(title, entered.get(title, title), PROBLEMS[problem])
    except BanditmeshError as error:
        return f"cannot be made from its name ({error})"
    here = row_record(problem, row)
    if here.source != record.source:
        return "its source is another one here"
    for what in ("protocol", "policy"):
        if getattr(here, what) != getattr(record, what):
            return f"its {what} is {getattr(record, what)} there and {getattr(here, what)} here"
    return row


def _difference(record: RowRecord, given: Mapping[str, Any], replicate: int) -> str:
    for reason in ("refused", "failed"):
        if reason in given:
            return f"is {reason} here: {given[reason]}"
    for measure in MEASURES:
        there, here = record.values[measure][replicate], given[measure][0]
        if there != here:
            return f"{measure} is {there!r} there and {here!r} here"
    return ""
