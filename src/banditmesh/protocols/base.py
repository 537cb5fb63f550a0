"""What a protocol is: how agents hear of each other's pulls.

A protocol is an immutable value. It brings what delivers: `seat` gives the agent for one place in the network, which is
the core's agent with the protocol's `courier` unless a protocol says otherwise, and `plan` what all agents of a run
share. Nearly all protocols relay messages hop by hop: those derive from `Protocol`, and say in a rule what becomes of a
message at an agent that has not seen it. The rule is one pure scalar function, written as a static method,

    relay(has_arm, ttl, degree, u, parameter) -> RELAY | ABSORB | STOP

that also runs compiled, unchanged. The rest is common to all of them and lives in `relaying.py`: an agent that has
the arm uses the observation, the ttl falls by one at each receipt, and a message is relayed only while at least
one hop remains. When and what an agent sends of its own is its *emission*, see `emission.py`.

What others may rely on (how far a message goes, whether holders absorb it, with what chance it is passed on) a protocol
states as `Facts`. They hold only for the class that states them: a subclass with other rules has none, unless it states
its own, and whoever needs them then says so.

A subclass with fields of its own is a frozen dataclass itself: otherwise equality and repr know nothing of them, and
two protocols that differ in them count as the same. Compiled, a division by zero gives inf or nan instead of an
exception; so a rule should be defined for all its inputs. Both hold for emissions too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field, is_dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self

from .. import checks
from ..errors import InputError
from .courier import Courier, Silent
from .emission import MAX_ECHOES, Emission, EveryPull
from .messages import Message, Note
from .relaying import Relaying

if TYPE_CHECKING:
    from ..core import Agent, Place
    from ..faults import Faults
    from ..problem import Problem

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
    #: All agents hear every observation at the end of its round, without any message.
    EVERYONE = "everyone"
    #: Messages are relayed hop by hop.
    HOPS = "hops"
    #: Statistics are merged along a spanning tree.
    TREE = "tree"
    #: By a courier or an agent that the protocol brings.
    OWN = "own"

    @property
    def sends_messages(self) -> bool:
        """Whether anything travels over links."""
        return self not in (Delivery.NOTHING, Delivery.EVERYONE)


@dataclass(frozen=True)
class Facts:
    """What is known of how a protocol delivers: theory, frontier and live nodes read it.

    Attributes
    ----------
    hops : int
        How many hops a message may travel; 0 if nothing is sent.
    central : bool
        Whether every holder of an arm hears every observation at once, whatever the network.
    absorbs : bool
        Whether holders of an arm pass none of its messages on.
    merges : bool
        Whether statistics are merged along a spanning tree.
    passes : float
        The chance that an agent passes on what it may pass on.
    fanout : int or None
        To how many neighbours, drawn anew, a message is sent; None for all.
    pause : int
        The fewest rounds between two messages on an arm over a link.

    Examples
    --------
    >>> import banditmesh as bm
    >>> bm.FwA(4).facts
    Facts(hops=4, central=False, absorbs=True, merges=False, passes=1.0, fanout=None, pause=1)
    >>> class Own(bm.FwA):
    ...     @staticmethod
    ...     def relay(has_arm, ttl, degree, u, parameter):
    ...         return bm.STOP
    >>> print(Own(4).facts)
    None
    """

    hops: int
    central: bool = False
    absorbs: bool = False
    merges: bool = False
    passes: float = 1.0
    fanout: int | None = None
    pause: int = 1

    @property
    def by_chance(self) -> bool:
        """Whether chance decides where a message goes."""
        return self.passes < 1.0 or self.fanout is not None

    @property
    def is_settled(self) -> bool:
        """Whether the fate of what is sent follows from its origin and its arm alone."""
        return not (self.merges or self.by_chance)


#: What decides how a protocol delivers. A class that gives one of these anew states its facts anew, or has none.
_RULES: Final = ("courier", "delivery", "n_targets", "parameter", "plan", "random", "relay", "seat")


class AnyProtocol:
    """What all protocols have, however they deliver. To write one that relays messages, derive from `Protocol`.

    Every protocol is a frozen dataclass whose last field is its emission; an algorithm that sends by rules of its own
    needs none.

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

    emission: Emission = EveryPull()
    name: ClassVar[str] = "protocol"
    delivery: ClassVar[Delivery] = Delivery.OWN
    #: Whether its agents choose arms by the protocol's own rules, so that the run's policy is not asked.
    chooses: ClassVar[bool] = False

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        first = {rule: _first_with(rule, cls.__mro__) for rule in (*_RULES, "facts")}
        if min(first.values()) < first["facts"]:
            own: Any = cls
            own.facts = None

    def __post_init__(self) -> None:
        if not isinstance(self.emission, Emission):
            raise InputError(f"emission must be an emission such as EveryPull(), got {checks.shown(self.emission)}")
        n_echoes = checks.integer("n_echoes", self.emission.n_echoes, at_least=0, at_most=MAX_ECHOES)
        if n_echoes and not self.emission.cumulative:
            name = self.emission.name
            raise InputError(f"echoes need an emission of counts and sums (cumulative), got {name!r} of single pulls")
        if self.has_emission() and self.emission != EveryPull():
            self.check_takes_emission(self.emission.name)

    def with_emission(self, emission: Emission) -> Self:
        """The same protocol with another emission."""
        if not self.has_emission():
            self.check_takes_emission(repr(emission))
        changed: Any = self
        other: Self = replace(changed, emission=emission)
        return other

    @classmethod
    def has_emission(cls) -> bool:
        """Whether it can be given an emission; algorithms that send by rules of their own cannot."""
        known: dict[str, Any] = getattr(cls, "__dataclass_fields__", {})
        return "emission" in known and bool(known["emission"].init)

    @classmethod
    def takes_emission(cls) -> bool:
        """Whether an emission makes a difference to it."""
        return cls.has_emission() and cls.delivery is not Delivery.EVERYONE

    @classmethod
    def check_takes_emission(cls, emission: str) -> None:
        """Refuse an emission, by its name, that would have no effect."""
        if not cls.has_emission():
            raise InputError(
                f"protocol {cls.name!r} sends by its own rules and takes no emission, got {emission}; leave it out"
            )
        if cls.delivery is Delivery.EVERYONE:
            raise InputError(
                f"protocol {cls.name!r} takes no emission, since all agents hear every observation at once, "
                f"got {emission!r}; leave it out"
            )

    def check_delivery(self) -> None:
        """Refuse a protocol whose way of delivery is none, or does not fit what it brings."""
        if not isinstance(self.delivery, Delivery):
            raise InputError(
                f"delivery of protocol {self.name!r} must be a Delivery such as Delivery.NOTHING, "
                f"got {checks.shown(self.delivery)}"
            )
        made: Any = self
        if not is_dataclass(made) or not isinstance(getattr(made, "emission", None), Emission):
            raise InputError(
                f"protocol {self.name!r} must be a frozen dataclass with the field emission, got {checks.shown(self)}; "
                "add `emission: Emission = EveryPull()`"
            )
        brings = not (has_method(self, AnyProtocol.courier) and has_method(self, AnyProtocol.seat))
        is_other = self.delivery is Delivery.HOPS and not isinstance(self, Protocol)
        if self.sends_messages is not brings or is_other:
            raise InputError(
                f"protocol {self.name!r} must bring courier() or seat() if its delivery sends messages, and only then, "
                f"got {self.delivery.name}; derive from Protocol for HOPS or from TreeAggregation for TREE"
            )

    @property
    def facts(self) -> Facts | None:
        """What is known of how it delivers; None if nothing is."""
        return None

    def plan(self, problem: Problem) -> Any:
        """What all agents of a run share: a tree, say. It must follow from the problem alone."""

    def courier(self, place: Place) -> Courier:
        """What the agent at a place sends, and does with what it receives: nothing unless overridden."""
        return Silent()

    def seat(self, place: Place) -> Agent:
        """The agent at a place in the network: by default the core's, with the protocol's courier."""
        return place.agent(self.courier(place))

    @property
    def relays_by_rule(self) -> bool:
        """Whether its agents relay messages hop by hop by a `relay` rule, and bring nothing else of their own."""
        return isinstance(self, Protocol) and has_method(self, Protocol.courier) and has_method(self, AnyProtocol.seat)

    @property
    def sends_messages(self) -> bool:
        """Whether anything travels over links."""
        return self.delivery.sends_messages

    @property
    def is_central(self) -> bool:
        """Whether the driver itself tells all agents everything."""
        return self.delivery is Delivery.EVERYONE

    @property
    def most_hops(self) -> int:
        """How many hops a message may travel; 0 if there is none."""
        return int(self.sends_messages)

    def size(self, message: Message | Note) -> int:
        """Payload of a message in bytes."""
        return self.n_bytes

    def n_control(self, plan: Any) -> int:
        """How many control messages it takes to make a plan, all in the first round."""
        return 0

    @property
    def n_bytes(self) -> int:
        """Payload of a message in bytes, if all are of one size."""
        return self.emission.n_bytes

    def check_network(self, is_static: bool) -> None:
        """Refuse a network that the protocol cannot work on; any is fine unless a protocol says otherwise."""

    def check_run(self, problem: Problem, every: Sequence[int], faults: Faults | None) -> None:
        """Refuse a problem, intervals between pulls (one for each agent) or faults that it cannot work with."""


def has_method(protocol: AnyProtocol, method: Any) -> bool:
    """Whether a protocol has this very method, and no other of its name.

    Examples
    --------
    >>> import banditmesh as bm
    >>> has_method(bm.FwA(4), Protocol.courier), has_method(bm.TreeAggregation(), AnyProtocol.courier)
    (True, False)
    """
    return getattr(type(protocol), method.__name__) is method


def _first_with(name: str, classes: tuple[type, ...]) -> int:
    """The place of the first class that gives an attribute itself."""
    return next((place for place, one in enumerate(classes) if name in vars(one)), len(classes))


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
    #: Whether `relay` uses its random number `u`. If not, none is drawn and `u` is 0.
    random: ClassVar[bool] = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "ttl", checks.integer("ttl", self.ttl, at_least=1, at_most=MAX_TTL))
        super().__post_init__()

    def courier(self, place: Place) -> Courier:
        """The courier that relays by the protocol's rule."""
        return Relaying(self, place.chances, place.seen(self.ttl), place.new_id, place.rules)

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
