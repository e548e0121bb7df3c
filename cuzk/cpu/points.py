"""Affine points in bulk on the CPU: membership, sums, multiples, pairings. Compiled code, no numba import.

Points are uint32[n, *group.point_shape] (or one point without the first axis), Montgomery, all zeros for
infinity.
"""

from __future__ import annotations

import numpy as np

from cuzk.cpu import jit
from cuzk.curve.constants import curve_of, loop_digits, pairing_constants, point_constants, x_digits
from cuzk.errors import CuzkError
from cuzk.field.host import Limbs
from cuzk.field.params import Curve, Field, Group


def _as_points(group: Group, points: Limbs) -> Limbs:
    """Contiguous uint32[n, *point_shape]; CuzkError for any other shape or type."""
    shape = np.shape(points)
    if shape == group.point_shape:
        points = points[None]
    elif len(shape) == 0 or shape[1:] != group.point_shape:
        raise CuzkError(f"points of {group}: shape {shape}, expected (n, {', '.join(map(str, group.point_shape))})")
    if points.dtype != np.uint32:
        raise CuzkError(f"points of {group}: dtype {points.dtype}, expected uint32")
    return np.ascontiguousarray(points)


def is_canonical(field: Field, elements: Limbs) -> np.ndarray:
    """bool[...]: whether each of uint32[..., L] is below the modulus, as every element in memory must be."""
    modulus = [(field.modulus >> (32 * i)) & 0xFFFFFFFF for i in range(field.limbs)]
    below = elements[..., -1] < modulus[-1]
    if below.all():
        return below
    undecided = elements[..., -1] == modulus[-1]
    for i in reversed(range(field.limbs - 1)):
        below |= undecided & (elements[..., i] < modulus[i])
        undecided &= elements[..., i] == modulus[i]
    return below


def first_off_curve(group: Group, points: Limbs) -> int | None:
    """Index of the first point whose coordinates are not reduced or do not satisfy the curve's equation."""
    points = _as_points(group, points)
    canonical = is_canonical(group.base, points).all(axis=tuple(range(1, points.ndim - 1)))
    count = len(points) if canonical.all() else int(np.argmin(canonical))
    found = jit.load("point", group.name).first_off_curve(points, point_constants(group), count)
    if found >= 0:
        return found
    return count if count < len(points) else None


def first_outside_subgroup(group: Group, points: Limbs) -> int | None:
    """Index of the first point that is not in the subgroup of order r; the points must be on the curve."""
    if group.cofactor == 1:
        return None
    points, curve = _as_points(group, points), curve_of(group)
    digits = x_digits(curve)
    library = jit.load("point", group.name)
    arguments = (points, point_constants(group), digits, len(digits), curve.x < 0, len(points))
    found = library.first_outside_subgroup(*arguments)
    return None if found < 0 else found


def check_points(group: Group, points: Limbs, what: str, *, subgroup: bool = True) -> None:
    """CuzkError, naming `what` and the index, unless all points are on the curve and in the subgroup."""
    single = np.ndim(points) == len(group.point_shape)
    for find, expected in ((first_off_curve, "on the curve"), (first_outside_subgroup, "in the subgroup of order r")):
        if find is first_off_curve or subgroup:
            index = find(group, points)
            if index is not None:
                raise CuzkError(f"{what}{'' if single else f'[{index}]'}: the point is not {expected} {group}")


def linear_combination(group: Group, points: Limbs, scalars: Limbs) -> Limbs:
    """The sum of scalars[i] * points[i], affine; scalars: plain integers uint32[n, words]. For few points."""
    points = _as_points(group, points)
    scalars = np.ascontiguousarray(scalars, dtype=np.uint32)
    if scalars.ndim != 2 or len(scalars) != len(points):
        raise CuzkError(f"{len(points)} points and scalars of shape {scalars.shape}: expected one row for each point")
    out = np.zeros(group.point_shape, np.uint32)
    library = jit.load("point", group.name)
    library.linear_combination(points, scalars, scalars.shape[1], len(points), out)
    return out


def add(group: Group, a: Limbs, b: Limbs) -> Limbs:
    """a + b, point by point; the shape of a."""
    first, second = _as_points(group, a), _as_points(group, b)
    if len(first) != len(second):
        raise CuzkError(f"adding {len(first)} points of {group} to {len(second)}")
    out = np.empty_like(first)
    jit.load("point", group.name).add(first, second, out, len(first))
    return out.reshape(np.shape(a))


def negate(group: Group, points: Limbs) -> Limbs:
    """-points, point by point; the shape of points."""
    a = _as_points(group, points)
    out = np.empty_like(a)
    jit.load("point", group.name).negate(a, out, len(a))
    return out.reshape(np.shape(points))


def pairing_product(curve: Curve, ps: Limbs, qs: Limbs) -> tuple[Limbs, bool]:
    """(the product of e(ps[i], qs[i]), whether it is one), by one final exponentiation.

    The value is uint32[12, L], Montgomery: coordinates of Fp12 in the order of the tower, lowest first. Points must
    be in the subgroups; a pair with infinity contributes 1. See `cuzk.curve.pairing` for the power of the
    textbook's pairing that it is.
    """
    ps, qs = _as_points(curve.g1, ps), _as_points(curve.g2, qs)
    if len(ps) != len(qs):
        raise CuzkError(f"a product of pairings of {len(ps)} points of G1 and {len(qs)} of G2")
    n, limbs = len(ps), curve.fp.limbs
    room = np.empty((n, 3, 2, limbs), np.uint32)
    out = np.zeros((12, limbs), np.uint32)
    loop, x = loop_digits(curve), x_digits(curve)
    product = jit.load("pairing", curve.name).product
    is_one = product(ps, qs, n, room, pairing_constants(curve), loop, len(loop), x, len(x), curve.x < 0, out)
    return out, bool(is_one)
