"""The [faults] table of a spec: what goes wrong, written down.

    [faults]
    loss = 0.1
    outages = {down = 0.01, up = 0.1}

Its keys are the parameters of `Faults`; outages and corruption are tables of their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any, Final

from .. import checks
from ..errors import InputError
from ..faults import Corruption, Faults, Outages

_TABLES: Final[dict[str, type]] = {"corruption": Corruption, "outages": Outages}
#: What each table takes, and whether it must be given.
_KEYS: Final[dict[type, dict[str, bool]]] = {
    kind: {one.name: one.default is MISSING for one in fields(kind)} for kind in (Faults, Corruption, Outages)
}


def build_faults(table: Mapping[str, Any]) -> Faults | None:
    """What a [faults] table says; None if nothing of it ever strikes.

    Examples
    --------
    >>> build_faults({"loss": 0.1, "outages": {"down": 0.01, "up": 0.1}})
    Faults(loss=0.1, outages=Outages(down=0.01, up=0.1, memory=True))
    """
    return read_faults(table).effective()


def read_faults(table: Mapping[str, Any]) -> Faults:
    """What a [faults] table says, whether it ever strikes or not."""
    given = dict(_checked("faults", table))
    for name, kind in _TABLES.items():
        if name in given:
            given[name] = _make(f"faults.{name}", kind, given[name])
    faults: Faults = _make("faults", Faults, given)
    return faults


def without_traffic(table: Mapping[str, Any]) -> dict[str, Any]:
    """What of a [faults] table matters to agents that send nothing."""
    return {name: value for name, value in _checked("faults", table).items() if name == "outages"}


def _checked(where: str, given: object) -> Mapping[str, Any]:
    if not isinstance(given, Mapping):
        raise InputError(f"{where} must be a table, got {checks.shown(given)}")
    return given


def _make(where: str, kind: type, table: object) -> Any:
    given = _checked(where, table)
    known = _KEYS[kind]
    for name in given:
        if name not in known:
            raise InputError(f"{where}.{name} is unknown; [{where}] takes {', '.join(known)}")
    for name, required in known.items():
        if required and name not in given:
            raise InputError(f"{where}.{name} is required, got none; add it")
    try:
        return kind(**given)
    except InputError as error:
        # The parts say "outages down must be"; here the place is said before.
        raise InputError(f"{where}.{str(error).removeprefix(where.rpartition('.')[2] + ' ')}") from None
