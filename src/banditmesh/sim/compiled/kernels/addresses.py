"""What numba makes of a `Struct`: an address, from which a field is loaded where its name is written."""

from __future__ import annotations

from itertools import accumulate
from typing import Any, Final

import numba
from llvmlite import ir
from numba import extending, types
from numba.core.typing.templates import AttributeTemplate
from numba.np.arrayobj import populate_array

from .identity import digest
from .structs import Struct

_BYTE: Final = ir.IntType(8)
_WORD: Final = ir.IntType(64)
#: The types met so far, by what they depend on.
_types: dict[tuple[Any, ...], StructType] = {}


class StructType(types.Type):  # type: ignore[misc]
    """The type of a struct: the names of its fields in order, with their types."""

    def __init__(self, name: str, members: tuple[tuple[str, types.Type], ...]) -> None:
        self.members = dict(members)
        *places, self.n_words = accumulate(map(_n_words, self.members.values()), initial=0)
        self.places = dict(zip(self.members, places, strict=True))
        super().__init__(name=f"{name}_{digest(*(f'{member} {one}' for member, one in members))}")


def _n_words(kind: types.Type) -> int:
    if isinstance(kind, StructType):
        return kind.n_words
    return 1 + kind.ndim if isinstance(kind, types.Array) else 1


def _typeof(value: Struct, _: Any) -> StructType:
    if value.kind not in _types:
        members = tuple((name, _of_member(getattr(value, name))) for name in value.__dataclass_fields__)
        _types[value.kind] = StructType(type(value).__name__, members)
    return _types[value.kind]


def _of_member(value: Any) -> types.Type:
    kind = numba.typeof(value)
    if isinstance(kind, types.Array) and kind.layout != "C":
        raise TypeError("a struct's arrays must be contiguous")
    # Kernels are given an address, and do not write to what may only be read.
    return kind.copy(readonly=False) if isinstance(kind, types.Array) else kind


class _Address(extending.models.OpaqueModel):  # type: ignore[misc]
    def from_argument(self, _: Any, value: Any) -> Any:
        # So what a loop reads may be read before it, even if it may turn out not to be needed.
        value.attributes.dereferenceable = 8 * self._fe_type.n_words
        return value


def _unbox(_: StructType, value: Any, c: Any) -> Any:
    number = c.pyapi.object_getattr_string(value, "address")
    address = c.pyapi.long_as_voidptr(number)
    c.pyapi.decref(number)
    return extending.NativeValue(address, is_error=c.pyapi.c_api_error())


class _Members(AttributeTemplate):  # type: ignore[misc]
    key = StructType

    def generic_resolve(self, kind: StructType, name: str) -> types.Type | None:
        return kind.members.get(name)


def _load_member(context: Any, builder: Any, kind: StructType, address: Any, name: str) -> Any:
    member, place = kind.members[name], kind.places[name]

    def at(word: int) -> Any:
        return builder.gep(address, [_WORD(8 * word)])

    def load(word: int, of: Any) -> Any:
        loaded = builder.load(builder.bitcast(at(word), of.as_pointer()))
        loaded.set_metadata("invariant.load", builder.module.add_metadata([]))
        return loaded

    if isinstance(member, StructType):
        return at(place)
    if isinstance(member, types.Boolean):
        return builder.trunc(load(place, _BYTE), context.get_value_type(member))
    if not isinstance(member, types.Array):
        return load(place, context.get_value_type(member))
    item = context.get_data_type(member.dtype)
    shape = [load(place + 1 + axis, _WORD) for axis in range(member.ndim)]
    # Known to the compiler, unlike those of arrays that are handed over by themselves.
    strides = [_WORD(context.get_abi_sizeof(item))]
    for length in reversed(shape[1:]):
        strides.insert(0, builder.mul(strides[0], length))
    made = context.make_array(member)(context, builder)
    populate_array(made, load(place, item.as_pointer()), shape, strides, strides[-1], None)
    return made._getvalue()


def register() -> None:
    """Tell numba."""
    extending.typeof_impl.register(Struct)(_typeof)
    extending.register_model(StructType)(_Address)
    extending.unbox(StructType)(_unbox)
    extending.infer_getattr(_Members)
    extending.lower_getattr_generic(StructType)(_load_member)
