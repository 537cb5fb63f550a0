"""Plans: where every possible message of a static network goes, worked out once for all replicates."""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import numpy as np
from numpy.typing import NDArray

from .kernels.layout import LEARNED, N_COUNTS, Fates, Rule, Scratch
from .kernels.spread import spread_slots
from .packing import Packed, no_links

#: The most memory that a plan may take, in bytes; beyond it messages are spread one by one.
PLAN_BUDGET: Final = 4 * 2**30
_SAMPLE: Final = 64
# Networks up to this size are planned in one go.
_SMALL: Final = 1000


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


def worthwhile_bytes(packed: Packed, rule: Rule) -> float:
    """About how much memory a plan takes; 0 if none is possible, fits its budget and pays for itself."""
    run = packed.run
    if packed.network is None or rule.ttl == 0 or rule.is_random or rule.n_targets or run.link_traffic:
        return 0.0
    # A plan spreads two messages for each arm of each agent; without one, every pull spreads one.
    if run.horizon * run.replicates < 2 * packed.most_arms:
        return 0.0
    n_bytes = _estimated_bytes(packed, rule)
    return n_bytes if n_bytes <= PLAN_BUDGET else 0.0


def _estimated_bytes(packed: Packed, rule: Rule) -> float:
    n_slots, n_agents = len(packed.agents.arms), len(packed.agents.every)
    table = n_slots * (8.0 + 8.0 * rule.ttl)
    if table > PLAN_BUDGET:
        return table
    sample = np.unique(np.linspace(0, n_agents - 1, _SAMPLE).astype(np.int64))
    counts = np.zeros(N_COUNTS, dtype=np.int64)
    scratch, weights = make_scratch(packed), np.ones(n_slots, dtype=np.int32)
    n_sampled = 0
    for v in sample.tolist():
        count_fates(packed, rule, v, v + 1, 1, weights, scratch, counts)
        n_sampled += int(packed.agents.offsets[v + 1] - packed.agents.offsets[v])
    return table + 4.0 * float(counts[LEARNED]) / n_sampled * n_slots


def count_fates(
    packed: Packed,
    rule: Rule,
    first: int,
    last: int,
    sequence: int,
    weights: NDArray[np.int32],
    scratch: Scratch,
    counts: NDArray[np.int64],
) -> None:
    """Add the fates of messages made in round `sequence`, as many of each slot as `weights` says, to `counts`."""
    one = make_fates(1, rule.ttl, np.zeros((1, 0), dtype=np.int32))
    spread_slots(
        first,
        last,
        sequence,
        packed.network,
        packed.agents,
        rule,
        weights,
        one.base,
        False,
        scratch,
        one,
        counts,
        no_links(),
    )


def count_all_fates(
    packed: Packed, rule: Rule, pulls: NDArray[np.int32], late_slots: NDArray[np.int32], scratch: Scratch
) -> NDArray[np.int64]:
    """The fates of a whole run on a static network, from how often each slot was pulled.

    `late_slots[v, t % ttl]` is what v pulled in round t of the last ttl: these messages do not live out their lives
    before the horizon.
    """
    n_agents = len(packed.agents.every)
    counts = np.zeros(N_COUNTS, dtype=np.int64)
    early = pulls.copy()
    for t in range(max(1, rule.horizon - rule.ttl + 1), rule.horizon + 1):
        late = late_slots[:, t % rule.ttl]
        weights = np.zeros(len(pulls), dtype=np.int32)
        weights[late[late >= 0]] = 1
        early -= weights
        count_fates(packed, rule, 0, n_agents, t, weights, scratch, counts)
    count_fates(packed, rule, 0, n_agents, rule.horizon - rule.ttl, early, scratch, counts)
    return counts


def build(packed: Packed, rule: Rule, threads: int) -> Fates:
    """The plan: first count every message's learners, then write them; in parts, side by side."""
    n_slots, n_agents = len(packed.agents.arms), len(packed.agents.every)
    # A plan knows no horizon: messages that would outlive the run are simply not delivered.
    rule = rule._replace(horizon=np.iinfo(np.int64).max)
    weights = np.ones(n_slots, dtype=np.int32)
    parts = 32 * threads if n_agents > _SMALL else 1
    bounds = np.linspace(0, n_agents, parts + 1).astype(np.int64).tolist()

    def spread_part(first: int, last: int, bases: NDArray[np.int64], fates: Fates) -> None:
        counts = np.zeros(N_COUNTS, dtype=np.int64)
        spread_slots(
            first,
            last,
            1,
            packed.network,
            packed.agents,
            rule,
            weights,
            bases,
            True,
            make_scratch(packed),
            fates,
            counts,
            no_links(),
        )

    def spread_all(bases: NDArray[np.int64], fates: Fates) -> None:
        pool = ThreadPoolExecutor(threads)
        try:
            jobs = [pool.submit(spread_part, *bound, bases, fates) for bound in itertools.pairwise(bounds)]
            for job in jobs:
                job.result()
        finally:
            # On Ctrl-C, parts that have not begun never do.
            pool.shutdown(wait=True, cancel_futures=True)

    fates = make_fates(n_slots, rule.ttl, np.zeros((1, 0), dtype=np.int32))
    spread_all(fates.base, fates)
    ends = np.cumsum(fates.end[:, -1], dtype=np.int64)
    fates = fates._replace(learners=np.zeros((1, int(ends[-1])), dtype=np.int32))
    if ends[-1]:
        spread_all(ends - fates.end[:, -1], fates)
    return fates
