"""Results of single configurations on disk, so that a stopped frontier resumes where it was.

Rules kept here: a result is found again only if everything it depends on is the same; its folder's name is a hash of
problem, settings, seed and version, and of the source of the user's own classes among them. A file is whole or missing,
and one that is not a result counts as missing.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any, Final

import numpy as np

from ..errors import InputError
from ..files import atomic
from ..files.regular import read_regular
from ..lookup import own
from ..version import __version__

#: How deeply the parts of a problem may be nested.
_DEEPEST: Final = 20


class Kept:
    """A folder of results that depend on some values.

    Parameters
    ----------
    folder : str, path or None
        Where to store them; None stores nothing.
    *values
        Everything the results depend on, besides their keys.
    """

    def __init__(self, folder: str | PathLike[str] | None, *values: Any) -> None:
        self._folder = None if folder is None else Path(folder) / fingerprint(__version__, *values)[:16]
        if self._folder is not None:
            try:
                self._folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise InputError(
                    f"keep must be a folder that can be written, got {folder} ({error.strerror}); choose another place"
                ) from None

    def find(self, *key: Any) -> dict[str, Any] | None:
        """The stored result for a key, if any; what depends on a class of unknown source is computed again."""
        if self._folder is None or own.UNKNOWN_SOURCE in key:
            return None
        try:
            found = json.loads(read_regular(self._path(key)))
        except (OSError, ValueError, RecursionError):
            return None
        is_whole = isinstance(found, dict) and found.get("key") == list(key) and isinstance(found.get("result"), dict)
        return found["result"] if is_whole else None

    def keep(self, result: Mapping[str, Any], *key: Any) -> None:
        """Store a result, of plain values, for a key."""
        if self._folder is not None:
            atomic.write(self._path(key), json.dumps({"key": key, "result": result}).encode(), durable=True)

    def _path(self, key: Sequence[Any]) -> Path:
        assert self._folder is not None
        return self._folder / f"{_hash([json.dumps(list(key)).encode()])}.json"


def fingerprint(*values: Any) -> str:
    """A hash of the content of values: the same for equal ones, in any process.

    Examples
    --------
    >>> import banditmesh as bm
    >>> one, two = (fingerprint(bm.Problem.paper("er", seed=seed)) for seed in (0, 1))
    >>> one == fingerprint(bm.Problem.paper("er", seed=0)), one == two
    (True, False)
    """
    return _hash(_described(values, 0))


def _hash(parts: Iterator[bytes] | list[bytes]) -> str:
    found = hashlib.blake2b(digest_size=16)
    for part in parts:
        found.update(len(part).to_bytes(8, "little") + part)
    return found.hexdigest()


def _described(value: Any, depth: int) -> Iterator[bytes]:
    """A value's type, with its source if the user wrote it, and content; cached attributes are ignored."""
    kind = type(value)
    yield f"{kind.__module__}.{kind.__qualname__} {own.source_of(value)}".encode()
    if depth > _DEEPEST:
        raise InputError(f"results can be kept of parts at most {_DEEPEST} deep, got a deeper one; leave out keep")
    if value is None or isinstance(value, str | bytes | bool | int | float | np.generic):
        yield repr(value).encode()
    elif isinstance(value, np.ndarray) and not value.dtype.hasobject:
        yield f"{value.dtype} {value.shape}".encode()
        yield np.ascontiguousarray(value).tobytes()
    elif isinstance(value, Mapping):
        for key, one in value.items():
            yield from _described(key, depth + 1)
            yield from _described(one, depth + 1)
    elif isinstance(value, Sequence):
        for one in value:
            yield from _described(one, depth + 1)
    elif isinstance(value, type) or callable(getattr(value, "__code__", None)):
        yield f"{value.__module__}.{value.__qualname__}".encode()
    elif hasattr(value, "__dict__"):
        for key, one in sorted(vars(value).items()):
            if not isinstance(getattr(kind, key, None), cached_property):
                yield key.encode()
                yield from _described(one, depth + 1)
    else:
        raise InputError(f"results cannot be kept with a {kind.__name__} in the problem or settings; leave out keep")
