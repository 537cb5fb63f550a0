"""Whether the files that a configuration names are there and fit together.

What would keep a node from starting is found before it is started. What keeps only its neighbours away, a certificate
that is not valid now, is a warning: such a node can still choose. Nothing is changed or made. Whether an address is in
use is not looked at.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import FileError, MissingExtraError
from .http.tokens import read_token
from .transport.identity import KeyFiles, contexts, expiry_warning

if TYPE_CHECKING:
    from .config import NodeConfig


def file_problems(config: NodeConfig) -> list[str]:
    """What is wrong with the files that a configuration names, a line each."""
    found = [*_state(config.state)]
    if config.api.token_file is not None:
        found += _token(config.api.token_file)
    if config.keys is not None:
        found += [*_unreadable(config.keys)] or _certificate(config, config.keys)
    return found


def file_warnings(config: NodeConfig, now: float | None = None) -> list[str]:
    """What will keep neighbours away, now or soon, from a node that can start; `now` is in seconds since 1970."""
    if config.keys is None:
        return []
    try:
        warning = expiry_warning(contexts(config.keys).own, time.time() if now is None else now)
    except (FileError, MissingExtraError):  # a problem, or for whoever has the extra
        return []
    return [] if warning is None else [f"[keys]: {warning}"]


def _state(folder: Path) -> Iterator[str]:
    """A folder that is there, or can be made, and can be written to."""
    there = folder
    while not there.exists() and there != there.parent:
        there = there.parent
    if not there.is_dir():
        yield f"state must be a folder, got {folder}, where {there} is a file"
    elif not os.access(there, os.W_OK | os.X_OK):
        yield f"state must be a folder that can be written to, got {folder}"


def _token(path: Path) -> list[str]:
    try:
        read_token(path)
    except FileError as error:
        return [f"[api]: {error}"]
    return []


def _unreadable(keys: KeyFiles) -> Iterator[str]:
    for key, path in keys._asdict().items():
        problem = _why_unreadable(path)
        if problem is not None:
            yield f"[keys]: {key} {problem}"


def _why_unreadable(path: Path) -> str | None:
    try:
        with path.open("rb"):
            return None
    except OSError as error:
        return f"must be a file that can be read, got {path}: {error.strerror or error}"


def _certificate(config: NodeConfig, keys: KeyFiles) -> list[str]:
    """What is wrong with the certificate; nothing where the extra that can read it is absent."""
    try:
        own = contexts(keys).own
    except FileError as error:
        return [f"[keys]: {error}"]
    except MissingExtraError:
        return []
    found = []
    if (own.mesh, own.node) != (config.mesh, config.node):
        found.append(
            f"[keys]: certificate must be that of node {config.node!r} of mesh {config.mesh!r}, "
            f"got one of node {own.node!r} of mesh {own.mesh!r}"
        )
    return found
