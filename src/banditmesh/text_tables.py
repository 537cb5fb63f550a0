"""Tables of text with aligned columns, as they are printed."""

from __future__ import annotations

from collections.abc import Collection, Sequence


def as_text(
    rows: Sequence[Sequence[str]], left: Collection[int] | None = (0,), widths: Sequence[int] | None = None
) -> str:
    """Rows with aligned columns, two blanks between them.

    Parameters
    ----------
    rows : sequence of rows
        All of the same length; the first one is usually the headings.
    left : collection of int or None
        The columns that are aligned to the left, the others are to the right; None for all to the left.
    widths : sequence of int, optional
        The least width of each column, so that several tables look alike.

    Examples
    --------
    >>> print(as_text([["protocol", "ours"], ["fwa", "12"]]))
    protocol  ours
    fwa         12
    """
    columns = range(len(rows[0]))
    least = [0] * len(columns) if widths is None else widths
    wide = [max(least[column], *(len(row[column]) for row in rows)) for column in columns]
    to_left = columns if left is None else left
    lines = []
    for row in rows:
        cells = [row[k].ljust(wide[k]) if k in to_left else row[k].rjust(wide[k]) for k in columns]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)
