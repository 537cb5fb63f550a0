"""Checks of a study's settings: whatever can be checked without running is checked here, before anything runs.

A setting is checked for every combination of the values of its own swept keys, and for no more: not again for each
point, nor for each value of another setting.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

from .. import checks
from ..draws import MAX_COUNTER
from ..errors import InputError
from ..rules import get_rules
from ..settings.parts import (
    NAME_KEYS,
    build,
    build_policy,
    build_protocol,
    check,
    get_part,
    has_key,
    leaves,
    located,
    read_faults,
)
from ..settings.problems import (
    build_arms,
    build_dynamics,
    build_network,
    check_arms,
    check_dynamics,
    file_of,
    read_files,
)
from ..sim.limits import MAX_ROUNDS
from .grid import Family
from .spec import Settings, Spec

#: The most links of networks that are made only to see that they can be.
_MAX_LINKS: Final = 1_000_000
#: What the numbers outside of the tables must at least and at most be; what `simulate` takes.
_RANGES: Final = {
    "horizon": (1, MAX_ROUNDS),
    "replicates": (1, None),
    "seed": (0, None),
    "every": (1, MAX_COUNTER),
    "record_every": (0, None),
}


def check_ranges(settings: Settings) -> None:
    """Refuse numbers out of range outside of the tables and the sweep."""
    for name in _RANGES:
        _check_range({name: getattr(settings, name)}, name)


def check_settings(spec: Spec, by_hand: set[str]) -> None:
    """Refuse wrong settings of any point, and keys that have no effect at any of them.

    Parameters
    ----------
    spec : Spec
        The study.
    by_hand : set of str
        The keys of its tables that were given rather than filled in.
    """
    unused = by_hand | {f"faults.{key}" for key, _ in leaves(spec.settings.faults)}
    unused |= {key for key in spec.grid if "." in key}
    seen: set[str] = set()
    for family in spec.families():
        unused = {key for key in unused if not has_key(family.settings, key)}
        for name in _CHECKS:
            if name not in family.settings:
                continue
            # A protocol is made with its emission, and a policy with its memory.
            other = {"protocol": "emission", "policy": "memory"}.get(name, name)
            names = (name, other) if other != name and other in family.settings else (name,)
            # Many families share a table.
            written = f"{names} {[family.settings[one] for one in names]!r} {list(family.free_in(*names))}"
            if written not in seen:
                seen.add(written)
                _check_setting(name, names, family)
    if unused:
        key = min(unused)
        table, _, _ = key.partition(".")
        where = f"sweep.{key}" if key in spec.grid else key
        if table == "faults":
            raise InputError("has no effect: no message is sent; remove it, or take another protocol", key=where)
        if table == "emission" and not any("emission" in family.settings for family in spec.families()):
            reason = "the protocol takes no emission; remove it, or take another protocol"
            raise InputError(f"has no effect: {reason}", key=where)
        known = sorted({p for part in _named_parts(spec, table) for p in part.parameters} | {NAME_KEYS[table]})
        raise InputError(f"is an unknown key, or has no effect; [{table}] takes {', '.join(known)} here", key=where)


def check_first_problem(spec: Spec) -> None:
    """Build the problem of the first point, so that most mistakes in its parts show before anything runs."""
    families = {table: next(spec.families(table)) for table in ("network", "dynamics", "arms")}
    first = {table: family.settings[table] for table, family in families.items()}
    first["horizon"] = next(spec.families("horizon")).settings["horizon"]
    with _about("network", families["network"]):
        network = build_network(first, read_files(spec.files_of([first], "network")))
    with _about("dynamics", families["dynamics"]):
        network = build_dynamics(first, network)
    with _about("arms", families["arms"]):
        build_arms(first, network, read_files(spec.files_of([first], "arms")))


def check_networks(spec: Spec) -> None:
    """Make the small networks of a sweep, once for all seeds and up to a total of links, to see that it works."""
    room = _MAX_LINKS
    seen: set[str] = set()
    for family in spec.families("network"):
        for settings in family.variants("network"):
            table = {key: value for key, value in settings["network"].items() if key != "seed"}
            size = _most_links(table)
            if repr(table) in seen or size > room or file_of(settings) is not None:
                continue
            seen.add(repr(table))
            room -= size
            with _about("network", family):
                build_network(settings, {})


def _most_links(table: Mapping[str, Any]) -> int:
    """The maximum number of links of a network, by its table; a hundred agents if it gives no number."""
    sides = [table[key] for key in ("n", "rows", "columns", "n_agents") if isinstance(table.get(key), int)]
    n_agents: int = math.prod(sides or [100])
    return n_agents**2


def _named_parts(spec: Spec, table: str) -> list[Any]:
    names = {family.settings[table][NAME_KEYS[table]] for family in spec.families(table)}
    return [get_part(table, name) for name in names]


def _check_setting(name: str, names: tuple[str, ...], family: Family) -> None:
    """Whether all values of one setting are right."""
    with _about(name, family):
        for settings in family.variants(*names):
            _CHECKS[name](settings)


@contextmanager
def _about(name: str, family: Family) -> Iterator[None]:
    """Errors of the block are about a setting or a key of its table, or about the swept key that decides it."""
    try:
        yield
    except InputError as error:
        raise family.blame(located(error, name, family.settings[name])) from None


def _check_range(settings: Mapping[str, Any], name: str) -> None:
    least, most = _RANGES[name]
    checks.integer(name, settings[name], at_least=least, at_most=most)


def _check_engine(settings: Mapping[str, Any]) -> None:
    from ..sim.engine import ENGINES

    checks.choice("engine", settings["engine"], ENGINES)


#: How the settings of a family are checked; an emission and a memory before what is made with it.
_CHECKS: Final[dict[str, Callable[[Mapping[str, Any]], object]]] = {
    "horizon": partial(_check_range, name="horizon"),
    "every": partial(_check_range, name="every"),
    "rules": lambda settings: get_rules(settings["rules"]),
    "engine": _check_engine,
    "network": partial(check, "network"),
    "dynamics": check_dynamics,
    "arms": check_arms,
    "memory": partial(build, "memory"),
    "policy": build_policy,
    "emission": partial(build, "emission"),
    "protocol": build_protocol,
    "faults": lambda settings: read_faults(settings["faults"]),
}
