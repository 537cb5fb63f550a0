"""Agents and arms of users' data, matched by name with a network and with laws.

A name matches one that is equal or, failing that, the only one that is written the same, so that 7 of one file is "7"
of another. What does not match is never lost: it is refused or, if the caller says so, left out and reported.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Final

from .. import checks
from ..errors import ArmError
from ..networks.readers.names import as_number
from .base import Law

_SHOWN: Final = 3


@dataclass(frozen=True)
class Unmatched:
    """What of a network and of data did not match, and was left out.

    Attributes
    ----------
    agents_not_in_network : tuple
        Agents of the data that are no nodes of the network.
    agents_without_arms : tuple
        Nodes of the network that have no arms in the data.
    arms_without_law : tuple
        Arms that agents have and of which nothing is known.
    arms_without_agent : tuple
        Arms with a law that no agent has.

    Examples
    --------
    >>> print(Unmatched(agents_without_arms=("ann", "bob")))
    agents of the network without arms: 2 ('ann', 'bob')
    """

    agents_not_in_network: tuple[Hashable, ...] = ()
    agents_without_arms: tuple[Hashable, ...] = ()
    arms_without_law: tuple[Hashable, ...] = ()
    arms_without_agent: tuple[Hashable, ...] = ()

    def __bool__(self) -> bool:
        return any(getattr(self, one.name) for one in fields(self))

    def __str__(self) -> str:
        words = {
            "agents_not_in_network": "agents not in the network",
            "agents_without_arms": "agents of the network without arms",
            "arms_without_law": "arms without a law",
            "arms_without_agent": "arms that no agent has",
        }
        parts = [f"{text}: {_some(getattr(self, name))}" for name, text in words.items() if getattr(self, name)]
        return "; ".join(parts) or "everything matched"


def match(
    nodes: Sequence[Hashable],
    arm_sets: Mapping[Hashable, Sequence[Hashable]],
    laws: Mapping[Hashable, Law],
    unmatched: str = "refuse",
) -> tuple[list[int], list[list[Hashable]], dict[Hashable, Law], Unmatched]:
    """Match data with the nodes of a network.

    Returns
    -------
    kept : list of int
        The nodes that are kept, by number.
    arm_sets : list of list
        Their arms, as `laws` names them.
    laws : dict
        The laws that are kept.
    left_out : Unmatched

    Examples
    --------
    >>> import banditmesh as bm
    >>> law = bm.arms.Bernoulli(0.5)
    >>> match(["7", "8"], {7: ["red"]}, {"red": law}, unmatched="drop")[3]
    Unmatched(agents_not_in_network=(), agents_without_arms=('8',), arms_without_law=(), arms_without_agent=())
    """
    checks.choice("unmatched", unmatched, ("refuse", "drop"))
    node_of, arm_of = _finder(nodes), _finder(laws)
    sets: dict[Hashable, list[Hashable]] = {}
    strangers: list[Hashable] = []
    lawless: dict[Hashable, None] = {}
    for agent, arms in arm_sets.items():
        node = node_of(agent)
        if node is None:
            strangers.append(agent)
            continue
        if node[0] in sets:
            raise ArmError(f"agents of the data must differ as they are written, got {agent!r} twice; rename one")
        found = [(arm, arm_of(arm)) for arm in arms]
        lawless.update((arm, None) for arm, one in found if one is None)
        sets[node[0]] = [one[0] for _, one in found if one is not None]
    kept = [number for number, node in enumerate(nodes) if sets.get(node)]
    used = {arm for number in kept for arm in sets[nodes[number]]}
    left_out = Unmatched(
        agents_not_in_network=tuple(strangers),
        agents_without_arms=tuple(node for node in nodes if not sets.get(node)),
        arms_without_law=tuple(lawless),
        arms_without_agent=tuple(arm for arm in laws if arm not in used),
    )
    if left_out and (unmatched == "refuse" or not kept):
        remedy = "leave out what does not with unmatched='drop' (--unmatched drop on the command line)"
        raise ArmError(
            f"agents and arms must match by name, got {left_out}{_alike(left_out)}; "
            + (f"correct the names, or {remedy}" if kept else "correct the names")
        )
    return kept, [sets[nodes[number]] for number in kept], {arm: laws[arm] for arm in laws if arm in used}, left_out


def _alike(left_out: Unmatched) -> str:
    """A pair of names that did not match and seem to be one number, written in two ways; often it explains all."""
    for one_side, other_side in (
        (left_out.agents_not_in_network, left_out.agents_without_arms),
        (left_out.arms_without_law, left_out.arms_without_agent),
    ):
        written = {number: name for name in other_side if (number := as_number(name)) is not None}
        for name in one_side:
            if (number := as_number(name)) in written:
                return f"; {checks.shown(name)} and {checks.shown(written[number])} may be one, written in two ways"
    return ""


def _finder(names: Iterable[Hashable]) -> Callable[[Hashable], tuple[Hashable] | None]:
    """What finds the name that another one matches, alone in a tuple, since None may be a name."""
    exact = dict.fromkeys(names)
    written: dict[str, list[Hashable]] = {}
    for name in exact:
        written.setdefault(str(name), []).append(name)

    def find(name: Hashable) -> tuple[Hashable] | None:
        if name in exact:
            return (name,)
        alike = written.get(str(name), [])
        return (alike[0],) if len(alike) == 1 else None

    return find


def _some(names: Sequence[Hashable]) -> str:
    """How many names, and the first of them."""
    first = ", ".join(map(checks.shown, names[:_SHOWN]))
    return f"{len(names):,} ({first}{', ...' if len(names) > _SHOWN else ''})"
