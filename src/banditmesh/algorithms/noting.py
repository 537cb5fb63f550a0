"""An agent of the core whose courier also takes notes: for algorithms that send observations and something else."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

from .. import checks
from ..core import Agent, Copy, Courier, Note, Receipt
from ..errors import MessageError


class NoteTaker(Courier):
    """A courier to which notes of one kind come, each with one number; `receive` hands them to `take`."""

    kind: ClassVar[str]

    @abstractmethod
    def take(self, agent: Agent, note: Note, sender: Any) -> Receipt:
        """What becomes of a note that came from `sender`."""


class NotedAgent(Agent):
    """The core's agent, whose courier is a `NoteTaker`."""

    _courier: Any

    def check(self, copy: Copy) -> None:
        """Refuse a message or a note that no agent may send."""
        note = copy[0] if isinstance(copy, tuple) and len(copy) == 2 else None
        if not isinstance(note, Note):
            super().check(copy)
            return
        is_kind = note.kind == self._courier.kind and len(note.values) == 1
        if not (is_kind and checks.is_hashable((note.arm, note.values))):
            raise MessageError(
                f"agent {self.name!r} takes notes of {self._courier.kind!r} with one number, got {checks.shown(note)}"
            )
