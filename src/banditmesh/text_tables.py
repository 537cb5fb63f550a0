"""Tables as they are printed, with aligned columns, and as notebooks show them."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Sequence
from html import escape
from typing import Final

#: A number, maybe with how far values lie from it, or as a share.
_NUMBER: Final = re.compile(r"[-+]?[\d,]+(\.\d+)?( ± [\d,]+(\.\d+)?|%)?")
_LATEX: Final = {letter: rf"\{letter}" for letter in "&%$#_{}"} | {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "±": r"$\pm$",
    "<": "$<$",
    ">": "$>$",
}


def as_text(
    rows: Sequence[Sequence[str]], left: Collection[int] | None = (0,), widths: Sequence[int] | None = None
) -> str:
    """Rows with aligned columns, two blanks between them.

    Parameters
    ----------
    rows : sequence of rows
        All of the same length; the first one is usually the headings.
    left : collection of int or None
        The columns aligned to the left, the others to the right; None for all to the left.
    widths : sequence of int, optional
        The least width of the first columns, so that several tables look alike.

    Examples
    --------
    >>> print(as_text([["protocol", "ours"], ["fwa", "12"]]))
    protocol  ours
    fwa         12
    """
    columns = range(len(rows[0]))
    least = [*(widths or ()), *[0] * len(columns)]
    wide = [max(least[column], *(len(row[column]) for row in rows)) for column in columns]
    to_left = columns if left is None else left
    lines = []
    for row in rows:
        cells = [row[k].ljust(wide[k]) if k in to_left else row[k].rjust(wide[k]) for k in columns]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def decimals(values: Iterable[float]) -> int:
    """How many decimals a column needs for three digits of its largest number: none from 100 on.

    Examples
    --------
    >>> decimals([25_426.0, 3.5]), decimals([41.0, 0.3]), decimals([0.0025, 0.0])
    (0, 1, 5)
    """
    largest = max((abs(value) for value in values if math.isfinite(value)), default=0.0)
    return max(0, 2 - math.floor(math.log10(largest))) if largest else 0


def known(value: float) -> float | None:
    """A number as JSON takes it: None for one that is not known (nan)."""
    return None if math.isnan(value) else float(value)


def spread(mean: float, half: float | None, digits: int = 0) -> str:
    """A mean and how far values lie from it; the mean alone where that is not known.

    Examples
    --------
    >>> spread(1234.5, 6.789, 1), spread(1234.5, None)
    ('1,234.5 ± 6.8', '1,234')
    """
    is_known = half is not None and not math.isnan(half)
    return f"{mean:,.{digits}f} ± {half:,.{digits}f}" if is_known else f"{mean:,.{digits}f}"


def as_html(title: str, rows: Sequence[Sequence[str]] = (), notes: Sequence[str] = ()) -> str:
    """A title, a table whose first row is the headings, and notes below; all text is escaped.

    Blanks at the start of a cell, by which rows are indented, are kept.

    Examples
    --------
    >>> as_html("1 < 2", [["arm"], ["a&b"]], ["done"]).partition("nowrap")[2]
    '"><tr><th>arm</th></tr><tr><td>a&amp;b</td></tr></table><p>done</p></div>'
    """
    lines = "".join(
        f"<tr>{''.join(f'<{cell}>{_indented(text)}</{cell}>' for text in row)}</tr>"
        for cell, row in zip(["th"] + ["td"] * len(rows), rows, strict=False)
    )
    # A mean and its spread stay on one line.
    table = f'<table style="white-space: nowrap">{lines}</table>' if rows else ""
    return f"<div><b>{escape(title)}</b>{table}{''.join(f'<p>{escape(note)}</p>' for note in notes)}</div>"


def as_latex(
    rows: Sequence[Sequence[str]], bold: Collection[tuple[int, int]] = (), caption: str = "", label: str = ""
) -> str:
    r"""Rows as LaTeX, with the rules of the package booktabs; numbers are set as mathematics, all else is escaped.

    Parameters
    ----------
    rows : sequence of rows
        All of the same length; the first one is the headings.
    bold : collection of (int, int)
        Row and column of what is set in bold.
    caption, label : str
        Of the table, which floats if it has one of them.

    Examples
    --------
    >>> print(as_latex([["protocol", "regret"], ["a_b", "1,234 ± 5"]], bold=[(1, 1)]))
    \begin{tabular}{lr}
    \toprule
    protocol & regret \\
    \midrule
    a\_b & $\mathbf{1{,}234 \pm 5}$ \\
    \bottomrule
    \end{tabular}
    """
    lines = [
        " & ".join(_latex_cell(text, (k, column) in bold) for column, text in enumerate(row)) + r" \\"
        for k, row in enumerate(rows)
    ]
    columns = "l" + "r" * (len(rows[0]) - 1)
    table = [
        rf"\begin{{tabular}}{{{columns}}}",
        r"\toprule",
        *lines[:1],
        r"\midrule",
        *lines[1:],
        r"\bottomrule",
        r"\end{tabular}",
    ]
    if caption or label:
        named = [rf"\caption{{{_latex_text(caption)}}}"] * bool(caption) + [rf"\label{{{label}}}"] * bool(label)
        table = [r"\begin{table}", r"\centering", *named, *table, r"\end{table}"]
    return "\n".join(table)


def _latex_cell(text: str, bold: bool) -> str:
    if not _NUMBER.fullmatch(text):
        return rf"\textbf{{{_latex_text(text)}}}" if bold else _latex_text(text)
    number = text.replace(",", "{,}").replace("±", r"\pm").replace("%", r"\%")
    return rf"$\mathbf{{{number}}}$" if bold else f"${number}$"


def _latex_text(text: str) -> str:
    return "".join(_LATEX.get(letter, letter) for letter in text)


def _indented(text: str) -> str:
    words = text.lstrip(" ")
    return "&nbsp;" * (len(text) - len(words)) + escape(words)
