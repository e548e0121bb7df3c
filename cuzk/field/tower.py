"""Fp2 = Fp[u]/(u^2 + 1) as an element type, so that G1 and G2 share every formula.

The numba type is an array of its two coordinates; in plain Python it is an `Fp2Element`. On the CPU
a product is one function with two reductions (`llvm._fp2_mul`); on CUDA each coordinate is a sum of two
products with one reduction (`element.mul_add`): as many wide products as Karatsuba's method takes, in
fewer registers. Fp6 and Fp12 are built on this in `tower12.py`.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Any

from llvmlite import ir
from numba.core import types
from numba.core.datamodel import models
from numba.core.extending import intrinsic, overload, overload_attribute, register_model
from numba.core.typing import signature

from cuzk.field import llvm
from cuzk.field.element import (
    Element,
    ElementType,
    device_function,
    double,
    element_type,
    is_zero,
    mul_add,
    mul_sub,
    one_like,
    sqr,
    zero_like,
)
from cuzk.field.params import CURVES, Field
from cuzk.field.prime import inv, power


class TowerType(types.Type):
    """An extension of a field as the array of its coordinates, lowest degree first."""

    def __init__(self, name: str, base: types.Type, degree: int) -> None:
        self.base = base
        self.components = [base] * degree
        super().__init__(name=name)


class _TowerModel(models.PrimitiveModel):
    def __init__(self, dmm: Any, fe_type: TowerType) -> None:
        part = dmm.lookup(fe_type.base).get_value_type()
        super().__init__(dmm, fe_type, ir.ArrayType(part, len(fe_type.components)))


class Fp2Type(TowerType):
    """The numba type of an element of Fp2, Montgomery coordinates c0 + c1 u."""

    def __init__(self, field: Field) -> None:
        self.field = field
        super().__init__(f"Fp2({field.name})", element_type(field), 2)


register_model(Fp2Type)(_TowerModel)

FP2_TYPES: dict[str, Fp2Type] = {curve.fp.name: Fp2Type(curve.fp) for curve in CURVES.values()}


def fp2_type(field: Field) -> Fp2Type:
    return FP2_TYPES[field.name]


@dataclass(frozen=True)
class Fp2Element:
    """The plain Python twin: two `Element`s."""

    c0: Element
    c1: Element

    def __add__(self, other: Fp2Element) -> Fp2Element:
        return Fp2Element(self.c0 + other.c0, self.c1 + other.c1)

    def __sub__(self, other: Fp2Element) -> Fp2Element:
        return Fp2Element(self.c0 - other.c0, self.c1 - other.c1)

    def __neg__(self) -> Fp2Element:
        return Fp2Element(-self.c0, -self.c1)

    def __mul__(self, other: Fp2Element) -> Fp2Element:
        return _schoolbook(self, other)

    def __pow__(self, exponent: int) -> Fp2Element:
        return power(self, exponent)  # type: ignore[no-any-return]

    def sqr(self) -> Fp2Element:
        return _complex_square(self)

    def double(self) -> Fp2Element:
        return Fp2Element(double(self.c0), double(self.c1))

    def zero_like(self) -> Fp2Element:
        return Fp2Element(zero_like(self.c0), zero_like(self.c0))

    def one_like(self) -> Fp2Element:
        return Fp2Element(one_like(self.c0), zero_like(self.c0))

    def is_zero(self) -> bool:
        return bool(is_zero(self.c0) and is_zero(self.c1))

    def inv(self) -> Fp2Element:
        return _inverse(self)

    def __repr__(self) -> str:
        return f"({self.c0.value} + {self.c1.value} u)"


def fp2(c0: Any, c1: Any) -> Any:
    """c0 + c1 u."""
    return Fp2Element(c0, c1)


@intrinsic
def _make(typingctx, c0, c1):  # type: ignore[no-untyped-def]
    result = fp2_type(c0.field)

    def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
        return pack(context, builder, result, list(args))

    return signature(result, c0, c1), codegen


def pack(context: Any, builder: ir.IRBuilder, kind: TowerType, parts: list[ir.Value]) -> ir.Value:
    """The LLVM value of a tower type from its coordinates."""
    value: ir.Value = ir.Constant(context.get_value_type(kind), ir.Undefined)
    for i, part in enumerate(parts):
        value = builder.insert_value(value, part, i)
    return value


@intrinsic(prefer_literal=True)
def coordinate(typingctx, x, index):  # type: ignore[no-untyped-def]
    """Coordinate `index` (a literal) of a tower element."""
    if not isinstance(index, types.IntegerLiteral):
        return None  # numba tries again with the literal type
    position = index.literal_value

    def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
        return builder.extract_value(args[0], position)

    return signature(x.base, x, index), codegen


@overload(fp2)
def _overload_fp2(c0, c1):  # type: ignore[no-untyped-def]
    if isinstance(c0, ElementType) and c0 == c1:
        return lambda c0, c1: _make(c0, c1)


@overload_attribute(Fp2Type, "c0")
def _overload_c0(x):  # type: ignore[no-untyped-def]
    return lambda x: coordinate(x, 0)


@overload_attribute(Fp2Type, "c1")
def _overload_c1(x):  # type: ignore[no-untyped-def]
    return lambda x: coordinate(x, 1)


@device_function
def _schoolbook(a: Any, b: Any) -> Any:
    # 4 products and 2 reductions: 6 L^2 wide products, as 3M
    return fp2(mul_sub(a.c0, b.c0, a.c1, b.c1), mul_add(a.c0, b.c1, a.c1, b.c0))


@device_function
def _complex_square(a: Any) -> Any:
    # 2M: (a0 + a1)(a0 - a1) + 2 a0 a1 u
    return fp2((a.c0 + a.c1) * (a.c0 - a.c1), double(a.c0 * a.c1))


@device_function
def _inverse(a: Any) -> Any:
    # (a0 - a1 u)/(a0^2 + a1^2); 0 for 0
    norm = inv(sqr(a.c0) + sqr(a.c1))
    return fp2(a.c0 * norm, -(a.c1 * norm))


@intrinsic
def _fp2_mul(typingctx, a, b):  # type: ignore[no-untyped-def]
    def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
        parts = [builder.extract_value(x, i) for x in args for i in range(2)]
        result = llvm.emit(builder, "fp2.mul", a.field, parts)
        return pack(context, builder, a, [builder.extract_value(result, i) for i in range(2)])

    return signature(a, a, b), codegen


@intrinsic
def _fp2_sqr(typingctx, a):  # type: ignore[no-untyped-def]
    def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
        parts = [builder.extract_value(args[0], i) for i in range(2)]
        result = llvm.emit(builder, "fp2.sqr", a.field, parts)
        return pack(context, builder, a, [builder.extract_value(result, i) for i in range(2)])

    return signature(a, a), codegen


def _same(a: Any, b: Any) -> bool:
    return isinstance(a, Fp2Type) and a == b


@overload(operator.mul, target="cpu")
def _overload_mul(a, b):  # type: ignore[no-untyped-def]
    if _same(a, b):
        return lambda a, b: _fp2_mul(a, b)


@overload(operator.mul, target="cuda")
def _overload_mul_cuda(a, b):  # type: ignore[no-untyped-def]
    if _same(a, b):
        return lambda a, b: _schoolbook(a, b)


@overload(sqr, target="cpu")
def _overload_sqr(x):  # type: ignore[no-untyped-def]
    if isinstance(x, Fp2Type):
        return lambda x: _fp2_sqr(x)


@overload(sqr, target="cuda")
def _overload_sqr_cuda(x):  # type: ignore[no-untyped-def]
    if isinstance(x, Fp2Type):
        return lambda x: _complex_square(x)


@overload(operator.add)
def _overload_add(a, b):  # type: ignore[no-untyped-def]
    if _same(a, b):
        return lambda a, b: fp2(a.c0 + b.c0, a.c1 + b.c1)


@overload(operator.sub)
def _overload_sub(a, b):  # type: ignore[no-untyped-def]
    if _same(a, b):
        return lambda a, b: fp2(a.c0 - b.c0, a.c1 - b.c1)


@overload(operator.neg)
def _overload_neg(a):  # type: ignore[no-untyped-def]
    if isinstance(a, Fp2Type):
        return lambda a: fp2(-a.c0, -a.c1)


@overload(operator.eq)
def _overload_eq(a, b):  # type: ignore[no-untyped-def]
    if _same(a, b):
        return lambda a, b: a.c0 == b.c0 and a.c1 == b.c1


@overload(operator.ne)
def _overload_ne(a, b):  # type: ignore[no-untyped-def]
    if _same(a, b):
        return lambda a, b: not (a.c0 == b.c0 and a.c1 == b.c1)


@overload(double)
def _overload_double(x):  # type: ignore[no-untyped-def]
    if isinstance(x, Fp2Type):
        return lambda x: fp2(double(x.c0), double(x.c1))


@overload(zero_like)
def _overload_zero_like(x):  # type: ignore[no-untyped-def]
    if isinstance(x, Fp2Type):
        return lambda x: fp2(zero_like(x.c0), zero_like(x.c0))


@overload(one_like)
def _overload_one_like(x):  # type: ignore[no-untyped-def]
    if isinstance(x, Fp2Type):
        return lambda x: fp2(one_like(x.c0), zero_like(x.c0))


@overload(is_zero)
def _overload_is_zero(x):  # type: ignore[no-untyped-def]
    if isinstance(x, Fp2Type):
        return lambda x: is_zero(x.c0) and is_zero(x.c1)


@overload(inv)
def _overload_inv(x):  # type: ignore[no-untyped-def]
    if isinstance(x, Fp2Type):
        return lambda x: _inverse(x)


@overload(operator.pow)
def _overload_pow(x, exponent):  # type: ignore[no-untyped-def]
    if isinstance(x, Fp2Type) and isinstance(exponent, types.Integer):
        return lambda x, exponent: power(x, exponent)
