"""Flooding, and two relatives: a single hop, and random stops.

Section 3 of the paper. Every receiver uses the observation if it has the arm, and relays while the ttl lasts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .. import checks
from ..errors import InputError
from .base import Facts, Protocol
from .relaying import RELAY, STOP


@dataclass(frozen=True)
class Flooding(Protocol):
    """Every agent relays every message to all neighbours while its ttl lasts.

    Parameters
    ----------
    ttl : int
        How many hops a message may travel.
    emission : Emission
        When an agent sends, and what.

    Examples
    --------
    >>> import banditmesh as bm
    >>> bm.Flooding(4).ttl
    4
    """

    name: ClassVar[str] = "flooding"

    @property
    def facts(self) -> Facts:
        """All agents pass everything on."""
        return Facts(hops=self.ttl)

    @staticmethod
    def relay(has_arm: bool, ttl: int, degree: int, u: float, parameter: float) -> int:
        """Always relay."""
        return RELAY


@dataclass(frozen=True)
class ProbabilisticFlooding(Flooding):
    """Flooding in which each receiver stops a message with a fixed probability.

    Parameters
    ----------
    ttl : int
        How many hops a message may travel.
    stop : float
        The probability that a receiver does not relay.
    emission : Emission
        When an agent sends, and what.

    Examples
    --------
    >>> import banditmesh as bm
    >>> bm.ProbabilisticFlooding(4, stop=0.5).stop
    0.5
    """

    stop: float = 0.5
    name: ClassVar[str] = "probabilistic"
    random: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "stop", checks.probability("stop", self.stop))

    @property
    def facts(self) -> Facts:
        """Each agent passes on with the same chance."""
        return Facts(hops=self.ttl, passes=1.0 - self.stop)

    @property
    def parameter(self) -> float:
        """The stopping probability."""
        return self.stop

    @staticmethod
    def relay(has_arm: bool, ttl: int, degree: int, u: float, parameter: float) -> int:
        """Stop with the given probability, else relay."""
        return STOP if u < parameter else RELAY


@dataclass(frozen=True)
class InstantRewardSharing(Flooding):
    """Flooding with a ttl of 1: an agent tells its neighbours what it sees, and no agent relays.

    Examples
    --------
    >>> import banditmesh as bm
    >>> bm.IRS().ttl
    1
    """

    ttl: int = 1
    name: ClassVar[str] = "irs"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.ttl != 1:
            raise InputError(
                f"must be 1 for InstantRewardSharing, got {self.ttl}; use Flooding({self.ttl}) for more hops",
                key="ttl",
            )
