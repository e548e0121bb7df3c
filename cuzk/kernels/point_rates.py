"""Kernels that do nothing but add points: the rates that an MSM is held against."""

from __future__ import annotations

from numba import cuda

from cuzk.curve.point import add, add_mixed, to_xyzz
from cuzk.field.lanes import lanes
from cuzk.kernels.declare import N, affine_points, kernel, xyzz_points

MIXED_THREADS = 384  # one block a multiprocessor in G1 at 381 bits: the most that the registers allow
ADD_THREADS = 128


@kernel(lambda group: (affine_points(group), xyzz_points(group), N, N), threads=MIXED_THREADS)
def mixed_additions(points, out, mask, rounds):  # type: ignore[no-untyped-def]
    """out[i] = the sum of `rounds` points at scattered places; mask: number of points, a power of two, less one."""
    i = cuda.grid(1) // lanes(points)
    place = i & mask
    total = to_xyzz(points[place])
    for _ in range(rounds):
        place = (place * 1664525 + 1013904223) & mask
        total = add_mixed(total, points[place])
    out[i] = total


@kernel(lambda group: (xyzz_points(group), xyzz_points(group), N), threads=ADD_THREADS)
def additions(points, out, rounds):  # type: ignore[no-untyped-def]
    """out[i] = points[i] + rounds * points[i + 1], by full additions."""
    i = cuda.grid(1) // lanes(points)
    total, p = points[i], points[i + 1]
    for _ in range(rounds):
        total = add(total, p)
    out[i] = total
