"""M-UCB: UCB with a window on each arm whose two halves are compared."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from .. import checks
from ..errors import InputError
from .detectors import WindowTest
from .restarts import Restarting, Watcher


@dataclass(frozen=True)
class MUCB(Restarting):
    """UCB, with all arms started anew when the latest pulls of one differ from those before.

    An arm's index is `mean + sqrt(2 log(t - r) / n)`, where r is the round of the last restart and n and mean are of
    all observations since, the agent's own and others'. Who detects a change of one arm restarts all that it has.

    Parameters
    ----------
    ttl : int
        How many hops an observation travels; 0 if restarts alone are shared.
    explore : float
        The share of pulls that are forced; sqrt(C K (2 b + 3 sqrt(w)) / (2 T)) by the paper's tuning, for C changes of
        K arms in T rounds, w the width and b the threshold.
    width : int
        How many of the latest pulls of an arm are looked at, an even number; of the order of log(2 K T^2) over the
        squared size of a change.
    threshold : float
        By how much the sums of the two halves must differ; sqrt(w log(2 K T^2) / 2) in the paper.

    Notes
    -----
    Cao, Wen, Kveton and Xie, "Nearly Optimal Adaptive Procedure with Change Detection for Piecewise-Stationary Bandit",
    AISTATS 2019 (arXiv 1802.03692), as others describe and implement it: Besson's thesis, SMPyBandits, and
    EmilieKaufmann/PiecewiseStationaryBandits. It is for rewards between 0 and 1; the sums of other arms are divided by
    twice their sigma, and the bonus multiplied by it, which is ours.

    An observation is a header of 16 bytes, a reward and a version, 32 in all; a restart a header and a version, 24, for
    each arm. How they are shared is ours, see `restarts`: each arm has its own version, so that agents with other arms
    keep what they know of those.

    Examples
    --------
    A coin that paid little pays most from round 301 on; everybody starts both coins anew, once:

    >>> import banditmesh as bm
    >>> from banditmesh.arms import Bernoulli, Piecewise
    >>> arms = [Bernoulli(0.5), Piecewise({1: Bernoulli(0.1), 301: Bernoulli(0.9)})]
    >>> problem = bm.Problem(bm.networks.ring(4), [[0, 1]] * 4, arms)
    >>> simulation = bm.Simulation(problem, "m-ucb(2, explore=0.2, width=20, threshold=7)", horizon=600, seed=0)
    >>> result = simulation.run()
    >>> [agent.versions for agent in simulation.agents.values()]
    [{0: 1, 1: 1}, {0: 1, 1: 1}, {0: 1, 1: 1}, {0: 1, 1: 1}]
    """

    width: int = 50
    threshold: float = 15.0
    name: ClassVar[str] = "m-ucb"
    restarts_all: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "width", checks.integer("width", self.width, at_least=2))
        if self.width % 2:
            raise InputError(f"must be even, got {self.width}", key="width")
        object.__setattr__(self, "threshold", checks.positive("threshold", self.threshold))

    def detector(self, sigma: float | None) -> WindowTest:
        """The test, in units of the noise."""
        return WindowTest(self.width, self.threshold, 1.0 if sigma is None else 2.0 * sigma)

    def index(self, agent: Watcher, position: int, clock: int) -> float:
        """UCB since the last restart."""
        estimates = agent.estimates
        width = agent.unit[position] * math.sqrt(2.0 * math.log(max(clock - max(agent.began), 1)))
        return estimates.mean[position] + width * estimates.inv_root[position]
