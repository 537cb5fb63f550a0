"""The rows of the suite: what is compared on every problem.

Rules kept here: a row is a text, "PROTOCOL" or "PROTOCOL, POLICY", in which the word `diameter` stands for the
diameter of a problem's network, `near` for the same but at most 4 for more than 50 agents, and `width` for that of
confidence bounds. The shipped protocols have the parameters given here. Every other protocol or algorithm that the
registry knows is a row too, and a new one becomes one by itself: with the diameter as its ttl and the width as its
alpha, if it has these, so that rows differ in what agents tell each other and not in how cautiously they explore; the
rest is as its author set it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Final, TypeAlias

from .. import checks
from ..comparisons.entries import check_takes_policy
from ..errors import InputError
from ..lookup import own, registry
from ..policies import Policy
from ..protocols import AnyProtocol, notation
from ..settings.parts import as_policy
from .problems import SuiteProblem

#: Every agent on its own, and everything told to everybody: between these two lies what sending can gain.
ALONE: Final = "none"
CENTRE: Final = "centralised"
#: The row whose bytes the budgets are shares of.
FLOODING: Final = "flooding(diameter)"
BUDGETS: Final = (0.001, 0.01, 0.1)

#: What users enter: a protocol or algorithm, or a text of one, or a pair of it and a policy.
Entry: TypeAlias = AnyProtocol | str | tuple[AnyProtocol | str, Policy | str]

#: The ttl of the paper, and up to how many agents the diameter is near.
NEAR: Final = 4
FEW: Final = 50

_PROTOCOLS: Final = (
    ALONE,
    "irs",
    "irs+contested",
    "gossip(diameter)",
    "probabilistic(diameter)",
    "fwa(4)",
    "fwa(diameter)",
    "fwa(diameter)+contested",
    "fwa(diameter)+growth(0.25)",
    FLOODING,
    "flooding(diameter)+contested",
    "flooding(diameter)+growth(0.1)",
    "flooding(diameter)+growth(0.25)",
    "flooding(diameter)+growth(1)",
    "tree(pause=8)+growth(0.05)",
    "tree(pause=16)+growth(0.25)",
    CENTRE,
)
#: Published names of what is a row already.
SAME: Final = {
    "co-ucb": FLOODING,
    "comex": "flooding(diameter)+contested",
    "mp-ucb": FLOODING,
    "ucb-network": "irs",
}
#: For arms that change: rows only where they do.
_FOR_CHANGE: Final = ("cusum-ucb", "glr-klucb", "m-ucb")
#: They flood much, which takes long on the reference engine: so not farther than near.
_OTHERWISE: Final = {name: f"{name}(ttl=near, alpha=width)" for name in ("co-aae", "coop-se")} | {
    name: f"{name}(ttl=near)" for name in _FOR_CHANGE
}
#: The words as parameters, and not as parts of names.
_WORDS: Final = re.compile(r"(?<=[(=,\s])(diameter|near|width)(?=\s*[,)])")
#: What the words are given to.
_GIVEN: Final = {"ttl": "diameter", "alpha": "width"}
#: Also, where transmissions are lost: statistics that are sent again.
_ECHOING: Final = ("flooding(diameter)+growth(0.25, echoes=1)", "tree(pause=8)+growth(0.05, echoes=1)")


@dataclass(frozen=True)
class Row:
    """What runs on a problem.

    Attributes
    ----------
    name : str
        How tables call it: its text without hashes, or the name that its author gave it.
    protocol : AnyProtocol
        The protocol or algorithm.
    policy : Policy or None
        How it chooses; None for the policy of the problem.
    source : str
        A hash of the source of classes that the package does not ship; empty for those that it does.
    """

    name: str
    protocol: AnyProtocol
    policy: Policy | None = None
    source: str = ""


def row_texts(problem: SuiteProblem) -> list[str]:
    """The texts of all rows of a problem.

    Examples
    --------
    >>> from banditmesh.suite import PROBLEMS
    >>> row_texts(PROBLEMS["paper-er"])[:4]
    ['none', 'irs', 'irs+contested', 'gossip(diameter)']
    """
    texts = list(_PROTOCOLS)
    if problem.faults is not None and problem.faults.loses:
        texts += _ECHOING
    if problem.memory:
        texts += [f"{text}, {problem.memory}" for text in texts]
    there = {notation.parse(with_numbers(text, problem))["protocol"]["name"] for text in _PROTOCOLS} | set(SAME)
    there |= set() if problem.memory else set(_FOR_CHANGE)
    return texts + [_plain_row(kind) for name, kind in registry.by_name(AnyProtocol).items() if name not in there]


def _plain_row(kind: Any) -> str:
    if kind.name in _OTHERWISE:
        return _OTHERWISE[kind.name]
    words = [f"{one.name}={_GIVEN[one.name]}" for one in fields(kind) if one.init and one.name in _GIVEN]
    return f"{kind.name}({', '.join(words)})" if words else str(kind.name)


def read_row(text: str, problem: SuiteProblem) -> Row:
    """The row that a text describes on a problem; a protocol that needs a ttl and has none gets the diameter.

    Examples
    --------
    >>> from banditmesh.suite import PROBLEMS
    >>> read_row("flooding(diameter)+growth(1)", PROBLEMS["equal-ring"]).protocol
    Flooding(ttl=18, emission=Growth(factor=1.0, echoes=0))
    """
    protocol, *policy = notation.split(with_numbers(text, problem))
    if len(policy) > 1:
        raise InputError(f"a row must be written like fwa(4) or 'fwa(4), ucb(0.5)', got {checks.shown(text)}")
    built = notation.read(protocol, ttl=max(1, problem.diameter))
    built.check_delivery()
    chosen = as_policy(policy[0]) if policy else None
    check_takes_policy(built, chosen)
    return Row(own.plain(text), built, chosen, own.source_of(built, built.emission, chosen))


def read_entries(given: Entry | Iterable[Entry] | Mapping[str, Entry]) -> dict[str, Entry]:
    """What is entered beside the rows, by name.

    Examples
    --------
    >>> import banditmesh as bm
    >>> list(read_entries(["fwa(diameter)", bm.FwA(2), ("irs", "klucb")]))
    ['fwa(diameter)', 'fwa(2)', 'irs, klucb']
    """
    if isinstance(given, Mapping):
        named = dict(given)
    else:
        several = [given] if isinstance(given, str | AnyProtocol) else list(given)
        named = {_written(one): one for one in several}
        if len(named) < len(several):
            raise InputError("entries must differ from each other, got the same one twice; name them in a mapping")
    for name, entry in named.items():
        parts = entry if isinstance(entry, tuple) and len(entry) == 2 else (entry,)
        if not isinstance(name, str) or not isinstance(parts[0], str | AnyProtocol):
            raise InputError(
                'entries must be such as "my_module:Mine(4)", FwA(4), ("fwa(4)", "klucb") or {"mine": FwA(4)}; '
                f"got {checks.shown(entry)}"
            )
    return named


def make_row(name: str, entry: Entry, problem: SuiteProblem) -> Row:
    """The row of an entry on a problem."""
    protocol, policy = entry if isinstance(entry, tuple) else (entry, None)
    row = read_row(protocol, problem) if isinstance(protocol, str) else Row(name, protocol)
    policy = row.policy if policy is None else as_policy(policy)
    check_takes_policy(row.protocol, policy)
    return Row(name, row.protocol, policy, own.source_of(row.protocol, row.protocol.emission, policy))


def _written(entry: object) -> str:
    if isinstance(entry, tuple):
        return ", ".join(map(_written, entry))
    return notation.write(entry) if isinstance(entry, AnyProtocol) else own.plain(str(entry))


def with_numbers(text: str, problem: SuiteProblem) -> str:
    """A row's text with the numbers of a problem instead of the words.

    Examples
    --------
    >>> from banditmesh.suite import PROBLEMS
    >>> with_numbers("coop-se(ttl=diameter, alpha=width)", PROBLEMS["equal-ring"])
    'coop-se(ttl=18, alpha=0.5)'
    """
    hops = max(1, problem.diameter)
    numbers = {
        "diameter": hops,
        "near": hops if problem.problem.n_agents <= FEW else min(hops, NEAR),
        "width": problem.width,
    }
    return _WORDS.sub(lambda found: str(numbers[found[0]]), text)
