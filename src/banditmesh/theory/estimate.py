"""A first-order estimate of regret: the same agents, protocol and faults, if every pull paid its arm's mean.

UCB's counts then follow from the gaps alone: an agent pulls an arm until its bonus, made of all that the agent has
heard, has fallen below what separates the arm from the others. What is left out is luck, which is of second order. It
is an estimate and not a bound; docs/theory/estimate.md says how far off it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import checks
from ..arms import Gaussian
from ..faults import Faults
from ..policies import UCB
from ..problem import Problem
from ..protocols import AnyProtocol
from ..sim.engine import simulate

#: Beside the spread of the means; far below any gap that matters, and rewards need some spread to be Gaussian.
_SPREAD = 1e-12


@dataclass(frozen=True, eq=False)
class Estimate:
    """An estimate of group regret over the rounds.

    Attributes
    ----------
    rounds : int array (records,)
    regret : float array (records,)
    """

    rounds: NDArray[np.int64]
    regret: NDArray[np.float64]

    def at(self, rounds: ArrayLike) -> Any:
        """The estimate in the given rounds; between recorded ones a straight line."""
        return np.interp(
            checks.floats("rounds", rounds), np.concatenate([[0], self.rounds]), np.concatenate([[0.0], self.regret])
        )


def estimate(
    problem: Problem,
    protocol: AnyProtocol | str,
    alpha: float = 3.0,
    horizon: int = 1000,
    *,
    every: int | Sequence[int] | None = None,
    faults: Faults | None = None,
) -> Estimate:
    """What regret is to be expected of UCB, to first order: an estimate, not a bound.

    Parameters
    ----------
    problem : Problem
        Its network may be dynamic.
    protocol : AnyProtocol or str
        Any.
    alpha : float
        The parameter of the policy, `UCB(alpha)`.
    horizon : int
        The number of rounds.
    every, faults
        As in `simulate`.

    Returns
    -------
    Estimate

    Examples
    --------
    >>> import banditmesh as bm
    >>> problem = bm.Problem.paper("er", seed=0)
    >>> expected = bm.theory.estimate(problem, bm.FwA(4), horizon=300).at(300)
    >>> measured = bm.simulate(problem, bm.FwA(4), horizon=300, replicates=5, seed=0).regret[:, -1].mean()
    >>> bool(abs(expected / measured - 1) < 0.05)
    True
    """
    horizon = checks.integer("horizon", horizon, at_least=1)
    width = float(np.ptp(problem.means)) or 1.0
    laws = {arm: Gaussian(law.mean, _SPREAD * width) for arm, law in zip(problem.arms, problem.laws, strict=True)}
    sets = [[problem.arms[arm] for arm in problem.arm_set(agent).tolist()] for agent in range(problem.n_agents)]
    result = simulate(
        Problem(problem.network, sets, laws),
        protocol,
        policy=UCB(alpha),
        horizon=horizon,
        seed=0,
        every=every,
        faults=faults,
        record_every=max(1, horizon // 500),
        progress=False,
    )
    return Estimate(result.rounds, result.regret[0])
