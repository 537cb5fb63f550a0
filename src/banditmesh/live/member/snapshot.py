"""What a member shows of itself at a moment."""

from __future__ import annotations

from ...protocols import notation
from ..disk import Life
from ..http.openapi import MAX_ORIGINS, CapView, OriginView, StateView, TrustView, warnings_of
from ..names import epoch_text
from .parts import MemberParts


def snapshot(mesh: str, parts: MemberParts, life: Life, uptime: float) -> StateView:
    """A member of this mesh as it is now, in this life."""
    table = parts.table
    [first, *others] = parts.bandits.views(parts.n_choices, uptime)
    many_lives, shares = table.roster.many_lives(), caps_of(parts)
    return StateView(
        mesh=mesh,
        node=parts.node,
        epoch=epoch_text(life.epoch),
        start=life.start,
        protocol=notation.write(parts.protocol),
        policy=first.policy,
        n_choices=parts.n_choices,
        arms=first.arms,
        agents=others,
        counters=dict(parts.counters),
        caps=shares,
        many_lives=many_lives,
        warnings=warnings_of(shares, many_lives, table.outside_by_arm()),
        trust=_trust(parts),
    )


def caps_of(parts: MemberParts) -> dict[str, CapView]:
    """How much of each cap a member uses."""
    usage = {
        **parts.table.roster.usage(len(parts.table.told)),
        "segments": (parts.bandits.n_segments(), parts.caps.segments),
        "links": (len(parts.outboxes.links), parts.caps.links),
    }
    return {name: CapView(used, most) for name, (used, most) in usage.items()}


def _trust(parts: MemberParts) -> TrustView:
    """How far the member trusts others; what it believes of arms must have been worked out."""
    left_out = parts.bandits.left_out()
    origins = [
        OriginView(name, signed, unsigned, expired, left_out[name])
        for name, (signed, unsigned, expired) in parts.table.signed_by_origin().items()
    ]
    origins.sort(key=lambda one: (-one.left_out, -one.unsigned, -one.expired, one.name))
    return TrustView(
        signatures=parts.table.signatures,
        trim=parts.bandits.trim,
        n_origins=len(origins),
        signed=sum(one.signed for one in origins),
        unsigned=sum(one.unsigned for one in origins),
        expired=sum(one.expired for one in origins),
        left_out=sum(one.left_out for one in origins),
        origins=origins[:MAX_ORIGINS],
    )
