"""Sparse adjacency matrices as scipy saves them, `.npz`: a zip archive of numpy arrays.

What the archive says about itself is checked before anything is unpacked; the arrays are checked in `matrices`.
"""

from __future__ import annotations

import math
from io import BytesIO
from typing import Any, Final
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile, ZipInfo

from ...files.contents import one_line
from .files import NetworkFile

#: What the arrays may hold, by numpy's letters; all others are places in the matrix.
_KINDS: Final = {
    "format.npy": ("SU", "text"),
    "_is_array.npy": ("b", "a truth value"),
    "data.npy": ("biuf", "numbers"),
}


def parse(file: NetworkFile) -> Any:
    """The matrix in a file."""
    from scipy.sparse import load_npz

    try:
        n_bytes = _unpacked_size(file.content)
        matrix = load_npz(BytesIO(file.content)) if n_bytes <= file.max_bytes else None
    except Exception as error:
        # scipy, numpy and zipfile promise no types of exception: whatever they raise means a malformed file.
        raise file.wrong(f"must be a sparse matrix saved by scipy, got: {one_line(error)}") from None
    # Some formats need no space for an agent in the file, but the network will.
    if matrix is None or 8 * max(matrix.shape) > file.max_bytes:
        raise file.too_large(file.max_bytes)
    return file.checked(matrix)


def _unpacked_size(content: bytes) -> int:
    """How many bytes the arrays of an archive take; a ValueError if they are not what a sparse matrix is made of."""
    with ZipFile(BytesIO(content)) as archive:
        members = archive.infolist()
        for member in members:
            _check_member(archive, member)
        # A member never unpacks to more than its size says: zipfile stops reading there.
        return sum(member.file_size for member in members)


def _check_member(archive: ZipFile, member: ZipInfo) -> None:
    """Refuse an array that scipy would convert, unpickle or allocate memory for before it finds it is short."""
    from numpy.lib import format as npy

    name = member.filename
    if member.compress_type not in (ZIP_STORED, ZIP_DEFLATED):
        raise ValueError(f"{name} must be stored or deflated")
    with archive.open(member) as stream:
        read_header = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
        shape, _, dtype = read_header[npy.read_magic(stream)](stream)
    kinds, wanted = _KINDS.get(name, ("iu", "whole numbers"))
    if dtype.kind not in kinds:
        raise ValueError(f"{name} must hold {wanted}, got {dtype}")
    if math.prod(shape) * dtype.itemsize > member.file_size:
        raise ValueError(f"{name} is cut short")
