"""Reward laws: what an arm pays. `base` is the contract, and every law has a file of its own.

A law turns one uniform number into one reward, by its quantile function. So a single draw per pull serves
every law, and two protocols that pull the same arm in the same round are paid the same.

Rules: a law is frozen; its parameters are checked when it is made; `quantile` never falls as its argument
grows; `quantiles` gives the very bits of `quantile`, element by element. The laws that the compiled engine
knows are described by a code and two numbers, and `law_quantile` is their one definition.

The generators of arm sets live in `armsets` and are offered here too.
"""

from ..armsets import far_apart_sets, random_sets, uniform_sets
from .base import Law
from .bernoulli import Bernoulli
from .beta import Beta
from .empirical import Empirical
from .gaussian import Gaussian
from .quantiles import BERNOULLI as BERNOULLI
from .quantiles import GAUSSIAN as GAUSSIAN
from .quantiles import OTHER as OTHER
from .quantiles import UNIFORM as UNIFORM
from .quantiles import law_quantile
from .reading import as_law, from_description
from .scipy_laws import ScipyLaw
from .uniform import Uniform

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
