"""When an agent sends something of its own, and what: the other half of a protocol.

An emission is an immutable value with one pure scalar function,

    sends(own_count, sent_count, is_best, parameter) -> bool

asked after each pull. What is sent is either the one observation just made or, if `cumulative`, the agent's own
count and sum of that arm so far, of which a receiver keeps the latest per origin and arm.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True)
class Emission:
    """The base of all emissions. A subclass gives `sends` as a static method.

    Examples
    --------
    An agent tells of its first pull of an arm, its eleventh, and so on. After 20 rounds everybody has told of its 20
    arms once, and the next round is silent:

    >>> import banditmesh as bm
    >>> class EveryTenth(bm.Emission):
    ...     name = "every-tenth"
    ...     @staticmethod
    ...     def sends(own_count, sent_count, is_best, parameter):
    ...         return own_count % 10 == 1
    >>> problem = bm.Problem.paper("er", seed=0)
    >>> result = bm.simulate(problem, bm.IRS(emission=EveryTenth()), horizon=21, seed=0)
    >>> result.messages[0, [0, 19, 20]].tolist()
    [306, 6120, 6120]
    """

    name: ClassVar[str] = "emission"
    #: Whether an agent's own count and sum are sent, instead of one observation.
    cumulative: ClassVar[bool] = False
    #: Whether `sends` uses `is_best`. If not, it is not worked out and False is passed.
    asks_best: ClassVar[bool] = False
    #: Payload of one message in bytes.
    n_bytes: ClassVar[int] = 24

    @property
    def parameter(self) -> float:
        """The one number that `sends` is given."""
        return 0.0

    @staticmethod
    def sends(own_count: int, sent_count: int, is_best: bool, parameter: float) -> bool:
        """Whether the agent sends after a pull.

        Parameters
        ----------
        own_count : int
            How often the agent has pulled the arm itself, this pull included.
        sent_count : int
            Its own count when it last sent this arm; 0 if it never has.
        is_best : bool
            Whether the arm had the (first) highest mean when it was chosen; never during the initial pulls.
        parameter : float
            The emission's `parameter`.
        """
        raise NotImplementedError("an emission gives sends() as a static method")


@dataclass(frozen=True)
class EveryPull(Emission):
    """Send every observation as soon as it is made, as the paper does.

    Examples
    --------
    >>> import banditmesh as bm
    >>> bm.Flooding(4).emission
    EveryPull()
    """

    name: ClassVar[str] = "every-pull"

    @staticmethod
    def sends(own_count: int, sent_count: int, is_best: bool, parameter: float) -> bool:
        """Always."""
        return True
