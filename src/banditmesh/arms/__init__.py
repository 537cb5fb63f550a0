"""Reward laws: what an arm pays. `base` is the contract, and every law has a file of its own.

A law turns one uniform number into one reward, by its quantile function. So a single draw per pull serves
every law, and two protocols that pull the same arm in the same round are paid the same.

Rules: a law is frozen; its parameters are checked when it is made; `quantile` never falls as its argument
grows; `quantiles` gives the very bits of `quantile`, element by element. The laws that the compiled engine
knows are described by a code and two numbers, and `law_quantile` is their one definition.

A law that changes from round to round gives a stationary law for each: `changing` is its contract, and `world` works
out what all arms pay in a replicate.

The generators of arm sets live in `armsets` and are offered here too. Users' own data come from files: catalogues (who
has what), laws, and logs of rewards; `matching` brings their names together with a network's. What a problem is given
as arms and arm sets is read in `given`.

Every name is imported when it is first used: policies and live nodes need the codes of laws alone, and no numpy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy import importer
from .quantiles import BERNOULLI as BERNOULLI
from .quantiles import GAUSSIAN as GAUSSIAN
from .quantiles import OTHER as OTHER
from .quantiles import UNIFORM as UNIFORM
from .quantiles import law_quantile

if TYPE_CHECKING:
    from .armsets import far_apart_sets, random_sets, uniform_sets
    from .base import Law
    from .bernoulli import Bernoulli
    from .beta import Beta
    from .catalogue import Catalogue, read_catalogue
    from .changing import ChangingLaw, RandomLaw
    from .drifting import Drifting
    from .empirical import Empirical
    from .gaussian import Gaussian
    from .law_files import read_laws
    from .logs import LAW_KINDS as LAW_KINDS
    from .logs import RewardLog, read_log
    from .matching import Unmatched
    from .piecewise import Piecewise
    from .reading import as_law, from_description
    from .replay import Replay
    from .scipy_laws import ScipyLaw
    from .seasonal import Seasonal
    from .switching import Switching
    from .uniform import Uniform
    from .wandering import Wandering

_HOMES = {
    "Bernoulli": "bernoulli",
    "Beta": "beta",
    "Catalogue": "catalogue",
    "ChangingLaw": "changing",
    "Drifting": "drifting",
    "Empirical": "empirical",
    "Gaussian": "gaussian",
    "LAW_KINDS": "logs",
    "Law": "base",
    "Piecewise": "piecewise",
    "RandomLaw": "changing",
    "Replay": "replay",
    "RewardLog": "logs",
    "ScipyLaw": "scipy_laws",
    "Seasonal": "seasonal",
    "Switching": "switching",
    "Uniform": "uniform",
    "Unmatched": "matching",
    "Wandering": "wandering",
    "as_law": "reading",
    "far_apart_sets": "armsets",
    "from_description": "reading",
    "random_sets": "armsets",
    "read_catalogue": "catalogue",
    "read_laws": "law_files",
    "read_log": "logs",
    "uniform_sets": "armsets",
}

__all__ = [
    "Bernoulli",
    "Beta",
    "Catalogue",
    "ChangingLaw",
    "Drifting",
    "Empirical",
    "Gaussian",
    "Law",
    "Piecewise",
    "RandomLaw",
    "Replay",
    "RewardLog",
    "ScipyLaw",
    "Seasonal",
    "Switching",
    "Uniform",
    "Unmatched",
    "Wandering",
    "as_law",
    "far_apart_sets",
    "from_description",
    "law_quantile",
    "random_sets",
    "read_catalogue",
    "read_laws",
    "read_log",
    "uniform_sets",
]

__getattr__ = importer(__name__, _HOMES)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
