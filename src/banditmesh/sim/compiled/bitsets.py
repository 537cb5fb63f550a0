"""Sets of agents, arms or messages as bits: 64 of them are dealt with at a time."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

WORD: Final = 64
#: How many messages under way may be sets, and of how many agents: more take too much memory.
MAX_MESSAGES: Final = 2**14
MAX_AGENTS: Final = 1024


def shift_of(reach: int) -> int:
    """By how many bits an agent's number is shifted to make room for `reach` rounds.

    Examples
    --------
    >>> shift_of(1), shift_of(4), shift_of(5)
    (0, 2, 3)
    """
    return max(reach - 1, 0).bit_length()


def fit(n_agents: int, reach: int) -> bool:
    """Whether sets can hold the messages of `n_agents` agents, each of which travels for `reach` rounds."""
    return n_agents <= MAX_AGENTS and n_agents << shift_of(reach) <= MAX_MESSAGES


def n_words(n_bits: int) -> int:
    """How many words a set takes: an even number, since kernels take two at a time."""
    return 2 * -(-n_bits // (2 * WORD))


def as_sets(is_in: NDArray[np.bool_]) -> NDArray[np.uint64]:
    """Sets, one a row, from a table that says what is in them: (sets, things).

    Examples
    --------
    >>> as_sets(np.array([[True, False, True]])).tolist()
    [[5, 0]]
    """
    n_sets, n_bits = is_in.shape
    dense = np.zeros((n_sets, WORD * n_words(n_bits)), dtype=np.bool_)
    dense[:, :n_bits] = is_in
    return np.packbits(dense, axis=1, bitorder="little").view("<u8").astype(np.uint64)
