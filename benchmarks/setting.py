"""What several sections measure: the paper's networks, its six protocols, and runs as the engines take them."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

import banditmesh as bm
from banditmesh.draws import Draws
from banditmesh.rules import get_rules
from banditmesh.sim.compiled import plans
from banditmesh.sim.compiled.crew import Stop
from banditmesh.sim.compiled.engine import kernels_of
from banditmesh.sim.compiled.packing import pack
from banditmesh.sim.compiled.spreading import Spread
from banditmesh.sim.compiled.walking import Walk
from banditmesh.sim.run import Run

NETWORKS = ("er", "ba", "sbm", "dynamic-er")
RULES = ("sound", "published")
SEED = 0


def protocols() -> list[bm.Protocol]:
    """The paper's six, with its ttl of 4."""
    return [
        bm.NoCooperation(),
        bm.IRS(),
        bm.Gossip(4),
        bm.ProbabilisticFlooding(4, 0.5),
        bm.FwA(4),
        bm.Flooding(4),
    ]


def make_run(problem: bm.Problem, protocol: bm.Protocol, horizon: int, rules: str = "sound") -> Run:
    """One replicate of a plain run."""
    return Run(
        problem=problem,
        protocol=protocol,
        policies=(bm.UCB(),) * problem.n_agents,
        rules=get_rules(rules),
        horizon=horizon,
        replicates=1,
        seed=SEED,
        every=np.ones(problem.n_agents, dtype=np.int64),
        tape=None,
        records=np.arange(1, horizon + 1, dtype=np.int64),
        link_traffic=False,
        trace=False,
    )


def equal_results(one: bm.Result, other: bm.Result) -> bool:
    """Whether two results agree in every array, to the last bit."""
    return (
        np.array_equal(one.regret, other.regret)
        and np.array_equal(one.transmissions, other.transmissions)
        and np.array_equal(one.pulls, other.pulls)
        and all(np.array_equal(one.traffic[fate], other.traffic[fate]) for fate in one.traffic)
    )


@dataclass
class Stages:
    """CPU seconds of a run's stages on one core, and whether its messages were looked up in a plan.

    Set-up packs arrays and makes the plan, rounds are the simulation, and closing counts fates.
    """

    setup: float
    rounds: float
    closing: float
    planned: bool

    @property
    def whole(self) -> float:
        return self.setup + self.rounds + self.closing


def run_stages(run: Run) -> Stages:
    """Do what the compiled engine does for one replicate, stage by stage."""
    began = time.process_time()
    packed = pack(run)
    rule = packed.rule(Draws(run.seed, 0))
    stop = Stop()
    outline = None if packed.traits.walks else plans.outline(packed, rule, 1, stop)
    plan = None if outline is None else plans.build(packed, rule, outline, 1, stop)
    kernels = kernels_of(run)
    one = Walk(packed, kernels, 0, None, stop) if packed.traits.walks else Spread(packed, kernels, 0, plan, stop)
    set_up = time.process_time()
    while one.t <= run.horizon:
        one.advance(min(one.t + one.longest_chunk, run.horizon + 1))
    simulated = time.process_time()
    one.close()
    return Stages(set_up - began, simulated - set_up, time.process_time() - simulated, plan is not None)


def least_stages(run: Run, repeats: int) -> Stages:
    """The least seconds of each stage over several repeats."""
    found = [run_stages(run) for _ in range(repeats)]
    return Stages(
        min(one.setup for one in found),
        min(one.rounds for one in found),
        min(one.closing for one in found),
        found[0].planned,
    )
