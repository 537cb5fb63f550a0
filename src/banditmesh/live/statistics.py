"""A statistic: the one thing that travels between nodes and is kept of others; and what statistics and rewards may be.

It has one shape from the wire to the table and back, `Statistic`. Fields that later versions add, such as a signature,
go behind the ttl: nodes that do not know them skip them. A node's table keeps a `Known` of each key, and on the disk is
an `Entry`, a statistic with what the node decided about it.

`why_refused` says what count and sum may be, for all edges alike: of what comes over a link, of what is read from the
disk, and, with a count of one, of a reward that is reported. A count is from 1 to 2^53 - 1. A reward is at most 1e12 in
size and inside the arm's `reward_range`, if it has one; a sum of `count` rewards is inside `count` times that range,
give or take what rounding can do to it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from .. import checks
from ..arms import BERNOULLI, GAUSSIAN, OTHER, UNIFORM
from ..errors import InputError
from ..policies.base import Arms
from .names import MAX_COUNT, MAX_REWARD, check_name

LAWS: Final = {"gaussian": GAUSSIAN, "bernoulli": BERNOULLI, "uniform": UNIFORM, "other": OTHER}
_ROUNDING: Final = 2.0**-53
#: The most bytes of a statistic on the wire, its two names aside.
_OVERHEAD: Final = 40

#: What a statistic is of: an origin, an epoch (one life of it) and an arm.
Key = tuple[str, int, str]


class Statistic(Struct, frozen=True, array_like=True, gc=False):
    """An origin's own number and sum of rewards of one arm in one life, and how many hops are left."""

    origin: str
    epoch: int
    arm: str
    count: int
    total: float
    ttl: int

    @property
    def key(self) -> Key:
        """What it is of."""
        return self.origin, self.epoch, self.arm


class Entry(Statistic, frozen=True, array_like=True, gc=False):
    """A statistic as it is stored: with whether the node passes it on."""

    passes: bool


class Known:
    """The largest statistic known of a key: another life's, or what the node told itself.

    They are told apart by identity, so that a set of them costs no hashing of names.

    Attributes
    ----------
    key : (origin, epoch, arm)
    count, total : int, float
        How many rewards, and their sum.
    ttl : int
        How many hops are left.
    passes : bool
        Whether the node passes it on.
    position : int
        The position of the arm in the node's arm set; -1 if it does not have it.
    is_own : bool
        Whether it is of one of the node's own lives: then it always passes, with all hops.
    is_outside : bool
        Whether the arm's `reward_range` does not allow it: it is kept, but neither used nor passed on.
    n_bytes : int
        The most bytes that it takes on the wire.
    is_dirty : bool
        Whether it has changed since it was last stored.
    """

    __slots__ = (
        "count", "is_dirty", "is_outside", "is_own", "key", "n_bytes", "passes", "position", "total", "ttl",
    )  # fmt: skip

    def __init__(self, key: Key, position: int, is_own: bool) -> None:
        self.key = key
        self.count = 0
        self.total = 0.0
        self.ttl = 0
        self.passes = is_own
        self.position = position
        self.is_own = is_own
        self.is_dirty = False
        self.is_outside = False
        self.n_bytes = _OVERHEAD + len(key[0].encode()) + len(key[2].encode())

    def entry(self) -> Entry:
        """As it is stored."""
        return Entry(*self.key, self.count, self.total, self.ttl, self.passes)


def why_refused(count: int, total: float, low: float = -MAX_REWARD, high: float = MAX_REWARD) -> str | None:
    """Why `count` rewards from `low` to `high` cannot sum to `total`: "count" or "sum"; None if they can.

    Examples
    --------
    >>> why_refused(3, 2.0, 0.0, 1.0), why_refused(3, 4.0, 0.0, 1.0), why_refused(0, 0.0)
    (None, 'sum', 'count')
    """
    if not 1 <= count <= MAX_COUNT:
        return "count"
    # Each addition rounds by at most half a unit in the last place of a sum of at most count * max(|low|, |high|).
    slack = count * (count * _ROUNDING) * max(-low, high) if count > 1 else 0.0
    return None if count * low - slack <= total <= count * high + slack else "sum"


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
        if why_refused(1, number):
            raise InputError(f"a reward of arm {self.name!r} must be at most {MAX_REWARD:g} in size, got {number:g}")
        if self.reward_range is not None and why_refused(1, number, *self.reward_range):
            low, high = self.reward_range
            raise InputError(f"a reward of arm {self.name!r} must be from {low:g} to {high:g}, got {number:g}")
        return number


def policy_arms(specs: Sequence[ArmSpec]) -> Arms:
    """What a policy may know of these arms."""
    return Arms(
        [spec.name for spec in specs],
        [math.nan if spec.sigma is None else spec.sigma for spec in specs],
        [LAWS[spec.law] for spec in specs],
    )
