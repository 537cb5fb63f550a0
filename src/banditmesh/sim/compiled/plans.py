"""Plans: where every possible message of a static network goes, worked out once for all replicates."""

from __future__ import annotations

from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ...draws import Draws
from ...networks.dynamic import DynamicNetwork
from ...protocols.base import ABSORB
from .. import memory
from ..expected_links import links_at_a_time
from ..run import Run
from . import crew
from .crew import Stop
from .kernels.layout import (
    ABSORBED,
    DELIVERED,
    EXPIRED,
    HEARD,
    N_COUNTS,
    RELAYED,
    SENT,
    STOPPED,
    Fates,
    Rule,
    Scratch,
)
from .kernels.sets import N_SETS
from .kernels.spread import spread_slots
from .packing import Packed, no_faults, no_links, traits

#: The most memory that a plan may take, in bytes; beyond it messages are spread one by one.
PLAN_BUDGET: Final = 4 * 2**30
# How many transmissions a sample of messages may have, about; what part of all messages, and how many it has at least.
_SAMPLE_WORK: Final = 2**23
_SAMPLE_PART: Final = 8
_SMALLEST_SAMPLE: Final = 16
# How much longer than estimated the place for a plan's learners is.
_GENEROUS: Final = 2.0
# Networks up to this size are planned in one go.
_SMALL: Final = 1000


def make_scratch(packed: Packed) -> Scratch:
    """Workspace for spreading one message after the other."""
    n_agents = len(packed.agents.every)
    return Scratch(
        seen=np.zeros((n_agents, 2), dtype=np.int64),
        senders=np.zeros(n_agents + 1, dtype=np.int32),
        receivers=np.zeros(n_agents + 1, dtype=np.int32),
        picks=np.zeros(packed.most_degree + 1, dtype=np.int32),
        drawn=np.zeros(packed.most_degree + 1, dtype=np.int32),
        chances=np.zeros(packed.most_degree + 1),
        next_mark=np.ones(1, dtype=np.int64),
        sets=np.zeros((N_SETS, packed.agents.holders.shape[1]), dtype=np.uint64),
        first_from=np.zeros((n_agents, packed.agents.holders.shape[1]), dtype=np.uint64),
    )


def make_fates(n_keys: int, reach: int, learners: NDArray[np.int32]) -> Fates:
    """Room for the fates of `n_keys` messages."""
    return Fates(
        base=np.zeros(n_keys, dtype=np.int64),
        end=np.zeros((n_keys, reach), dtype=np.int32),
        sent=np.zeros((n_keys, reach), dtype=np.int32),
        totals=np.zeros((n_keys, 4), dtype=np.int64),
        learners=learners,
    )


def pays(run: Run) -> bool:
    """Whether a plan is possible and would save work."""
    if run.relaying is None or not traits(run).is_settled or run.link_traffic:
        return False
    # A plan spreads a message for each arm of each agent; without one, every pull spreads one.
    return run.horizon * run.replicates >= int(np.diff(run.problem.arm_offsets).max())


def worthwhile_bytes(packed: Packed, rule: Rule, stop: Stop) -> float:
    """About how much memory a plan takes; 0 if it does not pay or does not fit its budget."""
    if not pays(packed.run):
        return 0.0
    n_bytes = len(packed.agents.arms) * (40.0 + 8.0 * rule.reach)
    at_most = n_bytes + 4.0 * learners_at_most(packed)
    if at_most <= min(PLAN_BUDGET, memory.TRIFLE):
        return at_most
    if not _is_affordable(n_bytes):
        return 0.0
    n_bytes += 4.0 * _estimated_learners(packed, rule, stop)
    return n_bytes if _is_affordable(n_bytes) else 0.0


def _is_affordable(n_bytes: float) -> bool:
    """Whether a plan may take so much memory."""
    return n_bytes <= PLAN_BUDGET and memory.suffices(2.0 * n_bytes)


def learners_at_most(packed: Packed) -> int:
    """More learners than a plan can have: of every slot, all holders of its arm."""
    return int(np.square(np.diff(packed.holder_starts)).sum())


def _estimated_learners(packed: Packed, rule: Rule, stop: Stop) -> float:
    """How many learners a plan has."""
    return float(sampled_fates(packed, rule, stop)[HEARD]) * len(packed.agents.arms)


def sampled_fates(packed: Packed, rule: Rule, stop: Stop) -> NDArray[np.float64]:
    """What becomes of a message of a static network, on average over some of the slots: in the order of counts."""
    assert packed.network is not None
    n_slots = len(packed.agents.arms)
    n_sampled = min(_SAMPLE_WORK // max(len(packed.network.indices), 1), n_slots // _SAMPLE_PART)
    sample = np.unique(np.linspace(0, n_slots - 1, max(n_sampled, _SMALLEST_SAMPLE)).astype(np.int64))
    weights = np.zeros(n_slots, dtype=np.int32)
    weights[sample] = 1
    counts = np.zeros(N_COUNTS, dtype=np.int64)
    count_fates(packed, rule, 1, weights, make_scratch(packed), counts, stop)
    return counts / len(sample)


def relayed_and_learned(packed: Packed, stop: Stop) -> tuple[float, float]:
    """About how many agents relay a message, and how many learn it."""
    network, rule = packed.run.problem.network, packed.rule(Draws(packed.run.seed, 0))
    if packed.network is not None:
        counts = sampled_fates(packed, rule, stop)
        return float(counts[RELAYED]), float(counts[HEARD])
    assert isinstance(network, DynamicNetwork)
    # A dynamic network is taken to spread a message as a tree does, until everybody has it.
    n_agents, n_reached = network.n_agents, 0.0
    newest, degree = 1.0, links_at_a_time(network) / network.n_agents
    for _ in range(rule.reach):
        newest = min(newest * (min(degree, rule.n_targets) if rule.n_targets else degree), n_agents - 1 - n_reached)
        n_reached += newest
    # Of the agents, how many have the arm, on average over slots.
    holding = float(np.square(np.diff(packed.holder_starts)).sum()) / len(packed.agents.arms) / n_agents
    absorbing = holding if not rule.is_random and (rule.decision[1] == ABSORB).all() else 0.0
    return n_reached * (1.0 - absorbing), n_reached * holding


def count_fates(
    packed: Packed,
    rule: Rule,
    sequence: int,
    weights: NDArray[np.int32],
    scratch: Scratch,
    counts: NDArray[np.int64],
    stop: Stop,
) -> None:
    """Add the fates of messages made in round `sequence`, as many of each slot as `weights` says, to `counts`."""
    one = make_fates(1, rule.reach, np.zeros((1, 0), dtype=np.int32))
    spread_slots(
        0,
        len(packed.agents.every),
        sequence,
        packed.network,
        packed.agents,
        packed.holder_starts,
        rule,
        weights,
        False,
        0,
        0,
        scratch,
        one,
        counts,
        no_links(),
        no_faults(),
        stop.flag,
    )
    stop.check()


def count_all_fates(
    packed: Packed,
    rule: Rule,
    plan: Fates,
    n_messages: NDArray[np.int32],
    late_slots: NDArray[np.int32],
    scratch: Scratch,
    stop: Stop,
) -> NDArray[np.int64]:
    """The fates of a whole run with a plan, from how many messages each slot made.

    `late_slots[v, t % reach]` is what v sent in round t of the last `reach`: these messages do not live out their lives
    before the horizon, and are spread again, up to it.
    """
    counts = np.zeros(N_COUNTS, dtype=np.int64)
    early = n_messages.astype(np.int64)
    for t in range(max(1, rule.horizon - rule.reach + 1), rule.horizon + 1):
        late = late_slots[:, t % rule.reach]
        weights = np.zeros(len(n_messages), dtype=np.int32)
        weights[late[late >= 0]] = 1
        early -= weights
        count_fates(packed, rule, t, weights, scratch, counts, stop)
    delivered, absorbed, expired, stopped = early @ plan.totals
    counts[SENT] += early @ plan.sent.sum(axis=1, dtype=np.int64)
    counts[HEARD] += early @ plan.end[:, -1].astype(np.int64)
    counts[[DELIVERED, ABSORBED, EXPIRED, STOPPED]] += np.array([delivered, absorbed, expired, stopped])
    counts[RELAYED] += delivered - absorbed - expired - stopped
    return counts


def build(packed: Packed, rule: Rule, threads: int, stop: Stop) -> Fates:
    """The plan, made in parts side by side.

    Each part writes its learners into a stretch of its own, longer than needed; what is not written to takes no memory.
    """
    n_slots, n_agents = len(packed.agents.arms), len(packed.agents.every)
    # A plan knows no horizon: messages that would outlive the run are simply not delivered.
    rule = rule._replace(horizon=np.iinfo(np.int64).max)
    parts = 32 * threads if n_agents > _SMALL else 1
    bounds = np.linspace(0, n_agents, parts + 1).astype(np.int64)
    shares = np.diff(packed.agents.offsets[bounds]) / n_slots
    stretch = float(learners_at_most(packed))
    if parts > 1:
        stretch = min(stretch, _GENEROUS * _estimated_learners(packed, rule, stop) + n_agents)
    largest = int(np.diff(packed.holder_starts).max())
    while True:
        ends = np.cumsum((shares * stretch).astype(np.int64) + largest)
        fates = make_fates(n_slots, rule.reach, np.empty((1, int(ends[-1])), dtype=np.int32))
        if _spread_parts(packed, rule, threads, bounds.tolist(), [0, *ends.tolist()], fates, stop):
            return fates
        stretch *= 2


def _spread_parts(
    packed: Packed, rule: Rule, threads: int, bounds: list[int], ends: list[int], fates: Fates, stop: Stop
) -> bool:
    """Write the plan of agents bounds[i] to bounds[i + 1] between ends[i] and ends[i + 1]; whether all had place."""
    weights = np.ones(len(packed.agents.arms), dtype=np.int32)

    def spread_part(part: int) -> bool:
        fits = spread_slots(
            bounds[part],
            bounds[part + 1],
            1,
            packed.network,
            packed.agents,
            packed.holder_starts,
            rule,
            weights,
            True,
            ends[part],
            ends[part + 1],
            make_scratch(packed),
            fates,
            np.zeros(N_COUNTS, dtype=np.int64),
            no_links(),
            no_faults(),
            stop.flag,
        )
        stop.check()
        return bool(fits)

    return all(crew.work((partial(spread_part, part) for part in range(len(bounds) - 1)), threads, stop))
