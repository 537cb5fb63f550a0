"""The cost of deviations: the expected number of rounds in which an arm's estimate leaves its confidence interval.

This is the paper's term `b(g)` (Theorem 1, Lemma 3), as published and as it holds. All of it is per unit of gap: the
bounds multiply it by the sum of all gaps. The derivation is in docs/theory/upper-bound.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

#: Terms summed one by one before the rest is bounded by an integral and its corrections.
_HEAD = 40
#: Shares that diverge more slowly than this are never distinguished.
_LEAST_RATE = 1e-200
#: B_2k / (2k)! of the Euler-Maclaurin formula.
_CORRECTIONS = (1 / 12, -1 / 720, 1 / 30240, -1 / 1209600, 1 / 47900160)


def published(alpha: float, sigma: float, ttl: int) -> float:
    """The factor of b(g) as printed; negative where the printed formula is, nan where it divides by 0.

    Examples
    --------
    At sigma = 1, ttl = 1 and alpha = 1.2 the theorem's condition holds, and yet:

    >>> published(1.2, 1.0, 1) < 0
    True
    """
    hops = ttl + 1
    inside = math.inf if sigma == 0 else hops * (alpha + 0.5) / (4.0 * sigma**2)
    logarithm = math.log(inside)
    if alpha == 0.5 or logarithm == 0.0:
        return math.nan
    return ((alpha + 0.5) / (alpha - 0.5)) ** 2 * 8.0 * hops / logarithm


def corrected(alpha: float, sigma: float, n_agents: int) -> float:
    """The factor of b that holds: `2 [(1 + log N / L) zeta(c) - zeta'(c) / L]`, at the best beta.

    Here `c = alpha beta / (2 sigma^2)` and `L = log(1 / beta)`, for beta between `2 sigma^2 / alpha` and 1. It is
    infinite unless alpha > 2 sigma^2, whatever the ttl. Every beta gives a bound, so the search for the best one need
    not be exact.

    Examples
    --------
    >>> round(corrected(3.0, 1.0, 100), 1)
    410.2
    >>> corrected(2.0, 1.0, 100)
    inf
    """
    if alpha <= 2.0 * sigma**2:
        return math.inf
    if sigma == 0.0:
        return 2.0
    span = math.log(alpha / (2.0 * sigma**2))

    def factor(place: float) -> float:
        # beta runs geometrically from 2 sigma^2 / alpha, at place 0, to 1: c and L depend on the span alone.
        exponent, width = math.exp(place * span), (1.0 - place) * span
        return (1.0 + math.log(n_agents) / width) * zeta(exponent) + log_zeta_sum(exponent) / width

    return 2.0 * _least(factor)


def missed(
    alpha: float, sigma: float, n_heard: int, n_origins: int, rounds: NDArray[np.float64]
) -> NDArray[np.float64]:
    """A bound on the probability that an arm's index is below its mean, in each of the rounds given.

    Lemma B: `(1 + log(n_heard t) / L) Q(n_origins, c log t)` at the best beta, where Q is the tail of the Gamma law,
    which for one origin is `t^-c`. `n_heard` is how many agents' pulls may be in the estimate. `n_origins` is 1 if its
    content was chosen before the rewards were known, and `n_heard` if it is a prefix of each origin's pulls.

    Examples
    --------
    >>> missed(3.0, 0.5, 2, 1, np.array([2.0, 10.0, 100.0])).round(5).tolist()
    [0.25639, 0.00011, 0.0]
    """
    from scipy.special import gammaincc

    logs = np.log(rounds)
    if sigma == 0.0:
        return np.where(rounds > 1, 0.0, 1.0)
    widths = np.geomspace(0.002, 4.0, 60)[:, None]
    places = alpha * np.exp(-widths) / (2.0 * sigma**2) * logs
    tails = np.exp(-places) if n_origins == 1 else gammaincc(n_origins, places)
    found: NDArray[np.float64] = ((1.0 + (math.log(n_heard) + logs) / widths) * tails).min(axis=0)
    return np.minimum(found, 1.0)


def shortfall(share: float, kept: float, n_receivers: float) -> float:
    """The expected number of pulls after which every receiver has, for good, the share `kept` of all earlier ones.

    Each pull arrives with a chance of at least `share`, which is larger than `kept`. By Chernoff a receiver has less
    after some n-th pull or a later one with probability at most `exp(-n kl(kept, share))`.

    Examples
    --------
    >>> shortfall(1.0, 1.0, 5), round(shortfall(0.5, 0.25, 2), 2)
    (0.0, 12.44)
    >>> round(shortfall(1e-20, 5e-21, 3) * 1e-20, 2)
    13.68
    """
    if share >= 1.0:
        return 0.0
    rate = divergence(kept, share)
    if rate < _LEAST_RATE:
        return math.inf
    certain = math.floor(math.log(n_receivers) / rate)
    return certain + n_receivers * math.exp(-rate * (certain + 1)) / -math.expm1(-rate)


def divergence(p: float, q: float) -> float:
    """The Kullback-Leibler divergence from a coin with chance p to one with chance q, for p at most q.

    It is a sum of two non-negative terms, so nothing cancels, however small or close the chances are.

    Examples
    --------
    >>> round(divergence(0.5, 0.75), 6), divergence(1e-18, 2e-18) / 1e-18 == 1.0 - math.log(2.0)
    (0.143841, True)
    """
    if q >= 1.0:
        return 0.0 if p >= 1.0 else math.inf
    return _excess(p, q, q - p) + _excess(1.0 - p, 1.0 - q, p - q)


def _excess(p: float, q: float, apart: float) -> float:
    """`p log(p / q) + apart`, where `apart` is `q - p`, known more exactly than from p and q."""
    if abs(apart) > 0.5 * p:
        return apart + (p * math.log(p / q) if p > 0.0 else 0.0)
    x = apart / p
    # x - log(1 + x), by its series where both are nearly the same.
    return p * (x - math.log1p(x) if abs(x) > 0.01 else x * x * math.fsum((-x) ** k / (k + 2) for k in range(9)))


def _least(function: Callable[[float], float]) -> float:
    """The least value on (0, 1) of a function that grows without bound at both ends."""
    from scipy.optimize import minimize_scalar

    places = [0.5 / 64 + place / 64 for place in range(64)]
    best = min(places, key=function)
    answer = minimize_scalar(function, bounds=(best - 0.5 / 64, best + 0.5 / 64), method="bounded")
    return float(min(answer.fun, function(best)))


def zeta(exponent: float) -> float:
    """Riemann's zeta, the sum of `n ** -exponent`, for an exponent above 1."""
    from scipy.special import zeta as riemann

    return float(riemann(exponent))


def log_zeta_sum(exponent: float) -> float:
    """The sum of `log(n) * n ** -exponent`, which is minus the derivative of zeta, for an exponent above 1.

    Examples
    --------
    >>> round(log_zeta_sum(2.0), 12)
    0.937548254316
    """
    head = math.fsum(math.log(n) * float(n) ** -exponent for n in range(2, _HEAD))
    if exponent > 100.0:
        return head  # what follows is below the smallest bit of the first term
    first, log_first = float(_HEAD), math.log(_HEAD)
    excess = exponent - 1.0
    tail = math.pow(first, -excess) * (log_first / excess + 1.0 / excess**2)
    tail += 0.5 * log_first * math.pow(first, -exponent)
    # The derivatives of log(x) x^-s are x^-(s+k) (free + times log x); the odd ones enter the formula.
    free, times, power = 0.0, 1.0, exponent
    for order in range(1, 2 * len(_CORRECTIONS)):
        free, times, power = times - power * free, -power * times, power + 1.0
        if order % 2:
            tail -= _CORRECTIONS[order // 2] * (free + times * log_first) * math.pow(first, -power)
    return head + tail
