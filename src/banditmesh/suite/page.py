"""The results of a suite as one HTML file: it opens offline and makes no requests."""

from __future__ import annotations

import html
import inspect
from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import Final

from ..comparisons.shown import FRONT
from ..errors import InputError
from ..plots import pages
from ..protocols import AnyProtocol
from ..protocols.notation import get_class, parse, split
from ..studies.store import write_whole
from .problems import PROBLEMS
from .result import NOTE, SuiteResult
from .rows import with_numbers

_ABOUT: Final = (
    "Protocols and algorithms on the same problems, with the same rewards and networks. A row is a protocol or an "
    "algorithm with its parameters; diameter is that of the problem's network, near is the same but at most 4 if there "
    "are more than 50 agents, and width is that of the confidence bounds of its policy. Group regret is the sum over "
    "all agents at the last round: how much more they would have gained by always pulling the best of their own arms. "
    "Lower is better in every column."
)


def write_page(result: SuiteResult, path: str | PathLike[str], docs: str = "docs") -> None:
    """Write the page.

    Parameters
    ----------
    result : SuiteResult
        The results.
    path : str or path
        The file.
    docs : str
        Where the documentation is, for the links to each algorithm: an address, or a folder next to the page.

    Examples
    --------
    >>> import tempfile, banditmesh as bm
    >>> quick = {"horizon": 9, "replicates": 2, "workers": 1, "engine": "reference"}
    >>> found = bm.suite.run(problems="equal-ring", rows=["none", "irs"], **quick)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_page(found, Path(folder) / "page.html")
    ...     "equal-ring" in (Path(folder) / "page.html").read_text()
    True
    """
    title = f"{result.record.suite}, {result.record.size} size"
    write_whole(Path(path), pages.page(title, list(_parts(result, docs))).encode())


def _parts(result: SuiteResult, docs: str) -> Iterator[str]:
    record = result.record
    yield f"<h1>{record.suite}, {html.escape(record.size)} size</h1><p>{_ABOUT}</p>"
    links = {"fronts": "How often each row is on the front", "budgets": "Regret within a budget", "rows": "Rows"}
    links |= {name: f"{name}: {PROBLEMS[name].question}" for name in record.problems}
    links = ({"entries": "Entries"} if record.entries else {}) | links
    items = "".join(f'<li><a href="#{to}">{html.escape(text)}</a></li>' for to, text in links.items())
    yield f"<nav><ol>{items}</ol></nav>"
    if record.entries:
        yield '<h2 id="entries">Entries</h2>'
        for entry, sentences in result.verdicts.items():
            yield pages.table(entry, [["problem", "is"], *([name, text] for name, text in sentences.items())], "claims")
    yield f'<h2 id="fronts">{links["fronts"]}</h2>{pages.table("On how many problems", result.front_table())}'
    yield f'<p class="note">{html.escape(FRONT)}</p>'
    yield f'<h2 id="budgets">{links["budgets"]}</h2>{pages.table("The best row", result.budget_table())}'
    yield f'<p class="note">{html.escape(NOTE)}</p>'
    yield f'<h2 id="rows">Rows</h2><dl>{"".join(describe(row, docs) for row in result.rows)}</dl>'
    for name in record.problems:
        yield from _problem(result, name)
    versions = ", ".join(f"{name} {version}" for name, version in record.versions.items())
    yield f'<p class="note">Made with {html.escape(versions)}; hash of the results: {html.escape(record.hash)}</p>'


def _problem(result: SuiteResult, name: str) -> Iterator[str]:
    problem, record = PROBLEMS[name], result.record.problems[name]
    faults = "" if problem.faults is None else f", {problem.faults.in_words()}"
    about = f"{problem.problem!r}{faults}; {record.horizon} rounds, {record.replicates} replicates, {problem.policy}"
    yield f'<h2 id="{name}">{name}</h2><p>{html.escape(problem.question)}</p><p class="note">{html.escape(about)}</p>'
    found = result.frontier(name)
    if any(one.sends for one in found.configurations):
        yield pages.picture(f"{name}: regret against what it costs", found.plot())
    yield f'<div class="tables">{pages.table(name, result.table(name))}</div><p class="note">{html.escape(FRONT)}</p>'
    if refused := result.refusals(name):
        yield pages.table("Does not run here", [["row", "why"], *map(list, refused.items())], "claims")


def describe(row: str, docs: str) -> str:
    """What a row is, in the first line of its documentation, with a link to the rest."""
    kind = _class_of(row)
    if kind is None:
        return f"<dt>{html.escape(row)}</dt><dd>an entry</dd>"
    words = (inspect.getdoc(kind) or "").partition("\n")[0]
    folder, name = kind.__module__.split(".")[1], kind.name
    target = f"{docs}/protocols/{name}.html" if folder == "protocols" else f"{docs}/{folder}.html#{name}"
    return f'<dt><a href="{html.escape(target)}">{html.escape(row)}</a></dt><dd>{html.escape(words)}</dd>'


def _class_of(row: str) -> type[AnyProtocol] | None:
    """The shipped class of a row; None for anything else: no code that a file names is loaded to describe it."""
    if ":" in row:
        return None
    try:
        text = split(with_numbers(row, next(iter(PROBLEMS.values()))))[0]
        return get_class("protocols", parse(text)["protocol"]["name"])
    except InputError:
        return None
