"""What arms with unknown means can cost: bounds that hold whatever the gaps are (docs/theory/gap-free.md).

The upper bound uses the same cap for all agents. The lower one holds for every policy and any communication within
components: a few arms, drawn at random, are slightly better than all others.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ..problem import Problem
from .delivery import Flow
from .sharp import WIDENINGS, SharpBound
from .ways import Way, ways_of


def gap_free_upper(problem: Problem, delivery: Flow, sharp: SharpBound, deadline: float, *, quick: bool) -> float:
    """The most that arms with these arm sets can cost, for any means whose gaps are at most the problem's largest.

    `sharp` gives the policy, the agents and the horizon.
    """
    from scipy.special import gammaincc

    largest = float(sharp.largest.max())
    pulls = np.ceil(sharp.horizon / sharp.every)
    choosing = sharp.n_arms > 1
    if largest == 0.0 or not choosing.any():
        return 0.0
    n_pulls = float(pulls[choosing].sum())
    log = math.log(sharp.horizon)
    scales = sharp.alpha * (1.0 + WIDENINGS) ** 2 * log
    middle = (math.sqrt(sharp.alpha) + math.sqrt(2.0) * sharp.sigma) ** 2 * log
    wait = middle / (largest * max(math.sqrt(middle * problem.n_arms * problem.n_agents / n_pulls), 1e-300))
    needed, waits = 0.0, 0.0
    rounds, origins = (np.zeros((problem.n_agents, problem.n_arms)) for _ in range(2))
    heard = np.ones(problem.n_agents, dtype=np.int64)
    held = problem.gaps >= 0.0
    for arm in range(problem.n_arms):
        holders = np.flatnonzero(held[:, arm])
        n_heard = delivery.shares(arm, holders).may.sum(axis=0)
        origins[holders, arm] = n_heard if delivery.prefix else 1
        heard[holders] = np.maximum(heard[holders], n_heard)
        # Agents with a single arm pay nothing, so none of their pulls count.
        paying = holders[choosing[holders]]
        tried = ways_of(np.ones(len(paying)), delivery.shares(arm, paying), [], deadline, quick=quick)
        way = _best_way(tried, delivery.sure, wait)
        needed += way.needs((1 << len(paying)) - 1)
        waits += way.wait_cost()
        rounds[paying[way.places], arm] = np.ceil(way.delays / sharp.every[paying[way.places]])
    any_best = replace(sharp, heard=heard, origins=heard if delivery.prefix else np.ones_like(heard))
    luck = any_best.bad_luck(sharp.horizon)[0]
    found = [largest * n_pulls]
    for widening, scale in zip(WIDENINGS.tolist(), scales.tolist(), strict=True):
        place = sharp.alpha * widening**2 * log / (2.0 * sharp.sigma**2) if sharp.sigma else math.inf
        terms = np.where(held, rounds + 1.0 + pulls[:, None] * gammaincc(np.maximum(origins, 1), place), 0.0)
        # One of an agent's arms is the best, and costs nothing.
        spent = terms.sum(axis=1) - np.where(held, terms, np.inf).min(axis=1)
        cap = min(math.sqrt(scale * needed / n_pulls), largest)
        if 0.0 < cap < largest:
            beyond = largest - cap
            main = n_pulls * cap + scale * needed * (1.0 / cap - 1.0 / largest)
            found.append(main + beyond * (waits + float((spent + luck)[choosing].sum())))
    return min(found)


def _best_way(tried: dict[str, list[Way]], sure: bool, scale: float) -> Way:
    ways = [way if sure else way.waiting(scale) for way in tried.get("independent sets") or tried["agents alone"]]
    return min(ways, key=lambda way: scale * way.needs((1 << len(way.gaps)) - 1) + way.wait_cost())


def gap_free_lower(
    problem: Problem, components: NDArray[np.int64], sigma: float, pulls: NDArray[np.int64], largest: float
) -> float:
    """The least that every policy pays for some Gaussian arms with these arm sets and no gap above `largest`.

    Agents that share arms, directly or through others, are a block. In each block some arms are better than all others
    by a step: one of them, or each with the same chance. `components` says which agents may hear each other.
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components as connected

    held = problem.gaps >= 0.0
    n_held = held.sum(axis=1)
    common = held.astype(float) @ held.T.astype(float) > 0.0
    # The pulls of all agents that may tell an agent about one of its arms.
    seen = (common & (components[:, None] == components)) @ pulls.astype(float)
    _, blocks = connected(csr_array(common), directed=False)
    total = 0.0
    for block in range(int(blocks.max()) + 1):
        inside = (blocks == block) & (n_held > 1)
        if inside.any() and sigma > 0.0:
            n, paid = n_held[inside], pulls[inside].astype(float)
            chances = [n / held[inside].any(axis=0).sum(), *(n * p * (1.0 - p) ** (n - 1) for p in 1.0 / np.unique(n))]
            doubt = np.sqrt(seen[inside] / n) / (2.0 * sigma)
            steps = np.minimum(np.geomspace(0.05, 2.0, 60)[:, None] / np.median(doubt), largest)
            paid = paid * steps * np.maximum(1.0 - 1.0 / n - steps * doubt, 0.0)
            total += max(float((paid @ chance).max()) for chance in chances)
    return total
