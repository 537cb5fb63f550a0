"""The entries of a comparison: protocols, protocols with a policy, or whole configurations, each with a name.

Rules kept here: an entry holds only what may differ between runs on the same rewards and networks. Horizon, replicates
and seed are those of the whole comparison: without them nothing could be compared in pairs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from .. import checks
from ..errors import InputError
from ..policies import Policy
from ..protocols import AnyProtocol
from ..protocols.notation import as_protocol, labels

#: A protocol or its text, a pair (protocol, policy), or a mapping of arguments of `simulate`.
Comparable: TypeAlias = AnyProtocol | str | tuple[AnyProtocol | str, Policy] | Mapping[str, Any]

_MAY_DIFFER: Final = ("protocol", "policy", "rules", "faults", "every")
_SHAPES: Final = 'FwA(4), "fwa(4)", ("fwa(4)", KLUCB()) or {"protocol": "fwa(4)", "rules": "published"}'


@dataclass(frozen=True)
class Entry:
    """A protocol, and what it does not share with the other entries.

    Attributes
    ----------
    protocol : AnyProtocol
    settings : mapping
        Arguments of `simulate`.
    """

    protocol: AnyProtocol
    settings: Mapping[str, Any] = field(default_factory=dict)


def read_entries(given: Comparable | Sequence[Comparable] | Mapping[str, Comparable]) -> dict[str, Entry]:
    """The entries by name: the names given, or those that distinguish them.

    Examples
    --------
    >>> import banditmesh as bm
    >>> list(read_entries(["irs", bm.FwA(2), "fwa(4)"]))
    ['irs', 'fwa(2)', 'fwa(4)']
    >>> list(read_entries([("fwa(4)", bm.UCB()), ("fwa(4)", bm.KLUCB())]))
    ['fwa, ucb', 'fwa, klucb']
    >>> list(read_entries({"ours": "fwa(4)", "theirs": {"protocol": "fwa(4)", "rules": "published"}}))
    ['ours', 'theirs']
    """
    if isinstance(given, Mapping) and "protocol" not in given:
        unnamed = [name for name in given if not isinstance(name, str) or not name]
        if unnamed:
            raise InputError(f"names of what is compared must be words, got {checks.shown(unnamed[0])}")
        named = {name: _read_entry(one) for name, one in given.items()}
    else:
        several = [given] if isinstance(given, AnyProtocol | str | Mapping) else given
        if not isinstance(several, Sequence):
            raise InputError(f"protocols must be a list of such as {_SHAPES}; got {checks.shown(given)}")
        named = _named([_read_entry(one) for one in several])
    if not named:
        raise InputError("protocols must hold at least one protocol, got none")
    return named


def _read_entry(one: object) -> Entry:
    if isinstance(one, tuple) and len(one) == 2 and isinstance(one[1], Policy):
        return Entry(as_protocol(one[0]), {"policy": one[1]})
    if isinstance(one, Mapping):
        for key in one:
            if key not in _MAY_DIFFER:
                near = checks.meant(key, _MAY_DIFFER)
                raise InputError(f"a configuration takes {', '.join(_MAY_DIFFER)}; got {checks.shown(key)}{near}")
        if "protocol" not in one:
            raise InputError(f"a configuration needs a protocol, got {checks.shown(dict(one))}")
        return Entry(as_protocol(one["protocol"]), {key: value for key, value in one.items() if key != "protocol"})
    if not isinstance(one, AnyProtocol | str):
        raise InputError(f"what is compared must be such as {_SHAPES}; got {checks.shown(one)}")
    return Entry(as_protocol(one))


def _named(entries: Sequence[Entry]) -> dict[str, Entry]:
    """Each entry's protocol and other settings, in as few words as distinguish all of them."""
    different: list[AnyProtocol] = []
    for entry in entries:
        if entry.protocol not in different:
            different.append(entry.protocol)
    protocols = [(protocol, label) for label, protocol in labels(different).items()] if different else []
    policies = {
        repr(entry.settings["policy"]): entry.settings["policy"] for entry in entries if "policy" in entry.settings
    }
    names = [policy.name for policy in policies.values() if isinstance(policy, Policy)]
    named: dict[str, Entry] = {}
    for entry in entries:
        words = [next(label for protocol, label in protocols if protocol == entry.protocol)]
        for key, value in entry.settings.items():
            if isinstance(value, Policy):
                words.append(value.name if names.count(value.name) == 1 else repr(value))
            else:
                words.append(f"{key} {value}")
        named[", ".join(words)] = entry
    if len(named) < len(entries):
        raise InputError("protocols must differ from each other, got the same one twice")
    return named
