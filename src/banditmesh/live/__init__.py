"""The live mesh: the same agents as in the simulator, as real processes on real links.

    bandits, forgetting  a bandit, as a configuration describes it, and what it forgets
    statistics, names    what travels, and what names, counts and rewards may be
    certificates, signing   who signed what travels; what a node signs and checks while it runs
    member/              a node without its links, disk and clock: events in, effects out
    links/               neighbours, what they say to each other, and the authority's notices
    transport/           streams of bytes with an authenticated other end; certificates and keys
    disk/                what is stored, and one transaction at a time
    http/                the same over HTTP: sidecar, client, metrics
    config, fields, template   the file that describes a node, how its tables are read, and one to begin with
    node                 what an application embeds
    parts, changes, views   all of it together, changes of its configuration, and what it shows
    decided, logs, tasks    the log of decisions; the log of events; tasks that have an owner

What travels is never an event but a statistic: an origin's own count and sum of one arm since its life began, of which
the larger count wins. So messages may be lost, repeated, reordered or replayed, and nothing is ever counted twice.

Every public name is imported when it is first used; what needs an extra says so then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy import importer

if TYPE_CHECKING:
    from .bandits import BanditSpec
    from .config import NeighbourConfig, NodeConfig
    from .http.async_client import AsyncClient
    from .http.client import Client
    from .member import Answer, Observation, Ticket
    from .node import Choice, Node
    from .statistics import ArmSpec

_HOMES = {
    "Answer": "member",
    "ArmSpec": "statistics",
    "AsyncClient": "http.async_client",
    "BanditSpec": "bandits",
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
    "AsyncClient",
    "BanditSpec",
    "Choice",
    "Client",
    "NeighbourConfig",
    "Node",
    "NodeConfig",
    "Observation",
    "Ticket",
]

__getattr__ = importer(__name__, _HOMES)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
