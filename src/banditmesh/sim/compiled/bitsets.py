"""Dense networks as sets of bits: who an agent's neighbours are, in a few machine words.

A sender's neighbours that have not seen a message are then found 64 at a time, where a list is read one by one. On
sparse networks, whose words are nearly empty, lists are quicker.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

WORD: Final = 64
#: A network of more agents takes too much memory, and is seldom dense.
MAX_AGENTS: Final = 1024
#: How many neighbours for each word of a set make it pay.
LINKS_PER_WORD: Final = 1


def pays(n_agents: int, n_links: float) -> bool:
    """Whether sets of bits are quicker than lists, for a network with this many directed links.

    Examples
    --------
    >>> pays(100, 100), pays(100, 300)
    (False, True)
    """
    return fit(n_agents) and n_links >= LINKS_PER_WORD * n_agents * n_words(n_agents)


def fit(n_agents: int) -> bool:
    """Whether sets of this many agents may be used at all."""
    return n_agents <= MAX_AGENTS


def n_words(n_agents: int) -> int:
    """How many words a set of agents takes: an even number, since kernels take two at a time."""
    return 2 * -(-n_agents // (2 * WORD))


def as_bits(starts: NDArray[np.int64], indices: NDArray[np.int32]) -> NDArray[np.uint64]:
    """Each agent's neighbours as a set: a row of words, agent v's bit being bit v % 64 of word v // 64.

    Examples
    --------
    >>> as_bits(np.array([0, 1, 3, 4]), np.array([1, 0, 2, 1], dtype=np.int32)).tolist()
    [[2, 0], [5, 0], [2, 0]]
    """
    n_agents = len(starts) - 1
    is_in = np.zeros((n_agents, n_agents), dtype=np.bool_)
    is_in[np.repeat(np.arange(n_agents), np.diff(starts)), indices] = True
    return as_sets(is_in)


def as_sets(is_in: NDArray[np.bool_]) -> NDArray[np.uint64]:
    """Sets of agents, one a row, from a table that says who is in them: (sets, agents).

    Examples
    --------
    >>> as_sets(np.array([[True, False, True]])).tolist()
    [[5, 0]]
    """
    n_sets, n_agents = is_in.shape
    dense = np.zeros((n_sets, WORD * n_words(n_agents)), dtype=np.bool_)
    dense[:, :n_agents] = is_in
    return np.packbits(dense, axis=1, bitorder="little").view("<u8").astype(np.uint64)


def no_bits() -> NDArray[np.uint64]:
    """Where lists are used."""
    return np.zeros((0, 0, 0), dtype=np.uint64)
