"""The entries of scipy's sparse matrices, read by numpy alone and checked in full.

scipy's own conversions are native code that trusts a matrix's index arrays: with arrays from a hostile file, or changed
by hand, they read and write memory that is not theirs. So they get nothing of a matrix; the entries returned here are
within it.
"""

from __future__ import annotations

from itertools import chain
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ..errors import NetworkError

Int64s = npt.NDArray[np.int64]

#: The most agents that their numbers can count.
MAX_AGENTS: Final = 2**31 - 1


def entries(matrix: Any) -> tuple[int, Int64s, Int64s, npt.NDArray[Any]]:
    """The size of a square matrix, and the rows, columns and values of what it stores, in any order.

    Parameters
    ----------
    matrix : scipy sparse matrix or array
        Of any format.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> n, rows, columns, values = entries(csr_array([[0, 1], [1, 0]]))
    >>> n, rows.tolist(), columns.tolist(), values.tolist()
    (2, [0, 1], [1, 0], [1.0, 1.0])
    """
    shape = matrix.shape
    if len(shape) != 2 or shape[0] != shape[1]:
        raise NetworkError(f"an adjacency matrix must be square, got shape {shape}")
    n = int(shape[0])
    if n == 0:
        raise NetworkError("must have at least one agent, got an empty matrix", key="network")
    if n > MAX_AGENTS:
        raise NetworkError(f"must have at most {MAX_AGENTS} agents, got {n}", key="network")
    rows, columns, values = _READERS[_format(matrix)](matrix, n)
    data = np.asarray(values)
    if data.ndim != 1 or data.dtype.kind not in "biuf":
        raise NetworkError(f"an adjacency matrix must have entries 0 and 1, got entries of type {data.dtype}")
    if not len(rows) == len(columns) == len(data):
        raise NetworkError(
            "an adjacency matrix must have a row, a column and a value for every entry, "
            f"got {len(rows)}, {len(columns)} and {len(data)}"
        )
    # Booleans are left as they are, because true and true is true.
    return n, rows, columns, data if data.dtype.kind == "b" else data.astype(np.float64)


def _format(matrix: Any) -> str:
    name = getattr(matrix, "format", None)
    if name not in _READERS:
        raise NetworkError(
            f"must be a scipy sparse matrix, got {type(matrix).__name__}; convert it with tocsr()",
            key="network",
        )
    return str(name)


def _coordinate(matrix: Any, n: int) -> tuple[Int64s, Int64s, Any]:
    return _within("row", matrix.row, n), _within("col", matrix.col, n), matrix.data


def _by_rows(matrix: Any, n: int) -> tuple[Int64s, Int64s, Any]:
    lines, places = _compressed(matrix, n)
    return lines, places, np.asarray(matrix.data)[: len(places)]


def _by_columns(matrix: Any, n: int) -> tuple[Int64s, Int64s, Any]:
    lines, places, values = _by_rows(matrix, n)
    return places, lines, values


def _by_blocks(matrix: Any, n: int) -> tuple[Int64s, Int64s, Any]:
    blocks = np.asarray(matrix.data)
    if blocks.ndim != 3 or 0 in blocks.shape[1:] or n % blocks.shape[1] or n % blocks.shape[2]:
        raise NetworkError(f"the blocks of a matrix must divide its {n} rows and columns, got shape {blocks.shape}")
    _, high, wide = blocks.shape
    block_rows, block_columns = _compressed(matrix, n // high, n // wide)
    if len(blocks) < len(block_rows):
        raise NetworkError(f"data of a matrix must hold its {len(block_rows)} blocks, got {len(blocks)}")
    blocks = blocks[: len(block_rows)]
    rows = block_rows[:, None, None] * high + np.arange(high)[:, None]
    columns = block_columns[:, None, None] * wide + np.arange(wide)
    rows, columns = np.broadcast_to(rows, blocks.shape), np.broadcast_to(columns, blocks.shape)
    return rows.reshape(-1), columns.reshape(-1), blocks.reshape(-1)


def _by_diagonals(matrix: Any, n: int) -> tuple[Int64s, Int64s, Any]:
    diagonals = np.asarray(matrix.data)
    offsets = _integers("offsets", matrix.offsets)
    if diagonals.ndim != 2 or len(diagonals) != len(offsets):
        raise NetworkError(f"data of a matrix must hold its {len(offsets)} diagonals, got shape {diagonals.shape}")
    offsets = _bounded("offsets", offsets, -MAX_AGENTS, MAX_AGENTS)
    columns = np.arange(min(diagonals.shape[1], n))
    rows = columns - offsets[:, None]
    # Values of a diagonal beyond the ends of the matrix are not entries of it.
    inside = (rows >= 0) & (rows < n)
    return rows[inside], np.broadcast_to(columns, rows.shape)[inside], diagonals[:, : len(columns)][inside]


def _by_lists(matrix: Any, n: int) -> tuple[Int64s, Int64s, Any]:
    lists = list(matrix.rows)
    if len(lists) != n:
        raise NetworkError(f"a matrix must have a list for each of {n} rows, got {len(lists)}")
    rows = np.repeat(np.arange(n), [len(columns) for columns in lists])
    columns = _within("rows", np.array(list(chain.from_iterable(lists)) or np.empty(0, np.int64)), n)
    return rows, columns, np.array(list(chain.from_iterable(matrix.data)), dtype=matrix.dtype)


def _by_keys(matrix: Any, n: int) -> tuple[Int64s, Int64s, Any]:
    places = np.array(list(matrix.keys()) or np.empty((0, 2), np.int64))
    if places.ndim != 2 or places.shape[1] != 2:
        raise NetworkError(f"the keys of a matrix must be pairs, got shape {places.shape}")
    values = np.array(list(matrix.values()), dtype=matrix.dtype)
    return _within("keys", places[:, 0], n), _within("keys", places[:, 1], n), values


_READERS: Final = {
    "bsr": _by_blocks,
    "coo": _coordinate,
    "csc": _by_columns,
    "csr": _by_rows,
    "dia": _by_diagonals,
    "dok": _by_keys,
    "lil": _by_lists,
}


def _compressed(matrix: Any, n_lines: int, n_places: int | None = None) -> tuple[Int64s, Int64s]:
    """For every entry of a compressed matrix its line, from `indptr`, and its place in it."""
    places = _within("indices", matrix.indices, n_lines if n_places is None else n_places)
    starts = _within("indptr", matrix.indptr, len(places) + 1)
    if len(starts) != n_lines + 1 or starts[0] != 0:
        raise NetworkError(
            f"indptr of a matrix must have {n_lines + 1} entries and begin at 0, got {len(starts)} "
            f"that begin at {starts[0] if len(starts) else 'nothing'}"
        )
    lengths = np.diff(starts)
    falls = np.flatnonzero(lengths < 0)
    if len(falls):
        raise NetworkError(f"indptr of a matrix must not fall, got a fall after entry {falls[0]}")
    return np.repeat(np.arange(n_lines), lengths), places[: starts[-1]]


def _within(name: str, values: Any, beyond: int) -> Int64s:
    """An index array whose entries are at least 0 and below `beyond`."""
    return _bounded(name, _integers(name, values), 0, beyond - 1)


def _bounded(name: str, array: npt.NDArray[Any], low: int, high: int) -> Int64s:
    # Compared as Python integers, in which nothing wraps around.
    if array.size and not low <= int(array.min()) <= int(array.max()) <= high:
        worst = int(array.min()) if int(array.min()) < low else int(array.max())
        raise NetworkError(f"{name} of a matrix must lie between {low} and {high}, got {worst}")
    return array.astype(np.int64)


def _integers(name: str, values: Any) -> npt.NDArray[Any]:
    array = np.asarray(values)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise NetworkError(f"{name} of a matrix must be a list of integers, got {array.dtype} of shape {array.shape}")
    return array
