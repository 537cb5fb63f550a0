"""What a node knows of an arm, and which rewards and sums it accepts of it.

Rules kept here: a reward is finite, at most 1e12 in size and inside the arm's `reward_range`, if it has one. The sum of
`count` rewards is inside `count` times that range, give or take what rounding can do to a sum of so many.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from ... import checks
from ...arms import BERNOULLI, GAUSSIAN, OTHER, UNIFORM
from ...errors import InputError
from ...policies.base import Arms
from ..limits import MOST_REWARD
from ..names import check_name

LAWS: Final = {"gaussian": GAUSSIAN, "bernoulli": BERNOULLI, "uniform": UNIFORM, "other": OTHER}
_ROUNDING: Final = 2.0**-53


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

    Examples
    --------
    >>> coin = ArmSpec("blue", law="bernoulli", reward_range=(0.0, 1.0))
    >>> coin.accepts_sum(count=3, total=2.0), coin.accepts_sum(count=3, total=4.0)
    (True, False)
    """

    name: str
    law: str = "other"
    sigma: float | None = None
    reward_range: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        check_name("arm", self.name)
        checks.choice(f"law of arm {self.name!r}", self.law, LAWS)
        if self.sigma is not None:
            checks.positive(f"sigma of arm {self.name!r}", self.sigma)
        if self.reward_range is not None:
            low, high = self.reward_range
            if not -MOST_REWARD <= low < high <= MOST_REWARD:
                raise InputError(
                    f"reward_range of arm {self.name!r} must be a lower and a higher number of at most "
                    f"{MOST_REWARD:g} in size, got {checks.shown(self.reward_range)}"
                )

    def check_reward(self, reward: object) -> float:
        """`reward` if the arm may pay it."""
        number = check_reward(self.name, reward)
        if self.reward_range is not None:
            low, high = self.reward_range
            if not low <= number <= high:
                raise InputError(f"a reward of arm {self.name!r} must be from {low:g} to {high:g}, got {number:g}")
        return number

    def accepts_sum(self, count: int, total: float) -> bool:
        """Whether so many rewards may sum to that."""
        return self.reward_range is None or _is_within(count, total, *self.reward_range)


def check_reward(arm: str, reward: object) -> float:
    """`reward` if any arm may pay it."""
    number = checks.real(f"a reward of arm {arm!r}", reward)
    if abs(number) > MOST_REWARD:
        raise InputError(f"a reward of arm {arm!r} must be at most {MOST_REWARD:g} in size, got {number:g}")
    return number


def may_be_sum(count: int, total: float) -> bool:
    """Whether rewards of any arm, so many, may sum to that."""
    return _is_within(count, total, -MOST_REWARD, MOST_REWARD)


def _is_within(count: int, total: float, low: float, high: float) -> bool:
    # Each addition rounds by at most half a unit in the last place of a sum of at most count * max(|low|, |high|).
    slack = count * (count * _ROUNDING) * max(abs(low), abs(high))
    return count * low - slack <= total <= count * high + slack


def policy_arms(specs: Sequence[ArmSpec]) -> Arms:
    """What a policy may know of these arms."""
    return Arms(
        [spec.name for spec in specs],
        [math.nan if spec.sigma is None else spec.sigma for spec in specs],
        [LAWS[spec.law] for spec in specs],
    )
