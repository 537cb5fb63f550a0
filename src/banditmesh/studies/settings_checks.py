"""Checks of a study's settings: whatever can be checked without running is checked here, before anything runs.

A setting is checked for every combination of the values of its own swept keys, and for no more: not again for each
point, nor for each value of another setting.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any, Final

from .. import checks
from ..draws import MAX_COUNTER
from ..errors import InputError
from ..faults import Faults
from ..lookup import own
from ..protocols.base import AnyProtocol, has_method
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
    changed,
    check_arms,
    check_dynamics,
    drawn_laws,
    file_of,
    read_files,
    without_change,
)
from ..sim.limits import MAX_ROUNDS
from .grid import Family
from .spec import Settings, Spec

if TYPE_CHECKING:
    from ..problem import Problem

#: The most links of networks that are made only to see that they can be.
_MAX_LINKS: Final = 1_000_000
#: What the numbers outside of the tables must at least and at most be; what `simulate` takes.
_RANGES: Final = {
    "horizon": (1, MAX_ROUNDS),
    "replicates": (1, None),
    "seed": (0, None),
    "every": (1, MAX_COUNTER),
    "trim": (0, MAX_COUNTER),
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
                with _about(name, family):
                    for settings in family.variants(*names):
                        _CHECKS[name](settings)
    if unused:
        key = min(unused)
        table, _, _ = key.partition(".")
        where = f"sweep.{key}" if key in spec.grid else key
        if table == "faults":
            raise InputError("has no effect: no message is sent; remove it, or choose another protocol", key=where)
        if table == "emission" and not any("emission" in family.settings for family in spec.families()):
            reason = "the protocol takes no emission; remove it, or choose another protocol"
            raise InputError(f"has no effect: {reason}", key=where)
        named = {family.settings[table][NAME_KEYS[table]] for family in spec.families(table)}
        known = sorted({p for one in named for p in get_part(table, one).parameters} | {NAME_KEYS[table]})
        raise InputError(f"is an unknown key, or has no effect; [{table}] takes {', '.join(known)} here", key=where)


def check_first_problem(spec: Spec) -> None:
    """Build the problem of the first point, so that most mistakes in its parts show before anything runs.

    With it every policy and protocol is checked.
    """
    from ..sim.arguments import check_network_lasts
    from ..sim.lying import read_liars

    families = {table: next(spec.families(table)) for table in ("network", "dynamics", "arms")}
    first = {table: family.settings[table] for table, family in families.items()}
    horizons = {one["horizon"] for family in spec.families("horizon") for one in family.variants("horizon")}
    # Arms that change within the shortest run change within all of them.
    first["horizon"] = min(horizons)
    with _about("network", families["network"]):
        network = build_network(first, read_files(spec.files_of([first], "network")))
    with _about("dynamics", families["dynamics"]):
        network = build_dynamics(first, network)
    with _about("arms", families["arms"]):
        problem = build_arms(without_change(first), network, read_files(spec.files_of([first], "arms")))
    _check_changes(spec, first, problem)
    with _about("network", families["network"]):
        check_network_lasts(problem, max(horizons))
    for family in spec.families("faults"):
        with _about("faults", family):
            for one in family.variants("faults"):
                if liars := one.get("faults", {}).get("liars"):
                    read_liars(problem, read_faults({"liars": liars}))
    _check_choices(spec, problem)


def _check_choices(spec: Spec, problem: Problem) -> None:
    """Refuse protocols and policies that do not go with the problem, or with each other: all of them meet."""
    from ..sim.arguments import check_memory_fits, check_trim_fits

    protocols = [(family, build_protocol(family.settings)) for family in spec.families("protocol")]
    trims = any(one["trim"] for family in spec.families("trim") for one in family.variants("trim"))
    for family, protocol in protocols:
        with _about("protocol", family):
            protocol.check_network(not problem.is_dynamic)
            if not has_method(protocol, AnyProtocol.check_run):
                for every, faults in _pace_and_faults(spec):
                    protocol.check_run(problem, [every], faults)
    for family in spec.families("faults"):
        for settings in family.variants("faults"):
            by_arm = settings.get("faults", {}).get("reward_delay")
            if isinstance(by_arm, Mapping):
                try:
                    Faults(reward_delay=by_arm).reward_delays(problem.arms)
                except InputError as error:
                    raise family.blame(error.below("faults")) from None
    for family in spec.families("policy"):
        with _about("policy", family):
            policy = build_policy(family.settings)
            policy.check(problem)
        for _, protocol in protocols:
            try:
                check_memory_fits(protocol, policy.memory)
            except InputError as error:
                raise family.blame(error.found_in("memory.name")) from None
            if trims:
                check_trim_fits(problem, protocol, [policy])


def _pace_and_faults(spec: Spec) -> Iterator[tuple[int, Faults | None]]:
    """Every pace of pulls of a study with each of its faults."""
    pauses = [one["every"] for family in spec.families("every") for one in family.variants("every")]
    struck = [one.get("faults", {}) for family in spec.families("faults") for one in family.variants("faults")]
    for every, faults in product(pauses, struck):
        yield every, read_faults(faults).effective()


def _check_changes(spec: Spec, first: Mapping[str, Any], problem: Problem) -> None:
    """Refuse changes that arms cannot have, or that some run would end before; `problem` is the first point's without.

    Arms of other files than the first point's are not read for that, and of arms that differ by their seed those of one
    seed are looked at.
    """
    from ..sim.arguments import check_changes_come

    seen: set[str] = set()
    for family in spec.families("arms"):
        for settings in family.variants("arms"):
            table = {key: value for key, value in settings["arms"].items() if key != "seed"}
            may_change = {"change", "periods"} & set(table) or own.is_address(table["law"])
            if not may_change or repr(table) in seen:
                continue
            seen.add(repr(table))
            is_first = without_change(settings)["arms"] == without_change(first)["arms"]
            with _about("arms", family):
                before = problem.laws if is_first else drawn_laws(settings)
                try:
                    laws = changed(settings, before)
                    check_changes_come(problem.arms if is_first else range(len(laws)), laws, first["horizon"])
                except InputError as error:
                    raise error.found_in("arms.change" if "change" in table else "arms") from None


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
    "trim": partial(_check_range, name="trim"),
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
