"""How much memory a Parquet file takes when it is read, found before any of it is unpacked.

A small file can describe a lot: values that repeat are stored once, and pages are compressed. What a file says about
itself need not be true, so this uses the numbers that pyarrow uses: the declared numbers of values and rows, for which
it allocates, and the headers of the pages, which say how large they become.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import pyarrow.parquet as pq

#: Bytes for a number, and for the slot of a text; for lists and texts, at least.
_VALUE: Final = 8
#: Texts stored as the part that differs from the one before.
_DELTA_BYTE_ARRAY: Final = 7
#: No header of a page is nested deeper.
_DEEPEST: Final = 8


def unpacked_bytes(content: bytes, metadata: pq.FileMetaData, without: Collection[str] = ()) -> int:
    """How many bytes the columns of a file take, each text counted once; `ValueError` if its pages are damaged.

    Parameters
    ----------
    content : bytes
        The file.
    metadata : FileMetaData
        What pyarrow read of it.
    without : collection of str
        Columns of lists that are not read.
    """
    n_bytes = 0
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        for place in range(group.num_columns):
            column = group.column(place)
            if column.path_in_schema.partition(".")[0] not in without:
                n_values = max(column.num_values, group.num_rows)
                n_bytes += max(_VALUE * n_values, sum(_page_bytes(content, column)))
    return n_bytes


def _page_bytes(content: bytes, column: Any) -> Iterator[int]:
    """The unpacked size of each page of a column, in the order in which pyarrow reads them."""
    place = column.data_page_offset
    if column.has_dictionary_page and 0 < (column.dictionary_page_offset or 0) < place:
        place = column.dictionary_page_offset
    n_values = 0
    while n_values < column.num_values:
        try:
            header, place = _read_struct(content, place, 0)
            size, stored = header[2], header[3]
            # A data page of the first or second kind; a dictionary has neither.
            data = header.get(5) or header.get(8) or {}
            n_here, encoding = (data[1], data[2 if 5 in header else 4]) if data else (0, 0)
        except (IndexError, KeyError, TypeError):
            raise ValueError("damaged pages") from None
        if min(size, stored, n_here) < 0 or place < 0:
            raise ValueError("damaged pages")
        place += stored
        n_values += n_here
        yield size * max(n_here, 1) if encoding == _DELTA_BYTE_ARRAY else size


def _read_struct(content: bytes, place: int, depth: int) -> tuple[dict[int, Any], int]:
    """The numbers and tables in a table of Thrift's compact protocol, by field, and where it ends."""
    if depth > _DEEPEST or place < 0:
        raise ValueError("damaged pages")
    found: dict[int, Any] = {}
    field = 0
    while (head := content[place]) != 0:
        place += 1
        if head >> 4:
            field += head >> 4
        else:
            field, place = _read_number(content, place)
        found[field], place = _read_value(content, place, head & 15, depth)
    return found, place + 1


def _read_value(content: bytes, place: int, kind: int, depth: int) -> tuple[Any, int]:
    if kind in (1, 2):  # true and false
        return None, place
    if kind == 3:  # a byte
        return content[place], place + 1
    if kind in (4, 5, 6):  # integers
        return _read_number(content, place)
    if kind == 8:  # a text
        length, place = _read_varint(content, place)
        return None, place + length
    if kind == 12:
        return _read_struct(content, place, depth + 1)
    raise ValueError("damaged pages")  # no header has anything else


def _read_varint(content: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while shift < 70:
        byte = content[place]
        place += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, place
        shift += 7
    raise ValueError("damaged pages")


def _read_number(content: bytes, place: int) -> tuple[int, int]:
    value, place = _read_varint(content, place)
    return value >> 1 ^ -(value & 1), place
