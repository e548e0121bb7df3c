"""Kernels over elements of Fp2 and points of G2 that pairs of threads share, for the simulator's tests and a card's."""

from __future__ import annotations

from typing import Any

from numba import cuda

from cuzk.curve.point import add, add_mixed, to_affine, to_xyzz
from cuzk.field.element import double, is_zero, mul_add, mul_sub, one_like, sqr, zero_like
from cuzk.field.lanes import lanes
from cuzk.field.prime import inv

FP2_OPERATIONS = 13


def fp2_operations(x: Any, y: Any, out: Any, n: int) -> None:
    # two threads: every operation on one pair of elements; n: threads
    i = cuda.grid(1) // lanes(x)
    if cuda.grid(1) < n:
        a, b = x[i], y[i]
        base = FP2_OPERATIONS * i
        out[base] = a * b
        out[base + 1] = sqr(a)
        out[base + 2] = a + b
        out[base + 3] = a - b
        out[base + 4] = -a
        out[base + 5] = double(a)
        out[base + 6] = inv(a)
        out[base + 7] = mul_add(a, b, a, a)
        out[base + 8] = mul_sub(a, b, b, b)
        out[base + 9] = a**5
        out[base + 10] = one_like(a) if is_zero(a) else zero_like(a)
        out[base + 11] = a if a == b else b
        out[base + 12] = a if a != b else b


def point_sums(x: Any, y: Any, out: Any, n: int) -> None:
    # two threads: out[2i] = x[i] + y[i] by a mixed addition, out[2i + 1] = x[i] + 2 y[i] by full ones; n: threads
    i = cuda.grid(1) // lanes(x)
    if cuda.grid(1) < n:
        total = add_mixed(to_xyzz(x[i]), y[i])
        out[2 * i] = to_affine(total)
        out[2 * i + 1] = to_affine(add(total, to_xyzz(y[i])))
