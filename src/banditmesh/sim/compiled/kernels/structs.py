"""Arrays and numbers that kernels are given together, by one address.

A tuple would do the same, but numba takes it apart, into hundreds of numbers, on a kernel's way in, at each call and
for each variable; that was a quarter of what compiling took. Of a struct a kernel gets the address, and loads what it
reads; `addresses` tells numba so.

At the address lie 64-bit words: of a number itself, of an array where its content is and its shape, of another struct
its words. None of them changes while a kernel runs, and the compiler relies on it.
"""

from __future__ import annotations

import struct
from array import array
from ctypes import c_int64
from dataclasses import dataclass
from typing import Any, ClassVar, Final, dataclass_transform

import numpy as np

#: Where an array object has the address of its content, by numpy's headers. Asking numpy takes four times as long.
_CONTENT: Final = object.__basicsize__


def _asked(array: Any) -> int:
    return int(array.__array_interface__["data"][0])


def _read(array: Any) -> int:
    return c_int64.from_address(id(array) + _CONTENT).value


#: Where the content of an array is: read as numpy's headers say, unless this Python lays objects out in another way.
_content: Final = _read if all(_read(one) == _asked(one) for one in (np.zeros(1), np.zeros((2, 3)))) else _asked


@dataclass_transform(frozen_default=True)
class Struct:
    """What kernels are given together: contiguous arrays, numbers and other structs, by the names of a subclass.

    It stays as it is, as mypy sees to, but what is in its arrays may change.
    """

    __dataclass_fields__: ClassVar[dict[str, Any]]

    def __init_subclass__(cls) -> None:
        # To be made and handed over in microseconds, it is not frozen.
        dataclass(eq=False)(cls)

    def __post_init__(self) -> None:
        kind: list[Any] = [type(self)]
        words: list[int] = []
        for value in vars(self).values():
            of_value = type(value)
            if of_value is np.ndarray:
                kind += value.dtype, value.ndim, value.flags.num
                words += _content(value), *value.shape
            elif of_value is int or of_value is bool:
                kind.append(of_value)
                words.append(value)
            elif isinstance(value, Struct):
                kind.append(value.kind)
                words += value.words
            else:
                kind.append(of_value)
                words.append(_bits(value) if isinstance(value, float) else int(value))
        #: What its type depends on, its words, and where they are.
        self.kind: tuple[Any, ...] = tuple(kind)
        self.words: array[int] = array("q", words)
        self.address = self.words.buffer_info()[0]

    def __reduce__(self) -> tuple[Any, ...]:
        # A copy elsewhere has its own arrays.
        return type(self), tuple(getattr(self, name) for name in self.__dataclass_fields__)


def _bits(number: float) -> int:
    [bits] = struct.unpack("q", struct.pack("d", number))
    return int(bits)
