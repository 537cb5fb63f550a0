"""What every reward law is: the contract, what the built-in laws share, and how large a reward may be.

Every reward lies within `MAX_REWARD` of 0. Then the sum of as many rewards as a counter can count is a number, and so
is the sum of their squares: no mean is ever infinite or NaN, for which engines have no order. As quantiles never fall,
a law keeps within the bound if its two ends do.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from .. import checks
from ..draws import GREATEST_UNIFORM, LEAST_UNIFORM
from ..errors import ArmError
from .quantiles import OTHER

Floats = npt.NDArray[np.float64]

#: No reward is larger than this, nor smaller than its negative.
MAX_REWARD: Final = 1e100
#: The least and the greatest number that is ever drawn for a reward.
ENDS: Final = (LEAST_UNIFORM, GREATEST_UNIFORM)


class Law:
    """What every reward law offers. Your own law is a subclass with a `mean` and a `quantile`.

    Attributes
    ----------
    mean : float
        The expected reward.
    sigma : float or None
        The sub-Gaussian parameter; None if there is none or none is known.
    continuous : bool
        Whether two rewards, as floats, are hardly ever equal; False unless a law says otherwise. Under the published
        rules, which take equal rewards for one message, the compiled engine runs such laws, unless it finds that two
        rewards of the run would be equal.
    kernel : tuple of (int, float, float) or None
        The law as `law_quantile` takes it, for the compiled engine; None if it cannot be put so.
    changes : bool
        Whether it pays by another law in some rounds than in others, see `ChangingLaw`.

    Examples
    --------
    >>> class Coin(Law):
    ...     mean = 0.0
    ...     sigma = 1.0
    ...
    ...     def quantile(self, u):
    ...         return 1.0 if u > 0.5 else -1.0
    >>> Coin().quantiles([0.2, 0.7])
    array([-1.,  1.])
    """

    mean: float
    sigma: float | None = None
    continuous: bool = False
    kernel: tuple[int, float, float] | None = None
    changes: bool = False

    def at(self, t: int) -> Law:
        """The law that pays in round `t`, from 1: this one, unless it changes."""
        return self

    @property
    def code(self) -> int:
        """`GAUSSIAN`, `BERNOULLI`, `UNIFORM` or, without a `kernel`, `OTHER`: what a policy knows of the law."""
        return OTHER if self.kernel is None else self.kernel[0]

    def quantile(self, u: float) -> float:
        """The reward for the uniform number `u` in (0, 1)."""
        raise ArmError(f"a law that is drawn from must define quantile(u), got {type(self).__name__} without it")

    def quantiles(self, u: npt.ArrayLike) -> Floats:
        """The rewards for an array of uniform numbers: `quantile` of each, bit for bit."""
        uniforms = np.asarray(u, dtype=np.float64)
        rewards = [reward_of(self, x) for x in uniforms.ravel().tolist()]
        return np.array(rewards, dtype=np.float64).reshape(uniforms.shape)

    def describe(self) -> dict[str, Any]:
        """The law as plain JSON values; `from_description` makes it again."""
        raise ArmError(f"a law that is saved must define describe(), got {type(self).__name__} without it")


def reward_of(law: Law, u: float) -> float:
    """What a law pays for the uniform number `u`, checked: a law may be a user's own.

    Examples
    --------
    >>> import banditmesh as bm
    >>> reward_of(bm.arms.Uniform(0.0, 4.0), 0.25)
    1.0
    """
    reward: Any = law.quantile(u)
    if isinstance(reward, str | bytes):
        raise _out_of_bounds(law, u, reward)
    try:
        number = float(reward)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not abs(number) <= MAX_REWARD:
        raise _out_of_bounds(law, u, reward)
    return number


def rewards_of(law: Law, u: Floats) -> Floats:
    """What a law pays for an array of uniform numbers, checked.

    Examples
    --------
    >>> import banditmesh as bm
    >>> rewards_of(bm.arms.Uniform(0.0, 4.0), np.array([0.25, 0.5]))
    array([1., 2.])
    """
    rewards = checks.floats(f"quantiles of the law {type(law).__name__}", law.quantiles(u))
    if rewards.shape != u.shape:
        raise ArmError(f"quantiles of the law {type(law).__name__} must have shape {u.shape}, got {rewards.shape}")
    bad = np.flatnonzero(~(np.abs(rewards) <= MAX_REWARD))
    if len(bad):
        raise _out_of_bounds(law, float(u.flat[bad[0]]), float(rewards.flat[bad[0]]))
    return rewards


def check_range(law: Law) -> None:
    """Refuse a law that can pay more than `MAX_REWARD`, or what is no number."""
    for u in ENDS:
        reward_of(law, u)


def _out_of_bounds(law: Law, u: float, reward: object) -> ArmError:
    return ArmError(
        f"rewards must be numbers between {-MAX_REWARD:g} and {MAX_REWARD:g}, "
        f"got {checks.shown(reward)} from the law {type(law).__name__} for u = {u!r}"
    )


def derive(law: Law, **values: object) -> None:
    """Set attributes of a frozen law while it is being made."""
    for name, value in values.items():
        object.__setattr__(law, name, value)


def never_equal(spread: float, largest: float) -> bool:
    """Whether rewards spread this far, around values up to this size, hardly ever round to the same float.

    Floats near `largest` are at most 2**-52 of it apart, so at least 2**32 of them lie within the spread, and two
    rewards are equal with a probability of at most about 2**-32. The absolute end keeps away from where floats run out
    of digits.
    """
    return max(2.0**-20 * largest, 2.0**-900) <= spread
