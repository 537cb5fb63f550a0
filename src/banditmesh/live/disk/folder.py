"""The folder of a node's state: which files it has, who holds it, and how a state is moved aside.

The lock ends with the process, however that ends. On a network file system it is as good as that system makes it: keep
the folder on a local disk.
"""

from __future__ import annotations

import os
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

from ...errors import StoreError
from ...files import locks
from ...files.atomic import PRIVATE

FILE: Final = "state.db"
#: What SQLite puts beside its file; the first may hold what is not in the file yet.
BESIDE: Final = ("-wal", "-shm")
_LOCK: Final = "lock"


class Lock:
    """Holds a folder against every other process, and against a second node in this one.

    Raises
    ------
    StoreError
        Somebody else has it, or it cannot be written to.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     lock = Lock(Path(folder))
    ...     lock.release()
    """

    def __init__(self, folder: Path) -> None:
        path = folder / _LOCK
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            # Whoever can open it could lock it.
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT, PRIVATE)
        except OSError as error:
            raise StoreError(
                f"the state folder {folder} cannot be used: {error.strerror or error}; make it a folder that can be "
                "written to, or name another one as state"
            ) from None
        try:
            locks.take(self._descriptor)
        except OSError:
            with suppress(OSError, ValueError):
                holder = int(os.pread(self._descriptor, 20, 0))
            os.close(self._descriptor)
            by = f"process {holder}" if "holder" in locals() else "another process"
            raise StoreError(
                f"the state folder {folder} is in use by {by}; stop it, or give each node a folder of its own"
            ) from None
        # For people who look who has it; the lock itself does not depend on it, and a full disk has no room for it.
        with suppress(OSError):
            os.ftruncate(self._descriptor, 0)
            os.write(self._descriptor, f"{os.getpid()}\n".encode())

    def release(self) -> None:
        """Let others have it."""
        os.close(self._descriptor)


def sync_folder(folder: Path) -> None:
    """Have the names in a folder on the disk, where a folder can be opened for that."""
    if sys.platform != "win32":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def make_private(folder: Path) -> None:
    """Let the owner alone read a state that is there; earlier versions made it readable."""
    for end in ("", *BESIDE):
        path = folder / f"{FILE}{end}"
        # On files of others, and where a file system has no modes, there is nothing to be done.
        with suppress(OSError):
            if path.stat().st_mode & 0o077:
                path.chmod(PRIVATE)


def move_aside(folder: Path) -> Path | None:
    """Give the state in a folder another name, with the date; the new name, or None if there was no state."""
    old = [folder / f"{FILE}{end}" for end in ("", *BESIDE)]
    if not any(path.exists() for path in old):
        return None
    stamp = time.strftime("%Y-%m-%dT%H%M%SZ", time.gmtime())
    number = 0
    while True:
        aside = folder / f"aside-{stamp}{f'-{number}' if number else ''}"
        with suppress(FileExistsError):
            aside.mkdir(mode=0o700)
            break
        number += 1
    for path in old:
        with suppress(FileNotFoundError):
            path.rename(aside / path.name)
    sync_folder(folder)
    return aside / FILE
