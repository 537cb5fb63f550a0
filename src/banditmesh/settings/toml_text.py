"""Settings as TOML text: read, written, and where in it a key stands.

What tomllib and msgspec say of a mistake has no fields: it is put into ours here, and nowhere else.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from typing import Any, Final, TypeVar

import msgspec

from .. import checks
from ..errors import InputError

#: No setting lies deeper than some tables and lists.
MAX_DEPTH: Final = 20
_WORDS: Final = {"int": "an integer", "str": "a string", "object": "a table", "float": "a number"}
_Struct = TypeVar("_Struct", bound=msgspec.Struct)


def load(text: str) -> dict[str, Any]:
    """What a text says, or `InputError`."""
    try:
        return tomllib.loads(text)
    except ValueError as error:  # tomllib's own, or Python's of an integer of thousands of digits
        raise InputError(f"is not valid TOML: {' '.join(str(error).split())}") from None
    except RecursionError:
        raise InputError(f"must have tables and lists at most {MAX_DEPTH} deep, got more") from None


def convert(raw: Mapping[str, Any], kind: type[_Struct]) -> _Struct:
    """Settings as a struct: every key is known and of the right type, or the error names it."""
    try:
        return msgspec.convert(raw, kind)
    except msgspec.ValidationError as error:
        reason, _, place = str(error).partition(" - at `$")
    if "unknown field" in reason:
        raise InputError(f"is an unknown key; known are {', '.join(kind.__struct_fields__)}", key=reason.split("`")[1])
    key = place.rstrip("`").lstrip(".").split("[")[0]
    wanted = reason.removeprefix("Expected ").partition(", got")[0].strip("`")
    raise InputError(f"must be {_WORDS.get(wanted, wanted)}, got {checks.shown(raw.get(key))}", key=key)


def write(tables: Mapping[str, Any]) -> str:
    """Settings as TOML, a header for each table.

    Examples
    --------
    >>> print(write({"horizon": 30, "network": {"name": "ring", "n": 5}, "faults": {"outages": {"down": 0.5}}}))
    horizon = 30
    <BLANKLINE>
    [network]
    name = "ring"
    n = 5
    <BLANKLINE>
    [faults.outages]
    down = 0.5
    <BLANKLINE>
    """
    return "\n".join("\n".join([*lines, ""]) for lines in _blocks(tables, "") if lines)


def _blocks(table: Mapping[str, Any], name: str) -> list[list[str]]:
    values = [f"{key} = {value_text(value)}" for key, value in table.items() if not isinstance(value, Mapping)]
    inner = [(key, value) for key, value in table.items() if isinstance(value, Mapping)]
    header = [f"[{name}]"] if name and (values or not inner) else []
    within = f"{name}." if name else ""
    return [[*header, *values], *(block for key, value in inner for block in _blocks(value, f"{within}{key}"))]


def value_text(value: Any) -> str:
    r"""A text, a number, a truth value or a list of them as TOML writes it.

    Examples
    --------
    >>> print(value_text("🙂 \x7f\n"), value_text([True, 1e16]))
    "🙂 \u007f\n" [true, 1e+16]
    """
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, list):
        return f"[{', '.join(map(value_text, value))}]"
    # JSON escapes all but DEL; by default it would write a character like 🙂 as two halves.
    return json.dumps(str(value).encode(errors="replace").decode(), ensure_ascii=False).replace("\x7f", r"\u007f")


def line_of(text: str, key: str) -> int | None:
    r"""The line, from 1, on which a dotted key is set; None if it cannot be told.

    A reading of headers and keys, not a parser: the file is known to be valid, and a key inside a multi-line value
    that looks like another one is too rare to matter for a message.

    Examples
    --------
    >>> line_of('horizon = 10\n[network]\nname = "er"\n', "network.name")
    3
    """
    table = ""
    header = None
    for number, line in enumerate(text.splitlines(), start=1):
        stripped = line.strip()
        if found := re.match(r"\[\s*([^\[\]]+?)\s*\]", stripped):
            table = _plain(found[1]) + "."
            if table == f"{key}.":
                header = number
        elif found := re.match(r"""([A-Za-z0-9_."'\- ]+?)\s*=""", stripped):
            here = table + _plain(found[1])
            if key == here or key.startswith(f"{here}."):
                return number
    return header


def _plain(key: str) -> str:
    """A key without the quotes and blanks that TOML allows around its parts."""
    return re.sub(r"""["'\s]""", "", key)
