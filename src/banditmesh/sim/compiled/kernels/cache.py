"""Compiled kernels on disk: one file each, named after everything that its code depends on, and checked when read.

This takes the place of numba's own index, which knows a kernel's file but not the other files whose functions went
into it, which two processes can write at the same time so that a name points to other code, and which fails on damaged
bytes. Here

- a file's name holds a digest of the package's sources, of the versions that compile them, of the settings and the
  machine they were compiled for, and of the types: whatever differs in one of these has another name;
- a file begins with a digest of its name and content: what is damaged, or is another's, is not there;
- a file is there whole or not at all;
- a file is read only where no other user could have put or changed it (`trust`), since reading it runs it.
"""

from __future__ import annotations

import contextlib
import hashlib
import pickle
import platform
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final

import llvmlite
import numba
import numpy as np
from numba.core.caching import IndexDataCacheFile
from numba.core.serialize import dumps

from ....files import atomic
from .identity import digest
from .trust import read_trusted, safe_folder

_PACKAGE: Final = Path(__file__).resolve().parents[3]
#: What lies above the simulator or beside it, and so in no kernel: the layers import one way. Everything else counts.
ABOVE: Final = frozenset(
    {
        "__main__.py",
        "algorithms",
        "animations",
        "cli.py",
        "comparisons",
        "integrations",
        "live",
        "mesh",
        "paper",
        "plots",
        "studies",
        "suite",
        "testing",
        "theory",
        "verbs",
        "web",
    }
)
_FORMAT: Final = "banditmesh kernels 3"
_DIGEST_SIZE: Final = 32
#: Settings of numba that change what is compiled, and are not in its own key.
_SETTINGS: Final = ("BOUNDSCHECK", "DEBUGINFO_DEFAULT", "LOOP_VECTORIZE", "OPT", "SLP_VECTORIZE", "USING_SVML")

_kept: list[KernelFiles] = []


class KernelFiles:
    """The files of one kernel: numba asks for a type's code by `load` and hands it over by `save`.

    Parameters
    ----------
    folder : path
        Where they lie.
    name : str
        The kernel's name.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self._folder = folder
        self._name = name

    @property
    def lock(self) -> Path:
        """The file that processes lock to take turns."""
        return self._folder / f".{self._name}.lock"

    def load(self, key: object) -> Any:
        """What was saved for a key, if it is there and whole; else None."""
        path = self._path(key)
        content = read_trusted(path)
        if content is None or content[:_DIGEST_SIZE] != _checksum(path, content[_DIGEST_SIZE:]):
            return None
        return pickle.loads(content[_DIGEST_SIZE:])

    def save(self, key: object, data: object) -> None:
        """Keep what a key was compiled to. Where that does not work, it is compiled again next time."""
        content = dumps(data)
        with contextlib.suppress(OSError):
            self._remove_outdated()
            with atomic.writing(self._path(key), mode=atomic.READABLE) as stream:
                stream.write(_checksum(self._path(key), content) + content)

    def is_empty(self) -> bool:
        """Whether nothing of the kernel is kept that was compiled from these sources."""
        current = f"{self._name}.{stamp()}."
        with contextlib.suppress(OSError):
            return not any(path.name.startswith(current) for path in self._all())
        return True

    def flush(self) -> None:
        """Remove all of the kernel's files."""
        for path in self._all():
            path.unlink(missing_ok=True)

    def _path(self, key: object) -> Path:
        return self._folder / f"{self._name}.{stamp()}.{digest(repr(key), repr(_settings()))}.kernel"

    def _all(self) -> Iterator[Path]:
        # A name may hold what a pattern would take for its own; a file that was left half written begins with a dot.
        own = f"{self._name}."
        return (path for path in self._folder.iterdir() if path.name.removeprefix(".").startswith(own))

    def _remove_outdated(self) -> None:
        for path in self._all():
            if path.suffix == ".kernel" and not path.name.startswith(f"{self._name}.{stamp()}."):
                path.unlink(missing_ok=True)


def keep(dispatcher: Any) -> KernelFiles:
    """Let numba keep a kernel in such files.

    `AttributeError` if its cache is not built as is expected here, `OSError` if no folder can be trusted.
    """
    kept = dispatcher._cache
    if not isinstance(kept._cache_file, IndexDataCacheFile):
        raise AttributeError("numba keeps its cache in another way")
    folder = safe_folder(Path(kept.cache_path))
    if folder is None:
        raise OSError("no folder for kernels can be trusted")
    files = KernelFiles(folder, kept._impl.filename_base)
    kept._cache_file = files
    _kept.append(files)
    return files


def is_kept(dispatcher: Any) -> bool:
    """Whether a kernel is kept in such files."""
    return isinstance(getattr(dispatcher._cache, "_cache_file", None), KernelFiles)


def is_missing(dispatcher: Any) -> bool:
    """Whether a kernel is kept in such files, and none holds what it was compiled to from these sources."""
    return is_kept(dispatcher) and dispatcher._cache._cache_file.is_empty()


def remove_all() -> None:
    """Remove the files of all kernels that this process knows."""
    for files in _kept:
        with contextlib.suppress(OSError):
            files.flush()


@cache
def stamp() -> str:
    """A digest of all that any kernel depends on: sources by content, and versions.

    Contents, not times: the files of a package that is installed again may have the times of the old ones.
    """
    versions = (platform.python_version(), numba.__version__, llvmlite.__version__, np.__version__)
    return digest(_FORMAT, *versions, *(f"{path} {content}" for path, content in _sources()))


def _sources() -> Iterator[tuple[str, str]]:
    for path in sorted(_PACKAGE.rglob("*.py")):
        relative = path.relative_to(_PACKAGE)
        if relative.parts[0] not in ABOVE:
            yield relative.as_posix(), hashlib.blake2b(path.read_bytes()).hexdigest()


def _settings() -> tuple[object, ...]:
    return tuple(getattr(numba.config, name, None) for name in _SETTINGS)


def _checksum(path: Path, content: bytes) -> bytes:
    return hashlib.blake2b(path.name.encode() + b"\0" + content, digest_size=_DIGEST_SIZE).digest()
