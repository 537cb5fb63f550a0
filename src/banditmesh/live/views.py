"""What a node shows of itself: the words of `/v1/state` and `/v1/peers`."""

from __future__ import annotations

import asyncio
from collections import Counter

from msgspec.structs import replace

from .http.openapi import CapView, PeerView, StateView
from .links import Neighbour
from .parts import NodeParts


def state_of(parts: NodeParts) -> StateView:
    """What a node knows of each arm, and what it counted since it started."""
    seen = parts.member.snapshot(parts.committer.uptime())
    counters = Counter(seen.counters) + parts.exchange.counts + parts.links.counts
    counters["failed_writes"] = parts.committer.n_failures
    counters["failed_tasks"] = len(parts.tasks.failures)
    warnings = [*seen.warnings, *parts.expiry()]
    if parts.renewal is not None:
        counters.update(parts.renewal.counters)
        warnings += [f"the certificate is not renewed: {parts.renewal.trouble}"] if parts.renewal.trouble else []
    if parts.decided is not None:
        counters.update(parts.decided.log.counters)
        warnings += parts.decided.warning()
    return replace(
        seen,
        counters=dict(counters),
        caps={**seen.caps, "notices": CapView(len(parts.board), parts.config.caps.notices)},
        warnings=warnings,
        certificate_ends=None if parts.certificates is None else parts.certificates.own.not_after,
    )


def peers_of(parts: NodeParts) -> list[PeerView]:
    """How each link of a node is."""
    return [_peer(parts, neighbour) for _, neighbour in sorted(parts.links.neighbours.items())]


def _peer(parts: NodeParts, neighbour: Neighbour) -> PeerView:
    hello, refusal = neighbour.hello, neighbour.refusal
    waiting = parts.exchange.waiting(neighbour.name)
    behind = 0.0
    if neighbour.conversation is not None and waiting:
        behind = asyncio.get_running_loop().time() - neighbour.conversation.empty_at
    return PeerView(
        name=neighbour.name,
        address=neighbour.address,
        state="down" if neighbour.conversation is None else "up",
        since=neighbour.since,
        sent=neighbour.n_sent,
        received=neighbour.n_received,
        waiting=waiting,
        behind=behind,
        last_refusal=None if refusal is None else f"{refusal.reason}: {refusal}",
        refused_at=None if refusal is None else neighbour.refused_at,
        protocol=None if hello is None else hello.protocol,
        software=None if hello is None else hello.software,
    )


def carried_by(parts: NodeParts) -> dict[str, tuple[int, int]]:
    """By linked neighbour: how many statistics were sent and heard on the present connection."""
    talks = {name: neighbour.conversation for name, neighbour in parts.links.neighbours.items()}
    return {name: (talk.n_sent, talk.n_received) for name, talk in talks.items() if talk is not None}
