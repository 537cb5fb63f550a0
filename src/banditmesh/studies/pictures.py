"""The pictures of a study: over time, over a swept key, and regret against transmissions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from .. import checks, plots
from ..errors import InputError, StudyError, need
from ..plots.sweeps import find_sweep
from .lines import Where, lines, select
from .shards import CHANGES_COLUMN, point_columns

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from .store import Study

#: The most lines that a picture can be read with, unless colours go by a number.
MAX_LINES: Final = 30


def draw_study(
    study: Study,
    out: Path,
    axis: str | None = None,
    kinds: Sequence[str] = ("png", "svg"),
    look: plots.Look | None = None,
    *,
    where: Where | None = None,
    by: Sequence[str] | None = None,
    notice: Callable[[str], None] | None = None,
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
    where, by
        As for `Study.plot`; in pictures without this axis, its key tells lines apart, too.
    notice : callable, optional
        Called with a line if some of the runs are missing.

    Returns
    -------
    list of Path
        What was written.
    """
    figures = figures_of(study, axis, look, where, by, notice)
    out.mkdir(parents=True, exist_ok=True)
    return [path for stem, figure in figures.items() for path in plots.save(figure, out / stem, kinds)]


def figures_of(
    study: Study,
    axis: str | None = None,
    look: plots.Look | None = None,
    where: Where | None = None,
    by: Sequence[str] | None = None,
    notice: Callable[[str], None] | None = None,
) -> dict[str, Figure]:
    """All pictures of a study, by the names of their files; the arguments are those of `draw_study`."""
    runs = _read(study, curves=bool(study.manifest["spec"]["record_every"]))
    if runs.n_runs < study.manifest["n_runs"] and notice is not None:
        held = f"{study.path} holds {runs.n_runs} of {study.manifest['n_runs']} runs"
        notice(f"{held}, and only these are drawn; run it to complete it")
    numeric = _numeric_keys(study, select(runs.table, point_columns(study.manifest["columns"]), where))
    stems = {"tradeoff": "tradeoff"}
    if numeric or axis is not None:
        stems["sweep"] = f"over-{axis or numeric[0]}"
    if study.manifest["spec"]["record_every"]:
        stems["curves"] = "over-time"
    # The axis of one picture tells the lines of the others apart.
    return {
        stem: _plot(study, runs, kind, axis, look, where, _by(by, axis or next(iter(numeric), None), kind))
        for kind, stem in stems.items()
    }


def _by(by: Sequence[str] | None, axis: str | None, kind: str) -> list[str] | None:
    """The keys that separate the lines of one of several pictures."""
    if by is None:
        return None
    others = [key for key in by if key != axis]
    return others if kind == "sweep" or axis is None else [*others, axis]


def plot_study(
    study: Study,
    kind: str,
    axis: str | None = None,
    look: plots.Look | None = None,
    *,
    where: Where | None = None,
    by: str | Sequence[str] | None = None,
) -> Figure:
    """One picture of a study; see `Study.plot`."""
    checks.choice("kind", kind, ("curves", "tradeoff", "sweep"))
    curves = kind == "curves" and bool(study.manifest["spec"]["record_every"])
    return _plot(study, _read(study, curves), kind, axis, look, where, by)


def _plot(
    study: Study,
    runs: _Runs,
    kind: str,
    axis: str | None,
    look: plots.Look | None,
    where: Where | None,
    by: str | Sequence[str] | None,
) -> Figure:
    keys = point_columns(study.manifest["columns"])
    table = select(runs.table, keys, where)
    if kind == "tradeoff":
        found = _readable(lines(table, keys, by=by), keys)
        ends = {name: (one["messages"].to_numpy(float), one["regret"].to_numpy()) for name, one in found.items()}
        return plots.tradeoff({study.manifest["spec"]["name"]: ends}, _with_protocols(look, found))
    if kind == "sweep":
        numeric = _numeric_keys(study, table)
        axis = numeric[0] if numeric and axis is None else axis
        if axis is None or axis not in numeric:
            named = ", ".join(numeric) or "there is none"
            raise InputError(f"x (--x) must be a swept key with numbers ({named}), got {axis}")
        found = _readable(lines(table, keys, axis, by), keys, by_colour=False)
        return plots.over_key(axis, _series(found, axis), _with_protocols(look, found))
    if runs.curves is None:
        raise InputError(f"curves need a study with record_every, got none in {study.path}; set it and run it again")
    found = _readable(lines(select(runs.curves, keys, where), keys, by=by), keys)
    return plots.regret_and_messages(_curves(found), _with_protocols(look, found), _changes(table))


def _with_protocols(look: plots.Look | None, found: Mapping[str, pd.DataFrame]) -> plots.Look:
    """The look, in which lines whose names do not say their protocol have its colour."""
    one = {name: str(runs["protocol"].iloc[0]) for name, runs in found.items() if runs["protocol"].nunique() == 1}
    return replace(look or plots.Look(), protocols=one)


def _changes(table: pd.DataFrame) -> list[int]:
    """The rounds in which arms changed in all runs."""
    if CHANGES_COLUMN not in table:
        return []
    rounds = [set(text.split(",")) - {""} for text in table[CHANGES_COLUMN].fillna("").unique()]
    return sorted(map(int, set.intersection(*rounds))) if rounds else []


class _Runs(NamedTuple):
    """What was read of a study: how many runs there are, and the table and curves of those that succeeded."""

    n_runs: int
    table: pd.DataFrame
    curves: pd.DataFrame | None


def _read(study: Study, curves: bool) -> _Runs:
    table, lines = study.read(partial=True, curves=curves)
    succeeded = table[table["error"].isna()]
    if succeeded.empty:
        raise StudyError(f"{study.path} holds no run that succeeded; see the column error of its table")
    return _Runs(len(table), succeeded, lines)


def _numeric_keys(study: Study, table: pd.DataFrame) -> list[str]:
    """The swept keys that have numbers."""
    need("pandas", "tables", "a table")
    from pandas.api.types import is_numeric_dtype

    return [key for key in study.manifest["spec"]["sweep"] if key in table and is_numeric_dtype(table[key])]


def _readable(found: dict[str, pd.DataFrame], keys: Sequence[str], by_colour: bool = True) -> dict[str, pd.DataFrame]:
    """The same lines, unless there are too many to tell apart."""
    if len(found) > MAX_LINES and not (by_colour and find_sweep(found)):
        counts = {key: len(set().union(*(runs[key].dropna() for runs in found.values()))) for key in keys}
        told = ", ".join(f"{key} ({n} values)" for key, n in counts.items() if n > 1)
        raise InputError(
            f"a picture can show {MAX_LINES} lines, and these would be {len(found)}; choose values with where "
            f"(--where), there are {told}"
        )
    return found


def _series(found: dict[str, pd.DataFrame], axis: str) -> dict[str, tuple[list[float], list[Any], list[Any]]]:
    """For each line the runs at every value of the axis; a point without a value counts at all of them."""
    every = sorted({value for runs in found.values() for value in runs[axis].dropna().unique()})
    series: dict[str, tuple[list[float], list[Any], list[Any]]] = {}
    for name, group in found.items():
        values, regrets, messages = [], [], []
        for value in every:
            runs = group[(group[axis] == value) | group[axis].isna()]
            if len(runs):
                values.append(float(value))
                regrets.append(runs["regret"].to_numpy())
                messages.append(runs["messages"].to_numpy(float))
        series[name] = values, regrets, messages
    return series


def _curves(found: dict[str, pd.DataFrame]) -> dict[str, plots.Curves]:
    """Curves of each line."""
    curves: dict[str, plots.Curves] = {}
    for name, group in found.items():
        regret = group.pivot(index="run", columns="round", values="regret").dropna(axis=1)
        messages = group.pivot(index="run", columns="round", values="messages")[regret.columns]
        curves[name] = regret.columns.to_numpy(), regret.to_numpy(), messages.to_numpy()
    return curves
