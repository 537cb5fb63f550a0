"""DPE2: one leader explores, sparingly, and everybody else pulls the arm that it takes for the best."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final

from .. import checks
from ..core import Note, Parcel, Place
from ..faults import Faults
from ..policies import KLUCB
from .base import Actor, Algorithm
from .leaders import group_leaders

if TYPE_CHECKING:
    from ..problem import Problem

BEST: Final = "best"
ANSWER: Final = "answer"
QUESTION: Final = "question"
#: After how many rounds without an answer a neighbour is told again.
PATIENCE: Final = 4


@dataclass(frozen=True)
class DPE2(Algorithm):
    """Parsimonious exploration by a leader; followers pull its best arm, and hear of it only when it changes.

    The leader goes through its arms in blocks. At the beginning of a block it works out every arm's KL-UCB index with
    `log(t) + c log(log(t))`, the arms whose index is above its best arm's mean (`to_explore`), and which arm has the
    highest mean; if that is another one than before, it says so. In the block it pulls its best arm once, then each of
    these arms once, the highest index first; with none, only its best. Followers explore nothing and tell nothing.

    Parameters
    ----------
    c : float
        The weight of log(log(t)); 4 in the authors' code.

    Notes
    -----
    Wang, Proutiere, Ariu, Jedra and Russo, "Optimal Algorithms for Multiplayer Multi-Armed Bandits", AISTATS 2020; the
    leader as in the authors' code for players on a graph (rssalessio/DPE). Its regret grows with log(T) as that of one
    agent would, and the expected number of messages does not grow with T: only the leader explores, and its best arm
    changes a finite number of times.

    A message names the leader, its best arm and the round in which it became that: a header of 16 bytes and two
    numbers, 32 in all; a question (below) names the leader, 24 bytes. It goes from neighbour to neighbour, and each
    link carries it once in either direction: the way back tells that it has arrived. So a change costs two messages a
    link, however far the followers are.

    Ours: the leader is the agent with the most neighbours, the first of equals, of each group of agents that have the
    same arms and can reach each other (on a dynamic network, the first agent with these arms); agents of other groups
    pass on what they hear. A leader without followers sends nothing. A neighbour that does not answer within four
    rounds is told again; one that has lost its memory asks its neighbours. So losses, outages, delays and changing
    links do no lasting harm. (In the authors' code every follower repeats what it knows in every round.)

    Examples
    --------
    >>> import banditmesh as bm
    >>> coins = [bm.arms.Bernoulli(0.5), bm.arms.Bernoulli(0.8)]
    >>> problem = bm.Problem(bm.networks.ring(8), [[0, 1]] * 8, coins)
    >>> early, late = (bm.simulate(problem, "dpe2", horizon=horizon, seed=1) for horizon in (500, 5000))
    >>> int(early.traffic["sent"][0]), int(late.traffic["sent"][0])
    (16, 16)
    >>> bool((late.pulls[0, 1:, 0] < late.pulls[0, 0, 0]).all())
    True
    """

    c: float = 4.0
    name: ClassVar[str] = "dpe2"

    def __post_init__(self) -> None:
        object.__setattr__(self, "c", checks.non_negative("c", self.c))

    def plan(self, problem: Problem) -> list[int]:
        """Every agent's leader."""
        return group_leaders(problem)

    def check_run(self, problem: Problem, every: Sequence[int], faults: Faults | None) -> None:
        """Refuse, too, arms that KL-UCB has no index for."""
        super().check_run(problem, every, faults)
        KLUCB().check(problem)

    def seat(self, place: Place) -> GroupMember:
        """The agent at a place."""
        return Leader(self, place) if place.plan[place.number] == place.number else GroupMember(self, place)


class GroupMember(Actor):
    """An agent of `DPE2` that follows: it pulls its leader's best arm, and passes on what it hears of any leader."""

    kinds = (BEST, ANSWER, QUESTION)
    kept: ClassVar[tuple[str, ...]] = ("asked",)

    def __init__(self, algorithm: DPE2, place: Place) -> None:
        self._algorithm = algorithm
        self._leader = place.plan[place.number]
        super().__init__(place)

    def start(self) -> None:
        """Everybody begins with the first arm of its arm set; in another life, the agent asks what it is by now."""
        #: By leader, the latest that is known: the round in which it was said, and the arm.
        self.latest: dict[int, tuple[int, Any]] = {}
        #: By neighbour and leader, the round that it was told and when, and the round that it has told.
        self.told: dict[tuple[Any, int], tuple[int, int]] = {}
        self.answers: dict[tuple[Any, int], int] = {}
        #: Who has asked about which leader, and from which round on the agent asks itself.
        self.asked: list[list[Any]] = []
        self.asks: int | None = self.place.now() if self.life else None

    def pick(self, clock: int, positions: Sequence[int]) -> int:
        """The leader's best arm."""
        _, arm = self.latest.get(self._leader, (0, self.arms.names[0]))
        position = self.position_of(arm)
        return position if position is not None and position in positions else positions[0]

    def send(self, neighbours: Sequence[Any]) -> list[Parcel]:
        """What is known of each leader, to neighbours that have not been told, have not answered, or have asked."""
        now, parcels = self.place.now(), []
        for leader, (said, arm) in sorted(self.latest.items()):
            for one in neighbours:
                told, when = self.told.get((one, leader), (0, 0))
                knows = self.answers.get((one, leader), 0) >= said
                if told < said or not (knows or now - when < PATIENCE):
                    self.told[one, leader] = said, now
                    parcels.append(self.note(one, ANSWER if knows else BEST, arm, (leader, said)))
        parcels += [self.note(one, ANSWER, None, (leader, 0)) for one, leader in self.asked if one in neighbours]
        self.asked = []
        if self.asks is not None and now >= self.asks:
            self.asks = now + PATIENCE
            parcels += [self.note(one, QUESTION, None, (self._leader,)) for one in neighbours]
        return parcels

    def take(self, note: Note, sender: Any) -> bool:
        """What some leader said, or a question; whether it is news."""
        leader = int(note.values[0])
        if note.kind == QUESTION:
            self.told.pop((sender, leader), None)
            # Whoever asks itself does not know that there is nothing to know.
            if leader not in self.latest and self.asks is None:
                self.asked.append([sender, leader])
            return False
        said = int(note.values[1])
        if leader == self._leader:
            self.asks = None
        if note.kind == BEST and said == self.answers.get((sender, leader)):
            # It says so again, as it has had no answer.
            self.told.pop((sender, leader), None)
        self.answers[sender, leader] = said
        known, _ = self.latest.get(leader, (0, None))
        if said <= known or leader == self.place.number:
            return False
        self.latest[leader] = said, note.arm
        return True

    def drop(self) -> None:
        """Answers that wait are gone."""
        self.asked = []

    @property
    def state(self) -> dict[str, Any]:
        """All that changes."""
        return super().state | {
            "latest": [[leader, *known] for leader, known in self.latest.items()],
            "told": [[*key, *told] for key, told in self.told.items()],
            "answers": [[*key, said] for key, said in self.answers.items()],
            "asks": self.asks,
        }

    @state.setter
    def state(self, value: dict[str, Any]) -> None:
        vars(Actor)["state"].fset(self, value)
        self.latest = {leader: (said, arm) for leader, said, arm in value["latest"]}
        self.told = {(one, leader): (said, when) for one, leader, said, when in value["told"]}
        self.answers = {(one, leader): said for one, leader, said in value["answers"]}
        self.asks = value["asks"]


class Leader(GroupMember):
    """An agent of `DPE2` that leads: it explores, and says which arm seems the best."""

    kept = (*GroupMember.kept, "best", "to_explore", "is_first", "n_pulled")

    def __init__(self, algorithm: DPE2, place: Place) -> None:
        self._has_followers = list(place.plan).count(place.number) > 1
        super().__init__(algorithm, place)

    def start(self) -> None:
        """The first block is of all arms."""
        super().start()
        self.asks = None
        self.best = 0
        self.n_pulled = 0
        #: The arms that are still to be pulled in this block, and whether the best one is to be pulled before them.
        self.to_explore = list(range(1, len(self.arms.names)))
        self.is_first = True

    def pick(self, clock: int, positions: Sequence[int]) -> int:
        """The best arm at the beginning of a block and if there is nothing to explore, else the next of the block."""
        wanted = self.best if self.is_first or not self.to_explore else self.to_explore[0]
        return wanted if wanted in positions else positions[0]

    def took(self, position: int, reward: float) -> None:
        """Go on in the block, or begin the next one."""
        self.n_pulled += 1
        if self.is_first:
            self.is_first = False
        elif self.to_explore:
            self.to_explore.pop(0)
        if not self.to_explore:
            self._begin_block()

    def _begin_block(self) -> None:
        estimates, policy = self.estimates, KLUCB(c=self._algorithm.c)
        known = [one for one in range(len(estimates)) if estimates.count[one]]
        index: dict[int, Any] = {one: policy.index_at(self.n_pulled, estimates, one) for one in known}
        hopeful = [one for one in known if index[one] > estimates.mean[self.best]]
        self.to_explore = sorted(hopeful, key=lambda one: (-index[one], one))
        self.is_first = bool(self.to_explore)
        best = max(known, key=lambda one: (estimates.mean[one], -one))
        if self._has_followers and (best != self.best or (self.life and self.place.number not in self.latest)):
            self.latest[self.place.number] = self.place.now(), self.arms.names[best]
        self.best = best
