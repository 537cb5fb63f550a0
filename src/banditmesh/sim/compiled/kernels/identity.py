"""What a function is, as a short text that is the same in every process.

numba numbers functions in the order in which a process compiles them, so two functions of one name may get the same
symbol in two processes; a third process that reads both from a cache would then run one of them for the other, in
silence. Hence the rule kept here: a function that is bound to something else gets another name, one that follows from
its code and from everything that it is bound to.

An identity covers a function's code, its constants, its defaults, its closure, and the values of all global names that
it reads, functions among them, and what those read. It contains no address and no hash of Python's own, which differ
from process to process.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np


def identity(function: Any) -> str:
    """The identity of a function, plain or compiled.

    Examples
    --------
    >>> def twice(x):
    ...     return factor * x
    >>> factor = 2
    >>> before = identity(twice)
    >>> factor = 3
    >>> identity(twice) == before
    False
    """
    return digest(_describe(function, {}))


def digest(*texts: str) -> str:
    """A short digest of some texts."""
    return hashlib.blake2b("\0".join(texts).encode(), digest_size=8).hexdigest()


def _describe(value: Any, seen: dict[int, int]) -> str:
    """A value as a text; a function that is met again, perhaps within itself, is named by when it was met first."""
    value = getattr(value, "py_func", value)
    if isinstance(value, FunctionType):
        if id(value) in seen:
            return f"function {seen[id(value)]}"
        seen[id(value)] = len(seen)
        return "\n".join(_lines_of(value, seen))
    if isinstance(value, np.ndarray):
        return f"array {value.dtype} {value.shape} {value.tobytes().hex()}"
    if isinstance(value, tuple | list):
        return f"{type(value).__name__} ({', '.join(_describe(one, seen) for one in value)})"
    if isinstance(value, frozenset | set):
        return f"set ({', '.join(sorted(_describe(one, seen) for one in value))})"
    if isinstance(value, bool | int | float | complex | str | bytes | np.generic | None):
        return f"{type(value).__name__} {value!r}"
    if isinstance(value, CodeType):
        return "\n".join(_lines_of_code(value, seen))
    named = value if isinstance(value, type | ModuleType) else type(value)
    return f"{getattr(named, '__module__', '')} {getattr(named, '__qualname__', named.__name__)}"


def _lines_of(function: FunctionType, seen: dict[int, int]) -> Iterator[str]:
    yield f"def {function.__module__}.{function.__qualname__} {_describe(function.__defaults__ or (), seen)}"
    yield from _lines_of_code(function.__code__, seen)
    for cell in function.__closure__ or ():
        yield f"closure {_describe(cell.cell_contents, seen)}"
    names = sorted(_names(function.__code__))
    for name in names:
        if name not in function.__globals__:
            continue
        value = function.__globals__[name]
        yield f"{name} = {_describe(value, seen)}"
        if isinstance(value, ModuleType):
            # Compiled code has the values that a module's names have now.
            yield from (f"{name}.{one} = {_describe(vars(value)[one], seen)}" for one in names if one in vars(value))


def _lines_of_code(code: CodeType, seen: dict[int, int]) -> Iterator[str]:
    yield f"{code.co_code.hex()} {code.co_names} {code.co_varnames} {code.co_freevars}"
    for constant in code.co_consts:
        yield _describe(constant, seen)


def _names(code: CodeType) -> set[str]:
    """The names that are not local, in a function and in those that it defines."""
    inner = (constant for constant in code.co_consts if isinstance(constant, CodeType))
    return set(code.co_names).union(*(_names(one) for one in inner))
