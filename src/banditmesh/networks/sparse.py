"""Generators of networks too large for networkx: up to millions of agents, as scipy adjacency matrices.

The matrices are symmetric, with entries 0 and 1. The seed decides everything.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from .. import checks
from ..errors import NetworkError

if TYPE_CHECKING:
    from scipy.sparse import csr_array

MAX_AGENTS: Final = 100_000_000


def sparse_er(n: int, mean_degree: float, seed: int) -> csr_array[Any]:
    """An Erdős-Rényi network of any size, as a scipy adjacency matrix.

    Parameters
    ----------
    n : int
        Agents.
    mean_degree : float
        Expected neighbours of an agent: every pair is linked with probability mean_degree / (n - 1).
    seed : int
        What the draw depends on.

    Returns
    -------
    scipy.sparse.csr_array, shape (n, n)

    Examples
    --------
    >>> sparse_er(1000, 6.0, seed=0).shape
    (1000, 1000)
    """
    n = checks.integer("n", n, at_least=1, at_most=MAX_AGENTS)
    mean_degree = checks.real("mean_degree", mean_degree)
    if not 0 <= mean_degree <= n - 1:
        raise NetworkError(f"must be between 0 and n - 1 = {n - 1}, got {mean_degree}", key="mean_degree")
    rng = np.random.default_rng(checks.seed(seed))
    n_pairs = n * (n - 1) // 2
    n_links = int(rng.binomial(n_pairs, mean_degree / max(1, n - 1)))
    codes = rng.choice(n_pairs, size=n_links, replace=False, shuffle=False) if n_links else np.empty(0, np.int64)
    # Pair c is (i, j), i < j, with c = j (j - 1) / 2 + i. The root may be off by one, never by more.
    j = ((1.0 + np.sqrt(1.0 + 8.0 * codes)) / 2.0).astype(np.int64)
    j -= j * (j - 1) // 2 > codes
    j += j * (j + 1) // 2 <= codes
    return _adjacency(n, codes - j * (j - 1) // 2, j)


def sparse_ba(n: int, m: int, seed: int) -> csr_array[Any]:
    """A Barabási-Albert network of any size, as a scipy adjacency matrix; the same links as `ba`.

    Parameters
    ----------
    n : int
        Agents.
    m : int
        Links of each newcomer.
    seed : int
        What the draw depends on.

    Returns
    -------
    scipy.sparse.csr_array, shape (n, n)

    Examples
    --------
    >>> int(sparse_ba(100, 2, seed=2023).sum()) // 2
    196
    """
    n = checks.integer("n", n, at_least=2, at_most=MAX_AGENTS)
    m = checks.integer("m", m, at_least=1, at_most=n - 1)
    choose = random.Random(checks.seed(seed)).choice
    # As in networkx: a star of m + 1 agents to start from, and every agent in the urn once per link it has.
    urn = [0] * m + list(range(1, m + 1))
    ends: list[int] = list(range(1, m + 1))
    for newcomer in range(m + 1, n):
        targets: set[int] = set()
        while len(targets) < m:
            targets.add(choose(urn))
        urn.extend(targets)
        urn.extend([newcomer] * m)
        ends.extend(targets)
    starts = np.concatenate([np.zeros(m, np.int64), np.repeat(np.arange(m + 1, n), m)])
    return _adjacency(n, starts, np.array(ends, dtype=np.int64))


def _adjacency(n: int, i: npt.NDArray[np.int64], j: npt.NDArray[np.int64]) -> csr_array[Any]:
    """The symmetric adjacency matrix of distinct links (i, j)."""
    from scipy.sparse import coo_array

    ones = np.ones(2 * len(i), dtype=np.int8)
    places = (np.concatenate([i, j]), np.concatenate([j, i]))
    matrix = coo_array((ones, places), shape=(n, n)).tocsr()
    matrix.sort_indices()
    return matrix
