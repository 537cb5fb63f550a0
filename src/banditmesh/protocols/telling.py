"""When an agent tells of an arm, and when it repeats itself: one emission, one arm, one listener.

A listener is all other agents, if messages are relayed, or one neighbour, if statistics are merged along a tree.
"""

from __future__ import annotations

from .emission import Emission


class Told:
    """What a listener was last told of an arm.

    Attributes
    ----------
    count : float
        The count, or weight, that it was told.
    when : int
        When, by a clock of the teller's own.
    echoes : int
        How often it is still to be repeated.
    """

    __slots__ = ("count", "echoes", "when")

    def __init__(self, count: float = 0, when: int = 0, echoes: int = 0) -> None:
        self.count = count
        self.when = when
        self.echoes = echoes

    def is_news(self, emission: Emission, count: float, was_best: bool = False) -> bool:
        """Whether the emission wants a count to be told."""
        return emission.sends(count, self.count, was_best, emission.parameter)

    def tell(self, count: float, when: int, echoes: int) -> None:
        """The listener is told a count, which is to be repeated this often."""
        self.count, self.when, self.echoes = count, when, echoes

    def as_list(self) -> list[float]:
        """The attributes, in the order in which they are given."""
        return [self.count, self.when, self.echoes]
