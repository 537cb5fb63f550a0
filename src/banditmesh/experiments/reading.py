"""Reads a study from TOML and checks it.

Rules kept here: every key is known and of the right type, or the error names it with its line; a key that nothing in
the study uses is an error too; everything that can be checked without running is checked before anything runs.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from os import PathLike
from pathlib import Path
from typing import Any, Final

import msgspec

from ..errors import FileError, InputError, SpecError
from .faults import build_faults
from .lines import line_of
from .parts import NAME_KEYS, build_policy, build_problem, build_protocol, file_of, get_part, read_networks
from .spec import DEFAULTS, FORMAT, NOT_SWEPT, BadKey, Settings, Spec, has_key, read_written

_RANGES: Final = {"horizon": 1, "replicates": 1, "seed": 0, "every": 1, "record_every": 0}


def read_spec(path: str | PathLike[str], overrides: Sequence[str] = ()) -> Spec:
    """Read a study from a TOML file.

    Parameters
    ----------
    path : str or path
        The file.
    overrides : sequence of str
        Settings of the form "key=value", as in "protocol.ttl=3", that replace what the file says.
    """
    try:
        text = Path(path).read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise FileError(f"cannot read {path}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise FileError(f"{path} must be a text file in UTF-8, got binary data") from None
    return parse_spec(text, overrides, source=str(path), folder=Path(path).parent)


def parse_spec(text: str, overrides: Sequence[str] = (), source: str = "spec", folder: Path | None = None) -> Spec:
    """Read a study from TOML text; as `read_spec`.

    Examples
    --------
    >>> from banditmesh import parse_spec
    >>> parse_spec("horizon = 100", ["protocol.ttl=3"]).settings.protocol
    {'name': 'fwa', 'ttl': 3}
    """
    _refuse_broken_text(source, text, *overrides)
    try:
        raw = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SpecError(f"{source} is not valid TOML: {error}") from None
    for override in overrides:
        _override(raw, override)
    given = deepcopy(raw)
    try:
        return _checked(raw, folder or Path())
    except InputError as error:
        key = getattr(error, "key", None)
        if key and not has_key(given, key):
            key = f"sweep.{key}"
        line = line_of(text, key) if key and has_key(given, key) else None
        raise SpecError(f"{source}{f', line {line}' if line else ''}: {error}") from None


def _refuse_broken_text(source: str, *texts: str) -> None:
    """Refuse bytes that are no text: nothing that is written later could hold them."""
    for text in texts:
        try:
            text.encode()
        except UnicodeEncodeError as error:
            broken = text[error.start - min(error.start, 20) : error.end]
            raise SpecError(f"{source} and --set must be text in UTF-8, got {broken!r}; rename what it names") from None


def _checked(raw: dict[str, Any], folder: Path) -> Spec:
    version = raw.get("version", FORMAT)
    if version != FORMAT:
        raise BadKey(
            "version",
            f"version must be {FORMAT}, the spec format of this banditmesh, got {version!r}; "
            "use the banditmesh that the spec was written for, or see what `banditmesh new` prints",
        )
    if written := read_written(raw.get("protocol")):
        _refuse_two_emissions(written, "emission" if "emission" in raw else None)
        raw |= written
    for table, key in NAME_KEYS.items():
        if isinstance(raw.get(table), str):
            raw[table] = {key: raw[table]}
    try:
        settings = msgspec.convert(raw, Settings)
    except msgspec.ValidationError as error:
        raise _explain(raw, str(error)) from None
    for key, least in _RANGES.items():
        _at_least(key, getattr(settings, key), least)
    grid = {}
    for key, values in _flatten(settings.sweep):
        grid[key] = _check_sweep(key, values)
    swept = next((f"sweep.{key}" for key in grid if key.partition(".")[0] == "emission"), None)
    for value in grid.get("protocol", []):
        _refuse_two_emissions(read_written(value) or {}, swept)
    given = {table: dict(raw.get(table, {})) for table in NAME_KEYS}
    for table, defaults in DEFAULTS.items():
        setattr(settings, table, {**defaults, **given[table]})
    settings.sweep = {}
    spec = Spec(settings, grid, folder)
    _check_points(spec, given)
    return spec


def _refuse_two_emissions(written: Mapping[str, Any], other: str | None) -> None:
    if "emission" in written and other is not None:
        raise BadKey("protocol", f"give the emission with the protocol or as {other}, got both")


def _check_sweep(key: str, values: Any) -> list[Any]:
    where = f"sweep.{key}"
    top = key.partition(".")[0]
    if top not in Settings.__struct_fields__ or top in NOT_SWEPT:
        allowed = [name for name in Settings.__struct_fields__ if name not in NOT_SWEPT]
        raise BadKey(where, f"{where} must be over one of {', '.join(allowed)}, or a key of a table; unknown key")
    if not isinstance(values, list) or not values:
        raise BadKey(where, f"{where} must be a list with at least one value, got {values!r}")
    if len({json.dumps(value, sort_keys=True, default=str) for value in values}) < len(values):
        raise BadKey(where, f"{where} must hold different values, got one more than once")
    return values


def _check_points(spec: Spec, given: dict[str, dict[str, Any]]) -> None:
    """Every point can be built, and every key that was given has an effect somewhere."""
    unused = {f"{table}.{key}" for table, keys in given.items() for key in keys}
    unused |= {f"faults.{key}" for key, _ in _flatten(spec.settings.faults)}
    unused |= {key for key in spec.grid if "." in key}
    seen: dict[str, set[str]] = {"policy": set(), "protocol": set()}
    for point in spec.points():
        _check_point(point.settings)
        unused -= {f"{table}.{key}" for table in NAME_KEYS for key in point.settings[table]}
        unused -= {f"faults.{key}" for key, _ in _flatten(point.settings["faults"])}
        for table, build in (("policy", build_policy), ("protocol", build_protocol)):
            written = json.dumps([point.settings[table], point.settings["emission"]], sort_keys=True)
            if written not in seen[table]:
                seen[table].add(written)
                _about(table, build, point.settings)
    if unused:
        key = min(unused)
        table, _, _ = key.partition(".")
        if table == "faults":
            raise BadKey(key, f"nothing uses {key}: no message is sent; remove it, or take another protocol")
        known = sorted({p for part in _named_parts(spec, table) for p in part.parameters} | {NAME_KEYS[table]})
        raise BadKey(key, f"unknown key {key}, or nothing uses it; [{table}] takes {', '.join(known)} here")
    _about("network", lambda point: _first_network(spec, point), next(spec.points()).settings)


def _first_network(spec: Spec, point: Mapping[str, Any]) -> None:
    """Build one problem, so that most mistakes show before anything runs."""
    named = file_of(point)
    build_problem(point, {} if named is None else read_networks({named: spec.network_files()[named]}))


def _named_parts(spec: Spec, table: str) -> list[Any]:
    return [get_part(table, name) for name in {point.settings[table][NAME_KEYS[table]] for point in spec.points()}]


def _check_point(settings: Mapping[str, Any]) -> None:
    from ..rules import get_rules
    from ..sim.engine import ENGINES

    for key in ("horizon", "every"):
        _at_least(key, settings[key], _RANGES[key])
    _about("rules", get_rules, settings["rules"])
    if settings["engine"] not in ENGINES:
        raise BadKey("engine", f"engine must be one of {', '.join(ENGINES)}; got {settings['engine']!r}")
    _about("faults", build_faults, settings["faults"])
    for table, name_key in NAME_KEYS.items():
        parameters = {key: value for key, value in settings[table].items() if key != name_key}
        _about(table, get_part(table, settings[table][name_key]).check, table, parameters)


def _about(key: str, function: Any, *arguments: Any) -> None:
    """Call a function whose error is about a key or table."""
    try:
        function(*arguments)
    except BadKey:
        raise
    except InputError as error:
        message = str(error)
        first = message.split(" ", 1)[0]
        raise BadKey(
            first if first.startswith(f"{key}.") else key, message if key in first else f"[{key}] {message}"
        ) from None


def _at_least(key: str, value: Any, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise BadKey(key, f"{key} must be an integer of at least {least}, got {value!r}")


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
    return BadKey(key, f"{key} must be {words.get(wanted, wanted)}, got {raw.get(key)!r}")


def _override(raw: dict[str, Any], override: str) -> None:
    key, equals, text = override.partition("=")
    key = key.strip()
    if not equals or not key:
        raise SpecError(f"--set must be key=value, got {override!r}")
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        value = text.strip()
    table = raw
    *path, last = key.split(".")
    for name in path:
        if isinstance(table.get(name), str) and name in NAME_KEYS:
            table[name] = {NAME_KEYS[name]: table[name]}
        table = table.setdefault(name, {})
        if not isinstance(table, dict):
            raise SpecError(f"--set {override}: {name} must be a table, got {table!r}")
    table[last] = value


def _flatten(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _flatten(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value
