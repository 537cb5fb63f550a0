"""The ledger: what a node observed itself in its present life, each reward once.

Rules kept here. A reward comes with the ticket of its choice, or of an arm and perhaps with a key of the caller's own.
The same ticket again, or one of the last 100,000 keys, is "already counted" and changes nothing, also within one
transaction. A ticket of another life, one that was never given or was edited, and one that has lapsed are refused, and
so is a reward that the arm cannot pay. A withdrawal closes its ticket and counts nothing. Nothing changes until what
`draft` says is stored and `apply` is called.

A life does not change the memory by which it has observed something: one count must not get two weights. A bandit of
which it has observed nothing yet takes another memory at once; for any other a new life must begin.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Final, NamedTuple

from ...errors import InputError
from ..disk import CallerKey, OwnArm, Stored
from ..forgetting import half_life_of, observed
from ..names import LAST_KEYS, check_name, split_agent, split_arm
from ..statistics import NOTHING, Values
from .lapses import Lapses
from .tickets import Closing, Ticket, Tickets

COUNTED: Final = "counted"
ALREADY_COUNTED: Final = "already counted"
REFUSED: Final = "refused"
WITHDRAWN: Final = "withdrawn"


class Observation(NamedTuple):
    """A reward that came: with the ticket of its choice, or of an arm, perhaps with a key of the caller's own.

    An arm may be that of a bandit, perhaps in a segment; a member takes it by the name under which it travels.

    With `withdraws` there is no reward: the ticket is closed, and nothing is counted. With `lapses` none came: the
    ticket counts as the reward that its bandit takes silence for.
    """

    reward: float
    ticket: Ticket | None = None
    arm: str | None = None
    key: str | None = None
    withdraws: bool = False
    bandit: str | None = None
    segment: str | None = None
    lapses: bool = False


class Answer(NamedTuple):
    """What became of an observation: COUNTED, ALREADY_COUNTED, WITHDRAWN, or REFUSED for a reason in one line."""

    outcome: str
    reason: str = ""


class Own:
    """What the node observed itself of an arm in this life, and how often it chose the arm."""

    __slots__ = ("n_chosen", "values")

    def __init__(self, values: Values = NOTHING, n_chosen: int = 0) -> None:
        self.values = values
        self.n_chosen = n_chosen

    @property
    def count(self) -> int:
        """How many rewards."""
        return self.values.count

    @property
    def total(self) -> float:
        """Their sum."""
        return self.values.total


def own_arm(arm: str, values: Values, told: Values, n_chosen: int) -> OwnArm:
    """What is stored of an arm: what was observed of it, and what was told."""
    return OwnArm(arm, *values[:2], *told[:2], n_chosen, *values.forgetting, *told.forgetting)


class Draft(NamedTuple):
    """What changes when observations are counted.

    Attributes
    ----------
    answers : list of Answer
        To each observation, in their order.
    counted : list of (arm, reward)
        Those that count, in their order.
    values : dict
        By arm, what has been observed of it with these.
    closing : Closing
        The tickets.
    keys : list of CallerKey
        The callers' keys.
    forgotten_keys : int
        Keys up to this number are forgotten.
    """

    answers: list[Answer]
    counted: list[tuple[str, float]]
    values: dict[str, Values]
    closing: Closing
    keys: list[CallerKey]
    forgotten_keys: int


class Ledger:
    """The ledger of one node.

    Parameters
    ----------
    ticket_lifetime : float
        How long a ticket is good for, in seconds.
    open_choices : int
        How many of the last choices can still be settled.
    check_reward : callable
        `check_reward(arm, reward, has_ticket)` is the reward, or an `InputError` if it cannot be counted.

    Attributes
    ----------
    own : dict
        By arm: what was observed, and how often it was chosen.
    tickets : Tickets
    lapses : Lapses
        The open tickets that will count even if nothing settles them.
    memories, stored_memories : dict
        By bandit: the memory by which the present life observes; and as that was last stored.
    """

    def __init__(
        self,
        ticket_lifetime: float,
        open_choices: int,
        check_reward: Callable[[str, object, bool], float],
    ) -> None:
        self.own: dict[str, Own] = {}
        self.memories: dict[str, str] = {}
        self.stored_memories: dict[str, str] = {}
        self._new_tickets = partial(Tickets, ticket_lifetime, open_choices)
        self.tickets = self._new_tickets()
        self.lapses = Lapses(ticket_lifetime, open_choices)
        self._check_reward = check_reward
        #: The last callers' keys, the oldest first, and how many there ever were.
        self._keys: deque[str] = deque()
        self._known_keys: set[str] = set()
        self._n_keys = 0

    def restore(self, stored: Stored) -> None:
        """Put back what was stored."""
        self.own = {one.arm: Own(one.values, one.n_chosen) for one in stored.own}
        self.tickets.restore(stored.starts, stored.closed, stored.ticket_book)
        self.lapses.restore(stored.open_tickets)
        self.memories = {one.bandit: one.memory for one in stored.memories}
        self.stored_memories = dict(self.memories)
        self._add_keys(sorted(stored.caller_keys, key=lambda one: one.number))

    def new_life(self) -> None:
        """Counts begin at zero, and all tickets are of another life. What was chosen and callers' keys are kept."""
        self.own = {arm: Own(n_chosen=own.n_chosen) for arm, own in self.own.items() if own.n_chosen}
        self.tickets = self._new_tickets()
        self.lapses.clear()

    def draft(self, observations: Iterable[Observation], epoch: int, n_choices: int, now: float) -> Draft:
        """What changes when these observations are counted, in a life that has made `n_choices` choices."""
        answers: list[Answer] = []
        counted: list[tuple[str, float]] = []
        values: dict[str, Values] = {}
        closing: dict[tuple[int, int], None] = {}
        keys: dict[str, int] = {}
        for reward, ticket, arm, key, withdraws, *_ in observations:
            try:
                if ticket is not None:
                    arm = ticket.arm
                    # First of all it must be of this life: only then do start and number say which one it is.
                    is_open = self._is_open(ticket, epoch, n_choices, now)
                    is_new = is_open and (ticket.start, ticket.number) not in closing
                else:
                    is_new = key is None or (check_name("key", key) not in keys and key not in self._known_keys)
                if is_new and not withdraws:
                    arm = check_name("arm", arm)
                    reward = self._check_reward(arm, reward, ticket is not None)
            except InputError as refusal:
                answers.append(Answer(REFUSED, str(refusal)))
                continue
            if not is_new or arm is None:
                answers.append(Answer(ALREADY_COUNTED))
                continue
            if ticket is not None:
                closing[ticket.start, ticket.number] = None
            elif key is not None:
                keys[key] = self._n_keys + len(keys) + 1
            if withdraws:
                answers.append(Answer(WITHDRAWN))
                continue
            before = values.get(arm) or (self.own.get(arm) or Own()).values
            half_life = self.half_life_of(arm)
            if half_life is None:
                values[arm] = Values.of(before.count + 1, before.total + reward)
            else:
                values[arm] = observed(before, reward, now, half_life)
            counted.append((arm, reward))
            answers.append(Answer(COUNTED))
        return Draft(
            answers,
            counted,
            values,
            self.tickets.closing(closing, n_choices),
            [CallerKey(number, key) for key, number in keys.items()],
            max(0, self._n_keys + len(keys) - LAST_KEYS) if keys else 0,
        )

    def _is_open(self, ticket: Ticket, epoch: int, n_choices: int, now: float) -> bool:
        """Whether a ticket is open, and not closed; an error if it can be neither."""
        _, start, number, *_ = ticket
        if ticket.epoch != epoch:
            raise InputError(f"a ticket must be from the node's present life, got {ticket} from another one")
        if not self.tickets.is_genuine(ticket):
            raise InputError(f"a ticket must be as choose() gave it, got {ticket}, which was made up or edited")
        if self.tickets.is_closed(start, number):
            if self.lapses.has_lapsed((start, number)):
                raise InputError(f"ticket {ticket} has lapsed or was already counted")
            return False
        if (start, number) in self.lapses.open:
            return True
        if not self.tickets.was_given(start, number, n_choices):
            raise InputError(f"a ticket must be one that choose() gave, got {ticket}")
        if self.tickets.has_lapsed(start, number, n_choices, now):
            raise InputError(f"ticket {ticket} has lapsed or was already counted")
        return True

    def apply(self, draft: Draft) -> None:
        """What was drafted is stored: it counts now."""
        for arm, values in draft.values.items():
            self.own_of(arm).values = values
        self.tickets.close(draft.closing)
        self._add_keys(draft.keys)

    def _add_keys(self, keys: Iterable[CallerKey]) -> None:
        for one in keys:
            self._n_keys = one.number
            self._keys.append(one.key)
            self._known_keys.add(one.key)
        while len(self._keys) > LAST_KEYS:
            self._known_keys.discard(self._keys.popleft())

    def own_of(self, arm: str) -> Own:
        """What was observed of an arm."""
        own = self.own.get(arm)
        if own is None:
            own = self.own[arm] = Own()
        return own

    # Memories

    def half_life_of(self, arm: str) -> float | None:
        """The half-life of what the present life observes of an arm; None where nothing is forgotten."""
        if not any(self.memories.values()):
            return None
        bandit, _ = split_agent(split_arm(arm)[0])
        memory = self.memories.get(bandit)
        return half_life_of(memory) if memory else None

    def use_new_memories(self, wanted: Mapping[str, str]) -> dict[str, str]:
        """Take the memories that bandits are to have, where the present life can; all that it has now."""
        self.memories |= self._new_memories(wanted)
        return dict(self.memories)

    def held_back(self, wanted: Mapping[str, str]) -> str | None:
        """A bandit that is to have another memory than the present life can take; None if there is none."""
        others = [name for name, memory in wanted.items() if self.memories.get(name, "") != memory]
        return next((name for name in others if name not in self._new_memories(wanted)), None)

    def _new_memories(self, wanted: Mapping[str, str]) -> dict[str, str]:
        changed = {name: memory for name, memory in wanted.items() if self.memories.get(name, "") != memory}
        if changed:
            used = {split_agent(split_arm(arm)[0])[0] for arm, own in self.own.items() if own.count}
            changed = {name: memory for name, memory in changed.items() if name not in used}
        return changed
