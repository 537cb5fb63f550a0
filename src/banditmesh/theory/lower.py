"""The lower bound: what every consistent policy must pay, as a constant of log T (Theorem 3).

To tell arm a from one that would be better, agents must pull it `log T / information` times, where the information is
the Kullback-Leibler divergence from a's law to the nearest law of its class that would make it best. As published the
sum runs over all arms that are suboptimal for some agent. That is too much: an agent whose best arm is a pulls it for
free and can tell the others. So the corrected sum runs, in each connected component, over the arms that are no agent's
best there. docs/theory/lower-bound.md has the proof.

The class of a law is its exponential family: Gaussian laws with the same sigma, Bernoulli laws, and for other bounded
laws those with density proportional to `exp(theta x)` with respect to it. A law from scipy.stats has no class here, and
its arm adds nothing, so the bound remains a lower bound.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..arms import Bernoulli, Beta, Empirical, Gaussian, Law, Uniform
from ..errors import InputError
from ..problem import Problem
from .concentration import divergence
from .gaps import ArmGaps

#: Nodes of the quadrature for a Beta law; enough unless the mean is within 1e-4 of the law's end.
_NODES = 400


@dataclass(frozen=True)
class LowerBounds:
    """Lower bounds on the regret over log T, as T grows.

    Attributes
    ----------
    published, corrected : float
        The paper's constant, and the one that holds.
    by_arm_published, by_arm_corrected : float arrays (arms,)
        What every arm adds to each.
    unknown : tuple
        Arms that add nothing because no class is known for their law.
    """

    published: float
    corrected: float
    by_arm_published: NDArray[np.float64]
    by_arm_corrected: NDArray[np.float64]
    unknown: tuple[Hashable, ...]


def lower_bounds(problem: Problem, arms: list[ArmGaps], components: NDArray[np.int64]) -> LowerBounds:
    """The lower bounds of a problem whose agents can inform each other within the given components."""
    published, corrected = np.zeros(problem.n_arms), np.zeros(problem.n_arms)
    unknown = []
    for arm in arms:
        law = problem.laws[arm.index]
        if not arm.suboptimal.size:
            continue
        if not has_class(law):
            unknown.append(arm.arm)
            continue
        published[arm.index] = _constant(law, arm.gap_min)
        free = np.unique(components[np.setdiff1d(arm.holders, arm.suboptimal)])
        places = components[arm.suboptimal]
        corrected[arm.index] = math.fsum(
            _constant(law, float(arm.gaps[places == component].min()))
            for component in np.setdiff1d(np.unique(places), free)
        )
    return LowerBounds(
        published=math.fsum(published),
        corrected=math.fsum(corrected),
        by_arm_published=published,
        by_arm_corrected=corrected,
        unknown=tuple(unknown),
    )


def _constant(law: Law, gap: float) -> float:
    least = information(law, law.mean + gap)
    if least > 0.0:
        return gap / least
    # The gap, or its square, is too small for a float. Zero is a valid lower bound.
    return 2.0 * law.sigma**2 / gap if isinstance(law, Gaussian) else 0.0


def has_class(law: Law) -> bool:
    """Whether the law's class is known, so that its arm enters the lower bound."""
    return isinstance(law, Gaussian | Bernoulli | Uniform | Beta | Empirical)


def class_sigma(law: Law) -> float:
    """A sub-Gaussian parameter that all laws of the class share: half the range of bounded laws.

    UCB is consistent on the class if alpha exceeds twice its square.
    """
    if isinstance(law, Gaussian):
        return law.sigma
    low, high = _range(law)
    return (high - low) / 2.0


def information(law: Law, mean: float) -> float:
    """The least Kullback-Leibler divergence from a law to one of its class whose mean is at least `mean`.

    Parameters
    ----------
    law : Law
        Gaussian, Bernoulli, Uniform, Beta or Empirical.
    mean : float
        At least the law's own mean.

    Returns
    -------
    float
        Infinite if no law of the class has such a mean.

    Examples
    --------
    >>> import banditmesh as bm
    >>> information(bm.arms.Gaussian(0.0, 2.0), 1.0)
    0.125
    >>> round(information(bm.arms.Bernoulli(0.5), 0.75), 6)
    0.143841
    """
    if not has_class(law):
        raise InputError(f"information is known for Gaussian, Bernoulli, Uniform, Beta and Empirical laws, got {law!r}")
    if mean <= law.mean:
        return 0.0
    if isinstance(law, Gaussian):
        return (mean - law.mean) ** 2 / (2.0 * law.sigma**2)
    if isinstance(law, Bernoulli):
        return divergence(law.p, mean)
    if mean >= _range(law)[1]:
        return math.inf
    if isinstance(law, Uniform):
        return _uniform((mean - law.mean) / ((law.high - law.low) / 2.0))
    return _tilted(*_atoms(law), mean)


def _uniform(place: float) -> float:
    """From the uniform law on [-1, 1] to the one of mean `place`: log(sinh(y) / y), where coth(y) - 1/y = place."""
    from scipy.optimize import brentq

    if place < 1e-4:
        return 1.5 * place**2  # the next term is smaller by the factor place**2
    theta = float(brentq(lambda y: 1.0 / math.tanh(y) - 1.0 / y - place, place, 2.0 / (1.0 - place) + 3.0, rtol=1e-14))
    return theta + math.log1p(-math.exp(-2.0 * theta)) - math.log(2.0 * theta)


def _range(law: Law) -> tuple[float, float]:
    if isinstance(law, Uniform):
        return law.low, law.high
    if isinstance(law, Empirical):
        sample = tuple(law.sample)
        return min(sample), max(sample)
    return 0.0, 1.0


def _atoms(law: Law) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Values and probabilities: those of a discrete law, or of the Gaussian quadrature that belongs to it."""
    from scipy.special import roots_jacobi

    if isinstance(law, Empirical):
        values, counts = np.unique(np.array(tuple(law.sample)), return_counts=True)
        return values, counts / counts.sum()
    assert isinstance(law, Beta)
    nodes, weights = roots_jacobi(_NODES, law.b - 1.0, law.a - 1.0)
    return (nodes + 1.0) / 2.0, weights / weights.sum()


def _tilted(values: NDArray[np.float64], weights: NDArray[np.float64], mean: float) -> float:
    """The divergence to the law with weights proportional to `weights * exp(theta * values)` of the given mean."""
    from scipy.optimize import brentq
    from scipy.special import logsumexp

    centre = float(weights @ values)
    shifted = values - centre

    def excess(theta: float) -> float:
        tilt = np.exp(theta * shifted - (theta * shifted).max()) * weights
        return float(tilt @ shifted / tilt.sum()) - (mean - centre)

    top = 1.0 / max(float(np.ptp(values)), 1e-300)
    while excess(top) < 0.0:
        top *= 2.0
        if top * float(np.ptp(values)) > 1e6:
            return math.inf
    theta = float(brentq(excess, 0.0, top, xtol=1e-14 * top, rtol=1e-14))
    return float(logsumexp(theta * shifted, b=weights))
