"""Rewards that are under way: pulled in one round, observed in a later one or never.

A reward that is d rounds late is observed d rounds after its pull, when the agent has chosen in that round: it can
decide a choice from the next round on. An agent observes its oldest pull first. A reward is never observed if its agent
is down when it comes or has lost its memory since the pull, or if the horizon comes first.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import NamedTuple

from ..core import Agent
from ..delays import Delay
from ..draws import LATE, Draws


class Pull(NamedTuple):
    """A pull, what it paid, and whether its arm seemed the best one when it was chosen."""

    agent: Agent
    position: int
    reward: float
    was_best: bool
    round: int
    life: int


_NUMBER = attrgetter("agent.name")


class LateRewards:
    """All rewards that are under way in a replicate.

    Parameters
    ----------
    laws : sequence of sequence of Delay
        By agent and position, the law of the rewards' delays.
    draws : Draws
        The replicate's randomness.
    up : sequence of bool
        Which agents are up in the round under way; the caller keeps it up to date.
    """

    def __init__(self, laws: Sequence[Sequence[Delay]], draws: Draws, up: Sequence[bool]) -> None:
        self._laws = laws
        self._draws = draws
        self._up = up
        self._due: defaultdict[int, list[Pull]] = defaultdict(list)

    def add(self, pull: Pull) -> None:
        """An agent has pulled, in the round under way."""
        number, t = pull.agent.name, pull.round
        late = self._laws[number][pull.position].rounds(t, self._draws.uniform(LATE, number, t))
        if late is not None:
            self._due[t + late].append(pull)

    def due(self, t: int) -> Iterator[Pull]:
        """What is observed in round `t`: agents in ascending order, each one's oldest pull first."""
        for pull in sorted(self._due.pop(t, ()), key=_NUMBER):
            if self._up[pull.agent.name] and pull.life == pull.agent.life:
                yield pull
