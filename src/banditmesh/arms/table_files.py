"""Tables of users' data as rows of cells: CSV, by any usual separator, and Parquet; each perhaps packed by gzip.

The first row is the header, or what a file without one begins with. What is wrong is named by line or, in Parquet, by
row, counted from 1.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from io import BytesIO, TextIOWrapper
from typing import Any

from ..checks import shown
from ..data_files import STEP, DataFile, ReadingCallback, one_line
from ..errors import FileError
from ..parquet_sizes import unpacked_bytes


class TableFile(DataFile):
    r"""A file that holds a table.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "clicks.csv")
    ...     _ = path.write_text("agent,arm\n# two rows\nann,red\nbob,blue\n")
    ...     list(TableFile(path).cells())
    [(1, ['agent', 'arm']), (3, ['ann', 'red']), (4, ['bob', 'blue'])]
    """

    kind = "table"
    max_text = 2**28

    @property
    def is_parquet(self) -> bool:
        """Whether the file is one of Parquet, whatever its name."""
        return self.content.startswith(b"PAR1")

    def cells(self, progress: ReadingCallback | None = None) -> Iterator[tuple[int, Sequence[Any]]]:
        """Every row that is not blank, with its line; of Parquet the names of the columns first."""
        return self._parquet_cells(progress) if self.is_parquet else self._csv_cells(progress)

    def wrong_line(self, number: int, what: str) -> FileError:
        """The error that a line of the file, or a row of Parquet, is wrong."""
        return FileError(f"{self.path}, {'row' if self.is_parquet else 'line'} {number}: {what}")

    def _csv_cells(self, progress: ReadingCallback | None) -> Iterator[tuple[int, list[str]]]:
        self.text()  # refuses what is no text
        stream = TextIOWrapper(BytesIO(self.content), encoding="utf-8-sig", newline="")
        first = next((line for line in stream if line.strip() and not line.startswith("#")), None)
        if first is None:
            raise self.wrong(f"must describe a {self.kind}, got nothing but comments")
        stream.seek(0)
        lines = ("\n" if line.startswith("#") else line for line in stream)
        reader = csv.reader(lines, delimiter=_delimiter(first), skipinitialspace=True, strict=True)
        try:
            for n_rows, row in enumerate(reader):
                if any(row):
                    yield reader.line_num, row
                if progress is not None and n_rows % STEP == STEP - 1:
                    progress(stream.buffer.tell(), len(self.content))
        except csv.Error as error:
            raise self.wrong_line(reader.line_num, f"not valid CSV, {one_line(error)}") from None
        if progress is not None:
            progress(len(self.content), len(self.content))

    def _parquet_cells(self, progress: ReadingCallback | None) -> Iterator[tuple[int, Sequence[Any]]]:
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            schema = pq.read_schema(BytesIO(self.content))
            # As dictionaries, so that a long text that is repeated is held once.
            texts = [one.name for one in schema if pa.types.is_string(one.type) or pa.types.is_large_string(one.type)]
            table = pq.ParquetFile(BytesIO(self.content), read_dictionary=texts)
            n_rows = table.metadata.num_rows
            n_bytes = unpacked_bytes(self.content, table.metadata)
        except Exception as error:
            # pyarrow promises no types of exception: whatever it raises means a malformed file.
            raise self.wrong(f"must be a Parquet file, got: {one_line(error)}") from None
        if n_bytes > self.max_bytes:
            raise self.too_large(self.max_bytes)
        yield 0, schema.names
        number = 0
        batches = table.iter_batches(batch_size=STEP)
        while True:
            try:
                batch = next(batches, None)
                columns = [] if batch is None else [_values(column) for column in batch.columns]
            except Exception as error:
                raise self.wrong(f"must be a Parquet file, got: {one_line(error)}") from None
            if batch is None:
                return
            for row in zip(*columns, strict=True):
                number += 1
                yield number, row
            if progress is not None:
                progress(number, n_rows)


def _values(column: Any) -> list[Any]:
    """The values of a column, texts held once."""
    if not hasattr(column, "dictionary"):
        return list(column.to_pylist())
    words = column.dictionary.to_pylist()
    return [None if place is None else words[place] for place in column.indices.to_pylist()]


def _delimiter(line: str) -> str:
    if "\t" in line:
        return "\t"
    return ";" if ";" in line and "," not in line else ","


def places_of(
    file: TableFile,
    number: int,
    header: Sequence[Any],
    wanted: Sequence[str],
    names: dict[str, str] | None = None,
    also: str = "",
) -> list[int]:
    """Where the wanted columns stand in a header.

    `names` says what some of them are called in the file, None that a caller cannot say it; `also` what else the
    columns may be.
    """
    called = names or {}
    remedy = "" if names is None else ", or say in Python what they are called: columns={%r: ...}"
    found = [str(name).strip().lower() for name in header]
    places = []
    for one in wanted:
        name = called.get(one, one)
        if found.count(name.strip().lower()) != 1:
            raise file.wrong_line(
                max(number, 1),
                f"the columns must be named {', '.join(called.get(other, other) for other in wanted)}{also}, "
                f"got {shown(list(header))}; name them so{remedy % one if remedy else ''}",
            )
        places.append(found.index(name.strip().lower()))
    return places


def read_columns(columns: object, wanted: Sequence[str]) -> dict[str, str]:
    """What the caller says columns are called, checked."""
    if columns is None:
        return {}
    if (
        not isinstance(columns, dict)
        or not set(columns) <= set(wanted)
        or not all(isinstance(name, str) for name in columns.values())
    ):
        raise FileError(
            f"columns must say what {', '.join(wanted)} are called in the file, as in "
            f"{{{wanted[0]!r}: 'user'}}, got {shown(columns)}"
        )
    return dict(columns)


def name_cell(file: TableFile, number: int, what: str, cell: Any) -> str:
    """The name that a cell holds."""
    if isinstance(cell, str):
        name = cell.strip()
    elif isinstance(cell, int) and not isinstance(cell, bool):
        name = str(cell)
    else:
        raise file.wrong_line(number, f"{what} must be named by a text or an integer, got {shown(cell)}")
    if not name:
        raise file.wrong_line(number, f"{what} must have a name, got an empty cell")
    return name


def typed(names: Sequence[str]) -> list[Any]:
    """Names as integers if all of them are integers in their usual spelling, and else as text; as in network files."""
    from ..networks.readers.names import naming

    return list(map(naming(names), names))
