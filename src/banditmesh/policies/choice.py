"""Which policy fits the arms: said once, where none was chosen."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from .. import arms
from ..draws import GREATEST_UNIFORM, LEAST_UNIFORM
from ..errors import BanditmeshWarning, warn
from ..problem import Problem

#: What the default policy does where rewards lie between 0 and 1, and what is said where it would choose.
WEAKNESS: Final = (
    "explores as if they spread by 1, and learns slowly where means are small; KL-UCB or Thompson sampling fits such "
    "arms better"
)
ADVICE: Final = f"all rewards lie between 0 and 1 and no policy was chosen: UCB(alpha=3.0), the default, {WEAKNESS}"
_said = False


def suits_rates(problem: Problem) -> bool:
    """Whether every reward is known to lie between 0 and 1, as clicks do.

    What a law of the user's own pays is found out when it is drawn from, not before.

    Examples
    --------
    >>> import banditmesh as bm
    >>> network, sets = bm.networks.ring(3), [[0, 1]] * 3
    >>> laws = ([bm.arms.Bernoulli(0.01), law] for law in (bm.arms.Bernoulli(0.02), bm.arms.Gaussian(0.02, 1.0)))
    >>> [suits_rates(bm.Problem(network, sets, both)) for both in laws]
    [True, False]
    """
    return are_rates(problem.laws)


def are_rates(laws: Iterable[arms.Law]) -> bool:
    """Whether every one of these laws pays between 0 and 1."""
    shipped = f"{arms.__name__}."
    return all(
        type(law).__module__.startswith(shipped)
        # Of arms that change, coins are known to stay between 0 and 1.
        and (
            law.code == arms.BERNOULLI
            if law.changes
            else law.quantile(LEAST_UNIFORM) >= 0.0 and law.quantile(GREATEST_UNIFORM) <= 1.0
        )
        for law in laws
    )


def note_default(problem: Problem, policy: Any) -> None:
    """Warn, once in a process, that another policy than the default would suit the arms better."""
    if policy is None and not _said and isinstance(problem, Problem) and suits_rates(problem):
        warn_once(f"{ADVICE}: policy=KLUCB() or policy=ThompsonSampling()")


def warn_once(advice: str) -> None:
    """Warn of it, unless this process has been warned before."""
    global _said
    if not _said:
        _said = True
        warn(advice, BanditmeshWarning)
