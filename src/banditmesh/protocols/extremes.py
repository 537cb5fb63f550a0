"""The two ends of the scale: agents that never hear each other, and agents that hear everything at once."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from .base import STOP, Protocol


@dataclass(frozen=True)
class NoCooperation(Protocol):
    """Nothing is ever sent: every agent learns from its own pulls alone.

    Examples
    --------
    >>> import banditmesh as bm
    >>> bm.NoCooperation().ttl
    0
    """

    ttl: int = field(default=0, init=False, repr=False)
    name: ClassVar[str] = "none"

    def __post_init__(self) -> None:
        # The ttl is 0 and cannot be set.
        self._check_emission()

    @staticmethod
    def relay(has_arm: bool, ttl: int, degree: int, u: float, parameter: float) -> int:
        """Never asked: no message exists."""
        return STOP


@dataclass(frozen=True)
class Centralised(NoCooperation):
    """A ceiling that no protocol can pass: every agent with the arm hears every observation at the end of its round.

    Not in the paper. The network plays no part, and no traffic is counted.

    Examples
    --------
    >>> import banditmesh as bm
    >>> bm.Centralised().central
    True
    """

    name: ClassVar[str] = "centralised"
    central: ClassVar[bool] = True
