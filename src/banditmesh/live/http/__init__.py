"""The HTTP API of a node: who may ask, what is asked and answered, and a client of it.

    guard      who may ask, and where the API listens
    openapi    what is taken and given; `sidecar` does it, and `metrics` is what Prometheus reads
    serving    a node with its API as a process
    client     the other end

Here is what a node shows of itself: frozen snapshots for `/v1/state`, `/v1/peers`, `/metrics` and applications that
embed a node.
"""

from __future__ import annotations

from itertools import islice
from typing import Final, Literal

from msgspec import Struct

from ..names import WARN_FROM

#: How many names or arms are named in warnings.
MAX_NAMED: Final = 10


class ArmView(Struct, frozen=True):
    """What a node knows of one of its arms.

    `own_count` counts its own observations in this life, `heard_count` those of others and of its own earlier lives.
    `mean` is None while nothing is known, `index` where the policy has none now; `n_origins` counts the other nodes
    that it has heard of the arm from.
    """

    name: str
    own_count: int
    heard_count: int
    mean: float | None
    index: float | None
    n_origins: int


class CapView(Struct, frozen=True):
    """How much of a cap is in use; a node warns from 75 per cent on."""

    used: int
    most: int


class StateView(Struct, frozen=True):
    """What a node knows, and what it counted since it started, by name.

    `certificate_ends` is when its certificate does, in seconds since 1970; None where links are plain.
    `many_lives` has the members of which it knows nearly as many lives as `caps.epochs` allows, and how many.
    """

    mesh: str
    node: str
    epoch: str
    start: int
    protocol: str
    policy: str
    n_choices: int
    arms: list[ArmView]
    counters: dict[str, int]
    caps: dict[str, CapView]
    certificate_ends: float | None = None
    many_lives: dict[str, int] = {}
    warnings: list[str] = []


class PeerView(Struct, frozen=True):
    """How the link with a neighbour is.

    `since` is when it came up or went down, in seconds since 1970. `sent` and `received` count the statistics that
    went to it and came from it since this node started (with one that is not configured, since their last link
    began). `waiting` counts what waits to be sent to it, and `behind` says how many seconds ago nothing was waiting,
    0 if nothing is. The last refusal, with its reason, and when it was; protocol and software as the neighbour's last
    hello said.
    """

    name: str
    address: str | None
    state: Literal["up", "down"]
    since: float
    sent: int
    received: int
    waiting: int
    behind: float
    last_refusal: str | None
    refused_at: float | None
    protocol: str | None
    software: str | None


def warnings_of(caps: dict[str, CapView], many_lives: dict[str, int], outside: dict[str, int]) -> list[str]:
    """One line for each cap that is nearly reached, each name with many lives, and each arm with unused entries."""
    lines = [
        f"{cap.used} of {cap.most} {name} are in use (caps.{name})"
        for name, cap in caps.items()
        if cap.used >= WARN_FROM * cap.most and name != "epochs"
    ]
    lines += [
        f"{name!r} has {n} lives, and after {caps['epochs'].most} (caps.epochs) a new one is not heard: retire "
        f"those that are over with `banditmesh keys retire`, and give the node a disk that stays"
        for name, n in islice(many_lives.items(), MAX_NAMED)
    ]
    if len(many_lives) > MAX_NAMED:
        lines.append(f"{len(many_lives) - MAX_NAMED} more names have nearly as many lives as caps.epochs allows")
    lines += [
        f"of arm {arm!r}, statistics of others are outside of its reward_range: {n}, unused until it allows them"
        for arm, n in islice(outside.items(), MAX_NAMED)
    ]
    return lines
