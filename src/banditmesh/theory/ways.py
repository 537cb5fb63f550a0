"""How often agents pull an arm before they have heard enough about it (docs/theory/independent.md).

Let an agent with gap D need `g / D^2` observations of an arm. The last agent to have them has, by then, its share kappa
of what all the agents that it hears have pulled; take those out, and repeat. The agents that came last in each step do
not hear each other. So in a connected part of the graph of hearing all agents together pull at most g times

    heaviest / kappa,  or  kappa * heaviest + (1 - kappa) * total

before they have enough, whichever is less, where `total` is the sum of `1 / D^2` over all agents and `heaviest` that of
the heaviest independent set. A cover is the special case in which agents hear only their own group.

Agents are numbered by falling gap here, so that those with at least a given gap are the lowest bits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import concentration
from .cliques import Graph, components, members, neighbour_masks
from .delivery import Shares
from .independent import IndependentSets
from .shared_covers import Group, least_shares, merged

#: Gaps below this are never distinguished: their squares are too small to divide by. Their cost is bounded otherwise.
TINY = 1e-100
#: The parts of a share that are tried if delivery is random.
_KEPT = np.linspace(0.02, 0.98, 49)
#: Solved parts of an arm's graph after which the search for independent sets is cut short: counted, not timed, so that
#: values do not depend on the machine.
_MAX_PARTS, _QUICK = 20_000, 64


@dataclass(frozen=True, eq=False)
class Way:
    """Which agents are counted as hearing each other on one arm, and what follows for their pulls.

    Attributes
    ----------
    places : int array
        Agents by falling gap, as places in the arm's `suboptimal`; those with a tiny gap are left out.
    gaps : float array
        Theirs, falling.
    graph : list of int
        Which agents hear each other, both ways.
    shares : float array
        For every agent, the least share in its component.
    delays : int array
        After how many rounds all agents that hear an agent have their share of its pulls, and 1 if no other does; for a
        group, the largest of these.
    joint : bool
        Whether components are groups, which wait for shares together; otherwise there is a wait for every origin.
    waits : float array
        For every agent, the expected number of pulls until the share of its component (or its own) has arrived.
    sets : IndependentSets
    """

    places: NDArray[np.int64]
    gaps: NDArray[np.float64]
    graph: Graph
    shares: NDArray[np.float64]
    delays: NDArray[np.int64]
    joint: bool
    waits: NDArray[np.float64]
    sets: IndependentSets = field(repr=False)

    @classmethod
    def of(
        cls,
        gaps: NDArray[np.float64],
        shares: Shares,
        joined: NDArray[np.bool_],
        *,
        joint: bool,
        deadline: float = math.inf,
        most_parts: float = math.inf,
    ) -> Way:
        """Agents with these gaps; `joined` says which of them are counted as hearing each other."""
        places = np.argsort(-gaps, kind="stable")
        places = places[gaps[places] >= TINY]
        square = np.ix_(places, places)
        joined = joined[square] & ~np.eye(len(places), dtype=np.bool_)
        graph = neighbour_masks(joined)
        least = np.where(joined, np.minimum(shares.share, shares.share.T)[square], 1.0).min(axis=1, initial=1.0)
        late = np.where(joined, shares.delay[square], 1).max(axis=1, initial=1)
        for part in components(graph, (1 << len(places)) - 1):
            inside = list(members(part))
            least[inside] = least[inside].min()
            if joint:
                late[inside] = late[inside].max()
        return cls(
            places=places,
            gaps=gaps[places],
            graph=graph,
            shares=least,
            delays=late,
            joint=joint,
            waits=np.zeros(len(places)),
            sets=IndependentSets(graph, (gaps[places] ** -2.0).tolist(), deadline, most_parts),
        )

    def needs(self, within: int) -> float:
        """The pulls of all agents of `within` together, per unit of g, before they have heard enough."""
        return sum(float(_least(*self._part(part))) for part in components(self.graph, within))

    def ladder(self, within: int = -1) -> NDArray[np.float64]:
        """`needs` of those of `within` whose gap is at least that of each agent; at ties at the last of them."""
        found = np.zeros(len(self.gaps))
        for place in np.flatnonzero(np.diff(self.gaps, append=0.0) < 0.0).tolist():
            found[place] = self.needs(within & ((2 << place) - 1))
        return found

    def cost(self, ladder: NDArray[np.float64], cap: float = 0.0) -> float:
        """The cost per unit of g: the integral of `needs` over gaps, from a cap upwards."""
        return float((np.maximum(self.gaps, cap) - np.maximum(self.smaller, cap)) @ ladder)

    @property
    def smaller(self) -> NDArray[np.float64]:
        """The next smaller gap of each, and 0 for the last."""
        return np.append(self.gaps[1:], 0.0)[: len(self.gaps)]

    def cost_below(self, caps: NDArray[np.float64], cap: float, n_steps: int) -> float:
        """The integral from 0 up to a cap, over agents whose gap is above it and whose own caps are lower.

        More agents take part at higher values, so between two of the `n_steps` values those at the upper one count.
        """
        n_above = int((self.gaps > cap).sum())
        own = caps[:n_above]
        own = own[own < cap]
        if not own.size:
            return 0.0
        steps = np.unique([0.0, *np.quantile(own, np.linspace(0.0, 1.0, n_steps), method="higher").tolist(), cap])
        total = 0.0
        for lower, upper in zip(steps[:-1].tolist(), steps[1:].tolist(), strict=True):
            within = sum(1 << int(v) for v in np.flatnonzero(caps[:n_above] < upper))
            total += (upper - lower) * self.needs(within)
        return total

    def waiting(self, scale: float) -> Way:
        """The same with random delivery, for `g = scale`: which part of the shares to wait for, and for how long.

        Components in which agents are better off on their own are split up.
        """
        shares, waits = self.shares.copy(), np.zeros(len(self.gaps))
        keep = np.ones(len(self.gaps), dtype=np.bool_)
        for part in components(self.graph, (1 << len(self.gaps)) - 1):
            inside = list(members(part))
            if shares[inside[0]] < 1.0:
                shares[inside], waits[inside] = self._best_wait(part, inside, scale)
                keep[inside] = shares[inside[0]] < 1.0
        alone = sum(1 << int(v) for v in np.flatnonzero(~keep))
        graph = [0 if alone >> v & 1 else near for v, near in enumerate(self.graph)]
        return replace(self, graph=graph, shares=shares, waits=waits, delays=np.where(keep, self.delays, 1))

    def wait_cost(self, caps: NDArray[np.float64] | float = 0.0) -> float:
        """What waiting for shares costs beyond the caps of agents.

        A group waits once at every level that is above the cap and not above the gap of some member.
        """
        caps = np.broadcast_to(caps, self.gaps.shape)
        above = self.gaps > caps
        if not self.joint or not self.waits.any():
            return float(self.waits[above] @ (self.gaps - caps)[above])
        total = 0.0
        for part in components(self.graph, sum(1 << int(v) for v in np.flatnonzero(above))):
            inside = list(members(part))
            total += float(self.waits[inside[0]]) * float(self.gaps[inside].max() - caps[inside].min())
        return total

    def _best_wait(self, part: int, inside: list[int], scale: float) -> tuple[float, NDArray[np.float64]]:
        """The share that a component waits for, and for how many pulls of each; (1, 0) if they are better off alone."""
        gaps, share = self.gaps[inside], float(self.shares[inside[0]])
        steps = [
            (width, *self._part(piece))
            for v, width in zip(inside, (-np.diff(gaps, append=0.0)).tolist(), strict=True)
            if width > 0.0
            for piece in components(self.graph, part & ((2 << v) - 1))
        ]
        widths, heaviest, alone = np.array(steps)[:, :3].T
        receivers = [len(inside) if self.joint else self.graph[v].bit_count() for v in inside]
        counts, where = np.unique(receivers, return_inverse=True)
        late = float(gaps @ (self.delays[inside] - 1))
        best = (scale * float(widths @ alone), 1.0, np.zeros(len(inside)))
        for kept in (share * _KEPT).tolist():
            waits = np.array([concentration.shortfall(share, kept, n) for n in counts.tolist()])[where]
            paid = float((waits * gaps).max() if self.joint else waits @ gaps)
            cost = scale * float(widths @ _least(heaviest, alone, kept)) + paid + late
            best = min(best, (cost, kept, waits), key=lambda one: one[0])
        return best[1:]

    def _part(self, part: int) -> tuple[float, float, float]:
        """For a connected part: its heaviest independent set, the sum over all agents, and the share."""
        inside = list(members(part))
        share = float(self.shares[inside[0]])
        alone = 0.0 if share == 1.0 else float((self.gaps[inside] ** -2.0).sum())
        return self.sets.heaviest(part), alone, share


def _least(heaviest: Any, alone: Any, share: float) -> Any:
    with np.errstate(over="ignore"):  # of shares that are next to nothing
        return np.minimum(heaviest / share, share * heaviest + (1.0 - share) * alone)


def ways_of(
    gaps: NDArray[np.float64],
    shares: Shares,
    groups: Sequence[Group],
    deadline: float,
    *,
    quick: bool,
) -> dict[str, list[Way]]:
    """All ways that are tried for agents with these gaps, by name; `groups` are a cover of them."""
    both = np.minimum(shares.share, shares.share.T)
    levels = least_shares(both)
    if not len(levels):
        return {"agents alone": [Way.of(gaps, shares, both > 2.0, joint=True)]}
    covered = np.zeros_like(both, dtype=np.bool_)
    for group in merged(groups, gaps, shares):
        covered[np.ix_(group.places, group.places)] = True
    most = _QUICK if quick else _MAX_PARTS
    return {
        "independent sets": [
            Way.of(gaps, shares, both >= level, joint=False, deadline=deadline, most_parts=most) for level in levels
        ],
        "clique covers": [Way.of(gaps, shares, covered, joint=True)],
    }
