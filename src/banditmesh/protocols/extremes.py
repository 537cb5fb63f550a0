"""The two ends of the scale: agents that never hear each other, and agents that hear everything at once."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from typing import ClassVar

from .base import AnyProtocol, Delivery, Facts
from .emission import Emission, EveryPull


@dataclass(frozen=True)
class NoCooperation(AnyProtocol):
    """Nothing is ever sent: every agent learns from its own pulls alone.

    Examples
    --------
    >>> import banditmesh as bm
    >>> bm.NoCooperation().sends_messages
    False
    """

    _: KW_ONLY
    emission: Emission = field(default_factory=EveryPull)

    name: ClassVar[str] = "none"
    delivery: ClassVar[Delivery] = Delivery.NOTHING

    @property
    def facts(self) -> Facts:
        """Nothing travels."""
        return Facts(hops=0)


@dataclass(frozen=True)
class Centralised(AnyProtocol):
    """A ceiling that no protocol can pass: every agent with the arm hears every observation at the end of its round.

    Not in the paper. The network plays no part, and no traffic is counted.

    Examples
    --------
    >>> import banditmesh as bm
    >>> bm.Centralised().delivery
    <Delivery.EVERYONE: 'everyone'>
    """

    _: KW_ONLY
    emission: Emission = field(default_factory=EveryPull)

    name: ClassVar[str] = "centralised"
    delivery: ClassVar[Delivery] = Delivery.EVERYONE

    @property
    def facts(self) -> Facts:
        """All agents hear everything."""
        return Facts(hops=0, central=True)
