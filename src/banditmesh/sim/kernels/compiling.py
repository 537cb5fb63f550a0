"""How kernels are compiled: once on a machine, cached where that is possible, without fast-math.

A cached kernel contains code from several source files, so its cache is stamped with all of them: numba alone would
look at the kernel's own file and keep a stale kernel when a rule changes elsewhere. Where no cache can be written,
kernels are compiled in every process, and nothing fails.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import FunctionType
from typing import Any, Final

import numba
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

_OPTIONS: Final = {"nogil": True, "error_model": "numpy", "fastmath": False}
_PACKAGE: Final = Path(__file__).resolve().parents[2]
#: Whatever may hold a function that a kernel is made of.
_SOURCES: Final = ("arms/*.py", "draws.py", "networks/**/*.py", "policies/*.py", "protocols/*.py", "sim/kernels/*.py")


def scalar(function: Callable[..., Any]) -> Any:
    """Compile a pure function of numbers that kernels call. Python cannot: its way in would take long to compile."""
    return numba.njit(no_cpython_wrapper=True, no_cfunc_wrapper=True, **_OPTIONS)(function)


def helper(function: Callable[..., Any]) -> Any:
    """Compile a part of a kernel that has a name of its own.

    It is written into the kernel, not called: handing arrays over would count references to each of them.
    """
    return numba.njit(inline="always", **_OPTIONS)(function)


def routine(function: Callable[..., Any]) -> Any:
    """Compile a part of a kernel that is called at most once a round.

    Then handing arrays over costs next to nothing, and a kernel and its parts compile sooner than one that has
    everything written into it.
    """
    return scalar(function)


def _lowest_bit(_: Any, word: Any) -> Any:

    def generate(_: Any, builder: Any, __: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 0))

    return types.int64(types.uint64), generate


#: For kernels: the place of the lowest bit of a word that is set.
lowest_bit: Any = intrinsic(_lowest_bit)


def kernel(function: Callable[..., Any]) -> Any:
    """Compile a function that Python calls, and cache it."""
    try:
        compiled = numba.njit(cache=True, no_cfunc_wrapper=True, **_OPTIONS)(function)
        compiled._cache._cache_file._source_stamp = _stamp()
    except (RuntimeError, OSError, AttributeError):
        # No folder can be written, or numba keeps its cache in another way: a stale cache would be worse than none.
        return uncached(function)
    return compiled


def uncached(function: Callable[..., Any]) -> Any:
    """Compile a function that Python calls, for this process only."""
    return numba.njit(**_OPTIONS)(function)


def rebind(function: Any, **replacements: Any) -> FunctionType:
    """The Python function behind a compiled one, with some of the names that it uses replaced."""
    plain = getattr(function, "py_func", function)
    names = {**plain.__globals__, **replacements}
    return FunctionType(plain.__code__, names, plain.__name__, plain.__defaults__, plain.__closure__)


@cache
def _stamp() -> tuple[tuple[str, int, int], ...]:
    """What a cached kernel depends on: every source file's name, time of change and size."""
    files = sorted(path for pattern in _SOURCES for path in _PACKAGE.glob(pattern))
    return tuple((path.name, path.stat().st_mtime_ns, path.stat().st_size) for path in files)
