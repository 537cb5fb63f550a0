"""An agent of the core whose courier also takes notes: for algorithms that send observations and something else."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

from .. import checks
from ..core import Agent, Copy, Courier, Note, Receipt
from ..errors import MessageError


class NoteTaker(Courier):
    """A courier to which notes of one kind come, each with one number."""

    kind: ClassVar[str]

    @abstractmethod
    def take(self, agent: Agent, note: Note, sender: Any) -> Receipt:
        """What becomes of a note that came from `sender`."""


class NotedAgent(Agent):
    """The core's agent, which hands notes to its courier, a `NoteTaker`."""

    _courier: Any

    def check(self, copy: Copy) -> None:
        """Refuse a message or a note that no agent may send."""
        note = copy[0] if isinstance(copy, tuple) and len(copy) == 2 else None
        if not isinstance(note, Note):
            super().check(copy)
        elif note.kind != self._courier.kind or len(note.values) != 1 or not checks.is_hashable((note.arm, note.values)):
            raise MessageError(
                f"agent {self.name!r} takes notes of {self._courier.kind!r} with one number, got {checks.shown(note)}"
            )

    def receive_checked(self, copy: Copy, sender: Any, degree: int) -> Receipt:
        """What becomes of a copy of a message or a note."""
        is_note = isinstance(copy[0], Note)
        receipt: Receipt = (
            self._courier.take(self, copy[0], sender) if is_note else self._courier.receive(self, copy, sender, degree)
        )
        return receipt
