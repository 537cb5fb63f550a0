"""CUSUM-UCB: UCB with a two-sided CUSUM test on each arm."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from .. import checks
from .detectors import CUSUMTest
from .restarts import Restarting, Watcher


@dataclass(frozen=True)
class CUSUMUCB(Restarting):
    """UCB, with arms started anew when two random walks show that their mean has moved.

    An arm's index is `mean + sqrt(xi log(m) / n)`, where n and mean are of all observations since the arm's last
    restart, the agent's own and others', and m is the sum of n over all its arms. One arm is restarted at a time. An
    agent pulls, with probability `explore`, an arm that is drawn.

    Parameters
    ----------
    ttl : int
        How many hops an observation travels; 0 if restarts alone are shared.
    explore : float
        How likely a pull is of a random arm; sqrt(C log(T / C) / T) by the paper's tuning, for C changes in T rounds.
    first : int
        How many pulls of an arm give the mean that later ones are compared with.
    drift : float
        Changes smaller than this are not noticed.
    threshold : float
        How far a walk must come; log(T / C) by the paper's tuning.
    xi : float
        The width of the bonus.

    Notes
    -----
    Liu, Lee and Shroff, "A Change-Detection Based Framework for Piecewise-Stationary Multi-Armed Bandit Problem", AAAI
    2018 (arXiv 1711.03539), as others describe and implement it: Besson's thesis, SMPyBandits, and
    EmilieKaufmann/PiecewiseStationaryBandits. It is for rewards between 0 and 1; those of other arms are divided by
    twice their sigma, and the bonus multiplied by it, which is ours.

    An observation is a header of 16 bytes, a reward and a version, 32 in all; a restart a header and a version, 24.
    How they are shared is ours, see `restarts`.

    Examples
    --------
    A coin that paid little pays most from round 301 on; everybody starts it anew, and the other one by a false alarm:

    >>> import banditmesh as bm
    >>> from banditmesh.arms import Bernoulli, Piecewise
    >>> arms = [Bernoulli(0.5), Piecewise({1: Bernoulli(0.1), 301: Bernoulli(0.9)})]
    >>> problem = bm.Problem(bm.networks.ring(4), [[0, 1]] * 4, arms)
    >>> simulation = bm.Simulation(problem, "cusum-ucb(2, explore=0.2, first=20)", horizon=600, seed=0)
    >>> result = simulation.run()
    >>> [agent.versions for agent in simulation.agents.values()]
    [{0: 1, 1: 1}, {0: 1, 1: 1}, {0: 1, 1: 1}, {0: 1, 1: 1}]
    """

    first: int = 30
    drift: float = 0.1
    threshold: float = 8.0
    xi: float = 1.0
    name: ClassVar[str] = "cusum-ucb"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "first", checks.integer("first", self.first, at_least=1))
        object.__setattr__(self, "drift", checks.non_negative("drift", self.drift))
        object.__setattr__(self, "threshold", checks.positive("threshold", self.threshold))
        object.__setattr__(self, "xi", checks.positive("xi", self.xi))

    def detector(self, sigma: float | None) -> CUSUMTest:
        """The test, in units of the noise."""
        return CUSUMTest(self.first, self.drift, self.threshold, 1.0 if sigma is None else 2.0 * sigma)

    def forced(self, agent: Watcher) -> int | None:
        """A random arm, with some probability."""
        if not self.explore:
            return None
        u = agent.draw_uniform(agent.place.now()) / self.explore
        return int(u * len(agent.arms.names)) if u < 1.0 else None

    def index(self, agent: Watcher, position: int, clock: int) -> float:
        """UCB, by how many observations count."""
        estimates = agent.estimates
        width = agent.unit[position] * math.sqrt(self.xi * math.log(sum(estimates.count)))
        return estimates.mean[position] + width * estimates.inv_root[position]
