"""Points of known discrete logarithms: an arithmetic progression of multiples of a point, for tests and measurements.

The progression grows in place: once the first K points are there, point j * K + k is point k plus the multiple
j * K * step, which is the same for all k: an addition of affine points, whose inversions a thread shares.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import cuda

from cuzk.curve.point import Affine, affine_is_infinity
from cuzk.field.element import device_function, double, is_zero, one_like, sqr, zero_like
from cuzk.field.lanes import lanes
from cuzk.field.prime import inv
from cuzk.kernels.declare import N, affine_points, kernel

THREADS = 128


@device_function
def _denominator(p: Any, q: Any) -> Any:
    """What the slope of the line through p and q is divided by; one where no slope is needed."""
    difference = q.x - p.x
    one = one_like(difference)
    if affine_is_infinity(p) or affine_is_infinity(q):
        return one
    if is_zero(difference):
        # q = p, or q = -p
        if p.y == q.y:
            return double(p.y)
        return one
    return difference


@device_function
def _sum(p: Any, q: Any, inverse: Any) -> Any:
    """p + q by chord and tangent; inverse: of their denominator."""
    if affine_is_infinity(p):
        return q
    if affine_is_infinity(q):
        return p
    numerator = q.y - p.y
    if q.x == p.x:
        if p.y != q.y:
            zero = zero_like(p.x)
            return Affine(zero, zero)
        square = sqr(p.x)
        numerator = double(square) + square
    slope = numerator * inverse
    x = sqr(slope) - p.x - q.x
    return Affine(x, slope * (p.x - x) - p.y)


@kernel(lambda group: (affine_points(group), affine_points(group), N, N, N), threads=THREADS)
def grow(points, steps, known, factor, n):  # type: ignore[no-untyped-def]
    """points[j * known + k] = points[k] + steps[j] for k < known, 1 <= j < factor, as far as n.

    Affine, Montgomery, all zeros for infinity. Montgomery's trick: 6 products a point and an inversion a thread.

    1. forwards: a point's place holds the product of the denominators before it, and its own.
    2. the product of all is inverted.
    3. backwards: 1/denominator = product before * 1/product up to here.
    """
    # one thread, or pair of them: all points with one k
    k = cuda.grid(1) // lanes(points)
    if k < known:
        p = points[k]
        product = one_like(p.x)
        last = min(factor, (n - k + known - 1) // known)
        for j in range(1, last):
            denominator = _denominator(p, steps[j])
            points[np.int64(j) * known + k] = Affine(product, denominator)
            product = product * denominator
        inverse = inv(product)
        for back in range(1, last):
            j = np.int64(last - back)
            place = j * known + k
            before = points[place]
            points[place] = _sum(p, steps[j], before.x * inverse)
            inverse = inverse * before.y
