"""What a memory is: how much an observation still counts, the other half of a policy.

An observation's weight is fixed where and when it is made, as a number that grows with the round. What travels, waits,
is merged or arrives late never has to be weighed again; only reading divides by the weight of today. So of two
statistics of an origin the larger still wins, sums still add, and agents that know the same observations have the same
estimates, whatever way they came.

A memory is an immutable value. What one agent keeps by it is its `Recall`: the estimates, its own observations of each
arm, and what others said of theirs. It is told which round begins before anything else happens in that round.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, Final

from .estimates import Arms, Estimates

if TYPE_CHECKING:
    from ..protocols.messages import Message

#: The most pulls that a message may count, and the largest reward that it may tell of: their sums, and those of their
#: squares, stay finite.
MAX_PULLS: Final = 2**53 - 1
MAX_TOLD: Final = 1e120


class Recall:
    """What one agent keeps, by a memory that forgets nothing; other memories derive from it.

    Parameters
    ----------
    arms : Arms
        The agent's arms.

    Attributes
    ----------
    round : int
        The round under way; 0 if none has begun.
    estimates : Estimates
        What is known of the arms, by position.
    own_weight, own_total : list
        What its own observations weigh in all, and the sum of their weighted rewards, by position: its statistics.
    known : dict
        By origin and arm, what was last heard of a statistic of that origin.
    """

    def __init__(self, arms: Arms) -> None:
        self.round = 0
        self.estimates = self._estimates(arms)
        self.own_weight: list[Any] = [0] * len(arms.names)
        self.own_total = [0.0] * len(arms.names)
        self.known: dict[tuple[Any, Any], tuple[Any, ...]] = {}

    def _estimates(self, arms: Arms) -> Estimates:
        return Estimates(list(arms.sigmas), list(arms.laws))

    def begin(self, t: int) -> float:
        """Round `t` begins; what weights of statistics that were told before are to be multiplied by."""
        self.round = t
        return 1

    def observe(self, position: int, reward: float, made: int) -> None:
        """The agent observed a reward of its own, of a pull in round `made`."""
        self.own_weight[position] += 1
        self.own_total[position] += reward
        self.estimates.add(position, 1, reward)

    def is_sound(self, count: Any, total: Any, made: Any, is_statistic: bool) -> bool:
        """Whether a message may count and sum up to that, if it was made in round `made`."""
        return type(count) is int and 1 <= count <= MAX_PULLS and -MAX_TOLD * count <= total <= MAX_TOLD * count

    def enters(self, message: Message) -> tuple[Any, float]:
        """Weight and sum of a statistic as they are in the round under way."""
        return message.n_pulls, message.total

    def faded(self, weight: Any, total: float, factor: float) -> tuple[Any, float]:
        """A statistic that a courier keeps, when weights are multiplied by a factor; a weight of 0 ends it."""
        return weight, total

    def hear(self, position: int, message: Message) -> tuple[Any, float] | None:
        """Count another agent's observation: what it adds to weight and sum; None if it no longer counts."""
        count, total = message.n_pulls, message.total
        self.estimates.add(position, count, total)
        return count, total

    def hear_sum(self, position: int, message: Message) -> tuple[Any, float] | None:
        """Count what is new in an origin's statistic: the same.

        A life that counts more takes the place of the one before.
        """
        origin, _, arm, count, total, life, _ = message
        known_count, known_total, known_life, squares, n_parts = self.known.get((origin, arm), (0, 0.0, life, 0.0, 0))
        if count <= known_count:
            return None
        more, sum_of_more = count - known_count, total - known_total
        # Only within a life is the difference of two sums that of some rewards.
        part, kept = (sum_of_more * sum_of_more / more, 1) if life == known_life else (total * total / count, 0)
        self.estimates.change(position, more, sum_of_more, part - (1 - kept) * squares, 1 - (1 - kept) * n_parts)
        self.known[origin, arm] = count, total, life, part + kept * squares, 1 + kept * n_parts
        return more, sum_of_more

    @property
    def state(self) -> dict[str, Any]:
        """All that changes, as lists, texts and numbers."""
        return {
            "round": self.round,
            "estimates": self.estimates.state,
            "own_weight": self.own_weight,
            "own_total": self.own_total,
            "known": [[*key, *value] for key, value in self.known.items()],
        }

    @state.setter
    def state(self, value: dict[str, Any]) -> None:
        self.round = value["round"]
        self.own_weight, self.own_total = value["own_weight"], value["own_total"]
        self.known = {(origin, arm): tuple(known) for origin, arm, *known in value["known"]}
        self.estimates.state = value["estimates"]


@dataclass(frozen=True)
class Memory:
    """The base of all memories.

    Examples
    --------
    >>> import banditmesh as bm
    >>> [memory.age(1000) for memory in (bm.Everything(), bm.Window(500))]
    [1000, 500]
    """

    name: ClassVar[str] = "memory"
    #: Whether an observation's weight depends on its round.
    forgets: ClassVar[bool] = True
    #: Whether statistics may be merged along a tree.
    merges: ClassVar[bool] = True

    @property
    def label(self) -> str:
        """As people write it: "discount(0.995)"."""
        given = [one for one in fields(self) if getattr(self, one.name) != one.default]
        words = [f"{one.name}=" * (place > 0) + repr(getattr(self, one.name)) for place, one in enumerate(given)]
        return f"{self.name}({', '.join(words)})" if words else self.name

    def age(self, t: int) -> float:
        """What a policy's clock reads in place of round `t`."""
        raise NotImplementedError

    def unit(self, message: Message) -> float:
        """What one observation weighs in the numbers of a message."""
        return 1.0

    def unit_in(self, t: int) -> float:
        """What one observation of round `t` weighs in that round."""
        return 1.0

    def stamp(self, message: Message) -> int:
        """What tells statistics of one origin apart that are equal otherwise: for the published rules' ids."""
        return 0

    def recall(self, arms: Arms) -> Recall:
        """What one agent keeps that has these arms."""
        raise NotImplementedError


@dataclass(frozen=True)
class Everything(Memory):
    """Every observation counts for ever, and all count the same: right for arms that never change.

    Examples
    --------
    >>> import banditmesh as bm
    >>> bm.UCB().memory
    Everything()
    """

    name: ClassVar[str] = "everything"
    forgets: ClassVar[bool] = False

    def age(self, t: int) -> float:
        """The round."""
        return t

    def recall(self, arms: Arms) -> Recall:
        """Counts and sums."""
        return Recall(arms)
