"""Plans: where every possible message of a static network goes, worked out once for all replicates."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Final

import numpy as np
from numpy.typing import NDArray

from .kernels.layout import N_COUNTS, Fates, Rule, Scratch
from .kernels.special import Kernels
from .packing import Packed, no_links

#: The most memory that a plan may take, in bytes; beyond it messages are spread one by one.
PLAN_BUDGET: Final = 4 * 2**30
_SAMPLE: Final = 64


def make_scratch(packed: Packed) -> Scratch:
    """Workspace for spreading one message after the other."""
    n_agents = len(packed.agents.every)
    return Scratch(
        mark=np.zeros(n_agents, dtype=np.int64),
        previous=np.zeros(n_agents, dtype=np.int32),
        senders=np.zeros(n_agents + 1, dtype=np.int32),
        receivers=np.zeros(n_agents + 1, dtype=np.int32),
        picks=np.zeros(packed.most_degree + 1, dtype=np.int32),
        next_mark=np.ones(1, dtype=np.int64),
    )


def make_fates(n_keys: int, ttl: int, learners: NDArray[np.int32]) -> Fates:
    """Room for the fates of `n_keys` messages."""
    return Fates(
        base=np.zeros(n_keys, dtype=np.int64),
        end=np.zeros((n_keys, ttl), dtype=np.int32),
        sent=np.zeros((n_keys, ttl), dtype=np.int32),
        learners=learners,
    )


def is_worthwhile(packed: Packed, kernels: Kernels, rule: Rule) -> bool:
    """Whether a plan is possible, fits its budget and is used often enough to pay for itself."""
    run = packed.run
    if packed.network is None or rule.ttl == 0 or rule.is_random or rule.n_targets or run.link_traffic:
        return False
    # A plan spreads two messages for each arm of each agent; without one, every pull spreads one.
    if run.horizon * run.replicates < 2 * packed.most_arms:
        return False
    return _estimated_bytes(packed, kernels, rule) <= PLAN_BUDGET


def _estimated_bytes(packed: Packed, kernels: Kernels, rule: Rule) -> float:
    n_slots = len(packed.agents.arms)
    table = n_slots * (8.0 + 8.0 * rule.ttl)
    if table > PLAN_BUDGET:
        return table
    n_agents = len(packed.agents.every)
    fates = make_fates(n_slots, rule.ttl, np.zeros((1, 0), dtype=np.int32))
    sample = np.unique(np.linspace(0, n_agents - 1, _SAMPLE).astype(np.int64))
    scratch, counts = make_scratch(packed), np.zeros(N_COUNTS, dtype=np.int64)
    bases = np.zeros(n_slots, dtype=np.int64)
    n_sampled = 0
    for v in sample.tolist():
        kernels.plan(v, v + 1, packed.network, packed.agents, rule, scratch, bases, fates, counts, no_links())
        n_sampled += int(packed.agents.offsets[v + 1] - packed.agents.offsets[v])
    n_learners = fates.end[:, -1].sum(dtype=np.int64) / n_sampled * n_slots
    return table + 4.0 * float(n_learners)


def build(packed: Packed, kernels: Kernels, rule: Rule, threads: int) -> Fates:
    """The plan: first count every message's learners, then write them; in parts, side by side."""
    n_slots, n_agents = len(packed.agents.arms), len(packed.agents.every)
    # A plan knows no horizon: messages that would outlive the run are simply not delivered.
    rule = rule._replace(horizon=np.iinfo(np.int64).max)
    fates = make_fates(n_slots, rule.ttl, np.zeros((1, 0), dtype=np.int32))
    bounds = np.linspace(0, n_agents, 4 * threads + 1 if n_agents > 1000 else 2).astype(np.int64).tolist()

    def spread_all(fates: Fates, bases: NDArray[np.int64]) -> None:
        def part(first: int, last: int) -> None:
            counts = np.zeros(N_COUNTS, dtype=np.int64)
            kernels.plan(
                first, last, packed.network, packed.agents, rule, make_scratch(packed), bases, fates, counts, no_links()
            )

        if len(bounds) == 2:
            part(0, n_agents)
            return
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(part, bounds[:-1], bounds[1:]))

    spread_all(fates, np.zeros(n_slots, dtype=np.int64))
    ends = np.cumsum(fates.end[:, -1], dtype=np.int64)
    bases = ends - fates.end[:, -1]
    learners = np.zeros((1, int(ends[-1])), dtype=np.int32)
    fates = fates._replace(learners=learners)
    if learners.shape[1]:
        spread_all(fates, bases)
    return fates
