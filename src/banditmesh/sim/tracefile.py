"""The event log in a file: one JSON array per event, after a line that says what the columns are.

For logs that are longer than memory: they are written and read event by event. A file whose name ends in .gz is
compressed. It is there whole or not at all.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from os import PathLike
from pathlib import Path
from typing import IO, Any, Final

from ..errors import FileError
from ..files import atomic
from ..files.regular import open_regular
from .files import decode_name, encode_name
from .run import Event

FORMAT: Final = "banditmesh-trace"
VERSION: Final = 1
_GZIP: Final = b"\x1f\x8b"
#: The most characters of a line: a small file may unpack to a single one that fills the memory.
_LONGEST: Final = 2**20
#: The columns that hold names, and of what.
_NAMES: Final = {"origin": "agents", "arm": "arms", "sender": "agents", "receiver": "agents"}
_KINDS: Final = [_NAMES.get(field) for field in Event._fields]


@contextmanager
def writing_trace(path: str | PathLike[str]) -> Iterator[Callable[[Event], None]]:
    """What writes events into a file, which is there when the block ends without an error."""
    target = Path(path)
    # An error that comes out of the block and is not of the file, though it may look like one.
    foreign: OSError | None = None
    try:
        with atomic.writing(target) as raw, _as_text(raw, "wt", target.suffix == ".gz") as stream:
            header = {"format": FORMAT, "version": VERSION, "columns": Event._fields}
            stream.write(json.dumps(header) + "\n")

            def write(event: Event) -> None:
                columns = zip(event, _KINDS, strict=True)
                row = [value if kind is None else encode_name(kind, value) for value, kind in columns]
                try:
                    stream.write(json.dumps(row) + "\n")
                except OSError as error:
                    raise _cannot_write(target, error) from None

            try:
                yield write
            except OSError as error:
                foreign = error
                raise
    except OSError as error:
        if error is foreign:
            raise
        raise _cannot_write(target, error) from None


def read_trace(path: str | PathLike[str]) -> Iterator[Event]:
    """The events of a file that `simulate` wrote, one after the other.

    Parameters
    ----------
    path : str or path
        As it was given to `simulate(trace=...)`.

    Examples
    --------
    >>> import tempfile, pathlib, banditmesh as bm
    >>> problem = bm.Problem.paper("er", seed=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "events.jsonl.gz"
    ...     result = bm.simulate(problem, bm.FwA(2), horizon=5, seed=0, trace=path)
    ...     sum(event.learned for event in bm.read_trace(path)) == result.traffic["learned"][0]
    np.True_
    """
    try:
        with open_regular(path) as raw, _as_text(raw, "rt", raw.peek(2)[:2] == _GZIP) as stream:
            yield from _events(path, stream)
    except (OSError, EOFError) as error:
        raise FileError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from None


def _events(path: str | PathLike[str], stream: IO[str]) -> Iterator[Event]:
    number = 1
    try:
        lines = iter(lambda: _line(stream), "")
        header = json.loads(next(lines, "{}"))
        if not isinstance(header, dict) or header.get("format") != FORMAT:
            raise FileError(f"{path} is not an event log of banditmesh; give a file that simulate(trace=...) wrote")
        if header.get("version") != VERSION or header.get("columns") != list(Event._fields):
            raise FileError(f"{path} is an event log of another banditmesh; read it with the version that wrote it")
        for line in lines:
            number += 1
            columns = zip(json.loads(line), _KINDS, strict=True)
            yield Event._make(value if kind is None else decode_name(value) for value, kind in columns)
    except (ValueError, TypeError) as error:
        raise FileError(f"{path}, line {number}: not an event of banditmesh ({error}); write the log again") from None


def _line(stream: IO[str]) -> str:
    line = stream.readline(_LONGEST)
    if len(line) == _LONGEST:
        raise ValueError(f"a line of {_LONGEST:,} characters or more")
    return line


def _cannot_write(target: Path, error: OSError) -> FileError:
    return FileError(f"cannot write {target}: {error.strerror or error}; choose a place that can be written to")


def _as_text(raw: IO[bytes], mode: str, compressed: bool) -> Any:
    return gzip.open(raw, mode, encoding="utf-8") if compressed else TextIOWrapper(raw, encoding="utf-8")
