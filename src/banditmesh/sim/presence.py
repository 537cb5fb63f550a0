"""Which agents are up: an on-off chain for each agent, stepped at the beginning of every round."""

from __future__ import annotations

from collections.abc import Sequence

from ..core import Agent
from ..draws import OUTAGE, Draws
from ..faults import Faults, is_up


class Presence:
    """The agents that are up, round by round; all of them for ever without outages.

    Parameters
    ----------
    faults : Faults or None
    draws : Draws
        The replicate's randomness.
    agents : sequence of Agent
        Those who go down, in the order of their numbers.
    """

    def __init__(self, faults: Faults | None, draws: Draws, agents: Sequence[Agent]) -> None:
        self._outages = None if faults is None else faults.outages
        self._draws = draws
        self._agents = agents
        #: Whether each agent is up in the round under way.
        self.up = [True] * len(agents)

    def begin(self, t: int) -> None:
        """Round `t` begins: some agents go down, others come back."""
        if self._outages is None:
            return
        for agent in self._agents:
            was_up = self.up[agent.name]
            u = self._draws.uniform(OUTAGE, agent.name, t)
            self.up[agent.name] = is_up(was_up, u, self._outages.down, self._outages.up)
            if was_up and not self.up[agent.name]:
                agent.drop()
            elif self.up[agent.name] and not was_up and not self._outages.memory:
                agent.restart()
