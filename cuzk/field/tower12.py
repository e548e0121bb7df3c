"""Fp12 = Fp6[w]/(w^2 - v) as an element type, with the operations that a pairing needs.

In powers of w, an element is c0.c0 + c1.c0 w + c0.c1 w^2 + c1.c1 w^3 + c0.c2 w^4 + c1.c2 w^5.
Counts: M and S are products and squarings of Fp2.

Literature
----------
Devegili, O hEigeartaigh, Scott, Dahab, "Multiplication and squaring on pairing-friendly fields" (eprint
2006/471), for products. Sparse products: Aranha, Barreto, Longa, Ricardini, "The realm of the pairings"
(eprint 2013/722), section 5. Cyclotomic squaring: Granger, Scott, "Faster squaring in the cyclotomic
subgroup of sixth degree extensions" (eprint 2009/565), section 3.2.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Any

from numba.core.extending import intrinsic, overload, overload_attribute, register_model
from numba.core.typing import signature

from cuzk.field.element import device_function, double, is_zero, one_like, sqr, zero_like
from cuzk.field.params import CURVES, Field
from cuzk.field.prime import inv
from cuzk.field.tower import Fp2Element, Fp2Type, _TowerModel, coordinate, fp2, pack
from cuzk.field.tower6 import CURVE_OF_FP, FP6_TYPES, Fp6Element, Fp6Type, HighTowerType, fp6, mul_by_v, mul_by_xi


class Fp12Type(HighTowerType):
    """The numba type of c0 + c1 w over Fp6."""

    def __init__(self, field: Field) -> None:
        self.field = field
        super().__init__(f"Fp12({field.name})", FP6_TYPES[field.name], 2)


register_model(Fp12Type)(_TowerModel)
FP12_TYPES: dict[str, Fp12Type] = {curve.fp.name: Fp12Type(curve.fp) for curve in CURVES.values()}


def fp12_type(field: Field) -> Fp12Type:
    return FP12_TYPES[field.name]


@dataclass(frozen=True)
class Fp12Element:
    """The plain Python twin: two `Fp6Element`s."""

    c0: Fp6Element
    c1: Fp6Element

    def __add__(self, other: Fp12Element) -> Fp12Element:
        return Fp12Element(self.c0 + other.c0, self.c1 + other.c1)

    def __sub__(self, other: Fp12Element) -> Fp12Element:
        return Fp12Element(self.c0 - other.c0, self.c1 - other.c1)

    def __neg__(self) -> Fp12Element:
        return Fp12Element(-self.c0, -self.c1)

    def __mul__(self, other: Fp12Element) -> Fp12Element:
        return _fp12_mul(self, other)

    def sqr(self) -> Fp12Element:
        return _fp12_sqr(self)

    def double(self) -> Fp12Element:
        return Fp12Element(double(self.c0), double(self.c1))

    def inv(self) -> Fp12Element:
        return _fp12_inv(self)

    def conjugate(self) -> Fp12Element:
        return Fp12Element(self.c0, -self.c1)

    def zero_like(self) -> Fp12Element:
        return Fp12Element(zero_like(self.c0), zero_like(self.c0))

    def one_like(self) -> Fp12Element:
        return Fp12Element(one_like(self.c0), zero_like(self.c0))

    def is_zero(self) -> bool:
        return bool(is_zero(self.c0) and is_zero(self.c1))


def fp12(c0: Any, c1: Any) -> Any:
    """c0 + c1 w."""
    return Fp12Element(c0, c1)


@intrinsic
def _make12(typingctx, c0, c1):  # type: ignore[no-untyped-def]
    result = FP12_TYPES[c0.field.name]

    def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
        return pack(context, builder, result, list(args))

    return signature(result, c0, c1), codegen


@overload(fp12)
def _overload_fp12(c0, c1):  # type: ignore[no-untyped-def]
    if isinstance(c0, Fp6Type):
        return lambda c0, c1: _make12(c0, c1)


overload_attribute(Fp12Type, "c0")(lambda x: lambda x: coordinate(x, 0))
overload_attribute(Fp12Type, "c1")(lambda x: lambda x: coordinate(x, 1))


@overload(operator.eq)
def _overload_eq(a, b):  # type: ignore[no-untyped-def]
    if isinstance(a, Fp12Type) and a == b:
        return lambda a, b: a.c0 == b.c0 and a.c1 == b.c1


def conjugate(x: Any) -> Any:
    """The p-power Frobenius map of Fp2, or the p^6-power one of Fp12: the last coordinate negated."""
    return Fp2Element(x.c0, -x.c1) if isinstance(x, Fp2Element) else x.conjugate()


@overload(conjugate)
def _overload_conjugate(x):  # type: ignore[no-untyped-def]
    if isinstance(x, Fp2Type):
        return lambda x: fp2(x.c0, -x.c1)
    if isinstance(x, Fp12Type):
        return lambda x: fp12(x.c0, -x.c1)


# --- product, square, inverse ---


@device_function
def _fp12_mul(a: Any, b: Any) -> Any:
    # Karatsuba: 18M
    v0 = a.c0 * b.c0
    v1 = a.c1 * b.c1
    return fp12(v0 + mul_by_v(v1), (a.c0 + a.c1) * (b.c0 + b.c1) - v0 - v1)


@device_function
def _fp12_sqr(a: Any) -> Any:
    # complex squaring: 12M
    product = a.c0 * a.c1
    return fp12((a.c0 + a.c1) * (a.c0 + mul_by_v(a.c1)) - product - mul_by_v(product), double(product))


@device_function
def _fp12_inv(a: Any) -> Any:
    # (a0 - a1 w)/(a0^2 - v a1^2)
    norm = inv(sqr(a.c0) - mul_by_v(sqr(a.c1)))
    return fp12(a.c0 * norm, -(a.c1 * norm))


@overload(operator.mul)
def _overload_mul(a, b):  # type: ignore[no-untyped-def]
    if isinstance(a, Fp12Type) and a == b:
        return lambda a, b: _fp12_mul(a, b)


@overload(sqr)
def _overload_sqr(x):  # type: ignore[no-untyped-def]
    if isinstance(x, Fp12Type):
        return lambda x: _fp12_sqr(x)


@overload(inv)
def _overload_inv(x):  # type: ignore[no-untyped-def]
    if isinstance(x, Fp12Type):
        return lambda x: _fp12_inv(x)


# --- sparse products ---


@device_function
def scale6(a: Any, k: Any) -> Any:
    """a * k in Fp6 for k in Fp2: 3M."""
    return fp6(a.c0 * k, a.c1 * k, a.c2 * k)


@device_function
def mul_by_01(a: Any, b0: Any, b1: Any) -> Any:
    """a * (b0 + b1 v) in Fp6: 5M."""
    v0 = a.c0 * b0
    v1 = a.c1 * b1
    return fp6(
        v0 + mul_by_xi((a.c1 + a.c2) * b1 - v1),
        (a.c0 + a.c1) * (b0 + b1) - v0 - v1,
        (a.c0 + a.c2) * b0 - v0 + v1,
    )


@device_function
def mul_by_014(f: Any, l0: Any, l1: Any, l4: Any) -> Any:
    """f * (l0 + l1 w^2 + l4 w^3), a line of an M-twist: 13M."""
    a = mul_by_01(f.c0, l0, l1)
    b = mul_by_v(scale6(f.c1, l4))
    return fp12(a + mul_by_v(b), mul_by_01(f.c0 + f.c1, l0, l1 + l4) - a - b)


@device_function
def mul_by_034(f: Any, l0: Any, l3: Any, l4: Any) -> Any:
    """f * (l0 + l3 w + l4 w^3), a line of a D-twist: 13M."""
    a = scale6(f.c0, l0)
    b = mul_by_01(f.c1, l3, l4)
    return fp12(a + mul_by_v(b), mul_by_01(f.c0 + f.c1, l0 + l3, l4) - a - b)


def mul_by_line(f: Any, constant: Any, by_x: Any, by_y: Any) -> Any:
    """f times a line whose coefficients belong to 1, x_P and y_P, placed as the curve's twist wants it.

    D: by_y + by_x w + constant w^3. M: constant + by_x w^2 + by_y w^3 (the line times w^3).
    """
    if CURVE_OF_FP[constant.c0.field.name].twist == "D":
        return mul_by_034(f, by_y, by_x, constant)
    return mul_by_014(f, constant, by_x, by_y)


@overload(mul_by_line)
def _overload_mul_by_line(f, constant, by_x, by_y):  # type: ignore[no-untyped-def]
    if isinstance(f, Fp12Type):
        if CURVE_OF_FP[f.field.name].twist == "D":
            return lambda f, constant, by_x, by_y: mul_by_034(f, by_y, by_x, constant)
        return lambda f, constant, by_x, by_y: mul_by_014(f, constant, by_x, by_y)


# --- Frobenius maps and the cyclotomic subgroup ---


@device_function
def _conjugate_coefficients(f: Any) -> Any:
    a, b = f.c0, f.c1
    return fp12(
        fp6(conjugate(a.c0), conjugate(a.c1), conjugate(a.c2)),
        fp6(conjugate(b.c0), conjugate(b.c1), conjugate(b.c2)),
    )


@device_function
def frobenius(f: Any, power: int, table: Any) -> Any:
    """f^(p^power) for power 1, 2 or 3; table[6 (power - 1) + k] is `Curve.frobenius_coefficient(power, k)`."""
    if power & 1:
        f = _conjugate_coefficients(f)
    base = 6 * (power - 1)
    a, b = f.c0, f.c1
    return fp12(
        fp6(a.c0, a.c1 * table[base + 2], a.c2 * table[base + 4]),
        fp6(b.c0 * table[base + 1], b.c1 * table[base + 3], b.c2 * table[base + 5]),
    )


@device_function
def _fp4_sqr(a: Any, b: Any) -> Any:
    """Both coefficients of (a + b z)^2 in Fp4 = Fp2[z]/(z^2 - xi): 3S."""
    aa, bb = sqr(a), sqr(b)
    return aa + mul_by_xi(bb), sqr(a + b) - aa - bb


@device_function
def cyclotomic_sqr(f: Any) -> Any:
    """f^2 for f with f^(p^4 - p^2 + 1) = 1, which is where an easy part of a final exponentiation ends."""
    # 2009/565 section 3.2, over Fp4 = Fp2[w^3]: 9S
    z0, z4, z3 = f.c0.c0, f.c0.c1, f.c0.c2
    z2, z1, z5 = f.c1.c0, f.c1.c1, f.c1.c2
    a0, a1 = _fp4_sqr(z0, z1)
    b0, b1 = _fp4_sqr(z2, z3)
    c0, c1 = _fp4_sqr(z4, z5)
    c1 = mul_by_xi(c1)
    return fp12(
        fp6(double(a0 - z0) + a0, double(b0 - z4) + b0, double(c0 - z3) + c0),
        fp6(double(c1 + z2) + c1, double(a1 + z1) + a1, double(b1 + z5) + b1),
    )
