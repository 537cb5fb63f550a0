"""When an agent sends something of its own, and what: the other half of a protocol.

An emission is an immutable value with one pure scalar function,

    sends(own_count, sent_count, is_best, parameter) -> bool

asked after each pull. What is sent is either the one observation just made or, if `cumulative`, the agent's own
count and sum of that arm so far, of which a receiver keeps the latest per origin and arm.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

from .. import checks

MAX_ECHOES: Final = 100


@dataclass(frozen=True)
class Emission:
    """The base of all emissions. A subclass gives `sends` as a static method.

    Examples
    --------
    An agent tells of its first pull of an arm, its eleventh, and so on. After 20 rounds each agent has told of its 20
    arms once, and the next round is silent:

    >>> import banditmesh as bm
    >>> class EveryTenth(bm.Emission):
    ...     name = "every-tenth"
    ...     @staticmethod
    ...     def sends(own_count, sent_count, is_best, parameter):
    ...         return own_count % 10 == 1
    >>> problem = bm.Problem.paper("er", seed=0)
    >>> result = bm.simulate(problem, bm.IRS(emission=EveryTenth()), horizon=21, seed=0)
    >>> result.transmissions[0, [0, 19, 20]].tolist()
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

    @property
    def n_echoes(self) -> int:
        """How often a count and sum is sent again, in rounds in which the agent has nothing else to send."""
        return 0

    @staticmethod
    def sends(own_count: float, sent_count: float, is_best: bool, parameter: float) -> bool:
        """Whether the agent sends after a pull.

        Parameters
        ----------
        own_count : float
            How often the agent has pulled the arm itself, this pull included. With a memory that discounts, an
            emission that is cumulative gets weights here, of which only the ratio means anything.
        sent_count : float
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
    def sends(own_count: float, sent_count: float, is_best: bool, parameter: float) -> bool:
        """Always."""
        return True


@dataclass(frozen=True)
class Growth(Emission):
    """Send the own count and sum of an arm whenever the count has grown by a factor since they were last sent.

    A receiver keeps the latest statistic of each origin and arm, so that losses and duplicates do no harm: what was
    lost is contained in whatever comes next. The number of messages grows with the logarithm of the pulls.

    Parameters
    ----------
    factor : float
        By how much of itself the count must have grown: with n pulls now and m when it last sent, an agent sends if
        `n - m >= factor * m`. At 0 it sends after every pull.
    echoes : int
        How often an arm's statistic is sent again, as it stands then: against losses. An agent that has nothing else to
        send after a pull echoes the arm that it sent least recently, of those that have echoes left. Each time that the
        count has grown enough, the arm has that many anew.

    Examples
    --------
    >>> import banditmesh as bm
    >>> problem = bm.Problem.paper("er", seed=0)
    >>> often, seldom = (
    ...     bm.simulate(problem, bm.IRS(emission=emission), horizon=100, seed=0)
    ...     for emission in (bm.EveryPull(), bm.Growth(0.5))
    ... )
    >>> bool(seldom.transmissions[0, -1] < often.transmissions[0, -1])
    True

    Where three transmissions in ten are lost, an echo makes up for most of them:

    >>> once, twice = (
    ...     bm.simulate(problem, bm.Flooding(8, emission=emission), horizon=500, seed=0, faults=bm.Faults(loss=0.3))
    ...     for emission in (bm.Growth(0.25), bm.Growth(0.25, echoes=1))
    ... )
    >>> bool(twice.regret[0, -1] < once.regret[0, -1])
    True
    """

    factor: float = 0.25
    echoes: int = 0
    name: ClassVar[str] = "growth"
    cumulative: ClassVar[bool] = True
    n_bytes: ClassVar[int] = 32

    def __post_init__(self) -> None:
        object.__setattr__(self, "factor", checks.non_negative("factor", self.factor))
        object.__setattr__(self, "echoes", checks.integer("echoes", self.echoes, at_least=0, at_most=MAX_ECHOES))

    @property
    def parameter(self) -> float:
        """The factor."""
        return self.factor

    @property
    def n_echoes(self) -> int:
        """As given."""
        return self.echoes

    @staticmethod
    def sends(own_count: float, sent_count: float, is_best: bool, parameter: float) -> bool:
        """Whether the count has grown enough."""
        return own_count - sent_count >= parameter * sent_count


@dataclass(frozen=True)
class Contested(Emission):
    """Send an observation unless its arm seemed the best one when it was chosen.

    An agent that knows its best arm pulls little else, and then says little. What others hear is one-sided: of an
    arm that an origin takes for its best, only what it saw before it did.

    Examples
    --------
    >>> import banditmesh as bm
    >>> bm.Flooding(4, emission=bm.Contested()).emission
    Contested()
    """

    name: ClassVar[str] = "contested"
    asks_best: ClassVar[bool] = True

    @staticmethod
    def sends(own_count: float, sent_count: float, is_best: bool, parameter: float) -> bool:
        """Unless the arm seemed the best."""
        return not is_best
