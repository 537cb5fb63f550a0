"""The one reader of tables that name parts, for specs, node.toml, the page and the command line alike.

A *table* names one part and gives its parameters: `{"name": "fwa", "ttl": 4}`. A word stands for a table, too: a name
alone, or a protocol written out, as in "fwa(4)+growth(0.25)". What parameters a part takes is read from its own
signature, so a class that is added to the package can be named at once. A user's own class is named by its
address, see `lookup.own`.

Whatever is wrong is an `InputError` whose `key` is the dotted key of the setting, as in "protocol.ttl". A reader of
files adds the line, other callers word it in their own way; messages are never parsed.

A new table is a line of `NAME_KEYS` and one of `_bases`; if it goes into another part, as an emission into a protocol,
also one of `GOES_INTO`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from .. import checks
from ..errors import InputError
from ..faults import Corruption, Faults, Outages
from ..lookup import own, registry

if TYPE_CHECKING:
    from ..policies import Policy
    from ..protocols import AnyProtocol

#: The tables that name parts and, for each, the key that names the part.
NAME_KEYS: Final = {
    "network": "name",
    "dynamics": "name",
    "arms": "law",
    "policy": "name",
    "memory": "name",
    "protocol": "name",
    "emission": "name",
}
#: The tables whose parts are handed to the part of another table, under their own names.
GOES_INTO: Final = {"emission": "protocol", "memory": "policy"}
#: What a parameter must be, by how its annotation is written; any other annotation is left to the part itself.
_TYPES: Final[dict[str, tuple[type | tuple[type, ...], str]]] = {
    "int": (int, "an integer"),
    "float": ((int, float), "a number"),
    "str": (str, "a string"),
    "AnyPath": (str, "a string"),
    "AnyTable": (str, "a string"),
    "Sequence[int]": (list, "a list of integers"),
    "list[float]": (list, "a list of numbers"),
}
#: The tables within [faults].
FAULT_TABLES: Final[dict[str, type[Any]]] = {"outages": Outages, "corruption": Corruption}
#: The faults that also strike agents that send nothing.
NOT_OF_LINKS: Final = ("outages", "reward_delay")


@dataclass(frozen=True)
class Part:
    """One thing that a table may name.

    Attributes
    ----------
    make : callable
        Builds it from its parameters.
    parameters : mapping from str to str
        What it takes, and how each parameter is annotated.
    required : frozenset of str
        What must be given.
    all_or_nothing : bool
        Whether it may also be named without any parameter.
    """

    make: Callable[..., Any]
    parameters: Mapping[str, str]
    required: frozenset[str]
    all_or_nothing: bool = False

    def check(self, table: str, given: Mapping[str, Any]) -> None:
        """Refuse a parameter that is unknown or of the wrong type, or the lack of a required one."""
        for key, value in given.items():
            if key not in self.parameters:
                raise self.unknown(table, key)
            kind, wanted = _TYPES.get(self.parameters[key], (object, ""))
            if not isinstance(value, kind) or (isinstance(value, bool) and kind is not object):
                raise InputError(f"must be {wanted}, got {checks.shown(value)}", key=f"{table}.{key}")
        missing = sorted(self.required - set(given))
        if missing and not (self.all_or_nothing and not given):
            raise InputError("is required, got none; add it", key=f"{table}.{missing[0]}")

    def unknown(self, table: str, key: str) -> InputError:
        """The error about a parameter that this part does not take."""
        known = [*filter(None, [NAME_KEYS.get(table)]), *self.parameters]
        near = checks.meant(key, known) or f"; [{table}] takes {', '.join(known)} here"
        return InputError(f"is an unknown key{near}", key=f"{table}.{key}")

    def without(self, key: str) -> Part:
        """The same part where a table does not give a parameter, since it is given by other means."""
        parameters = {name: annotation for name, annotation in self.parameters.items() if name != key}
        return replace(self, parameters=parameters, required=self.required - {key})


@cache
def parts(table: str) -> dict[str, Part]:
    """Everything that a table may name.

    Examples
    --------
    >>> list(parts("emission")), dict(parts("protocol")["gossip"].parameters)
    (['default', 'contested', 'every-pull', 'growth'], {'ttl': 'int', 'fanout': 'int'})
    """
    from . import problems

    if table in problems.PARTS:
        return problems.PARTS[table]()
    known = {name: _from_class(kind) for name, kind in registry.by_name(_bases()[table]).items()}
    # What the outer part does by itself: every pull for most protocols, and a policy forgets nothing.
    return {"default": Part(lambda: None, {}, frozenset()), **known} if table in GOES_INTO else known


def get_part(table: str, name: object, own_too: bool = True) -> Part:
    """The part of that name, or the user's own one at that address, if those are allowed."""
    if isinstance(name, str) and (part := _exported(table, name)) is not None:
        return part
    key, known = f"{table}.{NAME_KEYS[table]}", parts(table)
    if own.is_address(name) and own_too:
        try:
            return _own(table, str(name))
        except InputError as error:
            raise error.found_in(key) from None
    if not isinstance(name, str) or name not in known:
        near = (own.with_colon(name) if own_too else "") or checks.meant(name, known)
        raise InputError(f"must be one of {', '.join(known)}; got {checks.shown(name)}{near}", key=key)
    return known[name]


def tables_of(table: str, value: Any) -> dict[str, Any]:
    """The tables that a value stands for: a table for itself, a word for the part of that name.

    A protocol that is written out stands for its emission, too, and a policy for its memory.

    Examples
    --------
    >>> tables_of("policy", "ucb")
    {'policy': {'name': 'ucb'}}
    >>> tables_of("protocol", "flooding(8)+growth(0.25)")
    {'protocol': {'name': 'flooding', 'ttl': 8}, 'emission': {'name': 'growth', 'factor': 0.25}}
    """
    from ..protocols import notation

    if isinstance(value, Mapping):
        return {table: value}
    if table not in GOES_INTO.values() or not isinstance(value, str) or not any(sign in value for sign in "(+"):
        return {table: {NAME_KEYS[table]: value}}
    try:
        return notation.parse(value) if table == "protocol" else parse_policy(value)
    except InputError as error:
        raise error.found_in(table) from None


def part_of(table: str, given: object, own_too: bool = True) -> tuple[Part, dict[str, Any]]:
    """The part that a table names, as `get_part`, and the parameters that it gives; they are not checked."""
    key = NAME_KEYS[table]
    if not isinstance(given, Mapping):
        raise InputError(f"must be a table or a name, got {checks.shown(given)}", key=table)
    if key not in given:
        raise InputError(f"is required, got {checks.shown(given)}", key=f"{table}.{key}")
    return get_part(table, given[key], own_too), {name: value for name, value in given.items() if name != key}


def check(table: str, tables: Mapping[str, Any]) -> None:
    """Refuse parameters of the wrong type in a table, or the lack of one; nothing is built."""
    part, given = part_of(table, tables[table])
    part.check(table, given)


def build(table: str, tables: Mapping[str, Any], **more: Any) -> Any:
    """The part that a table names, with those of other tables that go into it.

    Parameters
    ----------
    table : str
        The table, one of `NAME_KEYS`.
    tables : mapping
        All tables, by their names.
    **more
        Parameters that no table gives.

    Examples
    --------
    >>> build("protocol", {"protocol": {"name": "fwa", "ttl": 4}, "emission": {"name": "contested"}})
    FloodingWithAbsorption(ttl=4, emission=Contested())
    """
    part, given = part_of(table, tables[table])
    part.check(table, given)
    kind: Any = part.make
    for inner in (inner for inner, outer in GOES_INTO.items() if outer == table and inner in tables):
        made = build(inner, tables)
        if made is None:
            continue
        if inner == "emission" and not kind.has_emission():
            kind.check_takes_emission(made.name)
        more[inner] = made
    try:
        with own.blamed(tables[table][NAME_KEYS[table]]):
            return part.make(**given, **more)
    except InputError as error:
        raise located(error, table, given) from None


def located(error: InputError, table: str, given: object = None) -> InputError:
    """An error with the key of the setting that it is about: a key that a table gives, or else the table."""
    if is_within(error.key, table):
        return error
    if isinstance(given, Mapping) and error.key and has_key(given, error.key):
        return error.below(table)
    return error.found_in(table)


def build_policy(tables: Mapping[str, Any]) -> Policy:
    """The policy that tables name.

    Examples
    --------
    >>> build_policy({"policy": {"name": "ucb", "alpha": 2.0}})
    UCB(alpha=2.0)
    """
    policy: Policy = build("policy", tables)
    policy.check_memory()
    return policy


def parse_policy(text: str) -> dict[str, dict[str, Any]]:
    """A policy as people write it, as tables: its name with its parameters, and its memory if it has one.

    Examples
    --------
    >>> parse_policy("ucb(0.5)+discount(0.995)")
    {'policy': {'name': 'ucb', 'alpha': 0.5}, 'memory': {'name': 'discount', 'gamma': 0.995}}
    """
    from ..protocols.notation import WRITTEN, read_parameters

    match = WRITTEN.fullmatch(text)
    if match is None:
        raise InputError(
            f"a policy must be written like ucb, ucb(0.5) or ucb(0.5)+discount(0.995), got {checks.shown(text)}"
            f"{own.with_colon(text.partition('(')[0].strip())}"
        )
    words = {"policy": match[1], **({} if match[3] is None else {"memory": match[3]})}
    tables: dict[str, dict[str, Any]] = {}
    for (table, name), given in zip(words.items(), (match[2], match[4]), strict=False):
        name = own.address(name, Path()) if own.is_name(name) else name
        part = get_part(table, name)
        parameters = read_parameters(own.plain(name), list(part.parameters), given)
        part.check(table, parameters)
        tables[table] = {"name": name, **parameters}
    return tables


def as_policy(value: object) -> Any:
    """A policy as it is, or the one that a text describes.

    Examples
    --------
    >>> as_policy("klucb+window(500)")
    KLUCB(c=0.0, memory=Window(rounds=500, blocks=16))
    """
    return build_policy(parse_policy(value)) if isinstance(value, str) else value


def build_protocol(tables: Mapping[str, Any]) -> AnyProtocol:
    """The protocol that tables name, with its emission."""
    protocol: AnyProtocol = build("protocol", tables)
    protocol.check_delivery()
    return protocol


def read_faults(table: object) -> Faults:
    """What a [faults] table says, whether it ever strikes or not; outages and corruption are tables within it.

    Examples
    --------
    >>> read_faults({"loss": 0.1, "outages": {"down": 0.01, "up": 0.1}})
    Faults(loss=0.1, outages=Outages(down=0.01, up=0.1, memory=True))
    """
    given = dict(_table("faults", table))
    for name, kind in FAULT_TABLES.items():
        if name in given:
            given[name] = _read_fields(f"faults.{name}", kind, given[name])
    faults: Faults = _read_fields("faults", Faults, given)
    return faults


def without_traffic(table: object) -> dict[str, Any]:
    """What of a [faults] table matters to agents that send nothing: liars' regret is not counted, even then."""
    return {name: value for name, value in _table("faults", table).items() if name in (*NOT_OF_LINKS, "liars")}


def has_key(settings: Mapping[str, Any], key: str) -> bool:
    """Whether a dotted key is set."""
    value: Any = settings
    for name in key.split("."):
        if not isinstance(value, dict) or name not in value:
            return False
        value = value[name]
    return True


def is_within(key: str, other: str) -> bool:
    """Whether a dotted key is another one, or a key of its table.

    Examples
    --------
    >>> is_within("faults.outages.up", "faults.outages"), is_within("network.n", "network.name")
    (True, False)
    """
    return key == other or key.startswith(f"{other}.")


def leaves(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """The dotted keys of a table and of the tables in it, and their values; a table without keys is a value too."""
    for key, value in table.items():
        if isinstance(value, dict) and value:
            yield from leaves(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def from_signature(make: Callable[..., Any]) -> Part:
    """A part that a function makes from its own arguments; one that draws has the seed 0 unless it is given."""
    signature = inspect.signature(make).parameters
    required = {key for key, value in signature.items() if value.default is inspect.Parameter.empty}
    parameters = {key: _annotation(value.annotation) for key, value in signature.items()}
    seeded = partial(make, seed=0) if "seed" in parameters else make
    return Part(seeded, parameters, frozenset(required - {"seed"}))


def _table(where: str, given: object) -> Mapping[str, Any]:
    if not isinstance(given, Mapping):
        raise InputError(f"must be a table, got {checks.shown(given)}", key=where)
    return given


def _read_fields(where: str, kind: type, table: object) -> Any:
    """A value of a class with fields, from a table of them."""
    given = _table(where, table)
    untyped = replace(_from_class(kind), parameters=dict.fromkeys((one.name for one in fields(kind)), ""))
    untyped.check(where, given)
    try:
        return kind(**given)
    except InputError as error:
        raise error.below("faults") from None


def _bases() -> dict[str, type[Any]]:
    """The tables whose parts are classes, and what these derive from; other parts are made by functions."""
    from .. import policies, protocols

    return {
        "policy": policies.Policy,
        "memory": policies.Memory,
        "protocol": protocols.AnyProtocol,
        "emission": protocols.Emission,
    }


@cache
def _own(table: str, address: str) -> Part:
    """The user's own part of a table at an address."""
    from . import problems

    base = _bases().get(table)
    return problems.own_part(table, address) if base is None else _from_class(own.load_class(address, base))


@cache
def _exported(table: str, name: str) -> Part | None:
    """The part of a class that its package exports: to name it imports none of the others."""
    base = _bases().get(table)
    kind = None if base is None else registry.exported(base, name)
    return None if kind is None else _from_class(kind)


def _from_class(kind: Any) -> Part:
    """What a class with fields takes: those fields that can be given, but for those that have tables of their own."""
    if getattr(kind, "name", None) in ("irs", "ucb-network"):
        # Its ttl is 1 by definition, so a ttl that is given for other protocols is none of its parameters.
        return Part(kind, {}, frozenset())
    signature = inspect.signature(kind).parameters
    settable = [one for one in fields(kind) if one.name in signature and one.name not in GOES_INTO]
    settable.sort(key=lambda one: bool(one.kw_only))
    return Part(
        kind,
        {one.name: _annotation(one.type) for one in settable},
        frozenset(one.name for one in settable if signature[one.name].default is inspect.Parameter.empty),
    )


def _annotation(written: Any) -> str:
    """An annotation as it is written; also where a module's annotations are values rather than text."""
    return written.__name__ if isinstance(written, type) else str(written)
