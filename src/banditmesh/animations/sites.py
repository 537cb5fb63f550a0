"""The nodes drawn for a network: its agents one by one, or, if there are too many of them, its communities."""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final
from weakref import WeakKeyDictionary

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from ..networks.communities import communities
from ..networks.usual import usual_links
from ..plots.places import fitted, places
from ..problem import Problem

#: The most agents and links that are drawn one by one.
MAX_AGENTS: Final = 2_000
MAX_LINKS: Final = 20_000
#: The most groups there are then; communities of less than this share of the agents are drawn together.
MAX_GROUPS: Final = 128
SMALL_SHARE: Final = 0.002
#: The most letters of a name that are shown: names may be arbitrarily long, and files may not.
MAX_LETTERS: Final = 40


@dataclass(frozen=True, eq=False)
class Sites:
    """The nodes of a drawing.

    Attributes
    ----------
    names : list of str
        What each node is called.
    places : float array (nodes, 2)
        Where it is drawn, in the unit square.
    sizes : list of int or None
        How many agents each node represents; None if one each.
    node_of : dict
        The node of each agent, by the agent's name.
    """

    names: list[str]
    places: NDArray[np.float64]
    sizes: list[int] | None
    node_of: dict[Hashable, int]

    @classmethod
    def of_problem(cls, problem: Problem) -> Sites:
        """The nodes of a problem's network; found once for all runs on it."""
        if problem not in _known:
            _known[problem] = cls.of_agents(problem.agents, usual_links(problem.network), problem.places)
        return _known[problem]

    @classmethod
    def of_agents(
        cls, agents: Sequence[Hashable], pairs: NDArray[np.integer[Any]], found: NDArray[np.float64] | None = None
    ) -> Sites:
        """The nodes for some agents, with these links and, if they are known, places."""
        found = places(len(agents), pairs) if found is None else found
        if len(agents) <= MAX_AGENTS and len(pairs) <= MAX_LINKS:
            return cls(
                [short(name) for name in agents], found, None, {name: number for number, name in enumerate(agents)}
            )
        groups, centres = _grouped(found, pairs)
        sizes = np.bincount(groups)
        return cls(
            [f"group {number + 1}" for number in range(len(sizes))],
            fitted(centres),
            sizes.tolist(),
            dict(zip(agents, groups.tolist(), strict=True)),
        )

    @property
    def notes(self) -> list[str]:
        """Notes for readers of the drawing."""
        if self.sizes is None:
            return []
        return [
            f"{len(self.node_of):,} agents are drawn as {len(self.names)} groups with many links among themselves; a "
            "group's colour is the mean of its agents, its size their number, and links within a group are not drawn"
        ]

    def links(self, pairs: Iterable[tuple[Hashable, Hashable]]) -> set[tuple[int, int]]:
        """Which nodes are linked if these agents are, the lower one first."""
        node_of = self.node_of
        ends = ((node_of[one], node_of[other]) for one, other in pairs)
        return {(i, j) if i < j else (j, i) for i, j in ends if i != j}

    def as_json(self, links: Iterable[tuple[int, int]]) -> dict[str, Any]:
        """The network as documents have it."""
        return {
            "names": self.names,
            "x": [round(float(x), 4) for x in self.places[:, 0]],
            # Places have y upwards, screens downwards.
            "y": [round(1.0 - float(y), 4) for y in self.places[:, 1]],
            "sizes": self.sizes,
            "links": list(itertools.chain(*sorted(links))),
        }


_known: WeakKeyDictionary[Problem, Sites] = WeakKeyDictionary()


def named_links(problem: Problem) -> list[tuple[Hashable, Hashable]]:
    """The links of a problem's network, by the names of agents."""
    agents = problem.agents
    return [(agents[i], agents[j]) for i, j in usual_links(problem.network).tolist()]


def short(name: Hashable) -> str:
    """A name as drawings show it."""
    text = str(name)
    return text if len(text) <= MAX_LETTERS else f"{text[: MAX_LETTERS - 1]}…"


def _grouped(
    found: NDArray[np.float64], pairs: NDArray[np.integer[Any]]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The group of each agent, and where groups are drawn: near those that they have many links to."""
    groups = communities(len(found), pairs)
    sizes = np.bincount(groups)
    large = np.flatnonzero(sizes >= max(2.0, SMALL_SHARE * len(found)))
    if not 1 < len(large) < MAX_GROUPS:
        # Of very many, or of one alone, nothing could be seen: then those are together that lie together.
        groups = _groups(found, MAX_GROUPS)
        sizes = np.bincount(groups)
        return groups, np.stack([np.bincount(groups, found[:, axis]) / sizes for axis in (0, 1)], axis=1)
    numbers = np.full(len(sizes), len(large))
    numbers[large] = np.arange(len(large))
    groups = numbers[groups]
    linked, n_links = np.unique(np.sort(groups[pairs], axis=1), axis=0, return_counts=True)
    sizes = np.bincount(groups)
    graph = nx.empty_graph(len(sizes))
    for (i, j), n in zip(linked.tolist(), n_links.tolist(), strict=True):
        if i != j:
            # Relative to their sizes, so that large groups do not all meet in the middle.
            graph.add_edge(i, j, weight=n / math.sqrt(sizes[i] * sizes[j]))
    drawn = nx.spring_layout(graph, weight="weight", seed=0, iterations=200)
    return groups, np.array([drawn[node] for node in graph])


def _groups(found: NDArray[np.float64], most: int) -> NDArray[np.int64]:
    """Nearby agents in groups of about the same size: halved across the longer side, again and again."""
    groups = np.zeros(len(found), dtype=np.int64)
    for _ in range(most.bit_length() - 1):
        halves = np.zeros(len(found), dtype=np.int64)
        for members in np.split(np.argsort(groups, kind="stable"), np.cumsum(np.bincount(groups))[:-1]):
            axis = int(np.argmax(np.ptp(found[members], axis=0)))
            order = members[np.argsort(found[members, axis], kind="stable")]
            halves[order[len(order) // 2 :]] = 1
        groups = 2 * groups + halves
    return np.unique(groups, return_inverse=True)[1]
