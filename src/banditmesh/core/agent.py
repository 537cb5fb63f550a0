"""An agent: a policy, estimates and a courier as one state machine without I/O.

Events go in, effects come out; whoever drives the agent (a simulator, a live node, a test) does the rest:

    begin(t)                         round t begins: before anything else, and also to an agent that is down
    choose(clock)                    -> which arm to pull
    observe(position, reward)        a reward came; it counts at once, and may become a message
    send(neighbours)                 -> what to send now, and where; nothing waits after it
    receive(copy, sender, degree)    -> what became of a copy that came
    settle()                         what was heard enters the estimates
    learn(parts)                     what a driver that keeps others' counts and sums itself found new in them

The calls may come in any order: rewards late, out of order, or for arms that another caller chose; any number of
choices may be open. A driver without rounds never calls `begin`, and its agents forget nothing. An illegal call is an
`InputError` that names it; a copy that no agent may send is a `MessageError`; neither changes anything.

Rules kept here, and nowhere else: an arm that was neither chosen nor observed here comes first, in the order of the
arm set, unless the policy's first pulls are of unknown arms; then an arm of which nothing is known, the least often
chosen first; then the policy is asked. What was heard is added in ascending (origin, id), whatever paths it took and
whenever it came. What counts for how much, and that of statistics the largest of each origin and arm counts, is the
memory's to say: see `policies/memory.py`.
"""

from __future__ import annotations

import copy as copying
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any, NamedTuple

from .. import checks
from ..errors import InputError, MessageError
from ..policies.base import Arms, Chooser, Estimates, Policy, Source
from ..policies.memory import MAX_PULLS, MAX_TOLD
from ..protocols.courier import Courier
from ..protocols.messages import Copy, Message, Parcel, Receipt
from ..protocols.relaying import Chances
from .trimming import Trimmed


class Choice(NamedTuple):
    """An arm to pull, by its position in the arm set, and whether it seemed the best one when it was chosen."""

    position: int
    was_best: bool


class Agent:
    """One agent.

    Parameters
    ----------
    name : hashable
        What its messages call it.
    arms : Arms
        The arms that it may pull, in the order of its first pulls, and what policies may know of them.
    policy : Policy
        How it chooses.
    courier : Courier
        How it sends and receives; `Silent`, `Relaying` or `Merging`.
    chances : Chances
        What a policy draws from.
    age_of : callable, optional
        How many rounds ago a message was made, for a chooser that asks; None where that is unknown.
    trim : int
        How many liars its estimates are to withstand, see `core/trimming.py`; 0 to believe all that it hears.

    Attributes
    ----------
    estimates : Estimates
        What it knows of its arms, by position: its own observations and what it heard.
    recall : Recall
        All that it keeps by its policy's memory: the estimates, its own statistics, others' statistics, and the round.
    own_count : list of int
        The number of its own observations, by position: no memory forgets that.
    chooser : Chooser
        What the policy keeps for this agent.
    life : int
        How often it has restarted.
    pulled_in : int
        The round of the pull whose reward was observed last; 0 for a driver without rounds.

    Examples
    --------
    >>> import banditmesh as bm
    >>> from banditmesh.core import Place
    >>> from banditmesh.policies import Arms
    >>> protocol, arms = bm.FwA(ttl=2), Arms.gaussian(["red", "blue"], sigma=1.0)
    >>> alice, bob = (protocol.seat(Place(name, arms, bm.UCB())) for name in ("alice", "bob"))
    >>> choice = alice.choose(clock=1)
    >>> alice.observe(choice.position, reward=0.5)
    >>> [parcel] = alice.send(neighbours=["bob"])
    >>> parcel.copy.message, list(parcel.targets)
    (Message(origin='alice', id=0, arm='red', n_pulls=1, total=0.5, life=0, round=0), ['bob'])
    >>> bob.receive(parcel.copy, sender="alice", degree=1)
    Receipt(fate=<Fate.ABSORBED: 1>, heard=True)
    >>> bob.receive(parcel.copy, sender="alice", degree=1).fate.name
    'DUPLICATE'
    >>> bob.settle()
    [True]
    >>> bob.estimates.count, bob.estimates.mean
    ([1, 0], [0.5, 0.0])
    """

    def __init__(
        self,
        name: Any,
        arms: Arms,
        policy: Policy,
        courier: Courier,
        chances: Chances | None,
        age_of: Callable[[Message], int | None] = lambda message: None,
        trim: int = 0,
    ) -> None:
        self.name = name
        self.arms = arms
        self.life = 0
        self._policy = policy
        self._courier = courier
        self._chances = chances
        self._age_of = age_of
        self._trim = trim
        self._position = {arm: position for position, arm in enumerate(arms.names)}
        self._start()

    def _start(self) -> None:
        n_arms = len(self.arms.names)
        self.chooser = self._policy.chooser(self.arms)
        self.chooser.agent = self.name
        #: Whether the chooser asks where what it hears comes from, and whether it asks what it hears at all.
        kind = type(self.chooser)
        self._asks_source = kind.hear_from is not Chooser.hear_from
        self._listens = self._asks_source or kind.hear is not Chooser.hear
        self.recall = self._policy.memory.recall(self.arms)
        self.estimates = self.recall.estimates
        self._trimmed: Trimmed | None = None
        if self._trim:
            names, unit = self.arms.names, self._policy.memory.unit_in
            self._trimmed = Trimmed(self.recall, self.name, names, self._trim, lambda: unit(self.recall.round))
            self.estimates = self._trimmed.estimates
        self.own_count = [0] * n_arms
        self._n_chosen = [0] * n_arms
        #: Arms that were neither chosen nor observed, in the order of the arm set.
        self._untried = list(range(n_arms))
        self._heard: list[Message] = []
        self.pulled_in = 0

    def restart(self) -> None:
        """Begin another life with nothing: all that was observed, heard, told, seen and queued is forgotten.

        Messages that it makes afterwards count its pulls from zero again. Others, who keep the larger count, learn
        nothing from them until they count more than what was told before.
        """
        self.life += 1
        now = self.recall.round
        self._start()
        self.recall.begin(now)
        self._courier.restart()

    def resume(self, own_count: Sequence[int], n_chosen: Sequence[int]) -> None:
        """Go on from how often each arm was observed and chosen, by position, where a driver keeps that."""
        self.own_count, self._n_chosen = [*own_count], [*n_chosen]
        counts = enumerate(zip(own_count, n_chosen, strict=True))
        self._untried = [position for position, (own, chosen) in counts if not own and not chosen]

    def begin(self, t: int) -> None:
        """Round `t` begins, from 1 on: what is remembered gets older, also while the agent is down."""
        if not t > self.recall.round:
            raise InputError(f"agent {self.name!r} is in round {self.recall.round}, got round {checks.shown(t)}")
        factor = self.recall.begin(t)
        if factor != 1:
            self._courier.fade(self, factor)
        if self._trimmed is not None and self._policy.memory.forgets:
            self._trimmed.update_all()

    def has(self, arm: Any) -> bool:
        """Whether the agent may pull that arm."""
        return arm in self._position

    def own(self, arm: Any) -> tuple[Any, float]:
        """Its own statistic of an arm, weight and sum; nothing of one that it does not have."""
        if arm not in self._position:
            return 0, 0.0
        position = self._position[arm]
        return self.recall.own_weight[position], self.recall.own_total[position]

    def choose(self, clock: int, among: Collection[int] | None = None) -> Choice:
        """Choose an arm to pull.

        Parameters
        ----------
        clock : int
            What the policy's clock reads, from 1: the round, or how many choices there have been.
        among : collection of int, optional
            The positions of the arms that may be pulled now; all unless given.
        """
        positions = range(len(self.arms.names)) if among is None else self._checked(among, "among", n_least=1)
        first = self.first_pull(positions)
        choice = self.preferred(clock, positions, self.estimates) if first is None else Choice(first, False)
        self.chose(choice.position)
        return choice

    def first_pull(self, positions: Sequence[int], in_flight: Collection[int] = ()) -> int | None:
        """Which of these arms is pulled before the policy is asked, if one is; nothing changes.

        An arm `in_flight`, whose reward is still waited for, is not taken for an unknown one.
        """
        for position in self._forced:
            if position in positions:
                return position
        count = self.estimates.count
        if 0 not in count:
            return None
        unknown = [position for position in positions if not count[position] and position not in in_flight]
        return min(unknown, key=lambda position: self._n_chosen[position]) if unknown else None

    def preferred(self, clock: int, positions: Sequence[int], estimates: Estimates) -> Choice:
        """What the policy chooses, by these estimates of all of the agent's arms; nothing changes."""
        draw = self._draw
        age = self._policy.memory.age(clock)
        if len(positions) == len(estimates):
            place = self.chooser.choose(age, estimates, draw)
        else:
            estimates = estimates.part(positions)
            place = self.chooser.choose(age, estimates, lambda place: draw(positions[place]))
        if not (isinstance(place, int) and 0 <= place < len(positions)):
            raise InputError(
                f"policy {self._policy.name!r} must choose one of {len(positions)} positions, got {checks.shown(place)}"
            )
        return Choice(positions[place], self._courier.asks_best and self.chooser.is_best(place, estimates))

    def chose(self, position: int) -> None:
        """An arm was chosen."""
        self._n_chosen[position] += 1
        self._tried(position)

    def seems_best(self, position: int) -> bool:
        """Whether an arm that the caller chose seems the best one, as `choose` would say of it."""
        is_known = position not in self._forced and 0 not in self.estimates.count
        return self._courier.asks_best and is_known and self.chooser.is_best(position, self.estimates)

    @property
    def _forced(self) -> list[int]:
        """The arms that are pulled before the policy is asked, whatever is known of them."""
        return self._untried if self._policy.first_pulls == "each" else []

    def _draw(self, position: int) -> float:
        assert self._chances is not None
        return self._chances.index(self.name, self.arms.names[position])

    def _tried(self, position: int) -> None:
        if self._untried and position in self._untried:
            self._untried.remove(position)

    def observe(self, position: int, reward: float, was_best: bool = False, pulled_in: int | None = None) -> None:
        """Count a reward of the agent's own; it may become a message.

        Parameters
        ----------
        position : int
            Which arm paid, by its position in the arm set, whoever chose it.
        reward : float
            What it paid.
        was_best : bool
            What `choose` said of the arm.
        pulled_in : int, optional
            The round of the pull, from which the reward's age counts; the one under way unless given.
        """
        now = self.recall.round
        if pulled_in is not None and not (type(pulled_in) is int and 1 <= pulled_in <= now):
            raise InputError(f"pulled_in must be a round from 1 to {now}, got {checks.shown(pulled_in)}")
        if not 0 <= position < len(self.own_count):
            n_arms = len(self.own_count)
            raise InputError(f"agent {self.name!r} has arms at positions 0 to {n_arms - 1}, got a reward of {position}")
        if not -MAX_TOLD <= reward <= MAX_TOLD:
            raise InputError(f"a reward must be a finite number, got {checks.shown(reward)} of agent {self.name!r}")
        self._tried(position)
        self.own_count[position] += 1
        self.pulled_in = now if pulled_in is None else pulled_in
        self.recall.observe(position, reward, self.pulled_in)
        if self._trimmed is not None:
            self._trimmed.update(position)
        self.chooser.observe(position, reward)
        self._courier.observed(self, position, reward, was_best)

    def wanted(self) -> list[int]:
        """The positions of the arms that the chooser wants others to be told of, ascending."""
        if type(self.chooser).wants_to_send is Chooser.wants_to_send:
            return []
        return self._checked(self.chooser.wants_to_send(), f"wants_to_send() of policy {self._policy.name!r}")

    def send(self, neighbours: Sequence[Any]) -> list[Parcel]:
        """What is to be sent now, and to which of these neighbours (in their order); nothing waits after it."""
        return self._courier.send(self, neighbours)

    def receive(self, copy: Copy, sender: Any, degree: int) -> Receipt:
        """What becomes of a copy that came from `sender`, when the agent has `degree` neighbours."""
        self.check(copy)
        return self._courier.receive(self, copy, sender, degree)

    @property
    def receive_checked(self) -> Callable[[Copy, Any, int], Receipt]:
        """The same of a copy that `check` has let pass, here or at another agent of the same protocol and round."""
        return partial(self._courier.receive, self)

    def check(self, copy: Copy) -> None:
        """Refuse a copy that no agent may send."""
        try:
            (origin, number, arm, count, total, life, made), ttl = copy
            hash((origin, number, arm))
            is_sound = (
                1 <= ttl <= self._courier.most_hops
                and type(ttl) is type(life) is int
                and self.recall.is_sound(count, total, made, self._courier.hears_sums)
            )
        except (TypeError, ValueError):
            is_sound = False
        if not is_sound:
            raise self._refusal(copy)

    def _refusal(self, copy: Copy) -> MessageError:
        """What is wrong with a copy: whatever a peer may have sent, it is shown and never used."""
        most = self._courier.most_hops
        message, ttl = copy if isinstance(copy, tuple) and len(copy) == 2 else (None, None)
        if not isinstance(message, tuple) or len(message) != len(Message._fields):
            return MessageError(f"agent {self.name!r} refuses {checks.shown(copy)}: it is not a copy of a message")
        origin, number, arm, count, total, life, made = message
        if not (isinstance(ttl, int) and 1 <= ttl <= most):
            wrong = f"its ttl must be between 1 and {most}, got {checks.shown(ttl)}" if most else "it is not sent any"
        elif self._policy.memory.forgets and not (type(made) is int and 1 <= made <= self.recall.round):
            wrong = f"its round must be from 1 to {self.recall.round}, got {checks.shown(made)}"
        elif self._courier.hears_sums and self._policy.memory.forgets:
            wrong = f"count and sum must be possible in round {made}, got {checks.shown((count, total))}"
        elif not (isinstance(count, int) and 1 <= count <= MAX_PULLS):
            wrong = f"its count must be an integer from 1 to {MAX_PULLS}, got {checks.shown(count)}"
        elif not all(map(checks.is_hashable, (origin, number, arm))) or type(life) is not int:
            wrong = f"its origin, id and arm must be names and its life a number, got {checks.shown(message)}"
        else:
            wrong = f"its sum must be a number of at most {MAX_TOLD:g} a pull, got {checks.shown(total)}"
        return MessageError(f"agent {self.name!r} refuses a message of {checks.shown(origin)}: {wrong}")

    def hear(self, message: Message) -> None:
        """Learn from a message, of an arm that the agent has, when it settles: whatever way it came."""
        self._heard.append(message)

    def learn(self, parts: Collection[tuple[int, int, float]]) -> None:
        """Learn, at once and in this order, of others' pulls: position, how many more, and what they add to the sum.

        For a driver that keeps what it hears by itself. A part with no more pulls corrects a sum.
        """
        self.estimates.add_all(parts)
        if self._listens:
            for position, count, total in parts:
                self.chooser.hear_from(position, count, total, Source(None, None))

    def settle(self) -> list[bool]:
        """Let what was heard enter the estimates.

        Returns
        -------
        list of bool
            For each message heard since the last time, in the order in which they came, whether it changed anything.
        """
        heard, learned = self._heard, [True] * len(self._heard)
        if heard:
            self._heard = []
            positions = self._position
            tell = self.chooser.hear if self._listens and not self._asks_source else None
            learn = self.recall.hear_sum if self._courier.hears_sums else self.recall.hear
            try:
                order = sorted(range(len(heard)), key=heard.__getitem__)
            except TypeError:
                # Names that cannot be ordered, as only a stranger would have: they enter as they came.
                order = list(range(len(heard)))
            for place in order:
                message = heard[place]
                position = positions[message.arm]
                more = learn(position, message)
                if more is not None and self._trimmed is not None:
                    self._trimmed.heard(position, message.origin)
                if more is None:
                    learned[place] = False
                elif tell is not None:
                    tell(position, *more)
                elif self._listens:
                    source = Source(message.origin, self._age_of(message))
                    self.chooser.hear_from(position, *more, source)
        self._courier.settle()
        return learned

    def drop(self) -> None:
        """What waits to be sent is gone."""
        self._courier.drop()

    def _checked(self, positions: Collection[int], what: str, n_least: int = 0) -> list[int]:
        known = range(len(self.arms.names))
        are_known = all(isinstance(position, int) and position in known for position in positions)
        if len(positions) < n_least or not are_known:
            raise InputError(
                f"{what} must name some of the positions 0 to {len(known) - 1} of agent {self.name!r}, "
                f"got {checks.shown(positions)}"
            )
        return sorted(set(positions))

    @property
    def state(self) -> dict[str, Any]:
        """All that changes, as one value of lists, texts and numbers: put it back, and the agent goes on from there."""
        return copying.deepcopy(
            {
                "life": self.life,
                "recall": self.recall.state,
                "own_count": self.own_count,
                "n_chosen": self._n_chosen,
                "untried": self._untried,
                "heard": [[*message] for message in self._heard],
                "chooser": self.chooser.state,
                "courier": self._courier.state,
            }
        )

    @state.setter
    def state(self, value: dict[str, Any]) -> None:
        value = copying.deepcopy(value)
        self.life = value["life"]
        self.recall.state = value["recall"]
        self.own_count = value["own_count"]
        self._n_chosen, self._untried = value["n_chosen"], value["untried"]
        self._heard = [Message(*message) for message in value["heard"]]
        self.chooser.state = value["chooser"]
        self._courier.state = value["courier"]
        if self._trimmed is not None:
            self._trimmed.restore()
