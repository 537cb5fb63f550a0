"""What every reward law is: the contract, and what the built-in laws share."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import ArmError
from .quantiles import OTHER

Floats = npt.NDArray[np.float64]


class Law:
    """What every reward law offers. Your own law is a subclass with a `mean` and a `quantile`.

    Attributes
    ----------
    mean : float
        The expected reward.
    sigma : float or None
        The sub-Gaussian parameter; None if there is none or none is known.
    continuous : bool
        Whether two rewards, as floats, are never equal; False unless a law says otherwise. The compiled engine tells
        messages apart by it under the published rules, so a law that may round two rewards to the same float is not
        continuous.
    kernel : tuple of (int, float, float) or None
        The law as `law_quantile` takes it, for the compiled engine; None if it cannot be put so.

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

    @property
    def code(self) -> int:
        """`GAUSSIAN`, `BERNOULLI`, `UNIFORM` or, without a `kernel`, `OTHER`: what a policy is told of the law."""
        return OTHER if self.kernel is None else self.kernel[0]

    def quantile(self, u: float) -> float:
        """The reward for the uniform number `u` in (0, 1)."""
        raise NotImplementedError(f"{type(self).__name__} must define quantile(u)")

    def quantiles(self, u: npt.ArrayLike) -> Floats:
        """The rewards for an array of uniform numbers: `quantile` of each, bit for bit."""
        uniforms = np.asarray(u, dtype=np.float64)
        rewards = [self.quantile(x) for x in uniforms.ravel().tolist()]
        return np.array(rewards, dtype=np.float64).reshape(uniforms.shape)

    def describe(self) -> dict[str, Any]:
        """The law as plain JSON values; `from_description` makes it again."""
        raise ArmError(f"a law that is saved must define describe(), got {type(self).__name__} without it")


def derive(law: Law, **values: object) -> None:
    """Set attributes of a frozen law while it is being made."""
    for name, value in values.items():
        object.__setattr__(law, name, value)


def never_equal(spread: float, largest: float) -> bool:
    """Whether rewards spread this far, around values up to this size, can be taken never to round to the same float.

    Floats near `largest` are at most 2**-52 of it apart, so at least 2**32 of them lie within the spread, and two
    rewards are equal with a probability of at most about 2**-32. The absolute ends keep away from where floats run out
    of digits, and from infinity.
    """
    return max(2.0**-20 * largest, 2.0**-900) <= spread <= 2.0**1000
