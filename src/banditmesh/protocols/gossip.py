"""Uniform gossip: each message goes to a few neighbours drawn for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .. import checks
from ..draws import TARGET_STRIDE
from .base import Facts
from .flooding import Flooding


@dataclass(frozen=True)
class Gossip(Flooding):
    """Flooding in which origin and relays send each message to `fanout` randomly drawn neighbours only.

    Parameters
    ----------
    ttl : int
        How many hops a message may travel.
    fanout : int
        To how many neighbours a message is sent, drawn without replacement; to all if there are fewer.
    emission : Emission
        When an agent sends, and what.

    Examples
    --------
    >>> import banditmesh as bm
    >>> bm.Gossip(4).fanout
    1
    """

    fanout: int = 1
    name: ClassVar[str] = "gossip"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "fanout", checks.integer("fanout", self.fanout, at_least=1, at_most=TARGET_STRIDE - 1))

    @property
    def facts(self) -> Facts:
        """Each message goes to a few drawn neighbours."""
        return Facts(hops=self.ttl, fanout=self.fanout)

    @property
    def n_targets(self) -> int:
        """The fan-out."""
        return self.fanout
