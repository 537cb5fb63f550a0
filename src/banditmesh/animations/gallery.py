"""Small cases for teaching: each shows at a glance why Flooding with Absorption sends less."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from .. import arms as laws
from .. import networks
from ..problem import Problem
from .journeys import Journey, follow


@dataclass(frozen=True)
class Case:
    """A problem, one agent's message, and two protocols to send it with.

    Attributes
    ----------
    title, text : str
        What it is, and what there is to see.
    make : callable
        Makes the problem.
    origin, arm : hashable
        The origin and the arm of the message that is followed.
    protocols : tuple of str
        The protocols to compare.

    Examples
    --------
    >>> from banditmesh.animations import GALLERY
    >>> [journey.n_sent for journey in GALLERY["path"].journeys()]
    [5, 2]
    """

    title: str
    text: str
    make: Callable[[], Problem]
    origin: Hashable
    arm: Hashable
    protocols: tuple[str, str]

    @cached_property
    def problem(self) -> Problem:
        """The problem."""
        return self.make()

    def journeys(self) -> list[Journey]:
        """The message under each of the protocols."""
        return [follow(self.problem, protocol, self.origin, self.arm) for protocol in self.protocols]


def held(network: Any, holders: set[int]) -> Problem:
    """Two arms: `blue`, which all agents have, and `red`, which some have too."""
    arms: dict[Hashable, laws.Law] = {"red": laws.Bernoulli(0.7), "blue": laws.Bernoulli(0.4)}
    return Problem(network, {agent: ["red", "blue"] if agent in holders else ["blue"] for agent in network}, arms)


def _communities() -> Any:
    """Two fully linked groups of five, and one link between them."""
    network = networks.complete(5)
    network.add_edges_from((i + 5, j + 5) for i, j in list(network.edges()))
    network.add_edge(4, 5)
    return network


GALLERY: Final[dict[str, Case]] = {
    "path": Case(
        "A path",
        "The message of agent 0 goes along a path. Flooding carries it to the end; with absorption the first agent "
        "that has the arm keeps it: it learns from it, and tells others about the arm itself.",
        lambda: held(networks.path(6), {0, 2, 5}),
        0,
        "red",
        ("flooding(5)", "fwa(5)"),
    ),
    "star": Case(
        "A star",
        "Everything goes through the centre. It has the arm: with absorption it keeps the message, and seven "
        "transmissions are saved; the others hear about the arm from the centre's own messages.",
        lambda: held(networks.star(9), set(range(9))),
        1,
        "red",
        ("flooding(4)", "fwa(4)"),
    ),
    "ring": Case(
        "A ring",
        "Both directions at once. Flooding meets itself on the other side and ends in duplicates; with absorption each "
        "direction ends at the first agent that has the arm.",
        lambda: held(networks.ring(10), {0, 3, 8}),
        0,
        "red",
        ("flooding(6)", "fwa(6)"),
    ),
    "grid": Case(
        "A grid",
        "Many paths lead to the same agent, so many copies of a flood are duplicates. With absorption the agents that "
        "have the arm are a wall that the message does not pass.",
        lambda: held(networks.grid(4, 6), {8, 3, 9, 10, 15, 14, 20, 5}),
        8,
        "red",
        ("flooding(6)", "fwa(6)"),
    ),
    "communities": Case(
        "Two communities",
        "Dense within, a single link between. A flood repeats everything within each community; with absorption the "
        "message crosses the bridge and is kept by the first agents behind it that have the arm.",
        lambda: held(_communities(), {0, 2, 6, 7, 8, 9}),
        0,
        "red",
        ("flooding(4)", "fwa(4)"),
    ),
    "er": Case(
        "The paper's ER network",
        "100 agents, 20 of 50 arms each, ttl 4, as in the published experiments: two in five agents have the arm, so "
        "most paths end after a hop or two.",
        lambda: Problem.paper("er", seed=0),
        0,
        1,
        ("flooding(4)", "fwa(4)"),
    ),
}
