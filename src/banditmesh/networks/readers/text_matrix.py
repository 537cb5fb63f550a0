"""Adjacency matrices as text: as many lines as entries on each of them, at least three, and each entry 0 or 1.

A symmetric square of other numbers, with the same all along its diagonal, is a matrix with weights. Two lines of two
entries are read as links: as a matrix, they would be the same network.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import FileError
from .files import NetworkFile

_ENTRIES = frozenset({"0", "1", "0.0", "1.0"})


def is_matrix(file: NetworkFile) -> bool:
    """Whether a file holds such a matrix; anything else is recognised on its first lines."""
    progress, file.progress = file.progress, None
    size = n_rows = 0
    has_weights = False
    try:
        for _, row in file.rows():
            size = size or len(row)
            n_rows += 1
            if size < 3 or len(row) != size or n_rows > size:
                return False
            if not _ENTRIES.issuperset(row):
                _numbers(row)
                has_weights = True
        if n_rows < size or not has_weights:
            return n_rows == size
        square = np.array([_numbers(row) for _, row in file.rows()])
        return bool(np.all(square.diagonal() == square[0, 0]) and np.array_equal(square, square.T))
    except (FileError, ValueError):
        return False  # to be refused, or read, by whatever reads other files
    finally:
        file.progress = progress


def parse(file: NetworkFile) -> Any:
    """The matrix in a file."""
    from scipy.sparse import csr_array

    places, values = [], []
    for _, row in file.rows():
        numbers = _numbers(row)
        places.append(np.flatnonzero(numbers))
        values.append(numbers[places[-1]])
    starts, n = np.cumsum([0, *map(len, places)]), len(places)
    return file.checked(csr_array((np.concatenate(values), np.concatenate(places), starts), shape=(n, n)))


def _numbers(row: list[str]) -> npt.NDArray[np.float64]:
    return np.array([*map(float, row)])
