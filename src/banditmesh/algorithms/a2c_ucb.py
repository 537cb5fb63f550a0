"""After A2C-UCB: sums and counts that are split among neighbours, so that nothing is lost or counted twice."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .. import checks
from ..core import Note, Parcel, Place
from .base import FORGETFUL, NOTES_ARE_EXACT, Actor, Algorithm
from .dducb import TABLE, check_table

if TYPE_CHECKING:
    from ..problem import Problem


@dataclass(frozen=True)
class A2CUCB(Algorithm):
    """After A2C-UCB: mass-preserving consensus of sums and counts, for agents that have access to different arms.

    Each agent holds a table of a sum and a count for every arm, and a mass that begins as 1. It adds its own pulls. At
    the end of a round it splits all of that into equal shares, one for itself and one for each neighbour: the weights
    of what an agent gives add up to 1 (columns of the mixing matrix do, whatever its rows), so sums, counts and masses
    of all agents add up to what was pulled. The ratio of sum and count estimates an arm's mean; that of count and mass,
    m, estimates how often the average agent has pulled it. Among its own arms an agent pulls that with the highest

        sum / count + sqrt(alpha (m + f) log(t) / (N m^2)),   f = sqrt(log(t)),

    after one pull of each.

    Parameters
    ----------
    alpha : float
        The width of the confidence bound, as in `UCB`.

    Notes
    -----
    After Makridis and Charalambous, "Cooperative Bandit Learning in Directed Networks with Arm-Access Constraints",
    arXiv 2603.22881, 2026. From their abstract: partial arm access, directed networks, mass-preserving mixing of
    rewards and counts by running ratio consensus, UCB on the ratio. Ours, as only the abstract was at hand: equal
    shares as weights, networks whose links go both ways, and the width of the bound, which is that of coop-UCB2
    (Landgren, Srivastava and Leonard, Automatica 2021): m + f allows for what has not yet been mixed.

    Ours too: an agent tells each neighbour the running total of its shares, and a neighbour takes what is new in it
    (Hadjicostis, Vaidya and Domínguez-García, "Robust Distributed Average Consensus via Exchange of Running Sums", IEEE
    TAC 2016). So a table that is lost, late or sent to an agent that is down is made up for by the next one.

    A table has a sum and a count for each of the problem's K arms, and a mass: 24 + 16 K bytes, over each link, both
    ways, in every round.

    Examples
    --------
    >>> import banditmesh as bm
    >>> problem = bm.Problem.paper("er", seed=0)
    >>> result = bm.simulate(problem, bm.algorithms.A2CUCB(), horizon=20, seed=0)
    >>> int(result.traffic["bytes"][0] / result.traffic["sent"][0])  # 50 arms
    824
    >>> bool(result.traffic["sent"][0] == 20 * 2 * problem.network.n_links)
    True
    """

    alpha: float = 3.0
    name: ClassVar[str] = "a2c-ucb"
    refuses: ClassVar[Mapping[str, str]] = {
        **NOTES_ARE_EXACT,
        FORGETFUL: "neighbours take what is new in a running total, which would begin again",
    }

    def __post_init__(self) -> None:
        object.__setattr__(self, "alpha", checks.positive("alpha", self.alpha))

    def plan(self, problem: Problem) -> int:
        """How many arms there are."""
        return problem.n_arms

    def seat(self, place: Place) -> Splitter:
        """The agent at a place."""
        return Splitter(self, place)


class Splitter(Actor):
    """An agent of `A2CUCB`. What it holds is one array: a sum and then a count for each arm, and the mass."""

    kinds = (TABLE,)
    kept = ("held", "given", "taken")

    def __init__(self, algorithm: A2CUCB, place: Place) -> None:
        self._algorithm = algorithm
        self._n_arms: int = place.plan
        #: The columns of its own arms: arms are numbers there.
        self._columns = np.array(place.arms.names, dtype=np.int64)
        super().__init__(place)

    def start(self) -> None:
        """Begin with a mass and nothing else."""
        self.held = np.zeros(2 * self._n_arms + 1)
        self.held[-1] = 1.0
        #: By neighbour: the running total of what it was given, and of what came from it.
        self.given: dict[Any, NDArray[np.float64]] = {}
        self.taken: dict[Any, NDArray[np.float64]] = {}

    def pick(self, clock: int, positions: Sequence[int]) -> int:
        """An arm that it has not pulled, or the one with the highest index; the first of equals."""
        untried = [position for position in positions if not self.own_count[position]]
        if untried:
            return untried[0]
        columns = self._columns[list(positions)]
        sums, counts, mass = self.held[columns], self.held[self._n_arms + columns], self.held[-1]
        log_t = math.log(clock)
        # While a neighbour that is down has not taken its share, mass is short; no agent pulls more than once a round.
        average = np.minimum(counts / mass, clock)
        width = self._algorithm.alpha * log_t * (average + math.sqrt(log_t)) / (self.place.n_agents * average)
        return positions[int((sums / counts + np.sqrt(width / average)).argmax())]

    def took(self, position: int, reward: float) -> None:
        """Add the pull."""
        column = self._columns[position]
        self.held[column] += reward
        self.held[self._n_arms + column] += 1.0

    def send(self, neighbours: Sequence[Any]) -> list[Parcel]:
        """A share for each neighbour, as a running total."""
        self.held = self.held / (1 + len(neighbours))
        parcels = []
        for one in neighbours:
            self.given[one] = self.given.get(one, 0.0) + self.held
            parcels.append(self.note(one, TABLE, values=self.given[one].tolist()))
        return parcels

    def take(self, note: Note, sender: Any) -> bool:
        """Add what is new in a running total; an older one that comes late has nothing new."""
        check_table(self, note, len(self.held))
        table, before = np.array(note.values), np.asarray(self.taken.get(sender, np.zeros(len(self.held))))
        if table[-1] <= before[-1]:
            return False
        self.held = self.held + (table - before)
        self.taken[sender] = table
        return True
