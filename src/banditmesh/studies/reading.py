"""Reads a study from TOML and checks it.

Rules kept here: every key is known and of the right type, or the error names it with its line; a key that nothing in
the study uses is an error too; everything that can be checked without running is checked before anything runs.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Final

import msgspec

from .. import checks
from ..errors import FileError, InputError, SpecError
from ..files.regular import read_regular
from ..lookup import own
from ..settings.problems import NAME_KEYS
from ..settings.toml_text import line_of
from .grid import BadKey, has_key, is_within, leaves, read_written, set_keys, value_as_text
from .settings_checks import check_first_problem, check_networks, check_ranges, check_settings
from .spec import DEFAULTS, FORMAT, NOT_SWEPT, Settings, Spec

#: The most runs of a study by default.
MAX_RUNS: Final = 1_000_000
#: Integers of TOML, and of the tables that are written, have 64 bits.
_LARGEST: Final = 2**63 - 1
#: No key of a spec lies deeper than some tables and lists.
_DEEPEST: Final = 20


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
    _refuse_broken_text(source, text, *overrides)
    max_runs = checks.integer("max_runs", max_runs, at_least=1, at_most=_LARGEST)
    raw = _load(text, source)
    folder = folder or Path()
    replacing = _override_all(raw, overrides, folder)
    _check_values(raw, source)
    given = dict(raw)
    try:
        _address_all(raw, folder)
        spec, by_hand = _checked(raw, folder, max_runs)
        check_settings(spec, by_hand)
        _check_overrides(spec, replacing)
        check_first_problem(spec)
        check_networks(spec)
    except InputError as error:
        key = getattr(error, "key", "")
        while key and not has_key(given, key):
            key = key.rpartition(".")[0]  # a key that is missing belongs into a table that is there
        line = line_of(text, key) if key else None
        message = " ".join(str(error).split())
        raise SpecError(f"{source}{f', line {line}' if line else ''}: {message}") from None
    return spec


def _refuse_broken_text(source: str, *texts: str) -> None:
    """Refuse bytes that are no text: nothing that is written later could hold them."""
    for text in texts:
        try:
            text.encode()
        except UnicodeEncodeError as error:
            broken = text[error.start - min(error.start, 20) : error.end]
            raise SpecError(f"{source} and --set must be text in UTF-8, got {broken!r}; rename what it names") from None


def _load(text: str, source: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except ValueError as error:  # tomllib's own, or Python's of an integer of thousands of digits
        raise SpecError(f"{source} is not valid TOML: {' '.join(str(error).split())}") from None
    except RecursionError:
        raise SpecError(f"{source} must have tables and lists at most {_DEEPEST} deep, got more") from None


def _check_values(raw: dict[str, Any], source: str) -> None:
    """Refuse what no key of a spec can hold: numbers of more than 64 bits, and values that lie too deep."""
    waiting: list[tuple[dict[str, Any] | list[Any], int]] = [(raw, 0)]
    while waiting:
        value, depth = waiting.pop()
        if depth > _DEEPEST:
            raise SpecError(f"{source} must have tables and lists at most {_DEEPEST} deep, got more")
        for one in value.values() if isinstance(value, dict) else value:
            if isinstance(one, dict | list):
                waiting.append((one, depth + 1))
            elif isinstance(one, int) and not -_LARGEST <= one <= _LARGEST:
                raise SpecError(f"{source}: integers must be at most {_LARGEST}, got {checks.shown(one)}")


def _checked(raw: dict[str, Any], folder: Path, max_runs: int) -> tuple[Spec, set[str]]:
    """The spec, and the keys of its tables that were given rather than filled in."""
    version = raw.get("version", FORMAT)
    if version != FORMAT:
        raise BadKey(
            "version",
            f"version must be {FORMAT}, the spec format of this banditmesh, got {checks.shown(version)}; "
            "use the banditmesh that the spec was written for, or see what `banditmesh new` prints",
        )
    for table, other in _WRITTEN_WITH.items():
        if written := read_written(table, raw.get(table)):
            _refuse_two(table, written, other if other in raw else None)
            raw |= written
    for table, key in NAME_KEYS.items():
        if isinstance(raw.get(table), str):
            raw[table] = {key: raw[table]}
    try:
        settings = msgspec.convert(raw, Settings)
    except msgspec.ValidationError as error:
        raise _explain(raw, str(error)) from None
    check_ranges(settings)
    grid = {}
    for key, values in leaves(settings.sweep):
        if key in grid:
            raise BadKey(f"sweep.{key}", f"sweep.{key} must not set what another swept key sets too, got it twice")
        grid[key] = _check_sweep(key, values)
    _check_size(grid, settings.replicates, max_runs)
    for table, other in _WRITTEN_WITH.items():
        swept = next((f"sweep.{key}" for key in grid if key.partition(".")[0] == other), None)
        for value in grid.get(table, []):
            try:
                _refuse_two(table, read_written(table, value) or {}, swept)
            except BadKey as error:
                raise BadKey(f"sweep.{table}", f"sweep.{table}: {error}") from None
    given = {table: dict(raw.get(table, {})) for table in NAME_KEYS}
    filled = {table: {**defaults, **given[table]} for table, defaults in DEFAULTS.items()}
    settings = msgspec.structs.replace(settings, **filled, sweep={})
    by_hand = {f"{table}.{key}" for table, keys in given.items() for key in keys}
    return Spec(settings, grid, folder, frozenset(by_hand)), by_hand


def _check_size(grid: Mapping[str, Sequence[Any]], replicates: int, max_runs: int) -> None:
    n_runs = math.prod(len(values) for values in grid.values()) * replicates
    if n_runs > max_runs:
        factors = [f"{len(values):,} of {key}" for key, values in grid.items()] + [f"{replicates:,} replicates"]
        raise BadKey(
            "sweep" if grid else "replicates",
            f"a study must have at most {max_runs:,} runs, got {checks.shown(n_runs)} ({' x '.join(factors)}); "
            "take fewer, or raise the limit with --max-runs (max_runs in Python)",
        )


#: What may be written out, and the table that may be written with it.
_WRITTEN_WITH: Final = {"protocol": "emission", "policy": "memory"}


def _refuse_two(table: str, written: Mapping[str, Any], other: str | None) -> None:
    """Refuse an emission or a memory that is given twice: in a text, and as a table."""
    what = _WRITTEN_WITH[table]
    if what in written and other is not None:
        raise BadKey(table, f"give the {what} with the {table} or as {other}, got both")


def _check_sweep(key: str, values: Any) -> list[Any]:
    where = f"sweep.{key}"
    top = key.partition(".")[0]
    if top not in Settings.__struct_fields__ or top in NOT_SWEPT:
        allowed = [name for name in Settings.__struct_fields__ if name not in NOT_SWEPT]
        raise BadKey(where, f"{where} must be over one of {', '.join(allowed)}, or a key of a table; unknown key")
    if top != key and top not in (*NAME_KEYS, "faults"):
        raise BadKey(where, f"{where} must be over a key of a table, got one of {top}, which is none")
    if not isinstance(values, list) or not values:
        raise BadKey(where, f"{where} must be a list with at least one value, got {checks.shown(values)}")
    if len(set(map(value_as_text, values))) < len(values):
        raise BadKey(where, f"{where} must hold different values, got one more than once")
    return values


def _check_overrides(spec: Spec, replacing: Mapping[str, str]) -> None:
    """Every key that an override sets has that value at some point, and is not swept at all of them."""
    for key, override in replacing.items():
        top = key.partition(".")[0]
        if top not in NOT_SWEPT and not any(family.keeps(key) for family in spec.families(top)):
            raise SpecError(f"--set {override} has no effect: the sweep decides {key}; change the sweep instead")


def _explain(raw: dict[str, Any], message: str) -> InputError:
    """A message of msgspec in our words: the key, what was required and what came."""
    reason, _, place = message.partition(" - at `$")
    if "unknown field" in reason:
        key = reason.split("`")[1]
        known = ", ".join(name for name in Settings.__struct_fields__)
        return BadKey(key, f"unknown key {key}; a spec has {known}")
    key = place.rstrip("`").lstrip(".").split("[")[0]
    wanted = reason.removeprefix("Expected ").partition(", got")[0].strip("`")
    words = {"int": "an integer", "str": "a string", "object": "a table", "float": "a number"}
    return BadKey(key, f"{key} must be {words.get(wanted, wanted)}, got {checks.shown(raw.get(key))}")


def _address_all(raw: dict[str, Any], folder: Path) -> None:
    """Give every name of the user's own the hash of its source, wherever a part is named."""
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
    """A table, or a word that is given for one, with the hash of its source after a name of the user's own."""
    if isinstance(value, dict) and isinstance(value.get(name_key), str):
        return {**value, name_key: _addressed(f"{where}.{name_key}", value[name_key], "", folder)}
    if not isinstance(value, str):
        return value
    try:
        return own.address(value, folder)
    except InputError as error:
        raise BadKey(where, f"{where}: {error}") from None


def _override_all(raw: dict[str, Any], overrides: Sequence[str], folder: Path) -> dict[str, str]:
    """Set the overrides; the keys that they set, each with its override."""
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
    except BadKey:
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
        if isinstance(table.get(name), str) and name in NAME_KEYS:
            table[name] = {NAME_KEYS[name]: table[name]}
        table = table.setdefault(name, {})
        if not isinstance(table, dict):
            raise SpecError(f"--set {override}: {name} must be a table, got {checks.shown(table)}")
    table[last] = value
    return key, value


def _read_value(text: str) -> Any:
    """A value as TOML writes it, or else the text itself."""
    try:
        found = _load(f"value = {text}", "--set")
    except SpecError:
        return text.strip()
    return found["value"] if len(found) == 1 else text.strip()
