"""Files that exist whole or not at all: each is written under another name, and then renamed.

`write` words an `OSError` for users, as callers of `writing` do themselves; whatever happens, the previous file is
kept. Other users can never read a secret, not even while it is being written.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Final

from ..errors import FileError

#: The end of a file's name while it is being written; it begins with a dot.
PARTIAL: Final = ".partial"
#: The modes of files: like any new file, writable only by its owner, and private to its owner.
USUAL: Final = 0o666
READABLE: Final = 0o644
PRIVATE: Final = 0o600


@contextmanager
def writing(path: Path, durable: bool = False, mode: int = USUAL) -> Iterator[IO[bytes]]:
    """A stream into a file that appears under its name only once the block has ended without an error.

    Parameters
    ----------
    path : Path
        The file; its folder exists.
    durable : bool
        Whether the content is on the disk before the file gets its name. Without it, a power cut could leave an empty
        file there. If the move itself is lost, that does no harm: the file is then missing.
    mode : int
        Who may read and write it, from its first byte on, minus the process's umask.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with writing(Path(folder) / "answer") as stream:
    ...         _ = stream.write(b"42")
    ...     [path.name for path in Path(folder).iterdir()]
    ['answer']
    """
    partial = path.with_name(f".{path.name}.{secrets.token_hex(4)}{PARTIAL}")
    stream = create(partial, mode)
    try:
        with stream:
            yield stream
            if durable:
                stream.flush()
                os.fsync(stream.fileno())
        os.replace(partial, path)
    except BaseException:
        with suppress(OSError):
            partial.unlink()
        raise


def write(path: Path, content: bytes, durable: bool = False) -> None:
    """Write a file, whole or not at all; where that cannot be done, a `FileError` says so."""
    try:
        with writing(path, durable) as stream:
            stream.write(content)
    except OSError as error:
        what = f"cannot write {path}: {error.strerror or error}"
        raise FileError(f"{what}; choose a place that can be written to") from None


def create(path: Path, mode: int = USUAL) -> IO[bytes]:
    """A stream into a new file; `FileExistsError` if anything has its name, even a broken link."""
    return open(path, "xb", opener=lambda name, flags: os.open(name, flags, mode))
