"""Jobs over affine points: membership, sums, multiples."""

from __future__ import annotations

from typing import Any

from numba.core import types

from cuzk.curve.constants import curve_of
from cuzk.curve.endomorphism import in_g1_bls12, in_g2_bls12, in_g2_bn
from cuzk.curve.point import (
    add_mixed,
    affine_is_infinity,
    affine_type,
    coordinate_type,
    dbl,
    infinity_like,
    negate_affine,
    on_curve,
    to_affine,
    to_xyzz,
)
from cuzk.field.params import GROUPS
from cuzk.field.vector import Vector


def first_off_curve(points: Any, constants: Any, n: int) -> int:
    """Index of the first point that does not satisfy the equation, -1 if there is none."""
    for i in range(n):
        if not on_curve(points[i], constants[0]):
            return i
    return -1


def first_outside_g1_bls12(points: Any, constants: Any, digits: Any, length: int, negative: int, n: int) -> int:
    """Index of the first point, on the curve, that is not in the subgroup of order r; -1 if there is none."""
    for i in range(n):
        if not in_g1_bls12(points[i], constants, digits, length, negative):
            return i
    return -1


def first_outside_g2_bls12(points: Any, constants: Any, digits: Any, length: int, negative: int, n: int) -> int:
    """The same for G2."""
    for i in range(n):
        if not in_g2_bls12(points[i], constants, digits, length, negative):
            return i
    return -1


def first_outside_g2_bn(points: Any, constants: Any, digits: Any, length: int, negative: int, n: int) -> int:
    """The same for G2 of a BN curve."""
    for i in range(n):
        if not in_g2_bn(points[i], constants, digits, length, negative):
            return i
    return -1


def linear_combination(points: Any, scalars: Any, words: int, n: int, out: Any) -> int:
    """out[0] = the sum of scalars[i] * points[i]; scalars are plain integers of `words` 32-bit limbs.

    All points share one chain of doublings (Straus): for a handful of points; many are an MSM's work.
    """
    result = infinity_like(out[0].x)
    for k in range(32 * words):
        bit = 32 * words - 1 - k
        result = dbl(result)
        for i in range(n):
            if (scalars[i * words + bit // 32] >> (bit % 32)) & 1:
                result = add_mixed(result, points[i])
    out[0] = to_affine(result)
    return 0


def add(a: Any, b: Any, out: Any, n: int) -> int:
    """out[i] = a[i] + b[i]."""
    for i in range(n):
        if affine_is_infinity(a[i]):
            out[i] = b[i]
        else:
            out[i] = to_affine(add_mixed(to_xyzz(a[i]), b[i]))
    return 0


def negate(a: Any, out: Any, n: int) -> int:
    """out[i] = -a[i]."""
    for i in range(n):
        out[i] = negate_affine(a[i])
    return 0


def jobs(target: str) -> dict[str, Any]:
    """target: a group's name."""
    group = GROUPS[target]
    points, n = Vector(affine_type(group)), types.int64
    constants, digits, words = Vector(coordinate_type(group)), Vector(types.int64), Vector(types.uint32)
    result: dict[str, Any] = {
        "first_off_curve": (first_off_curve, (points, constants, n)),
        "linear_combination": (linear_combination, (points, words, n, n, points)),
        "add": (add, (points, points, points, n)),
        "negate": (negate, (points, points, n)),
    }
    outside = {
        ("BLS12", 1): first_outside_g1_bls12,
        ("BLS12", 2): first_outside_g2_bls12,
        ("BN", 2): first_outside_g2_bn,
    }
    check = outside.get((curve_of(group).family, group.degree))
    if check is not None:  # G1 of a BN curve is the whole curve
        result["first_outside_subgroup"] = (check, (points, constants, digits, n, n, n))
    return result
