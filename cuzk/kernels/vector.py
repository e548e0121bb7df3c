"""Kernels over vectors of field elements: one thread, one element, unless it says otherwise.

What bounds them on an H200, whose memory moves 4.3 TB/s and whose multipliers do 59 G products/s of 255 bits:
two vectors in and one out are 96 bytes, 45 G elements/s, so sums and single products run at the memory's speed;
`powers` and `invert` at the multipliers'.
"""

from __future__ import annotations

import numpy as np
from numba import cuda
from numba.core.types import uint32

from cuzk.field.element import device_function, from_montgomery, is_zero, one_like, sqr, to_montgomery
from cuzk.field.prime import inv_in_table
from cuzk.field.vector import advance, in_shared
from cuzk.kernels.declare import N, elements, kernel

THREADS = 256
DIGIT_BITS = 4  # of an exponent, a row of the table that `powers` takes
WORD = 32


@kernel(lambda field: (elements(field), elements(field), elements(field), N), threads=THREADS)
def add(x, y, out, n):  # type: ignore[no-untyped-def]
    """out[i] = x[i] + y[i]; out may be x or y, as in all that follow but where it is said."""
    i = cuda.grid(1)
    if i < n:
        out[i] = x[i] + y[i]


@kernel(lambda field: (elements(field), elements(field), elements(field), N), threads=THREADS)
def subtract(x, y, out, n):  # type: ignore[no-untyped-def]
    """out[i] = x[i] - y[i]."""
    i = cuda.grid(1)
    if i < n:
        out[i] = x[i] - y[i]


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


@kernel(lambda field: (elements(field), elements(field), elements(field), N), threads=THREADS)
def scale(x, factor, out, n):  # type: ignore[no-untyped-def]
    """out[i] = x[i] * factor[0]."""
    i = cuda.grid(1)
    if i < n:
        out[i] = x[i] * factor[0]


@kernel(lambda field: (elements(field), elements(field), N), threads=THREADS)
def into_montgomery(x, out, n):  # type: ignore[no-untyped-def]
    """out[i] = the Montgomery form of the plain limbs x[i]."""
    i = cuda.grid(1)
    if i < n:
        out[i] = to_montgomery(x[i])


@kernel(lambda field: (elements(field), elements(field), N), threads=THREADS)
def out_of_montgomery(x, out, n):  # type: ignore[no-untyped-def]
    """out[i] = the plain limbs of x[i]."""
    i = cuda.grid(1)
    if i < n:
        out[i] = from_montgomery(x[i])


@kernel(
    lambda field: (elements(field), elements(field), elements(field), elements(field), elements(field), N),
    threads=THREADS,
)
def quotient(a, b, c, factor, out, n):  # type: ignore[no-untyped-def]
    """out[i] = (a[i] * b[i] - c[i]) * factor[0].

    Two products: with factor[0] plain instead of in Montgomery form, the result is plain at no cost.
    """
    i = cuda.grid(1)
    if i < n:
        out[i] = (a[i] * b[i] - c[i]) * factor[0]


@kernel(lambda field: (elements(field), elements(field), N, N, N), threads=THREADS)
def powers(table, out, n, run, step):  # type: ignore[no-untyped-def]
    """out[i] = s g^i: a product an element, and at most one for each digit of n, divided by run.

    table: s, then g^(d 16^k) at 1 + 16 k + d, for the digits d and their places k in n; g^threads at `step`.
    A block has `threads * run` elements in a row, a thread every `threads`th of them, so that stores lie together.
    """
    # one thread: run powers, each the one before times g^threads
    t, threads = cuda.threadIdx.x, cuda.blockDim.x
    i = np.int64(cuda.blockIdx.x) * threads * run + t
    power = table[0]
    place, exponent = 1, i if i < n else np.int64(0)
    while exponent > 0:
        digit = exponent & ((1 << DIGIT_BITS) - 1)
        if digit > 0:
            power = power * table[place + digit]
        place += 1 << DIGIT_BITS
        exponent >>= DIGIT_BITS
    factor = table[step]
    for _ in range(run):
        if i < n:
            out[i] = power
            power = power * factor
        i += threads


@kernel(lambda field: (elements(field), elements(field), N, N), threads=THREADS)
def invert(x, out, n, run):  # type: ignore[no-untyped-def]
    """out[i] = 1/x[i], and 0 for 0; out must not be x.

    Montgomery's trick twice ("Speeding the Pollard and elliptic curve methods of factorization", 1987, 10.3.1): over
    the elements of a thread, then over the threads of a block, by a binary tree. 3 products an element, 3 a thread,
    and about 330 a block, which one thread does while other blocks use the multipliers.

    1. out[i] = the product of the thread's elements before i; zeros are left out.
    2. tree: node k is the product of nodes 2k and 2k + 1, the leaves are the threads' products.
    3. the root is inverted, and each node from its parent: 1/left = right * 1/(left * right).
    4. backwards: 1/x[i] = out[i] * 1/(the product up to i).

    A block has `threads * run` elements in a row; threads: a power of two.
    Shared memory: 2 * threads + 16 elements.
    """
    # one thread: run elements, every `threads`th
    tree = in_shared(cuda.shared.array(0, uint32), x)
    t, threads = np.int64(cuda.threadIdx.x), np.int64(cuda.blockDim.x)
    i = cuda.blockIdx.x * threads * run + t
    product = one_like(x[0])
    for _ in range(run):
        if i < n:
            value = x[i]
            out[i] = product
            if not is_zero(value):
                product = product * value
        i += threads

    tree[threads + t] = product
    width = threads >> 1
    while width > 0:
        cuda.syncthreads()
        if t < width:
            tree[width + t] = tree[2 * (width + t)] * tree[2 * (width + t) + 1]
        width >>= 1
    cuda.syncthreads()
    if t == 0:
        tree[1] = inv_in_table(tree[1], advance(tree, 2 * threads))
    width = np.int64(2)
    while width <= threads:
        cuda.syncthreads()
        if t < width:
            product = tree[(width + t) >> 1] * tree[(width + t) ^ 1]
        cuda.syncthreads()
        if t < width:
            tree[width + t] = product
        width <<= 1

    # nobody else writes a thread's own leaf
    inverse = tree[threads + t]
    for _ in range(run):
        i -= threads
        if i < n:
            value = x[i]
            if is_zero(value):
                out[i] = value
            else:
                out[i] = out[i] * inverse
                inverse = inverse * value


@device_function
def _reversed(i: int, bits: int) -> int:
    """The lowest `bits` bits of i < 2^bits in the opposite order; bits <= 32."""
    return np.int64(cuda.brev(np.uint32(i))) >> (WORD - bits)


@kernel(lambda field: (elements(field), elements(field), N, N), threads=THREADS)
def reverse_bits(x, out, log_n, side):  # type: ignore[no-untyped-def]
    """out[i] = x[j], j being i with its log_n bits in the opposite order; out must not be x.

    An index is (high, middle, low), high and low of `side` bits. A block takes all elements of one middle: rows of
    2^side elements, which lie together in x for each high, and in out for each reversed low.
    Threads: 4^side. Grid: 2^(log_n - 2 side). Shared memory: 2^side (2^side + 1) elements, a spare one ending each row
    so that those of a column are not all in the same banks.
    """
    # one thread: one element in, one out
    tile = in_shared(cuda.shared.array(0, uint32), x)
    t, middle = np.int64(cuda.threadIdx.x), np.int64(cuda.blockIdx.x)
    row, column = t >> side, t & ((1 << side) - 1)
    size = (1 << side) + 1
    middle_bits = log_n - 2 * side
    tile[row * size + column] = x[(((row << middle_bits) | middle) << side) | column]
    cuda.syncthreads()
    other = _reversed(middle, middle_bits)
    value = tile[_reversed(column, side) * size + _reversed(row, side)]
    out[(((row << middle_bits) | other) << side) | column] = value
