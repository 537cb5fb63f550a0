"""Delivery copy by copy, as the published rules need it: their memory forgets."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .bitsets import WORD, shift_of
from .crew import Stop
from .kernels.lanes import LANES
from .kernels.layout import Chunk, Plan, Walked
from .kernels.special import Kernels
from .packing import Packed, id_bytes
from .plans import Outline, make_ranked
from .replicates import Replicate


class Walk(Replicate):
    """A replicate in which every copy is walked, as the published rules need it."""

    @staticmethod
    def needed_bytes(packed: Packed, outlined: Outline | None, stop: Stop) -> float:
        """About how much memory one replicate takes."""
        return Replicate.needed_bytes(packed, outlined, stop) + id_bytes(packed.run)

    def __init__(self, packed: Packed, kernels: Kernels, replicate: int, plan: Plan | None, stop: Stop) -> None:
        super().__init__(packed, kernels, replicate, plan, stop)
        n_agents, reach, n_codes = packed.run.problem.n_agents, packed.traits.reach, packed.traits.n_codes
        n_messages, shift = packed.traits.n_messages, shift_of(reach)
        recent = np.zeros((n_agents, 2 * reach * n_agents + 1), dtype=np.int32)
        self._walked = Walked(
            discrete=packed.traits.discrete,
            n_codes=n_codes,
            first=np.zeros(2, dtype=np.int64),
            origins=np.zeros(n_messages, dtype=np.int32),
            rounds=np.zeros(n_messages, dtype=np.int32),
            arms=np.zeros(n_messages, dtype=np.int32),
            ids=np.zeros(n_messages if n_codes else 0, dtype=np.int32),
            remembered=np.zeros((n_agents, -(-packed.traits.n_ids // WORD)), dtype=np.uint64),
            recent=recent,
            recent_ids=np.zeros_like(recent) if n_codes else recent,
            memories=np.zeros((n_agents, 5), dtype=np.int64),
            accepted=np.zeros((reach, n_agents), dtype=np.int64),
            shift=np.uint64(shift),
            learning=np.zeros(-(-(n_agents << shift) // WORD), dtype=np.uint64),
            ranked=make_ranked(n_agents << shift),
            queue=np.zeros(reach * max(n_agents, 2) + 1 + LANES, dtype=np.int32),
            chances=np.zeros(max(reach * n_agents, packed.most_degree) + LANES),
            picks=np.zeros(packed.most_degree + 1, dtype=np.int32),
            drawn=np.zeros(packed.most_degree + 1, dtype=np.int32),
        )
        self._values = np.zeros(0)
        if self.tape is not None and packed.traits.n_codes:
            self._values = np.unique(self.tape[~np.isnan(self.tape)])

    def _codes(self, tape: NDArray[np.float64]) -> NDArray[np.int32]:
        # By the user's tape, or 0 and 1 of a Bernoulli law.
        return (np.searchsorted(self._values, tape) if len(self._values) else tape == 1.0).astype(np.int32)

    def _simulate(self, chunk: Chunk, last: int) -> None:
        self.kernels.walk_rounds(chunk.first, last, chunk, self.arrays, self._walked)
        self.stop.check()
