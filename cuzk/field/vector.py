"""A view of values that lie one after another in memory: elements, points, or machine integers.

`Vector(dtype)` is a numba type whose value is an address; `v[i]` loads and `v[i] = x` stores a whole
element, point or integer, so that loops over key files and limb arrays read like loops over lists. It
carries no length: the caller knows it. Values are little-endian limbs, packed, Fp2 as c0 then c1,
points as their coordinates in order. On the CPU an address needs only 4-byte alignment; on CUDA
elements are read and written 16 bytes at a time, and addresses are multiples of 16.

`Vector(dtype, shared=True)` lies in the shared memory of a CUDA block (`in_shared`).

`VectorView` is its twin for plain Python, over a uint32 array.
"""

from __future__ import annotations

import operator
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.core.datamodel import models
from numba.core.extending import intrinsic, overload, register_model
from numba.core.typing import signature

from cuzk.field.carry import words_of
from cuzk.field.element import ELEMENT_TYPES, Element, ElementType
from cuzk.field.host import limbs_to_ints

I8 = ir.IntType(8)
I32 = ir.IntType(32)
I64 = ir.IntType(64)
CHUNK = 4  # 32-bit words of one access on CUDA: the widest that PTX has, ld.v4.u32
GLOBAL_SPACE, SHARED_SPACE = 1, 3  # NVVM IR, "Address Spaces"


class Vector(types.Type):
    """The numba type of a view; dtype is an ElementType, a tower type, a named tuple of them, or an int type."""

    def __init__(self, dtype: types.Type, shared: bool = False) -> None:
        self.dtype, self.shared = dtype, shared
        super().__init__(name=f"{'Shared' if shared else ''}Vector({dtype.name})")


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


def leaves(dtype: types.Type) -> list[types.Type]:
    """The elements, or the integer, that a type is made of."""
    parts = components(dtype)
    return [dtype] if parts is None else [leaf for part in parts for leaf in leaves(part)]


def byte_size(dtype: types.Type) -> int:
    parts = components(dtype)
    if parts is not None:
        return sum(byte_size(part) for part in parts)
    if isinstance(dtype, ElementType):
        return dtype.field.bytes
    # a type whose values are shared by threads says how many bytes they all take
    return getattr(dtype, "bytes", None) or dtype.bitwidth // 8


def _own_place(builder: ir.IRBuilder, dtype: types.Type, address: ir.Value) -> ir.Value:
    """Where this thread's part of an element lies, if threads share it (`lanes.Fp2LaneType`)."""
    return builder.add(address, dtype.place(builder)) if hasattr(dtype, "place") else address


def _pointer(builder: ir.IRBuilder, address: ir.Value, offset: int, kind: ir.Type, space: int = 0) -> ir.Value:
    return builder.inttoptr(builder.add(address, ir.Constant(I64, offset)), kind.as_pointer(space))


def _space(context: Any, vector: Vector) -> int:
    """The address space of a view's values: CUDA tells its memories apart, so that ptxas need not ask."""
    if not _on_cuda(context):
        return 0
    return SHARED_SPACE if vector.shared else GLOBAL_SPACE


_ANY_ELEMENT = next(iter(ELEMENT_TYPES.values()))


def _on_cuda(context: Any) -> bool:
    return isinstance(context.get_value_type(_ANY_ELEMENT), ir.ArrayType)


def _load(
    context: Any, builder: ir.IRBuilder, dtype: types.Type, address: ir.Value, offset: int, space: int
) -> ir.Value:
    parts = components(dtype)
    kind = context.get_value_type(dtype)
    if parts is None:
        if not isinstance(kind, ir.ArrayType):
            align = byte_size(dtype) if space else 4
            return builder.load(_pointer(builder, address, offset, kind, space), align=align, typ=kind)
        return _load_words(builder, kind, _own_place(builder, dtype, address), offset, space)
    value: ir.Value = ir.Constant(kind, ir.Undefined)
    for i, part in enumerate(parts):
        value = builder.insert_value(value, _load(context, builder, part, address, offset, space), i)
        offset += byte_size(part)
    return value


def _store(
    context: Any,
    builder: ir.IRBuilder,
    dtype: types.Type,
    address: ir.Value,
    offset: int,
    space: int,
    value: ir.Value,
) -> None:
    parts = components(dtype)
    if parts is None:
        kind = context.get_value_type(dtype)
        if isinstance(kind, ir.ArrayType):
            _store_words(builder, kind, _own_place(builder, dtype, address), offset, space, value)
        else:
            align = byte_size(dtype) if space else 4
            builder.store(value, _pointer(builder, address, offset, kind, space), align=align)
        return
    for i, part in enumerate(parts):
        _store(context, builder, part, address, offset, space, builder.extract_value(value, i))
        offset += byte_size(part)


def _chunk_pointer(
    builder: ir.IRBuilder, kind: ir.ArrayType, address: ir.Value, offset: int, space: int, first: int
) -> ir.Value:
    """Where word `first` of an element lies, and the three that follow.

    Eight neighbouring threads of a block are served at once if their 16 bytes lie in different banks, of which there
    are 128 bytes. Elements of 32 bytes that follow each other would use only half the banks, twice: so in shared
    memory those in every second 128 bytes have their halves swapped.
    """
    quad = ir.VectorType(I32, CHUNK)
    if space != SHARED_SPACE or kind.count != 2 * CHUNK:
        return _pointer(builder, address, offset + 4 * first, quad, space)
    begin = builder.add(address, ir.Constant(I64, offset))
    swapped = builder.and_(builder.lshr(begin, ir.Constant(I64, 3)), ir.Constant(I64, 4 * CHUNK))
    place = builder.xor(builder.add(begin, ir.Constant(I64, 4 * first)), swapped)
    return builder.inttoptr(place, quad.as_pointer(space))


def _load_words(builder: ir.IRBuilder, kind: ir.ArrayType, address: ir.Value, offset: int, space: int) -> ir.Value:
    """[L x i32] by 16-byte loads."""
    quad = ir.VectorType(I32, CHUNK)
    value: ir.Value = ir.Constant(kind, ir.Undefined)
    for first in range(0, kind.count, CHUNK):
        words = builder.load(_chunk_pointer(builder, kind, address, offset, space, first), align=4 * CHUNK, typ=quad)
        for i in range(CHUNK):
            value = builder.insert_value(value, builder.extract_element(words, ir.Constant(I32, i)), first + i)
    return value


def _store_words(
    builder: ir.IRBuilder, kind: ir.ArrayType, address: ir.Value, offset: int, space: int, value: ir.Value
) -> None:
    """[L x i32] by 16-byte stores."""
    quad = ir.VectorType(I32, CHUNK)
    for first in range(0, kind.count, CHUNK):
        words: ir.Value = ir.Constant(quad, ir.Undefined)
        for i in range(CHUNK):
            words = builder.insert_element(words, builder.extract_value(value, first + i), ir.Constant(I32, i))
        builder.store(words, _chunk_pointer(builder, kind, address, offset, space, first), align=4 * CHUNK)


def _element_address(builder: ir.IRBuilder, dtype: types.Type, base: ir.Value, index: ir.Value) -> ir.Value:
    return builder.add(base, builder.mul(index, ir.Constant(I64, byte_size(dtype))))


@intrinsic
def _get(typingctx, vector, index):  # type: ignore[no-untyped-def]
    def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
        address = _element_address(builder, vector.dtype, *args)
        return _load(context, builder, vector.dtype, address, 0, _space(context, vector))

    return signature(vector.dtype, vector, types.int64), codegen


@intrinsic
def _set(typingctx, vector, index, value):  # type: ignore[no-untyped-def]
    def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
        address = _element_address(builder, vector.dtype, *args[:2])
        _store(context, builder, vector.dtype, address, 0, _space(context, vector), args[2])
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


def in_shared(array: np.ndarray, like: VectorView) -> VectorView:
    """A view of a block's shared memory whose values have the type of `like`'s.

    array: `cuda.shared.array(0, uint32)`, the dynamic shared memory that the launch asked for.
    """
    return VectorView(like.field, array, like.parts, like.build, like.flatten, lanes=like.lanes)


@intrinsic
def _in_shared(typingctx, array, like):  # type: ignore[no-untyped-def]
    def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
        data = context.make_array(array)(context, builder, args[0]).data
        return builder.ptrtoint(builder.addrspacecast(data, ir.PointerType(I32, SHARED_SPACE)), I64)

    return signature(Vector(like.dtype, shared=True), array, like), codegen


@overload(in_shared)
def _overload_in_shared(array, like):  # type: ignore[no-untyped-def]
    if isinstance(array, types.Array) and isinstance(like, Vector):
        return lambda array, like: _in_shared(array, like)


_atomic = threading.Lock()


def atomic_add(vector: Any, index: int, value: int) -> int:
    """vector[index] += value for a view of uint32, as one step among all threads; returns what was there before.

    Compiled code: CUDA only.
    """
    with _atomic:
        before = int(vector[index])
        vector[index] = (before + value) & 0xFFFFFFFF
    return before


@intrinsic
def _atomic_add(typingctx, vector, index, value):  # type: ignore[no-untyped-def]
    def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
        address = _element_address(builder, vector.dtype, *args[:2])
        pointer = _pointer(builder, address, 0, I32, _space(context, vector))
        return builder.zext(builder.atomic_rmw("add", pointer, builder.trunc(args[2], I32), "monotonic"), I64)

    return signature(types.int64, vector, types.int64, types.int64), codegen


@overload(atomic_add)
def _overload_atomic_add(vector, index, value):  # type: ignore[no-untyped-def]
    if isinstance(vector, Vector) and vector.dtype == types.uint32:
        return lambda vector, index, value: _atomic_add(vector, index, value)


class VectorView:
    """The plain Python twin: values of `parts` elements of a field in a flat uint32 array.

    build: makes a value of its elements in order (`Affine`, or the identity for bare elements);
    flatten: the inverse, with None for an element that is another thread's to write;
    lanes: threads that share a value (`lanes.py`).
    """

    def __init__(
        self,
        field: Any,
        array: np.ndarray,
        parts: int = 1,
        build: Callable[..., Any] = lambda x: x,
        flatten: Callable[[Any], tuple[Element | None, ...]] = lambda x: (x,),
        start: int = 0,
        lanes: int = 1,
    ) -> None:
        self.field, self.parts, self.build, self.flatten, self.start = field, parts, build, flatten, start
        self.lanes = lanes
        self.array = array.reshape(-1, parts, field.limbs)

    def __getitem__(self, index: int) -> Any:
        return self.build(*(Element(self.field, x) for x in limbs_to_ints(self.array[self.start + index])))

    def __setitem__(self, index: int, value: Any) -> None:
        for part, element in enumerate(self.flatten(value)):
            if element is not None:
                self.array[self.start + index, part] = words_of(element.limbs_value, self.field.limbs)

    def advance(self, count: int) -> VectorView:
        flat = self.array.reshape(-1)
        return VectorView(self.field, flat, self.parts, self.build, self.flatten, self.start + count, self.lanes)
