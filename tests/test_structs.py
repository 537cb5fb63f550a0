"""Structs: what kernels are handed by one address."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from numba import typeof

from banditmesh.sim.compiled.kernels import structs
from banditmesh.sim.compiled.kernels.compiling import uncached
from banditmesh.sim.compiled.kernels.structs import Struct


class Inner(Struct):
    grid: np.ndarray
    is_on: bool


class Outer(Struct):
    first: int
    share: float
    inner: Inner
    numbers: np.ndarray
    cube: np.ndarray
    is_off: bool


@uncached
def read(outer, other, found):
    inner = outer.inner
    found[0], found[1] = outer.first, outer.share
    for i in range(inner.grid.shape[0]):
        for j in range(inner.grid.shape[1]):
            found[2] = 10 * found[2] + inner.grid[i, j]
    found[3] = len(outer.numbers)
    found[4] = outer.numbers.sum()
    found[5] = outer.cube[1, 2, -1]
    found[6] = 2 * inner.is_on + outer.is_off
    found[7] = other.grid[0, -1]
    outer.numbers[0] = -1


def outer_of(**changes):
    inner = Inner(np.array([[1, 2, 3], [4, 5, 6]], dtype=np.int16), is_on=True)
    fields = {
        "first": -7,
        "share": 0.125,
        "inner": inner,
        "numbers": np.array([2**40, 5], dtype=np.uint64).view(np.int64),
        "cube": np.arange(24.0).reshape(2, 3, 4),
        "is_off": False,
    }
    return Outer(**{**fields, **changes})


def found_in(outer):
    found = np.zeros(8)
    read(outer, outer.inner, found)
    return found.tolist()


EXPECTED = [-7.0, 0.125, 123456.0, 2.0, 2**40 + 5.0, 23.0, 2.0, 3.0]


def test_kernels_read_and_write_what_a_struct_holds():
    outer = outer_of()
    assert found_in(outer) == EXPECTED
    assert outer.numbers.tolist() == [-1, 5]


def test_numbers_of_numpy_are_numbers():
    assert found_in(outer_of(first=np.int64(-7), share=np.float64(0.125), is_off=np.bool_(False))) == EXPECTED


def test_arrays_may_be_empty():
    outer = outer_of(inner=Inner(np.zeros((0, 3), dtype=np.int16), is_on=True))
    found = np.zeros(8)
    read(outer, outer_of().inner, found)
    assert found.tolist() == [*EXPECTED[:2], 0.0, *EXPECTED[3:]]


def test_a_copy_that_was_sent_elsewhere_has_its_own_arrays():
    outer = outer_of()
    address = outer.address
    copy = pickle.loads(pickle.dumps(outer))
    assert copy.address != address
    assert found_in(copy) == EXPECTED
    assert outer.numbers.tolist() == [2**40, 5]


def test_arrays_that_are_not_contiguous_are_refused():
    with pytest.raises(TypeError, match="must be contiguous"):
        found_in(outer_of(cube=np.zeros((2, 3, 8))[:, :, ::2]))


def test_content_is_where_numpy_says(monkeypatch):
    arrays = [np.zeros(3), np.zeros((2, 5))[1:], np.array(7), np.zeros(0, dtype=np.int8)]
    assert [structs._read(one) for one in arrays] == [structs._asked(one) for one in arrays]
    monkeypatch.setattr(structs, "_content", structs._asked)
    assert found_in(outer_of()) == EXPECTED


def test_what_may_only_be_read_needs_no_kernel_of_its_own():
    outer = outer_of(cube=np.zeros((2, 3, 4)))
    outer.cube.flags.writeable = False
    frozen = outer_of(cube=outer.cube)
    assert frozen.kind != outer_of().kind
    assert typeof(frozen) == typeof(outer_of())
