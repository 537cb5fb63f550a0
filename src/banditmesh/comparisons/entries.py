"""The entries of a comparison: protocols, protocols with a policy, or whole configurations, each with a name.

Rules kept here: an entry holds only what may differ between runs on the same rewards and networks. Horizon, replicates
and seed are those of the whole comparison: without them nothing could be compared in pairs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any, Final, TypeAlias

from .. import checks
from ..errors import InputError
from ..policies import Policy
from ..protocols import AnyProtocol
from ..protocols.notation import as_protocol, labels
from ..settings.parts import as_policy
from ..sim.arguments import check_memory_fits

#: A protocol or its text, a pair (protocol, policy), or a mapping of arguments of `simulate`.
Comparable: TypeAlias = AnyProtocol | str | tuple[AnyProtocol | str, Policy | str] | Mapping[str, Any]

_MAY_DIFFER: Final = ("protocol", "policy", "rules", "faults", "every", "trim")
_POLICIES: Final = 'UCB(0.5) or "ucb(0.5)+discount(0.995)"'
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


def read_policies(given: Any, one: Any = None) -> list[Policy]:
    """Several policies, or texts of them, that differ; none if none are given.

    Examples
    --------
    >>> read_policies("ucb+discount(0.995)")
    [UCB(alpha=3.0, memory=Discount(gamma=0.995))]
    """
    if given is None:
        return []
    if one is not None:
        raise InputError("give policy or policies, got both; policies puts several side by side")
    several = [given] if isinstance(given, Policy | str) else given
    if not isinstance(several, Sequence) or not several:
        raise InputError(f"policies must be a list of such as {_POLICIES}; got {checks.shown(given)}")
    read = [as_policy(one) for one in several]
    for policy in read:
        if not isinstance(policy, Policy):
            raise InputError(f"policies must be such as {_POLICIES}; got {checks.shown(policy)}")
    if len({repr(policy) for policy in read}) < len(read):
        raise InputError("policies must differ from each other, got the same one twice")
    return read


def check_takes_policy(protocol: AnyProtocol, policy: object) -> None:
    """Refuse a policy for an algorithm that chooses by itself: tables would name one that is never asked."""
    if policy is not None and protocol.chooses:
        raise InputError(
            f"{protocol.name!r} chooses by its own rules and takes no policy, got {checks.shown(policy)}; leave it out"
        )


def check_memories(protocols: Iterable[AnyProtocol], given: Any) -> None:
    """Refuse memories that do not go with the protocols, before any of them runs; the rest is left to `simulate`.

    Parameters
    ----------
    protocols : iterable of AnyProtocol
        Each of them runs with each of the policies.
    given : Policy, str, sequence of Policy, or None
        The policies.
    """
    read = as_policy(given)
    memories = {one.memory for one in (read if isinstance(read, Sequence) else [read]) if isinstance(one, Policy)}
    for protocol, memory in product(protocols, memories):
        check_memory_fits(protocol, memory)


def policy_labels(policies: Sequence[Policy]) -> list[str]:
    """What tells policies apart: the name and memory of one that is the only one of these, else all that it is.

    Examples
    --------
    >>> policy_labels(read_policies(["ucb", "ucb+discount(0.995)"]))
    ['ucb', 'ucb+discount(0.995)']
    """
    short = [policy.label for policy in policies]
    return [label if short.count(label) == 1 else repr(one) for label, one in zip(short, policies, strict=True)]


def read_entries(
    given: Comparable | Sequence[Comparable] | Mapping[str, Comparable], policies: Sequence[Policy] = ()
) -> dict[str, Entry]:
    """The entries by name: the names given, or those that distinguish them.

    Each that has no policy of its own is there with each of these policies, if there are any.

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
        named = {
            f"{name}, {label}" if label else name: entry
            for name, one in given.items()
            for label, entry in _with_each(_read_entry(one), policies)
        }
    else:
        several = [given] if isinstance(given, AnyProtocol | str | Mapping) else given
        if not isinstance(several, Sequence):
            raise InputError(f"protocols must be a list of such as {_SHAPES}; got {checks.shown(given)}")
        named = _named([entry for one in several for _, entry in _with_each(_read_entry(one), policies)])
    if not named:
        raise InputError("protocols must hold at least one protocol, got none")
    return named


def _with_each(entry: Entry, policies: Sequence[Policy]) -> list[tuple[str, Entry]]:
    """The entry with each of these policies and what that is called, or as it is if it has one or needs none."""
    if "policy" in entry.settings or not policies or entry.protocol.chooses:
        return [("", entry)]
    return [
        (label, Entry(entry.protocol, {"policy": policy, **entry.settings}))
        for label, policy in zip(policy_labels(policies), policies, strict=True)
    ]


def _read_entry(one: object) -> Entry:
    entry = _read_shape(one)
    check_takes_policy(entry.protocol, entry.settings.get("policy"))
    return entry


def _read_shape(one: object) -> Entry:
    if isinstance(one, tuple) and len(one) == 2 and isinstance(one[1], Policy | str):
        return Entry(as_protocol(one[0]), {"policy": as_policy(one[1])})
    if isinstance(one, Mapping):
        for key in one:
            if key not in _MAY_DIFFER:
                near = checks.meant(key, _MAY_DIFFER)
                raise InputError(f"a configuration takes {', '.join(_MAY_DIFFER)}; got {checks.shown(key)}{near}")
        if "protocol" not in one:
            raise InputError(f"a configuration needs a protocol, got {checks.shown(dict(one))}")
        settings = {key: as_policy(value) if key == "policy" else value for key, value in one.items()}
        return Entry(as_protocol(settings.pop("protocol")), settings)
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
    single = [policy for policy in policies.values() if isinstance(policy, Policy)]
    called = {repr(policy): label for policy, label in zip(single, policy_labels(single), strict=True)}
    named: dict[str, Entry] = {}
    for entry in entries:
        words = [next(label for protocol, label in protocols if protocol == entry.protocol)]
        for key, value in entry.settings.items():
            if isinstance(value, Policy):
                words.append(called[repr(value)])
            else:
                words.append(f"{key} {value}")
        named[", ".join(words)] = entry
    if len(named) < len(entries):
        raise InputError("protocols must differ from each other, got the same one twice")
    return named
