"""The laws that kernels know, each described by a code and two numbers, and `law_quantile`, their one definition."""

from __future__ import annotations

from typing import Final

from ..draws import normal_quantile

GAUSSIAN: Final = 0
BERNOULLI: Final = 1
UNIFORM: Final = 2
#: Any law that `law_quantile` does not know.
OTHER: Final = 3


def law_quantile(code: int, a: float, b: float, u: float) -> float:
    """The reward of the law (code, a, b) for the uniform number `u`; plain Python and compiled code share it.

    Parameters
    ----------
    code : int
        `GAUSSIAN` (a the mean, b the standard deviation), `BERNOULLI` (a the probability of 1) or `UNIFORM`
        (from a to b).
    a, b : float
        The law's two numbers.
    u : float
        In the open interval (0, 1).

    Examples
    --------
    >>> law_quantile(UNIFORM, 2.0, 4.0, 0.25)
    2.5
    """
    return law_reward(code, a, b, u, normal_quantile(u) if code == GAUSSIAN else 0.0)


def law_reward(code: int, a: float, b: float, u: float, normal: float) -> float:
    """The same, for whoever has the standard normal quantile of `u` already; only `GAUSSIAN` laws need it.

    Examples
    --------
    >>> law_reward(GAUSSIAN, 2.0, 0.5, 0.5, normal_quantile(0.5))
    2.0
    """
    if code == GAUSSIAN:
        return a + b * normal
    if code == BERNOULLI:
        return 1.0 if u > 1.0 - a else 0.0
    return a + (b - a) * u
