"""Thompson sampling: draw a mean for every arm from what is believed of it, and pull the highest."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Final

from ..arms import BERNOULLI
from ..draws import normal_quantile, uniform
from .base import Policy

TWO_POW_52: Final = 4503599627370496.0
WORD: Final = 20
# More than 95 of 100 attempts succeed, so this many in a row never fail.
MAX_ATTEMPTS: Final = 64


def gamma_attempt(shape: float, u: float, w: float) -> float:
    """A Gamma variate of that shape, at least 1, by Marsaglia and Tsang's method (2000); 0 if the attempt fails.

    Two numbers of `draws.uniform` decide it: which normal quantile is taken, and whether that is accepted.
    """
    d = shape - 1.0 / 3.0
    c = 1.0 / math.sqrt(9.0 * d)
    x = normal_quantile(u)
    root = 1.0 + c * x
    if root > 0.0:
        v = root * root * root
        square = x * x
        if w < 1.0 - 0.0331 * square * square or math.log(w) < 0.5 * square + d * (1.0 - v + math.log(v)):
            return d * v
    return 0.0


def gamma_variate(shape: float, k0: int, k1: int, stream: int, first: int) -> float:
    """A Gamma variate of that shape, at least 1, from the draws of a key, by the attempts from `first` on."""
    for attempt in range(first, MAX_ATTEMPTS):
        variate = gamma_attempt(shape, uniform(k0, k1, attempt, stream, 0, 0), uniform(k0, k1, attempt, stream, 1, 0))
        if variate > 0.0:
            return variate
    return shape - 1.0 / 3.0


def generator_of(u: float) -> tuple[int, int]:
    """The key whose draws a number `u` of `draws.uniform` stands for: its 52 random bits."""
    bits = int(u * TWO_POW_52)
    return bits >> WORD, bits & ((1 << WORD) - 1)


def beta_shapes(mean: float, count: float) -> tuple[float, float]:
    """The shapes of what is believed of a coin, from its mean and number of observations: its ones and zeros, plus 1.

    Sums that were changed on their way may be those of no coin: neither count falls below none.
    """
    ones = mean * count
    zeros = count - ones
    return 1.0 + ones if ones > 0.0 else 1.0, 1.0 + zeros if zeros > 0.0 else 1.0


def beta_variate(a: float, b: float, u: float) -> float:
    """A Beta(a, b) variate, both shapes at least 1, as a pure function of one number `u` of `draws.uniform`.

    The 52 random bits of `u` are the key of a generator of their own, which two Gamma variates are drawn from. It is
    no quantile: it does not rise with `u`.

    Examples
    --------
    >>> 0.0 < beta_variate(2.0, 3.0, 0.25) < 1.0
    True
    """
    k0, k1 = generator_of(u)
    x = gamma_variate(a, k0, k1, 0, 0)
    y = gamma_variate(b, k0, k1, 1, 0)
    return x / (x + y)


@dataclass(frozen=True)
class ThompsonSampling(Policy):
    """Thompson sampling: draw a mean for each arm from its posterior, and pull the arm with the highest.

    The posterior comes from the arm's law. A Bernoulli arm with s ones in n observations has Beta(1 + s, 1 + n - s),
    from a uniform prior. Any other arm has that of Gaussian rewards with the arm's sigma and a flat prior: normal, with
    the observations' mean and standard deviation `sigma / sqrt(n)`. An arm whose law has no sigma is an error.

    Notes
    -----
    Thompson, "On the likelihood that one unknown probability exceeds another in view of the evidence of two samples",
    Biometrika 1933; for its regret, Agrawal and Goyal, "Further optimal regret bounds for Thompson sampling", AISTATS
    2013, and Kaufmann, Korda and Munos, "Thompson sampling: an asymptotically optimal finite-time analysis", ALT 2012.

    Examples
    --------
    >>> import banditmesh as bm
    >>> problem = bm.Problem.paper("er", seed=0)
    >>> thompson, ucb = (
    ...     bm.simulate(problem, bm.FwA(4), policy=policy, horizon=200, seed=0).regret[0, -1]
    ...     for policy in (bm.ThompsonSampling(), bm.UCB())
    ... )
    >>> bool(thompson < ucb)
    True
    """

    name: ClassVar[str] = "thompson"
    needs_sigmas: ClassVar[bool] = True
    random: ClassVar[bool] = True

    @staticmethod
    def index(
        mean: float, count: float, inv_root: float, clock: float, sigma: float, law: int, u: float, parameter: float
    ) -> float:
        """The mean that is drawn."""
        if law == BERNOULLI:
            a, b = beta_shapes(mean, count)
            return beta_variate(a, b, u)
        return mean + sigma * inv_root * normal_quantile(u)
