"""Kernels over vectors of field elements: one thread, one element, unless it says otherwise."""

from __future__ import annotations

from numba import cuda

from cuzk.field.element import from_montgomery, sqr, to_montgomery
from cuzk.kernels.declare import N, elements, kernel

THREADS = 256


@kernel(lambda field: (elements(field), elements(field), elements(field), N), threads=THREADS)
def multiply(x, y, out, n):  # type: ignore[no-untyped-def]
    """out[i] = x[i] * y[i]."""
    i = cuda.grid(1)
    if i < n:
        out[i] = x[i] * y[i]


@kernel(lambda field: (elements(field), elements(field), N), threads=THREADS)
def square(x, out, n):  # type: ignore[no-untyped-def]
    """out[i] = x[i]^2."""
    i = cuda.grid(1)
    if i < n:
        out[i] = sqr(x[i])
