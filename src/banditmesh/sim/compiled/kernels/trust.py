"""Where compiled kernels may be read from: whoever can put a file there runs code as the user who reads it.

As ssh treats keys, a folder is trusted if it and all folders above it belong to the user or to root and no one else can
write to them. A folder above may be sticky, as /tmp is: there, others cannot move what is not theirs. A group may write
if it is the user's own or root's, without other members. Links are followed first, and the folder that they lead to is
used. Of a folder within the package only the folder itself is looked at, and it may belong to the owner of the package:
whoever can change the sources needs no kernels.

Windows has no such modes: there, a user's folders are closed to other users.
"""

from __future__ import annotations

import multiprocessing
import os
import stat
from functools import cache
from pathlib import Path
from typing import Final

from ....errors import BanditmeshWarning, warn
from .identity import digest

_PACKAGE: Final = Path(__file__).resolve().parents[3]
_HAS_MODES: Final = hasattr(os, "geteuid")
_warned: list[str] = []


def safe_folder(folder: Path) -> Path | None:
    """Where kernels that belong in a folder are kept: there, or in a private folder; None if neither can be trusted."""
    why = doubt(folder)
    if why is None:
        return folder.resolve()
    instead = _private_folder(folder)
    _warn_once(why, instead)
    return instead


def doubt(folder: Path) -> str | None:
    """Why a folder is not trusted, or None."""
    if not _HAS_MODES:
        return None
    folder = folder.resolve()
    for place in [folder] if folder.is_relative_to(_PACKAGE) else [folder, *folder.parents]:
        try:
            found = place.stat()
        except OSError as error:
            return f"{place} cannot be looked at ({error.strerror})"
        if found.st_uid not in _owners(folder):
            return f"{place} belongs to another user"
        if _others_can_write(found) and (place == folder or not found.st_mode & stat.S_ISVTX):
            return f"other users can write to {place}"
    return None


def read_trusted(path: Path) -> bytes | None:
    """The content of a file in a trusted folder; None if others could have written it, or it is a link or not there."""
    try:
        with open(path, "rb", opener=_open_itself) as stream:
            found = os.fstat(stream.fileno())
            if _HAS_MODES and (found.st_uid not in _owners(path) or _others_can_write(found)):
                return None
            return stream.read()
    except OSError:
        return None


def _open_itself(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0))


def _owners(path: Path) -> set[int]:
    return {0, os.geteuid(), *([_PACKAGE.stat().st_uid] if path.is_relative_to(_PACKAGE) else [])}


def _others_can_write(found: os.stat_result) -> bool:
    by_group = found.st_mode & stat.S_IWGRP and not _is_own_group(found.st_gid, os.geteuid())
    return bool(found.st_mode & stat.S_IWOTH or by_group)


@cache
def _is_own_group(gid: int, uid: int) -> bool:
    """Whether a group is named after the user, or is root's, and lists no other members."""
    import grp
    import pwd

    try:
        user, group = pwd.getpwuid(uid).pw_name, grp.getgrgid(gid)
    except KeyError:
        return False
    return group.gr_name in (user, "root") and {*group.gr_mem} <= {user, "root"}


def _private_folder(folder: Path) -> Path | None:
    """A folder of the user's own for the kernels of one that is not trusted."""
    try:
        home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        private = home / "banditmesh" / f"kernels-{digest(str(folder))}"
        there = next(place for place in private.parents if place.exists())
        # Nothing is made in a home that is another user's, as it may be under sudo.
        if doubt(there) is not None:
            return None
        for place in reversed([private, *private.parents]):
            if not place.exists():
                place.mkdir(mode=0o700)
    except (OSError, RuntimeError, StopIteration):
        return None
    return private.resolve() if doubt(private) is None else None


def _warn_once(why: str, instead: Path | None) -> None:
    """Warn once in a program, of the first folder; its worker processes say nothing."""
    if not _warned and multiprocessing.parent_process() is None:
        _warned.append(why)
        kept = "compiled again in every process" if instead is None else f"kept in {instead.parent}"
        warn(
            f"compiled kernels must be in a folder that no other user can change, but {why}; they are {kept}. "
            "Use chmod or chown, or set NUMBA_CACHE_DIR to your own folder",
            BanditmeshWarning,
        )
