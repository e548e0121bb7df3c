"""Single points as Python ints, by the textbook: for files, JSON and tests; no numba.

A coordinate is a tuple of ints, one in G1 and two in G2; a point is a pair of them, None is infinity. About
20 us an operation: bulk work belongs to the backends.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from cuzk.errors import CuzkError
from cuzk.field.host import Limbs, decode, encode
from cuzk.field.params import Group, fp2_inverse, fp2_mul

Coordinate = tuple[int, ...]
Point = tuple[Coordinate, Coordinate] | None


def multiply_coordinates(group: Group, a: Coordinate, b: Coordinate) -> Coordinate:
    p = group.base.modulus
    return (a[0] * b[0] % p,) if group.degree == 1 else fp2_mul((a[0], a[1]), (b[0], b[1]), p)


def _invert(group: Group, a: Coordinate) -> Coordinate:
    p = group.base.modulus
    return (pow(a[0], -1, p),) if group.degree == 1 else fp2_inverse((a[0], a[1]), p)


def _combine(group: Group, *terms: tuple[int, Coordinate]) -> Coordinate:
    """The sum of k * a over the terms (k, a)."""
    return tuple(sum(k * a[i] for k, a in terms) % group.base.modulus for i in range(group.degree))


def curve_equation(group: Group, x: Coordinate) -> Coordinate:
    """x^3 + b."""
    return _combine(group, (1, multiply_coordinates(group, multiply_coordinates(group, x, x), x)), (1, group.b))


def on_curve(group: Group, point: Point) -> bool:
    return point is None or multiply_coordinates(group, point[1], point[1]) == curve_equation(group, point[0])


def negate(group: Group, point: Point) -> Point:
    return None if point is None else (point[0], _combine(group, (-1, point[1])))


def add(group: Group, a: Point, b: Point) -> Point:
    """a + b by chord and tangent, every case included."""
    if a is None or b is None:
        return b if a is None else a
    if a[0] != b[0]:
        numerator, denominator = _combine(group, (1, b[1]), (-1, a[1])), _combine(group, (1, b[0]), (-1, a[0]))
    elif a[1] == b[1] and any(a[1]):
        numerator = _combine(group, (3, multiply_coordinates(group, a[0], a[0])))
        denominator = _combine(group, (2, a[1]))
    else:
        return None
    slope = multiply_coordinates(group, numerator, _invert(group, denominator))
    x = _combine(group, (1, multiply_coordinates(group, slope, slope)), (-1, a[0]), (-1, b[0]))
    y = _combine(group, (1, multiply_coordinates(group, slope, _combine(group, (1, a[0]), (-1, x)))), (-1, a[1]))
    return x, y


def multiply(group: Group, k: int, point: Point) -> Point:
    """[k]P for any int k, by double and add."""
    if k < 0:
        return multiply(group, -k, negate(group, point))
    result: Point = None
    for bit in bin(k)[2:]:
        result = add(group, result, result)
        if bit == "1":
            result = add(group, result, point)
    return result


def msm(group: Group, points: Iterable[Point], scalars: Iterable[int]) -> Point:
    """The sum of scalars[i] * points[i], term by term: the judge of the fast ones."""
    result: Point = None
    for point, k in zip(points, scalars, strict=True):
        result = add(group, result, multiply(group, k, point))
    return result


def in_subgroup(group: Group, point: Point) -> bool:
    """Whether [r]P is infinity: the definition, 10 to 30 ms. For many points: `cuzk.cpu.points`."""
    return multiply(group, group.scalar.modulus, point) is None


def square_root(group: Group, a: Coordinate) -> Coordinate | None:
    """A square root of a coordinate, or None where it has none. p = 3 mod 4 on both curves.

    Fp2: the complex method (Scott, "Implementing cryptographic pairings", 2007, section 3.3).
    """
    p = group.base.modulus
    if group.degree == 1 or a[1] == 0:
        root = pow(a[0], (p + 1) // 4, p)
        if root * root % p == a[0]:
            return (root, 0)[: group.degree]
        if group.degree == 1:
            return None
        return 0, pow(-a[0] % p, (p + 1) // 4, p)  # -1 is no square, so -a0 is one, and (root u)^2 = a0
    norm = pow(a[0] * a[0] + a[1] * a[1], (p + 1) // 4, p)
    for sign in (1, -1):
        half = (a[0] + sign * norm) * pow(2, -1, p) % p
        c0 = pow(half, (p + 1) // 4, p)
        if c0 and c0 * c0 % p == half:
            root2 = (c0, a[1] * pow(2 * c0, -1, p) % p)
            return root2 if fp2_mul(root2, root2, p) == a else None
    return None


def to_limbs(group: Group, point: Point) -> Limbs:
    """uint32[*group.point_shape], Montgomery, affine; all zeros for infinity."""
    if point is None:
        return np.zeros(group.point_shape, np.uint32)
    return encode(group.base, [c if group.degree == 2 else c[0] for c in point])


def from_limbs(group: Group, limbs: Limbs) -> Point:
    """The inverse of `to_limbs`."""
    if not limbs.any():
        return None
    x, y = decode(group.base, limbs.reshape(2, group.degree, group.base.limbs))
    return tuple(x), tuple(y)


def check_points(group: Group, points: Any) -> None:
    """Raise CuzkError unless an array (anything with `dtype` and `shape`) is uint32[n, *group.point_shape]."""
    if points.dtype != np.uint32 or not points.shape or tuple(points.shape[1:]) != group.point_shape:
        expected = ", ".join(map(str, group.point_shape))
        raise CuzkError(f"points are {points.dtype}{list(points.shape)}, expected uint32[n, {expected}] for {group}")


def generator(group: Group) -> Limbs:
    """The group's generator as limbs."""
    return to_limbs(group, group.generator)
