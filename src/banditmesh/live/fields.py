"""Tables of a TOML file as values of a class, with every problem in its own line.

Rules kept here: each key has one check, which returns its value or raises `InputError` with what was required and what
came. All keys are looked at, so that one look shows every mistake. An unknown key is a problem too, and the
known one that it resembles is named.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from .. import checks
from ..errors import ConfigError, InputError
from ..settings import toml_text
from .names import Address

#: Takes the name of a key and its value, and returns the value as it is used.
Check: TypeAlias = Callable[[str, Any], Any]


def read_toml(path: Path) -> dict[str, Any]:
    """What a TOML file holds."""
    try:
        return toml_text.load(path.read_bytes().decode("utf-8-sig"))
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path} must be a text file in UTF-8, got binary data") from None
    except InputError as error:
        raise ConfigError(f"{path} {error}") from None


def build(kind: type[Any], keys: Mapping[str, Check], raw: object, where: str = "") -> Any:
    """A value of a class from a table.

    Parameters
    ----------
    kind : type
        Takes the keys as arguments.
    keys : mapping from str to check
        The keys that the table may have; one that has no default in the class is required.
    raw : object
        What the file says.
    where : str
        How the table is called in a message; empty for the keys that are in none.

    Raises
    ------
    ConfigError
        With everything that is wrong.

    Examples
    --------
    >>> from banditmesh.live.names import Caps
    >>> build(Caps, {"arms": at_least(1)}, {"arms": 0, "amrs": 3}, "[caps]")
    Traceback (most recent call last):
        ...
    banditmesh.errors.ConfigError: [caps]: arms must be an integer of at least 1, got 0
    """
    begin = f"{where}: " if where else ""
    if not isinstance(raw, dict):
        raise ConfigError(f"{begin}a table is required, got {checks.shown(raw)}")
    problems: list[str] = []
    values: dict[str, Any] = {}
    for key, value in raw.items():
        if key not in keys:
            near = checks.meant(key, keys) or f"; known are {', '.join(keys)}"
            problems.append(f"{begin}{key} is an unknown key{near}")
            continue
        try:
            values[key] = keys[key](key, value)
        except InputError as error:
            problems += _told_of(error, begin)
    missing = [key for key in keys if key not in raw and _is_required(kind, key)]
    problems += [f"{begin}{key} is required, got none" for key in missing]
    if not problems:
        try:
            return kind(**values)
        except InputError as error:
            problems += _told_of(error, begin)
    raise ConfigError(*problems)


def _is_required(kind: type[Any], key: str) -> bool:
    return inspect.signature(kind).parameters[key].default is inspect.Parameter.empty


def _told_of(error: InputError, begin: str) -> list[str]:
    """The problems of an inner table, which name it, or one of this table."""
    return [*error.problems] if isinstance(error, ConfigError) else [f"{begin}{error}"]


def table(kind: type[Any], keys: Mapping[str, Check]) -> Check:
    """A check for a table."""
    return lambda key, raw: build(kind, keys, raw, f"[{key}]")


def tables(kind: type[Any], keys: Mapping[str, Check]) -> Check:
    """A check for a list of tables, which messages count from 1."""

    def checked(key: str, raw: Any) -> list[Any]:
        if not isinstance(raw, list):
            raise ConfigError(f"[[{key}]]: a list of tables is required, got {checks.shown(raw)}")
        values: list[Any] = []
        problems: list[str] = []
        for place, one in enumerate(raw, start=1):
            try:
                values.append(build(kind, keys, one, f"[[{key}]] {place}"))
            except ConfigError as error:
                problems += error.problems
        if problems:
            raise ConfigError(*problems)
        return values

    return checked


def one_of(*allowed: str) -> Check:
    """A check for one of some words."""
    return lambda key, value: checks.choice(key, value, allowed)


def at_least(least: int, most: int | None = None) -> Check:
    """A check for an integer."""
    return lambda key, value: checks.integer(key, value, at_least=least, at_most=most)


def list_of(check: Check) -> Check:
    """A check for a list of values that have one check."""

    def checked(key: str, value: Any) -> list[Any]:
        if not isinstance(value, list):
            raise InputError(f"{key} must be a list, got {checks.shown(value)}")
        return [check(f"{key}[{place}]", one) for place, one in enumerate(value, start=1)]

    return checked


def boolean(key: str, value: Any) -> bool:
    """A check for true or false."""
    if not isinstance(value, bool):
        raise InputError(f"{key} must be true or false, got {checks.shown(value)}")
    return value


def text(key: str, value: Any) -> str:
    """A check for a string that is not empty."""
    if not isinstance(value, str) or not value:
        raise InputError(f"{key} must be a string, got {checks.shown(value)}")
    return value


def path_in(folder: Path) -> Check:
    """A check for a path; a relative one is meant from `folder`."""

    def checked(key: str, value: Any) -> Path:
        if not isinstance(value, str | Path) or not str(value) or "\0" in str(value):
            raise InputError(f"{key} must be a path, got {checks.shown(value)}")
        return folder / value

    return checked


def address(key: str, value: Any) -> str:
    """A check for a host and a port."""
    return str(Address.parse(value, key))


def interval(key: str, value: Any) -> tuple[float, float]:
    """A check for two finite numbers, the first below the second."""
    if isinstance(value, list | tuple) and len(value) == 2:
        low, high = (checks.real(f"{key}[{place}]", one) for place, one in enumerate(value, start=1))
        if low < high and math.isfinite(high - low):
            return low, high
    raise InputError(f"{key} must be two numbers, the lower one first, got {checks.shown(value)}")
