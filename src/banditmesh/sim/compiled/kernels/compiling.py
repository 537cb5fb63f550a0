"""How kernels are compiled: once on a machine, cached where that is possible, without fast-math.

A function that is bound to other functions than those it was written with gets a name of its own (`identity` says why),
and compiled kernels are kept in files of their own (`cache`). Where none can be written, kernels are compiled in every
process, and nothing fails.
"""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any, Final

import numba
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from . import addresses, cache
from .identity import digest, identity
from .turns import turn

addresses.register()
#: Kernels make no arrays, they work on those that they are handed, which their caller keeps. So numba need not count
#: references to them: it would, with an atomic addition, whenever an array is taken out of a tuple.
_OPTIONS: Final = {"nogil": True, "error_model": "numpy", "fastmath": False, "_nrt": False}


def scalar(function: Callable[..., Any]) -> Any:
    """Compile a pure function of numbers that kernels call. Python cannot: its way in would take long to compile."""
    return _called(numba.njit(no_cpython_wrapper=True, no_cfunc_wrapper=True, **_OPTIONS)(function))


def own_rule(function: Callable[..., Any]) -> Any:
    """Compile a rule that may be a user's own: the same, but it may make lists and arrays."""
    return _called(numba.njit(no_cpython_wrapper=True, no_cfunc_wrapper=True, **{**_OPTIONS, "_nrt": True})(function))


def helper(function: Callable[..., Any]) -> Any:
    """Compile a part of a kernel that has a name of its own.

    It is written into the kernel, not called, so that its loops are compiled together with those around them.
    """
    return numba.njit(inline="always", **_OPTIONS)(function)


def routine(function: Callable[..., Any]) -> Any:
    """Compile a part of a kernel that is called by it, and cache it: several kernels have it, and it is compiled once.

    Only for parts that are bound to built-in rules alone; a `scalar` may be bound to anything.
    """
    return _cached(function, no_cpython_wrapper=True) or scalar(function)


def block(function: Callable[..., Any]) -> Any:
    """The same for a part that is called so often that calls would take long: its code takes the place of the calls.

    Unlike a helper it is not analysed again in every kernel that has it.
    """
    return _cached(function, no_cpython_wrapper=True, forceinline=True) or own_block(function)


def own_block(function: Callable[..., Any]) -> Any:
    """The same for a part that is bound to a user's rule, which is not cached."""
    return _called(numba.njit(no_cpython_wrapper=True, no_cfunc_wrapper=True, forceinline=True, **_OPTIONS)(function))


def _called(dispatcher: Any) -> Any:
    """Compile a function once for all numbers that kernels call it with: numba would, once more for every constant."""
    if numba.config.DISABLE_JIT:
        return dispatcher
    template = dispatcher.get_call_template

    def template_of_types(args: Any, kws: Any) -> Any:
        return template(tuple(types.unliteral(one) for one in args), {name: types.unliteral(kws[name]) for name in kws})

    dispatcher.get_call_template = template_of_types
    return dispatcher


def _lowest_bit(_: Any, word: Any) -> Any:

    def generate(_: Any, builder: Any, __: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 0))

    return types.int64(types.uint64), generate


def _bits_set(_: Any, word: Any) -> Any:

    def generate(_: Any, builder: Any, __: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.int64(types.uint64), generate


def _fetch(_: Any, array: Any, row: Any) -> Any:

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        rows = context.make_array(signature.args[0])(context, builder, arguments[0])
        step = builder.extract_value(rows.strides, 0)
        place = builder.add(builder.ptrtoint(rows.data, step.type), builder.mul(step, arguments[1]))
        pointer, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [pointer, number, number, number])
        hint = builder.module.declare_intrinsic("llvm.prefetch", (pointer,), kind)
        # To be read, so that threads may share it; to be kept in all caches; and data.
        flags = [ir.Constant(number, value) for value in (0, 3, 1)]
        builder.call(hint, [builder.inttoptr(place, pointer), *flags])
        return context.get_dummy_value()

    return types.void(array, types.uint64), generate


#: For kernels: have a row of an array come from memory, since it will be needed soon. Changes nothing else.
fetch: Any = intrinsic(_fetch)
#: For kernels: how many bits of a word are set.
bits_set: Any = intrinsic(_bits_set)
#: For kernels: the place of the lowest bit of a word that is set.
lowest_bit: Any = intrinsic(_lowest_bit)


def kernel(function: Callable[..., Any]) -> Any:
    """Compile a function that Python calls, and cache it."""
    return _cached(function) or uncached(function)


def _cached(function: Callable[..., Any], **options: Any) -> Any:
    """Compile a function and cache it; None if no folder can be written, or numba keeps its cache in another way.

    A stale cache would be worse than none.
    """
    try:
        compiled = numba.njit(cache=True, no_cfunc_wrapper=True, **options, **_OPTIONS)(function)
        files = cache.keep(compiled)
        compiled.compile = turn(files.lock)(compiled.compile)
    except (RuntimeError, OSError, AttributeError):
        return None
    return _called(compiled)


def uncached(function: Callable[..., Any]) -> Any:
    """Compile a function that Python calls, for this process only."""
    return numba.njit(**_OPTIONS)(function)


def rebind(function: Any, **replacements: Any) -> FunctionType:
    """The Python function behind a compiled one, with some of the names that it uses replaced.

    Its name says what it is bound to, so that no two functions of one name do different things.
    """
    plain = getattr(function, "py_func", function)
    bound = digest(identity(plain), *(f"{name} {identity(replacements[name])}" for name in sorted(replacements)))
    names = {**plain.__globals__, **replacements}
    rebound = FunctionType(plain.__code__, names, f"{plain.__name__}_{bound}", plain.__defaults__, plain.__closure__)
    rebound.__qualname__ = f"{plain.__qualname__}_{bound}"
    return rebound
