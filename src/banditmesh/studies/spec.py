"""A study: settings, six tables that name parts, one of faults, and a grid over any of them.

Rules kept here: runs are numbered point by point in the order of the grid (see `grid`), and then by replicates; the
numbering depends on the spec alone. Nothing here grows with the number of runs.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import msgspec

from ..lookup import own
from ..settings.parts import NAME_KEYS
from ..settings.problems import FILE_TABLES, FileTable, files_in
from .grid import Family, Grid, Point, column, labels_of
from .shards import CHANGES_COLUMN, REPLAY_COLUMNS, digest

#: The version of the spec format.
FORMAT: Final = 1


class Settings(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The keys of a spec, their types and their defaults."""

    version: int = FORMAT
    name: str = "study"
    horizon: int = 1000
    replicates: int = 10
    seed: int = 0
    rules: str = "sound"
    engine: str = "auto"
    every: int = 1
    trim: int = 0
    record_every: int = 0
    network: dict[str, Any] = msgspec.field(default_factory=lambda: {"name": "er"})
    dynamics: dict[str, Any] = msgspec.field(default_factory=lambda: {"name": "none"})
    arms: dict[str, Any] = msgspec.field(default_factory=lambda: {"law": "gaussian"})
    policy: dict[str, Any] = msgspec.field(default_factory=lambda: {"name": "ucb"})
    memory: dict[str, Any] = msgspec.field(default_factory=lambda: {"name": "everything"})
    protocol: dict[str, Any] = msgspec.field(default_factory=lambda: {"name": "fwa", "ttl": 4})
    emission: dict[str, Any] = msgspec.field(default_factory=lambda: {"name": "default"})
    faults: dict[str, Any] = {}
    sweep: dict[str, Any] = {}


#: What a table holds before the spec says anything; a parameter that the named part does not take is dropped.
DEFAULTS: Final[dict[str, dict[str, Any]]] = {table: getattr(Settings(), table) for table in NAME_KEYS}
NOT_SWEPT: Final = ("version", "name", "replicates", "seed", "sweep", "record_every")


def drop_unset(settings: dict[str, Any]) -> None:
    """Leave out settings that came later and are not used: older studies keep their fingerprint, and can be resumed."""
    if not settings.get("trim"):
        settings.pop("trim", None)


@dataclass(frozen=True)
class Spec:
    r"""A study: settings and a grid over them. Made by `read_spec` or `parse_spec`, which check it.

    Attributes
    ----------
    settings : Settings
        What the file says, defaults filled in.
    grid : mapping from str to list
        The swept keys and their values.
    folder : Path
        Where the paths of files start from.
    given : frozenset of str
        The keys of tables that were given rather than filled in.

    Examples
    --------
    >>> from banditmesh import parse_spec
    >>> spec = parse_spec('horizon = 9\nsweep.protocol = {name = ["none", "fwa"], ttl = [2, 4]}')
    >>> [point.labels["protocol.ttl"] for point in spec.points()]
    [None, 2, 4]
    """

    settings: Settings
    grid: Mapping[str, Sequence[Any]]
    folder: Path
    given: frozenset[str] = field(default=frozenset(), compare=False)

    # Nothing is kept of what follows: the tables of the settings can be changed, and then all of it changes together.

    @property
    def _grid(self) -> Grid:
        settings = msgspec.to_builtins(self.settings)
        return Grid({key: value for key, value in settings.items() if key not in NOT_SWEPT}, self.grid)

    def points(self) -> Iterator[Point]:
        """The points of the grid, one after the other."""
        return self._grid.points()

    def families(self, setting: str | None = None) -> Iterator[Family]:
        """What the sweep makes of each section of the settings, or of the section of one setting."""
        sections = self._grid.sections if setting is None else [self._grid.section(setting)]
        return itertools.chain.from_iterable(section.families() for section in sections)

    @property
    def columns(self) -> dict[str, str]:
        """The label columns and the type of each: "string", "bool", "int64" or "double".

        And, where a log is replayed, those that say how much of it was used up; where arms change, when they did.
        """
        kinds = dict.fromkeys(("network", "policy", "protocol", "rules"), "string")
        for key, values in self.grid.items():
            kinds[column(key)] = labels_of(key, values)[0]
        kinds |= {CHANGES_COLUMN: "string"} if self.changes else {}
        return kinds | dict.fromkeys(REPLAY_COLUMNS if self.replays else (), "int64")

    @property
    def replays(self) -> bool:
        """Whether rewards of a log are replayed at any point."""
        data = (family for family in self.families("arms") if family.settings["arms"]["law"] == "data")
        variants = itertools.chain.from_iterable(family.variants("arms") for family in data)
        return any(one["arms"].get("rewards") == "replay" for one in variants)

    @property
    def changes(self) -> bool:
        """Whether arms change at any point."""
        return any({"change", "periods"} & set(family.settings["arms"]) for family in self.families("arms"))

    @property
    def n_points(self) -> int:
        """How many points the grid has."""
        return self._grid.n_points

    @property
    def n_runs(self) -> int:
        """How many runs: points times replicates."""
        return self.n_points * self.settings.replicates

    @property
    def seeds(self) -> list[int]:
        """The seed of each replicate, the same at every point, so that points meet the same rewards."""
        return [self.seed_of(replicate) for replicate in range(self.settings.replicates)]

    def seed_of(self, replicate: int) -> int:
        """The seed of one replicate."""
        return replicate_seed(self.settings.seed, replicate)

    def files(self) -> dict[FileTable, Path]:
        """The paths of the network and arm files that the points name, by what they say of them."""
        found: dict[FileTable, Path] = {}
        for table in FILE_TABLES:
            naming = (family for family in self.families(table) if files_in(family.settings, table))
            variants = itertools.chain.from_iterable(family.variants(table) for family in naming)
            found |= self.files_of(variants, table)
        return found

    def files_of(self, points: Iterable[Mapping[str, Any]], table: str) -> dict[FileTable, Path]:
        """The paths of the files that a table of some settings names, by what they say of them."""
        named = itertools.chain.from_iterable(files_in(point, table) for point in points)
        return {one: self.folder / dict(one)["path"] for one in named}

    def to_json(self) -> dict[str, Any]:
        """The study as plain values, the same for equal studies however they were written."""
        settings: dict[str, Any] = msgspec.to_builtins(self.settings)
        drop_unset(settings)
        return {**settings, "sweep": {key: list(values) for key, values in self.grid.items()}}

    @property
    def chooses_policy(self) -> bool:
        """Whether the spec names a policy; the default is taken otherwise."""
        return any(key.partition(".")[0] == "policy" for key in (*self.given, *self.grid))

    def own_texts(self) -> dict[str, own.Texts]:
        """The users' own modules that the study names, as workers need them."""
        return own.texts_in(json.dumps(self.to_json()))

    @property
    def digest(self) -> str:
        """A fingerprint of `to_json`."""
        return digest(json.dumps(self.to_json(), sort_keys=True).encode())


def replicate_seed(seed: int, replicate: int) -> int:
    """The seed of one replicate: `simulate(..., seed=that, replicates=1)` repeats the run.

    A hash, so that studies with neighbouring seeds share no replicates.

    Examples
    --------
    >>> replicate_seed(0, 0) != replicate_seed(0, 1) != replicate_seed(1, 0)
    True
    """
    label = f"banditmesh study {seed} {replicate}".encode()
    return int.from_bytes(hashlib.blake2b(label, digest_size=6).digest(), "little")
