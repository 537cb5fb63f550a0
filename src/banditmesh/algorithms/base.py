"""What an algorithm is: a protocol that brings whole agents, which choose, send and receive by the algorithm's rules.

An algorithm is an immutable value like any protocol, and is named, written, compared and swept like one. It has no
emission, and the policy of a run is not asked: its agents choose by themselves. It says in `refuses` what it does not
work with, and why; a run with that is refused in one line before it begins.

Its agents derive from `Actor`, in which the calls of a driver arrive as a few methods to override:

    start()                   begin with nothing: at first, and in each new life
    pick(clock, positions)    which of these arms to pull
    took(position, reward)    a reward of the agent's own has been counted
    send(neighbours)          what to send now, and to which neighbours
    take(note, sender)        a note came; whether it changed what the agent knows
    over()                    the round is over
    drop()                    what waits to be sent is gone

What an actor remembers is in the attributes that it lists in `kept`: lists, texts and numbers, arrays of numbers, and
dictionaries of such.

Notes are counted in bytes: a header of 16 (origin, number, kind and the arm that it is about) and 8 for each of its
numbers. An observation, which is a header and a reward, takes the same 24 as elsewhere.
"""

from __future__ import annotations

import copy as copying
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

import numpy as np

from .. import checks
from ..core import Agent, Choice, Copy, Fate, Message, Note, Parcel, Place, Receipt, Silent
from ..errors import InputError, MessageError
from ..networks.csr import Links
from ..policies import UCB
from ..protocols import AnyProtocol, Delivery
from ..protocols.messages import RECEIPTS

if TYPE_CHECKING:
    from ..faults import Faults
    from ..problem import Problem

#: Payload of a note without numbers, and of each number, in bytes.
HEADER_BYTES: Final = 16
NUMBER_BYTES: Final = 8

#: What an algorithm may refuse, in the order in which it is looked for.
UNEQUAL: Final = "unequal arm sets"
DYNAMIC: Final = "a dynamic network"
ASYNCHRONOUS: Final = "agents that do not pull in every round"
LOSS: Final = "losses"
LATE: Final = "delays"
FULL: Final = "links with a cap"
DOWN: Final = "agents that go down"
FORGETFUL: Final = "agents that lose their memory"
CORRUPTION: Final = "corruption"
TRAITS: Final = (UNEQUAL, DYNAMIC, ASYNCHRONOUS, LOSS, LATE, FULL, DOWN, FORGETFUL, CORRUPTION)

#: Rounds are exact and common to all: for algorithms that count on it.
NOTES_ARE_EXACT: Final = MappingProxyType({CORRUPTION: "corruption changes rewards in messages, and it sends none"})


def traits(problem: Problem, every: Sequence[int], faults: Faults | None) -> Iterator[str]:
    """What of `TRAITS` a run has.

    Examples
    --------
    >>> import banditmesh as bm
    >>> list(traits(bm.Problem.paper("er", seed=0), [1, 2], bm.Faults(loss=0.1)))
    ['unequal arm sets', 'agents that do not pull in every round', 'losses']
    """
    outages = None if faults is None else faults.outages
    found = {
        UNEQUAL: bool((np.diff(problem.arm_offsets) < problem.n_arms).any()),
        DYNAMIC: problem.is_dynamic,
        ASYNCHRONOUS: any(pause > 1 for pause in every),
        LOSS: faults is not None and faults.loss > 0,
        LATE: faults is not None and bool(faults.delay or faults.jitter),
        FULL: faults is not None and faults.link_cap is not None,
        DOWN: outages is not None,
        FORGETFUL: outages is not None and not outages.memory,
        CORRUPTION: faults is not None and faults.corruption is not None,
    }
    return (trait for trait in TRAITS if found[trait])


class Standing(NamedTuple):
    """Which agent of how many one is, among those that it can reach at all."""

    number: int
    n_agents: int

    def block(self, n_arms: int) -> list[int]:
        """Its share of the arms: as many for each agent, in order, beginning again with the first after the last.

        Examples
        --------
        >>> [Standing(number, 3).block(5) for number in range(3)]
        [[0, 1], [2, 3], [4, 0]]
        """
        n_own = -(-n_arms // self.n_agents)
        return [(self.number * n_own + k) % n_arms for k in range(n_own)]


def standings(problem: Problem) -> list[Standing]:
    """Each agent's standing: every component of a static network is one by itself.

    Examples
    --------
    >>> import banditmesh as bm
    >>> problem = bm.Problem(bm.networks.Links.from_pairs(3, [(0, 2)]), [[0]] * 3, [bm.arms.Gaussian(0.0, 1.0)])
    >>> [tuple(one) for one in standings(problem)]
    [(0, 2), (0, 1), (1, 2)]
    """
    if problem.is_dynamic:
        return [Standing(number, problem.n_agents) for number in range(problem.n_agents)]
    found: dict[int, Standing] = {}
    for members, _ in components(problem):
        found |= {agent: Standing(number, len(members)) for number, agent in enumerate(members)}
    return [found[agent] for agent in range(problem.n_agents)]


def components(problem: Problem) -> list[tuple[list[int], Links]]:
    """The agents of each component of a static network, ascending, and their links among themselves.

    Examples
    --------
    >>> import banditmesh as bm
    >>> problem = bm.Problem(bm.networks.Links.from_pairs(3, [(0, 2)]), [[0]] * 3, [bm.arms.Gaussian(0.0, 1.0)])
    >>> [(members, links.n_links) for members, links in components(problem)]
    [([0, 2], 1), ([1], 0)]
    """
    whole = problem.network
    assert isinstance(whole, Links)
    parts, pairs = whole.components(), whole.pairs()
    found = []
    for part in range(int(parts.max()) + 1):
        members = np.flatnonzero(parts == part)
        inside = np.searchsorted(members, pairs[parts[pairs[:, 0]] == part])
        found.append((members.tolist(), Links.from_pairs(len(members), inside)))
    return found


@dataclass(frozen=True)
class Algorithm(AnyProtocol):
    """The base of all algorithms: a frozen dataclass with a `name` and a `seat` that gives an `Actor`.

    Attributes
    ----------
    refuses : mapping from str to str
        What it does not work with, of `TRAITS`, and why.

    Examples
    --------
    >>> import banditmesh as bm
    >>> bm.algorithms.GosInE().refuses["unequal arm sets"]
    'the arm that is recommended must be the best one for all agents'
    >>> bm.simulate(bm.Problem.paper("er", seed=0), "gosine", horizon=5)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    banditmesh.errors.InputError: 'gosine' does not work with unequal arm sets: the arm that is recommended must be ...
    """

    delivery: ClassVar[Delivery] = Delivery.OWN
    chooses: ClassVar[bool] = True
    refuses: ClassVar[Mapping[str, str]] = NOTES_ARE_EXACT

    @property
    def n_bytes(self) -> int:
        """Payload of a note without numbers; others are longer, see `size`."""
        return HEADER_BYTES

    def size(self, message: Message | Note) -> int:
        """Payload in bytes: a header, and each number of a note; an observation has one number, a statistic two."""
        if isinstance(message, Message):
            return HEADER_BYTES + NUMBER_BYTES * (1 if message.n_pulls == 1 else 2)
        return HEADER_BYTES + NUMBER_BYTES * len(message.values)

    def check_network(self, is_static: bool) -> None:
        """Refuse a network that changes, if the algorithm does."""
        if not is_static:
            self._check_trait(DYNAMIC)

    def check_run(self, problem: Problem, every: Sequence[int], faults: Faults | None) -> None:
        """Refuse what the algorithm refuses, and rewards that come late."""
        if faults is not None and faults.reward_delay:
            raise InputError(
                f"{self.name!r} does not work with late rewards: it counts on a reward in the round of its pull; "
                "leave out reward_delay, or choose a protocol"
            )
        for trait in traits(problem, every, faults):
            self._check_trait(trait)

    def _check_trait(self, trait: str) -> None:
        if trait in self.refuses:
            raise InputError(
                f"{self.name!r} does not work with {trait}: {self.refuses[trait]}; choose another problem or algorithm"
            )


class Actor(Agent):
    """An agent that chooses, sends and receives by the rules of an algorithm.

    Parameters
    ----------
    place : Place
        Where it sits.

    Attributes
    ----------
    estimates : Estimates
        What the agent itself has observed, by position in its arm set.
    kinds : tuple of str
        The kinds of notes that it takes.
    kept : tuple of str
        The attributes that make up its state.

    Examples
    --------
    An agent that pulls its arms in turn, and tells its neighbours nothing:

    >>> import banditmesh as bm
    >>> from banditmesh.core import Place
    >>> class InTurn(bm.algorithms.Actor):
    ...     def pick(self, clock, positions):
    ...         return positions[clock % len(positions)]
    >>> agent = InTurn(Place("ann", bm.policies.Arms.gaussian(["red", "blue"], sigma=1.0), bm.UCB()))
    >>> [agent.choose(clock=t).position for t in (1, 2, 3)]
    [1, 0, 1]
    """

    kinds: ClassVar[tuple[str, ...]] = ()
    kept: ClassVar[tuple[str, ...]] = ()

    def __init__(self, place: Place) -> None:
        self.place = place
        super().__init__(place.name, place.arms, UCB(), Silent(), place.chances, place.age_of)

    def _start(self) -> None:
        super()._start()
        self._n_learned = 0
        self.start()

    # What an algorithm overrides

    def start(self) -> None:
        """Begin with nothing."""

    def pick(self, clock: int, positions: Sequence[int]) -> int:
        """Which of these arms to pull, by position."""
        raise InputError(f"{type(self).__name__} must override pick(), got the one of Actor, which picks nothing")

    def took(self, position: int, reward: float) -> None:
        """A reward of the agent's own has been counted."""

    def send(self, neighbours: Sequence[Any]) -> list[Parcel]:
        """What is to be sent now, and to which of these neighbours: nothing unless overridden."""
        return []

    def take(self, note: Note, sender: Any) -> bool:
        """Whether a note of one of the agent's `kinds` changed what it knows."""
        return False

    def over(self) -> None:
        """Everything that came in this round has been taken."""

    def drop(self) -> None:
        """What waits to be sent is gone."""

    # What it may use

    def note(self, neighbour: Any, kind: str, arm: Any = None, values: Sequence[float] = ()) -> Parcel:
        """A note to one neighbour."""
        number = self.place.new_link_id(neighbour)
        return Parcel(Copy(Note(self.name, number, kind, arm, tuple(values)), 1), [neighbour])

    def notes(
        self, neighbours: Sequence[Any], kind: str, arm: Any = None, values: Sequence[float] = ()
    ) -> list[Parcel]:
        """One note to all neighbours, if there are any; at most one a round."""
        note = Note(self.name, self.place.new_id(), kind, arm, tuple(values))
        return [Parcel(Copy(note, 1), list(neighbours))] if neighbours else []

    def position_of(self, arm: Any) -> int | None:
        """Where an arm is in the agent's arm set; None if it is not there."""
        return self._position.get(arm)

    def draw_neighbours(self, neighbours: Sequence[Any], n: int = 1) -> Sequence[Any]:
        """Some of these neighbours, drawn for this round; all if there are no more."""
        assert self._chances is not None
        return self._chances.targets(self._key(self.place.new_id()), self.name, 1, neighbours, n)

    def draw_uniform(self, number: int) -> float:
        """A number in (0, 1) for the agent's decision of that number."""
        assert self._chances is not None
        return self._chances.relay(self._key(number), self.name, 0)

    def _key(self, number: int) -> Message:
        return Message(self.name, number, None, 0, 0.0)

    # What a driver calls

    def choose(self, clock: int, among: Collection[int] | None = None) -> Choice:
        """Choose an arm to pull, as the core's agent."""
        positions = range(len(self.arms.names)) if among is None else self._checked(among, "among", n_least=1)
        position = self.pick(max(clock, 1), positions)
        if position not in positions:
            raise InputError(f"agent {self.name!r} must pick one of {list(positions)}, got {checks.shown(position)}")
        return Choice(position, False)

    def observe(self, position: int, reward: float, was_best: bool = False, pulled_in: int | None = None) -> None:
        """Count a reward of the agent's own."""
        super().observe(position, reward, was_best, pulled_in)
        self.took(position, reward)

    def receive(self, copy: Copy, sender: Any, degree: int) -> Receipt:
        """Take a note that came; it is absorbed."""
        note = copy[0] if isinstance(copy, tuple) and len(copy) == 2 else None
        if not isinstance(note, Note) or note.kind not in self.kinds:
            kinds = ", ".join(self.kinds) or "nothing"
            raise MessageError(f"agent {self.name!r} takes notes of {kinds}, got {checks.shown(copy)}")
        learned = self.take(note, sender)
        self._n_learned += learned
        return RECEIPTS[Fate.ABSORBED][learned]

    def settle(self) -> list[bool]:
        """The round is over: everything that the agent took changed what it knows at once."""
        learned, self._n_learned = [True] * self._n_learned, 0
        self.over()
        return learned

    @property
    def state(self) -> dict[str, Any]:
        """All that changes: put it back, and the agent goes on from there."""
        return super().state | {"kept": {name: _plain(getattr(self, name)) for name in self.kept}}

    @state.setter
    def state(self, value: dict[str, Any]) -> None:
        vars(Agent)["state"].fset(self, value)
        for name, plain in copying.deepcopy(value["kept"]).items():
            before = getattr(self, name)
            if isinstance(before, np.ndarray):
                setattr(self, name, np.array(plain, dtype=before.dtype))
            else:
                setattr(self, name, dict(plain) if isinstance(before, dict) else plain)


def _plain(value: Any) -> Any:
    """Arrays as lists, and dictionaries as lists of pairs, since not all keys are texts."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, dict):
        return [[key, _plain(one)] for key, one in value.items()]
    return copying.deepcopy(value)
