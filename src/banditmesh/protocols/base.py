"""What a protocol is: how agents hear of each other's pulls.

A protocol is an immutable value that states one way of delivery, see `Delivery`. Nearly all relay messages hop by hop:
those derive from `Protocol`, and say in a rule what becomes of a message at an agent that has not seen it. The rule is
one pure scalar function, written as a static method,

    relay(has_arm, ttl, degree, u, parameter) -> RELAY | ABSORB | STOP

that also runs compiled, unchanged. The rest is common to all of them and lives in `core/relaying.py`: an agent that has
the arm uses the observation, the ttl falls by one at each receipt, and a message is relayed only while at least
one hop remains. When and what an agent sends of its own is its *emission*, see `emission.py`.

A subclass with fields of its own is a frozen dataclass itself: otherwise equality and repr know nothing of them, and
two protocols that differ in them count as the same. Compiled, a division by zero gives inf or nan instead of an
exception; so a rule should be defined for all its inputs. Both hold for emissions too.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field, fields, is_dataclass, replace
from enum import Enum
from typing import Any, ClassVar, Final, Self

from .. import checks
from ..errors import InputError
from .emission import MOST_ECHOES, Emission, EveryPull

RELAY: Final = 0
ABSORB: Final = 1
STOP: Final = 2

# A draw's counter holds ttl and pick number in 16 bits each (see draws.py).
MAX_TTL: Final = 2**15


class Delivery(Enum):
    """How a protocol delivers what agents tell each other.

    Examples
    --------
    >>> import banditmesh as bm
    >>> bm.FwA(4).delivery, bm.TreeAggregation().delivery
    (<Delivery.HOPS: 'hops'>, <Delivery.TREE: 'tree'>)
    """

    #: Not at all: every agent is on its own.
    NOTHING = "nothing"
    #: Everybody hears every observation at the end of its round, without any message.
    EVERYONE = "everyone"
    #: Messages are relayed hop by hop.
    HOPS = "hops"
    #: Statistics are merged along a spanning tree.
    TREE = "tree"


class AnyProtocol:
    """What all protocols have, however they deliver. To write one that relays messages, derive from `Protocol`.

    Every protocol is a frozen dataclass whose last field is its emission.

    Attributes
    ----------
    emission : Emission
        When an agent sends, and what.

    Examples
    --------
    >>> import banditmesh as bm
    >>> [protocol.most_hops for protocol in (bm.NoCooperation(), bm.TreeAggregation(), bm.FwA(4))]
    [0, 1, 4]
    """

    emission: Emission
    name: ClassVar[str] = "protocol"
    delivery: ClassVar[Delivery] = Delivery.NOTHING
    #: The ways of delivery that the simulator has for protocols of this class.
    _deliveries: ClassVar[tuple[Delivery, ...]] = (Delivery.NOTHING, Delivery.EVERYONE)

    def __post_init__(self) -> None:
        if not isinstance(self.emission, Emission):
            raise InputError(f"emission must be an emission such as EveryPull(), got {checks.shown(self.emission)}")
        n_echoes = checks.integer("n_echoes", self.emission.n_echoes, at_least=0, at_most=MOST_ECHOES)
        if n_echoes and not self.emission.cumulative:
            name = self.emission.name
            raise InputError(f"echoes need an emission of counts and sums (cumulative), got {name!r} of single pulls")
        if self.emission != EveryPull():
            self.check_takes_emission(self.emission.name)

    def with_emission(self, emission: Emission) -> Self:
        """The same protocol with another emission."""
        changed: Any = self
        other: Self = replace(changed, emission=emission)
        return other

    @classmethod
    def check_takes_emission(cls, emission: str) -> None:
        """Refuse an emission, by its name, that would have no effect because everybody hears everything anyway."""
        if cls.delivery is Delivery.EVERYONE:
            raise InputError(
                f"protocol {cls.name!r} takes no emission, since everybody hears every observation at once, "
                f"got {emission!r}; leave it out"
            )

    def check_delivery(self) -> None:
        """Refuse a protocol whose way of delivery is none, or is not the one that its class is made for."""
        if not isinstance(self.delivery, Delivery):
            raise InputError(
                f"delivery of protocol {self.name!r} must be a Delivery such as Delivery.NOTHING, "
                f"got {checks.shown(self.delivery)}"
            )
        made: Any = self
        is_whole = is_dataclass(made) and any(one.name == "emission" for one in fields(made))
        if not is_whole or not isinstance(made.emission, Emission):
            raise InputError(
                f"protocol {self.name!r} must be a frozen dataclass with the field emission, got {checks.shown(self)}; "
                "add `emission: Emission = EveryPull()`"
            )
        if self.delivery not in self._deliveries:
            allowed = " or ".join(one.name for one in self._deliveries)
            raise InputError(
                f"delivery of protocol {self.name!r} must be {allowed}, as its class can do no other, "
                f"got {self.delivery.name}; derive from Protocol for HOPS or from TreeAggregation for TREE"
            )

    @property
    def sends_messages(self) -> bool:
        """Whether anything travels over links."""
        return self.delivery in (Delivery.HOPS, Delivery.TREE)

    @property
    def most_hops(self) -> int:
        """How many hops a message may travel; 0 if there is none."""
        return int(self.sends_messages)

    @property
    def n_bytes(self) -> int:
        """Payload of one message in bytes."""
        return self.emission.n_bytes

    def check_network(self, is_static: bool) -> None:
        """Refuse a network that the protocol cannot work on; any is fine unless a protocol says otherwise."""


@dataclass(frozen=True)
class Protocol(AnyProtocol):
    """The base of all protocols that relay messages hop by hop.

    Parameters
    ----------
    ttl : int
        How many hops a message may travel, at least 1.
    emission : Emission
        When an agent sends, and what; by default every pull.

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
    >>> problem = bm.Problem.random(bm.networks.ring(8), n_arms=4, per_agent=2, seed=0)
    >>> bm.simulate(problem, HalfAbsorbing(ttl=4), horizon=5, seed=0).protocol
    'half-absorbing'
    """

    ttl: int
    _: KW_ONLY
    emission: Emission = field(default_factory=EveryPull)

    delivery: ClassVar[Delivery] = Delivery.HOPS
    _deliveries: ClassVar[tuple[Delivery, ...]] = (Delivery.HOPS,)
    #: Whether `relay` uses its random number `u`. If not, none is drawn and `u` is 0.
    random: ClassVar[bool] = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "ttl", checks.integer("ttl", self.ttl, at_least=1, at_most=MAX_TTL))
        super().__post_init__()

    @property
    def most_hops(self) -> int:
        """The ttl."""
        return self.ttl

    @property
    def parameter(self) -> float:
        """The one number that `relay` is given."""
        return 0.0

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
