"""Vectors of field elements on the device: the twin of `cpu/vectors.py`, and more. Nothing waits for the device.

    with to_device(limbs) as x:
        inverses = vectors.batch_inverse(field, x).numpy()

The functions take arrays uint32[n, L] of elements below the modulus (nobody looks whether they are): a `DeviceArray`,
or whatever `as_device` takes. A result is a new array, or `out` where that is given, which may be an input except for
`batch_inverse` and `reverse_bits`. Work is in the order of `stream`, by default that of the first array.

`Vectors` is the same over addresses, without checks: for those who own the memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import numpy as np

from cuzk.errors import CuzkError
from cuzk.field.host import Limbs, encode, ints_to_limbs
from cuzk.field.params import Field
from cuzk.gpu.array import DeviceArray, as_device, empty

# as in kernels/vector.py, whose import would bring numba's
THREADS = 256
DIGIT_BITS = 4
INVERSE_TABLE = 16  # elements that an inversion takes beside its tree
MAX_SIDE = 4  # log2 of the rows of a tile in `reverse_bits`: rows of 512 bytes, tiles of 256 elements
MAX_LOG_N = 32
# Elements of one thread, at least and at most, and blocks wanted on a multiprocessor: as many as fit, so that all run
# at once. A thread's first power costs up to 8 products, the others one each; a block inverts once, in one thread.
POWERS_RUN, POWERS_BLOCKS = (16, 256), 4
INVERSE_RUN, INVERSE_BLOCKS = (4, 256), 3


def _run(n: int, threads: int, blocks: int, limits: tuple[int, int]) -> int:
    """Elements of one thread, so that n make at most so many blocks; within limits."""
    least, most = limits
    return min(max(-(-n // (threads * blocks)), least), most)


@lru_cache(maxsize=64)
def _power_rows(field: Field, base: int) -> Limbs:
    """uint32[1 + 8 * 16, L], Montgomery: a free place, then base^(d 16^k) at 1 + 16 k + d."""
    values = [0]
    p = field.modulus
    for _ in range(MAX_LOG_N // DIGIT_BITS):
        row = [1]
        for _ in range((1 << DIGIT_BITS) - 1):
            row.append(row[-1] * base % p)
        values += row
        base = row[-1] * base % p
    rows = encode(field, values)
    rows.flags.writeable = False
    return rows


def power_table(field: Field, base: int, first: int, threads: int = THREADS) -> tuple[Limbs, int]:
    """The table that the kernel `powers` takes for blocks of so many threads, a power of two, and its `step`."""
    table = _power_rows(field, base).copy()
    table[0] = encode(field, first)
    place, digit = divmod(threads.bit_length() - 1, DIGIT_BITS)
    return table, 1 + (place << DIGIT_BITS) + (1 << digit)


class Vectors:
    """A field's vector kernels in a stream, over addresses; n elements each.

    threads: of a block, a power of two; run: elements of one thread in `powers` and `invert`, by default chosen by n.
    """

    def __init__(self, field: Field, stream: Any, *, threads: int = THREADS, run: int | None = None) -> None:
        if threads & (threads - 1) or not 1 <= threads <= THREADS:
            raise CuzkError(f"vectors: blocks of {threads} threads, expected a power of two up to {THREADS}")
        if run is not None and run < 1:
            raise CuzkError(f"vectors: runs of {run} elements, expected at least 1")
        self.field, self.stream, self.threads, self.run = field, stream, threads, run
        self.library = stream.gpu.library("vector", field.name)

    def _each(self, kernel: Any, *places: Any, n: int) -> None:
        self.stream.launch(kernel, -(-n // self.threads), self.threads, *places, n)

    def add(self, x: Any, y: Any, out: Any, n: int) -> None:
        self._each(self.library.add, x, y, out, n=n)

    def subtract(self, x: Any, y: Any, out: Any, n: int) -> None:
        self._each(self.library.subtract, x, y, out, n=n)

    def multiply(self, x: Any, y: Any, out: Any, n: int) -> None:
        self._each(self.library.multiply, x, y, out, n=n)

    def square(self, x: Any, out: Any, n: int) -> None:
        self._each(self.library.square, x, out, n=n)

    def scale(self, x: Any, factor: Any, out: Any, n: int) -> None:
        """factor: one element."""
        self._each(self.library.scale, x, factor, out, n=n)

    def to_montgomery(self, x: Any, out: Any, n: int) -> None:
        self._each(self.library.into_montgomery, x, out, n=n)

    def from_montgomery(self, x: Any, out: Any, n: int) -> None:
        self._each(self.library.out_of_montgomery, x, out, n=n)

    def quotient(self, a: Any, b: Any, c: Any, factor: Any, out: Any, n: int) -> None:
        """out = (a b - c) factor; factor: one element, plain where the result is to be plain."""
        self._each(self.library.quotient, a, b, c, factor, out, n=n)

    def powers(self, table: Any, step: int, out: Any, n: int) -> None:
        """table, step: of `power_table`, the table on the device."""
        blocks = POWERS_BLOCKS * self.stream.gpu.multiprocessors
        run = self.run or _run(n, self.threads, blocks, POWERS_RUN)
        grid = -(-n // (self.threads * run))
        self.stream.launch(self.library.powers, grid, self.threads, table, out, n, run, step)

    def invert(self, x: Any, out: Any, n: int) -> None:
        """out must not overlap x."""
        blocks = INVERSE_BLOCKS * self.stream.gpu.multiprocessors
        run = self.run or _run(n, self.threads, blocks, INVERSE_RUN)
        shared = (2 * self.threads + INVERSE_TABLE) * self.field.bytes
        grid = -(-n // (self.threads * run))
        self.stream.launch(self.library.invert, grid, self.threads, x, out, n, run, shared=shared)

    def reverse_bits(self, x: Any, out: Any, log_n: int) -> None:
        """out must not overlap x."""
        side = min(MAX_SIDE, log_n // 2, (self.threads.bit_length() - 1) // 2)
        shared = ((1 << side) + 1 << side) * self.field.bytes
        grid = 1 << log_n - 2 * side
        self.stream.launch(self.library.reverse_bits, grid, 1 << 2 * side, x, out, log_n, side, shared=shared)


# --- checked, over arrays ----------------------------------------------------------------------------


def add(field: Field, x: Any, y: Any, out: Any = None, stream: Any = None) -> DeviceArray:
    """x[i] + y[i]."""
    return _pointwise(field, Vectors.add, (x, y), out, stream)


def subtract(field: Field, x: Any, y: Any, out: Any = None, stream: Any = None) -> DeviceArray:
    """x[i] - y[i]."""
    return _pointwise(field, Vectors.subtract, (x, y), out, stream)


def multiply(field: Field, x: Any, y: Any, out: Any = None, stream: Any = None) -> DeviceArray:
    """x[i] * y[i], all in Montgomery form."""
    return _pointwise(field, Vectors.multiply, (x, y), out, stream)


def square(field: Field, x: Any, out: Any = None, stream: Any = None) -> DeviceArray:
    """x[i]^2, in Montgomery form."""
    return _pointwise(field, Vectors.square, (x,), out, stream)


def to_montgomery(field: Field, x: Any, out: Any = None, stream: Any = None) -> DeviceArray:
    """Plain limbs to Montgomery form."""
    return _pointwise(field, Vectors.to_montgomery, (x,), out, stream)


def from_montgomery(field: Field, x: Any, out: Any = None, stream: Any = None) -> DeviceArray:
    """Montgomery form to plain limbs."""
    return _pointwise(field, Vectors.from_montgomery, (x,), out, stream)


def scale(field: Field, x: Any, factor: int, out: Any = None, stream: Any = None) -> DeviceArray:
    """x[i] * factor, whatever form x is in; factor: an ordinary integer."""
    (x,), result, vectors = _prepare(field, "scale", (x,), out, stream)
    with _uploaded(vectors.stream, encode(field, factor)) as place:
        vectors.scale(x.address, place, result.address, len(x))
    return result


def quotient(
    field: Field, a: Any, b: Any, c: Any, factor: int, out: Any = None, stream: Any = None, *, plain: bool = False
) -> DeviceArray:
    """(a[i] b[i] - c[i]) factor in Montgomery form, or as plain limbs; factor: an ordinary integer."""
    (a, b, c), result, vectors = _prepare(field, "quotient", (a, b, c), out, stream)
    limbs = ints_to_limbs([factor % field.modulus], field.limbs) if plain else encode(field, factor)
    with _uploaded(vectors.stream, limbs) as place:
        vectors.quotient(a.address, b.address, c.address, place, result.address, len(a))
    return result


def powers(
    field: Field, base: int, n: int, first: int = 1, gpu: Any = None, stream: Any = None, *, out: Any = None
) -> DeviceArray:
    """uint32[n, L], Montgomery: first * base^i; base and first: ordinary integers, n at most 2^32."""
    if not 0 <= n <= 1 << MAX_LOG_N:
        raise CuzkError(f"powers: {n} elements asked for, expected 0 to 2^{MAX_LOG_N}")
    result = empty((n, field.limbs), gpu, stream) if out is None else as_device(out, gpu, stream, writable=True)
    _check_shape(field, "powers", result, n)
    vectors = Vectors(field, stream or result.stream)
    table, step = power_table(field, base % field.modulus, first, vectors.threads)
    with _uploaded(vectors.stream, table) as place:
        vectors.powers(place, step, result.address, n)
    return result


def batch_inverse(field: Field, x: Any, out: Any = None, stream: Any = None) -> DeviceArray:
    """1/x[i] in Montgomery form, 0 for 0; out must not be x."""
    (x,), result, vectors = _prepare(field, "batch_inverse", (x,), out, stream, apart=True)
    vectors.invert(x.address, result.address, len(x))
    return result


def reverse_bits(field: Field, x: Any, out: Any = None, stream: Any = None) -> DeviceArray:
    """x[j] at i, j being i with its bits in the opposite order; n: a power of two, or 0; out must not be x."""
    (x,), result, vectors = _prepare(field, "reverse_bits", (x,), out, stream, apart=True)
    n = len(x)
    if n & (n - 1) or n > 1 << MAX_LOG_N:
        raise CuzkError(f"reverse_bits: {n} elements, expected a power of two up to 2^{MAX_LOG_N}")
    if n:
        vectors.reverse_bits(x.address, result.address, n.bit_length() - 1)
    return result


def _pointwise(
    field: Field, operation: Callable[..., None], operands: tuple[Any, ...], out: Any, stream: Any
) -> DeviceArray:
    arrays, result, vectors = _prepare(field, operation.__name__, operands, out, stream)
    operation(vectors, *(x.address for x in arrays), result.address, len(result))
    return result


def _prepare(
    field: Field, name: str, operands: tuple[Any, ...], out: Any, stream: Any, *, apart: bool = False
) -> tuple[tuple[DeviceArray, ...], DeviceArray, Vectors]:
    """Operands and result as arrays of one length, on one device, ready for `stream`."""
    first = as_device(operands[0], None, stream)
    stream = stream or first.stream
    arrays = (first, *(as_device(x, stream.gpu, stream) for x in operands[1:]))
    for x in arrays:
        _check_shape(field, name, x, len(first) if first.shape else 0)
    if out is None:
        result = empty(first.shape, stream.gpu, stream)
    else:
        result = as_device(out, stream.gpu, stream, writable=True)
        _check_shape(field, name, result, len(first))
        for x in arrays:
            result.check_apart(x, name, or_equal=not apart)
    return arrays, result, Vectors(field, stream)


def _check_shape(field: Field, name: str, x: DeviceArray, n: int) -> None:
    if x.shape != (n, field.limbs):
        raise CuzkError(f"{name}: an array uint32{list(x.shape)} for {field}, expected uint32[{n}, {field.limbs}]")


@contextmanager
def _uploaded(stream: Any, array: np.ndarray) -> Iterator[Any]:
    """The address of a copy that lives, in the stream's order, for what is started inside."""
    with stream.gpu.upload(array, stream) as buffer:
        yield buffer.address
