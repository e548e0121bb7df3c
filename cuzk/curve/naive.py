"""Textbook point arithmetic over Python ints: the judge of the fast formulas in tests and notebooks.

A point is a pair of coordinates, each a tuple of `group.degree` ints, or None for infinity.
"""

from __future__ import annotations

from collections.abc import Iterable

from cuzk.field.host import Limbs, decode, encode
from cuzk.field.params import Group, fp2_inverse, fp2_mul

Coordinate = tuple[int, ...]
Point = tuple[Coordinate, Coordinate] | None


def _mul(group: Group, x: Coordinate, y: Coordinate) -> Coordinate:
    p = group.base.modulus
    return (x[0] * y[0] % p,) if group.degree == 1 else fp2_mul((x[0], x[1]), (y[0], y[1]), p)


def _inverse(group: Group, x: Coordinate) -> Coordinate:
    p = group.base.modulus
    return (pow(x[0], -1, p),) if group.degree == 1 else fp2_inverse((x[0], x[1]), p)


def _combine(group: Group, x: Coordinate, y: Coordinate, sign: int) -> Coordinate:
    return tuple((a + sign * b) % group.base.modulus for a, b in zip(x, y, strict=True))


def negate(group: Group, point: Point) -> Point:
    return point and (point[0], tuple(-c % group.base.modulus for c in point[1]))


def add(group: Group, p: Point, q: Point) -> Point:
    """The chord-and-tangent law."""
    if p is None or q is None:
        return p or q
    (x1, y1), (x2, y2) = p, q
    if x1 == x2:
        if y1 != y2 or not any(y1):
            return None
        square = _mul(group, x1, x1)
        numerator = _combine(group, _combine(group, square, square, 1), square, 1)
        denominator = _combine(group, y1, y1, 1)
    else:
        numerator, denominator = _combine(group, y2, y1, -1), _combine(group, x2, x1, -1)
    slope = _mul(group, numerator, _inverse(group, denominator))
    x3 = _combine(group, _combine(group, _mul(group, slope, slope), x1, -1), x2, -1)
    return x3, _combine(group, _mul(group, slope, _combine(group, x1, x3, -1)), y1, -1)


def multiply(group: Group, point: Point, scalar: int) -> Point:
    """Double and add."""
    if scalar < 0:
        return multiply(group, negate(group, point), -scalar)
    total: Point = None
    for bit in bin(scalar)[2:]:
        total = add(group, total, total)
        if bit == "1":
            total = add(group, total, point)
    return total


def msm(group: Group, points: Iterable[Point], scalars: Iterable[int]) -> Point:
    total: Point = None
    for point, scalar in zip(points, scalars, strict=True):
        total = add(group, total, multiply(group, point, scalar))
    return total


def to_limbs(group: Group, point: Point) -> Limbs:
    """uint32[2, L] or uint32[2, 2, L], affine, Montgomery; infinity as zeros."""
    coordinates = point or ((0,) * group.degree, (0,) * group.degree)
    return encode(group.base, [c for xy in coordinates for c in xy]).reshape(group.point_shape)


def from_limbs(group: Group, limbs: Limbs) -> Point:
    flat = decode(group.base, limbs.reshape(-1, group.base.limbs))
    x, y = tuple(flat[: group.degree]), tuple(flat[group.degree :])
    return (x, y) if any(x) or any(y) else None
