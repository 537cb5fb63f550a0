"""Files that users upload: kept while the server runs, named by their contents, and limited in size.

A file is data: it is parsed by the reader of its format in a worker process, and nothing of it is ever executed. On the
page and in links it goes by `HASH/NAME`; any other name is refused, so that no link makes the server read
another file.
"""

from __future__ import annotations

import hashlib
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any, Final

from ..errors import InputError
from .choices import FILES

#: The most bytes of a file, and of all that are kept.
MAX_BYTES: Final = 8 * 2**20
MAX_KEPT: Final = 256 * 2**20
_NAMING: Final = frozenset(key.rpartition(".")[2] for key in FILES)
_KEPT: Final = re.compile(r"[0-9a-f]{16}/[\w.\-]{1,80}", re.ASCII)


class Uploads:
    """The files that users have uploaded.

    Examples
    --------
    >>> uploads = Uploads()
    >>> name = uploads.keep("my links.txt", b"0 1")
    >>> name.partition("/")[2], holds(uploads.folder, name), holds(uploads.folder, "../etc/passwd")
    ('my_links.txt', True, False)
    >>> uploads.close()
    """

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="banditmesh-page-")
        self._n_bytes = 0

    @property
    def folder(self) -> Path:
        """The folder that holds them."""
        return Path(self._folder.name)

    def keep(self, name: str, content: bytes) -> str:
        """Keep a file; returns the name that it goes by."""
        if len(content) > MAX_BYTES:
            raise InputError(f"a file may have at most {MAX_BYTES:,} bytes, got {len(content):,}; pack it with gzip")
        plain = re.sub(r"[^\w.\-]", "_", PurePosixPath(name.replace("\\", "/")).name, flags=re.ASCII).lstrip(".")[-80:]
        kept = f"{hashlib.blake2b(content, digest_size=8).hexdigest()}/{plain or 'file'}"
        path = self.folder / kept
        if not path.exists():
            if self._n_bytes + len(content) > MAX_KEPT:
                raise InputError(f"all files may have at most {MAX_KEPT:,} bytes; start the server again")
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(content)
            self._n_bytes += len(content)
        return kept

    def close(self) -> None:
        """Delete all of them."""
        self._folder.cleanup()


def holds(folder: Path, name: str) -> bool:
    """Whether a name is that of a kept file; `folder` is that of the uploads."""
    return _KEPT.fullmatch(name) is not None and (folder / name).is_file()


def check(folder: Path, tables: Mapping[str, Any], within: str = "") -> None:
    """Refuse the tables of a spec that name a file which was not uploaded."""
    for name, value in tables.items():
        key = f"{within}{name}"
        if isinstance(value, Mapping):
            check(folder, value, f"{key}.")
        elif name in _NAMING and not (isinstance(value, str) and holds(folder, value)):
            raise InputError(f"{key} must be a file that was uploaded to this page; choose the file again")
