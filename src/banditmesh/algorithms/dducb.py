"""DDUCB: agents average sums and counts by accelerated gossip, and play UCB on averages that are a stage old."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import checks
from ..core import Note, Parcel, Place
from ..errors import InputError, MessageError
from ..networks.csr import Links
from .base import (
    ASYNCHRONOUS,
    DOWN,
    DYNAMIC,
    FORGETFUL,
    FULL,
    LATE,
    LOSS,
    NOTES_ARE_EXACT,
    Actor,
    Algorithm,
    components,
)

if TYPE_CHECKING:
    from ..problem import Problem

TABLE: Final = "table"
#: The number of steps follows from its inverse, which must be a number.
MIN_EPS: Final = 1e-100
#: Below this, one step of the mixing matrix gives the average.
_MIXES_AT_ONCE: Final = 1e-9
_EVERY_TABLE: Final = "its averages are wrong for ever when a table does not come in its round"


@dataclass(frozen=True)
class DDUCB(Algorithm):
    """Decentralized Delayed UCB: running averages of all agents' sums and counts, by accelerated gossip.

    Rounds come in stages of C. In each round an agent pulls the arm with the highest

        a_sum / a_count + sqrt(alpha log(s) / (N a_count)),

    a being its estimate of the network's average of sums and counts, and adds the reward to what is new, and 1/N of it
    to a at once. It also sends its neighbours the table that is being mixed, that of all agents' pulls in the stage
    before, and makes one step with what it hears: with tables as rows of b and P = I - L / (1 + the largest degree), L
    being the Laplacian and m the second largest absolute eigenvalue of P, a Chebyshev step 2/m P b - (b of the step
    before). At the end of a stage what was mixed, divided by the same recursion of the number 1, is added to all that
    was mixed before; a becomes that sum, what is new is mixed next, and s becomes N (t - C).

    Parameters
    ----------
    alpha : float
        The width of the confidence bound, as in `UCB`; 4 in the authors' code (2 eta sigma^2 with eta = 2, sigma = 1).
    eps : float
        How exact the averages are, which decides C = ceil(log(2 N / eps) / sqrt(2 log(1 / m))); 1/22 in the code.
    accelerated : int
        0 for plain gossip: steps P b, with C = ceil(log(N / eps) / log(1 / m)); a becomes what was mixed, and what is
        new is added to that and mixed with it.

    Notes
    -----
    Martínez-Rubio, Kanade and Rebeschini, "Decentralized Cooperative Stochastic Bandits", NeurIPS 2019. A table has a
    sum and a count for each arm: 16 + 16 K bytes. After the first pulls one goes over each link, both ways, in every
    round. N, m and the largest degree are known.

    What differs from the authors' code, which is not what their text says: one step is made in a round, not C; pulls of
    the agent's own count 1/N like all others once they are mixed; P is symmetric and its rows sum to 1; s grows by one
    with each own pull; a begins as 1/N of the first pulls (the code has 1/K). Where one step is exact, as on a complete
    network, C is 1.

    Ours: agents with unequal arm sets mix tables of all arms and choose among their own; first pulls take as many
    rounds as the largest arm set has arms, in which agents with fewer pull theirs in turn; each component of a network
    counts its agents and averages by itself.

    Examples
    --------
    >>> import banditmesh as bm
    >>> arms = [bm.arms.Gaussian(mean, 0.5) for mean in (0.2, 0.8, 0.5)]
    >>> problem = bm.Problem(bm.networks.ring(10), [range(3)] * 10, arms)
    >>> bm.algorithms.DDUCB().plan(problem)[0].n_steps, bm.algorithms.DDUCB(accelerated=0).plan(problem)[0].n_steps
    (12, 40)
    >>> result = bm.simulate(problem, bm.algorithms.DDUCB(), horizon=300, seed=0)
    >>> sent, n_bytes = (int(result.traffic[name][0]) for name in ("sent", "bytes"))
    >>> sent == 2 * 10 * (300 - 3), n_bytes == sent * (16 + 16 * 3)
    (True, True)
    """

    alpha: float = 4.0
    eps: float = 1.0 / 22.0
    accelerated: int = 1
    name: ClassVar[str] = "dducb"
    refuses: ClassVar[Mapping[str, str]] = {
        **NOTES_ARE_EXACT,
        DYNAMIC: "its steps follow from the eigenvalues of one mixing matrix",
        ASYNCHRONOUS: "its confidence bounds count a pull of every agent in every round",
        LOSS: _EVERY_TABLE,
        LATE: _EVERY_TABLE,
        FULL: _EVERY_TABLE,
        DOWN: _EVERY_TABLE,
        FORGETFUL: _EVERY_TABLE,
    }

    def __post_init__(self) -> None:
        object.__setattr__(self, "alpha", checks.positive("alpha", self.alpha))
        object.__setattr__(self, "eps", checks.positive("eps", self.eps))
        if self.eps < MIN_EPS:
            raise InputError(f"must be at least {MIN_EPS:g}, got {self.eps:g}", key="eps")
        object.__setattr__(self, "accelerated", checks.integer("accelerated", self.accelerated, at_least=0, at_most=1))

    def plan(self, problem: Problem) -> list[Mixing]:
        """How each agent mixes: all agents of a component alike."""
        n_first = int(np.diff(problem.arm_offsets).max())
        found: dict[int, Mixing] = {}
        for members, links in components(problem):
            second = second_eigenvalue(mixing_matrix(links))
            n_steps = self._n_steps(len(members), second)
            mixing = Mixing(problem.n_arms, n_first, len(members), _share(links), second, n_steps)
            found |= dict.fromkeys(members, mixing)
        return [found[agent] for agent in range(problem.n_agents)]

    def _n_steps(self, n_agents: int, second: float) -> int:
        """How many rounds a stage has."""
        if second < _MIXES_AT_ONCE:
            return 1
        spread = math.log(1.0 / second)
        if self.accelerated:
            return max(1, math.ceil(math.log(2 * n_agents / self.eps) / math.sqrt(2.0 * spread)))
        return max(1, math.ceil(math.log(n_agents / self.eps) / spread))

    def seat(self, place: Place) -> Averager:
        """The agent at a place."""
        return Averager(self, place)


class Mixing(NamedTuple):
    """What an agent of `DDUCB` knows beforehand.

    Attributes
    ----------
    n_arms : int
        How many arms tables have.
    n_first : int
        How many rounds the first pulls take.
    n_agents : int
        How many agents average.
    share : float
        The weight of each neighbour's table in a step; the agent's own has the rest.
    second : float
        The second largest absolute eigenvalue of the mixing matrix.
    n_steps : int
        How many rounds a stage has.
    """

    n_arms: int
    n_first: int
    n_agents: int
    share: float
    second: float
    n_steps: int


def _share(links: Links) -> float:
    return 1.0 / (1.0 + int(links.degrees.max(initial=0)))


def mixing_matrix(links: Links) -> NDArray[np.float64]:
    """What each agent makes of its neighbours' tables in a step: symmetric, with rows that sum to 1.

    Examples
    --------
    >>> mixing_matrix(Links.from_pairs(3, [(0, 1), (1, 2)])).round(3).tolist()
    [[0.667, 0.333, 0.0], [0.333, 0.333, 0.333], [0.0, 0.333, 0.667]]
    """
    matrix = np.diag(1.0 - _share(links) * links.degrees)
    matrix[tuple(links.directed().T)] = _share(links)
    return matrix


def second_eigenvalue(matrix: NDArray[np.float64]) -> float:
    """The second largest absolute value of a symmetric matrix's eigenvalues; 0 if there is one alone.

    Examples
    --------
    >>> round(second_eigenvalue(mixing_matrix(Links.from_pairs(2, [(0, 1)]))), 9)
    0.0
    """
    values = np.sort(np.abs(np.linalg.eigvalsh(matrix)))
    return float(values[-2]) if len(values) > 1 else 0.0


def check_table(agent: Actor, note: Note, size: int) -> None:
    """Refuse a table of another size."""
    if len(note.values) != size:
        raise MessageError(f"agent {agent.name!r} takes tables of {size} numbers, got {len(note.values)} in {note.id}")


class Averager(Actor):
    """An agent of `DDUCB`. Tables are arrays of sums and counts, (2, arms)."""

    kinds = (TABLE,)
    kept = (
        "average",
        "mixed",
        "mixing",
        "before",
        "new",
        "heard",
        "n_heard",
        "step",
        "weight",
        "weight_before",
        "n_seen",
    )

    def __init__(self, algorithm: DDUCB, place: Place) -> None:
        self._algorithm = algorithm
        self._plan: Mixing = place.plan[place.number]
        #: The columns of its own arms in a table: arms are numbers there.
        self._columns = np.array(place.arms.names, dtype=np.int64)
        super().__init__(place)

    def _table(self) -> NDArray[np.float64]:
        return np.zeros((2, self._plan.n_arms))

    def start(self) -> None:
        """Begin with tables of nothing."""
        #: What it chooses by; all that was mixed; what is being mixed, and was a step before; what is new.
        self.average, self.mixed, self.mixing, self.before, self.new = (self._table() for _ in range(5))
        #: The sum of the tables that came in this round, and their number.
        self.heard, self.n_heard = self._table(), 0
        self.step, self.weight, self.weight_before = 0, 1.0, 0.0
        #: The number of pulls that confidence bounds are for.
        self.n_seen = 0

    @property
    def _is_first(self) -> bool:
        """Whether this is a round of the first pulls."""
        return self.place.now() <= self._plan.n_first

    def pick(self, clock: int, positions: Sequence[int]) -> int:
        """The arm pulled least, in the first rounds; then the one with the highest index, the first of equals."""
        if self._is_first:
            return min(positions, key=self.own_count.__getitem__)
        sums, counts = self.average[:, self._columns[list(positions)]]
        known = np.where(counts > 0.0, counts, 1.0)
        width = self._algorithm.alpha * math.log(max(1, self.n_seen)) / self._plan.n_agents
        index = np.where(counts > 0.0, sums / known + np.sqrt(width / known), np.inf)
        return positions[int(index.argmax())]

    def took(self, position: int, reward: float) -> None:
        """What is new will be mixed; a share of it counts at once."""
        column, pull = self._columns[position], np.array([reward, 1.0])
        (self.mixing if self._is_first else self.new)[:, column] += pull
        self.average[:, column] += pull / self._plan.n_agents
        self.n_seen += 1

    def send(self, neighbours: Sequence[Any]) -> list[Parcel]:
        """The table that is being mixed, after the first pulls."""
        return [] if self._is_first else self.notes(neighbours, TABLE, values=self.mixing.ravel().tolist())

    def take(self, note: Note, sender: Any) -> bool:
        """Add a neighbour's table."""
        check_table(self, note, self.heard.size)
        self.heard += np.reshape(note.values, self.heard.shape)
        self.n_heard += 1
        return True

    def over(self) -> None:
        """One step of mixing; after the last one, a new stage."""
        if self._is_first:
            return
        plan, is_plain = self._plan, not self._algorithm.accelerated or self._plan.second < _MIXES_AT_ONCE
        mixed = plan.share * self.heard + (1.0 - plan.share * self.n_heard) * self.mixing
        weight = self.weight
        if not is_plain:
            factor = (2.0 if self.step else 1.0) / plan.second
            mixed = factor * mixed - self.before
            weight = factor * weight - self.weight_before
        self.before, self.mixing = self.mixing, mixed
        self.weight_before, self.weight = self.weight, weight
        self.heard, self.n_heard, self.step = self._table(), 0, self.step + 1
        if self.step == plan.n_steps:
            self._end_stage()

    def _end_stage(self) -> None:
        plan = self._plan
        if self._algorithm.accelerated:
            self.mixed = self.mixed + self.mixing / self.weight
            self.average, self.mixing = self.mixed.copy(), self.new
        else:
            self.average, self.mixing = self.mixing.copy(), self.mixing + self.new
        self.before, self.new = self._table(), self._table()
        self.step, self.weight, self.weight_before = 0, 1.0, 0.0
        self.n_seen = plan.n_agents * (self.place.now() - plan.n_steps)
