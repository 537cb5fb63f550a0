"""The points of a grid over settings, one at a time.

Rules kept here: values of a sweep that a point has no use for (the ttl of agents that never send) do not multiply
that point. Points are numbered in the order of the grid, the last swept key fastest; the numbering depends on the
settings and the swept values alone.

A swept key changes the settings of its own *section* only, and so the number of points is a product over sections.
And most keys change nothing but their own value: the choices of a section that differ in such values alone are a
*family*, and whatever does not depend on the values is asked once for a family, not once for each point.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, cast

from .. import checks
from ..errors import InputError
from ..lookup import own
from ..settings.parts import NAME_KEYS, has_key, is_within, leaves, part_of, tables_of, without_traffic

#: A policy may be written out with its memory, and a protocol with its emission; agents that send nothing have no use
#: for most faults.
_TOGETHER: Final = (("policy", "memory"), ("protocol", "emission", "faults"))


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
    chosen : mapping
        The swept keys that have an effect, each with the value that it has here.
    """

    number: int
    settings: Mapping[str, Any]
    labels: Mapping[str, Any]
    chosen: Mapping[str, Any]


@dataclass(frozen=True)
class SectionChoice:
    """What one choice of swept values makes of the settings of a section.

    Attributes
    ----------
    settings : mapping
        The section's settings, without anything that has no effect.
    labels : mapping
        The columns of its swept keys.
    chosen : mapping
        The swept keys that have an effect, each with its value.
    """

    settings: Mapping[str, Any]
    labels: Mapping[str, Any]
    chosen: Mapping[str, Any]


@dataclass(frozen=True)
class Family:
    """Choices of a section that differ in the values of single keys alone, not in what has an effect.

    Attributes
    ----------
    settings : mapping
        The settings of the first of them.
    replaced : mapping from str to str
        The keys and tables whose values the sweep decides here, and the swept key that does it.
    free : mapping from str to sequence
        The keys in which they differ, each with all its values.
    """

    settings: Mapping[str, Any]
    replaced: Mapping[str, str]
    free: Mapping[str, Sequence[Any]]

    @property
    def n_choices(self) -> int:
        """How many choices there are."""
        return math.prod(map(len, self.free.values()))

    def keeps(self, key: str) -> bool:
        """Whether a key has an effect here, and the value that it has outside of the sweep."""
        return has_key(self.settings, key) and not any(is_within(key, other) for other in self.replaced)

    def blame(self, error: InputError) -> InputError:
        """The error about a key: of the sweep, if that decides the key's value."""
        return _blame(error, self.replaced)

    def free_in(self, *names: str) -> dict[str, Sequence[Any]]:
        """The free keys among some settings and their tables, with their values."""
        return {key: values for key, values in self.free.items() if key.partition(".")[0] in names}

    def variants(self, *names: str) -> Iterator[dict[str, Any]]:
        """What the choices make of some settings: each combination of their free keys' values, once."""
        free = self.free_in(*names)
        settings = {name: self.settings[name] for name in names}
        for values in itertools.product(*free.values()):
            yield _with_values(settings, zip(free, values, strict=True))


class Section:
    """Settings that depend on each other and on no others, with the swept keys among them."""

    def __init__(self, base: Mapping[str, Any], axes: Mapping[str, Sequence[Any]]) -> None:
        self._base = base
        self.axes = axes
        # Whole tables are set before single keys, whatever their order in the file.
        self._order = sorted(axes, key=lambda key: key.count("."))
        self._shaping = {key: values for key, values in axes.items() if _is_shaping(key, values)}
        self._latest: tuple[tuple[int, ...], Family | None] | None = None

    @cached_property
    def _labels(self) -> dict[str, list[Any]]:
        return {key: labels_of(key, values)[1] for key, values in self.axes.items()}

    def families(self) -> Iterator[Family]:
        """The families of choices that differ."""
        for indices in itertools.product(*(range(len(values)) for values in self._shaping.values())):
            family = self._family(indices)
            if family is not None:
                yield family

    def choice(self, indices: Sequence[int]) -> SectionChoice | None:
        """The choice of each key's value of that index; None if it differs from an earlier one in no effect."""
        shape = tuple([index for key, index in zip(self.axes, indices, strict=True) if key in self._shaping])
        # From one choice to the next the family mostly stays as it is.
        if self._latest is None or self._latest[0] != shape:
            self._latest = shape, self._family(shape)
        family = self._latest[1]
        if family is None:
            return None
        labels: dict[str, Any] = {}
        chosen: dict[str, Any] = {}
        for key, index in zip(self.axes, indices, strict=True):
            idle = not has_key(family.settings, key)
            if idle and index:
                return None
            labels[column(key)] = None if idle else self._labels[key][index]
            if not idle:
                chosen[key] = self.axes[key][index]
        values = [(key, value) for key, value in chosen.items() if key in family.free]
        return SectionChoice(_with_values(family.settings, values), labels, chosen)

    def _family(self, shape: Sequence[int]) -> Family | None:
        """The family of the shaping keys' values of these indices; None if an earlier one has the same effect."""
        indices = dict(zip(self._shaping, shape, strict=True))
        tables = {name: dict(value) if isinstance(value, dict) else value for name, value in self._base.items()}
        replaced: dict[str, str] = {}
        given: set[str] = set()
        for key in self._order:
            value = self.axes[key][indices.get(key, 0)]
            if twice := next((other for other in given if is_within(other, key) or is_within(key, other)), None):
                raise InputError(f"must not set what another swept key sets too, got {twice}", key=f"sweep.{key}")
            keys = _assign(tables, key, value)
            given.update(keys)
            replaced |= dict.fromkeys([key] if isinstance(value, dict) else keys, key)
        try:
            settings = _without_unused(tables)
        except InputError as error:
            raise _blame(error, replaced) from None
        if any(index and not has_key(settings, key) for key, index in indices.items()):
            return None
        free = {key: values for key, values in self.axes.items() if key not in indices and has_key(settings, key)}
        return Family(settings, replaced, free)


class Grid:
    """A grid over settings.

    Parameters
    ----------
    base : mapping
        The settings outside of the sweep, as plain values.
    axes : mapping from str to sequence
        The swept keys and their values.

    Examples
    --------
    >>> grid = Grid({"horizon": 5, "rules": "sound"}, {"horizon": [7, 9]})
    >>> grid.n_points, [section.axes for section in grid.sections]
    (2, [{'horizon': [7, 9]}, {}])
    """

    def __init__(self, base: Mapping[str, Any], axes: Mapping[str, Sequence[Any]]) -> None:
        self.axes = axes
        together = {name: group for group in _TOGETHER for name in group}
        groups = [[name] for name in base if name not in together]
        groups += [[name for name in group if name in base] for group in _TOGETHER if group[0] in base]
        self.sections = [
            Section(
                {name: base[name] for name in group},
                {key: values for key, values in axes.items() if key.partition(".")[0] in group},
            )
            for group in groups
        ]

    @property
    def n_points(self) -> int:
        """How many points there are."""
        return math.prod(sum(family.n_choices for family in section.families()) for section in self.sections)

    def section(self, name: str) -> Section:
        """The section of a setting."""
        return next(section for section in self.sections if name in section._base)

    def points(self) -> Iterator[Point]:
        """The points, one after the other."""
        fixed: dict[str, Any] = {}
        for section in self.sections:
            if not section.axes:
                [family] = section.families()
                fixed.update(family.settings)
        swept = [section for section in self.sections if section.axes]
        places = [[list(self.axes).index(key) for key in section.axes] for section in swept]
        # From one point to the next most sections stay as they are.
        latest: list[tuple[tuple[int, ...], SectionChoice | None]] = [((), None)] * len(swept)
        number = 0
        for combination in itertools.product(*(range(len(values)) for values in self.axes.values())):
            for k, section in enumerate(swept):
                indices = tuple([combination[place] for place in places[k]])
                if latest[k][0] != indices:
                    latest[k] = (indices, section.choice(indices))
            choices = [choice for _, choice in latest if choice is not None]
            if len(choices) < len(swept):
                continue
            settings = dict(fixed)
            for choice in choices:
                settings.update(choice.settings)
            chosen = {key: value for choice in choices for key, value in choice.chosen.items()}
            yield Point(number, settings, self._labels(settings, choices), chosen)
            number += 1

    def _labels(self, settings: Mapping[str, Any], choices: Sequence[SectionChoice]) -> dict[str, Any]:
        labels = {table: own.plain(settings[table]["name"]) for table in ("network", "policy", "protocol")}
        labels["rules"] = settings["rules"]
        found: dict[str, Any] = {}
        for choice in choices:
            found.update(choice.labels)
        labels.update((column(key), found[column(key)]) for key in self.axes)
        return labels


def column(key: str) -> str:
    """The column of a swept key: the key itself, but "protocol" for "protocol.name"."""
    table, _, rest = key.partition(".")
    return table if rest and rest == NAME_KEYS.get(table) else key


def labels_of(key: str, values: Sequence[Any]) -> tuple[str, list[Any]]:
    """How swept values are written in their column, and the column's type: "string", "bool", "int64" or "double".

    Examples
    --------
    >>> labels_of("policy.alpha", [1, 2.5]), labels_of("policy", ["ucb", {"name": "ucb", "alpha": 2}])
    (('double', [1.0, 2.5]), ('string', ['ucb', 'ucb(alpha=2)']))
    """
    labels = [_label(key, value) for value in values]
    kinds: tuple[tuple[str, type, set[type]], ...] = (
        ("bool", bool, {bool}),
        ("int64", int, {int}),
        ("double", float, {int, float}),
    )
    found = set(map(type, labels))
    kind, convert = next(((kind, to) for kind, to, types in kinds if found <= types), ("string", str))
    return kind, [convert(label) for label in labels]


def _label(key: str, value: Any) -> Any:
    if isinstance(value, dict):
        rest = dict(value)
        return _written(own.plain(str(rest.pop(NAME_KEYS.get(key, "name"), ""))), rest) or "none"
    if isinstance(value, str) and column(key) in NAME_KEYS:
        return own.plain(value)
    return json.dumps(value, default=str) if isinstance(value, list) else value


def _written(name: str, parameters: Mapping[str, Any]) -> str:
    words = [_written(k, v) if isinstance(v, dict) else f"{k}={v}" for k, v in parameters.items()]
    return f"{name}({', '.join(words)})" if name and words else name or ", ".join(words)


def value_as_text(value: Any) -> str:
    """A swept value as text: the same for values that are the same to a study, whatever the order of a table's keys.

    Examples
    --------
    >>> value_as_text({"n": 5, "name": "ring"}) == value_as_text({"name": "ring", "n": 5})
    True
    """
    return json.dumps(value, sort_keys=True, default=str) if isinstance(value, dict | list) else repr(value)


def set_keys(key: str, value: Any) -> list[str]:
    """The dotted keys that a value sets when it is given for a key of a spec: a table, or what a string stands for.

    Examples
    --------
    >>> set_keys("protocol", "fwa(4)"), set_keys("policy", "ucb"), set_keys("faults.outages", {"down": 0.1})
    (['protocol.name', 'protocol.ttl'], ['policy.name'], ['faults.outages.down'])
    """
    if isinstance(value, dict):
        return [leaf for leaf, _ in leaves(value, f"{key}.")]
    if key not in NAME_KEYS:
        return [key]
    return [leaf for leaf, _ in leaves(tables_of(key, value))]


def _blame(error: InputError, replaced: Mapping[str, str]) -> InputError:
    axis = next((axis for decided, axis in replaced.items() if is_within(error.key, decided)), None)
    if axis is None:
        # A table that a text of another one gives, as a policy gives its memory.
        given = ((decided, axis) for decided, axis in replaced.items() if not is_within(axis, error.key))
        axis = next((axis for decided, axis in given if is_within(decided, error.key)), None)
    if axis is None:
        return error
    return error.below("sweep") if axis == error.key else error.found_in(f"sweep.{axis}")


def _is_shaping(key: str, values: Sequence[Any]) -> bool:
    """Whether values of a swept key decide which other keys have an effect: names of parts, and whole tables."""
    table, _, rest = key.partition(".")
    names_part = table in NAME_KEYS and rest in ("", NAME_KEYS[table])
    return names_part or key == "faults" or any(isinstance(value, dict) for value in values)


def _with_values(settings: Mapping[str, Any], values: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Settings with other values of some keys; nothing of the given ones is changed."""
    changed = dict(settings)
    for key, value in values:
        _assign_within(changed, key, value)
    return changed


def _assign(tables: dict[str, Any], key: str, value: Any) -> list[str]:
    """Set a swept key; the keys that were set."""
    if "." in key:
        _assign_within(tables, key, value)
    elif key not in NAME_KEYS:
        tables[key] = value
    elif isinstance(value, dict):
        tables[key] = dict(value)
    else:
        named = tables_of(key, value)
        tables[key] |= named[key]
        tables |= {table: given for table, given in named.items() if table != key}
        return [leaf for leaf, _ in leaves(named)]
    return set_keys(key, value)


def _assign_within(tables: dict[str, Any], key: str, value: Any) -> None:
    *path, last = key.split(".")
    table: Any = tables
    for name in path:
        inner = table.get(name, {})
        if not isinstance(inner, dict):
            outer = ".".join(path[: path.index(name) + 1])
            raise InputError(f"must be a table to sweep over {key}, got {checks.shown(inner)}", key=outer)
        # A copy, since the values of the sweep and the settings outside of it stay as they are.
        table[name] = dict(inner)
        table = table[name]
    table[last] = value


def _without_unused(tables: dict[str, Any]) -> dict[str, Any]:
    """The settings of a section without the parameters that its parts do not take."""
    settings = dict(tables)
    for table, name_key in NAME_KEYS.items():
        if table not in settings:
            continue
        part, _ = part_of(table, tables[table])
        known, kind = (name_key, *part.parameters), cast(Any, part.make)
        settings[table] = {key: value for key, value in tables[table].items() if key in known}
        if table == "protocol" and not kind.delivery.sends_messages:
            settings["faults"] = without_traffic(tables["faults"])
        if table == "protocol" and not kind.takes_emission():
            del settings["emission"]
    return settings
