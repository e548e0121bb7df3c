"""An element of Fp2 held by two neighbouring threads of a warp, one coordinate each: the form that G2 takes on CUDA.

A coordinate of 12 words leaves room for the values of a point addition in a thread's registers; both coordinates
do not, and spill. The pair does the products of one thread (`tower._schoolbook`), half each, and exchanges words by
shuffles, which have a pipe of their own. Operators and functions are those of every element type, so the formulas of
`curve/point.py` need not know.

What a kernel owes a pair: its threads 2k and 2k + 1 do the same work, in the same order. Work is numbered by
`cuda.grid(1) // lanes(view)`; a view's loads and stores move each thread's own coordinate; comparisons give both
threads the same answer, so that branches on them keep the pair together. Blocks are one-dimensional, of an even number
of threads.

`LaneElement` is the twin for plain Python: in the simulator, where each thread of a block is a thread of Python.
"""

from __future__ import annotations

import operator
import queue
import threading
from dataclasses import dataclass
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.datamodel import models
from numba.core.extending import intrinsic, overload, register_model
from numba.core.typing import signature

from cuzk.field.element import (
    Element,
    ElementType,
    device_function,
    double,
    element_type,
    is_zero,
    mul_add,
    one_like,
    sqr,
    zero_like,
)
from cuzk.field.params import CURVES, Field
from cuzk.field.prime import inv, power
from cuzk.field.vector import I32, I64, Vector, leaves

BUTTERFLY = 3  # mode of shfl.sync: the lane whose number is one's own xor an operand (NVVM IR, "Warp-level shuffles")
CLAMP = 0x1F  # a warp is one segment
WAIT = 60.0  # seconds that a simulated thread gives its partner


class Fp2LaneType(types.Type):
    """The numba type of one thread's coordinate of an element of Fp2, Montgomery; CUDA only.

    Even threads of a block have c0, odd ones c1. In memory the element lies as any other of Fp2.
    """

    lanes = 2

    def __init__(self, field: Field) -> None:
        self.field = field
        self.base = element_type(field)
        self.bytes = 2 * field.bytes
        super().__init__(name=f"Fp2Lane({field.name})")

    def place(self, builder: ir.IRBuilder) -> ir.Value:
        """Bytes from an element's beginning to this thread's coordinate."""
        return builder.mul(builder.zext(_lane(builder), I64), ir.Constant(I64, self.field.bytes))


@register_model(Fp2LaneType)
class _LaneModel(models.PrimitiveModel):
    def __init__(self, dmm: Any, fe_type: Fp2LaneType) -> None:
        super().__init__(dmm, fe_type, ir.ArrayType(I32, fe_type.field.limbs))


FP2_LANE_TYPES: dict[str, Fp2LaneType] = {curve.fp.name: Fp2LaneType(curve.fp) for curve in CURVES.values()}


def fp2_lane_type(field: Field) -> Fp2LaneType:
    return FP2_LANE_TYPES[field.name]


def lanes(view: Any) -> int:
    """How many neighbouring threads hold one value of a view: 2 in G2, else 1; known when a kernel is compiled."""
    return view.lanes  # type: ignore[no-any-return]


@overload(lanes)
def _overload_lanes(view):  # type: ignore[no-untyped-def]
    if isinstance(view, Vector):
        count = getattr(leaves(view.dtype)[0], "lanes", 1)
        return lambda view: count


# --- between the threads of a pair -----------------------------------------------------------------------


def _special_register(builder: ir.IRBuilder, name: str) -> ir.Value:
    kind = ir.FunctionType(I32, [])
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, f"llvm.nvvm.read.ptx.sreg.{name}"), [])


def _lane(builder: ir.IRBuilder) -> ir.Value:
    """i32: 0 in even threads, 1 in odd ones."""
    return builder.and_(_special_register(builder, "tid.x"), ir.Constant(I32, 1))


def _exchange(builder: ir.IRBuilder, word: ir.Value) -> ir.Value:
    """The partner's word. The mask is the pair's alone: other pairs of the warp may be in another branch."""
    lane = _special_register(builder, "laneid")
    mask = builder.shl(ir.Constant(I32, 3), builder.and_(lane, ir.Constant(I32, -2)))
    pair = ir.LiteralStructType([I32, ir.IntType(1)])
    kind = ir.FunctionType(pair, [I32] * 5)
    shuffle = cgutils.get_or_insert_function(builder.module, kind, "llvm.nvvm.shfl.sync.i32")
    mode, distance, clamp = (ir.Constant(I32, x) for x in (BUTTERFLY, 1, CLAMP))
    return builder.extract_value(builder.call(shuffle, [mask, mode, word, distance, clamp]), 0)


def _meet(x: Any) -> Any:
    """The partner's object, in the simulator: each thread has a queue, which its partner fills."""
    thread: Any = threading.current_thread()
    mail = vars(thread._manager).setdefault("mail", {})
    mail.setdefault(thread.thread_id ^ 1, queue.SimpleQueue()).put(x)
    try:
        return mail.setdefault(thread.thread_id, queue.SimpleQueue()).get(timeout=WAIT)
    except queue.Empty:
        raise RuntimeError(f"thread {thread.thread_id}: its partner went another way") from None


def is_odd() -> bool:
    """Whether this thread holds c1 of its pair's elements."""
    return bool(threading.current_thread().thread_id & 1)  # type: ignore[attr-defined]


@intrinsic
def _is_odd(typingctx):  # type: ignore[no-untyped-def]
    def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
        return builder.icmp_unsigned("!=", _lane(builder), ir.Constant(I32, 0))

    return signature(types.boolean), codegen


@overload(is_odd)
def _overload_is_odd():  # type: ignore[no-untyped-def]
    return lambda: _is_odd()


def partner(x: Element) -> Element:
    """The other thread's x, an element of the base field."""
    return _meet(x)  # type: ignore[no-any-return]


@intrinsic
def _partner(typingctx, x):  # type: ignore[no-untyped-def]
    def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
        value = args[0]
        for i in range(value.type.count):
            value = builder.insert_value(value, _exchange(builder, builder.extract_value(args[0], i)), i)
        return value

    return signature(x, x), codegen


@overload(partner)
def _overload_partner(x):  # type: ignore[no-untyped-def]
    if isinstance(x, ElementType):
        return lambda x: _partner(x)


def both(flag: bool) -> bool:
    """Whether the flag is true in both threads."""
    other = _meet(bool(flag))
    return bool(flag and other)


@intrinsic
def _both(typingctx, flag):  # type: ignore[no-untyped-def]
    def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
        word = builder.zext(args[0], I32)
        return builder.trunc(builder.and_(word, _exchange(builder, word)), ir.IntType(1))

    return signature(types.boolean, types.boolean), codegen


@overload(both)
def _overload_both(flag):  # type: ignore[no-untyped-def]
    return lambda flag: _both(flag)


def choose(condition: bool, x: Element, y: Element) -> Element:
    """x where the condition is true, else y, without a branch."""
    return x if condition else y


@intrinsic
def _choose(typingctx, condition, x, y):  # type: ignore[no-untyped-def]
    def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
        condition, x, y = args
        value = x
        for i in range(value.type.count):
            word = builder.select(condition, builder.extract_value(x, i), builder.extract_value(y, i))
            value = builder.insert_value(value, word, i)
        return value

    return signature(x, types.boolean, x, y), codegen


@overload(choose)
def _overload_choose(condition, x, y):  # type: ignore[no-untyped-def]
    if isinstance(x, ElementType) and x == y:
        return lambda condition, x, y: _choose(condition, x, y)


# --- one thread's coordinate, and back -------------------------------------------------------------------


def lane_element(x: Element) -> LaneElement:
    """The element of Fp2 whose coordinate in this thread is x."""
    return LaneElement(x)


@intrinsic
def _lane_element(typingctx, x):  # type: ignore[no-untyped-def]
    return signature(fp2_lane_type(x.field), x), lambda context, builder, sig, args: args[0]


@overload(lane_element)
def _overload_lane_element(x):  # type: ignore[no-untyped-def]
    if isinstance(x, ElementType):
        return lambda x: _lane_element(x)


def own(x: LaneElement) -> Element:
    """This thread's coordinate."""
    return x.own


@intrinsic
def _own(typingctx, x):  # type: ignore[no-untyped-def]
    return signature(x.base, x), lambda context, builder, sig, args: args[0]


@overload(own)
def _overload_own(x):  # type: ignore[no-untyped-def]
    if isinstance(x, Fp2LaneType):
        return lambda x: _own(x)


# --- the operations --------------------------------------------------------------------------------------


@device_function
def _product(a: Any, b: Any) -> Any:
    # c0 = a0 b0 + a1 (-b1), c1 = a1 b0 + a0 b1: two products with one reduction a thread
    x, y = own(a), own(b)
    x_, y_ = partner(x), partner(y)
    odd = is_odd()
    return lane_element(mul_add(x, choose(odd, y_, y), x_, choose(odd, y, -y_)))


@device_function
def _square(a: Any) -> Any:
    # c0 = (a0 + a1)(a0 - a1), c1 = (a1 + a1) a0: one product a thread
    x = own(a)
    x_ = partner(x)
    odd = is_odd()
    return lane_element((x + choose(odd, x, x_)) * choose(odd, x_, x - x_))


@device_function
def _inverse(a: Any) -> Any:
    # (a0 - a1 u)/(a0^2 + a1^2), the inversion in both threads; 0 for 0
    x = own(a)
    x_ = partner(x)
    y = x * inv(mul_add(x, x, x_, x_))
    return lane_element(choose(is_odd(), -y, y))


@device_function
def _add(a: Any, b: Any) -> Any:
    return lane_element(own(a) + own(b))


@device_function
def _subtract(a: Any, b: Any) -> Any:
    return lane_element(own(a) - own(b))


@device_function
def _negate(a: Any) -> Any:
    return lane_element(-own(a))


@device_function
def _double(a: Any) -> Any:
    return lane_element(double(own(a)))


@device_function
def _zero_like(a: Any) -> Any:
    return lane_element(zero_like(own(a)))


@device_function
def _one_like(a: Any) -> Any:
    zero = zero_like(own(a))
    return lane_element(choose(is_odd(), zero, one_like(zero)))


@device_function
def _is_zero(a: Any) -> Any:
    return both(is_zero(own(a)))


@device_function
def _equal(a: Any, b: Any) -> Any:
    return both(own(a) == own(b))


@dataclass(frozen=True)
class LaneElement:
    """The plain Python twin: a simulated thread's coordinate."""

    own: Element

    def __add__(self, other: LaneElement) -> LaneElement:
        return _add(self, other)  # type: ignore[no-any-return]

    def __sub__(self, other: LaneElement) -> LaneElement:
        return _subtract(self, other)  # type: ignore[no-any-return]

    def __neg__(self) -> LaneElement:
        return _negate(self)  # type: ignore[no-any-return]

    def __mul__(self, other: LaneElement) -> LaneElement:
        return _product(self, other)  # type: ignore[no-any-return]

    def __pow__(self, exponent: int) -> LaneElement:
        return power(self, exponent)  # type: ignore[no-any-return]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LaneElement) and bool(_equal(self, other))

    def __hash__(self) -> int:
        raise TypeError("a thread's half of an element has no hash")

    def sqr(self) -> LaneElement:
        return _square(self)  # type: ignore[no-any-return]

    def double(self) -> LaneElement:
        return _double(self)  # type: ignore[no-any-return]

    def inv(self) -> LaneElement:
        return _inverse(self)  # type: ignore[no-any-return]

    def zero_like(self) -> LaneElement:
        return _zero_like(self)  # type: ignore[no-any-return]

    def one_like(self) -> LaneElement:
        return _one_like(self)  # type: ignore[no-any-return]

    def is_zero(self) -> bool:
        return bool(_is_zero(self))


def _same(a: Any, b: Any) -> bool:
    return isinstance(a, Fp2LaneType) and a == b


@overload(operator.mul)
def _overload_mul(a, b):  # type: ignore[no-untyped-def]
    if _same(a, b):
        return lambda a, b: _product(a, b)


@overload(operator.add)
def _overload_add(a, b):  # type: ignore[no-untyped-def]
    if _same(a, b):
        return lambda a, b: _add(a, b)


@overload(operator.sub)
def _overload_sub(a, b):  # type: ignore[no-untyped-def]
    if _same(a, b):
        return lambda a, b: _subtract(a, b)


@overload(operator.neg)
def _overload_neg(a):  # type: ignore[no-untyped-def]
    if isinstance(a, Fp2LaneType):
        return lambda a: _negate(a)


@overload(operator.eq)
def _overload_eq(a, b):  # type: ignore[no-untyped-def]
    if _same(a, b):
        return lambda a, b: _equal(a, b)


@overload(operator.ne)
def _overload_ne(a, b):  # type: ignore[no-untyped-def]
    if _same(a, b):
        return lambda a, b: not _equal(a, b)


@overload(operator.pow)
def _overload_pow(x, exponent):  # type: ignore[no-untyped-def]
    if isinstance(x, Fp2LaneType) and isinstance(exponent, types.Integer):
        return lambda x, exponent: power(x, exponent)


@overload(sqr)
def _overload_sqr(x):  # type: ignore[no-untyped-def]
    if isinstance(x, Fp2LaneType):
        return lambda x: _square(x)


@overload(double)
def _overload_double(x):  # type: ignore[no-untyped-def]
    if isinstance(x, Fp2LaneType):
        return lambda x: _double(x)


@overload(inv)
def _overload_inv(x):  # type: ignore[no-untyped-def]
    if isinstance(x, Fp2LaneType):
        return lambda x: _inverse(x)


@overload(zero_like)
def _overload_zero_like(x):  # type: ignore[no-untyped-def]
    if isinstance(x, Fp2LaneType):
        return lambda x: _zero_like(x)


@overload(one_like)
def _overload_one_like(x):  # type: ignore[no-untyped-def]
    if isinstance(x, Fp2LaneType):
        return lambda x: _one_like(x)


@overload(is_zero)
def _overload_is_zero(x):  # type: ignore[no-untyped-def]
    if isinstance(x, Fp2LaneType):
        return lambda x: _is_zero(x)
