"""Catalogues: which agent has which arms, as a file tells it."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any

from ..checks import shown
from ..files.contents import AnyTable, name_cell
from .table_files import TableFile, places_of, read_columns, typed

_COLUMNS = ("agent", "arm")


class Catalogue(Mapping[Hashable, tuple[Hashable, ...]]):
    """For each agent its arms: a mapping that `Problem` matches with a network by name.

    A name matches if it is written the same: agent 7 of the catalogue is node "7" of a network whose names are texts.

    Parameters
    ----------
    arm_sets : mapping
        From agent to its arms, in the order of its first pulls.
    source : str
        What errors call it.

    Examples
    --------
    >>> Catalogue({"ann": ["red", "blue"], "bob": ["red"]})
    Catalogue(2 agents, 2 arms)
    """

    def __init__(self, arm_sets: Mapping[Hashable, Sequence[Hashable]], source: str = "the catalogue") -> None:
        self._arm_sets = {agent: tuple(arms) for agent, arms in arm_sets.items()}
        self.source = source

    def __getitem__(self, agent: Hashable) -> tuple[Hashable, ...]:
        return self._arm_sets[agent]

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self._arm_sets)

    def __len__(self) -> int:
        return len(self._arm_sets)

    def __repr__(self) -> str:
        return f"Catalogue({len(self)} agents, {len(set().union(*self.values()))} arms)"


class CatalogueFile(TableFile):
    """A file that holds a catalogue."""

    kind = "catalogue"


def read_catalogue(
    path: AnyTable, *, columns: dict[str, str] | str | None = None, max_bytes: int | None = None
) -> Catalogue:
    r"""Read a catalogue: a header row, and then an agent and one of its arms on every line.

    Parameters
    ----------
    path : str, path or DataFrame
        A CSV file (separated by commas, semicolons, tabs, `|` or `::`) or a Parquet file, perhaps packed by gzip; or a
        pandas DataFrame. Other columns are ignored, and so are lines that begin with `#`.
    columns : dict or str, optional
        What the columns `agent` and `arm` are called in the file, if they are not called so: `{"agent": "user"}` or
        `"user,movie"`.
    max_bytes : int, optional
        How many bytes it may hold, unpacked; 256 MiB if not given.

    Returns
    -------
    Catalogue
        Agents and arms are integers if all of them are, and else texts.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "catalogue.csv")
    ...     _ = file.write_text("agent,arm\nann,red\nann,blue\nbob,red\n")
    ...     dict(read_catalogue(file))
    {'ann': ('red', 'blue'), 'bob': ('red',)}
    """
    names = read_columns(columns, _COLUMNS)
    file = CatalogueFile(path, max_bytes)
    rows = file.cells()
    number, header = next(rows)
    place, other = places_of(file, number, header, _COLUMNS, names)
    found: dict[str, dict[str, None]] = {}
    arms: dict[str, None] = {}
    for number, row in rows:
        if len(row) <= max(place, other):
            raise file.wrong_line(number, f"an agent and an arm are required, got {shown(list(row))}")
        agent, arm = name_cell(file, number, "an agent", row[place]), name_cell(file, number, "an arm", row[other])
        held = found.setdefault(agent, {})
        if arm in held:
            raise file.wrong_line(number, f"an agent has an arm once, got {shown(arm)} of {shown(agent)} again")
        held[arm] = arms[arm] = None
    if not found:
        raise file.wrong("must describe a catalogue, got nothing but a header")
    arm_of: dict[str, Any] = dict(zip(arms, typed(file, list(arms)), strict=True))
    agents = zip(typed(file, list(found)), found.values(), strict=True)
    return Catalogue({agent: [arm_of[arm] for arm in held] for agent, held in agents}, str(file.path))
