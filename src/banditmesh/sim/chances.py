"""What the simulator hands to agents: chances and ids, all keyed by the round."""

from __future__ import annotations

from collections.abc import Sequence

from .. import draws as purposes
from ..core import LinkId, Message, Note
from ..draws import Draws, pick_targets


class RoundChances:
    """The chances of all agents of a replicate.

    The driver keeps `now`, the round under way, and `pulled_in`, the round of the pull whose reward is observed, if it
    is another one.

    Parameters
    ----------
    draws : Draws
        The replicate's randomness.
    """

    def __init__(self, draws: Draws) -> None:
        self.now = 0
        self.pulled_in: int | None = None
        self._draws = draws

    def index(self, agent: int, arm: int) -> float:
        """A number in (0, 1) for a policy that draws."""
        return self._draws.uniform(purposes.INDEX, agent, self.now, arm)

    def relay(self, message: Message, agent: int, ttl: int) -> float:
        """A number in (0, 1) for a relay rule that draws, when that many hops remain."""
        return self._draws.uniform(purposes.STOP, message.origin, sequence_of(message), agent, ttl)

    def targets(self, message: Message, agent: int, ttl: int, candidates: Sequence[int], n: int) -> Sequence[int]:
        """`n` of the candidates, or all if there are no more."""
        k0, k1 = self._draws.key(purposes.TARGET)
        return pick_targets(k0, k1, message.origin, sequence_of(message), agent, ttl, candidates, n)

    def this_round(self) -> int:
        """The round under way."""
        return self.now

    def new_id(self) -> int:
        """The id of a message that is relayed: the round of the pull that it is made after. It makes at most one."""
        return self.now if self.pulled_in is None else self.pulled_in

    def age_of(self, message: Message) -> int | None:
        """How many rounds ago a message that is relayed was made; unknown of one that goes over one link alone."""
        # A statistic is made when it is sent, and an observation when its arm is pulled.
        return None if isinstance(message.id, LinkId) else self.now - (message.round or message.id)


def sequence_of(message: Message | Note) -> int:
    """The number that stands for a message in draws; together with origin, sender and receiver it is unique."""
    number: int = message.id.number if isinstance(message.id, LinkId) else message.id
    return number
