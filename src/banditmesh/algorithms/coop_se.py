"""Coop-SE: elimination by statistics that are sent as they grow, and by notices of what others have eliminated."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from .. import checks
from ..core import Agent, Copy, Fate, Message, Note, Parcel, Place, Receipt, Relaying
from ..protocols import Flooding, Growth
from ..protocols.base import MAX_TTL
from ..protocols.messages import DUPLICATE, RECEIPTS
from .base import HEADER_BYTES, NUMBER_BYTES, Algorithm
from .elimination import Elimination
from .noting import NotedAgent, NoteTaker

ELIMINATED: Final = "eliminated"


@dataclass(frozen=True)
class CoopSE(Algorithm):
    """Cooperative successive elimination, after Coop-SE and DoE-bandit: growing statistics, and elimination notices.

    An agent pulls by `Elimination` the candidate of which it has the fewest observations, its own and those that it
    heard of. It floods its own count and sum of an arm whenever the count has grown by a factor, so that the arm's
    confidence radius has shrunk by `1 / sqrt(1 + factor)`; of a last candidate it sends nothing. When it has eliminated
    an arm, it tells its neighbours which one and by which better one. Whoever has both arms eliminates, too; everybody
    passes the notice on to all neighbours that have not been told, once.

    Parameters
    ----------
    ttl : int
        How many hops a statistic may travel. Notices go everywhere.
    factor : float
        By how much of itself a count grows between two statistics, as in `Growth`.
    alpha : float
        The width of the confidence bounds, `sqrt(alpha * log(horizon) / count)`.
    horizon : int
        The number of rounds that the bounds are made for, known beforehand as in the papers.

    Notes
    -----
    Barnea, Lancewicki and Mansour, "Individual Regret in Cooperative Stochastic Multi-Armed Bandits", arXiv 2411.06501:
    Coop-SE, with equal arm sets, and the regret of each agent independent of the network's diameter. Wang, Yang, Chen,
    Liu, Hajiesmaili, Towsley and Lui, "Achieving Near-Optimal Individual Regret & Low Communications in Multi-Agent
    Bandits", ICLR 2023: DoE-bandit, with all agents in reach of each other, and O(log log T) messages for an agent and
    arm. A statistic takes 32 bytes: a header of 16, a count and a sum. A notice takes 24: a header with the arm, and
    the number of the better arm.

    What is ours: both papers were read in their abstracts and in what others write of them, not in full. The trigger is
    the growth of the own count, which knows nothing of what others pull. Arm sets may differ: there an arm can be the
    best of an agent that does not have the better one, so a notice names both, and an agent that lacks one of them only
    passes it on. An agent never eliminates its last candidate. A neighbour that has lost its memory is not told again.

    Examples
    --------
    >>> import banditmesh as bm
    >>> arms = [bm.arms.Bernoulli(mean) for mean in (0.2, 0.5, 0.8)]
    >>> problem = bm.Problem(bm.networks.ring(10), [range(3)] * 10, arms)
    >>> algorithm = bm.algorithms.CoopSE(4, alpha=0.5, horizon=1000)
    >>> early, late = (bm.simulate(problem, algorithm, horizon=rounds, seed=0) for rounds in (150, 300))
    >>> [int(result.traffic["sent"][0]) for result in (early, late)]
    [1792, 1792]
    """

    ttl: int = 4
    factor: float = 0.25
    alpha: float = 2.0
    horizon: int = 10_000
    name: ClassVar[str] = "coop-se"
    refuses: ClassVar[Mapping[str, str]] = {}

    def __post_init__(self) -> None:
        object.__setattr__(self, "ttl", checks.integer("ttl", self.ttl, at_least=1, at_most=MAX_TTL))
        object.__setattr__(self, "factor", checks.non_negative("factor", self.factor))
        object.__setattr__(self, "alpha", checks.positive("alpha", self.alpha))
        object.__setattr__(self, "horizon", checks.integer("horizon", self.horizon, at_least=2))

    @property
    def most_hops(self) -> int:
        """The ttl."""
        return self.ttl

    def size(self, message: Message | Note) -> int:
        """A statistic has two numbers, a notice one."""
        return HEADER_BYTES + NUMBER_BYTES * (2 if isinstance(message, Message) else 1)

    def seat(self, place: Place) -> Agent:
        """The core's agent, which eliminates, floods statistics and takes notices."""
        policy = Elimination(self.alpha, self.horizon, first_pulls="unknown")
        return NotedAgent(place.name, place.arms, policy, Noticing(self, place), place.chances, place.age_of)


@dataclass(frozen=True)
class _Undecided(Growth):
    """Growth, except of a last candidate."""

    asks_best: ClassVar[bool] = True

    @staticmethod
    def sends(own_count: float, sent_count: float, is_best: bool, parameter: float) -> bool:
        """Whether the count has grown enough and there is something left to decide."""
        return not is_best and own_count - sent_count >= parameter * sent_count


class Noticing(Relaying, NoteTaker):
    """A courier that floods statistics, and tells each neighbour once of each elimination."""

    kind = ELIMINATED

    def __init__(self, algorithm: CoopSE, place: Place) -> None:
        self._place = place
        flooding = Flooding(algorithm.ttl, emission=_Undecided(algorithm.factor))
        super().__init__(flooding, place.chances, place.seen(algorithm.ttl), place.new_id, place.rules)

    def restart(self) -> None:
        """Begin with nothing."""
        super().restart()
        #: What is known to be eliminated, an arm and the better one, and which neighbours said so.
        self._notices: dict[tuple[Any, Any], list[Any]] = {}
        #: How many of these, the first ones, each neighbour knows.
        self._n_known: dict[Any, int] = {}

    def send(self, agent: Agent, neighbours: Sequence[Any]) -> list[Parcel]:
        """Statistics, and what neighbours do not know of what is eliminated."""
        parcels = super().send(agent, neighbours)
        chooser: Any = agent.chooser
        for arm, better in chooser.beaten:
            self._notices.setdefault((agent.arms.names[arm], agent.arms.names[better]), [])
        for neighbour in neighbours:
            n_known, self._n_known[neighbour] = self._n_known.get(neighbour, 0), len(self._notices)
            if n_known < len(self._notices):
                parcels += self._tell(agent, neighbour, n_known)
        return parcels

    def _tell(self, agent: Agent, neighbour: Any, n_known: int) -> Iterator[Parcel]:
        """All notices but the first ones, except those that the neighbour sent itself."""
        for (arm, better), said in itertools.islice(self._notices.items(), n_known, None):
            if neighbour not in said:
                note = Note(agent.name, self._place.new_link_id(neighbour), ELIMINATED, arm, (better,))
                yield Parcel(Copy(note, 1), [neighbour])

    def receive(self, agent: Agent, copy: Copy, sender: Any, degree: int) -> Receipt:
        """Take a notice, or flood a statistic."""
        if isinstance(copy[0], Note):
            return self.take(agent, copy[0], sender)
        return super().receive(agent, copy, sender, degree)

    def take(self, agent: Agent, note: Note, sender: Any) -> Receipt:
        """Eliminate the arm if the agent has the better one, too, and pass on what is new."""
        pair = note.arm, note.values[0]
        is_new = pair not in self._notices
        said = self._notices.setdefault(pair, [])
        if sender not in said:
            said.append(sender)
        if not is_new:
            return DUPLICATE
        if all(map(agent.has, pair)):
            chooser: Any = agent.chooser
            chooser.eliminate(agent.arms.names.index(note.arm))
        return RECEIPTS[Fate.RELAYED][False]

    @property
    def state(self) -> dict[str, Any]:
        """What the courier of statistics keeps, and who knows what is eliminated."""
        return super().state | {
            "notices": [[*pair, said] for pair, said in self._notices.items()],
            "n_known": [[*known] for known in self._n_known.items()],
        }

    @state.setter
    def state(self, value: dict[str, Any]) -> None:
        vars(Relaying)["state"].fset(self, value)
        self._notices = {(arm, better): said for arm, better, said in value["notices"]}
        self._n_known = dict(value["n_known"])
