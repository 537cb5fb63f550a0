"""The live mesh: the same agents as in the simulator, as real processes on real links.

    names, limits          what names may be, and how much a node keeps
    records, memory        what is stored, and how much memory it takes
    table, tickets, member a node without its links, disk and clock: events in, effects out
    codec, notices, keys   frames, what the authority signs, certificates
    transport              streams of bytes with an authenticated other end
    state, config          the state on disk, and the file that describes a node
    conversation, links    one connection, and all neighbours
    committing, board      one transaction at a time, and the authority's notices
    node                   all of it together: what an application embeds
    sidecar, client        the same over HTTP

What travels is never an event but a statistic: an origin's own count and sum of one arm since its life began, of which
the larger count wins. So messages may be lost, repeated, reordered or replayed, and nothing is ever counted twice.

Every public name is imported when it is first used; what needs an extra says so then.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .config import NeighbourConfig, NodeConfig
    from .http.client import Client
    from .member import Answer, Observation, Ticket
    from .member.arms import ArmSpec
    from .node import Choice, Node

_HOMES = {
    "Answer": "member",
    "ArmSpec": "member.arms",
    "Choice": "node",
    "Client": "http.client",
    "NeighbourConfig": "config",
    "Node": "node",
    "NodeConfig": "config",
    "Observation": "member",
    "Ticket": "member",
}

__all__ = [
    "Answer",
    "ArmSpec",
    "Choice",
    "Client",
    "NeighbourConfig",
    "Node",
    "NodeConfig",
    "Observation",
    "Ticket",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f".{_HOMES[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
