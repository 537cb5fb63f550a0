"""Reward laws: what an arm pays.

A law turns one uniform number into one reward, by its quantile function. So a single draw per pull serves
every law, and two protocols that pull the same arm in the same round are paid the same.

Rules: a law is frozen; its parameters are checked when it is made; `quantile` never falls as its argument
grows; `quantiles` gives the very bits of `quantile`, element by element. The laws that the compiled engine
knows are described by a code and two numbers, and `law_quantile` is their one definition.

The generators of arm sets live in `armsets` and are offered here too.
"""

# Methods that override those of `Law` are documented there.
# ruff: noqa: D102

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from . import checks
from .armsets import far_apart_sets, random_sets, uniform_sets
from .draws import normal_quantile
from .errors import ArmError, InputError

__all__ = [
    "Bernoulli",
    "Beta",
    "Empirical",
    "Gaussian",
    "Law",
    "ScipyLaw",
    "Uniform",
    "as_law",
    "far_apart_sets",
    "from_description",
    "law_quantile",
    "random_sets",
    "uniform_sets",
]

Floats = npt.NDArray[np.float64]

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
    if code == GAUSSIAN:
        return a + b * normal_quantile(u)
    if code == BERNOULLI:
        return 1.0 if u > 1.0 - a else 0.0
    return a + (b - a) * u


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


def _derive(law: Law, **values: object) -> None:
    """Set attributes of a frozen law while it is being made."""
    for name, value in values.items():
        object.__setattr__(law, name, value)


def _never_equal(spread: float, largest: float) -> bool:
    """Whether rewards spread this far, around values up to this size, can be taken never to round to the same float.

    Floats near `largest` are at most 2**-52 of it apart, so at least 2**32 of them lie within the spread, and two
    rewards are equal with a probability of at most about 2**-32. The absolute ends keep away from where floats run out
    of digits, and from infinity.
    """
    return max(2.0**-20 * largest, 2.0**-900) <= spread <= 2.0**1000


@dataclass(frozen=True)
class Gaussian(Law):
    """Normal rewards. They are continuous unless `sigma` is tiny beside the mean, below 2**-20 of it.

    Parameters
    ----------
    mean : float
    sigma : float
        The standard deviation, above zero.

    Examples
    --------
    >>> Gaussian(0.5, 2.0).quantile(0.5)
    0.5
    """

    mean: float
    sigma: float = 1.0

    def __post_init__(self) -> None:
        _derive(self, mean=checks.real("mean", self.mean), sigma=checks.positive("sigma", self.sigma))
        _derive(self, continuous=_never_equal(self.sigma, abs(self.mean)), kernel=(GAUSSIAN, self.mean, self.sigma))

    def quantile(self, u: float) -> float:
        return law_quantile(GAUSSIAN, self.mean, self.sigma, u)

    def describe(self) -> dict[str, Any]:
        return {"law": "gaussian", "mean": self.mean, "sigma": self.sigma}


@dataclass(frozen=True)
class Bernoulli(Law):
    """Rewards 0 and 1.

    `sigma` squared is the least variance proxy, (1 - 2p) / (2 log((1 - p) / p)) (Kearns and Saul, 1998).

    Parameters
    ----------
    p : float
        The probability of 1; 0 and 1 are allowed.

    Examples
    --------
    >>> law = Bernoulli(0.5)
    >>> law.mean, law.sigma, law.quantile(0.7)
    (0.5, 0.5, 1.0)
    """

    p: float

    def __post_init__(self) -> None:
        p = checks.probability("p", self.p)
        sigma = _bernoulli_sigma(p)
        _derive(self, p=p, mean=p, sigma=sigma, kernel=(BERNOULLI, p, 0.0))

    def quantile(self, u: float) -> float:
        return law_quantile(BERNOULLI, self.p, 0.0, u)

    def quantiles(self, u: npt.ArrayLike) -> Floats:
        return np.where(np.asarray(u, dtype=np.float64) > 1.0 - self.p, 1.0, 0.0)

    def describe(self) -> dict[str, Any]:
        return {"law": "bernoulli", "p": self.p}


def _bernoulli_sigma(p: float) -> float:
    if p in (0.0, 1.0):
        return 0.0
    x = 1.0 - 2.0 * p
    if x == 0.0:
        return 0.5
    # log((1 - p) / p) is 2 artanh(x): exact to rounding near p = 1/2, where the difference of logs cancels.
    log_odds = 2.0 * math.atanh(x) if abs(x) < 0.5 else math.log1p(-p) - math.log(p)
    return math.sqrt(x / (2.0 * log_odds))


@dataclass(frozen=True)
class Uniform(Law):
    """Rewards spread evenly between two values. `sigma` is the standard deviation, which is exact here.

    They are continuous unless the two values are very close, nearer than 2**-20 of the larger.

    Parameters
    ----------
    low, high : float
        With low < high.

    Examples
    --------
    >>> law = Uniform(0.0, 4.0)
    >>> law.mean, law.quantile(0.25)
    (2.0, 1.0)
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        low, high = checks.real("low", self.low), checks.real("high", self.high)
        if not low < high:
            raise ArmError(f"high must be above low, got low {low!r} and high {high!r}")
        width = checks.positive("high - low", high - low)
        sigma = width / math.sqrt(12.0)
        continuous = _never_equal(width, max(abs(low), abs(high)))
        _derive(self, low=low, high=high, mean=low + width / 2.0, sigma=sigma)
        _derive(self, continuous=continuous, kernel=(UNIFORM, low, high))

    def quantile(self, u: float) -> float:
        return law_quantile(UNIFORM, self.low, self.high, u)

    def quantiles(self, u: npt.ArrayLike) -> Floats:
        return np.asarray(self.low + (self.high - self.low) * np.asarray(u, dtype=np.float64))

    def describe(self) -> dict[str, Any]:
        return {"law": "uniform", "low": self.low, "high": self.high}


@dataclass(frozen=True)
class Beta(Law):
    """Beta rewards on [0, 1].

    `sigma` is 1 / (2 sqrt(a + b + 1)), a simple bound that always holds (Marchal and Arbel, 2017). With a shape below
    1, rewards may round to 0 or 1, and with a very large one to the same number near their mean: then they are not
    continuous.

    Parameters
    ----------
    a, b : float
        The two shapes, above zero.

    Examples
    --------
    >>> law = Beta(2.0, 2.0)
    >>> law.mean, round(law.quantile(0.5), 12)
    (0.5, 0.5)
    """

    a: float
    b: float

    def __post_init__(self) -> None:
        a, b = checks.positive("a", self.a), checks.positive("b", self.b)
        n = checks.positive("a + b", a + b)
        mean, deviation = a / n, math.sqrt(a / n * (b / n) / (n + 1.0))
        continuous = min(a, b) >= 1.0 and _never_equal(deviation, mean)
        _derive(self, a=a, b=b, mean=mean, sigma=0.5 / math.sqrt(n + 1.0), continuous=continuous)

    def quantile(self, u: float) -> float:
        from scipy.special import betaincinv

        return float(betaincinv(self.a, self.b, u))

    def quantiles(self, u: npt.ArrayLike) -> Floats:
        from scipy.special import betaincinv

        return np.asarray(betaincinv(self.a, self.b, np.asarray(u, dtype=np.float64)))

    def describe(self) -> dict[str, Any]:
        return {"law": "beta", "a": self.a, "b": self.b}


@dataclass(frozen=True)
class Empirical(Law):
    """Rewards drawn from a given sample, each entry equally likely. `sigma` is half the range (Hoeffding).

    Parameters
    ----------
    sample : iterable of float
        At least one finite number; kept sorted.

    Examples
    --------
    >>> law = Empirical([3.0, 1.0, 2.0])
    >>> law.mean, law.quantile(0.1), law.quantile(0.9)
    (2.0, 1.0, 3.0)
    """

    sample: Iterable[float]
    _sorted: Floats = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        try:
            values = iter(self.sample)
        except TypeError:
            raise ArmError(f"sample must be a list of numbers, got {checks.shown(self.sample)}") from None
        sample = tuple(sorted(checks.real("every entry of sample", value) for value in values))
        if not sample:
            raise ArmError("sample must have at least one number, got none")
        if not math.isfinite(max(abs(sample[0]), abs(sample[-1])) * 2.0 * len(sample)):
            raise ArmError("sample must have a sum that a float can hold, got entries too large; scale them down")
        array = np.array(sample, dtype=np.float64)
        array.flags.writeable = False
        mean, sigma = math.fsum(sample) / len(sample), (sample[-1] - sample[0]) / 2.0
        _derive(self, sample=sample, mean=mean, sigma=sigma, _sorted=array)

    def quantile(self, u: float) -> float:
        return float(self._sorted[int(u * len(self._sorted))])

    def quantiles(self, u: npt.ArrayLike) -> Floats:
        places = np.asarray(u, dtype=np.float64) * len(self._sorted)
        return np.asarray(self._sorted[places.astype(np.int64)])

    def describe(self) -> dict[str, Any]:
        return {"law": "empirical", "sample": self._sorted.tolist()}


@dataclass(frozen=True, repr=False)
class ScipyLaw(Law):
    """Any frozen law of scipy.stats with a finite mean.

    `sigma` is the standard deviation of a normal law, half the range of a bounded one, and otherwise None:
    then the law can be simulated, but bounds must be given a sigma. It never counts as continuous, because scipy's
    quantiles may round to the ends of their range.

    Parameters
    ----------
    frozen : frozen distribution of scipy.stats

    Examples
    --------
    >>> import scipy.stats
    >>> law = ScipyLaw(scipy.stats.expon(scale=2.0))
    >>> law
    ScipyLaw(expon(scale=2.0))
    >>> law.mean, law.sigma, law.continuous
    (2.0, None, False)
    """

    frozen: Any

    def __repr__(self) -> str:
        keywords = (f"{name}={value!r}" for name, value in self.frozen.kwds.items())
        return f"ScipyLaw({self.frozen.dist.name}({', '.join([*map(repr, self.frozen.args), *keywords])}))"

    def __post_init__(self) -> None:
        if not _is_frozen(self.frozen):
            raise ArmError(f"a frozen scipy.stats law is required, got {type(self.frozen).__name__}")
        if np.ndim(self.frozen.mean()):
            raise ArmError("an arm must be a single law, got a scipy.stats law with arrays of parameters")
        mean = float(self.frozen.mean())
        if not math.isfinite(mean):
            raise ArmError(f"a law needs a finite mean, got scipy.stats.{self.frozen.dist.name} with mean {mean}")
        low, high = (float(end) for end in self.frozen.support())
        sigma = (high - low) / 2.0 if math.isfinite(high - low) else None
        if self.frozen.dist.name == "norm":
            sigma = float(self.frozen.std())
        _derive(self, mean=mean, sigma=sigma)

    def quantile(self, u: float) -> float:
        # Through an array, so that scipy takes the same path as in `quantiles`.
        return float(self.quantiles(np.array([u]))[0])

    def quantiles(self, u: npt.ArrayLike) -> Floats:
        return np.asarray(self.frozen.ppf(np.asarray(u, dtype=np.float64)), dtype=np.float64)

    def describe(self) -> dict[str, Any]:
        import scipy.stats

        name = self.frozen.dist.name
        if not hasattr(scipy.stats, str(name)):
            raise ArmError(f"a saved law must be one of scipy.stats by name, got {name!r}")
        keywords = {key: float(value) for key, value in self.frozen.kwds.items()}
        return {"law": "scipy", "name": name, "args": [float(x) for x in self.frozen.args], "kwds": keywords}


def _is_frozen(value: object) -> bool:
    return all(hasattr(value, name) for name in ("dist", "args", "kwds", "ppf", "support"))


def as_law(value: object) -> Law:
    """`value` as a law: a law itself, or a frozen law of scipy.stats.

    scipy's norm and uniform become `Gaussian` and `Uniform`, which the compiled engine knows.

    Examples
    --------
    >>> import scipy.stats
    >>> as_law(scipy.stats.norm(0.5, 2.0))
    Gaussian(mean=0.5, sigma=2.0)
    """
    if isinstance(value, Law):
        return _checked(value)
    if not _is_frozen(value):
        raise ArmError(
            "an arm must be a law of banditmesh.arms or a frozen scipy.stats law, "
            f"got {checks.shown(value)} of type {type(value).__name__}"
        )
    law = ScipyLaw(value)
    if law.frozen.dist.name == "norm":
        return Gaussian(law.mean, float(law.frozen.std()))
    if law.frozen.dist.name == "uniform":
        return Uniform(*(float(end) for end in law.frozen.support()))
    return law


def _checked(law: Law) -> Law:
    """A law, perhaps of the caller's own, whose mean and sigma can be reckoned with."""
    kind = type(law).__name__
    if not hasattr(law, "mean"):
        raise ArmError(f"a law needs a mean, got {kind} without one; set it to the expected reward")
    try:
        checks.real("mean", law.mean)
        if law.sigma is not None and checks.real("sigma", law.sigma) < 0:
            raise InputError(f"sigma must be None or a number of at least 0, got {law.sigma!r}")
    except InputError as error:
        raise ArmError(f"the law {kind} cannot be used: {error}") from None
    return law


def _scipy_law(name: str, args: list[float], kwds: dict[str, float]) -> Law:
    import scipy.stats

    return ScipyLaw(getattr(scipy.stats, name)(*args, **kwds))


_MAKERS: Final[dict[str, Callable[..., Law]]] = {
    "bernoulli": Bernoulli,
    "beta": Beta,
    "empirical": Empirical,
    "gaussian": Gaussian,
    "scipy": _scipy_law,
    "uniform": Uniform,
}


def from_description(description: Mapping[str, Any]) -> Law:
    """The law that `Law.describe` described.

    Examples
    --------
    >>> from_description({"law": "bernoulli", "p": 0.25})
    Bernoulli(p=0.25)
    """
    parameters = dict(description)
    name = checks.choice("law", parameters.pop("law", None), _MAKERS)
    try:
        return _MAKERS[name](**parameters)
    except (TypeError, AttributeError) as error:
        raise ArmError(f"the parameters of the law {name} do not fit, got {parameters!r}: {error}") from None
