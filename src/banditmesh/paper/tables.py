"""The results of a reproduction, as tables to print and as CSV files."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from typing import Any

import numpy as np

from .. import networks
from ..text_tables import spread
from . import published
from .reproduction import Reproduction, Runs


def tables(values: Mapping[str, Any]) -> dict[str, list[list[str]]]:
    """The output of `to_json` as tables of text, each with a row of headings: title -> rows."""
    found: dict[str, list[list[str]]] = {}
    for figure, title in (("figure3", "Figure 3"), ("figure5", "Figure 5")):
        for name, rows in values.get(figure, {}).items():
            for what, words in (("regret", "group regret"), ("messages", "transmissions")):
                cells = {short: row[what] for short, row in rows.items() if what == "regret" or short != "none"}
                found[f"{title}: {words} on {name}"] = _against_published(cells)
    for name, rows in values.get("figure4", {}).items():
        link = networks.PAPER_WATCHED_LINKS[name]
        title = f"Figure 4: transmissions per round on link {link[0]}-{link[1]} of {name}, second half"
        found[title] = _against_published(
            {short: row["messages"] for short, row in rows.items() if short != "none"}, digits=1
        )
    reductions = {
        name: rows["fwa"]["reduction"] for name, rows in values.get("figure4", {}).items() if "reduction" in rows["fwa"]
    }
    if reductions:
        found["Figure 4: load of the watched link under fwa, per cent below flooding"] = _reduction_table(reductions)
    if "figure6" in values:
        found["Figure 6: R² of regret against delta"] = _fit_table(values["figure6"])
    return found


def _against_published(cells: Mapping[str, Mapping[str, Any]], digits: int = 0) -> list[list[str]]:
    with_z = any("z" in cell for cell in cells.values())
    rows = [["protocol", "ours", "published", "deviation", *(["distance"] if with_z else [])]]
    for short, cell in cells.items():
        row = [short, _spread(cell["mean"], cell["sd"], digits)]
        row.append("-" if cell["published"] is None else _spread(cell["published"], cell["published_sd"], digits))
        row.append(_deviation(cell))
        if with_z:
            row.append(f"{cell['z']:+.1f}" if "z" in cell else "-")
        rows.append(row)
    return rows


def _reduction_table(cells: Mapping[str, Mapping[str, Any]]) -> list[list[str]]:
    rows = [["network", "ours", "published", "deviation"]]
    for name, cell in cells.items():
        points = cell["mean"] - cell["published"]
        rows.append([name, _spread(cell["mean"], cell["sd"], 1), f"{cell['published']:.0f}", f"{points:+.1f} points"])
    return rows


def _deviation(cell: Mapping[str, Any]) -> str:
    if cell["deviation"] is None:
        return "-"
    if cell["deviation"] == 0:
        return "exact"
    written = f"{100 * cell['deviation']:+.1f} %"
    return "0.0 %" if written in ("+0.0 %", "-0.0 %") else written


def _fit_table(fits: Mapping[str, Any]) -> list[list[str]]:
    rows = [["protocol", "greedy covers", "exact covers", "published", "greedy, regrets exchanged", "exact, exchanged"]]
    for short in ("flooding", "fwa"):
        row = fits[short]
        values = [row["greedy"]["r_squared"], row["exact"]["r_squared"], row["published"]]
        values += [row[cover]["r_squared_exchanged"] for cover in ("greedy", "exact")]
        rows.append([short, *(f"{value:.4f}" for value in values)])
    return rows


def _spread(mean: float, sd: float | None, digits: int) -> str:
    return spread(mean, sd or None, digits)


def csv_files(values: Mapping[str, Any], reproduction: Reproduction) -> dict[str, str]:
    """The CSV files of a reproduction: name -> content."""
    files: dict[str, str] = {}
    for figure in ("figure3", "figure4", "figure5"):
        if figure in values:
            files[f"{figure}.csv"] = _ends_csv(values[figure])
    for figure, names in (("figure3", published.STATIC_NETWORKS), ("figure5", ("dynamic-er",))):
        if figure in values:
            files[f"{figure}-curves.csv"] = _curves_csv({name: reproduction.runs[name] for name in names})
    if "figure6" in values:
        files["figure6.csv"] = _densities_csv(values["figure6"])
    return files


def _ends_csv(figure: Mapping[str, Any]) -> str:
    keys = ("mean", "sd", "published", "published_sd", "deviation", "z")
    rows: list[list[Any]] = [["network", "protocol", "what", *keys]]
    for name, protocols in figure.items():
        for short, row in protocols.items():
            rows += [[name, short, what, *(cell.get(key) for key in keys)] for what, cell in row.items()]
    return _csv(rows)


def _curves_csv(found: Mapping[str, Mapping[str, Runs]]) -> str:
    rows: list[list[Any]] = [["network", "protocol", "round", "regret", "regret_sd", "messages", "messages_sd"]]
    for name, protocols in found.items():
        for short, runs in protocols.items():
            columns = [runs.rounds]
            for curve in (runs.regret_curve, runs.messages_curve):
                sd = curve.std(axis=0, ddof=1) if len(curve) > 1 else np.full(curve.shape[1], np.nan)
                columns += [curve.mean(axis=0), sd]
            rows += [[name, short, *values] for values in zip(*(column.tolist() for column in columns), strict=True)]
    return _csv(rows)


def _densities_csv(figure: Mapping[str, Any]) -> str:
    rows: list[list[Any]] = [["degree", "protocol", "regret", "delta_greedy", "delta_exact"]]
    for short in ("flooding", "fwa"):
        row = figure[short]
        columns = figure["degrees"], row["regret"], row["greedy"]["delta"], row["exact"]["delta"]
        rows += [[degree, short, *values] for degree, *values in zip(*columns, strict=True)]
    return _csv(rows)


def _csv(rows: list[list[Any]]) -> str:
    stream = io.StringIO()
    csv.writer(stream, lineterminator="\n").writerows(rows)
    return stream.getvalue()
