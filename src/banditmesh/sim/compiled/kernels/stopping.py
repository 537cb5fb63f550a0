"""A way to stop kernels from outside: a number that Python sets and that they look at, agent by agent.

A kernel that finds it set returns at once, in the middle of a round; what it leaves behind is of no use.
"""

from __future__ import annotations

from typing import Any

from numba import types
from numba.extending import intrinsic


def _is_set(_: Any, flag: Any) -> Any:

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        # Atomic, since another thread sets it: a plain load might be moved out of the loop.
        value = builder.load_atomic(array.data, "monotonic", 8)
        return builder.icmp_signed("!=", value, value.type(0))

    return types.boolean(flag), generate


#: For kernels: whether the first number of an array is not 0.
is_set: Any = intrinsic(_is_set)
