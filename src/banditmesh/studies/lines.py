"""Which runs of a study a picture shows, and which of them make one line.

Rules kept here: what is averaged at one place of a line are the replicates of one point of the study, and nothing else:
a band never mixes swept values. A run that has no value of a key, as one of `none` has no ttl, counts at all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from .. import checks
from ..errors import InputError

if TYPE_CHECKING:
    import pandas as pd

#: The values that runs must have, by key: one, or several of them.
Where: TypeAlias = Mapping[str, Any]
_LISTS: Final = (list, tuple, set, frozenset)


def varied(table: pd.DataFrame, keys: Iterable[str]) -> list[str]:
    """The keys in which the runs of a table differ."""
    return [key for key in keys if table[key].nunique(dropna=False) > 1]


def select(table: pd.DataFrame, keys: Sequence[str], where: Where | None) -> pd.DataFrame:
    """The runs that have certain values.

    Parameters
    ----------
    table : DataFrame
        As `Study.table` or `Study.curves` gives it.
    keys : sequence of str
        The columns of the study's keys.
    where : mapping, optional
        The values, numbers or as tables write them; runs that have no value of a key are kept.
    """
    if where is not None and not isinstance(where, Mapping):
        raise InputError(f"where must be a dict such as {{'protocol': 'fwa'}}, got {checks.shown(where)}")
    for key, wanted in (where or {}).items():
        if key not in keys:
            raise InputError(
                f"where (--where) must be over keys of the study ({', '.join(keys)}), got {checks.shown(key)}"
                f"{checks.meant(key, keys)}"
            )
        texts = table[key].map(as_text, na_action="ignore")
        chosen = {as_text(value) for value in (wanted if isinstance(wanted, _LISTS) else [wanted])}
        if not chosen or chosen - set(texts.dropna()):
            known = ", ".join(dict.fromkeys(texts.dropna())) or "no value"
            raise InputError(f"where (--where) {key} must be among {known} in these runs, got {checks.shown(wanted)}")
        table = table[texts.isin(chosen) | texts.isna()]
    return table


def lines(
    table: pd.DataFrame, keys: Sequence[str], along: str | None = None, by: str | Sequence[str] | None = None
) -> dict[str, pd.DataFrame]:
    """The runs of each line, by a unique name.

    Parameters
    ----------
    table, keys
        As for `select`.
    along : str, optional
        The key along the horizontal axis, if it is one.
    by : str or sequence of str, optional
        The keys that tell lines apart; all in which the runs differ if not given.
    """
    others = [key for key in varied(table, keys) if key != along]
    chosen = others if by is None else [by] if isinstance(by, str) else list(by)
    for key in chosen:
        if key not in keys or key == along:
            known = ", ".join(key for key in keys if key != along)
            raise InputError(f"by (--by) must be over other keys of the study ({known}), got {checks.shown(key)}")
    if by is None and "protocol" not in chosen:
        chosen = ["protocol", *chosen]
    chosen = sorted(chosen, key=lambda key: key != "protocol")  # which gives a line its colour
    groups = list(table.groupby(chosen, dropna=False, sort=False)) if chosen else [((), table)]
    for _, runs in groups:
        _check_not_mixed(runs, others, along)
    names = [_name(chosen, values) for values, _ in groups]
    if len(set(names)) < len(names):
        names = [_name(chosen, values, in_full=True) for values, _ in groups]
    return {name: runs for name, (_, runs) in zip(names, groups, strict=True)}


def is_mixed(runs: pd.DataFrame, along: str | None) -> bool:
    """Whether a line of these runs would average over several points of the study at one place."""
    if along is None:
        return int(runs["point"].nunique()) > 1
    at_all = runs[along].isna()
    n_there = runs[~at_all].groupby(along)["point"].nunique().max() if not at_all.all() else 0
    return int(n_there) + int(runs[at_all]["point"].nunique()) > 1


def as_text(value: Any) -> str:
    """A value as text, the same whether it is a number or what a command line says: 4, 4.0 and "4" are equal.

    Examples
    --------
    >>> as_text(4), as_text("4"), as_text(True), as_text("true"), as_text("ring(n=5)")
    ('4', '4', 'true', 'true', 'ring(n=5)')
    """
    text = str(value).strip()
    try:
        return repr(float(text)).removesuffix(".0")
    except ValueError:
        return text.lower() if text in ("True", "False") else text


def _check_not_mixed(runs: pd.DataFrame, others: Sequence[str], along: str | None) -> None:
    if is_mixed(runs, along):
        mixed = ", ".join(varied(runs, others)) or "points"
        raise InputError(
            f"a line must not mix swept values, got several of {mixed} in one; add them to by (--by), or choose one of "
            "each with where (--where)"
        )


def _name(keys: Sequence[str], values: Sequence[Any], in_full: bool = False) -> str:
    """The name of a line: short or, if short names are not unique, in full."""
    words = []
    for key, value in zip(keys, values, strict=True):
        if value is None or value != value:
            words += [f"no {key}"] if in_full else []
        elif isinstance(value, str):
            words.append(f"{key} {value}" if in_full and key != "protocol" else value)
        else:
            words.append(f"{key} {value}" if in_full else f"{key.rpartition('.')[2]} {float(value):g}")
    return ", ".join(words or [f"no {key}" for key in keys]) or "all runs"
