"""Fp6 = Fp2[v]/(v^3 - xi) as an element type, and what Fp6 and Fp12 share; see `Curve` for xi.

As in `tower.py`: the numba type is an array of coordinates, the plain Python twin is a dataclass of
elements, and both run the same formulas. What works coordinate by coordinate (+ - negation) is emitted
over the leaves directly, so that numba compiles no function for it.

Counts: M, S and I are products, squarings and inversions of Fp2.

Source: Devegili, O hEigeartaigh, Scott, Dahab, "Multiplication and squaring on pairing-friendly fields"
(eprint 2006/471), section 4.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from llvmlite import ir
from numba.core import types
from numba.core.extending import intrinsic, overload, overload_attribute, register_model
from numba.core.typing import signature

from cuzk.field.element import (
    Element,
    ElementType,
    device_function,
    double,
    emit,
    is_zero,
    literal,
    one_like,
    sqr,
    zero_like,
)
from cuzk.field.params import CURVES, Curve, Field
from cuzk.field.prime import inv
from cuzk.field.tower import Fp2Element, Fp2Type, TowerType, _TowerModel, coordinate, fp2_type, pack

CURVE_OF_FP: dict[str, Curve] = {curve.fp.name: curve for curve in CURVES.values()}


class HighTowerType(TowerType):
    """A tower over Fp2: its operators work on its leaves."""

    field: Field


class Fp6Type(HighTowerType):
    """The numba type of c0 + c1 v + c2 v^2 over Fp2."""

    def __init__(self, field: Field) -> None:
        self.field = field
        super().__init__(f"Fp6({field.name})", fp2_type(field), 3)


register_model(Fp6Type)(_TowerModel)
FP6_TYPES: dict[str, Fp6Type] = {curve.fp.name: Fp6Type(curve.fp) for curve in CURVES.values()}


@dataclass(frozen=True)
class Fp6Element:
    """The plain Python twin: three `Fp2Element`s."""

    c0: Fp2Element
    c1: Fp2Element
    c2: Fp2Element

    def _map(self, f: Callable[..., Any], *others: Fp6Element) -> Fp6Element:
        columns = [(x.c0, x.c1, x.c2) for x in (self, *others)]
        return Fp6Element(*(f(*parts) for parts in zip(*columns, strict=True)))

    def __add__(self, other: Fp6Element) -> Fp6Element:
        return self._map(operator.add, other)

    def __sub__(self, other: Fp6Element) -> Fp6Element:
        return self._map(operator.sub, other)

    def __neg__(self) -> Fp6Element:
        return self._map(operator.neg)

    def __mul__(self, other: Fp6Element) -> Fp6Element:
        return _fp6_mul(self, other)

    def sqr(self) -> Fp6Element:
        return _fp6_sqr(self)

    def double(self) -> Fp6Element:
        return self._map(double)

    def inv(self) -> Fp6Element:
        return _fp6_inv(self)

    def zero_like(self) -> Fp6Element:
        return self._map(zero_like)

    def one_like(self) -> Fp6Element:
        zero = zero_like(self.c0)
        return Fp6Element(one_like(self.c0), zero, zero)

    def is_zero(self) -> bool:
        return bool(is_zero(self.c0) and is_zero(self.c1) and is_zero(self.c2))


def fp6(c0: Any, c1: Any, c2: Any) -> Any:
    """c0 + c1 v + c2 v^2."""
    return Fp6Element(c0, c1, c2)


@intrinsic
def _make6(typingctx, c0, c1, c2):  # type: ignore[no-untyped-def]
    result = FP6_TYPES[c0.field.name]

    def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
        return pack(context, builder, result, list(args))

    return signature(result, c0, c1, c2), codegen


@overload(fp6)
def _overload_fp6(c0, c1, c2):  # type: ignore[no-untyped-def]
    if isinstance(c0, Fp2Type):
        return lambda c0, c1, c2: _make6(c0, c1, c2)


overload_attribute(Fp6Type, "c0")(lambda x: lambda x: coordinate(x, 0))
overload_attribute(Fp6Type, "c1")(lambda x: lambda x: coordinate(x, 1))
overload_attribute(Fp6Type, "c2")(lambda x: lambda x: coordinate(x, 2))


# --- coordinate by coordinate, over the leaves -------------------------------------------------------


def _leaves(builder: ir.IRBuilder, kind: types.Type, value: ir.Value) -> list[ir.Value]:
    """The base-field elements of a tower value, in order."""
    if isinstance(kind, ElementType):
        return [value]
    return [
        leaf
        for i, part in enumerate(kind.components)
        for leaf in _leaves(builder, part, builder.extract_value(value, i))
    ]


def _from_leaves(context: Any, builder: ir.IRBuilder, kind: types.Type, leaves: list[ir.Value]) -> ir.Value:
    """The inverse; takes what it uses off the front of `leaves`."""
    if isinstance(kind, ElementType):
        return leaves.pop(0)
    return pack(context, builder, kind, [_from_leaves(context, builder, part, leaves) for part in kind.components])


def _each_leaf(context: Any, builder: ir.IRBuilder, kind: Any, operation: str, args: Any) -> ir.Value:
    columns = zip(*(_leaves(builder, kind, x) for x in args), strict=True)
    return _from_leaves(context, builder, kind, [emit(builder, operation, kind.field, list(c)) for c in columns])


def _constant(context: Any, builder: ir.IRBuilder, kind: Any, value: ir.Value, first: int) -> ir.Value:
    """The element whose first coordinate is `first` in Montgomery form, all others zero."""
    leaves = _leaves(builder, kind, value)
    values = [literal(leaf.type, 0 if i else first) for i, leaf in enumerate(leaves)]
    return _from_leaves(context, builder, kind, values)


@intrinsic
def _tower_add(typingctx, a, b):  # type: ignore[no-untyped-def]
    return signature(a, a, b), lambda context, builder, sig, args: _each_leaf(context, builder, a, "add", args)


@intrinsic
def _tower_sub(typingctx, a, b):  # type: ignore[no-untyped-def]
    return signature(a, a, b), lambda context, builder, sig, args: _each_leaf(context, builder, a, "sub", args)


@intrinsic
def _tower_neg(typingctx, a):  # type: ignore[no-untyped-def]
    return signature(a, a), lambda context, builder, sig, args: _each_leaf(context, builder, a, "neg", args)


@intrinsic
def _tower_double(typingctx, a):  # type: ignore[no-untyped-def]
    return signature(a, a), lambda context, builder, sig, args: _each_leaf(context, builder, a, "double", args)


@intrinsic
def _tower_zero(typingctx, a):  # type: ignore[no-untyped-def]
    return signature(a, a), lambda context, builder, sig, args: _constant(context, builder, a, args[0], 0)


@intrinsic
def _tower_one(typingctx, a):  # type: ignore[no-untyped-def]
    return signature(a, a), lambda context, builder, sig, args: _constant(context, builder, a, args[0], a.field.r)


def _is_high(x: Any) -> bool:
    return isinstance(x, HighTowerType)


@overload(operator.add)
def _overload_add(a, b):  # type: ignore[no-untyped-def]
    if _is_high(a) and a == b:
        return lambda a, b: _tower_add(a, b)


@overload(operator.sub)
def _overload_sub(a, b):  # type: ignore[no-untyped-def]
    if _is_high(a) and a == b:
        return lambda a, b: _tower_sub(a, b)


@overload(operator.neg)
def _overload_neg(a):  # type: ignore[no-untyped-def]
    if _is_high(a):
        return lambda a: _tower_neg(a)


@overload(double)
def _overload_double(x):  # type: ignore[no-untyped-def]
    if _is_high(x):
        return lambda x: _tower_double(x)


@overload(zero_like)
def _overload_zero_like(x):  # type: ignore[no-untyped-def]
    if _is_high(x):
        return lambda x: _tower_zero(x)


@overload(one_like)
def _overload_one_like(x):  # type: ignore[no-untyped-def]
    if _is_high(x):
        return lambda x: _tower_one(x)


@overload(operator.eq)
def _overload_eq(a, b):  # type: ignore[no-untyped-def]
    if isinstance(a, Fp6Type) and a == b:
        return lambda a, b: a.c0 == b.c0 and a.c1 == b.c1 and a.c2 == b.c2


# --- multiplication by xi and v, conjugation ---------------------------------------------------------


def mul_by_xi(x: Any) -> Any:
    """x * xi in Fp2, by a few additions: xi is 1 + u or 9 + u."""
    xi = CURVE_OF_FP[x.c0.field.name].xi
    return x * Fp2Element(*(Element.of(x.c0.field, c) for c in xi))


@intrinsic
def _mul_by_xi(typingctx, x):  # type: ignore[no-untyped-def]
    real, imaginary = CURVE_OF_FP[x.field.name].xi

    def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
        def times(value: ir.Value, k: int) -> ir.Value:
            """k * value for a small k > 0, by doubling and adding."""
            result = value
            for bit in bin(k)[3:]:
                result = emit(builder, "double", x.field, [result])
                if bit == "1":
                    result = emit(builder, "add", x.field, [result, value])
            return result

        c0, c1 = _leaves(builder, x, args[0])
        return pack(
            context,
            builder,
            x,
            [
                emit(builder, "sub", x.field, [times(c0, real), times(c1, imaginary)]),
                emit(builder, "add", x.field, [times(c1, real), times(c0, imaginary)]),
            ],
        )

    return signature(x, x), codegen


@overload(mul_by_xi)
def _overload_mul_by_xi(x):  # type: ignore[no-untyped-def]
    if isinstance(x, Fp2Type):
        return lambda x: _mul_by_xi(x)


@device_function
def mul_by_v(a: Any) -> Any:
    """a * v in Fp6."""
    return fp6(mul_by_xi(a.c2), a.c0, a.c1)


# --- product, square, inverse ---


@device_function
def _fp6_mul(a: Any, b: Any) -> Any:
    # Karatsuba, 2006/471 section 4: 6M
    v0 = a.c0 * b.c0
    v1 = a.c1 * b.c1
    v2 = a.c2 * b.c2
    return fp6(
        v0 + mul_by_xi((a.c1 + a.c2) * (b.c1 + b.c2) - v1 - v2),
        (a.c0 + a.c1) * (b.c0 + b.c1) - v0 - v1 + mul_by_xi(v2),
        (a.c0 + a.c2) * (b.c0 + b.c2) - v0 - v2 + v1,
    )


@device_function
def _fp6_sqr(a: Any) -> Any:
    # CH-SQR2, 2006/471 section 4: 2M + 3S
    s0 = sqr(a.c0)
    s1 = double(a.c0 * a.c1)
    s2 = sqr(a.c0 - a.c1 + a.c2)
    s3 = double(a.c1 * a.c2)
    s4 = sqr(a.c2)
    return fp6(s0 + mul_by_xi(s3), s1 + mul_by_xi(s4), s1 + s2 + s3 - s0 - s4)


@device_function
def _fp6_inv(a: Any) -> Any:
    # the adjoint over the norm (Scott, "Implementing cryptographic pairings", 2007, section 3.2): 9M + 3S + I
    t0 = sqr(a.c0) - mul_by_xi(a.c1 * a.c2)
    t1 = mul_by_xi(sqr(a.c2)) - a.c0 * a.c1
    t2 = sqr(a.c1) - a.c0 * a.c2
    norm = inv(a.c0 * t0 + mul_by_xi(a.c2 * t1 + a.c1 * t2))
    return fp6(t0 * norm, t1 * norm, t2 * norm)


@overload(operator.mul)
def _overload_mul(a, b):  # type: ignore[no-untyped-def]
    if isinstance(a, Fp6Type) and a == b:
        return lambda a, b: _fp6_mul(a, b)


@overload(sqr)
def _overload_sqr(x):  # type: ignore[no-untyped-def]
    if isinstance(x, Fp6Type):
        return lambda x: _fp6_sqr(x)


@overload(inv)
def _overload_inv(x):  # type: ignore[no-untyped-def]
    if isinstance(x, Fp6Type):
        return lambda x: _fp6_inv(x)
