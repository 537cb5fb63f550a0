"""Whether a mesh of real nodes does what the simulator says: regret and transmissions, side by side.

The mesh has no rounds and its links have real delays, so that it is one more run like the simulator's, not the
same one. Its regret must lie where one more replicate would lie with a probability of 99 per cent, given the simulated
ones (Student's prediction interval), and its transmissions within a tenth of the simulated mean.

What is compared: in both, a node passes a statistic on once. In the mesh it may come by a longer path first, with too
few hops left; what then goes on with a later copy is counted as news. Sent a second time, since it may go further than
before, it has no counterpart in the simulator and is counted apart, and so are offers when a link comes up.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from .. import checks
from ..policies import UCB, Policy
from ..problem import Problem
from ..protocols import AnyProtocol
from ..sim.engine import simulate
from .local import MeshRun, run_mesh

CONFIDENCE: Final = 0.99
#: By how much of the simulated mean the transmissions may differ.
TOLERANCE: Final = 0.1


@dataclass(frozen=True)
class Verdict:
    """A mesh compared with the simulator.

    Attributes
    ----------
    run : MeshRun
        What the mesh did.
    replicates : int
        How often it was simulated.
    regret : tuple of float
        The interval in which the mesh's regret must lie.
    simulated_regret, simulated_transmissions : float
        The simulator's means.
    """

    run: MeshRun
    replicates: int
    regret: tuple[float, float]
    simulated_regret: float
    simulated_transmissions: float

    @property
    def regret_agrees(self) -> bool:
        """Whether the mesh's regret lies in the interval."""
        low, high = self.regret
        return low <= self.run.regret <= high

    @property
    def transmissions(self) -> tuple[float, float]:
        """The interval in which the mesh's transmissions must lie."""
        return (1 - TOLERANCE) * self.simulated_transmissions, (1 + TOLERANCE) * self.simulated_transmissions

    @property
    def transmissions_agree(self) -> bool:
        """Whether the mesh's transmissions lie in the interval."""
        low, high = self.transmissions
        return low <= self.run.transmissions <= high

    @property
    def agrees(self) -> bool:
        """Whether both do."""
        return self.regret_agrees and self.transmissions_agree


def prediction_interval(values: Any, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """Where one more value lies with that probability, given these, if they are normally distributed.

    Examples
    --------
    >>> low, high = prediction_interval([1.0, 2.0, 3.0], 0.95)
    >>> round(low, 3), round(high, 3)
    (-2.968, 6.968)
    """
    from scipy.special import stdtrit

    values = np.asarray(values, dtype=float)
    n = checks.integer("the number of values", len(values), at_least=2)
    half = float(stdtrit(n - 1, 0.5 + confidence / 2)) * float(values.std(ddof=1)) * math.sqrt(1 + 1 / n)
    return float(values.mean()) - half, float(values.mean()) + half


def verify_mesh(
    problem: Problem, protocol: AnyProtocol, *, policy: Policy | None = None, replicates: int = 30, **options: Any
) -> Verdict:
    """Run a local mesh and the simulator on the same problem, and say whether they agree.

    Parameters
    ----------
    problem, protocol, policy
        As `run_mesh` takes them.
    replicates : int
        How often to simulate, at least 2.
    **options
        Further arguments of `run_mesh`.

    Examples
    --------
    >>> import banditmesh as bm
    >>> from banditmesh.mesh import verify_mesh
    >>> problem = bm.Problem.random(bm.networks.path(3), n_arms=4, per_agent=2, seed=0)
    >>> verdict = verify_mesh(problem, bm.FwA(2), horizon=20, pace=50.0, processes=1)
    >>> verdict.transmissions_agree
    True
    """
    policy = UCB() if policy is None else policy
    replicates = checks.integer("replicates", replicates, at_least=2)
    run = run_mesh(problem, protocol, policy=policy, **options)
    # Other seeds than the mesh's: its own rewards are not among those that it is compared with.
    result = simulate(
        problem,
        protocol,
        policy=policy,
        horizon=run.horizon,
        replicates=replicates,
        seed=options.get("seed", 0) + 1,
        record_every=run.horizon,
    )
    final = result.regret[:, -1]
    return Verdict(
        run=run,
        replicates=replicates,
        regret=prediction_interval(final),
        simulated_regret=float(final.mean()),
        simulated_transmissions=float(result.transmissions[:, -1].mean()),
    )
