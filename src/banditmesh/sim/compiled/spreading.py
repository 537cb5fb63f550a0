"""Delivery where a message's fate is known when it is made: from a plan, or by spreading each message at once."""

from __future__ import annotations

import numpy as np

from ...protocols.base import Delivery
from ..run import Outcome
from .crew import Stop
from .kernels.layout import STALE, Chunk, Plan
from .kernels.special import Kernels
from .packing import Packed
from .plans import count_fates, make_fates, make_plan, make_scratch, relayed_and_learned
from .replicates import Replicate


class Spread(Replicate):
    """A replicate whose messages' fates are known when they are made: from a plan, or by spreading each at once."""

    @staticmethod
    def needed_bytes(packed: Packed, planned: bool, stop: Stop) -> float:
        """About how much memory one replicate takes."""
        n_agents, reach = packed.run.problem.n_agents, packed.traits.reach
        ring = n_agents * reach * (4.0 + 4.0 * reach)
        if not planned and reach > 0:
            _, n_learned = relayed_and_learned(packed, stop)
            # By key, how often it is sent by hop, four totals, and who learns it: twice while the lists grow.
            ring += n_agents * reach * (4.0 + 4.0 * reach + 32.0 + 8.0 * n_learned) + 40.0 * n_agents
        return Replicate.shared_bytes(packed) + ring

    def __init__(self, packed: Packed, kernels: Kernels, replicate: int, plan: Plan | None, stop: Stop) -> None:
        reach = packed.traits.reach
        super().__init__(packed, kernels, replicate, max(reach - 1, 0), stop)
        n_agents = packed.run.problem.n_agents
        self._plan = plan
        self._sent_ahead = np.zeros(2 * max(reach, 1), dtype=np.int64)
        if plan is not None or reach == 0:
            n_copied = 1 if plan is None else plan.records.shape[1] - reach
            self._records = np.zeros((n_agents, reach, n_copied), dtype=np.int32)
            return
        self._scratch = make_scratch(packed)
        self._cursor = np.array([-1, 0], dtype=np.int64)
        # Going down and coming back takes a round at least, so an agent learns a message every other round at most.
        self._most_receipts = (reach + 1) // 2 if packed.traits.forgets else 1
        self._most_learners = self._most_receipts * int(np.diff(packed.holder_starts).max())
        learners = np.zeros((reach, n_agents + self._most_learners), dtype=np.int32)
        self._ring = make_fates(reach * n_agents, reach, learners)

    def _simulate(self, chunk: Chunk, last: int) -> None:
        if self._plan is None and self.rule.ttl > 0:
            self._spread(chunk, last)
            return
        packed = self.packed
        self.kernels.plan_rounds(
            last,
            chunk,
            packed.agents,
            packed.holder_starts,
            packed.holder_slots,
            self.rule,
            self.keys,
            packed.run.protocol.delivery is Delivery.EVERYONE,
            self.state,
            self.known,
            self.pulls,
            self.messages,
            self._plan or make_plan(0, 0),
            self._records,
            self._sent_ahead,
            self.counts,
        )
        self.stop.check()

    def _spread(self, chunk: Chunk, last: int) -> None:
        packed, t = self.packed, chunk.first
        while True:
            t = self.kernels.spread_rounds(
                t,
                last,
                chunk,
                packed.agents,
                packed.holder_starts,
                packed.holder_slots,
                self.rule,
                self.keys,
                self._most_receipts,
                self.state,
                self.known,
                self._scratch,
                self._cursor,
                self.pulls,
                self.messages,
                self._ring,
                self._sent_ahead,
                self.counts,
            )
            self.stop.check()
            if t == last:
                return
            reach, room = self._ring.learners.shape
            learners = np.zeros((reach, room + room // 2 + self._most_learners), dtype=np.int32)
            learners[:, :room] = self._ring.learners
            self._ring = self._ring._replace(learners=learners)

    def close(self) -> Outcome:
        """What the replicate gave; with a plan, fates are counted only now."""
        packed = self.packed
        if self._plan is not None and self.t > packed.run.horizon:
            n_messages = self.state.n_messages if len(self.state.n_messages) else self.state.pulls
            n_stale = self.counts[STALE]
            self.counts = count_fates(self.rule, self._plan, n_messages, self.messages.slots, self.stop)
            self.counts[STALE] = n_stale
        return super().close()
