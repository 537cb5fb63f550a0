"""GLR-klUCB: KL-UCB with a likelihood ratio test on each arm."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

from .. import checks
from ..policies import KLUCB
from .detectors import GLRTest
from .restarts import Restarting, Watcher

POLICY: Final = KLUCB()


@dataclass(frozen=True)
class GLRKLUCB(Restarting):
    """KL-UCB, with arms started anew when a generalised likelihood ratio test finds that their mean has changed.

    An arm's index is the highest mean q with `n d(mean, q) <= log(t - r)`, where n and mean are of all observations
    since the round r of the arm's last restart, the agent's own and others', and d is the divergence of the arm's law
    as in `KLUCB`. One arm is restarted at a time.

    Parameters
    ----------
    ttl : int
        How many hops an observation travels; 0 if restarts alone are shared.
    explore : float
        The share of pulls that are forced; sqrt(K log(T) / T) in the authors' code, for K arms and T rounds.
    delta : float
        How likely each test may raise a false alarm between two changes; 1 / sqrt(T) in the paper, for one agent.
    every : int
        An arm is tested after this many of its pulls each time.

    Notes
    -----
    Besson and Kaufmann, "The Generalized Likelihood Ratio Test meets klUCB", arXiv 1902.01575, 2019; with Maillard and
    Seznec, "Efficient Change-Point Detection for Tackling Piecewise-Stationary Bandits", JMLR 23, 2022. The text of
    Besson's thesis and the code of EmilieKaufmann/PiecewiseStationaryBandits were read. This is the variant of local
    restarts, with log(t) as in the code and a constant share of forced pulls. The threshold is the one that they
    recommend, log(3 n^1.5 / delta), below the one that their proof needs. The test for rewards that are not coins is
    that of Gaussian rewards with the arm's sigma.

    With N agents there are N times as many detectors that may be wrong, so delta should be smaller than for one.

    An observation is a header of 16 bytes, a reward and a version, 32 in all; a restart a header and a version, 24.
    Observations are flooded within the ttl; a restart reaches all agents, and costs at most two messages a link. How
    they are shared is ours, see `restarts`.

    Examples
    --------
    A coin that paid little pays most from round 301 on; everybody starts it anew, once:

    >>> import banditmesh as bm
    >>> from banditmesh.arms import Bernoulli, Piecewise
    >>> arms = [Bernoulli(0.5), Piecewise({1: Bernoulli(0.1), 301: Bernoulli(0.9)})]
    >>> problem = bm.Problem(bm.networks.ring(4), [[0, 1]] * 4, arms)
    >>> simulation = bm.Simulation(problem, "glr-klucb(2, explore=0.2)", horizon=600, seed=0)
    >>> result = simulation.run()
    >>> [agent.versions for agent in simulation.agents.values()]
    [{1: 1}, {1: 1}, {1: 1}, {1: 1}]
    """

    delta: float = 0.001
    every: int = 5
    name: ClassVar[str] = "glr-klucb"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "delta", checks.positive("delta", self.delta))
        object.__setattr__(self, "every", checks.integer("every", self.every, at_least=1))

    def detector(self, sigma: float | None) -> GLRTest:
        """The test of Bernoulli rewards, or of Gaussian ones."""
        return GLRTest(self.delta, sigma, self.every)

    def index(self, agent: Watcher, position: int, clock: int) -> float:
        """KL-UCB, with a clock for each arm."""
        index = POLICY.index_at(max(clock - agent.began[position], 1), agent.estimates, position)
        assert index is not None
        return index
