"""The endomorphisms of the curves, and membership of the subgroup of order r through them.

Each check costs one or two multiplications by the 64-bit parameter x instead of one by r:

BN G1        the cofactor is 1: on the curve is enough.
BN G2        psi(P) = [6x^2]P. psi^2 - t psi + p = 0 with psi = t - 1 gives [p + 1 - t]P = [r]P = 0.
BLS12 G2     psi(P) = [x]P. The same gives [#E(Fp)]P = 0, and gcd(#E(Fp), #E'(Fp2)) = r.
BLS12 G1     phi(P) = [-x^2]P. phi^2 + phi + 1 = 0 gives [x^4 - x^2 + 1]P = [r]P = 0.

Sources: M. Scott (eprint 2021/1130), sections 4 and 6; Dai, Lin, Zhao, Zhou (eprint 2022/348), section 4.
Constants are `cuzk.curve.constants`.
"""

from __future__ import annotations

from typing import Any

from cuzk.curve.point import Affine, add, affine_is_infinity, dbl, negate, to_xyzz
from cuzk.field.element import device_function
from cuzk.field.tower12 import conjugate


@device_function
def psi(q: Any, x_factor: Any, y_factor: Any) -> Any:
    """Untwist, Frobenius, twist, on an affine point of G2."""
    return Affine(conjugate(q.x) * x_factor, conjugate(q.y) * y_factor)


@device_function
def phi(p: Any, beta: Any) -> Any:
    """(beta x, y) on an affine point of G1."""
    return Affine(p.x * beta, p.y)


@device_function
def times_x(p: Any, digits: Any, length: int, negative: Any) -> Any:
    """[x]P in xyzz, by the signed digits of |x| after its leading 1."""
    opposite = negate(p)
    result = p
    for i in range(length):
        result = dbl(result)
        if digits[i] > 0:
            result = add(result, p)
        elif digits[i] < 0:
            result = add(result, opposite)
    return negate(result) if negative else result


@device_function
def same_point(a: Any, p: Any) -> Any:
    """Whether a, affine and not infinity, and p, in xyzz, are one point."""
    return a.x * p.zz == p.x and a.y * p.zzz == p.y


@device_function
def in_g2_bls12(p: Any, constants: Any, digits: Any, length: int, negative: Any) -> Any:
    if affine_is_infinity(p):
        return True
    return same_point(psi(p, constants[1], constants[2]), times_x(to_xyzz(p), digits, length, negative))


@device_function
def in_g1_bls12(p: Any, constants: Any, digits: Any, length: int, negative: Any) -> Any:
    if affine_is_infinity(p):
        return True
    xx = times_x(times_x(to_xyzz(p), digits, length, negative), digits, length, negative)
    return same_point(phi(p, constants[1]), negate(xx))


@device_function
def in_g2_bn(p: Any, constants: Any, digits: Any, length: int, negative: Any) -> Any:
    if affine_is_infinity(p):
        return True
    xx2 = dbl(times_x(times_x(to_xyzz(p), digits, length, negative), digits, length, negative))
    return same_point(psi(p, constants[1], constants[2]), add(dbl(xx2), xx2))
