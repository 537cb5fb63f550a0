"""A place in the network: what a driver hands to a protocol, which seats an agent there."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ..policies.base import Arms, Policy
from ..protocols.courier import Courier
from ..protocols.messages import Message
from ..protocols.relaying import AllIds, Chances, Seen
from ..rules import SOUND, Rules
from .agent import Agent


class LinkId(NamedTuple):
    """The id of a message that goes over one link alone: its number among those to that neighbour."""

    number: int
    neighbour: Any


def link_ids() -> Callable[[Any], LinkId]:
    """Ids for one sender. They continue when it restarts, so that no new message has the id of an old one."""
    numbers: Counter[Any] = Counter()

    def new_id(neighbour: Any) -> LinkId:
        numbers[neighbour] += 1
        return LinkId(numbers[neighbour], neighbour)

    return new_id


@dataclass(frozen=True, eq=False)
class Place:
    """Where one agent sits, and what it cannot decide by itself.

    Attributes
    ----------
    name : hashable
        What the agent is called; its neighbours are named likewise.
    arms : Arms
        The arms that it may pull.
    policy : Policy
        How it chooses.
    chances : Chances or None
        Random choices; None where nothing is drawn.
    rules : Rules
        The rule set.
    number, n_agents : int
        Which agent of how many it is.
    plan : object
        What the protocol's `plan` gave.
    now : callable
        The round under way.
    new_id : callable
        Gives the id of the next message that the agent makes.
    new_link_id : callable
        Gives the id of the next message to a neighbour, for messages that go over one link alone.
    seen : callable
        Gives a memory of messages with a given ttl.
    age_of : callable
        How many rounds ago a message was made; None where that is unknown.
    trim : int
        How many liars the agent is to withstand, see `core/trimming.py`; 0 to believe all that it hears.

    Examples
    --------
    >>> import banditmesh as bm
    >>> from banditmesh.core import Place
    >>> place = Place("alice", bm.policies.Arms.gaussian(["red", "blue"], sigma=1.0), bm.UCB())
    >>> bm.FwA(ttl=2).seat(place).choose(clock=1)
    Choice(position=0, was_best=False)
    """

    name: Any
    arms: Arms
    policy: Policy
    chances: Chances | None = None
    rules: Rules = SOUND
    number: int = 0
    n_agents: int = 1
    plan: Any = None
    now: Callable[[], int] = lambda: 0
    new_id: Callable[[], Any] = field(default_factory=lambda: itertools.count().__next__)
    new_link_id: Callable[[Any], Any] = field(default_factory=link_ids)
    seen: Callable[[int], Seen] = lambda ttl: AllIds()
    age_of: Callable[[Message], int | None] = lambda message: None
    trim: int = 0

    def agent(self, courier: Courier) -> Agent:
        """The core's agent, with a courier."""
        return Agent(self.name, self.arms, self.policy, courier, self.chances, self.age_of, self.trim)
