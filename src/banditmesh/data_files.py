"""What all readers of data files share: a file's content, unpacked and never beyond a limit, and how it is refused.

Whatever a file holds, the answer is what it describes or a `FileError` of one line, with the path and, in text formats,
the line of the file, counted from 1.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Iterator
from io import BytesIO, TextIOWrapper
from os import PathLike
from pathlib import Path
from typing import Final, TypeAlias

from .checks import integer, shown
from .errors import FileError
from .regular_files import open_regular

AnyPath = str | PathLike[str]
#: Called with the number of bytes (of Parquet, rows) that are done, and the number in all.
ReadingCallback: TypeAlias = Callable[[int, int], object]
#: After how many lines it is called again.
STEP: Final = 2**15

#: How many bytes a file may hold, unpacked, unless the caller allows more or less.
MAX_BYTES: Final = 2**27
#: The same for text, of which the result takes up to eighty times as much memory.
MAX_TEXT: Final = 2**25
_GZIP: Final = b"\x1f\x8b"
_LONGEST: Final = 200


class DataFile:
    """The content of a file, which is not empty.

    Parameters
    ----------
    path : str or path
        The file; one packed by gzip is unpacked, whatever its name.
    max_bytes : int, optional
        How many bytes it may hold, unpacked; `MAX_BYTES`, and `MAX_TEXT` as text, if not given.

    Attributes
    ----------
    kind : str
        What the file should describe.
    suffix : str
        The end of its name, in lower case, without `.gz`.
    content : bytes
    progress : callable or None
        Called while `rows` are read.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "links.edgelist.gz")
    ...     _ = path.write_bytes(gzip.compress(b"0 1 # a link"))
    ...     file = DataFile(path, max_bytes=100)
    >>> file.suffix, file.content, list(file.rows())
    ('.edgelist', b'0 1 # a link', [(1, ['0', '1'])])
    """

    kind = "data"
    #: How many bytes of text the file may hold unless the caller says otherwise.
    max_text = MAX_TEXT

    def __init__(self, path: AnyPath, max_bytes: int | None = None) -> None:
        if not isinstance(path, str | PathLike) or not str(path).strip():
            raise FileError(f"path must name a {self.kind} file, got {shown(path)}")
        self.path = path
        self.progress: ReadingCallback | None = None
        limit = None if max_bytes is None else integer("max_bytes", max_bytes, at_least=1)
        self.max_bytes, self._max_text = limit or max(MAX_BYTES, self.max_text), limit or self.max_text
        suffixes = [suffix.lower() for suffix in Path(path).suffixes]
        self.suffix = next((suffix for suffix in reversed(suffixes) if suffix != ".gz"), "")
        self.content = self._unpacked(self._stored())
        if not self.content.strip():
            raise self.wrong(f"must describe a {self.kind}, got an empty file")

    def text(self) -> str:
        """The content as text."""
        if len(self.content) > self._max_text:
            raise self.too_large(self._max_text)
        try:
            text = self.content.decode("utf-8-sig")
        except UnicodeDecodeError:
            text = "\0"
        if "\0" in text:
            raise self.wrong("must be a text file in UTF-8, got binary data")
        return text

    def rows(self) -> Iterator[tuple[int, list[str]]]:
        """The entries of every line that has any, with its number; there is at least one such line.

        Entries are separated by blanks or a comma, `#` starts a comment, and `%`, alone or twice, one at the start of
        a line.
        """
        self.text()  # refuses what is no text
        nothing = True
        stream = TextIOWrapper(BytesIO(self.content), encoding="utf-8-sig")
        for number, line in enumerate(stream, start=1):
            if self.progress is not None and number % STEP == 0:
                self.progress(stream.buffer.tell(), len(self.content))
            entries = (line.partition("#")[0] if "#" in line else line).replace(",", " ").split()
            if entries and not (line[0] == "%" and (entries[0] == "%" or entries[0].startswith("%%"))):
                nothing = False
                yield number, entries
        if nothing:
            raise self.wrong(f"must describe a {self.kind}, got nothing but comments")
        if self.progress is not None:
            self.progress(len(self.content), len(self.content))

    def wrong(self, what: str) -> FileError:
        """The error that the file as a whole is wrong."""
        return FileError(f"{self.path} {what}")

    def wrong_line(self, number: int, what: str) -> FileError:
        """The error that a line of the file is wrong."""
        return FileError(f"{self.path}, line {number}: {what}")

    def too_large(self, limit: int) -> FileError:
        """The error that there is more in the file than was allowed."""
        return self.wrong(
            f"must hold at most {limit:,} bytes when unpacked, got more; "
            "if that is what you expect, raise max_bytes (--max-bytes on the command line)"
        )

    def _stored(self) -> bytes:
        """The bytes of the file, at most one more than allowed."""
        try:
            with open_regular(self.path) as stream:
                stored = stream.read(self.max_bytes + 1)
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
            content = gzip.GzipFile(fileobj=BytesIO(stored)).read(self.max_bytes + 1)
        except (EOFError, OSError, zlib.error) as error:
            raise self.wrong(f"must be a whole gzip file, got: {one_line(error)}") from None
        if len(content) > self.max_bytes:
            raise self.too_large(self.max_bytes)
        return content


def one_line(error: Exception) -> str:
    """What a parser's error says, on one short line."""
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 4]} ..."
