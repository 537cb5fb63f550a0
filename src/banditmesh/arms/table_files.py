"""Tables of users' data as rows of cells: CSV, by any usual separator, and Parquet; each perhaps packed by gzip.

The first row is the header, or what a file without one begins with; no other row has more cells. What is wrong is named
by line or, in Parquet and DataFrames, by row, counted from 1.
"""

from __future__ import annotations

import csv
import re
import sys
from collections.abc import Iterator, Sequence
from io import BytesIO, TextIOWrapper
from itertools import chain
from typing import Any, Final

from ..checks import shown
from ..errors import FileError, need
from ..files.contents import STEP, DataFile, ReadingCallback, one_line
from ..files.parquet_sizes import unpacked_bytes

_CONVERT: Final = "read it with pandas, and give the DataFrame or save it as CSV"
#: What a text says that names columns: the columns of all tables of arms, in this order.
_TEXT: Final = ("agent", "arm", "reward", "time")


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
    #: A last column that stands for as many as there are.
    open_column: str | None = None

    @property
    def is_parquet(self) -> bool:
        """Whether the file is one of Parquet, whatever its name."""
        return self.content.startswith(b"PAR1")

    @property
    def has_names(self) -> bool:
        """Whether columns have names for certain: those of Parquet and of a DataFrame."""
        return self.is_parquet or self.frame is not None

    def cells(self, progress: ReadingCallback | None = None) -> Iterator[tuple[int, Sequence[Any]]]:
        """Every row that is not blank, with its line; of Parquet and DataFrames the names of the columns first."""
        if self.frame is not None:
            return chain([(0, list(self.frame_with_index().columns))], self.frame_rows())
        return self._parquet_cells(progress) if self.is_parquet else self._csv_cells(progress)

    def wrong_line(self, number: int, what: str) -> FileError:
        """The error that a line of the file, or a row of Parquet, is wrong."""
        return FileError(f"{self.path}, {'row' if self.has_names else 'line'} {number}: {what}")

    def _csv_cells(self, progress: ReadingCallback | None) -> Iterator[tuple[int, list[str]]]:
        self.text()  # refuses what is no text
        stream = TextIOWrapper(BytesIO(self.content), encoding="utf-8-sig", newline="")
        numbered = enumerate(stream, start=1)
        number, first = next(((k, one) for k, one in numbered if one.strip() and not one.startswith("#")), (0, ""))
        if not number:
            raise self.wrong(f"must describe a {self.kind}, got nothing but comments")
        if re.match(r"\s*(\{\s*\"|\[\s*[\[{\"]|<)", first):
            raise self.wrong_line(number, f"a {self.kind} must be CSV or Parquet, got JSON or XML; {_CONVERT}")
        between = self.separator(number, first) or ","
        stream.seek(0)
        lines = ("\n" if line.startswith("#") else line for line in stream)
        if between == "::":
            lines, between = (line.replace("::", "\t") for line in lines), "\t"
        reader = csv.reader(lines, delimiter=between, skipinitialspace=True, strict=True)
        width = 0
        try:
            for n_rows, row in enumerate(reader):
                if any(row):
                    width = width or self._width(row)
                    if len(row) > width and any(map(str.strip, row[width:])):
                        raise self.wrong_line(
                            reader.line_num,
                            f"a line must have at most {width} cells, got {len(row)}, more than the first one; "
                            f"put cells that hold {between!r} in quotes, and write decimals with a point",
                        )
                    yield reader.line_num, row
                if progress is not None and n_rows % STEP == STEP - 1:
                    progress(stream.buffer.tell(), len(self.content))
        except csv.Error as error:
            raise self.wrong_line(reader.line_num, f"not valid CSV, {one_line(error)}") from None
        if progress is not None:
            progress(len(self.content), len(self.content))

    def _width(self, first: Sequence[str]) -> int:
        """How many cells a row may have."""
        return sys.maxsize if first[-1].strip().lower() == self.open_column else len(first)

    def _parquet_cells(self, progress: ReadingCallback | None) -> Iterator[tuple[int, Sequence[Any]]]:
        need("pyarrow", "tables", "a file of a table")
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


def places_of(
    file: TableFile,
    number: int,
    header: Sequence[Any],
    wanted: Sequence[str],
    names: dict[str, str] | None = None,
    also: str = "",
) -> list[int]:
    """Where the wanted columns stand in a header.

    `names` says what some of them are called in the file; `also` what else the columns may be.
    """
    called = names or {}
    found = [str(name).strip().lower() for name in header]
    places = []
    for one in wanted:
        name = called.get(one, one)
        if found.count(name.strip().lower()) != 1:
            raise file.wrong_line(
                max(number, 1),
                f"the columns must be named {', '.join(called.get(other, other) for other in wanted)}{also}, "
                f"got {shown(list(header))}; name them so, or say in Python what they are called: "
                f"columns={{{one!r}: ...}}, and on the command line: --columns AGENT,ARM,REWARD",
            )
        places.append(found.index(name.strip().lower()))
    if len(set(places)) < len(places):
        raise file.wrong(
            f"must have a column for each of {', '.join(wanted)}, got one for two of them in {shown(called)}"
        )
    return places


def read_columns(columns: object, wanted: Sequence[str]) -> dict[str, str]:
    """What the caller says columns are called, checked.

    Examples
    --------
    >>> read_columns("user, movie, rating", ("agent", "arm"))
    {'agent': 'user', 'arm': 'movie'}
    """
    if columns is None:
        return {}
    if isinstance(columns, str):
        said = [name.strip() for name in columns.split(",")]
        if not 2 <= len(said) <= len(_TEXT) or not all(said):
            raise FileError(
                f"columns must name those of {', '.join(_TEXT)} in this order, as in 'user,movie,rating', "
                f"got {shown(columns)}"
            )
        return {one: name for one, name in zip(_TEXT, said, strict=False) if one in wanted}
    if (
        not isinstance(columns, dict)
        or not set(columns) <= set(wanted)
        or not all(isinstance(name, str) for name in columns.values())
    ):
        raise FileError(
            f"columns must say what {', '.join(wanted)} are called in the file, as in "
            f"{{{wanted[0]!r}: 'user'}} or 'user,movie,rating', got {shown(columns)}"
        )
    return dict(columns)


def typed(file: TableFile, names: Sequence[str]) -> list[Any]:
    """Names as integers if all of them are integers in their usual spelling, and else as text; as in network files."""
    from ..networks.readers.names import naming

    return list(map(naming(names, file), names))
