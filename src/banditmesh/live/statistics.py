"""A statistic: the one thing that travels between nodes and is kept of others; and what statistics and rewards may be.

It has one shape from the wire to the table and back, `Statistic`. Fields that later versions add go behind those of the
first version: nodes that do not know them skip them. A node's table keeps a `Known` of each key, and on the disk is an
`Entry`, a statistic with what the node decided about it.

What a statistic says are five `Values`: count and sum of the rewards; and, by the origin's memory, their discounted
number and sum (weight and weighted total) at the time of the last one (stamp). Without a memory these are count, sum
and 0; then they may be left out, as a weight of 0, and `Values.of` puts them in.

**One order** decides which of two statistics of a key stands, wherever two meet (`rank`): one that is signed beats one
that is not, then the larger count wins, the larger sum, one with a stamp over one without, and the larger of the rest.
A stamp comes before weights since relays of version 1 strip all three: what is left, with the count for the weight,
says less of the same rewards, and must not beat them.

`why_refused` says what values may be, for all edges alike: of what comes over a link, of what is read from the disk,
and, with a count of one, of a reward that is reported. A count is from 1 to 2^53 - 1, a weight from 1 to the count. A
reward is at most 1e12 in size and inside the arm's `reward_range`, if it has one; a sum of `count` rewards is inside
`count` times that range, and a weighted one inside `weight` times that range, give or take what rounding can do to it.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from typing import Final, NamedTuple

from msgspec import Struct

from .. import checks
from ..arms import BERNOULLI, GAUSSIAN, OTHER, UNIFORM
from ..errors import InputError
from ..policies.base import Arms
from .names import MAX_COUNT, MAX_REWARD, check_name

LAWS: Final = {"gaussian": GAUSSIAN, "bernoulli": BERNOULLI, "uniform": UNIFORM, "other": OTHER}
_ROUNDING: Final = 2.0**-53
#: The most bytes of a statistic on the wire, its two names aside, and how many more with a memory and a signature.
_OVERHEAD: Final = 40
MORE_BYTES: Final = 3 * 9 + 18 + 66
#: How many bytes the id of a certificate has, and a signature (Ed25519).
CERTIFICATE_BYTES: Final = 16
SIGNATURE_BYTES: Final = 64
#: The latest stamp, in seconds since 1970: whatever it is, it is finite.
MAX_STAMP: Final = float(2**53)

#: What a statistic is of: an origin, an epoch (one life of it) and an arm.
Key = tuple[str, int, str]


class Values(NamedTuple):
    """What is told of an arm: number and sum of its rewards, and the same discounted to the time of the last one.

    Examples
    --------
    >>> Values.of(3, 1.5)
    Values(count=3, total=1.5, weight=3, weighted_total=1.5, stamp=0.0)
    """

    count: int  # type: ignore[assignment]
    total: float
    weight: float
    weighted_total: float
    stamp: float

    @classmethod
    def of(
        cls, count: int, total: float, weight: float = 0.0, weighted_total: float = 0.0, stamp: float = 0.0
    ) -> Values:
        """These values; without the last three there is no memory."""
        if weight or weighted_total or stamp:
            return cls(count, total, weight, weighted_total, stamp)
        return cls(count, total, count, total, 0.0)

    @property
    def order(self) -> tuple[int, float, bool, float, float, float]:
        """Of two values of a key the larger one stands.

        Examples
        --------
        >>> Values(3, 1.5, 2.0, 1.0, stamp=9.0).order > Values.of(3, 1.5).order
        True
        """
        return self.count, self.total, self.stamp > 0.0, self.weight, self.weighted_total, self.stamp

    @property
    def forgetting(self) -> tuple[float, float, float]:
        """Weight, weighted total and stamp, as they are written: zeros where there is no memory."""
        return (self.weight, self.weighted_total, self.stamp) if self.stamp else (0.0, 0.0, 0.0)


#: Of an arm of which nothing is known.
NOTHING: Final = Values(0, 0.0, 0, 0.0, 0.0)
#: By what two statistics of a key are compared: whether it is signed, then its values in order.
Rank = tuple[bool, tuple[int, float, bool, float, float, float]]


class Statistic(Struct, frozen=True, array_like=True, gc=False, repr_omit_defaults=True):
    """An origin's own number and sum of rewards of one arm in one life, and how many hops are left.

    Weight, weighted total and stamp of 0 say that the origin has no memory, see `values`. `certificate` is the id of
    the certificate whose key made the signature; without a signature both are empty.
    """

    origin: str
    epoch: int
    arm: str
    count: int
    total: float
    ttl: int
    weight: float = 0.0
    weighted_total: float = 0.0
    stamp: float = 0.0
    certificate: bytes = b""
    signature: bytes = b""

    @property
    def key(self) -> Key:
        """What it is of."""
        return self.origin, self.epoch, self.arm

    @property
    def values(self) -> Values:
        """What it says."""
        return Values.of(self.count, self.total, self.weight, self.weighted_total, self.stamp)

    @property
    def rank(self) -> Rank:
        """Of two statistics of a key the larger one stands."""
        return bool(self.signature), self.values.order


class Entry(Statistic, frozen=True, array_like=True, gc=False, kw_only=True, repr_omit_defaults=True):
    """A statistic as it is stored: with whether the node passes it on, and whether it observed it itself on this disk.

    What was observed here, in an earlier life, is signed anew when the node gets another certificate.
    """

    passes: bool
    is_observed: bool = False


class Known(Struct, eq=False, gc=False):
    """The statistic that stands for a key: another life's, or what the node told itself.

    They are told apart by identity, so that a set of them costs no hashing of names. The garbage collector passes
    them by: they hold texts, numbers and bytes alone, and a look at 100,000 of them would hold up the event loop.

    Attributes
    ----------
    key : (origin, epoch, arm)
    count, total, weight, weighted_total, stamp : int and four floats
        Its `Values`; the last three are 0 where there is no memory.
    certificate, signature : bytes
        The id of the certificate, and the signature by its key; empty where it is not signed.
    ttl : int
        How many hops are left.
    passes : bool
        Whether the node passes it on.
    has_arm : bool
        Whether the node has the arm, and so learns what it hears of it.
    is_own : bool
        Whether it is of one of the node's own lives: then it always passes, with all hops.
    is_observed : bool
        Whether the node observed it itself, on this disk.
    is_outside : bool
        Whether the arm's `reward_range` does not allow it: it is kept, but neither used nor passed on.
    n_bytes : int
        The most bytes that it takes on the wire, without a memory and unsigned.
    is_dirty : bool
        Whether it has changed since it was last stored.
    """

    key: Key
    has_arm: bool
    is_own: bool
    passes: bool = False
    n_bytes: int = 0
    count: int = 0
    total: float = 0.0
    weight: float = 0.0
    weighted_total: float = 0.0
    stamp: float = 0.0
    certificate: bytes = b""
    signature: bytes = b""
    ttl: int = 0
    is_observed: bool = False
    is_dirty: bool = False
    is_outside: bool = False

    def __post_init__(self) -> None:
        self.passes = self.is_own
        self.n_bytes = _OVERHEAD + len(self.key[0].encode()) + len(self.key[2].encode())

    @property
    def values(self) -> Values:
        """What it says."""
        return Values.of(self.count, self.total, self.weight, self.weighted_total, self.stamp)

    @property
    def rank(self) -> Rank:
        """Of two statistics of a key the larger one stands."""
        return bool(self.signature), self.values.order

    @classmethod
    def of_own(cls, node: str, epoch: int, arm: str, values: Values) -> Known:
        """What a life of a node itself tells of an arm; it is not in a table."""
        row = cls((node, epoch, arm), False, True)
        row.put(values)
        return row

    def put(self, values: Values, certificate: bytes = b"", signature: bytes = b"") -> None:
        """Say something else, under this signature."""
        self.count, self.total = values[:2]
        self.weight, self.weighted_total, self.stamp = values.forgetting
        self.certificate, self.signature = certificate, signature

    def statistic(self, ttl: int) -> Statistic:
        """As it is sent, with this many hops left."""
        origin, epoch, arm = self.key
        if self.signature:
            _, _, weight, weighted_total, stamp = self.values
            return Statistic(
                origin, epoch, arm, self.count, self.total, ttl,
                weight, weighted_total, stamp, self.certificate, self.signature,
            )  # fmt: skip
        if self.stamp:
            return Statistic(
                origin, epoch, arm, self.count, self.total, ttl, self.weight, self.weighted_total, self.stamp
            )
        return Statistic(origin, epoch, arm, self.count, self.total, ttl)

    def entry(self) -> Entry:
        """As it is stored."""
        return Entry(
            *self.key,
            self.count,
            self.total,
            self.ttl,
            self.weight,
            self.weighted_total,
            self.stamp,
            self.certificate,
            self.signature,
            passes=self.passes,
            is_observed=self.is_observed,
        )


def why_refused(values: Values, low: float = -MAX_REWARD, high: float = MAX_REWARD) -> str | None:
    """Why rewards from `low` to `high` cannot have these values: "count", "sum", "weight", "weighted_sum" or "stamp".

    None if they can.

    Examples
    --------
    >>> why_refused(Values.of(3, 2.0), 0.0, 1.0), why_refused(Values.of(3, 4.0), 0.0, 1.0), why_refused(Values.of(0, 0))
    (None, 'sum', 'count')
    >>> why_refused(Values(3, 2.0, 2.5, 1.5, stamp=1.8e9)), why_refused(Values(3, 2.0, 3.5, 1.5, stamp=1.8e9))
    (None, 'weight')
    """
    count, total, weight, weighted_total, stamp = values
    if not 1 <= count <= MAX_COUNT:
        return "count"
    # Each addition rounds by at most half a unit in the last place of a sum of at most count * max(|low|, |high|).
    size = max(-low, high)
    slack = count * (count * _ROUNDING) * size if count > 1 else 0.0
    if not count * low - slack <= total <= count * high + slack:
        return "sum"
    if not 0.0 <= stamp <= MAX_STAMP:
        return "stamp"
    if stamp == 0.0:
        # Without a memory nothing is discounted.
        return None if (weight, weighted_total) == (count, total) else "weight"
    if not 1 <= weight <= count:
        return "weight"
    # Here both are discounted before each addition, which rounds once more, and the weight is rounded likewise.
    slack = 4 * weight * (count * _ROUNDING) * size if count > 1 else 0.0
    return None if weight * low - slack <= weighted_total <= weight * high + slack else "weighted_sum"


def certificate_id(certificate: bytes) -> bytes:
    """The id of a certificate in DER: the first bytes of its SHA-256.

    Examples
    --------
    >>> certificate_id(b"").hex()
    'e3b0c44298fc1c149afbf4c8996fb924'
    """
    return hashlib.sha256(certificate).digest()[:CERTIFICATE_BYTES]


class Prior(Struct, frozen=True, forbid_unknown_fields=True):
    """What is expected of an arm beforehand: as if it had paid `count` rewards of this mean."""

    count: float
    mean: float

    def __post_init__(self) -> None:
        checks.positive("count of a prior", self.count)
        checks.real("mean of a prior", self.mean)
        if not self.count <= MAX_COUNT:
            raise InputError(f"count of a prior must be at most {MAX_COUNT}, got {self.count:g}")


class ArmSpec(Struct, frozen=True, forbid_unknown_fields=True):
    """An arm, as a node's configuration describes it.

    Attributes
    ----------
    name : str
    law : str
        What kind of rewards it pays: gaussian, bernoulli, uniform or other.
    sigma : float, optional
        The sub-Gaussian parameter of its law, for policies that need it.
    reward_range : (float, float), optional
        The lowest and the highest reward; anything outside is refused.
    prior : Prior, optional
        What this node expects of it beforehand: it counts when this node chooses, and nowhere else.

    Examples
    --------
    >>> coin = ArmSpec("blue", law="bernoulli", reward_range=(0.0, 1.0))
    >>> coin.check_reward(1)
    1.0
    """

    name: str
    law: str = "other"
    sigma: float | None = None
    reward_range: tuple[float, float] | None = None
    prior: Prior | None = None

    def __post_init__(self) -> None:
        check_name("arm", self.name)
        checks.choice(f"law of arm {self.name!r}", self.law, LAWS)
        if self.sigma is not None:
            checks.positive(f"sigma of arm {self.name!r}", self.sigma)
        if self.reward_range is not None:
            low, high = self.reward_range
            if not -MAX_REWARD <= low < high <= MAX_REWARD:
                raise InputError(
                    f"reward_range of arm {self.name!r} must be a lower and a higher number, each at most "
                    f"{MAX_REWARD:g} in size, got {checks.shown(self.reward_range)}"
                )
        if self.prior is not None:
            try:
                self.check_reward(self.prior.mean)
            except InputError as error:
                raise InputError(f"the mean of a prior must be one that rewards can have: {error}") from None

    def check_reward(self, reward: object) -> float:
        """`reward` if the arm may pay it."""
        number = checks.real(f"a reward of arm {self.name!r}", reward)
        values = Values.of(1, number)
        if why_refused(values):
            raise InputError(f"a reward of arm {self.name!r} must be at most {MAX_REWARD:g} in size, got {number:g}")
        if self.reward_range is not None and why_refused(values, *self.reward_range):
            low, high = self.reward_range
            raise InputError(f"a reward of arm {self.name!r} must be from {low:g} to {high:g}, got {number:g}")
        return number


def noise_of(spec: ArmSpec) -> float:
    """By how much rewards of an arm vary, for tests of what others tell: its sigma, or half its range."""
    if spec.sigma is not None:
        return spec.sigma
    if spec.reward_range is None:
        raise InputError(
            f"arm {spec.name!r} must have a sigma or a reward_range where trust.trim is above 0, got neither; "
            "say how much its rewards vary, as with sigma = 1.0 or reward_range = [0, 1]"
        )
    low, high = spec.reward_range
    return (high - low) / 2


def policy_arms(specs: Sequence[ArmSpec]) -> Arms:
    """What a policy may know of these arms."""
    return Arms(
        [spec.name for spec in specs],
        [math.nan if spec.sigma is None else spec.sigma for spec in specs],
        [LAWS[spec.law] for spec in specs],
    )
