"""What was computed for the page and is kept while the server runs: recordings and results, by all they depend on.

They go into files of the server's own folder, so that a tab that is loaded again, or goes back, finds them. The oldest
make way for new ones. A recording is a document, as JSON packed with gzip, which browsers fetch as it is.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import json
import pickle
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from ..animations import as_json
from ..files import atomic

#: The most bytes that are kept.
MAX_BYTES: Final = 512 * 2**20
#: Where browsers find recordings.
ROUTE: Final = "/recordings"
_KEY: Final = re.compile(r"[0-9a-f]{32}")
_FOLDER: Final = "kept"


def key_of(*given: Any) -> str:
    """The name of what depends on these plain values, and on nothing else.

    Examples
    --------
    >>> key_of("record", {"a": "1", "b": "2"}) == key_of("record", {"b": "2", "a": "1"})
    True
    """
    return hashlib.blake2b(json.dumps(given, sort_keys=True).encode(), digest_size=16).hexdigest()


def results_key(choices: Mapping[str, str]) -> str:
    """The name that the results of these choices go by."""
    return key_of("results", dict(choices))


class Kept:
    """What is kept in the folder of a server.

    Parameters
    ----------
    folder : path
        That of the uploads.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     kept = Kept(Path(folder))
    ...     kept.document(key_of("none")), kept.keep_document(key_of(1), {"n": 1}), kept.document(key_of(1))
    (None, None, {'n': 1})
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder / _FOLDER

    def path(self, key: str) -> Path | None:
        """The file of what has that name, if it is there; a wrong name has none."""
        path = self._folder / key
        return path if _KEY.fullmatch(key) and path.is_file() else None

    def keep_document(self, key: str, document: dict[str, Any]) -> None:
        """Keep a recording."""
        self._write(key, gzip.compress(as_json(document).encode("utf-8", "replace"), 1))

    def document(self, key: str) -> dict[str, Any] | None:
        """A recording, if it is there."""
        found: dict[str, Any] | None = None
        if path := self.path(key):
            found = json.loads(gzip.decompress(path.read_bytes()))
        return found

    def keep_results(self, key: str, results: Any) -> None:
        """Keep the results of a run; where the disk is full they are computed again when they are needed."""
        with contextlib.suppress(OSError):
            self._write(key, pickle.dumps(results))

    def results(self, key: str) -> Any:
        """The results of a run, if they are there; only this server writes into its folder."""
        path = self.path(key)
        return None if path is None else pickle.loads(path.read_bytes())

    def _write(self, key: str, content: bytes) -> None:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._make_room(len(content))
        with atomic.writing(self._folder / key) as stream:
            stream.write(content)

    def _make_room(self, n_bytes: int) -> None:
        files = sorted((path.stat().st_mtime, path.stat().st_size, path) for path in self._folder.iterdir())
        over = sum(size for _, size, _ in files) + n_bytes - MAX_BYTES
        for _, size, path in files:
            if over <= 0:
                return
            path.unlink(missing_ok=True)
            over -= size
