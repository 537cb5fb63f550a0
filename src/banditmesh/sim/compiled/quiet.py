"""Delivery where nothing travels: whole replicates side by side, one after the other in the same arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ..run import TRAFFIC, Outcome
from .kernels.layout import Chunk, Keys
from .packing import Packed
from .replicates import Replicate

#: The most pulls that replicates make in one call: about 20 ms.
MAX_PULLS: Final = 2**18


class Quiet(Replicate):
    """A replicate in which nothing travels; those that are simulated together share its arrays."""

    def _simulate(self, chunk: Chunk, last: int) -> None:
        self._pull(chunk, last, [self.keys], chunk.regret[None], self.state.pulls[None])

    def together(self, replicates: Sequence[int]) -> list[Outcome]:
        """What these replicates give, the first of which is this one."""
        run = self.packed.run
        keys = [self.packed.keys(run.draws(replicate)) for replicate in replicates]
        regrets = np.zeros((len(replicates), run.horizon))
        pulled = np.zeros((len(replicates), len(self.state.pulls)), dtype=np.int32)
        self._pull(self._chunk(1, run.horizon + 1), run.horizon + 1, keys, regrets, pulled)
        # Sums are accumulated one round after the other, as the reference engine does.
        regret = np.add.accumulate(regrets, axis=1)[:, run.records - 1]
        messages = np.zeros(regret.shape, dtype=np.int64)
        traffic = np.zeros((len(replicates), len(TRAFFIC)), dtype=np.int64)
        return list(map(Outcome, regret, messages, traffic, pulled))

    def _pull(
        self,
        chunk: Chunk,
        last: int,
        keys: Sequence[Keys],
        regrets: NDArray[np.float64],
        pulled: NDArray[np.int32],
    ) -> None:
        draw_keys = np.stack([one.draws for one in keys])
        self.kernels.quiet_rounds(
            last, chunk, self.packed.agents, self.keys, draw_keys, self.state, self.pulls, regrets, pulled
        )
        self.stop.check()


def n_together(packed: Packed, threads: int) -> int:
    """How many replicates are simulated in one call: several only if each is short and gives nothing by the way."""
    run, traits = packed.run, packed.traits
    tells_more = run.link_traffic or run.agents or run.faults is not None or run.means_change
    has_more = traits.has_tape or traits.replays
    if not traits.is_quiet or tells_more or has_more:
        return 1
    return max(1, min(MAX_PULLS // (run.horizon * run.problem.n_agents), -(-run.replicates // threads)))
