"""Delivery where a message's fate is known when it is made: from a plan, or by spreading each message at once."""

from __future__ import annotations

import threading
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Final

import numpy as np

from ..run import Outcome
from . import crew
from .bitsets import shift_of
from .crew import Stop
from .kernels import fate
from .kernels.layout import Chunk, Plan
from .kernels.planned import deliver_part, sum_in_order
from .kernels.special import Kernels
from .kernels.ways import count_on_links
from .packing import Packed
from .plans import (
    Outline,
    count_fates,
    make_fates,
    make_plan,
    make_scratch,
    part_bounds,
    relayed_and_learned,
    with_more_rounds,
)
from .replicates import MADE_BUDGET, Replicate, make_messages, make_waiting, own_workspace

#: The sums of up to this many slots are near: they stay in a processor's own cache. To others, this many additions wait
#: at once.
NEAR: Final = 2**18
WAITING: Final = 256


class Spread(Replicate):
    """A replicate whose messages' fates are known when they are made: from a plan, or by spreading each at once.

    If the plan is made for several parts of the agents, as many threads share each round.
    """

    @staticmethod
    def needed_bytes(packed: Packed, outlined: Outline | None, stop: Stop) -> float:
        """About how much memory one replicate takes, with a plan or without."""
        n_agents, reach = packed.run.problem.n_agents, packed.traits.reach
        n_bytes = Replicate.needed_bytes(packed, outlined, stop)
        if outlined is not None:
            n_bytes += n_agents * reach * 4.0 * (1 + reach * outlined.n_parts)
            if packed.run.link_traffic:
                n_bytes += min(max(MADE_BUDGET, 4.0 * n_agents), 4.0 * n_agents * packed.run.horizon)
            return n_bytes + (n_agents * (40.0 + 4.0 * reach) if outlined.n_parts > 1 else 0.0)
        if packed.traits.goes_abreast:
            return n_bytes + n_agents * (n_agents << shift_of(reach)) / 2 + 32.0 * n_agents * reach
        if reach > 0:
            _, n_learned = relayed_and_learned(packed, stop)
            # By key, who learns it, twice while the lists grow, and how often it is sent by hop.
            n_bytes += n_agents * (40.0 + reach * (8.0 + 8.0 * reach + 8.0 * n_learned))
        return n_bytes

    def __init__(self, packed: Packed, kernels: Kernels, replicate: int, plan: Plan | None, stop: Stop) -> None:
        reach = packed.traits.reach
        super().__init__(packed, kernels, replicate, plan, stop, lookahead=max(reach - 1, 0))
        n_agents = packed.run.problem.n_agents
        self._plan = plan
        self._n_parts = 1
        by_rank = plan is not None and len(plan.ranks) > 0
        self.holders = packed.holders(with_slots=by_rank or self.rule.tells_everyone)
        self._sent_ahead = np.zeros(2 * max(reach, 1), dtype=np.int64)
        if plan is None and reach == 0:
            self._records = np.zeros((n_agents, 0, 1), dtype=np.int32)
            return
        if plan is not None:
            if len(self.state.sums) > NEAR or by_rank:
                self.state = replace(self.state, waiting=make_waiting(WAITING))
            n_copied = plan.records.shape[1] - reach
            self._n_parts = (n_copied - 1) // reach
            # Threads that share a round may be a round apart: then the oldest row is still read.
            n_rows = reach if self._n_parts == 1 else reach + 1
            self._records = np.zeros((n_agents, n_rows, n_copied), dtype=np.int32)
            if self._n_parts > 1:
                self.messages = make_messages(n_agents, n_rows)
                self._sent_ahead = np.zeros((self._n_parts, 2 * reach), dtype=np.int64)
                self._regrets = np.zeros((2, n_agents))
                bounds = part_bounds(n_agents, self._n_parts)
                self._parts = [
                    replace(
                        self.arrays, state=own_workspace(self.state), pulls=replace(self.pulls, first=first, last=last)
                    )
                    for first, last in pairwise(bounds)
                ]
            return
        self._scratch = make_scratch(packed)
        self._most_learners = self.rule.most_receipts * int(np.diff(packed.holder_starts).max())
        learners = np.zeros((reach, n_agents + self._most_learners), dtype=np.int32)
        self._ring = make_fates(reach * n_agents, reach, learners)

    def _simulate(self, chunk: Chunk, last: int) -> None:
        if self._plan is None and self.rule.ttl > 0:
            self._spread(chunk, last)
            return
        plan = self._plan or make_plan(0, 0)
        if self._n_parts > 1:
            self._simulate_in_parts(chunk, last)
        else:
            self.kernels.plan_rounds(last, chunk, self.arrays, plan, self._records, self._sent_ahead)
        self.stop.check()
        if len(chunk.made):
            horizon, n_made = self.packed.run.horizon, np.zeros(self.packed.run.problem.n_agents, dtype=np.int64)
            count_on_links(chunk.first, horizon, chunk.made, plan.ways, n_made, chunk.links, self.stop.flag)
            self.stop.check()

    def _simulate_in_parts(self, chunk: Chunk, last: int) -> None:
        """The same by a plan, one thread for each part of the agents.

        In each round they wait for each other once: when all have pulled. What a thread then adds to its agents' sums
        is read by no other thread, so it goes on to their next pulls by itself.
        """
        n_parts, plan, ring = self._n_parts, self._plan, self._records
        barrier = threading.Barrier(n_parts)
        sent = np.zeros((n_parts, last - chunk.first), dtype=np.int64)

        def simulate(part: int) -> int:
            arrays, ahead, n_stale = self._parts[part], self._sent_ahead[part], 0
            for t in range(chunk.first, last):
                sent[part, t - chunk.first] = self.kernels.pull_part(t, chunk, arrays, plan, ring, ahead, self._regrets)
                barrier.wait()
                if part == 0:
                    chunk.regret[t - chunk.first] = sum_in_order(self._regrets[t % 2])
                n_stale += self.deliver(t, part)
                self.stop.check()
            return n_stale

        def simulate_until_stopped(part: int) -> int:
            try:
                return simulate(part)
            except threading.BrokenBarrierError:
                # Another part was stopped, or failed, and says so itself.
                return 0
            except BaseException:
                barrier.abort()
                raise

        self.counts[fate.STALE] += sum(
            crew.work([partial(simulate_until_stopped, part) for part in range(n_parts)], n_parts, self.stop)
        )
        chunk.sent[:] = sent.sum(axis=0)

    def deliver(self, t: int, part: int = 0) -> int:
        """Deliver by the plan what is heard in round `t` in a part of the agents; how much of it changes nothing."""
        arrays = self._parts[part] if self._n_parts > 1 else self.arrays
        n_stale: int = deliver_part(t, part, self._n_parts, arrays, self._plan, self._records, self.stop.flag)
        return n_stale

    def _spread(self, chunk: Chunk, last: int) -> None:
        t = chunk.first
        while True:
            t = self.kernels.spread_rounds(t, last, chunk, self.arrays, self._scratch, self._ring)
            self.stop.check()
            if self._scratch.abreast.lives_on[0]:
                longer = with_more_rounds(self.packed, self._scratch.abreast)
                self._scratch = replace(self._scratch, abreast=longer)
                continue
            if t == last:
                return
            reach, room = self._ring.learners.shape
            learners = np.zeros((reach, room + room // 2 + self._most_learners), dtype=np.int32)
            learners[:, :room] = self._ring.learners
            self._ring = replace(self._ring, learners=learners)

    def close(self) -> Outcome:
        """What the replicate gave; with a plan, fates are counted only now."""
        packed = self.packed
        if self._plan is not None and self.t > packed.run.horizon:
            n_messages = self.state.n_messages if len(self.state.n_messages) else self.state.pulls
            n_stale = self.counts[fate.STALE]
            self.counts = count_fates(self.rule, self._plan, n_messages, self.messages.slots, self.stop)
            self.counts[fate.STALE] = n_stale
        return super().close()
