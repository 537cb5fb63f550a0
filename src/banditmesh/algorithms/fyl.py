"""Follow your leader: agents in the middle of stars explore, and their neighbours pull what they pulled."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

from .. import checks
from ..core import Copy, Fate, Message, Note, Parcel, Place, Receipt
from ..protocols.messages import RECEIPTS
from .base import DYNAMIC, Algorithm
from .hearing import Hearer
from .leaders import arm_sets, dominating_leaders

if TYPE_CHECKING:
    from ..problem import Problem

CHOICE: Final = "choice"
#: How many rounds a follower that hears nothing goes on with what it heard last.
PATIENCE: Final = 16


class Stars(NamedTuple):
    """What everybody knows before the first round.

    Attributes
    ----------
    leaders : list of int
        Every agent's leader.
    arms : list of tuple
        Every agent's arms.
    """

    leaders: list[int]
    arms: list[tuple[int, ...]]


@dataclass(frozen=True)
class FollowYourLeader(Algorithm):
    """Leaders are a dominating set of the network, and everybody else pulls what its leader pulled a round before.

    A leader pulls the arm with the highest `mean + sqrt(alpha log(t) / n)`, where mean and n are of its own pulls and
    of those of its neighbours, and tells its followers which arm it pulled. Every agent tells the leaders among its
    neighbours that have the arm what it was paid. So a leader learns from its whole star at once, and each follower's
    regret is its leader's, one round later.

    Parameters
    ----------
    alpha : float
        The width of the bonus, as in `UCB`; 2 in the paper, for rewards between 0 and 1.

    Notes
    -----
    After Kolla, Jagannathan and Gopalan, "Collaborative Learning of Stochastic Bandits over a Social Network", IEEE/ACM
    Transactions on Networking 26, 2018, whose abstract was read and not its algorithm box. Its rewards are seen by all
    neighbours without a message. Leaders are found by a greedy rule (`dominating_leaders`); it needs a network that is
    known and does not change.

    A choice is a header of 16 bytes, as it holds an arm and no number; an observation has a reward too, 24 bytes. A
    star with m followers costs m of either in a round, and links between leaders carry observations both ways.

    Ours: an agent's first pull is of its first arm (in the paper it is drawn). Where arm sets differ, an agent follows
    only a neighbour with the same arms; one without such a neighbour leads itself, and hears from its neighbours of the
    arms that it has. A follower whose leader is silent (down, not its turn, messages lost) repeats the last choice that
    it heard for up to 16 rounds, and then chooses as a leader does, from its own pulls.

    Examples
    --------
    >>> import banditmesh as bm
    >>> coins = [bm.arms.Bernoulli(0.5), bm.arms.Bernoulli(0.8)]
    >>> problem = bm.Problem(bm.networks.star(9), [[0, 1]] * 9, coins)
    >>> result = bm.simulate(problem, "fyl", horizon=500, seed=0)
    >>> int(result.traffic["sent"][0]), int(result.traffic["bytes"][0])
    (8000, 160000)
    >>> {abs(int(n)) for n in result.pulls[0, 1:, 1] - result.pulls[0, 0, 1]} <= {0, 1}
    True
    """

    alpha: float = 2.0
    name: ClassVar[str] = "fyl"
    refuses: ClassVar[Mapping[str, str]] = {DYNAMIC: "its leaders are planned for a network that does not change"}

    def __post_init__(self) -> None:
        object.__setattr__(self, "alpha", checks.positive("alpha", self.alpha))

    def plan(self, problem: Problem) -> Stars:
        """Every agent's leader, and its arms."""
        return Stars(dominating_leaders(problem), arm_sets(problem))

    def seat(self, place: Place) -> StarMember:
        """The agent at a place."""
        return StarMember(self, place)


class StarMember(Hearer):
    """An agent of `FollowYourLeader`: a leader or a follower."""

    kinds = (CHOICE,)
    kept = ("pulled", "followed", "followed_in", "n_told")

    def __init__(self, algorithm: FollowYourLeader, place: Place) -> None:
        self._alpha = algorithm.alpha
        self._stars: Stars = place.plan
        self.leads = self._stars.leaders[place.number] == place.number
        super().__init__(place)

    def start(self) -> None:
        """Nothing was pulled, and nothing heard."""
        #: The pull of this round that is to be told of: position and reward.
        self.pulled: list[Any] = []
        #: The position of the arm that the leader last pulled, and the round in which that was heard.
        self.followed: int | None = None
        self.followed_in = 0
        #: The number of the note that told of it.
        self.n_told = 0

    def pick(self, clock: int, positions: Sequence[int]) -> int:
        """What the leader pulled; of a leader, the arm with the highest index."""
        is_fresh = self.place.now() - self.followed_in <= PATIENCE
        if self.followed is not None and is_fresh and self.followed in positions:
            return self.followed
        width, estimates = math.sqrt(self._alpha * math.log(clock)), self.estimates
        return self.highest(positions, lambda one: estimates.mean[one] + width * estimates.inv_root[one])

    def took(self, position: int, reward: float) -> None:
        """To be told of when the round is over."""
        self.pulled = [position, reward]

    def send(self, neighbours: Sequence[Any]) -> list[Parcel]:
        """The observation to leaders, and the choice to followers."""
        if not self.pulled:
            return []
        position, reward = self.pulled
        self.pulled = []
        arm, (leader_of, arms) = self.arms.names[position], self._stars
        leaders = [one for one in neighbours if leader_of[one] == one and arm in arms[one]]
        parcels = [Parcel(Copy(self.observation(position, reward), 1), leaders)] if leaders else []
        followers = [one for one in neighbours if leader_of[one] == self.place.number]
        return parcels + [self.note(one, CHOICE, arm) for one in followers]

    def take(self, note: Note, sender: Any) -> bool:
        """What the leader pulled, unless a later choice came before."""
        if note.id.number < self.n_told:
            return False
        self.n_told = note.id.number
        self.followed, self.followed_in = self.position_of(note.arm), self.place.now()
        return True

    def hear_pull(self, message: Message, ttl: int, sender: Any) -> Receipt:
        """A neighbour's reward, of use if the agent has the arm."""
        position = self.position_of(message.arm)
        if position is not None:
            self.estimates.add(position, 1, message.total)
        return RECEIPTS[Fate.ABSORBED][position is not None]

    def drop(self) -> None:
        """What was to be told is gone."""
        self.pulled = []
