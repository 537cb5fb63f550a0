"""Secrets in files: a sidecar's tokens, and a warning where other users can read a secret.

Tokens come from files, since any user of the machine can read a command line. A group may read a secret: that is how
root shares it with a service.
"""

from __future__ import annotations

import os
import stat
from os import PathLike
from pathlib import Path
from typing import Final

from ...errors import FileError
from ..logs import LOG

LEAST_LENGTH: Final = 16


def read_token(path: str | PathLike[str]) -> str:
    """The token in a file: one word of at least 16 printable characters."""
    try:
        token = Path(path).read_text(encoding="ascii").strip()
    except OSError as error:
        raise FileError(f"the token's file {path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        token = ""
    if len(token) < LEAST_LENGTH or not token.isprintable() or " " in token:
        raise FileError(
            f"the token's file {path} must hold one word of at least {LEAST_LENGTH} ASCII characters; "
            "`openssl rand -hex 32` makes one"
        )
    warn_if_exposed(path)
    return token


def warn_if_exposed(path: str | PathLike[str]) -> None:
    """Say, in the log or on standard error, that all users of the machine can read a file that should be secret."""
    if os.name == "posix" and os.stat(path).st_mode & stat.S_IROTH:
        LOG.warning("%s must be secret, and all users of this machine can read it; run: chmod o= %s", path, path)
