"""What a section of the benchmark is, and how its rows become tables, in a terminal and in the documents."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

Row = dict[str, Any]


@dataclass(frozen=True)
class Column:
    """A key of a row, its heading, and a format specification; a row without the key leaves its cell empty."""

    key: str
    heading: str
    form: str = ""

    def cell(self, row: Row) -> str:
        value = row.get(self.key)
        if value is None:
            return ""
        if isinstance(value, bool):
            return "yes" if value else "NO"
        return format(value, self.form or (".3g" if isinstance(value, float) else ""))


@dataclass(frozen=True)
class Section:
    """A part of the benchmark: `measure(quick)` gives its rows.

    `note` says what is measured. Rows that could not be measured have the one key `missing`, which says why.
    """

    name: str
    title: str
    note: str
    columns: Sequence[Column]
    measure: Callable[[bool], list[Row]]


def cells(section: Section, rows: Sequence[Row]) -> tuple[list[str], list[list[str]]]:
    """Headings and cells, without the columns that no row fills; a section without columns shows its rows' keys."""
    known = section.columns or [Column(key, key.replace("_", " ")) for row in rows[:1] for key in row]
    columns = [column for column in known if any(row.get(column.key) is not None for row in rows)]
    return [column.heading for column in columns], [[column.cell(row) for column in columns] for row in rows]


def missing(rows: Sequence[Row]) -> str | None:
    """Why a section has no rows, or None if it has some."""
    return next((str(row["missing"]) for row in rows if "missing" in row), None)


def show(section: Section, rows: Sequence[Row]) -> None:
    """Print a section in the terminal."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    # Wide enough for every table, so that output in a file is not cut.
    console = Console(width=150, highlight=False, markup=False)
    console.print(f"\n{section.title}", style="bold")
    console.print(section.note, soft_wrap=True)
    reason = missing(rows)
    if reason is not None:
        console.print(f"Not measured: {reason}.")
        return
    headings, body = cells(section, rows)
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for heading, is_text in zip(headings, _text_columns(body), strict=True):
        table.add_column(heading, justify="left" if is_text else "right")
    for line in body:
        table.add_row(*line)
    console.print(table)


def markdown(section: Section, rows: Sequence[Row]) -> str:
    """A section's table in Markdown."""
    reason = missing(rows)
    if reason is not None:
        return f"Not measured: {reason}."
    headings, body = cells(section, rows)
    rule = [":--" if is_text else "--:" for is_text in _text_columns(body)]
    return "\n".join("| " + " | ".join(line) + " |" for line in [headings, rule, *body])


def _text_columns(body: Sequence[Sequence[str]]) -> list[bool]:
    return [any(cell[:1].isalpha() for cell in column) for column in zip(*body, strict=True)]
