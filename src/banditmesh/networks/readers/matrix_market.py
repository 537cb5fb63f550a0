"""Matrix Market: an adjacency matrix as text, `.mtx`. Agents are named 0 .. n - 1, as those of every matrix.

The size that the file declares is checked against its bytes before memory is allocated for it.
"""

from __future__ import annotations

from io import BytesIO
from typing import Any

from ...files.contents import one_line
from .files import NetworkFile


def parse(file: NetworkFile) -> Any:
    """The matrix in a file."""
    from scipy.io import mminfo, mmread
    from scipy.sparse import coo_array

    file.text()  # refuses anything but text
    try:
        n_rows, n_columns, n_entries, *_ = mminfo(BytesIO(file.content))
        # An entry takes at least two bytes, and an agent eight in the network, though perhaps none in the file.
        fits = 2 * n_entries <= len(file.content) and 8 * max(n_rows, n_columns) <= file.max_bytes
        matrix = coo_array(mmread(BytesIO(file.content))) if fits else None
    except Exception as error:
        # scipy promises no types of exception: whatever it raises means a malformed file.
        raise file.wrong(f"must be a Matrix Market file, got: {one_line(error)}") from None
    if matrix is None:
        raise file.wrong(
            f"must hold what its size line says, got {n_rows:,} rows, {n_columns:,} columns and {n_entries:,} entries "
            f"in {len(file.content):,} bytes; correct that line, or raise max_bytes (--max-bytes on the command line)"
        )
    return file.checked(matrix)
