"""An estimate of regret: the same agents, protocol and faults with almost no noise, and what noise adds on average.

Without noise in the rewards, UCB's counts follow from the gaps alone: an agent pulls an arm until its bonus, which
depends on everything it has heard, has fallen below what separates the arm from the others. What noise adds, and how
far that may be off, was fitted to random instances. It is an estimate, not a bound; docs/theory/estimate.md says how
good it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import checks
from ..arms import Gaussian, Law
from ..errors import BanditmeshWarning, InputError, warn
from ..faults import Faults
from ..policies import UCB
from ..problem import Problem
from ..protocols import AnyProtocol, Delivery, EveryPull
from ..protocols.notation import as_protocol
from ..sim.engine import simulate

#: The share of the rewards' spread that is kept. With none at all, agents that are alike pull the same arm in the same
#: round for ever, and hear about it together; this much sets them apart, and is too little to decide anything else.
SPREAD: Final = 0.02
#: The spread of an arm that always pays the same, relative to that of the means: a Gaussian law needs some.
_LEAST: Final = 1e-12
#: By protocol, or by emission unless every pull is sent: what noise adds, and the interval around it, both per unit of
#: noise. `benchmarks/estimate.py --random` fits them.
FITTED: Final = {
    "none": (0.35, -0.41, 1.81),
    "irs": (0.8, -1.26, 1.47),
    "gossip": (2.8, -1.04, 1.49),
    "probabilistic": (2.35, -1.33, 1.76),
    "fwa": (0.95, -1.31, 1.54),
    "flooding": (1.55, -1.31, 1.94),
    "contested": (4.1, -1.85, 3.53),
    "growth": (2.75, -1.76, 2.22),
    "tree": (4.35, -1.5, 2.37),
    "centralised": (2.15, -1.23, 2.19),
    "other": (2.0, -1.5, 2.5),
}
#: The noise that the interval allows for where there is hardly any: rounds and agents are whole numbers.
FLOOR: Final = 0.05


@dataclass(frozen=True, eq=False)
class Estimate:
    """An estimate of expected group regret over the rounds, with an interval.

    The interval is not proven: it held the simulated mean in nine of ten instances that it was not fitted to.

    Attributes
    ----------
    rounds : int array (records,)
    regret, low, high : float array (records,)
    """

    rounds: NDArray[np.int64]
    regret: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]

    def at(self, rounds: ArrayLike) -> Any:
        """The estimate in the given rounds; between recorded ones a straight line."""
        return self._at(rounds, self.regret)

    def interval(self, rounds: ArrayLike) -> tuple[Any, Any]:
        """The two ends of the interval in the given rounds."""
        return self._at(rounds, self.low), self._at(rounds, self.high)

    def _at(self, rounds: ArrayLike, values: NDArray[np.float64]) -> Any:
        return np.interp(
            checks.floats("rounds", rounds), np.concatenate([[0], self.rounds]), np.concatenate([[0.0], values])
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
    """The regret to expect of UCB if arms do not change: an estimate, not a bound.

    Parameters
    ----------
    problem : Problem
        Its network may be dynamic.
    protocol : AnyProtocol or str
        Any; of algorithms, those that leave the choice to the policy.
    alpha : float
        The parameter of the policy, `UCB(alpha)`. Below the largest variance of an arm, noise decides more than is
        estimated here; then there is a warning.
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
    >>> expected = bm.theory.estimate(problem, bm.FwA(4), horizon=300)
    >>> low, high = expected.interval(300)
    >>> measured = bm.simulate(problem, bm.FwA(4), horizon=300, replicates=5, seed=0).regret[:, -1].mean()
    >>> bool(abs(expected.at(300) / measured - 1) < 0.05), bool(low < measured < high)
    (True, True)
    """
    if not isinstance(problem, Problem):
        raise InputError(f"problem must be a Problem, got {checks.shown(problem)}")
    problem.check_fixed("estimates")
    horizon, alpha = checks.integer("horizon", horizon, at_least=1), checks.positive("alpha", alpha)
    protocol = as_protocol(protocol)
    if protocol.chooses:
        raise InputError(
            f"an estimate is for agents that choose by UCB, got {protocol.name!r}, which chooses by its own rules; "
            "simulate it"
        )
    variance = float(spreads_of(problem).max()) ** 2
    if alpha < variance:
        warn(
            f"alpha should be at least about {variance:.3g} for an estimate, the largest variance of an arm, "
            f"got {alpha:g}: regret then varies widely, and is often far above the estimate; simulate it",
            BanditmeshWarning,
        )
    rounds, regret = first_order(problem, protocol, alpha, horizon, every=every, faults=faults)
    luck = variance / (alpha * np.log(np.maximum(rounds, 2)))
    excess, below, above = FITTED[fitted_name(protocol)]
    # The first pulls, one of each arm, do not depend on the noise.
    first_pulls = np.minimum(regret, problem.arm_gaps.sum())
    most = rounds * np.maximum.reduceat(problem.arm_gaps, problem.arm_offsets[:-1]).sum()

    def curve(quantile: float) -> NDArray[np.float64]:
        centre = regret + excess * luck * (regret - first_pulls)
        values = np.clip(centre * np.exp(quantile * (luck + FLOOR)), first_pulls, most)
        return np.maximum.accumulate(np.where(regret > first_pulls, values, regret))

    return Estimate(rounds, curve(0.0), curve(below), curve(above))


def fitted_name(protocol: AnyProtocol) -> str:
    """Which row of `FITTED` a protocol uses: its emission's if that sends less than every pull, otherwise its own."""
    by_emission = protocol.delivery is Delivery.HOPS and not isinstance(protocol.emission, EveryPull)
    name = protocol.emission.name if by_emission else protocol.name
    return name if name in FITTED else "other"


def first_order(
    problem: Problem,
    protocol: AnyProtocol | str,
    alpha: float,
    horizon: int,
    *,
    every: int | Sequence[int] | None = None,
    faults: Faults | None = None,
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Rounds, and group regret in them with only `SPREAD` of the rewards' spread."""
    width = float(np.ptp(problem.means)) or 1.0
    spreads = np.maximum(SPREAD * spreads_of(problem), _LEAST * width).tolist()
    laws = [Gaussian(law.mean, spread) for law, spread in zip(problem.laws, spreads, strict=True)]
    sets = [[problem.arms[arm] for arm in problem.arm_set(agent).tolist()] for agent in range(problem.n_agents)]
    result = simulate(
        Problem(problem.network, sets, dict(zip(problem.arms, laws, strict=True))),
        protocol,
        policy=UCB(alpha),
        horizon=horizon,
        seed=0,
        every=every,
        faults=faults,
        record_every=max(1, horizon // 500),
        progress=False,
    )
    return result.rounds, result.regret[0]


def spreads_of(problem: Problem) -> NDArray[np.float64]:
    """The standard deviation of each arm's rewards, from their quantiles; for a law without quantiles its sigma."""
    u = (np.arange(256) + 0.5) / 256
    laws = [(law, type(law).quantile is not Law.quantile) for law in problem.laws]
    return np.array([np.std(law.quantiles(u)) if is_drawn else law.sigma or 0.0 for law, is_drawn in laws])
