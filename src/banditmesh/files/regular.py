"""Reading files that a user names: regular files only.

Reading from a pipe may wait for ever, and reading from a device may never end or change something; so anything but a
regular file is refused before it is opened. A link counts as what it points to.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from io import BufferedReader
from os import PathLike
from typing import Final

_KINDS: Final[tuple[tuple[Callable[[int], bool], str], ...]] = (
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def open_regular(path: str | PathLike[str]) -> BufferedReader:
    """A stream of the bytes of a regular file; `OSError`, which the caller words, if it is something else.

    Examples
    --------
    >>> open_regular(os.devnull)
    Traceback (most recent call last):
    OSError: [Errno 22] a device, not a regular file; save its content as a file first: '/dev/null'
    """
    mode = os.stat(path).st_mode
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
    if not stat.S_ISREG(mode):
        kind = next((words for is_kind, words in _KINDS if is_kind(mode)), "something else")
        raise OSError(errno.EINVAL, f"{kind}, not a regular file; save its content as a file first", os.fspath(path))
    return open(path, "rb")


def read_regular(path: str | PathLike[str]) -> bytes:
    """The bytes of a regular file; as `open_regular`."""
    with open_regular(path) as stream:
        return stream.read()
