"""What protocols, policies and emissions are all required to be: frozen values with a name, whose fields count.

Results record a protocol by its repr, tables tell them apart by `==` and by name, and executors pickle them. So a field
that repr or `==` does not know, or state that is no field, gives wrong answers far from where it was written.
"""

from __future__ import annotations

import copy
import dataclasses
import inspect
import io
import pickle
import re
from collections.abc import Iterator
from functools import cached_property
from typing import Any, Final

from .. import checks
from ..errors import ContractError, InputError
from ..lookup import registry
from ..protocols import Delivery

#: What can be written on a command line and in a spec.
_NAME = re.compile(r"[A-Za-z][\w-]*")


def shipped(base: type[Any]) -> list[type[Any]]:
    """All protocols, policies or emissions that the package ships, found in its modules.

    Parameters
    ----------
    base : type
        `AnyProtocol`, `Policy` or `Emission`.

    Examples
    --------
    >>> import banditmesh as bm
    >>> bm.Growth in bm.testing.shipped(bm.Emission)
    True
    """
    return registry.shipped(base)


def check_kind(base: type[Any], value: object) -> str:
    """What to call the value in messages, if it is an instance of the base."""
    kind = base.__name__.removeprefix("Any").lower()
    if isinstance(value, type) and issubclass(value, base):
        raise InputError(f"an instance of {value.__name__} is required, got the class; call it first")
    if not isinstance(value, base):
        article = "an" if kind[0] in "aeiou" else "a"
        raise InputError(f"{article} {kind} is required, got {checks.shown(value)}")
    return f"{kind} {getattr(value, 'name', type(value).__name__)!r}"


def check_name(base: type[Any], subject: str, value: Any) -> None:
    """It has a name of its own that specs and the command line can spell."""
    name = value.name
    if not (isinstance(name, str) and _NAME.fullmatch(name)):
        raise ContractError(
            f"the name of {type(value).__name__} must be letters, digits and hyphens that begin with a letter, "
            f"got {checks.shown(name)}; set `name` in the class"
        )
    taken = [kind for kind in [base, *shipped(base)] if kind.name == name and kind is not type(value)]
    if taken:
        raise ContractError(
            f"the name of {type(value).__name__} must be its own, got {name!r}, "
            f"which is that of {taken[0].__name__}; set `name` in the class"
        )


_KINDS: Final[dict[type, str]] = {bool: "True or False", int: "an integer", Delivery: "a Delivery"}


def check_flags(subject: str, value: Any, flags: dict[str, type]) -> None:
    """What engines read off the class is of the right type there."""
    for flag, kind in flags.items():
        found = getattr(type(value), flag)
        if type(found) is not kind:
            raise ContractError(f"{flag} of {subject} must be {_KINDS[kind]} in its class, got {checks.shown(found)}")


def check_parameter(subject: str, value: Any) -> None:
    """Its one number is a finite one."""
    try:
        checks.real(f"the parameter of {subject}", value.parameter)
    except InputError as error:
        raise ContractError(f"{error}; override the property `parameter`") from None


def check_frozen_value(base: type[Any], subject: str, value: Any) -> None:
    """Its state is its fields, which `==`, `hash`, repr and pickle all know."""
    fields = {one.name: one for one in dataclasses.fields(value)}
    undeclared = [*_annotated(base, type(value)), *_state(value)]
    strangers = [name for name in undeclared if name not in fields]
    if strangers:
        raise ContractError(
            f"all state of {subject} must be fields, got {strangers[0]!r}, which is none; "
            "write @dataclass(frozen=True) above the class"
        )
    for one in fields.values():
        if not (not one.init or (one.repr and one.compare)):
            raise ContractError(
                f"repr and == of {subject} must know the field {one.name!r}, got one that is left out; "
                "remove repr=False and compare=False"
            )
    try:
        hash(value)
    except TypeError as error:
        raise ContractError(f"{subject} must be hashable, got {error}; use tuples instead of lists") from None
    same = copy.copy(value)
    if not (same == value and hash(same) == hash(value) and repr(same) == repr(value)):
        raise ContractError(
            f"a copy of {subject} must equal it, in ==, hash and repr, got one that does not; "
            "leave them to @dataclass(frozen=True)"
        )
    for name, other in _variants(value):
        if not (other != value and repr(other) != repr(value)):
            raise ContractError(
                f"{subject} with another {name} must differ in == and repr, got {checks.shown(other)} beside "
                f"{checks.shown(value)}; leave both to @dataclass(frozen=True)"
            )


def check_pickle(subject: str, value: Any) -> None:
    """It comes back from a pickle; whether its class can be imported elsewhere is not asked."""
    classes: list[type[Any]] = []

    class Pickler(pickle.Pickler):
        def persistent_id(self, thing: object) -> int | None:
            if not isinstance(thing, type):
                return None
            classes.append(thing)
            return len(classes) - 1

    class Unpickler(pickle.Unpickler):
        def persistent_load(self, number: int) -> type[Any]:
            return classes[number]

    buffer = io.BytesIO()
    try:
        Pickler(buffer).dump(value)
        buffer.seek(0)
        back = Unpickler(buffer).load()
    except Exception as error:
        raise ContractError(
            f"{subject} must be picklable, so that other processes can be given it, got {error}; "
            "keep plain numbers, strings and tuples in its fields"
        ) from None
    if not (back == value):
        raise ContractError(
            f"{subject} must come back equal from a pickle, got {checks.shown(back)}; remove __reduce__"
        )


class Unchanged:
    """Sees to it that a value's state does not change while it is used."""

    def __init__(self, subject: str, value: Any) -> None:
        self._subject = subject
        self._value = value
        self._before = copy.deepcopy(_state(value))

    def check(self) -> None:
        """The state is what it was."""
        now = _state(self._value)
        changed = [name for name in now if name not in self._before or now[name] != self._before[name]]
        if changed:
            raise ContractError(
                f"{self._subject} must not change while it is used, got another {changed[0]!r}; "
                "what agents know belongs into their estimates"
            )


def _state(value: Any) -> dict[str, Any]:
    """What an instance holds, without what is cached."""
    cached = {
        name for kind in type(value).__mro__ for name, one in vars(kind).items() if isinstance(one, cached_property)
    }
    return {name: one for name, one in getattr(value, "__dict__", {}).items() if name not in cached}


def _annotated(base: type[Any], kind: type[Any]) -> Iterator[str]:
    """The names that classes below the base annotate as fields would be."""
    for one in kind.__mro__:
        if issubclass(one, base) and one is not base:
            for name, annotation in inspect.get_annotations(one).items():
                if not hasattr(base, name) and not re.search("ClassVar|KW_ONLY", str(annotation)):
                    yield name


def _variants(value: Any) -> Iterator[tuple[str, Any]]:
    """The same value with one field changed, wherever a change can be guessed that the class accepts."""
    for one in dataclasses.fields(value):
        if not one.init:
            continue
        given = getattr(value, one.name)
        for other in _others(given):
            if other == given:
                continue
            try:
                yield one.name, dataclasses.replace(value, **{one.name: other})
                break
            except (InputError, ValueError, TypeError):
                continue


def _others(given: Any) -> list[Any]:
    if isinstance(given, bool):
        return [not given]
    if isinstance(given, int):
        return [given + 1, given + 2, given - 1]
    if isinstance(given, float):
        return [given / 2 + 0.125, given / 2, given + 1.0]
    return []
