"""Protocols as people write them: `flooding(8)+growth(0.25)`.

The short name of a protocol with its parameters, then its emission with its own, if it is not every pull (or if every
pull is not what the protocol does by itself). The same text is read by every function that takes a protocol, on the
command line and in specs, and printed in tables and pictures; both directions are written here alone. Parameters stand
in the order of the class's fields, or by name: `probabilistic(4, stop=0.3)`. A number without a name is printed only
where it is a ttl, or the first parameter of an emission: `tree(pause=16)`. What equals a protocol's default is not
printed. A class of the user's own is named by its module: `my_module:MyProtocol(4)`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import MISSING, Field, fields
from typing import Any, Final

from .. import checks
from ..errors import InputError
from ..lookup import own, registry
from .base import AnyProtocol
from .emission import Emission, EveryPull

_PART: Final = rf"\s*({own.PATTERN}|[A-Za-z][\w-]*)\s*(?:\(([^()]*)\))?\s*"
#: What has two parts, each with parameters in parentheses: a protocol and its emission, a policy and its memory.
WRITTEN: Final = re.compile(rf"{_PART}(?:\+{_PART})?")
#: Parameters that are words, not numbers.
_WORDS: Final = ("first_pulls",)
_COMMAS_OUTSIDE: Final = re.compile(r",(?![^()]*\))")


def write(protocol: AnyProtocol) -> str:
    """A protocol as `read` reads it.

    Examples
    --------
    >>> import banditmesh as bm
    >>> write(bm.Flooding(8, emission=bm.Growth(0.25))), write(bm.IRS()), write(bm.Gossip(4, fanout=2))
    ('flooding(8)+growth(0.25)', 'irs', 'gossip(4, fanout=2)')
    >>> write(bm.TreeAggregation(16))
    'tree(pause=16)+growth(0.05)'
    """
    text = protocol.name + _arguments(protocol, hide_first=True)
    return text if _goes_without_saying(protocol) else f"{text}+{write_emission(protocol.emission)}"


def write_emission(emission: Emission) -> str:
    """An emission with its parameters.

    Examples
    --------
    >>> import banditmesh as bm
    >>> write_emission(bm.Growth(1.0)), write_emission(bm.Contested())
    ('growth(1)', 'contested')
    """
    return emission.name + _arguments(emission, hide_first=False)


def labels(protocols: Sequence[AnyProtocol]) -> dict[str, AnyProtocol]:
    """Short names for tables, pictures and JSON, all different.

    A protocol that is the only one of its name and sends every pull goes by its plain name; any other is written out.

    Examples
    --------
    >>> import banditmesh as bm
    >>> list(labels([bm.IRS(), bm.FwA(4), bm.Flooding(4), bm.Flooding(4, emission=bm.Growth(0.1))]))
    ['irs', 'fwa', 'flooding(4)', 'flooding(4)+growth(0.1)']
    """
    names = [protocol.name for protocol in protocols]
    short = [
        protocol.name if names.count(protocol.name) == 1 and _goes_without_saying(protocol) else write(protocol)
        for protocol in protocols
    ]
    # A user's own classes may share a name, or have parameters that are no fields.
    named = {
        label if short.count(label) == 1 else repr(protocol): protocol
        for label, protocol in zip(short, protocols, strict=True)
    }
    if len(named) < len(protocols):
        raise InputError("protocols must differ from each other, got the same one twice")
    return named


def split(text: str) -> list[str]:
    """The texts of a list with commas between them.

    Examples
    --------
    >>> split("irs, probabilistic(4, stop=0.3),fwa")
    ['irs', 'probabilistic(4, stop=0.3)', 'fwa']
    """
    return [one.strip() for one in _COMMAS_OUTSIDE.split(text)]


def parse(text: str) -> dict[str, dict[str, Any]]:
    """What a text names, as tables of a spec: "protocol" and, if it names one, "emission"; nothing is built.

    Names are known, and parameters are known and are numbers, but not checked otherwise.

    Examples
    --------
    >>> parse("flooding(8)+growth(0.25)")
    {'protocol': {'name': 'flooding', 'ttl': 8}, 'emission': {'name': 'growth', 'factor': 0.25}}
    """
    match = WRITTEN.fullmatch(text)
    if match is None and text.strip():
        raise InputError(
            f"a protocol must be written like fwa, fwa(4) or flooding(8)+growth(0.25), got {checks.shown(text)}"
            f"{own.with_colon(text.partition('(')[0].strip())}"
        )
    name, given, emission, emission_given = match.groups() if match else ("", None, None, None)
    kind = get_class("protocols", name)
    if emission is not None and (emission != EveryPull.name or not kind.has_emission()):
        kind.check_takes_emission(emission)
    tables: dict[str, dict[str, Any]] = {"protocol": {"name": name, **_parameters(kind, given)}}
    if emission is not None:
        tables["emission"] = {"name": emission, **_parameters(get_class("emissions", emission), emission_given)}
    return tables


def read(text: str, ttl: int | None = None) -> AnyProtocol:
    """The protocol that a text describes.

    Parameters
    ----------
    text : str
        As `write` writes it.
    ttl : int, optional
        For a protocol that needs one and has none in the text.

    Examples
    --------
    >>> read("fwa(4)+contested")
    FloodingWithAbsorption(ttl=4, emission=Contested())
    >>> read("fwa", ttl=2).ttl
    2
    """
    tables = parse(text)
    given = tables["protocol"]
    name = given.pop("name")
    kind = get_class("protocols", name)
    if needs_ttl(kind) and "ttl" not in given:
        if ttl is None:
            raise InputError(f"{name} needs a ttl, got none; write {name}(4)")
        given["ttl"] = ttl
    if "emission" in tables:
        emission = tables["emission"]
        given["emission"] = get_class("emissions", emission.pop("name"))(**emission)
    protocol: AnyProtocol = kind(**given)
    return protocol


def as_protocol(value: object) -> AnyProtocol:
    """A protocol as it is, or the one that a text describes: what every public function takes.

    Examples
    --------
    >>> import banditmesh as bm
    >>> as_protocol("fwa(4)") == as_protocol(bm.FwA(4))
    True
    """
    value = read(value) if isinstance(value, str) else value
    if not isinstance(value, AnyProtocol):
        raise InputError(f'protocol must be a protocol such as FwA(4) or "fwa(4)", got {checks.shown(value)}')
    value.check_delivery()
    return value


def protocol_or_class(text: str) -> AnyProtocol | type[AnyProtocol]:
    """The protocol that a text describes or, if it is nothing but a name, its class.

    Examples
    --------
    >>> protocol_or_class("irs").__name__, protocol_or_class("gossip(4)").ttl
    ('InstantRewardSharing', 4)
    """
    tables = parse(text)
    name = tables["protocol"]["name"]
    return get_class("protocols", name) if tables == {"protocol": {"name": name}} else read(text)


def as_emission(value: object) -> Emission:
    """An emission as it is, or the one that a text describes."""
    if isinstance(value, str):
        return read_emission(value)
    if not isinstance(value, Emission):
        raise InputError(
            f'emission must be an emission such as Growth(0.25) or "growth(0.25)", got {checks.shown(value)}'
        )
    return value


def read_emission(text: str) -> Emission:
    """The emission that a text describes.

    Examples
    --------
    >>> read_emission("growth(0.5)")
    Growth(factor=0.5, echoes=0)
    """
    match = re.fullmatch(_PART, text)
    if match is None:
        raise InputError(f"an emission must be written like contested or growth(0.25), got {checks.shown(text)}")
    kind = get_class("emissions", match[1])
    emission: Emission = kind(**_parameters(kind, match[2]))
    return emission


def get_class(what: str, name: str) -> type[Any]:
    """The class with a short name among the package's "protocols" or "emissions", or one of the user's own."""
    bases: dict[str, type[Any]] = {"protocols": AnyProtocol, "emissions": Emission}
    if own.is_name(name):
        return own.load_class(name, bases[what])
    if (kind := registry.exported(bases[what], name)) is not None:
        return kind
    known = registry.by_name(bases[what])
    if name not in known:
        near = checks.meant(name, known)
        names = sorted(known, key=lambda one: (registry.is_algorithm(known[one]), one))
        raise InputError(f"{what} must be among {', '.join(names)}; got {checks.shown(name)}{near}")
    return known[name]


def needs_ttl(kind: type[Any]) -> bool:
    """Whether a class of protocols must be given a ttl."""
    return any(one.name == "ttl" and one.default is MISSING for one in _settable(kind))


def _goes_without_saying(protocol: AnyProtocol) -> bool:
    """Whether the emission is every pull, and is so if nothing is said; or cannot be another."""
    if not protocol.has_emission():
        return True
    made: Any = protocol
    default = next((one.default_factory for one in fields(made) if one.name == "emission"), EveryPull)
    return protocol.emission == EveryPull() and default is not MISSING and default() == EveryPull()


def _settable(kind: Any) -> list[Field[Any]]:
    return [one for one in fields(kind) if one.init and one.name != "emission"]


def _arguments(value: Any, hide_first: bool) -> str:
    """The parameters in parentheses that are not the default, and the first one if it is not to be hidden."""
    words: list[str] = []
    for place, one in enumerate(_settable(value)):
        given = getattr(value, one.name)
        if given == one.default and (place > 0 or hide_first):
            continue
        # A protocol's ttl and an emission's first parameter are known by their place; others are clearer by name.
        is_known = place == 0 and (one.name == "ttl" or not hide_first)
        words.append(_shown(given) if is_known else f"{one.name}={_shown(given)}")
    return f"({', '.join(words)})" if words else ""


def _shown(value: Any) -> str:
    """A number as short as it can be read back."""
    if isinstance(value, float):
        return f"{value:g}" if float(f"{value:g}") == value else repr(value)
    return str(value)


def _parameters(kind: type[Any], given_text: str | None) -> dict[str, int | float]:
    return read_parameters(kind.name, [one.name for one in _settable(kind)], given_text)


def read_parameters(what: str, known: Sequence[str], given_text: str | None) -> dict[str, Any]:
    """What a text in parentheses gives of these parameters: numbers, or words of some that are known to be words."""
    given: dict[str, Any] = {}
    text = (given_text or "").strip()
    for place, word in enumerate(text.split(",") if text else []):
        key, equals, value = (part.strip() for part in word.rpartition("="))
        if not equals:
            if place >= len(known):
                raise InputError(f"{what} takes {', '.join(known) or 'no parameters'}; got more: {checks.shown(text)}")
            key = known[place]
        if key not in known:
            takes = f"{what} takes {', '.join(known) or 'no parameters'}"
            raise InputError(f"{takes}; got {checks.shown(key)}{checks.meant(key, known)}")
        if key in given:
            raise InputError(f"{what} takes {key} once, got it twice: {checks.shown(text)}")
        given[key] = value if key in _WORDS else checks.number_in(f"{key} of {what}", value)
    return given
