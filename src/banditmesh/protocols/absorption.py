"""Flooding with Absorption, the paper's protocol (Section 4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .base import Facts, Protocol
from .relaying import ABSORB, RELAY


@dataclass(frozen=True)
class FloodingWithAbsorption(Protocol):
    """An agent that has the message's arm learns and absorbs it; any other relays it while its ttl lasts.

    Parameters
    ----------
    ttl : int
        How many hops a message may travel.
    emission : Emission
        When an agent sends, and what.

    Examples
    --------
    >>> import banditmesh as bm
    >>> bm.FwA(ttl=4) == bm.FloodingWithAbsorption(4)
    True
    """

    name: ClassVar[str] = "fwa"

    @property
    def facts(self) -> Facts:
        """Holders pass nothing on."""
        return Facts(hops=self.ttl, absorbs=True)

    @staticmethod
    def relay(has_arm: bool, ttl: int, degree: int, u: float, parameter: float) -> int:
        """Absorb what can be used, relay the rest."""
        return ABSORB if has_arm else RELAY
