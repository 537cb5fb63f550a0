"""Policies, protocols and emissions as tables of a file name them, and how each is built.

A *table* names one part and gives its parameters: `{"name": "fwa", "ttl": 4}`. What parameters a part takes is read
from its own signature, so a protocol or policy that is added to the package can be named at once, in the spec of a
study and in the configuration of a node alike. A class of the user's own is named by its address, see `own`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from .. import checks
from ..errors import InputError
from ..lookup import own, registry

if TYPE_CHECKING:
    from ..policies import Memory, Policy
    from ..protocols import AnyProtocol, Emission

#: The tables whose parts are built here.
TABLES: Final = ("policy", "memory", "protocol", "emission")
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

    def check(self, where: str, given: Mapping[str, Any]) -> None:
        """Refuse a parameter of the wrong type, or the lack of a required one."""
        for key, value in given.items():
            kind, wanted = _TYPES.get(self.parameters[key], (object, ""))
            if not isinstance(value, kind) or (isinstance(value, bool) and kind is not object):
                raise InputError(f"{where}.{key} must be {wanted}, got {checks.shown(value)}")
        missing = sorted(self.required - set(given))
        if missing and not (self.all_or_nothing and not given):
            raise InputError(f"{where}.{missing[0]} is required, got none; add it")


@cache
def named(table: str) -> dict[str, Part]:
    """Everything that a table, one of `TABLES`, may name.

    Examples
    --------
    >>> list(named("emission")), dict(named("protocol")["gossip"].parameters)
    (['default', 'contested', 'every-pull', 'growth'], {'ttl': 'int', 'fanout': 'int'})
    """
    makers = {"policy": _policies, "memory": _memories, "protocol": _protocols, "emission": _emissions}
    return makers[table]()


def find(known: Mapping[str, Part], key: str, name: object) -> Part:
    """The part of that name, which `key` gives, or the class of the user's own at that address."""
    table = key.partition(".")[0]
    if table in TABLES and own.is_address(name):
        return _own(table, str(name))
    if not isinstance(name, str) or name not in known:
        near = own.with_colon(name) or checks.meant(name, known)
        raise InputError(f"{key} must be one of {', '.join(known)}; got {checks.shown(name)}{near}")
    return known[name]


def build_policy(tables: Mapping[str, Any]) -> Policy:
    """The policy that tables name.

    Examples
    --------
    >>> build_policy({"policy": {"name": "ucb", "alpha": 2.0}})
    UCB(alpha=2.0)
    """
    memory = {"memory": build_memory(tables)} if "memory" in tables else {}
    policy: Policy = _make("policy", tables, **memory)
    policy.check_memory()
    return policy


def build_memory(tables: Mapping[str, Any]) -> Memory:
    """The memory that tables name.

    Examples
    --------
    >>> build_memory({"memory": {"name": "discount", "gamma": 0.995}})
    Discount(gamma=0.995)
    """
    memory: Memory = _make("memory", tables)
    return memory


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
        part = find(named(table), f"{table}.name", name)
        tables[table] = {"name": name, **read_parameters(own.plain(name), list(part.parameters), given)}
        part.check(table, {key: value for key, value in tables[table].items() if key != "name"})
    return tables


def as_policy(value: object) -> Any:
    """A policy as it is, or the one that a text describes.

    Examples
    --------
    >>> as_policy("klucb+window(500)")
    KLUCB(c=0.0, memory=Window(rounds=500, blocks=16))
    """
    return build_policy(parse_policy(value)) if isinstance(value, str) else value


def build_emission(tables: Mapping[str, Any]) -> Emission | None:
    """The emission that tables name; None if it is the protocol's own.

    Examples
    --------
    >>> build_emission({"emission": {"name": "growth", "factor": 0.5}})
    Growth(factor=0.5, echoes=0)
    """
    emission: Emission | None = _make("emission", tables)
    return emission


def build_protocol(tables: Mapping[str, Any]) -> AnyProtocol:
    """The protocol that tables name, with its emission.

    Examples
    --------
    >>> build_protocol({"protocol": {"name": "fwa", "ttl": 4}, "emission": {"name": "default"}})
    FloodingWithAbsorption(ttl=4, emission=EveryPull())
    """
    emission = build_emission(tables) if "emission" in tables else None
    protocol: AnyProtocol = _make("protocol", tables, **({} if emission is None else {"emission": emission}))
    protocol.check_delivery()
    return protocol


def from_signature(make: Callable[..., Any]) -> Part:
    """A part that a function makes from its own arguments."""
    signature = inspect.signature(make).parameters
    required = {key for key, value in signature.items() if value.default is inspect.Parameter.empty}
    return Part(make, {key: _annotation(value.annotation) for key, value in signature.items()}, frozenset(required))


def _make(table: str, tables: Mapping[str, Any], **more: Any) -> Any:
    given = dict(tables[table])
    name = given.pop("name")
    part = find(named(table), f"{table}.name", name)
    with own.blamed(name):
        return part.make(**given, **more)


def _policies() -> dict[str, Part]:
    from .. import policies

    return _from_classes(policies.Policy)


def _memories() -> dict[str, Part]:
    from .. import policies

    return _from_classes(policies.Memory)


def _protocols() -> dict[str, Part]:
    from .. import protocols

    known = _from_classes(protocols.AnyProtocol)
    # Its ttl is 1 by definition, so a ttl that is given for other protocols is none of its parameters.
    known["irs"] = replace(known["irs"], parameters={})
    return known


def _emissions() -> dict[str, Part]:
    from .. import protocols

    # What a protocol does by itself: every pull, for most of them.
    own = Part(lambda: None, {}, frozenset())
    return {"default": own, **_from_classes(protocols.Emission)}


def _from_classes(base: type) -> dict[str, Part]:
    """The shipped classes that derive from a base, by their short names."""
    return {name: _from_class(kind) for name, kind in registry.by_name(base).items()}


@cache
def _own(table: str, address: str) -> Part:
    """The class of the user's own at an address, as a part of a table."""
    from .. import policies, protocols

    bases = {
        "policy": policies.Policy,
        "memory": policies.Memory,
        "protocol": protocols.AnyProtocol,
        "emission": protocols.Emission,
    }
    return _from_class(own.load_class(address, bases[table]))


def _from_class(kind: Any) -> Part:
    """What a class with fields takes: those fields that can be given, but for the emission and the memory."""
    signature = inspect.signature(kind).parameters
    settable = [one for one in fields(kind) if one.name in signature and one.name not in ("emission", "memory")]
    settable.sort(key=lambda one: bool(one.kw_only))
    return Part(
        kind,
        {one.name: _annotation(one.type) for one in settable},
        frozenset(one.name for one in settable if signature[one.name].default is inspect.Parameter.empty),
    )


def _annotation(written: Any) -> str:
    """An annotation as it is written; also where a module's annotations are values rather than text."""
    return written.__name__ if isinstance(written, type) else str(written)
