"""Delivery where a message's fate is known when it is made: from a plan, or by spreading each message at once."""

from __future__ import annotations

import numpy as np

from .kernels.layout import Chunk, Fates
from .kernels.special import Kernels
from .packing import Packed
from .plans import count_all_fates, make_fates, make_scratch
from .replicates import Replicate
from .run import Outcome


class Spread(Replicate):
    """A replicate whose messages' fates are known when they are made: from a plan, or by spreading each at once."""

    @staticmethod
    def needed_bytes(packed: Packed, planned: bool) -> float:
        """About how much memory one replicate takes."""
        ttl = packed.run.protocol.ttl
        ring = ttl * (8 + 4 * ttl + (0 if planned else 4 * ttl + 16 + 4 * 16))
        return Replicate.shared_bytes(packed) + packed.run.problem.n_agents * (24.0 + ring)

    def __init__(self, packed: Packed, kernels: Kernels, replicate: int, plan: Fates | None) -> None:
        ttl = packed.run.protocol.ttl
        super().__init__(packed, kernels, replicate, lookahead=max(ttl - 1, 0))
        n_agents = packed.run.problem.n_agents
        self._plan = plan
        self._scratch = make_scratch(packed)
        self._cursor = np.array([-1, 0], dtype=np.int64)
        self._sent_ahead = np.zeros(2 * max(ttl, 1), dtype=np.int64)
        # Going down and coming back takes a round at least, so an agent learns a message every other round at most.
        self._most_receipts = (ttl + 1) // 2 if packed.traits.forgets else 1
        most_learners = self._most_receipts * int(np.diff(packed.holder_starts).max())
        room = 0 if plan is not None or ttl == 0 else 4 * n_agents + most_learners
        self._ring = make_fates(ttl * n_agents, max(ttl, 1), np.zeros((max(ttl, 1), room), dtype=np.int32))

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
            packed.run.protocol.central,
            self.state,
            self.known,
            self.pulls,
            self.messages,
            self._plan or self._ring,
            self._ring,
            self._sent_ahead,
            self.counts,
        )

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
            if t == last:
                return
            ttl, room = self._ring.learners.shape
            learners = np.zeros((ttl, 2 * room), dtype=np.int32)
            learners[:, :room] = self._ring.learners
            self._ring = self._ring._replace(learners=learners)

    def close(self) -> Outcome:
        """What the replicate gave; with a plan, fates are counted only now."""
        packed = self.packed
        if self._plan is not None and self.t > packed.run.horizon:
            n_messages = self.state.n_messages if len(self.state.n_messages) else self.state.pulls
            self.counts = count_all_fates(packed, self.rule, self._plan, n_messages, self.messages.slots, self._scratch)
        return super().close()
