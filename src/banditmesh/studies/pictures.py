"""The pictures of a study: over time, over a swept key, and regret against transmissions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import checks, plots
from ..errors import InputError, StudyError

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from .store import Study

#: Columns in which points differ, besides those of swept keys inside tables.
_NAMES = ("network", "policy", "protocol", "rules", "emission", "dynamics", "faults", "horizon", "every")


def draw_study(
    study: Study,
    out: Path,
    axis: str | None = None,
    kinds: Sequence[str] = ("png", "svg"),
    look: plots.Look | None = None,
) -> list[Path]:
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
    look : Look, optional
        Size, scales and bands.

    Returns
    -------
    list of Path
        What was written.
    """
    numeric = _numeric_keys(study, _succeeded(study))
    stems = {"tradeoff": "tradeoff"}
    if numeric or axis is not None:
        stems["sweep"] = f"over-{axis or numeric[0]}"
    if study.manifest["spec"]["record_every"]:
        stems["curves"] = "over-time"
    figures = {stem: plot_study(study, kind, axis, look) for kind, stem in stems.items()}
    out.mkdir(parents=True, exist_ok=True)
    return [path for stem, figure in figures.items() for path in plots.save(figure, out / stem, kinds)]


def plot_study(study: Study, kind: str, axis: str | None = None, look: plots.Look | None = None) -> Figure:
    """One picture of a study; see `Study.plot`."""
    checks.choice("kind", kind, ("curves", "tradeoff", "sweep"))
    table = _succeeded(study)
    if kind == "tradeoff":
        return plots.tradeoff({study.manifest["spec"]["name"]: _tradeoff(table)}, look)
    if kind == "sweep":
        numeric = _numeric_keys(study, table)
        axis = numeric[0] if numeric and axis is None else axis
        if axis not in numeric:
            keys = ", ".join(numeric) or "there is none"
            raise InputError(f"x (--x) must be a swept key with numbers ({keys}), got {axis}")
        return plots.over_key(axis, _series(table, axis), look)
    if not study.manifest["spec"]["record_every"]:
        raise InputError(f"curves need a study with record_every, got none in {study.path}; set it and run it again")
    return plots.regret_and_messages(_curves(study.curves(partial=True)), look)


def _succeeded(study: Study) -> pd.DataFrame:
    table = study.table(partial=True)
    table = table[table["error"].isna()]
    if table.empty:
        raise StudyError(f"{study.path} holds no run that succeeded; see the column error of its table")
    return table


def _numeric_keys(study: Study, table: pd.DataFrame) -> list[str]:
    """The swept keys that have numbers."""
    from pandas.api.types import is_numeric_dtype

    return [key for key in study.manifest["spec"]["sweep"] if key in table and is_numeric_dtype(table[key])]


def _label(frame: pd.DataFrame, without: str = "") -> pd.Series[str]:
    """What distinguishes the points of a table, in a few words: the protocol, and any other key that varies."""
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
    """For each kind of point the runs at every value of the axis; a point without a value counts at all of them."""
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
