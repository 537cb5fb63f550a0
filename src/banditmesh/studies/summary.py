"""A study in a few rows: the results at each of its points."""

from __future__ import annotations

from typing import Any, Final

from ..text_tables import decimals

_NAMES: Final = ("network", "policy", "protocol", "rules", "emission", "dynamics", "faults")


def summary_rows(table: Any, most: int = 40) -> tuple[list[list[str]], int]:
    """Mean and standard deviation of regret and transmissions at the first points, and how many points are left out.

    Parameters
    ----------
    table : DataFrame
        As `Study.table` gives it.
    most : int
        How many points to show.
    """
    labels = [name for name in table.columns if name in _NAMES or "." in name]
    labels = [name for name in labels if name == "protocol" or table[name].nunique(dropna=False) > 1]
    points = table["point"].unique()
    rows = [[*labels, "group regret", "sd", "transmissions", "sd"]]
    shown = table[table["point"].isin(points[:most])].groupby("point", sort=True)
    digits = decimals(shown["regret"].mean())
    for _, group in shown:
        first = group.iloc[0]
        regret = [_number(value, digits) for value in (group["regret"].mean(), group["regret"].std())]
        sent = [_number(value) for value in (group["messages"].mean(), group["messages"].std())]
        rows.append([_cell(first[name]) for name in labels] + regret + sent)
    return rows, max(0, len(points) - most)


def _cell(value: Any) -> str:
    if value is None or value != value:
        return "-"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _number(value: float, digits: int = 0) -> str:
    return "-" if value != value else f"{value:,.{digits}f}"
