"""How much memory there is: anything that does not fit is refused before it is made.

The memory available is the least of what the machine has free, what the process may still map (`ulimit -v`) and what
its control groups, version 1 or 2, have left, from its own up to the root.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from ..errors import InsufficientMemoryError

#: Requests up to this many bytes are never refused: asking the system costs more than a small run.
TRIFLE: Final = 2.0**24
_ROOT: Final = Path("/")


def check(n_bytes: float, what: str, remedy: str) -> None:
    """Refuse something that would need more memory than is free."""
    if n_bytes > TRIFLE and n_bytes > (free := available()):
        raise InsufficientMemoryError(
            f"{what} would need {n_bytes / 2**30:,.1f} GiB of memory, and {free / 2**30:,.1f} GiB are free; {remedy}"
        )


def suffices(n_bytes: float) -> bool:
    """Whether this much memory is free."""
    return n_bytes <= TRIFLE or n_bytes <= available()


def available(root: Path = _ROOT) -> float:
    """Bytes of memory available now; infinite where the system does not say.

    `root` is where the system's files are.
    """
    limits = [_free(root), _left_to_map(root), *_left_to_groups(root)]
    return max(0.0, min((limit for limit in limits if limit is not None), default=float("inf")))


def total() -> float:
    """Bytes of memory that the machine has; infinite where the system does not say."""
    try:
        return float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, ValueError, OSError):
        return float("inf")


def mapped(root: Path = _ROOT) -> float | None:
    """Bytes of address space that this process has mapped; None where the system does not say."""
    pages = [int(line.split()[0]) for line in _lines(root / "proc/self/statm")]
    return float(pages[0] * os.sysconf("SC_PAGE_SIZE")) if pages else None


def _free(root: Path) -> float:
    """What the machine has free."""
    for line in _lines(root / "proc/meminfo"):
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024.0
    return total()


def _left_to_map(root: Path) -> float | None:
    """What the process may still map within its address-space limit."""
    try:
        import resource
    except ImportError:
        return None
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit == resource.RLIM_INFINITY:
        return None
    return float(limit - (mapped(root) or 0.0))


def _left_to_groups(root: Path) -> Iterator[float]:
    """What each control group of the process, up to the root, has left."""
    mounted = root / "sys/fs/cgroup"
    for line in _lines(root / "proc/self/cgroup"):
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            names = "memory.max", "memory.current", "inactive_file"
            tops = [mounted, mounted / "unified"]
        elif "memory" in controllers.split(","):
            names = "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"
            tops = [mounted / "memory"]
        else:
            continue
        own = Path(path.lstrip("/"))
        # In a container the path may be that of the host: then only the root is found, and is the container's.
        for top in tops:
            for group in (own, *own.parents):
                left = _left_to_group(top / group, *names)
                if left is not None:
                    yield left


def _left_to_group(group: Path, limit_name: str, used_name: str, cache_name: str) -> float | None:
    limits, used = _lines(group / limit_name), _lines(group / used_name)
    if not limits or not used or limits[0] == "max":
        return None
    # The page cache counts as used, but is given up when memory is needed.
    cached = [int(line.split()[1]) for line in _lines(group / "memory.stat") if line.split()[0] == cache_name]
    return float(int(limits[0]) - int(used[0]) + sum(cached))


def _lines(path: Path) -> list[str]:
    """The lines of a system file; none if it cannot be read."""
    try:
        return path.read_text().splitlines()
    except OSError:
        return []
