"""Adjacency matrices as text: as many lines as entries on each of them, at least three, and each entry 0 or 1.

Two lines of two entries are read as links: as a matrix, they would be the same network.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import FileError
from .files import NetworkFile

_ENTRIES = frozenset({"0", "1", "0.0", "1.0"})


def is_matrix(file: NetworkFile) -> bool:
    """Whether a file holds such a matrix; one that holds something else is found out on its first lines."""
    progress, file.progress = file.progress, None
    size = n_rows = 0
    try:
        for _, row in file.rows():
            size = size or len(row)
            n_rows += 1
            if size < 3 or len(row) != size or n_rows > size or not _ENTRIES.issuperset(row):
                return False
    except FileError:
        return False  # to be refused by whatever reads it
    finally:
        file.progress = progress
    return n_rows == size


def parse(file: NetworkFile) -> Any:
    """The matrix that a file holds."""
    from scipy.sparse import csr_array

    places = [np.flatnonzero([entry[0] == "1" for entry in row]) for _, row in file.rows()]
    starts = np.cumsum([0, *map(len, places)])
    ones = np.ones(starts[-1], dtype=np.int8)
    return file.checked(csr_array((ones, np.concatenate(places), starts), shape=(len(places), len(places))))
