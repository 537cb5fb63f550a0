"""Laws of arms from a file: named with their parameters, or as successes in trials."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import fields
from typing import Any

from .. import checks
from ..errors import InputError
from ..files.contents import AnyTable, name_cell
from .base import Law
from .bernoulli import Bernoulli
from .reading import MAKERS, from_description
from .table_files import TableFile, places_of, read_columns, typed


class LawFile(TableFile):
    """A file that holds laws."""

    kind = "table of laws"
    open_column = "parameters"


def read_laws(
    path: AnyTable, *, columns: dict[str, str] | str | None = None, max_bytes: int | None = None
) -> dict[Hashable, Law]:
    r"""Read what arms pay.

    The header row decides how the lines are read:

    - `arm,successes,trials`: Bernoulli laws, such as click-through rates.
    - `arm,law,parameters`: a law by name (gaussian, bernoulli, uniform, beta), then its parameters in their order.
    - `arm,law,mean,sigma` and the like: a law, and columns named by parameters; cells that a law has no use for are
      empty.

    Parameters
    ----------
    path : str, path or DataFrame
        A CSV file (separated by commas, semicolons, tabs, `|` or `::`) or a Parquet file, perhaps packed by gzip; or a
        pandas DataFrame.
    columns : dict or str, optional
        What the column `arm` is called in the file, if it is not called so: `{"arm": "movie"}`, or as in `read_log`.
    max_bytes : int, optional
        How many bytes it may hold, unpacked; 256 MiB if not given.

    Returns
    -------
    dict
        From arm to law, in the order of the file; arms are integers if all of them are, and else texts.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "laws.csv")
    ...     _ = file.write_text("arm,successes,trials\nred,3,200\nblue,1,50\n")
    ...     read_laws(file)
    {'red': Bernoulli(p=0.015), 'blue': Bernoulli(p=0.02)}
    """
    names = read_columns(columns, ("arm",))
    file = LawFile(path, max_bytes)
    rows = file.cells()
    number, header = next(rows)
    words = [str(word).strip().lower() for word in header]
    counts = "law" not in words
    wanted = ("arm", "successes", "trials") if counts else ("arm", "law")
    places = places_of(file, number, header, wanted, names, also=" or arm, law, parameters" if counts else "")
    laws: dict[str, Law] = {}
    for number, row in rows:
        if len(row) < 2 or max(places) >= len(row):
            raise file.wrong_line(number, f"a line must have {', '.join(wanted)}, got {checks.shown(list(row))}")
        arm = name_cell(file, number, "an arm", row[places[0]])
        if arm in laws:
            raise file.wrong_line(number, f"an arm has one law, got another of {checks.shown(arm)}")
        try:
            laws[arm] = _from_counts(*(row[k] for k in places[1:])) if counts else _by_name(words, row, places)
        except InputError as error:
            raise file.wrong_line(number, str(error)) from None
    if not laws:
        raise file.wrong("must describe laws of arms, got nothing but a header")
    return dict(zip(typed(file, list(laws)), laws.values(), strict=True))


def _from_counts(successes: Any, trials: Any) -> Law:
    n = checks.integer("trials", _number(trials), at_least=1)
    return Bernoulli(checks.integer("successes", _number(successes), at_least=0, at_most=n) / n)


def _by_name(words: Sequence[str], row: Sequence[Any], places: Sequence[int]) -> Law:
    name = checks.choice("law", str(row[places[1]]).strip().lower(), _NAMES)
    rest = [k for k in range(len(row)) if k not in places and row[k] is not None and str(row[k]).strip()]
    if words[-1] == "parameters":
        wanted = _NAMES[name]
        if len(rest) > len(wanted):
            raise InputError(f"the law {name} has the parameters {', '.join(wanted)}, got {len(rest)}")
        given = dict(zip(wanted, (_number(row[k]) for k in rest), strict=False))
    else:
        given = {words[k]: _number(row[k]) for k in rest}
    return from_description({"law": name, **given})


def _number(cell: Any) -> Any:
    """The number that a cell holds; the cell itself, to be refused in a moment, if it holds none."""
    number = checks.as_number(cell) if isinstance(cell, str) else None
    return cell if number is None else number


#: The laws that a row can hold, with their parameters in order.
_NAMES: dict[str, list[str]] = {
    name: [one.name for one in fields(MAKERS[name]) if one.init]  # type: ignore[arg-type]
    for name in ("gaussian", "bernoulli", "uniform", "beta")
}
