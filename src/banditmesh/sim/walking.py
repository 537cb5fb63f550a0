"""Delivery copy by copy, as the published rules need it: their memory forgets."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .kernels.layout import Chunk, Fates, Queue
from .kernels.special import Kernels
from .packing import Packed
from .replicates import Replicate


class Walk(Replicate):
    """A replicate in which every copy is walked, as the published rules need it."""

    @staticmethod
    def needed_bytes(packed: Packed, planned: bool) -> float:
        """About how much memory one replicate takes."""
        n_agents, ttl = packed.run.problem.n_agents, packed.run.protocol.ttl
        return Replicate.shared_bytes(packed) + 8.0 * packed.traits.n_ids * n_agents + 512.0 * ttl * n_agents

    def __init__(self, packed: Packed, kernels: Kernels, replicate: int, plan: Fates | None) -> None:
        super().__init__(packed, kernels, replicate, lookahead=0)
        n_agents, ttl = packed.run.problem.n_agents, packed.run.protocol.ttl
        self._picks = np.zeros(packed.most_degree + 1, dtype=np.int32)
        self._ids = np.zeros(ttl * n_agents, dtype=np.int64)
        self._accepted = np.zeros(n_agents, dtype=np.int64)
        self._accepted_as = np.zeros((packed.traits.n_ids, n_agents), dtype=np.int64)
        self._queues = tuple(self._make_queue(16 * n_agents) for _ in range(2))
        self._values = np.zeros(0)
        if self.tape is not None and packed.traits.n_codes:
            self._values = np.unique(self.tape[~np.isnan(self.tape)])

    def _make_queue(self, room: int) -> Queue:
        n_agents, n_messages = self.packed.run.problem.n_agents, len(self._ids)
        return Queue(
            n_used=np.zeros(1, dtype=np.int64),
            head=np.full(n_agents, -1, dtype=np.int32),
            length=np.zeros(n_agents, dtype=np.int32),
            message=np.zeros(room, dtype=np.int32),
            ttl=np.zeros(room, dtype=np.int32),
            following=np.zeros(room, dtype=np.int32),
            first_learner=np.full(n_messages, -1, dtype=np.int32),
            learner=np.zeros(room, dtype=np.int32),
            next_learner=np.zeros(room, dtype=np.int32),
        )

    def _grow(self, queue: Queue) -> Queue:
        room = len(queue.message)
        larger = self._make_queue(2 * room)
        for name in ("n_used", "head", "length", "first_learner"):
            getattr(larger, name)[:] = getattr(queue, name)
        for name in ("message", "ttl", "following", "learner", "next_learner"):
            getattr(larger, name)[:room] = getattr(queue, name)
        return larger

    def _codes(self, tape: NDArray[np.float64]) -> NDArray[np.int32]:
        # By the user's tape, or 0 and 1 of a Bernoulli law.
        return (np.searchsorted(self._values, tape) if len(self._values) else tape == 1.0).astype(np.int32)

    def _simulate(self, chunk: Chunk, last: int) -> None:
        packed, t = self.packed, chunk.first
        while True:
            t = self.kernels.walk_rounds(
                t,
                last,
                chunk,
                packed.agents,
                self.rule,
                self.keys,
                packed.traits.discrete,
                packed.traits.n_codes,
                self.state,
                self.known,
                self._picks,
                self.pulls,
                self.messages,
                self._ids,
                self._accepted,
                self._accepted_as,
                *self._queues,
                self.counts,
            )
            if t == last:
                return
            self._queues = tuple(self._grow(queue) for queue in self._queues)
