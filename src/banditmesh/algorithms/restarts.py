"""Shared restarts: agents that watch their own pulls for changes, and start an arm anew when one of them sees one.

Every agent has a detector for each of its arms, which sees its own pulls of it and nothing else. A restart is a
*version* of an arm, a number that begins at 0: whoever detects a change adds one, forgets what it knew of the arm, and
tells its neighbours; whoever hears of a higher version than its own takes it over, forgets likewise, and passes it on.
Observations travel with the version that they belong to; those of an older one are ignored and not passed on. So agents
that see the same change at the same time agree on one version, and whatever was lost or late is made up for by the next
message of the arm.

What the papers have for one agent is theirs: the tests, the indices, and pulls that are forced so that a change is seen
in arms that are not pulled otherwise. That observations and restarts are shared is ours; Cheng and Maghsudi,
"Distributed Consensus Algorithm for Decision-Making in Multi-agent Multi-armed Bandit", arXiv 2306.05998, also share
restarts.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final

from .. import checks
from ..arms import BERNOULLI
from ..core import Copy, Fate, Message, Note, Parcel, Place, Receipt
from ..errors import InputError
from ..protocols.base import MAX_TTL
from ..protocols.messages import DUPLICATE, RECEIPTS
from .base import HEADER_BYTES, NUMBER_BYTES, Actor, Algorithm
from .detectors import Detector
from .hearing import Hearer

if TYPE_CHECKING:
    from ..faults import Faults
    from ..problem import Problem

RESTART: Final = "restart"
#: An observation has a reward and a version.
PULL_BYTES: Final = HEADER_BYTES + 2 * NUMBER_BYTES


@dataclass(frozen=True)
class Restarting(Algorithm):
    """The base of algorithms with detectors and shared restarts.

    Parameters
    ----------
    ttl : int
        How many hops an observation travels; 0 if restarts alone are shared.
    explore : float
        The share of pulls that are forced, each arm in its turn; from 0 to 1.
    """

    ttl: int = 4
    explore: float = 0.05

    refuses: ClassVar[Mapping[str, str]] = {}
    #: Whether a change of one arm restarts all arms of the agent that detects it.
    restarts_all: ClassVar[bool] = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "ttl", checks.integer("ttl", self.ttl, at_least=0, at_most=MAX_TTL))
        object.__setattr__(self, "explore", checks.probability("explore", self.explore))

    @abstractmethod
    def detector(self, sigma: float | None) -> Detector:
        """A detector for an arm whose rewards have this sigma; None for coins."""

    @abstractmethod
    def index(self, agent: Watcher, position: int, clock: int) -> float:
        """The index of an arm of which something is known; the highest is pulled."""

    def forced(self, agent: Watcher) -> int | None:
        """The position of the arm that must be pulled now, if one must: each arm in turn, at regular intervals.

        Intervals are counted in the agent's own pulls, which are rounds if it pulls in every round.
        """
        if not self.explore:
            return None
        n_arms = len(agent.arms.names)
        turn = agent.n_pulled % int(n_arms / self.explore)
        return turn if turn < n_arms else None

    def size(self, message: Message | Note) -> int:
        """An observation has its version too, and a restart is a version."""
        return PULL_BYTES if isinstance(message, Message) else super().size(message)

    def check_run(self, problem: Problem, every: Sequence[int], faults: Faults | None) -> None:
        """Refuse, too, arms that the detector cannot judge."""
        super().check_run(problem, every, faults)
        for arm, sigma, law in zip(problem.arms, problem.sigmas.tolist(), problem.law_codes.tolist(), strict=True):
            if math.isnan(sigma) and law != BERNOULLI:
                raise InputError(
                    f"{self.name!r} must know the sigma of every arm, got none for arm {arm!r}; "
                    "give it a law with a sigma"
                )

    def seat(self, place: Place) -> Watcher:
        """The agent at a place."""
        return Watcher(self, place)


class Watcher(Hearer):
    """An agent of a `Restarting` algorithm.

    Attributes
    ----------
    versions : dict
        The version of each arm that was ever restarted, also of arms that the agent does not have.
    began : list of int
        The round of the last restart of each of its arms, by position; 0 if there was none.
    n_pulled : int
        How many pulls its turns of forced pulls are counted from: all, or those since the last restart of all arms.
    """

    kinds = (RESTART,)
    kept = ("began", "n_pulled", "waiting", "news")

    def __init__(self, algorithm: Restarting, place: Place) -> None:
        self._algorithm = algorithm
        self.most_hops = algorithm.ttl
        self._seen = place.seen(max(algorithm.ttl, 1))
        arms = place.arms
        #: What noise is measured in, by position: twice its sigma, which is 1 for coins.
        self.unit = [
            1.0 if law == BERNOULLI else 2.0 * sigma for sigma, law in zip(arms.sigmas, arms.laws, strict=True)
        ]
        self._detectors = [
            algorithm.detector(None if law == BERNOULLI else sigma)
            for sigma, law in zip(arms.sigmas, arms.laws, strict=True)
        ]
        super().__init__(place)

    def start(self) -> None:
        """Nothing has changed yet, as far as the agent knows."""
        self.versions: dict[Any, int] = {}
        self.began = [0] * len(self.arms.names)
        self.n_pulled = 0
        #: Observations to send: the fields of the message, hops left, and the neighbour that it came from.
        self.waiting: list[list[Any]] = []
        #: Arms whose new version is to be sent, and the neighbour that it came from.
        self.news: list[list[Any]] = []
        self._seen.restart()
        for detector in self._detectors:
            detector.restart()

    def pick(self, clock: int, positions: Sequence[int]) -> int:
        """The arm that must be pulled, else the one with the highest index."""
        forced = self._algorithm.forced(self)
        if forced is not None and forced in positions:
            return forced
        return self.highest(positions, lambda position: self._algorithm.index(self, position, clock))

    def took(self, position: int, reward: float) -> None:
        """Watch for a change: it is told of, or else the observation."""
        self.n_pulled += 1
        names = self.arms.names
        if self._detectors[position].add(reward):
            for arm in names if self._algorithm.restarts_all else [names[position]]:
                self._renew(arm, self.versions.get(arm, 0) + 1, None)
        elif self.most_hops:
            message = self.observation(position, reward, self.versions.get(names[position], 0))
            self._seen.accept(message)
            self.waiting.append([[*message], self.most_hops, None])

    def _renew(self, arm: Any, version: int, sender: Any) -> None:
        """A new version of an arm, which came from a neighbour or, if None, is the agent's own."""
        self.versions[arm] = version
        self.news = [one for one in self.news if one[0] != arm] + [[arm, sender]]
        position = self.position_of(arm)
        if position is None:
            return
        self.estimates.put(position, 0, 0.0)
        self._detectors[position].restart()
        self.began[position] = self.place.now()
        if self._algorithm.restarts_all:
            self.n_pulled = 0

    def send(self, neighbours: Sequence[Any]) -> list[Parcel]:
        """New versions, then observations, the newest first; neither to the neighbour that it came from."""
        parcels = [
            self.note(one, RESTART, arm, (self.versions[arm],))
            for arm, sender in self.news
            for one in neighbours
            if one != sender
        ]
        for fields, ttl, sender in reversed(self.waiting):
            message = Message(*fields)
            if message.life >= self.versions.get(message.arm, 0):
                targets = [one for one in neighbours if one != sender]
                parcels.append(Parcel(Copy(message, ttl), targets))
        self.drop()
        return parcels

    def take(self, note: Note, sender: Any) -> bool:
        """A version of an arm; the highest counts."""
        version = int(note.values[0])
        if version <= self.versions.get(note.arm, 0):
            return False
        self._renew(note.arm, version, sender)
        return True

    def hear_pull(self, message: Message, ttl: int, sender: Any) -> Receipt:
        """An observation counts, and is passed on, unless its version is older."""
        if not self._seen.accept(message):
            return DUPLICATE
        arm, version = message.arm, message.life
        if version < self.versions.get(arm, 0):
            return RECEIPTS[Fate.STOPPED][False]
        if version > self.versions.get(arm, 0):
            self._renew(arm, version, sender)
        position = self.position_of(arm)
        if position is not None:
            self.estimates.add(position, 1, message.total)
        if ttl == 1:
            return RECEIPTS[Fate.EXPIRED][position is not None]
        self.waiting.append([[*message], ttl - 1, sender])
        return RECEIPTS[Fate.RELAYED][position is not None]

    def drop(self) -> None:
        """What waits to be sent is gone."""
        self.waiting, self.news = [], []

    @property
    def state(self) -> dict[str, Any]:
        """All that changes."""
        return super().state | {
            "versions": [[arm, version] for arm, version in self.versions.items()],
            "detectors": [detector.state for detector in self._detectors],
            "seen": self._seen.state,
        }

    @state.setter
    def state(self, value: dict[str, Any]) -> None:
        vars(Actor)["state"].fset(self, value)
        self.versions = dict(value["versions"])
        for detector, one in zip(self._detectors, value["detectors"], strict=True):
            detector.state = list(one)
        self._seen.state = value["seen"]
