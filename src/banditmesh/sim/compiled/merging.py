"""Delivery along a tree, for protocols that merge statistics."""

from __future__ import annotations

import numpy as np

from ...networks.csr import Links
from ...protocols.spanning import Tree
from .crew import Stop
from .kernels.layout import NEVER_TOLD, Chunk, Merged, Plan, TreeLinks
from .kernels.special import Kernels
from .packing import Packed
from .plans import Outline
from .replicates import Replicate


class Merge(Replicate):
    """A replicate in which agents tell their neighbours in a tree what they know."""

    @staticmethod
    def needed_bytes(packed: Packed, outlined: Outline | None, stop: Stop) -> float:
        """About how much memory one replicate takes."""
        n_agents, n_arms = packed.run.problem.n_agents, packed.run.problem.n_arms
        # Nearly two directed links for each agent, and a table of all arms for each.
        return Replicate.needed_bytes(packed, outlined, stop) + n_agents * n_arms * (2 * 38.0 + 10.0)

    def __init__(self, packed: Packed, kernels: Kernels, replicate: int, plan: Plan | None, stop: Stop) -> None:
        super().__init__(packed, kernels, replicate, plan, stop)
        run = packed.run
        assert run.tree is not None
        assert isinstance(run.problem.network, Links)
        self._tree = _as_arrays(run.tree, run.problem.network)
        # A pause that is longer than the run is as long as the run.
        self._pause = min(int(getattr(run.protocol, "pause", 1)), run.horizon)
        shape = self._tree.wants.shape
        number = np.float64 if run.memory.forgets else np.int64
        self._merged = Merged(
            told_counts=np.zeros(shape, dtype=number),
            told_totals=np.zeros(shape),
            sent_counts=np.zeros(shape, dtype=number),
            sent_totals=np.zeros(shape),
            sent_rounds=np.full(shape, NEVER_TOLD, dtype=np.int32),
            echoes_left=np.zeros(shape, dtype=np.int8),
            n_sent=np.zeros(shape[0], dtype=np.int64),
            counts=np.zeros((run.problem.n_agents, run.problem.n_arms), dtype=number),
            is_open=np.zeros((run.problem.n_agents, run.problem.n_arms), dtype=np.int8),
            tells=np.zeros((run.problem.n_agents, run.problem.n_arms), dtype=np.int8),
        )

    def _simulate(self, chunk: Chunk, last: int) -> None:
        self.kernels.merge_rounds(last, chunk, self.arrays, self._pause, self._tree, self._merged)
        self.stop.check()


def _as_arrays(tree: Tree, network: Links) -> TreeLinks:
    n_agents, links = network.n_agents, tree.links
    codes = _codes(links)
    senders, receivers = codes // n_agents, codes % n_agents
    return TreeLinks(
        starts=np.array(links.indptr),
        neighbours=np.array(links.indices),
        backward=np.searchsorted(codes, receivers * n_agents + senders),
        wants=tree.wants.astype(np.int8),
        places=np.searchsorted(_codes(network), codes),
    )


def _codes(links: Links) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Directed links as ascending numbers."""
    senders = np.repeat(np.arange(links.n_agents, dtype=np.int64), links.degrees)
    return senders * links.n_agents + links.indices
