"""A view of values that lie one after another in memory: elements, points, or machine integers.

`Vector(dtype)` is a numba type whose value is an address; `v[i]` loads and `v[i] = x` stores a whole
element, point or integer, so that loops over key files and limb arrays read like loops over lists. It
carries no length: the caller knows it. Values are little-endian limbs, packed, Fp2 as c0 then c1,
points as their coordinates in order; addresses need only 4-byte alignment.

`VectorView` is its twin for plain Python, over a uint32 array.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.core.datamodel import models
from numba.core.extending import intrinsic, overload, register_model
from numba.core.typing import signature

from cuzk.field.carry import words_of
from cuzk.field.element import Element, ElementType
from cuzk.field.host import limbs_to_ints

I8 = ir.IntType(8)
I64 = ir.IntType(64)


class Vector(types.Type):
    """The numba type of a view; dtype is an ElementType, a tower type, a named tuple of them, or an int type."""

    def __init__(self, dtype: types.Type) -> None:
        self.dtype = dtype
        super().__init__(name=f"Vector({dtype.name})")


@register_model(Vector)
class _VectorModel(models.PrimitiveModel):
    def __init__(self, dmm: Any, fe_type: Vector) -> None:
        super().__init__(dmm, fe_type, I64)


def components(dtype: types.Type) -> list[types.Type] | None:
    """The parts of a compound type in order; None for an element or an integer.

    A tower type offers them as its attribute `components`; named tuples are tuples of numba's own.
    """
    if isinstance(dtype, types.BaseTuple):
        return list(dtype)
    return getattr(dtype, "components", None)


def byte_size(dtype: types.Type) -> int:
    parts = components(dtype)
    if parts is not None:
        return sum(byte_size(part) for part in parts)
    if isinstance(dtype, ElementType):
        return dtype.field.bytes
    return dtype.bitwidth // 8


def _pointer(builder: ir.IRBuilder, address: ir.Value, offset: int, kind: ir.Type) -> ir.Value:
    return builder.inttoptr(builder.add(address, ir.Constant(I64, offset)), kind.as_pointer())


def _load(context: Any, builder: ir.IRBuilder, dtype: types.Type, address: ir.Value, offset: int) -> ir.Value:
    parts = components(dtype)
    kind = context.get_value_type(dtype)
    if parts is None:
        return builder.load(_pointer(builder, address, offset, kind), align=4, typ=kind)
    value: ir.Value = ir.Constant(kind, ir.Undefined)
    for i, part in enumerate(parts):
        value = builder.insert_value(value, _load(context, builder, part, address, offset), i)
        offset += byte_size(part)
    return value


def _store(
    context: Any, builder: ir.IRBuilder, dtype: types.Type, address: ir.Value, offset: int, value: ir.Value
) -> None:
    parts = components(dtype)
    if parts is None:
        kind = context.get_value_type(dtype)
        builder.store(value, _pointer(builder, address, offset, kind), align=4)
        return
    for i, part in enumerate(parts):
        _store(context, builder, part, address, offset, builder.extract_value(value, i))
        offset += byte_size(part)


def _element_address(builder: ir.IRBuilder, dtype: types.Type, base: ir.Value, index: ir.Value) -> ir.Value:
    return builder.add(base, builder.mul(index, ir.Constant(I64, byte_size(dtype))))


@intrinsic
def _get(typingctx, vector, index):  # type: ignore[no-untyped-def]
    def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
        return _load(context, builder, vector.dtype, _element_address(builder, vector.dtype, *args), 0)

    return signature(vector.dtype, vector, types.int64), codegen


@intrinsic
def _set(typingctx, vector, index, value):  # type: ignore[no-untyped-def]
    def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
        address = _element_address(builder, vector.dtype, *args[:2])
        _store(context, builder, vector.dtype, address, 0, args[2])
        return context.get_dummy_value()

    return signature(types.void, vector, types.int64, vector.dtype), codegen


@intrinsic
def _advance(typingctx, vector, count):  # type: ignore[no-untyped-def]
    def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
        return _element_address(builder, vector.dtype, *args)

    return signature(vector, vector, types.int64), codegen


@overload(operator.getitem)
def _overload_getitem(vector, index):  # type: ignore[no-untyped-def]
    if isinstance(vector, Vector) and isinstance(index, types.Integer):
        return lambda vector, index: _get(vector, index)


@overload(operator.setitem)
def _overload_setitem(vector, index, value):  # type: ignore[no-untyped-def]
    if isinstance(vector, Vector) and isinstance(index, types.Integer):
        return lambda vector, index, value: _set(vector, index, value)


def advance(vector: Any, count: int) -> Any:
    """The view that begins `count` values further on."""
    return vector.advance(count)


@overload(advance)
def _overload_advance(vector, count):  # type: ignore[no-untyped-def]
    if isinstance(vector, Vector):
        return lambda vector, count: _advance(vector, count)


def reinterpret(vector: Any, like: Any) -> Any:
    """The view of the same memory whose values have the type of `like`'s: elements inside a file's records."""
    raise TypeError("views are reinterpreted in compiled code only")


@intrinsic
def _reinterpret(typingctx, vector, like):  # type: ignore[no-untyped-def]
    def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
        return args[0]

    return signature(like, vector, like), codegen


@overload(reinterpret)
def _overload_reinterpret(vector, like):  # type: ignore[no-untyped-def]
    if isinstance(vector, Vector) and isinstance(like, Vector):
        return lambda vector, like: _reinterpret(vector, like)


class VectorView:
    """The plain Python twin: values of `parts` elements of a field in a flat uint32 array.

    build: makes a value of its elements in order (`Affine`, or the identity for bare elements);
    flatten: the inverse.
    """

    def __init__(
        self,
        field: Any,
        array: np.ndarray,
        parts: int = 1,
        build: Callable[..., Any] = lambda x: x,
        flatten: Callable[[Any], tuple[Element, ...]] = lambda x: (x,),
        start: int = 0,
    ) -> None:
        self.field, self.parts, self.build, self.flatten, self.start = field, parts, build, flatten, start
        self.array = array.reshape(-1, parts, field.limbs)

    def __getitem__(self, index: int) -> Any:
        return self.build(*(Element(self.field, x) for x in limbs_to_ints(self.array[self.start + index])))

    def __setitem__(self, index: int, value: Any) -> None:
        for part, element in enumerate(self.flatten(value)):
            self.array[self.start + index, part] = words_of(element.limbs_value, self.field.limbs)

    def advance(self, count: int) -> VectorView:
        flat = self.array.reshape(-1)
        return VectorView(self.field, flat, self.parts, self.build, self.flatten, self.start + count)
