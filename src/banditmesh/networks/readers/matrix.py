"""Sparse adjacency matrices as scipy saves them, `.npz`."""

from __future__ import annotations

from io import BytesIO
from typing import Any

from .files import NetworkFile, one_line


def parse(file: NetworkFile) -> Any:
    """The matrix that a file holds."""
    from scipy.sparse import load_npz

    try:
        matrix = load_npz(BytesIO(file.content))
    except Exception as error:
        # scipy and numpy promise no types of exception: whatever they raise means a malformed file.
        raise file.wrong(f"must be a sparse matrix saved by scipy, got: {one_line(error)}") from None
    return file.checked(matrix)
