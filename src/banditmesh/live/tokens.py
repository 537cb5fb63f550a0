"""Tokens of a sidecar: they come from files, since anybody on the machine can read a command line."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Final

from ..errors import FileError

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
    return token
