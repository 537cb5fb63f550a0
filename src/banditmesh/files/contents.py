"""What all readers of data files share: a file's content, unpacked within a limit, and how it is refused.

Whatever a file holds, the result is what it describes or a one-line `FileError`, with the path and, in text formats,
the line number, counted from 1. A file that is not UTF-8 text is refused with the name of what it seems to be. Wherever
a file may hold a table, a pandas DataFrame is accepted too: it is read by rows, and has no bytes to limit.
"""

from __future__ import annotations

import gzip
import re
import sys
import zlib
from collections.abc import Callable, Iterator
from io import BytesIO
from os import PathLike
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, TypeAlias

from ..checks import integer, shown
from ..errors import FileError
from .regular import open_regular

if TYPE_CHECKING:
    import pandas as pd

AnyPath = str | PathLike[str]
AnyTable: TypeAlias = "AnyPath | pd.DataFrame"
#: Called with the number of bytes (for Parquet, rows) done, and the total.
ReadingCallback: TypeAlias = Callable[[int, int], object]
#: How many lines pass between two calls.
STEP: Final = 2**15

#: How many bytes a file may hold, unpacked, unless the caller allows more or less.
MAX_BYTES: Final = 2**27
#: The same for text, of which the result takes up to a hundred times as much memory.
MAX_TEXT: Final = 2**25
#: What to do about a file that holds more than was allowed.
RAISE_LIMIT: Final = "if that is what you expect, raise max_bytes (--max-bytes on the command line)"
_GZIP: Final = b"\x1f\x8b"
_LONGEST: Final = 200
#: How files that are not text begin, with what they are and what to do.
_FOREIGN: Final = (
    (rb"PK\x03\x04.*(\[Content_Types\]\.xml|xl/|mimetype)", "a spreadsheet or document", "save its table as CSV"),
    (rb"PK\x03\x04", "a zip archive", "unpack it, and name the file that you need"),
    (rb".{257}ustar", "a tar archive", "unpack it, and name the file that you need"),
    (rb"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an old Office document", "save its table as CSV"),
    (rb"BZh[1-9]1AY&SY", "a bzip2 file", "unpack it, or pack it by gzip"),
    (rb"\xfd7zXZ\x00", "an xz file", "unpack it, or pack it by gzip"),
    (rb"\x28\xb5\x2f\xfd", "a zstd file", "unpack it, or pack it by gzip"),
    (rb"7z\xbc\xaf\x27\x1c|Rar!", "an archive", "unpack it, and name the file that you need"),
    (rb"PAR1", "a Parquet file", "read it with pandas.read_parquet, and give the DataFrame"),
    (rb"ARROW1|\x89HDF|SQLite format 3", "a file of another kind", "read it with pandas, and give the DataFrame"),
    (rb"\x93NUMPY", "a numpy array", "save it as text"),
)


class DataFile:
    """The content of a file, which is not empty.

    Parameters
    ----------
    path : str, path or DataFrame
        The file; a gzip file is unpacked, whatever its name.
    max_bytes : int, optional
        How many bytes it may hold, unpacked; `MAX_BYTES`, and `MAX_TEXT` as text, if not given.

    Attributes
    ----------
    kind : str
        What the file should describe.
    suffix : str
        The end of its name, in lower case, without `.gz`.
    content : bytes
    frame : pandas.DataFrame or None
        What was given instead of a path.
    progress : callable or None
        Called while lines are read.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "links.edgelist.gz")
    ...     _ = path.write_bytes(gzip.compress(b"0 1 # a link"))
    ...     file = DataFile(path, max_bytes=100)
    >>> file.suffix, file.content
    ('.edgelist', b'0 1 # a link')
    """

    kind = "data"
    #: How many bytes of text the file may hold unless the caller says otherwise.
    max_text = MAX_TEXT

    def __init__(self, path: AnyTable, max_bytes: int | None = None) -> None:
        self.progress: ReadingCallback | None = None
        self.frame = as_frame(path)
        if self.frame is not None:
            self.path: Any = "the DataFrame"
            self.suffix, self.content, self.max_bytes = "", b"", 0
            if not len(self.frame):
                raise self.wrong(f"must describe a {self.kind}, got no rows")
            return
        if not isinstance(path, str | PathLike) or not str(path).strip():
            raise FileError(f"path must name a {self.kind} file, got {shown(path)}")
        self.path = path
        limit = None if max_bytes is None else integer("max_bytes", max_bytes, at_least=1)
        self.max_bytes, self._max_text = limit or max(MAX_BYTES, self.max_text), limit or self.max_text
        suffixes = [suffix.lower() for suffix in Path(path).suffixes]
        self.suffix = next((suffix for suffix in reversed(suffixes) if suffix != ".gz"), "")
        self.content = self._unpacked(self._stored())
        if not self.content.strip():
            raise self.wrong(f"must describe a {self.kind}, got an empty file")

    def text(self) -> str:
        """The content as text."""
        if self.frame is not None:
            raise FileError(f"path must name a {self.kind} file, got a DataFrame; save it, or give it as links")
        if len(self.content) > self._max_text:
            raise self.too_large(self._max_text)
        try:
            text = self.content.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise self.wrong(f"must be a text file in UTF-8, got {_kind_of(self.content, error.start)}") from None
        if "\0" in text:
            raise self.wrong(f"must be a text file in UTF-8, got {_kind_of(self.content)}")
        if re.match(r"\s*<(!doctype )?html", text, re.IGNORECASE):
            raise self.wrong(f"must be a {self.kind} file, got an HTML page; download the file that it is about")
        return text

    def separator(self, number: int, line: str) -> str | None:
        """What separates the entries of a file by its first line: a tab, `;`, `,`, `|`, `::`, or None for blanks."""
        plain = re.sub('"[^"]*"', "", line).strip()
        if "\t" in plain:
            return "\t"
        found = [one for one in (";", ",", "|") if one in plain]
        if found == [";", ","] and not re.search(r"(?<!\d),|,(?!\d)", plain):
            found = [";"]  # commas within numbers
        if len(found) > 1:
            raise self.wrong_line(
                number,
                f"entries must be separated in one way, got {' and '.join(map(repr, found))}; "
                'put entries that hold one of them in quotes, as in "Lee, Ann"',
            )
        if found:
            return found[0]
        return "::" if "::" in plain and not re.search(r"\s", plain) else None

    def frame_rows(self) -> Iterator[tuple[int, list[Any]]]:
        """The rows of a DataFrame, counted from 1; an index that has a name is a column."""
        frame = self.frame_with_index()
        columns = [frame.iloc[:, k].tolist() for k in range(frame.shape[1])]
        for number, row in enumerate(zip(*columns, strict=True), start=1):
            yield number, list(row)

    def frame_with_index(self) -> pd.DataFrame:
        """The DataFrame, its index as columns if that has a name."""
        assert self.frame is not None
        return self.frame.reset_index() if any(name is not None for name in self.frame.index.names) else self.frame

    def wrong(self, what: str, remedy: str = "") -> FileError:
        """An error about the file as a whole."""
        return FileError(f"{self.path} {what}", remedy=remedy)

    def wrong_line(self, number: int, what: str) -> FileError:
        """An error about a line of the file."""
        return FileError(f"{self.path}, {'line' if self.frame is None else 'row'} {number}: {what}")

    def too_large(self, limit: int) -> FileError:
        """The error for a file that holds more than allowed."""
        return self.wrong(f"must hold at most {limit:,} bytes when unpacked, got more", remedy=RAISE_LIMIT)

    def _stored(self) -> bytes:
        """The bytes of the file, at most one more than allowed."""
        try:
            with open_regular(self.path) as stream:
                stored = _read(stream, self.max_bytes + 1)
        except FileNotFoundError:
            raise self.wrong(f"must be a {self.kind} file, got no such file") from None
        except IsADirectoryError:
            raise self.wrong(f"must be a {self.kind} file, got a folder") from None
        except OSError as error:
            raise self.wrong(f"must be readable, got: {error.strerror or error}") from None
        except ValueError as error:  # a null character in the path
            raise FileError(f"{self.path!r} must be a path, got: {error}") from None
        if len(stored) > self.max_bytes:
            raise self.too_large(self.max_bytes)
        return stored

    def _unpacked(self, stored: bytes) -> bytes:
        if not stored.startswith(_GZIP):
            return stored
        try:
            content = _read(gzip.GzipFile(fileobj=BytesIO(stored)), self.max_bytes + 1)
        except (EOFError, OSError, zlib.error) as error:
            raise self.wrong(f"must be a whole gzip file, got: {one_line(error)}") from None
        if len(content) > self.max_bytes:
            raise self.too_large(self.max_bytes)
        return content


def name_cell(file: DataFile, number: int, what: str, cell: Any) -> str:
    """The name in a cell of a table."""
    if isinstance(cell, str):
        name = cell.strip()
    elif isinstance(cell, int) and not isinstance(cell, bool):
        name = str(cell)
    else:
        whole = isinstance(cell, float) and cell.is_integer()
        remedy = "; make the column one of integers, as with .astype('Int64') in pandas" if whole else ""
        raise file.wrong_line(number, f"{what} must be named by a text or an integer, got {shown(cell)}{remedy}")
    if not name:
        raise file.wrong_line(number, f"{what} must have a name, got an empty cell")
    return name


def _read(stream: IO[bytes] | gzip.GzipFile, most: int) -> bytes:
    """Read a stream up to that many bytes, in parts: one large read would allocate them all, however short it is."""
    parts = []
    while most > 0 and (part := stream.read(min(most, 2**20))):
        parts.append(part)
        most -= len(part)
    return b"".join(parts)


def as_frame(source: object) -> pd.DataFrame | None:
    """The DataFrame, if one was given; only then has pandas been imported."""
    pandas = sys.modules.get("pandas")
    return source if pandas is not None and isinstance(source, pandas.DataFrame) else None


def _kind_of(content: bytes, place: int | None = None) -> str:
    """What a content that is not UTF-8 text seems to be, and what to do; `place` is where decoding failed."""
    for pattern, what, remedy in _FOREIGN:
        if re.match(pattern, content[:4096], re.DOTALL):
            return f"{what}; {remedy}"
    if content.startswith((b"\xff\xfe", b"\xfe\xff")) or 0.4 <= content[:400].count(0) / len(content[:400]) <= 0.6:
        return "UTF-16; save it as UTF-8, as with iconv -f utf-16 -t utf-8"
    if place is None or re.search(rb"[\x00-\x08\x0e-\x1f]", content):
        return "binary data"
    number = content.count(b"\n", 0, place) + 1
    return f"another encoding on line {number}; if it is Latin-1, convert it with iconv -f latin1 -t utf-8"


def one_line(error: Exception) -> str:
    """A parser's error on one short line."""
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 4]} ..."
