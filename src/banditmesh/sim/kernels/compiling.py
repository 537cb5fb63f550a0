"""How kernels are compiled: once on a machine, cached where that is possible, without fast-math.

A cached kernel contains code from several source files, so its cache is stamped with all of them: numba alone would
look at the kernel's own file and keep a stale kernel when a rule changes elsewhere. Where no cache can be written,
kernels are compiled in every process, and nothing fails.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numba

_OPTIONS: Final = {"nogil": True, "error_model": "numpy", "fastmath": False}
_PACKAGE: Final = Path(__file__).resolve().parents[2]
_SOURCES: Final = (
    "arms.py",
    "draws.py",
    "networks/dynamic.py",
    "policies/ucb.py",
    "protocols/base.py",
    "protocols/flooding.py",
    *(
        f"sim/kernels/{name}.py"
        for name in ("compiling", "layout", "pulls", "rounds", "scalars", "spread", "tapes", "timeline", "walk")
    ),
)


def scalar(function: Callable[..., Any]) -> Any:
    """Compile a pure function of numbers that kernels call."""
    return uncached(function)


def helper(function: Callable[..., Any]) -> Any:
    """Compile a part of a kernel that has a name of its own.

    It is written into the kernel, not called: handing arrays over would count references to each of them.
    """
    return numba.njit(inline="always", **_OPTIONS)(function)


def kernel(function: Callable[..., Any]) -> Any:
    """Compile a function that Python calls, and cache it."""
    try:
        compiled = numba.njit(cache=True, **_OPTIONS)(function)
        compiled._cache._cache_file._source_stamp = _stamp()
    except (RuntimeError, OSError, AttributeError):
        # No folder can be written, or numba keeps its cache in another way: a stale cache would be worse than none.
        return uncached(function)
    return compiled


def uncached(function: Callable[..., Any]) -> Any:
    """Compile a function that Python calls, for this process only."""
    return numba.njit(**_OPTIONS)(function)


def rebind(function: Any, **replacements: Any) -> Callable[..., Any]:
    """The Python function behind a compiled one, with some of the names that it uses replaced."""
    plain = getattr(function, "py_func", function)
    names = {**plain.__globals__, **replacements}
    return types.FunctionType(plain.__code__, names, plain.__name__, plain.__defaults__)


def _stamp() -> tuple[tuple[str, int, int], ...]:
    found = []
    for name in _SOURCES:
        status = (_PACKAGE / name).stat()
        found.append((name, status.st_mtime_ns, status.st_size))
    return tuple(found)
