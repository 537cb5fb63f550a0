"""What a node writes into its decision log: each choice, and what became of it once that is durable."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .config import NodeConfig
from .disk.decisions import DecisionLog, shortened
from .member import COUNTED, WITHDRAWN, Answer, NodeChoice, Observation, Ticket
from .names import split_agent, split_arm


class Decided:
    """The decision log of a node whose configuration names a file for it.

    Attributes
    ----------
    log : DecisionLog
        Writes the lines.
    """

    def __init__(self, config: NodeConfig, clock: Callable[[], float]) -> None:
        assert config.decisions is not None
        self.log = DecisionLog(config.decisions, config.decisions_bytes, config.decisions_files)
        self._node = config.node
        self._clock = clock

    def chosen(self, choice: NodeChoice, arms: Sequence[str]) -> None:
        """Add a line for a choice among these arms."""
        self._add("choice", choice.ticket, choice.ticket.arm, arms=list(arms), probability=choice.probability)

    def observed(self, observations: Sequence[Observation], answers: Sequence[Answer]) -> None:
        """Add a line for each reward and withdrawal that was just stored."""
        for one, answer in zip(observations, answers, strict=True):
            arm = one.arm or "" if one.ticket is None else one.ticket.arm
            if answer.outcome == COUNTED:
                self._add("reward", one.ticket, arm, reward=float(one.reward), lapsed=one.lapses)
            elif answer.outcome == WITHDRAWN:
                self._add("withdrawal", one.ticket, arm)

    def warning(self) -> list[str]:
        """A warning, if lines cannot be written."""
        trouble = self.log.trouble
        return [f"decisions cannot be written to {self.log.path}: {trouble}"] if trouble else []

    def close(self) -> None:
        """Write what waits, if that does not take long, and end."""
        self.log.close()

    def _add(self, kind: str, ticket: Ticket | None, name: str, **more: object) -> None:
        """Add a line about an arm, by its name in statistics."""
        agent, arm = split_arm(name)
        bandit, segment = split_agent(agent)
        line = {"kind": kind, "time": self._clock(), "node": self._node, "arm": arm, **more}
        line |= {"bandit": bandit, "segment": segment or None}
        self.log.add(line | {"ticket": None if ticket is None else shortened(ticket)})
