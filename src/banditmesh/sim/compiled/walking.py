"""Delivery copy by copy, as the published rules need it: their memory forgets."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from .crew import Stop
from .kernels.layout import Chunk, Learned, Plan, Queue, Walked
from .kernels.special import Kernels
from .packing import Packed
from .plans import Outline, relayed_and_learned
from .replicates import Replicate

Growing = TypeVar("Growing", Queue, Learned)


class Walk(Replicate):
    """A replicate in which every copy is walked, as the published rules need it."""

    @staticmethod
    def needed_bytes(packed: Packed, outlined: Outline | None, stop: Stop) -> float:
        """About how much memory one replicate takes."""
        n_agents = packed.run.problem.n_agents
        n_relayed, n_learned = relayed_and_learned(packed, stop)
        # Two queues and a list of learners, in which a round's entries are as many as a message's in all its life.
        lists = n_agents * (24.0 * (n_relayed + 1) + 8.0 * n_learned)
        ids = 8.0 * packed.traits.n_ids * n_agents
        return Replicate.needed_bytes(packed, outlined, stop) + ids + 12.0 * packed.traits.reach * n_agents + lists

    def __init__(self, packed: Packed, kernels: Kernels, replicate: int, plan: Plan | None, stop: Stop) -> None:
        super().__init__(packed, kernels, replicate, plan, stop)
        n_agents, n_messages = packed.run.problem.n_agents, packed.traits.reach * packed.run.problem.n_agents
        self._walked = Walked(
            discrete=packed.traits.discrete,
            n_codes=packed.traits.n_codes,
            ids=np.zeros(n_messages, dtype=np.int64),
            accepted=np.zeros(n_agents, dtype=np.int64),
            kept_until=np.zeros((packed.traits.n_ids, n_agents), dtype=np.int64),
            even=_make_queue(n_agents),
            odd=_make_queue(n_agents),
            learned=Learned(
                n_used=np.zeros(1, dtype=np.int64),
                head=np.full(n_messages, -1, dtype=np.int32),
                learner=np.zeros(2 * n_agents, dtype=np.int32),
                following=np.zeros(2 * n_agents, dtype=np.int32),
            ),
            cursor=np.array([-1, 0], dtype=np.int64),
            picks=np.zeros(packed.most_degree + 1, dtype=np.int32),
        )
        self._values = np.zeros(0)
        if self.tape is not None and packed.traits.n_codes:
            self._values = np.unique(self.tape[~np.isnan(self.tape)])

    def _codes(self, tape: NDArray[np.float64]) -> NDArray[np.int32]:
        # By the user's tape, or 0 and 1 of a Bernoulli law.
        return (np.searchsorted(self._values, tape) if len(self._values) else tape == 1.0).astype(np.int32)

    def _simulate(self, chunk: Chunk, last: int) -> None:
        t, n_agents = chunk.first, self.packed.run.problem.n_agents
        while True:
            t = self.kernels.walk_rounds(t, last, chunk, self.arrays, self._walked)
            self.stop.check()
            if t == last:
                return
            self._walked = self._walked._replace(
                even=_with_place(self._walked.even, n_agents),
                odd=_with_place(self._walked.odd, n_agents),
                learned=_with_place(self._walked.learned, n_agents),
            )


def _make_queue(n_agents: int) -> Queue:
    return Queue(
        n_used=np.zeros(1, dtype=np.int64),
        head=np.full(n_agents, -1, dtype=np.int32),
        message=np.zeros(2 * n_agents, dtype=np.int32),
        ttl=np.zeros(2 * n_agents, dtype=np.int32),
        following=np.zeros(2 * n_agents, dtype=np.int32),
    )


def _with_place(entries: Growing, n_more: int) -> Growing:
    """The same entries, in longer arrays if there is no place for `n_more`."""
    room = len(entries.following)
    if entries.n_used[0] + n_more <= room:
        return entries
    longer = {
        name: np.concatenate([array, np.zeros(room // 2 + n_more, dtype=np.int32)])
        for name, array in entries._asdict().items()
        if name not in ("n_used", "head")
    }
    return entries._replace(**longer)
