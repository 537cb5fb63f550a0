"""What a run of the suite says: per problem a table, over all problems who is on the front, and what budgets buy.

Rules kept here: means decide who is on a front and who is best. Differences are paired, since all rows of a problem met
the same rewards and networks, and their intervals are Student's over replicates. Numbers are about these arms and
networks; another instance may rank rows that lie close together otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from os import PathLike
from typing import Any, Final

import numpy as np

from .. import checks
from ..comparisons.configurations import COSTS, Configuration, Frontier
from ..comparisons.intervals import paired_interval
from ..comparisons.shown import FRONT, MARKS
from ..errors import FileError
from ..protocols import IRS, AnyProtocol, Centralised, NoCooperation
from ..rules import SOUND
from ..text_tables import as_text, decimals
from .problems import NAME, PROBLEMS
from .records import MEASURES, ProblemRecord, RowRecord, SuiteRecord, read_record, write_record
from .rows import ALONE, BUDGETS, CENTRE, FLOODING

#: The file of results in the folder of a run.
RESULTS: Final = "results.json"
CONFIDENCE: Final = 0.95
#: What stands for a row's protocol, of which fronts ask only whether it sends: a file is read without its classes.
_STANDS_FOR: Final[dict[str, AnyProtocol]] = {"alone": NoCooperation(), "sends": IRS(), "central": Centralised()}
_HEADINGS: Final = (
    "row",
    "front",
    "group regret",
    "above the best",
    "worst agent",
    "transmissions/round",
    "bytes/round",
    "busiest link",
)


class SuiteResult:
    """The results of a suite; printed, it is its tables.

    Parameters
    ----------
    record : SuiteRecord
        What the file holds.

    Examples
    --------
    >>> import banditmesh as bm
    >>> rows = ["none", "irs", "flooding(diameter)"]
    >>> quick = {"horizon": 50, "replicates": 3, "workers": 1, "engine": "reference"}
    >>> found = bm.suite.run(problems="equal-grid", rows=rows, entries="fwa(2)", **quick)
    >>> found
    <SuiteResult: suite-1, custom, 1 problem, 4 rows>
    >>> print(found.verdicts["fwa(2)"]["equal-grid"].partition(":")[0])
    not told apart from irs, the best of what sends no more bytes
    """

    def __init__(self, record: SuiteRecord) -> None:
        self.record = record

    @classmethod
    def load(cls, path: str | PathLike[str]) -> SuiteResult:
        """The results in a file, whose hash must agree with its content; `FileError` if it does not."""
        record = read_record(path)
        unknown = next((name for name in record.problems if name not in PROBLEMS), None)
        if record.suite != NAME or unknown is not None:
            what = f"problem {checks.shown(unknown)}" if record.suite == NAME else checks.shown(record.suite)
            raise FileError(f"{path} must be results of {NAME}, got {what}; use the banditmesh that wrote it")
        return cls(record)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the results to a file; equal results give equal bytes."""
        write_record(self.record, path)

    @property
    def rows(self) -> list[str]:
        """The names of all rows, in their order."""
        return list(dict.fromkeys(name for one in self.record.problems.values() for name in one.rows))

    def frontier(self, problem: str) -> Frontier:
        """The rows of a problem as a `Frontier`, with fronts, intervals and a plot; refused ones are left out."""
        return self._frontiers[checks.choice("problem", problem, self.record.problems)]

    @cached_property
    def _frontiers(self) -> dict[str, Frontier]:
        return {name: _frontier(name, one) for name, one in self.record.problems.items()}

    def refusals(self, problem: str) -> dict[str, str]:
        """The rows that do not run on a problem, or failed on it, with their reasons."""
        rows = self.record.problems[problem].rows.items()
        reasons = {name: f"failed with {row.failed}" if row.failed else row.refused for name, row in rows}
        return {name: reason for name, reason in reasons.items() if reason}

    def table(self, problem: str) -> list[list[str]]:
        """The table of a problem, by rising regret; the first row is the headings.

        *Above the best* is the paired difference in regret from the best row that a network can have, with its
        confidence interval.
        """
        found = self.frontier(problem)
        least = self.best(problem)
        best = None if least is None else found[least]
        digits = {name: decimals(one.mean(name) for one in found.configurations) for name in MEASURES}
        rows = [list(_HEADINGS)]
        for one in sorted(found.configurations, key=lambda one: one.mean("regret")):
            front = "".join(mark for cost, mark in MARKS.items() if one.name in found.fronts[cost])
            above = "" if best is None or one is best else _signed(one.regret - best.regret, digits["regret"])
            cells = [_with_interval(found, one, name, digits[name]) for name in MEASURES]
            rows.append([one.name, front, cells[0], above, *cells[1:]])
        return rows

    def best(self, problem: str, most_bytes: float = np.inf, but: Iterable[str] = ()) -> str | None:
        """The row with the least regret, of those that a network can have and that keep within this many bytes a round.

        Parameters
        ----------
        problem : str
            The problem.
        most_bytes : float
            The budget; it is met if the upper end of the confidence interval is within it.
        but : iterable of str
            Rows that do not count.
        """
        found, left_out = self.frontier(problem), set(but)
        allowed = [
            one
            for one in found.configurations
            if not one.protocol.is_central
            and one.name not in left_out
            and found.interval(one, "bytes_per_round")[2] <= most_bytes
        ]
        return min(allowed, key=lambda one: one.mean("regret")).name if allowed else None

    def budgets(self, problem: str) -> dict[float, float]:
        """The three budgets in bytes a round, by their share of what flooding with ttl = diameter sends."""
        rows = self.record.problems[problem].rows
        if FLOODING not in rows or not rows[FLOODING].values:
            return {}
        return {share: share * float(np.mean(rows[FLOODING].values["bytes_per_round"])) for share in BUDGETS}

    def budget_table(self) -> list[list[str]]:
        """The best row of each problem within each budget and without one, with its share of the possible gain."""
        rows = [["problem", "budget", "bytes/round", "best row", "group regret", "of the gain"]]
        for name in self.record.problems:
            found = self.frontier(name)
            for share, limit in {**self.budgets(name), 1.0: np.inf}.items():
                best = self.best(name, limit)
                if best is None:
                    continue
                regret = found[best].mean("regret")
                label, most = ("no limit", "") if limit == np.inf else (f"{share:.1%}", f"{limit:,.4g}")
                digits = decimals([regret])
                rows.append([name, label, most, best, f"{regret:,.{digits}f}", self._gain(name, regret)])
        return rows

    def _gain(self, problem: str, regret: float) -> str:
        """The share of the gain from being alone to a centre that is told everything at once."""
        found = {one.name: one.mean("regret") for one in self.frontier(problem).configurations}
        if ALONE not in found or CENTRE not in found or found[ALONE] <= found[CENTRE]:
            return ""
        return f"{(found[ALONE] - regret) / (found[ALONE] - found[CENTRE]):.0%}"

    def front_table(self) -> list[list[str]]:
        """For each row on how many problems it runs, is on which front, and is the best within which budget."""
        problems = list(self.record.problems)
        winners = [[self.best(name, limit) for limit in self.budgets(name).values()] for name in problems]
        rows = [
            ["row", "runs on", *(f"front {mark}" for mark in MARKS.values()), *(f"best at {b:.1%}" for b in BUDGETS)]
        ]
        for row in self.rows:
            on = [sum(row in self.frontier(name).fronts[cost] for name in problems) for cost in COSTS]
            won = [sum(len(best) > place and best[place] == row for best in winners) for place in range(len(BUDGETS))]
            runs = sum(bool(one.rows[row].values) for one in self.record.problems.values() if row in one.rows)
            rows.append([row, str(runs), *map(str, on), *map(str, won)])
        return rows

    @cached_property
    def verdicts(self) -> dict[str, dict[str, str]]:
        """For each entry and problem, a sentence that says whether it is better than the best row, and by how much.

        The best row is the one with the least regret of those that send no more bytes than the entry.
        """
        problems = self.record.problems.items()
        return {
            entry: {name: self._verdict(name, entry) for name, one in problems if entry in one.rows}
            for entry in self.record.entries
        }

    def _verdict(self, problem: str, entry: str) -> str:
        if entry in (reasons := self.refusals(problem)):
            reason = reasons[entry]
            return reason if self.record.problems[problem].rows[entry].failed else f"does not run here: {reason}"
        found = self.frontier(problem)
        one = found[entry]
        rivals = [
            rival
            for rival in found.configurations
            if rival.name not in self.record.entries
            and not rival.protocol.is_central
            and rival.mean("bytes_per_round") <= one.mean("bytes_per_round")
        ]
        if not rivals:
            return f"nothing else sends as few bytes: group regret {one.mean('regret'):,.5g}"
        best = min(rivals, key=lambda rival: rival.mean("regret"))
        return _compared(one, best)

    def to_json(self) -> dict[str, Any]:
        """Everything as plain values: problem -> rows -> measure -> mean and interval, fronts, budgets and verdicts."""
        problems = {}
        for name, record in self.record.problems.items():
            found = self.frontier(name)
            rows: dict[str, Any] = {}
            for one in found.configurations:
                ends = {measure: found.interval(one, measure) for measure in MEASURES}
                rows[one.name] = {
                    measure: dict(zip(("mean", "low", "high"), three, strict=True)) for measure, three in ends.items()
                }
            problems[name] = {
                "question": PROBLEMS[name].question,
                "horizon": record.horizon,
                "replicates": record.replicates,
                "rows": rows,
                "refused": self.refusals(name),
                "fronts": {cost: list(front) for cost, front in found.fronts.items()},
                "best": self.best(name),
                "budgets": {
                    f"{share:g}": {"bytes_per_round": limit, "best": self.best(name, limit)}
                    for share, limit in self.budgets(name).items()
                },
            }
        about = {"suite": self.record.suite, "size": self.record.size, "hash": self.record.hash}
        return {**about, "versions": self.record.versions, "problems": problems, "verdicts": self.verdicts}

    def __str__(self) -> str:
        parts = []
        for name, one in self.record.problems.items():
            title = f"{name}: {PROBLEMS[name].question}"
            rounds = f"{PROBLEMS[name].problem}, {one.horizon} rounds, {one.replicates} replicates"
            refused = [f"{row}: {reason}" for row, reason in self.refusals(name).items()]
            parts.append("\n".join([title, rounds, as_text(self.table(name), left=(0, 1)), FRONT, *refused]))
        parts.append("On how many problems\n" + as_text(self.front_table()))
        parts.append("The best row within a budget\n" + as_text(self.budget_table(), left=(0, 3)))
        for entry, sentences in self.verdicts.items():
            parts.append("\n".join([entry, *(f"  {name}: {sentence}" for name, sentence in sentences.items())]))
        return "\n\n".join([*parts, NOTE])

    def __repr__(self) -> str:
        problems = f"{len(self.record.problems)} problem{'s' * (len(self.record.problems) != 1)}"
        return f"<SuiteResult: {self.record.suite}, {self.record.size}, {problems}, {len(self.rows)} rows>"


#: What is said below the tables.
NOTE: Final = (
    f"± and [, ]: {CONFIDENCE:.0%} confidence; above the best: paired; budgets are shares of the bytes of {FLOODING}; "
    f"of the gain: 0 % is {ALONE}, 100 % {CENTRE}"
)


def _frontier(name: str, record: ProblemRecord) -> Frontier:
    rows = {row: one for row, one in record.rows.items() if one.values}
    return Frontier(
        configurations=tuple(_configuration(row, one) for row, one in rows.items()),
        problem=repr(PROBLEMS[name].problem),
        horizon=record.horizon,
        replicates=record.replicates,
        seed=record.seed,
        rules=SOUND.name,
        faults="" if PROBLEMS[name].faults is None else repr(PROBLEMS[name].faults),
        max_messages_per_round=None,
        max_link_load=None,
        tolerance=0.0,
        confidence=CONFIDENCE,
        struck=PROBLEMS[name].faults,
    )


def _configuration(name: str, row: RowRecord) -> Configuration:
    values: dict[str, Any] = {measure: np.array(values) for measure, values in row.values.items()}
    return Configuration(name, _STANDS_FOR[row.kind], link_peak=np.full(1, np.nan), **values)


def _compared(one: Configuration, best: Configuration) -> str:
    """Whether one has less regret than another, by how much and how surely."""
    more = one.regret - best.regret
    low, high = paired_interval(more, CONFIDENCE)
    against = f"{best.name}, the best of what sends no more bytes"
    digits = decimals([best.mean("regret")])
    by = f"group regret {one.mean('regret'):,.{digits}f} instead of {best.mean('regret'):,.{digits}f}"
    if len(more) < 2:
        return f"{by} of {against}; one replicate says nothing of how surely"
    word = "better than" if high < 0 else "worse than" if low > 0 else "not told apart from"
    share = f" ({more.mean() / best.mean('regret'):+.1%})" if best.mean("regret") else ""
    surely = f"with {CONFIDENCE:.0%} confidence over {len(more)} paired replicates"
    return f"{word} {against}: {by}, a difference of {_signed(more, digits)}{share}, {surely}"


def _signed(differences: Any, digits: int) -> str:
    ends = (float(differences.mean()), *paired_interval(differences, CONFIDENCE))
    # Plus 0.0, so that nothing is shown as -0.00.
    mean, low, high = (f"{round(end, digits) + 0.0:+,.{digits}f}" for end in ends)
    return f"{mean} [{low}, {high}]" if len(differences) > 1 else mean


def _with_interval(found: Frontier, one: Configuration, measure: str, digits: int) -> str:
    mean, _, high = found.interval(one, measure)
    return f"{mean:,.{digits}f}" + (f" ± {high - mean:,.{digits}f}" if found.replicates > 1 else "")
