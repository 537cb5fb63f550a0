"""What a protocol is: a rule that says what becomes of a message at an agent that has not seen it.

A protocol is an immutable value. Its relay rule is one pure scalar function, written as a static method,

    relay(has_arm, ttl, degree, u, parameter) -> RELAY | ABSORB | STOP

that also runs compiled, unchanged. The rest is common to all protocols and lives in `agent.py`: an agent that has
the arm uses the observation, the ttl falls by one at each receipt, and a message is relayed only while at least
one hop remains. When and what an agent sends of its own is its *emission*, see `emission.py`.

A subclass with fields of its own is a frozen dataclass itself: otherwise equality and repr know nothing of them, and
two protocols that differ in them count as the same. Compiled, a division by zero gives inf or nan instead of an
exception; so a rule should be defined for all its inputs. Both hold for emissions too.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from typing import ClassVar, Final

from .. import checks
from ..errors import InputError
from .emission import MOST_ECHOES, Emission, EveryPull

RELAY: Final = 0
ABSORB: Final = 1
STOP: Final = 2

# A draw's counter holds ttl and pick number in 16 bits each (see draws.py).
MAX_TTL: Final = 2**15


@dataclass(frozen=True)
class Protocol:
    """The base of all protocols.

    Parameters
    ----------
    ttl : int
        How many hops a message may travel, at least 1.
    emission : Emission
        When an agent sends, and what; every pull unless told otherwise.

    Examples
    --------
    A protocol in which an agent that has the arm absorbs a message half of the time:

    >>> import banditmesh as bm
    >>> class HalfAbsorbing(bm.Protocol):
    ...     name = "half-absorbing"
    ...     random = True
    ...     @staticmethod
    ...     def relay(has_arm, ttl, degree, u, parameter):
    ...         return bm.ABSORB if has_arm and u < 0.5 else bm.RELAY
    >>> problem = bm.Problem.paper("er", seed=0)
    >>> bm.simulate(problem, HalfAbsorbing(ttl=4), horizon=5, seed=0).protocol
    'half-absorbing'
    """

    ttl: int
    _: KW_ONLY
    emission: Emission = field(default_factory=EveryPull)

    name: ClassVar[str] = "protocol"
    #: Whether `relay` uses its random number `u`. If not, none is drawn and `u` is 0.
    random: ClassVar[bool] = False
    #: Whether agents hear each other without any message.
    central: ClassVar[bool] = False
    #: Whether agents send merged statistics along a tree, instead of relaying messages; see `merging.py`.
    merges: ClassVar[bool] = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "ttl", checks.integer("ttl", self.ttl, at_least=1, at_most=MAX_TTL))
        self._check_emission()

    def _check_emission(self) -> None:
        if not isinstance(self.emission, Emission):
            raise InputError(f"emission must be an emission such as EveryPull(), got {checks.shown(self.emission)}")
        n_echoes = checks.integer("n_echoes", self.emission.n_echoes, at_least=0, at_most=MOST_ECHOES)
        if n_echoes and not self.emission.cumulative:
            name = self.emission.name
            raise InputError(f"echoes need an emission of counts and sums (cumulative), got {name!r} of single pulls")

    @property
    def parameter(self) -> float:
        """The one number that `relay` is given."""
        return 0.0

    @property
    def n_bytes(self) -> int:
        """Payload of one message in bytes."""
        return self.emission.n_bytes

    def check_network(self, is_static: bool) -> None:
        """Refuse a network that the protocol cannot work on; any is fine unless a protocol says otherwise."""

    @property
    def n_targets(self) -> int | None:
        """To how many neighbours, drawn for each message, an agent sends it; None for all."""
        return None

    @staticmethod
    def relay(has_arm: bool, ttl: int, degree: int, u: float, parameter: float) -> int:
        """What a receiver does with a message that it has not seen.

        Parameters
        ----------
        has_arm : bool
            Whether the receiver has the message's arm.
        ttl : int
            How many hops remain after this one. With none, RELAY ends as expired.
        degree : int
            The receiver's number of neighbours in this round.
        u : float
            A number in (0, 1) drawn for this message, receiver and ttl, if `random`; else 0.
        parameter : float
            The protocol's `parameter`.

        Returns
        -------
        int
            RELAY, ABSORB or STOP. By the published rules STOP also keeps the observation from being used.
        """
        raise NotImplementedError("a protocol gives relay() as a static method")
