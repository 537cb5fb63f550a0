"""What a node shows of itself: frozen values, taken at one moment."""

from __future__ import annotations

from itertools import islice
from typing import Final

from msgspec import Struct

#: How many names or arms have a warning of their own.
MOST_NAMED: Final = 10


class ArmSnapshot(Struct, frozen=True):
    """What a node knows of one of its arms.

    Attributes
    ----------
    name : str
    own_count, own_mean : int, float or None
        Its own committed observations in this life; no mean if there is none.
    told_count : int
        How many of these it has told.
    heard_count : int
        Observations of others, and of its own earlier lives.
    mean : float or None
        Of all of them.
    index : float or None
        What its policy would compare now; None if it draws, compares something else, or nothing is known.
    n_origins : int
        From how many other nodes it has heard of the arm.
    n_chosen : int
        How often it chose the arm.
    """

    name: str
    own_count: int
    own_mean: float | None
    told_count: int
    heard_count: int
    mean: float | None
    index: float | None
    n_origins: int
    n_chosen: int


class Usage(Struct, frozen=True):
    """How much there is of something that has a cap, and whether it is time to warn."""

    name: str
    used: int
    cap: int
    warns: bool


class Snapshot(Struct, frozen=True):
    """A node at one moment.

    Attributes
    ----------
    mesh, node : str
    epoch, start, n_choices : int
        The present life, how often it was started, and how many choices it has made.
    arms : tuple of ArmSnapshot
        In the order of the arm set.
    waiting : dict
        By linked neighbour: how many statistics wait for it.
    usage : tuple of Usage
    counters : dict
        How often what happened; everything that begins with `refused_` was refused for that reason.
    many_lives : dict
        By name, the most first: how many lives, where they come near the cap.
    outside : dict
        By arm: how many entries are outside of its `reward_range`, and unused.
    """

    mesh: str
    node: str
    epoch: int
    start: int
    n_choices: int
    arms: tuple[ArmSnapshot, ...]
    waiting: dict[str, int]
    usage: tuple[Usage, ...]
    counters: dict[str, int]
    many_lives: dict[str, int] = {}
    outside: dict[str, int] = {}

    @property
    def warnings(self) -> list[str]:
        """One line for each cap that is nearly reached, each name with many lives, and each arm with unused entries."""
        caps = {one.name: one for one in self.usage}
        lines = [
            f"{one.used} of {one.cap} {one.name} are in use (caps.{one.name})"
            for one in self.usage
            if one.warns and one.name != "epochs"
        ]
        lines += [
            f"{name!r} has {n} lives, and after {caps['epochs'].cap} (caps.epochs) a new one is not heard: retire "
            f"those that are over with `banditmesh keys retire`, and give the node a disk that stays"
            for name, n in islice(self.many_lives.items(), MOST_NAMED)
        ]
        if len(self.many_lives) > MOST_NAMED:
            n_more = len(self.many_lives) - MOST_NAMED
            lines.append(f"{n_more} more names have nearly as many lives as caps.epochs allows")
        lines += [
            f"of arm {arm!r}, statistics of others are outside of its reward_range: {n}, unused until it allows them"
            for arm, n in islice(self.outside.items(), MOST_NAMED)
        ]
        return lines
