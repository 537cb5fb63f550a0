"""What a node shows of itself: frozen snapshots for `/v1/state`, `/v1/peers`, `/metrics` and whoever embeds a node."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct


class ArmView(Struct, frozen=True):
    """What a node knows of one of its arms.

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
    began); `waiting` counts what waits to be sent to it, and `behind` says how many seconds ago nothing waited the
    last time, 0 if nothing does. The last refusal, with its
    reason, and when it was; protocol and software as the neighbour's last hello said.
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
