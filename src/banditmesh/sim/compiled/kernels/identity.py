"""What a function is, as a short text that is the same in every process.

numba numbers functions in the order in which a process compiles them, so two functions of one name may get the same
symbol in two processes; a third process that reads both from a cache would then run one of them for the other, in
silence. Hence the rule kept here: a function that is bound to something else gets another name, one that follows from
its code and from everything that it is bound to.

An identity covers a function's code, its constants, its defaults, its closure, and the values of all global names that
it reads, functions and modules among them, and what is read of those. It contains no address and no hash of Python's
own, which differ from process to process. A value that cannot be described in full has no identity: whoever asks about
a user's rule is told, since a change of that value would go unnoticed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from enum import Enum
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

_PACKAGE = __name__.partition(".")[0]


class Undescribed(ValueError):
    """A function reads something whose value cannot be told in full.

    Attributes
    ----------
    kind : str
        What the value is.
    name : str
        Under which name it is read; "" if it has none.
    """

    def __init__(self, kind: str, name: str = "") -> None:
        super().__init__(f"{name} ({kind})" if name else kind)
        self.kind, self.name = kind, name


def identity(function: Any) -> str:
    """The identity of a function, plain or compiled; `Undescribed` if it has none.

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
    # What numba compiled, ufuncs and intrinsics of its own among it, is known by its Python function.
    value = getattr(getattr(value, "_dispatcher", value), "py_func", getattr(value, "_defn", value))
    if isinstance(value, FunctionType):
        if id(value) in seen:
            return f"function {seen[id(value)]}"
        seen[id(value)] = len(seen)
        return "\n".join(_lines_of(value, seen))
    if isinstance(value, Enum):
        return f"{_describe(type(value), seen)} {value.name}"
    if isinstance(value, bool | int | float | complex | str | bytes | np.generic | None):
        return f"{type(value).__name__} {value!r}"
    if isinstance(value, np.ndarray) and not value.dtype.hasobject:
        return f"array {value.dtype} {value.shape} {value.tobytes().hex()}"
    if isinstance(value, tuple | list):
        return f"{type(value).__name__} ({', '.join(_describe(one, seen) for one in value)})"
    if isinstance(value, frozenset | set):
        return f"set ({', '.join(sorted(_describe(one, seen) for one in value))})"
    if isinstance(value, CodeType):
        return "\n".join(_lines_of_code(value, seen))
    if isinstance(value, type):
        return _describe_type(value, seen)
    if isinstance(value, ModuleType):
        return f"module {value.__name__}"
    if isinstance(value, BuiltinFunctionType):
        return f"builtin {value.__module__} {value.__qualname__}"
    if isinstance(value, np.ufunc) and vars(np).get(str(value.__name__)) is value:
        return f"ufunc of numpy {value}"
    if _is_ours(type(value).__module__) or type(value).__module__.startswith("numba.core.types"):
        # What the package made once, when it was imported; and the types of numba.
        return f"{type(value).__module__} {value!r}"
    raise Undescribed(f"{type(value).__module__}.{type(value).__qualname__}")


def _describe_type(value: type, seen: dict[int, int]) -> str:
    name = f"type {value.__module__} {value.__qualname__}"
    if issubclass(value, Enum):
        return f"{name} {[(one.name, _describe(one.value, seen)) for one in value]}"
    if issubclass(value, tuple) and hasattr(value, "_fields"):
        return f"{name} {value._fields}"
    if value.__module__ in ("builtins", "numpy") or _is_ours(value.__module__):
        return name
    raise Undescribed(f"the class {value.__qualname__}")


def _is_ours(module: str | None) -> bool:
    return (module or "").partition(".")[0] == _PACKAGE


def _lines_of(function: FunctionType, seen: dict[int, int]) -> Iterator[str]:
    yield f"def {function.__module__}.{function.__qualname__} {_describe(function.__defaults__ or (), seen)}"
    for name, default in sorted((function.__kwdefaults__ or {}).items()):
        yield f"{name}: {_describe(default, seen)}"
    yield from _lines_of_code(function.__code__, seen)
    for cell in function.__closure__ or ():
        try:
            yield f"closure {_describe(cell.cell_contents, seen)}"
        except ValueError as error:
            if isinstance(error, Undescribed):
                raise
            yield "closure, empty"
    names = sorted(_names(function.__code__))
    for name in names:
        if name not in function.__globals__:
            continue
        try:
            yield from _lines_of_name(name, function.__globals__[name], names, seen, ())
        except Undescribed as error:
            # What the package's own functions read is made once, when it is imported.
            if not _is_ours(function.__module__):
                raise
            yield f"{name} = {error}"


def _lines_of_name(
    name: str, value: Any, names: list[str], seen: dict[int, int], modules: tuple[ModuleType, ...]
) -> Iterator[str]:
    """A name and its value; of a module also what may be read of it, since compiled code has the values of now."""
    try:
        yield f"{name} = {_describe(value, seen)}"
    except Undescribed as error:
        raise Undescribed(error.kind, error.name or name) from None
    if isinstance(value, ModuleType) and value not in modules and not _is_fixed(value):
        for one in names:
            if one in vars(value):
                yield from _lines_of_name(f"{name}.{one}", vars(value)[one], names, seen, (*modules, value))


def _is_fixed(module: ModuleType) -> bool:
    """Whether the contents of a module stay the same while a program runs."""
    return module.__name__.partition(".")[0] in ("math", "cmath", "numpy", "numba", _PACKAGE)


def _lines_of_code(code: CodeType, seen: dict[int, int]) -> Iterator[str]:
    yield f"{code.co_code.hex()} {code.co_names} {code.co_varnames} {code.co_freevars}"
    for constant in code.co_consts:
        yield _describe(constant, seen)


def _names(code: CodeType) -> set[str]:
    """The names that are not local, in a function and in those that it defines."""
    inner = (constant for constant in code.co_consts if isinstance(constant, CodeType))
    return set(code.co_names).union(*(_names(one) for one in inner))
