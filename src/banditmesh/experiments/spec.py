"""A study: settings, six tables that name parts, one of faults, and a grid over any of them.

Rules kept here: values of a sweep that a point has no use for (the ttl of agents that never send) do not multiply
that point. Points and runs are numbered in the order of the grid, the last swept key fastest, then the replicates;
the numbering depends on the spec alone.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import msgspec

from ..errors import InputError, SpecError
from ..protocols import notation
from .faults import without_traffic
from .parts import NAME_KEYS, FileTable, file_of, get_part

#: The version of the spec format.
FORMAT: Final = 1


class Settings(msgspec.Struct, forbid_unknown_fields=True):
    """The keys of a spec, their types and their defaults."""

    version: int = FORMAT
    name: str = "study"
    horizon: int = 1000
    replicates: int = 10
    seed: int = 0
    rules: str = "sound"
    engine: str = "auto"
    every: int = 1
    record_every: int = 0
    network: dict[str, Any] = msgspec.field(default_factory=lambda: {"name": "er"})
    dynamics: dict[str, Any] = msgspec.field(default_factory=lambda: {"name": "none"})
    arms: dict[str, Any] = msgspec.field(default_factory=lambda: {"law": "gaussian"})
    policy: dict[str, Any] = msgspec.field(default_factory=lambda: {"name": "ucb"})
    protocol: dict[str, Any] = msgspec.field(default_factory=lambda: {"name": "fwa"})
    emission: dict[str, Any] = msgspec.field(default_factory=lambda: {"name": "default"})
    faults: dict[str, Any] = msgspec.field(default_factory=dict)
    sweep: dict[str, Any] = msgspec.field(default_factory=dict)


#: What a table holds before the spec says anything; a parameter that the named part does not take is dropped.
DEFAULTS: Final[dict[str, dict[str, Any]]] = {
    "network": {"name": "er"},
    "dynamics": {"name": "none"},
    "arms": {"law": "gaussian"},
    "policy": {"name": "ucb"},
    "protocol": {"name": "fwa", "ttl": 4},
    "emission": {"name": "default"},
}
NOT_SWEPT: Final = ("version", "name", "replicates", "seed", "sweep", "record_every")


class BadKey(SpecError):
    """An error about one key, which it remembers so that its line can be told."""

    def __init__(self, key: str, message: str) -> None:
        super().__init__(message)
        self.key = key


@dataclass(frozen=True)
class Point:
    """One point of the grid.

    Attributes
    ----------
    number : int
        Its place in the grid, from 0.
    settings : mapping
        What is simulated, as plain values, without anything that has no effect.
    labels : mapping from str to str, number, bool or None
        The columns that tell it from other points; None where a swept key has no effect.
    """

    number: int
    settings: Mapping[str, Any]
    labels: Mapping[str, Any]


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
        Where the paths of network files start from.

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

    def points(self) -> Iterator[Point]:
        """The points of the grid, one after the other."""
        # Whole tables are set before single keys, whatever their order in the file.
        keys = sorted(self.grid, key=lambda key: key.count("."))
        places = [list(self.grid).index(key) for key in keys]
        number = 0
        for combination in itertools.product(*(range(len(values)) for values in self.grid.values())):
            tables = deepcopy(self._base)
            for key, place in zip(keys, places, strict=True):
                _assign(tables, key, self.grid[key][combination[place]])
            settings = _without_unused(tables)
            idle = {key for key in keys if not has_key(settings, key)}
            if any(combination[place] for key, place in zip(keys, places, strict=True) if key in idle):
                continue
            yield Point(number, settings, self._labels(settings, combination, idle))
            number += 1

    def _labels(self, settings: Mapping[str, Any], combination: Sequence[int], idle: set[str]) -> dict[str, Any]:
        labels = {table: settings[table]["name"] for table in ("network", "policy", "protocol")}
        labels["rules"] = settings["rules"]
        for place, (key, values) in enumerate(self.grid.items()):
            labels[column(key)] = None if key in idle else _label(key, values[combination[place]])
        return labels

    @property
    def _base(self) -> dict[str, Any]:
        settings = msgspec.to_builtins(self.settings)
        return {key: value for key, value in settings.items() if key not in NOT_SWEPT}

    @cached_property
    def columns(self) -> dict[str, str]:
        """The label columns and the type of each: "string", "bool", "int64" or "double"."""
        kinds = dict.fromkeys(("network", "policy", "protocol", "rules"), "string")
        for key, values in self.grid.items():
            kinds[column(key)] = _kind([_label(key, value) for value in values])
        return kinds

    @cached_property
    def n_points(self) -> int:
        """How many points the grid has."""
        return sum(1 for _ in self.points())

    @property
    def n_runs(self) -> int:
        """How many runs: points times replicates."""
        return self.n_points * self.settings.replicates

    @property
    def seeds(self) -> list[int]:
        """The seed of each replicate, the same at every point, so that points meet the same rewards."""
        return [replicate_seed(self.settings.seed, replicate) for replicate in range(self.settings.replicates)]

    def network_files(self) -> dict[FileTable, Path]:
        """Where the network files lie that the points name, by what they say of them."""
        named = (file_of(point.settings) for point in self.points())
        return {one: self.folder / dict(one)["path"] for one in named if one is not None}

    def to_json(self) -> dict[str, Any]:
        """The study as plain values, the same for equal studies however they were written."""
        settings: dict[str, Any] = msgspec.to_builtins(self.settings)
        return {**settings, "sweep": {key: list(values) for key, values in self.grid.items()}}

    @property
    def digest(self) -> str:
        """A fingerprint of `to_json`."""
        text = json.dumps(self.to_json(), sort_keys=True)
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


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


def column(key: str) -> str:
    """The column of a swept key: the key itself, but "protocol" for "protocol.name"."""
    table, _, rest = key.partition(".")
    return table if rest and rest == NAME_KEYS.get(table) else key


def _assign(tables: dict[str, Any], key: str, value: Any) -> None:
    top, _, rest = key.partition(".")
    if rest:
        *path, last = rest.split(".")
        table = tables[top]
        for name in path:
            table = table.setdefault(name, {})
        if not isinstance(table, dict):
            raise BadKey(key, f"{key.rpartition('.')[0]} must be a table, got {table!r}")
        table[last] = value
    elif top in NAME_KEYS and isinstance(value, dict):
        tables[top] = dict(value)
    elif top == "protocol" and (written := read_written(value)):
        tables["protocol"] |= written["protocol"]
        tables["emission"] = written.get("emission", tables["emission"])
    elif top in NAME_KEYS:
        tables[top][NAME_KEYS[top]] = value
    else:
        tables[top] = deepcopy(value)


def read_written(value: object) -> dict[str, dict[str, Any]] | None:
    """The tables of a protocol that is written out, as in "flooding(8)+growth(0.25)"; None if it is but a name.

    Examples
    --------
    >>> read_written("flooding(8)+growth(0.25)")
    {'protocol': {'name': 'flooding', 'ttl': 8}, 'emission': {'name': 'growth', 'factor': 0.25}}
    """
    if not isinstance(value, str) or not any(sign in value for sign in "(+"):
        return None
    try:
        return notation.parse(value).tables
    except InputError as error:
        raise BadKey("protocol", str(error)) from None


def has_key(settings: Mapping[str, Any], key: str) -> bool:
    """Whether a dotted key is set."""
    value: Any = settings
    for name in key.split("."):
        if not isinstance(value, Mapping) or name not in value:
            return False
        value = value[name]
    return True


def _without_unused(tables: dict[str, Any]) -> dict[str, Any]:
    """The settings of a point without the parameters that its parts do not take."""
    settings = dict(tables)
    for table, name_key in NAME_KEYS.items():
        given = tables[table]
        if name_key not in given:
            raise BadKey(table, f"{table}.{name_key} is required, got {given!r}")
        part = _part(table, given[name_key])
        settings[table] = {key: value for key, value in given.items() if key == name_key or key in part.parameters}
        # A protocol whose ttl is 0 for good.
        if table == "protocol" and getattr(part.make, "ttl", None) == 0:
            settings["faults"] = without_traffic(tables["faults"])
    return settings


def _part(table: str, name: object) -> Any:
    try:
        return get_part(table, name)
    except InputError as error:
        raise BadKey(f"{table}.{NAME_KEYS[table]}", str(error)) from None


def _label(key: str, value: Any) -> Any:
    """How a swept value is written in its column."""
    if isinstance(value, dict):
        rest = dict(value)
        return _written(rest.pop(NAME_KEYS.get(key, "name"), ""), rest) or "none"
    return json.dumps(value) if isinstance(value, list) else value


def _written(name: str, parameters: Mapping[str, Any]) -> str:
    told = [_written(k, v) if isinstance(v, dict) else f"{k}={v}" for k, v in parameters.items()]
    return f"{name}({', '.join(told)})" if name and told else name or ", ".join(told)


def _kind(labels: Sequence[Any]) -> str:
    for name, kinds in (("bool", bool), ("int64", int), ("double", (int, float))):
        if all(isinstance(label, kinds) and (name == "bool") == isinstance(label, bool) for label in labels):
            return name
    return "string"
