"""What runs on real links, and what does not.

A live node sends an origin's own count and sum, of which the larger count wins, and keeps nothing but counts and sums.
So what needs more than that, or a network that stands still, is refused; each refusal says what to take instead.
"""

from __future__ import annotations

from .. import checks
from ..errors import InputError
from ..policies import Policy
from ..protocols import AnyProtocol, EveryPull

_INSTEAD = "fwa(4) or flooding(4), with growth(0.25) for fewer messages"


def refuse_live(protocol: AnyProtocol, policy: Policy | None = None) -> None:
    """Refuse a protocol or policy that cannot run live.

    Raises
    ------
    InputError
        What it needs, and what to take instead.

    Examples
    --------
    >>> import banditmesh as bm
    >>> refuse_live(bm.FwA(4, emission=bm.Growth(0.25)), bm.UCB())
    >>> refuse_live(bm.Centralised())
    Traceback (most recent call last):
        ...
    banditmesh.errors.InputError: protocol 'centralised' cannot run live: no network delivers to everybody at once; take
    fwa(4) or flooding(4), with growth(0.25) for fewer messages
    """
    if isinstance(protocol, AnyProtocol):
        protocol.check_delivery()
    reason = _against_protocol(protocol) or (None if policy is None else _against_policy(policy))
    if reason is not None:
        raise InputError(reason)


def runs_live(protocol: AnyProtocol, policy: Policy | None = None) -> bool:
    """Whether a protocol, and a policy if one is given, can run live.

    Examples
    --------
    >>> import banditmesh as bm
    >>> runs_live(bm.FwA(4)), runs_live(bm.TreeAggregation()), runs_live(bm.IRS(), bm.UCBV())
    (True, False, False)
    """
    return _against_protocol(protocol) is None and (policy is None or _against_policy(policy) is None)


def _against_protocol(protocol: object) -> str | None:
    if not isinstance(protocol, AnyProtocol):
        return f"protocol must be a protocol such as FwA(4), got {checks.shown(protocol)}"
    what = f"protocol {protocol.name!r} cannot run live"
    facts = protocol.facts
    if facts is not None and facts.merges:
        return f"{what}: its tree needs a network that never changes; take {_INSTEAD}"
    if protocol.is_central:
        return f"{what}: no network delivers to everybody at once; take {_INSTEAD}"
    if protocol.sends_messages and not protocol.relays_by_rule:
        return f"{what}: it brings its own courier or agent, and a node relays by relay() alone; take {_INSTEAD}"
    emission = protocol.emission
    what = f"emission {emission.name!r} cannot run live"
    if emission.n_echoes:
        return f"{what} with echoes: links lose nothing that a reconnection does not bring back; set echoes to 0"
    if emission.asks_best or not (emission.cumulative or isinstance(emission, EveryPull)):
        return f"{what}: it leaves out rewards, and a node sends counts and sums; take growth(0.25) or every-pull"
    return None


def _against_policy(policy: object) -> str | None:
    if not isinstance(policy, Policy):
        return f"policy must be a policy such as UCB(), got {checks.shown(policy)}"
    what = f"policy {policy.name!r} cannot run live"
    if not policy.counts_and_sums:
        return f"{what}: it needs the variance of rewards, and a node knows counts and sums; take ucb or klucb"
    if type(policy).chooser is not Policy.chooser:
        return f"{what}: it keeps a state of its own, which no node stores; take ucb, klucb or thompson"
    if policy.memory.forgets:
        return f"memory {policy.memory.name!r} cannot run live: a node has no rounds to forget by; take Everything()"
    return None
