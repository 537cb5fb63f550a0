"""GosInE: agents explore a few arms each, and recommend to each other the one that they pull most."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final

from .. import checks
from ..core import Note, Parcel, Place
from ..errors import InputError
from .base import NOTES_ARE_EXACT, UNEQUAL, Actor, Algorithm, Standing, standings

if TYPE_CHECKING:
    from ..problem import Problem

REQUEST: Final = "request"
RECOMMENDATION: Final = "recommendation"
#: The second phase of a larger one would never end.
MAX_BETA: Final = 100.0
MAX_SPREAD: Final = 1e6
ONE_BEST: Final = "the arm that is recommended must be the best one for all agents"


@dataclass(frozen=True)
class GosInE(Algorithm):
    """Gossip-Insert-Eliminate: each agent plays UCB on its own block of arms and on two more that gossip brings.

    With K arms and N agents, agent i keeps ceil(K/N) *sticky* arms (from arm i ceil(K/N), modulo K) and two others, U
    and L, at first the two arms after its block. It pulls the arm with the highest `mean + sqrt(alpha log(t) / n)`
    among these. At the end of a phase it keeps as U the one of U and L that it pulled more often in that phase, and
    asks one random neighbour for the arm that it pulled most; if that is new to it, it takes the place of L. Counts and
    means are never forgotten, also of an arm that leaves and comes back.

    Parameters
    ----------
    alpha : float
        The width of the confidence bound, as in `UCB`; 4 in the authors' code, for rewards between 0 and 1.
    beta : float
        Phase j ends after round j ** beta; 3 in the authors' code.
    spread : float
        0 for common phases. Otherwise the asynchronous form: each agent's phase j lasts from j ** beta -
        (j-1) ** beta rounds to (1 + spread) times that, drawn uniformly; 0.5 in the authors' code.

    Notes
    -----
    Chawla, Sankararaman, Ganesh and Shakkottai, "The Gossiping Insert-Eliminate Algorithm for Multi-Agent Bandits",
    AISTATS 2020. A request is a header of 16 bytes; so is a recommendation, as it holds an arm and no number. Both cost
    a transmission: two for each agent with a neighbour and phase, about 2 N T ** (1 / beta) in all. No reward is sent.

    What differs: an answer takes a message, so that it comes one round after the phase has ended (in the paper at
    once). On a network of several components, each is a network by itself. Agents that go down, or whose answers are
    lost or late, ask again at the end of their next phase.

    Examples
    --------
    >>> import banditmesh as bm
    >>> arms = [bm.arms.Bernoulli(0.9 if arm == 7 else 0.5) for arm in range(20)]
    >>> problem = bm.Problem(bm.networks.complete(10), [range(20)] * 10, arms)
    >>> result = bm.simulate(problem, bm.algorithms.GosInE(), horizon=1000, seed=0)
    >>> int(result.traffic["sent"][0]), int(result.traffic["bytes"][0])
    (190, 3040)
    >>> alone = bm.simulate(problem, bm.NoCooperation(), policy=bm.UCB(4), horizon=1000, seed=0, engine="reference")
    >>> bool(result.regret[0, -1] < 0.5 * alone.regret[0, -1])
    True
    """

    alpha: float = 4.0
    beta: float = 3.0
    spread: float = 0.0
    name: ClassVar[str] = "gosine"
    refuses: ClassVar[Mapping[str, str]] = {**NOTES_ARE_EXACT, UNEQUAL: ONE_BEST}

    def __post_init__(self) -> None:
        object.__setattr__(self, "alpha", checks.positive("alpha", self.alpha))
        object.__setattr__(self, "beta", checks.real("beta", self.beta))
        if not 1.0 < self.beta <= MAX_BETA:
            raise InputError(
                f"must be above 1, so that phases grow, and at most {MAX_BETA:g}, got {self.beta:g}", key="beta"
            )
        object.__setattr__(self, "spread", checks.non_negative("spread", self.spread))
        if self.spread > MAX_SPREAD:
            raise InputError(f"must be at most {MAX_SPREAD:g}, got {self.spread:g}", key="spread")

    def plan(self, problem: Problem) -> list[Standing]:
        """Which of how many agents each one is."""
        return standings(problem)

    def seat(self, place: Place) -> Gossiper:
        """The agent at a place."""
        return Gossiper(self, place)


class Gossiper(Actor):
    """An agent of `GosInE`."""

    kinds = (REQUEST, RECOMMENDATION)
    kept = ("upper", "lower", "phase", "end", "in_phase", "last", "asked")

    def __init__(self, algorithm: GosInE, place: Place) -> None:
        self._algorithm = algorithm
        n_arms = len(place.arms.names)
        standing = Standing(place.number, place.n_agents) if place.plan is None else place.plan[place.number]
        #: The positions of its sticky arms, and of U and L at first.
        self._sticky = standing.block(n_arms)
        self._others = [(self._sticky[-1] + k) % n_arms for k in (1, 2)]
        super().__init__(place)

    def start(self) -> None:
        """The first phase, or that of the round in which a new life begins."""
        self.upper, self.lower = self._others
        self.phase, self.end = 0, 0
        self.in_phase = [0] * len(self.arms.names)
        #: The arm that it pulled most in its last phase.
        self.last: int | None = None
        #: Who has asked for a recommendation, and which arm they are told.
        self.asked: list[list[Any]] = []
        self._next_phase(self.place.now())

    def _next_phase(self, now: int) -> None:
        """Go on to the next phase that ends later than now."""
        beta, spread = self._algorithm.beta, self._algorithm.spread
        while self.end <= now:
            self.phase += 1
            if not spread:
                self.end = math.ceil(self.phase**beta)
            else:
                shortest = math.ceil(self.phase**beta - (self.phase - 1) ** beta)
                more = math.ceil((1.0 + spread) * shortest) - shortest
                self.end = now + shortest + int(self.draw_uniform(self.phase) * (more + 1))

    @property
    def active(self) -> list[int]:
        """The arms that it plays: sticky, U and L, each once."""
        return list(dict.fromkeys((*self._sticky, self.upper, self.lower)))

    def pick(self, clock: int, positions: Sequence[int]) -> int:
        """The active arm with the highest index, or an arm that was never pulled; the first of equals."""
        width = self._algorithm.alpha * math.log(clock)
        estimates = self.estimates

        def index(position: int) -> float:
            count = estimates.count[position]
            return estimates.mean[position] + math.sqrt(width / count) if count else math.inf

        return max([one for one in self.active if one in positions] or positions, key=index)

    def took(self, position: int, reward: float) -> None:
        """A pull of this phase."""
        self.in_phase[position] += 1

    def send(self, neighbours: Sequence[Any]) -> list[Parcel]:
        """Answers to those who asked and, at the end of a phase, a request."""
        names = self.arms.names
        parcels = [self.note(asker, RECOMMENDATION, names[arm]) for asker, arm in self.asked if asker in neighbours]
        self.asked = []
        now = self.place.now()
        if now >= self.end:
            self._end_phase()
            self._next_phase(now)
            parcels += [self.note(one, REQUEST) for one in self.draw_neighbours(neighbours)]
        return parcels

    def _end_phase(self) -> None:
        pulls = self.in_phase
        if pulls[self.lower] > pulls[self.upper]:
            self.upper, self.lower = self.lower, self.upper
        if any(pulls):
            self.last = pulls.index(max(pulls))
        self.in_phase = [0] * len(pulls)

    def take(self, note: Note, sender: Any) -> bool:
        """Remember who asks; a recommended arm that is not active takes the place of L."""
        if note.kind == REQUEST:
            if self.last is not None:
                self.asked.append([sender, self.last])
            return False
        position = self.position_of(note.arm)
        if position is None or position in self.active:
            return False
        self.lower = position
        return True

    def drop(self) -> None:
        """Answers that wait are gone."""
        self.asked = []
