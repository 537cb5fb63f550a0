"""What a courier is: the part of an agent that depends on how its protocol delivers.

An agent chooses, observes and learns; its courier decides what is sent where, and what becomes of what comes. A
courier has a state of its own, a plain value that can be read and put back, and is told by its agent what happens:

    fade(agent, factor)          a round begins: what was told of statistics is worth so much of what it was
    observed(agent, position, reward, was_best)   the agent has counted a reward of its own
    send(agent, neighbours)      -> the parcels to send now
    receive(agent, copy, sender, degree) -> what becomes of a copy; what the agent should learn goes to `agent.hear`
    settle()                     everything that came has been learned
    drop()                       what waits to be sent is gone
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .messages import Copy, Parcel, Receipt

if TYPE_CHECKING:
    from ..core.agent import Agent


class Courier(ABC):
    """The base of all couriers.

    Attributes
    ----------
    most_hops : int
        The highest ttl of a copy that may come; 0 if none may.
    hears_sums : bool
        Whether what comes holds an origin's count and sum so far, of which the largest count is the latest.
    asks_best : bool
        Whether it matters if an arm seemed the best one when it was chosen.
    """

    most_hops: int = 0
    hears_sums: bool = False
    asks_best: bool = False

    def observed(self, agent: Agent, position: int, reward: float, was_best: bool) -> None:  # noqa: B027 (optional)
        """The agent has counted a reward of its own."""

    def fade(self, agent: Agent, factor: float) -> None:  # noqa: B027 (optional)
        """A round begins, in which weights of statistics are to be multiplied by a factor below 1."""

    @abstractmethod
    def send(self, agent: Agent, neighbours: Sequence[Any]) -> list[Parcel]:
        """What is to be sent now, and to which of these neighbours."""

    @abstractmethod
    def receive(self, agent: Agent, copy: Copy, sender: Any, degree: int) -> Receipt:
        """What becomes of a copy that came from `sender`, when the agent has `degree` neighbours."""

    def settle(self) -> None:  # noqa: B027 (optional)
        """Everything that came has been learned."""

    def drop(self) -> None:  # noqa: B027 (optional)
        """What waits to be sent is gone."""

    @abstractmethod
    def restart(self) -> None:
        """Begin with nothing."""

    @property
    @abstractmethod
    def state(self) -> Any:
        """All that changes, as lists and numbers."""

    @state.setter
    @abstractmethod
    def state(self, value: Any) -> None: ...


class Silent(Courier):
    """Nothing is sent, and nothing comes: agents that do not cooperate, or that are told everything by their driver."""

    def send(self, agent: Agent, neighbours: Sequence[Any]) -> list[Parcel]:
        """Nothing."""
        return []

    def receive(self, agent: Agent, copy: Copy, sender: Any, degree: int) -> Receipt:
        """Never called: no copy has a ttl of at most 0."""
        raise AssertionError("a silent agent is not sent anything")

    def restart(self) -> None:
        """Nothing changes."""

    @property
    def state(self) -> None:
        """Nothing changes."""
        return None

    @state.setter
    def state(self, value: None) -> None:
        pass
