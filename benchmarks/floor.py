"""What Thompson sampling on coins takes at least with the numbers that it draws: the floor of `choice`.

A pull under UCB without its scores; the draws of all arms; a bound on each normal quantile that decides about a first
attempt at a Gamma variate, looked up in a table, as any method must know for every arm that its index is not the
highest; and every attempt after the first, worked out, since a first attempt that fails says nothing of its arm. Each
part is measured in a loop by itself, on what the agents of a run have seen.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from setting import SEED, make_run
from timing import cpu_time

import banditmesh as bm
from banditmesh.draws import INDEX, Draws
from banditmesh.policies.thompson import beta_shapes, gamma_attempt, generator_of
from banditmesh.sim.compiled import plans
from banditmesh.sim.compiled.crew import Stop
from banditmesh.sim.compiled.engine import kernels_of
from banditmesh.sim.compiled.kernels.ahead import draw_for_arms
from banditmesh.sim.compiled.kernels.compiling import helper, uncached
from banditmesh.sim.compiled.kernels.layout import (
    CHANCE,
    DRAWS,
    NORMAL,
    OTHER_CHANCE,
    OTHER_NORMAL,
    SCORES,
    Agents,
    State,
)
from banditmesh.sim.compiled.kernels.pulls import highest_score, write_indices
from banditmesh.sim.compiled.kernels.scalars import compile_rule
from banditmesh.sim.compiled.kernels.thompson import SECOND, draw_for_gammas, quantile_above, variate_rule
from banditmesh.sim.compiled.packing import pack
from banditmesh.sim.compiled.quiet import Quiet
from banditmesh.sim.compiled.replicates import Replicate
from banditmesh.sim.compiled.spreading import Spread

shapes_rule, generator_rule, attempt_rule = helper(beta_shapes), helper(generator_of), compile_rule(gamma_attempt)
#: How many rounds are looked at, at even distances.
N_ROUNDS = 5


def parts(problem: bm.Problem, protocol: bm.Protocol, horizon: int, repeats: int) -> dict[str, float]:
    """Of a pull in ns, the mean over all rounds: UCB's scores, the draws, bounds on quantiles, and further attempts.

    All agents must have equally many arms. First pulls of arms need none of this.
    """
    n_agents, n_arms = problem.n_agents, int(problem.arm_offsets[1])
    seconds = dict.fromkeys(("scores", "draws", "quantiles", "attempts"), 0.0)
    for t, one in states(problem, protocol, horizon, n_arms):
        for name, work in works(t, n_arms, one.packed.agents, one.state).items():
            work()
            seconds[name] += cpu_time(work, 4 * repeats)[0]
    share = (horizon - n_arms) / horizon
    return {name: 1e9 * spent * share / (N_ROUNDS * n_agents) for name, spent in seconds.items()}


def works(t: int, n_arms: int, agents: Agents, state: State) -> dict[str, Callable[[], object]]:
    """What is measured in round `t`."""
    k0, k1 = Draws(SEED, 0).key(INDEX)
    block = state.scores.shape[1] // n_arms
    failed = np.zeros((2 * len(agents.arms) + 1, 3))
    failed = failed[: list_failed(t, k0, k1, block, n_arms, agents, state, failed)]
    return {
        "scores": lambda: score(t, block, n_arms, agents, state),
        "draws": lambda: draw(t, k0, k1, block, n_arms, agents, state),
        "quantiles": lambda: look_up(block, n_arms, agents, state),
        "attempts": lambda: work_out(failed),
    }


def states(problem: bm.Problem, protocol: bm.Protocol, horizon: int, n_arms: int) -> Iterator[tuple[int, Replicate]]:
    """A replicate before some of its rounds, and which rounds these are."""
    run = replace(make_run(problem, protocol, horizon), policies=(bm.ThompsonSampling(),) * problem.n_agents)
    packed, stop = pack(run), Stop()
    outline = plans.outline(packed, packed.rule(Draws(SEED, 0)), 1, stop)
    plan = plans.build(packed, packed.rule(Draws(SEED, 0)), outline, 1, stop) if outline is not None else None
    kind: Any = Quiet if plan is None else Spread
    one = kind(packed, kernels_of(run), 0, plan, stop)
    for t in np.linspace(n_arms + 1, horizon, N_ROUNDS).astype(int).tolist():
        one.advance(t)
        yield t, one


@uncached
def score(t: Any, block: Any, n_arms: Any, agents: Any, state: Any) -> float:
    """Find the arm with the highest index of UCB, of all agents."""
    clock, found = math.log(t), 0.0
    for v in range(0, len(agents.offsets) - 1, block):
        n = min(block, len(agents.offsets) - 1 - v)
        first = np.uint64(v * n_arms)
        write_indices(first, np.uint64(n * n_arms), clock, 3.0, agents, state)
        for w in range(n):
            place = np.uint64(w * n_arms)
            found += highest_score(first + place, place, np.uint64(n_arms), clock, 3.0, agents, state)
    return found


@uncached
def draw(t: Any, k0: Any, k1: Any, block: Any, n_arms: Any, agents: Any, state: Any) -> None:
    """Draw five numbers for each arm of all agents."""
    scores = state.scores
    for v in range(0, len(agents.offsets) - 1, block):
        n_slots = np.uint64(min(block, len(agents.offsets) - 1 - v) * n_arms)
        draw_for_arms(k0, k1, t, np.uint64(v * n_arms), n_slots, agents.arms, agents.owners, scores[DRAWS])
        draw_for_gammas(n_slots, scores)


@uncached
def look_up(block: Any, n_arms: Any, agents: Any, state: Any) -> None:
    """Look up two bounds on quantiles for each arm of all agents."""
    scores = state.scores
    for v in range(0, len(agents.offsets) - 1, block):
        for j in range(np.uint64(min(block, len(agents.offsets) - 1 - v) * n_arms)):
            scores[SCORES, j] = quantile_above(scores[NORMAL, j]) - quantile_above(1.0 - scores[OTHER_NORMAL, j])


@uncached
def list_failed(t: Any, k0: Any, k1: Any, block: Any, n_arms: Any, agents: Any, state: Any, failed: Any) -> int:
    """List the first attempts that fail in a round, of all agents: shape, draw and stream."""
    scores, sums, found = state.scores, state.sums, 0
    for v in range(0, len(agents.offsets) - 1, block):
        first, n_slots = v * n_arms, np.uint64(min(block, len(agents.offsets) - 1 - v) * n_arms)
        draw_for_arms(k0, k1, t, np.uint64(first), n_slots, agents.arms, agents.owners, scores[DRAWS])
        draw_for_gammas(n_slots, scores)
        for j in range(n_slots):
            count, total = sums[first + j]
            a, b = shapes_rule(total / count, count)
            failed[found, 0], failed[found, 1], failed[found, 2] = a, scores[DRAWS, j], 0.0
            found += attempt_rule(a, scores[NORMAL, j], scores[CHANCE, j]) == 0.0
            failed[found, 0], failed[found, 1], failed[found, 2] = b, scores[DRAWS, j], 1.0
            found += attempt_rule(b, scores[OTHER_NORMAL, j], scores[OTHER_CHANCE, j]) == 0.0
    return found


@uncached
def work_out(failed: Any) -> float:
    """Work out the variates whose first attempts failed."""
    total = 0.0
    for i in range(len(failed)):
        k0, k1 = generator_rule(failed[i, 1])
        total += variate_rule(failed[i, 0], k0, k1, np.int64(failed[i, 2]), SECOND)
    return total
