"""The pictures of a study: over time, over a swept key, and regret against messages."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import plots
from ..errors import InputError, StudyError

if TYPE_CHECKING:
    import pandas as pd

    from .store import Study

#: Columns that tell points apart, besides those of swept keys inside tables.
_NAMES = ("network", "policy", "protocol", "rules", "emission", "dynamics", "faults", "horizon", "every")


def draw_study(study: Study, out: Path, axis: str | None = None, kinds: Sequence[str] = ("png", "svg")) -> list[Path]:
    """Draw a study into a folder.

    Parameters
    ----------
    study : Study
        At least partly run; of one that is not complete, the runs that are there are drawn.
    out : path
        The folder.
    axis : str, optional
        The swept key along the horizontal axis; the first one with numbers if not given.
    kinds : sequence of str
        "png", "svg" and "pdf".

    Returns
    -------
    list of Path
        What was written.
    """
    table = study.table(partial=True)
    table = table[table["error"].isna()]
    if table.empty:
        raise StudyError(f"{study.path} holds no run that succeeded; see the column error of its table")
    keys = list(study.manifest["spec"]["sweep"])
    axis = _check_axis(axis, table, keys)
    out.mkdir(parents=True, exist_ok=True)
    figures = {"tradeoff": plots.tradeoff({study.manifest["spec"]["name"]: _tradeoff(table)})}
    if axis is not None:
        figures[f"over-{axis}"] = plots.over_key(axis, _series(table, axis))
    if study.manifest["spec"]["record_every"]:
        figures["over-time"] = plots.regret_and_messages(_curves(study.curves(partial=True)))
    return [path for name, figure in figures.items() for path in plots.save(figure, out / name, kinds)]


def _check_axis(axis: str | None, table: pd.DataFrame, keys: list[str]) -> str | None:
    from pandas.api.types import is_numeric_dtype

    numeric = [key for key in keys if key in table and is_numeric_dtype(table[key])]
    if axis is None:
        return numeric[0] if numeric else None
    if axis not in numeric:
        raise InputError(f"--x must be a swept key with numbers ({', '.join(numeric) or 'there is none'}), got {axis}")
    return axis


def _label(frame: pd.DataFrame, without: str = "") -> pd.Series[str]:
    """What tells the points of a table apart, in a few words: the protocol, and any other key that varies."""
    keys = [
        key for key in frame.columns if (key in _NAMES or "." in key or key in ("horizon", "every")) and key != without
    ]
    varied = [key for key in keys if key != "protocol" and frame[key].nunique(dropna=True) > 1]
    label = frame["protocol"].astype(str)
    for key in varied:
        words = frame[key].map(lambda value, key=key: _words(key, value))
        label = label + words
    return label


def _words(key: str, value: Any) -> str:
    if value is None or value != value:
        return ""
    short = key.rpartition(".")[2]
    return f", {short} {value:g}" if isinstance(value, int | float) else f", {value}"


def _tradeoff(table: pd.DataFrame) -> dict[str, tuple[Any, Any]]:
    groups = table.groupby(_label(table), sort=False)
    return {str(name): (group["messages"].to_numpy(float), group["regret"].to_numpy()) for name, group in groups}


def _series(table: pd.DataFrame, axis: str) -> dict[str, tuple[list[float], list[Any], list[Any]]]:
    """For each kind of point the runs at every value of the axis; a point without a value there stands at all."""
    every = sorted(table[axis].dropna().unique())
    series: dict[str, tuple[list[float], list[Any], list[Any]]] = {}
    for name, group in table.groupby(_label(table, without=axis), sort=False):
        values, regrets, messages = [], [], []
        for value in every:
            runs = group[(group[axis] == value) | group[axis].isna()]
            if len(runs):
                values.append(float(value))
                regrets.append(runs["regret"].to_numpy())
                messages.append(runs["messages"].to_numpy(float))
        series[str(name)] = values, regrets, messages
    return series


def _curves(curves: pd.DataFrame) -> dict[str, plots.Curves]:
    """Curves by kind of point; runs whose horizons differ are cut to the rounds that all have."""
    found: dict[str, plots.Curves] = {}
    for name, group in curves.groupby(_label(curves), sort=False):
        regret = group.pivot(index="run", columns="round", values="regret").dropna(axis=1)
        messages = group.pivot(index="run", columns="round", values="messages")[regret.columns]
        found[str(name)] = regret.columns.to_numpy(), regret.to_numpy(), messages.to_numpy()
    return found
