"""KL-UCB: the highest mean that what was seen does not rule out."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Final

from .. import checks
from ..arms import BERNOULLI
from .base import Policy

_MAX_STEPS: Final = 64


def bernoulli_bound(mean: float, budget: float) -> float:
    """The largest q in [mean, 1] whose Bernoulli divergence d(mean, q) is at most `budget`.

    Newton's iteration from above. There d(mean, .) is convex and rises, so that it falls to the root without ever
    passing it; bisection takes over where rounding would carry it past the mean. A mean outside [0, 1] counts as 0
    or 1.

    Examples
    --------
    >>> round(bernoulli_bound(0.5, 0.2), 6)
    0.787089
    >>> bernoulli_bound(1.0, 0.2), bernoulli_bound(0.3, 0.0)
    (1.0, 0.3)
    """
    if mean >= 1.0:
        return 1.0
    if budget <= 0.0:
        return mean if mean > 0.0 else 0.0
    if mean <= 0.0:
        return 1.0 - math.exp(-budget)
    rest = 1.0 - mean
    constant = mean * math.log(mean) + rest * math.log(rest) - budget
    # Two values that the root is not above: d(m, q) >= (q - m)^2 / (2 q (1 - m)), and, as log q is not above 0,
    # d(m, q) + budget >= constant - (1 - m) log(1 - q). One is close for small budgets, the other for large ones.
    spread = rest * budget
    bound = mean + spread + math.sqrt(spread * spread + 2.0 * mean * spread)
    other = 1.0 - math.exp(constant / rest)
    if other < bound:
        bound = other
    if bound >= 1.0:
        return 1.0
    if not mean < bound:
        # The budget is so small that rounding leaves nothing above the mean.
        return mean
    for _ in range(_MAX_STEPS):
        excess = constant - mean * math.log(bound) - rest * math.log(1.0 - bound)
        step = excess * bound * (1.0 - bound) / (bound - mean)
        lower = bound - step
        if lower <= mean:
            lower = 0.5 * (mean + bound)
        if not mean < lower < bound:
            break
        # Newton squares its error: after a step as small as this one, what is left is below rounding.
        last = step <= 1e-8 * (bound - mean) * (1.0 - bound)
        bound = lower
        if last:
            break
    return bound


@dataclass(frozen=True)
class KLUCB(Policy):
    """KL-UCB: pull the arm with the highest mean q that `count * d(mean, q) <= log(t) + c log(log(t))` allows.

    The divergence d comes from the arm's law: that of Bernoulli laws for a Bernoulli arm, and for any other that of
    Gaussian laws with the arm's sigma, where the index is `mean + sigma sqrt(2 (log(t) + c log(log(t))) / count)`. An
    arm whose law has no sigma is an error.

    Parameters
    ----------
    c : float
        The weight of log(log(t)). The regret bound was proved with 3; 0 does better, and its authors recommend it.

    Notes
    -----
    Garivier and Cappé, "The KL-UCB algorithm for bounded stochastic bandits and beyond", COLT 2011.

    Examples
    --------
    >>> import banditmesh as bm
    >>> coins = bm.Problem(bm.networks.ring(5), [[0, 1]] * 5, [bm.arms.Bernoulli(0.9), bm.arms.Bernoulli(0.8)])
    >>> kl, ucb = (
    ...     bm.simulate(coins, bm.IRS(), policy=policy, horizon=500, replicates=5, seed=0).regret[:, -1].mean()
    ...     for policy in (bm.KLUCB(), bm.UCB(alpha=2.0))
    ... )
    >>> bool(kl < ucb)
    True
    """

    c: float = 0.0
    name: ClassVar[str] = "klucb"
    needs_sigmas: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "c", checks.non_negative("c", self.c))

    @property
    def parameter(self) -> float:
        """The weight of log(log(t))."""
        return self.c

    @staticmethod
    def clock(t: float, parameter: float) -> float:
        """`log(t) + c log(log(t))`; without its second term while log(t) is below 1."""
        log = math.log(t)
        return log + parameter * math.log(log) if log > 1.0 else log

    @staticmethod
    def index(
        mean: float, count: float, inv_root: float, clock: float, sigma: float, law: int, u: float, parameter: float
    ) -> float:
        """The highest mean that is allowed."""
        if law == BERNOULLI:
            return bernoulli_bound(mean, clock / count)
        return mean + sigma * math.sqrt(2.0 * clock) * inv_root
