"""Kernels that do one field operation over and over in registers: the rates that everything else is held against."""

from __future__ import annotations

from numba import cuda

from cuzk.field.element import sqr
from cuzk.kernels.declare import N, elements, kernel

THREADS = 256


@kernel(lambda field: (elements(field), elements(field), N), threads=THREADS)
def products(x, out, rounds):  # type: ignore[no-untyped-def]
    """out[i] = x[i] * x[i + 1]^rounds; `rounds` dependent products."""
    i = cuda.grid(1)
    a, b = x[i], x[i + 1]
    for _ in range(rounds):
        a = a * b
    out[i] = a


@kernel(lambda field: (elements(field), elements(field), N), threads=THREADS)
def squares(x, out, rounds):  # type: ignore[no-untyped-def]
    """out[i] = x[i]^(2^rounds)."""
    i = cuda.grid(1)
    a = x[i]
    for _ in range(rounds):
        a = sqr(a)
    out[i] = a


@kernel(lambda field: (elements(field), elements(field), N), threads=THREADS)
def sums(x, out, rounds):  # type: ignore[no-untyped-def]
    """out[i] = x[i] + rounds * x[i + 1]."""
    i = cuda.grid(1)
    a, b = x[i], x[i + 1]
    for _ in range(rounds):
        a = a + b
    out[i] = a


@kernel(lambda field: (elements(field), elements(field), N), threads=THREADS)
def butterflies(x, out, rounds):  # type: ignore[no-untyped-def]
    """(u, v) = (u + t v, u - t v), `rounds` times; out[2i], out[2i + 1] = (u, v): what an NTT cannot pass."""
    i = cuda.grid(1)
    u, v, t = x[i], x[i + 1], x[i + 2]
    for _ in range(rounds):
        w = v * t
        u, v = u + w, u - w
    out[2 * i] = u
    out[2 * i + 1] = v
