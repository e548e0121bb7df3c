"""Points of y^2 = x^3 + b in affine and xyzz coordinates, and the formulas for them.

One source for G1 and G2 of both curves: coordinates are elements of Fp or of Fp2, by type. Points are
plain named tuples, which compile as they are.

affine  (x, y); infinity is (0, 0), which is on no curve with b != 0, as in a .zkey.
xyzz    x = X/ZZ, y = Y/ZZZ, ZZ^3 = ZZZ^2; infinity is ZZ = 0.

Formulas: EFD, short Weierstrass with a = 0, https://hyperelliptic.org/EFD/g1p/auto-shortw-xyzz.html
(Sutherland 2008). `add`, `add_mixed` are complete: infinity, equal and opposite points are handled.
`mul_sub(a, b, c, d)` is a*b - c*d, which the GPU does with one reduction.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from numba.core import types

from cuzk.field.element import device_function, double, element_type, is_zero, mul_sub, one_like, sqr, zero_like
from cuzk.field.params import Group
from cuzk.field.prime import inv
from cuzk.field.tower import fp2_type


class Affine(NamedTuple):
    x: Any
    y: Any


class Xyzz(NamedTuple):
    x: Any
    y: Any
    zz: Any
    zzz: Any


def coordinate_type(group: Group) -> types.Type:
    return element_type(group.base) if group.degree == 1 else fp2_type(group.base)


def affine_type(group: Group) -> types.Type:
    """The numba type of an affine point of the group."""
    return types.NamedUniTuple(coordinate_type(group), 2, Affine)


def xyzz_type(group: Group) -> types.Type:
    return types.NamedUniTuple(coordinate_type(group), 4, Xyzz)


@device_function
def affine_is_infinity(p: Any) -> Any:
    return is_zero(p.y) and is_zero(p.x)


@device_function
def infinity_like(x: Any) -> Any:
    """Infinity in xyzz, over the field of the coordinate x."""
    zero, one = zero_like(x), one_like(x)
    return Xyzz(one, one, zero, zero)


@device_function
def to_xyzz(p: Any) -> Any:
    one = one_like(p.x)
    if affine_is_infinity(p):
        return infinity_like(p.x)
    return Xyzz(p.x, p.y, one, one)


@device_function
def to_affine(p: Any) -> Any:
    # 1/ZZ = (ZZ/ZZZ)^2, since ZZ^3 = ZZZ^2: I + 3M + S; infinity gives (0, 0), as 1/0 = 0 here
    inverse = inv(p.zzz)
    return Affine(p.x * sqr(p.zz * inverse), p.y * inverse)


@device_function
def negate(p: Any) -> Any:
    return Xyzz(p.x, -p.y, p.zz, p.zzz)


@device_function
def negate_affine(p: Any) -> Any:
    return Affine(p.x, -p.y)


@device_function
def dbl_affine(p: Any) -> Any:
    # mdbl-2008-s-1, EFD: 4M + 3S; no point of prime order has y = 0
    U = double(p.y)
    V = sqr(U)
    W = U * V
    S = p.x * V
    xx = sqr(p.x)
    M = double(xx) + xx
    x = sqr(M) - double(S)
    return Xyzz(x, mul_sub(M, S - x, W, p.y), V, W)


@device_function
def dbl(p: Any) -> Any:
    # dbl-2008-s-1, EFD: 6M + 4S; ZZ = 0 stays 0
    U = double(p.y)
    V = sqr(U)
    W = U * V
    S = p.x * V
    xx = sqr(p.x)
    M = double(xx) + xx
    x = sqr(M) - double(S)
    return Xyzz(x, mul_sub(M, S - x, W, p.y), V * p.zz, W * p.zzz)


@device_function
def add_mixed(p: Any, q: Any) -> Any:
    """p + q, p in xyzz and q affine."""
    # madd-2008-s, EFD: 8M + 2S
    if affine_is_infinity(q):
        return p
    if is_zero(p.zz):
        return to_xyzz(q)
    P = q.x * p.zz - p.x
    R = q.y * p.zzz - p.y
    if is_zero(P):
        if is_zero(R):
            return dbl_affine(q)
        return infinity_like(q.x)
    PP = sqr(P)
    PPP = P * PP
    Q = p.x * PP
    x = sqr(R) - PPP - Q - Q
    return Xyzz(x, mul_sub(R, Q - x, p.y, PPP), p.zz * PP, p.zzz * PPP)


@device_function
def add(p: Any, q: Any) -> Any:
    """p + q, both in xyzz."""
    # add-2008-s, EFD: 12M + 2S
    if is_zero(q.zz):
        return p
    if is_zero(p.zz):
        return q
    U1 = p.x * q.zz
    S1 = p.y * q.zzz
    P = q.x * p.zz - U1
    R = q.y * p.zzz - S1
    if is_zero(P):
        if is_zero(R):
            return dbl(p)
        return infinity_like(p.x)
    PP = sqr(P)
    PPP = P * PP
    Q = U1 * PP
    x = sqr(R) - PPP - Q - Q
    return Xyzz(x, mul_sub(R, Q - x, S1, PPP), p.zz * q.zz * PP, p.zzz * q.zzz * PPP)


@device_function
def on_curve(p: Any, b: Any) -> Any:
    """Whether an affine point satisfies y^2 = x^3 + b; infinity does."""
    return affine_is_infinity(p) or sqr(p.y) == sqr(p.x) * p.x + b
