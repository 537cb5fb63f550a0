"""Reads a study from TOML and checks it.

Rules kept here: every key is known and of the right type, or the error names it with its line; a key that nothing in
the study uses is an error too; everything that can be checked without running is checked before anything runs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Final

import msgspec

from .. import checks
from ..errors import FileError, InputError, SpecError
from ..files.regular import read_regular
from ..lookup import own
from ..settings import toml_text
from ..settings.parts import GOES_INTO, NAME_KEYS, is_within, leaves, tables_of
from .grid import set_keys, value_as_text
from .settings_checks import check_first_problem, check_networks, check_ranges, check_settings
from .spec import DEFAULTS, FORMAT, NOT_SWEPT, Settings, Spec

#: The most runs of a study by default.
MAX_RUNS: Final = 1_000_000
#: Integers of TOML, and of the tables that are written, have 64 bits.
_LARGEST: Final = 2**63 - 1


def read_spec(path: str | PathLike[str], overrides: Sequence[str] = (), *, max_runs: int = MAX_RUNS) -> Spec:
    """Read a study from a TOML file.

    Parameters
    ----------
    path : str or path
        The file.
    overrides : sequence of str
        Settings of the form "key=value", as in "protocol.ttl=3", that replace what the file says.
    max_runs : int
        The most runs that the study may have: the lengths of all lists of its sweep, multiplied, times replicates.
    """
    try:
        text = read_regular(path).decode("utf-8-sig")
    except OSError as error:
        raise FileError(f"cannot read {path}: {error.strerror or error}") from None
    except ValueError:
        raise FileError(f"{path} must be a text file in UTF-8, got binary data or no path") from None
    return parse_spec(text, overrides, source=str(path), folder=Path(path).parent, max_runs=max_runs)


def parse_spec(
    text: str,
    overrides: Sequence[str] = (),
    source: str = "spec",
    folder: Path | None = None,
    *,
    max_runs: int = MAX_RUNS,
) -> Spec:
    """Read a study from TOML text; as `read_spec`.

    Examples
    --------
    >>> from banditmesh import parse_spec
    >>> parse_spec("horizon = 100", ["protocol.ttl=3"]).settings.protocol
    {'name': 'fwa', 'ttl': 3}
    """
    if not isinstance(text, str):
        raise SpecError(f"a spec must be TOML text, got {checks.shown(text)}; read a file with read_spec")
    _refuse_broken_text(source, text, *overrides)
    try:
        raw = toml_text.load(text)
    except InputError as error:
        raise SpecError(f"{source} {error}") from None
    return spec_from_tables(raw, overrides, source, folder, text=text, max_runs=max_runs)


def spec_from_tables(
    tables: Mapping[str, Any],
    overrides: Sequence[str] = (),
    source: str = "",
    folder: Path | None = None,
    *,
    text: str = "",
    max_runs: int = MAX_RUNS,
) -> Spec:
    """Read a study from its settings as plain values; as `read_spec`.

    Parameters
    ----------
    tables : mapping
        The keys of a spec, as TOML would give them.
    overrides, max_runs
        As for `read_spec`.
    source : str
        Where the settings came from, for errors.
    folder : path, optional
        Where the paths of files start from; the current folder if not given.
    text : str
        The text that the settings were read from, if there is one: errors then have a line.
    """
    max_runs = checks.integer("max_runs", max_runs, at_least=1, at_most=_LARGEST)
    raw, folder = dict(tables), folder or Path()
    replacing = _override_all(raw, overrides, folder)
    given = dict(raw)
    try:
        _check_values(raw)
        _address_all(raw, folder)
        spec, by_hand = _checked(raw, folder, max_runs)
        check_settings(spec, by_hand)
        _check_overrides(spec, replacing)
        check_first_problem(spec)
        check_networks(spec)
    except SpecError:
        raise  # about an override, whose key is in no file
    except InputError as error:
        key = error.key
        # A quoted key, such as "protocol.ttl", has dots of its own. What is nested too deeply is refused without a key.
        there = [leaf for leaf, _ in leaves(given)] if key else []
        while key and not any(is_within(leaf, key) for leaf in there):
            key = key.rpartition(".")[0]  # a key that is missing belongs into a table that is there
        fields = {"key": " ".join(error.key.split()), "remedy": error.remedy, "is_sentence": error.is_sentence}
        what = " ".join(error.what.split())
        raise SpecError(what, **fields, source=source, line=toml_text.line_of(text, key) if key else None) from None
    return spec


def _refuse_broken_text(source: str, *texts: str) -> None:
    """Refuse text that is not valid Unicode: it could not be written later."""
    for text in texts:
        try:
            text.encode()
        except UnicodeEncodeError as error:
            broken = text[error.start - min(error.start, 20) : error.end]
            raise SpecError(f"{source} and --set must be text in UTF-8, got {broken!r}; rename what it names") from None


def _check_values(raw: dict[str, Any]) -> None:
    """Refuse what no key of a spec can hold: integers of more than 64 bits, and values nested too deeply."""
    waiting: list[tuple[dict[str, Any] | list[Any], int]] = [(raw, 0)]
    while waiting:
        value, depth = waiting.pop()
        if depth > toml_text.MAX_DEPTH:
            raise InputError(f"tables and lists must be at most {toml_text.MAX_DEPTH} deep, got more")
        for one in value.values() if isinstance(value, dict) else value:
            if isinstance(one, dict | list):
                waiting.append((one, depth + 1))
            elif isinstance(one, int) and not -_LARGEST <= one <= _LARGEST:
                raise InputError(f"integers must be at most {_LARGEST}, got {checks.shown(one)}")


def _checked(raw: dict[str, Any], folder: Path, max_runs: int) -> tuple[Spec, set[str]]:
    """The spec, and the keys of its tables that were given rather than filled in."""
    version = raw.get("version", FORMAT)
    if version != FORMAT:
        raise InputError(
            f"must be {FORMAT}, the spec format of this banditmesh, got {checks.shown(version)}",
            key="version",
            remedy="use the banditmesh that the spec was written for, or see what `banditmesh new` prints",
        )
    for table in NAME_KEYS:
        if isinstance(raw.get(table), str):
            named = tables_of(table, raw[table])
            _refuse_two(table, named, {inner: inner for inner in GOES_INTO if inner in raw})
            raw |= named
    settings = toml_text.convert(raw, Settings)
    check_ranges(settings)
    grid = {}
    for key, values in leaves(settings.sweep):
        if key in grid:
            raise InputError("must not set what another swept key sets too, got it twice", key=f"sweep.{key}")
        grid[key] = _check_sweep(key, values)
    _check_size(grid, settings.replicates, max_runs)
    swept: dict[str, str] = {}
    for key in grid:
        swept.setdefault(key.partition(".")[0], f"sweep.{key}")
    for table in GOES_INTO.values():
        for value in grid.get(table, []):
            try:
                _refuse_two(table, tables_of(table, value), swept)
            except InputError as error:
                raise error.below("sweep") from None
    given = {table: dict(raw.get(table, {})) for table in NAME_KEYS}
    filled = {table: {**defaults, **given[table]} for table, defaults in DEFAULTS.items()}
    settings = msgspec.structs.replace(settings, **filled, sweep={})
    by_hand = {f"{table}.{key}" for table, keys in given.items() for key in keys}
    return Spec(settings, grid, folder, frozenset(by_hand)), by_hand


def _check_size(grid: Mapping[str, Sequence[Any]], replicates: int, max_runs: int) -> None:
    n_runs = math.prod(len(values) for values in grid.values()) * replicates
    if n_runs > max_runs:
        factors = [f"{len(values):,} of {key}" for key, values in grid.items()] + [f"{replicates:,} replicates"]
        raise InputError(
            f"a study must have at most {max_runs:,} runs, got {checks.shown(n_runs)} ({' x '.join(factors)})",
            key="sweep" if grid else "replicates",
            is_sentence=True,
            remedy="use fewer, or raise the limit with --max-runs (max_runs in Python)",
        )


def _refuse_two(table: str, named: Mapping[str, Any], others: Mapping[str, str]) -> None:
    """Refuse an emission or a memory that is given twice: with the protocol or policy, and where `others` says."""
    for inner, outer in GOES_INTO.items():
        if outer == table and inner in named and inner in others:
            raise InputError(
                f"give the {inner} with the {table} or as {others[inner]}, got both", key=table, is_sentence=True
            )


def _check_sweep(key: str, values: Any) -> list[Any]:
    where = f"sweep.{key}"
    top = key.partition(".")[0]
    if top not in Settings.__struct_fields__ or top in NOT_SWEPT:
        allowed = [name for name in Settings.__struct_fields__ if name not in NOT_SWEPT]
        raise InputError(
            f"must be over one of {', '.join(allowed)}, or a key of a table; this is an unknown key", key=where
        )
    if top != key and top not in (*NAME_KEYS, "faults"):
        raise InputError(f"must be over a key of a table, got a key of {top}, which is not a table", key=where)
    if not isinstance(values, list) or not values:
        raise InputError(f"must be a list with at least one value, got {checks.shown(values)}", key=where)
    if len(set(map(value_as_text, values))) < len(values):
        raise InputError("must hold different values, got one more than once", key=where)
    return values


def _check_overrides(spec: Spec, replacing: Mapping[str, str]) -> None:
    """Every key that an override sets has that value at some point, and is not swept at all of them."""
    for key, override in replacing.items():
        top = key.partition(".")[0]
        if top not in NOT_SWEPT and not any(family.keeps(key) for family in spec.families(top)):
            raise SpecError(f"--set {override} has no effect: the sweep decides {key}; change the sweep instead")


def _address_all(raw: dict[str, Any], folder: Path) -> None:
    """Add the hash of its source to every name of a user's own part."""
    for table, name_key in NAME_KEYS.items():
        if table in raw:
            raw[table] = _addressed(table, raw[table], name_key, folder)
    sweep = raw.get("sweep")
    if not isinstance(sweep, dict):
        return
    raw["sweep"] = sweep = dict(sweep)
    for table, name_key in NAME_KEYS.items():
        swept = sweep.get(table)
        if isinstance(swept, list):
            sweep[table] = [_addressed(f"sweep.{table}", one, name_key, folder) for one in swept]
        elif isinstance(swept, dict) and isinstance(swept.get(name_key), list):
            where = f"sweep.{table}.{name_key}"
            sweep[table] = {**swept, name_key: [_addressed(where, one, "", folder) for one in swept[name_key]]}


def _addressed(where: str, value: Any, name_key: str, folder: Path) -> Any:
    """A table, or a word that stands for one, with the hash of its source after the name of a user's own part."""
    if isinstance(value, dict) and isinstance(value.get(name_key), str):
        return {**value, name_key: _addressed(f"{where}.{name_key}", value[name_key], "", folder)}
    if not isinstance(value, str):
        return value
    try:
        return own.address(value, folder)
    except InputError as error:
        raise error.found_in(where) from None


def _override_all(raw: dict[str, Any], overrides: Sequence[str], folder: Path) -> dict[str, str]:
    """Apply the overrides; returns the keys that they set, each with its override."""
    replacing: dict[str, str] = {}
    for override in overrides:
        key, value = _override(raw, override)
        if key in NAME_KEYS and isinstance(value, str):
            value = raw[key] = _addressed(key, value, "", folder)
        for earlier, by in replacing.items():
            if is_within(earlier, key):
                raise SpecError(f"--set {override} must not replace --set {by}; give {earlier} once")
        replacing |= dict.fromkeys(_set_keys(key, value), override)
    return replacing


def _set_keys(key: str, value: Any) -> list[str]:
    try:
        return set_keys(key, value)
    except InputError:
        return [key]  # refused in a moment, and then with its place


def _override(raw: dict[str, Any], override: str) -> tuple[str, Any]:
    key, equals, text = override.partition("=")
    key = key.strip()
    if not equals or not key:
        raise SpecError(f"--set must be key=value, got {override!r}")
    value = _read_value(text)
    table = raw
    *path, last = key.split(".")
    for name in path:
        inner = table.get(name, {})
        if isinstance(inner, str) and name in NAME_KEYS:
            inner = {NAME_KEYS[name]: inner}
        if not isinstance(inner, dict):
            raise SpecError(f"--set {override}: {name} must be a table, got {checks.shown(inner)}")
        table[name] = table = dict(inner)
    table[last] = value
    return key, value


def _read_value(text: str) -> Any:
    """A value in TOML, or else the text itself."""
    try:
        found = toml_text.load(f"value = {text}")
    except InputError:
        return text.strip()
    return found["value"] if len(found) == 1 else text.strip()
