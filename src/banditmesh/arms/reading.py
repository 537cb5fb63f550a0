"""How a value from outside becomes a law: an arm that a caller gives, and the description that a file holds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from .. import checks
from ..errors import ArmError, InputError
from .base import ENDS, MAX_REWARD, Law, reward_of
from .bernoulli import Bernoulli
from .beta import Beta
from .changing import ChangingLaw, RandomLaw, same_kind
from .drifting import Drifting
from .empirical import Empirical
from .gaussian import Gaussian
from .piecewise import Piecewise
from .quantiles import law_quantile
from .replay import Replay
from .scipy_laws import ScipyLaw, is_frozen
from .seasonal import Seasonal
from .switching import Switching
from .uniform import Uniform
from .wandering import Wandering


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
    if not is_frozen(value):
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
    """A law, perhaps of the caller's own, whose mean, sigma and rewards can be reckoned with."""
    kind = type(law).__name__
    if isinstance(law, ChangingLaw):
        # The first round stands for all, whose laws are checked when they are asked for.
        first = law.law if isinstance(law, RandomLaw) else law.at(1)
        same_kind(first, first, f"every round of {kind}")
        _checked(first)
        if law.sigma is not None and not 0 <= checks.real("sigma", law.sigma) <= MAX_REWARD:
            raise ArmError(f"sigma must be None or a number between 0 and {MAX_REWARD:g}, got {law.sigma!r}")
        return law
    if not hasattr(law, "mean"):
        raise ArmError(f"a law needs a mean, got {kind} without one; set it to the expected reward")
    try:
        if abs(checks.real("mean", law.mean)) > MAX_REWARD:
            raise InputError(f"mean must lie between {-MAX_REWARD:g} and {MAX_REWARD:g}, got {law.mean!r}")
        if law.sigma is not None and not 0 <= checks.real("sigma", law.sigma) <= MAX_REWARD:
            raise InputError(f"sigma must be None or a number between 0 and {MAX_REWARD:g}, got {law.sigma!r}")
    except InputError as error:
        raise ArmError(f"the law {kind} cannot be used: {error}") from None
    if type(law).quantile is Law.quantile and law.kernel is None:
        return law  # its rewards can only come from a tape
    for u in ENDS:
        reward = reward_of(law, u)
        if law.kernel is not None and law_quantile(*law.kernel, u) != reward:
            raise ArmError(
                f"kernel and quantile of the law {kind} must give the same, "
                f"got {law_quantile(*law.kernel, u)!r} and {reward!r} for u = {u!r}"
            )
    return law


def _scipy_law(name: str, args: list[float], kwds: dict[str, float]) -> Law:
    import scipy.stats

    return ScipyLaw(getattr(scipy.stats, name)(*args, **kwds))


#: How each law is made from its parameters, by name.
MAKERS: Final[dict[str, Callable[..., Law]]] = {
    "bernoulli": Bernoulli,
    "beta": Beta,
    "empirical": Empirical,
    "gaussian": Gaussian,
    "replay": Replay,
    "scipy": _scipy_law,
    "uniform": Uniform,
}


def _shifted(kind: Callable[..., Law]) -> Callable[..., Law]:
    """How a law is made whose own law is described within its description, and perhaps another one."""

    def make(start: Mapping[str, Any], to: Mapping[str, Any] | None = None, **parameters: Any) -> Law:
        laws = [from_description(one) for one in (start, to) if one is not None]
        return kind(*laws, **parameters)

    return make


def _piecewise(pieces: list[tuple[int, Mapping[str, Any]]]) -> Law:
    return Piecewise({t: from_description(law) for t, law in pieces})


#: The same for laws that change, which tables of laws do not name.
CHANGING_MAKERS: Final[dict[str, Callable[..., Law]]] = {
    "drifting": _shifted(Drifting),
    "piecewise": _piecewise,
    "seasonal": _shifted(Seasonal),
    "switching": _shifted(Switching),
    "wandering": _shifted(Wandering),
}


def from_description(description: Mapping[str, Any]) -> Law:
    """The law that `Law.describe` described.

    Examples
    --------
    >>> from_description({"law": "bernoulli", "p": 0.25})
    Bernoulli(p=0.25)
    """
    parameters = dict(description)
    makers = MAKERS | CHANGING_MAKERS
    name = checks.choice("law", parameters.pop("law", None), makers)
    try:
        return makers[name](**parameters)
    except (TypeError, AttributeError) as error:
        raise ArmError(f"the parameters of the law {name} do not fit, got {parameters!r}: {error}") from None
