"""Passes of the NTT: several stages each, over tiles that a block holds in shared memory.

Both directions share one network (Cooley and Tukey; Gentleman and Sande backwards) in which all butterflies of a
block of a stage have the same twiddle: block b of stage s, of n / 2^s values, splits into halves by

    (x, y) -> (x + y z, x - y z)        z = table[b]            for a transform at the powers of w
                                        z = table[2^s + b]      on a coset, whose shift the table has in it (`nodes`)

with table[b] = w^(bit reversal of b), one table for all stages and for smaller transforms. Natural order goes in and
bit-reversed comes out; `from_reversed` undoes that but for a factor n, with 1/w for w.

Cost of n = 2^m values: n m / 2 products. On an H200 the multipliers do 64 G butterflies/s: 3.1 ms at 2^24, of which
moving the values through three passes takes 0.75.
"""

from __future__ import annotations

import numpy as np
from numba import cuda
from numba.core.types import uint32

from cuzk.field.element import device_function
from cuzk.field.vector import advance, in_shared
from cuzk.kernels.declare import N, elements, kernel

THREADS = 256
BLOCKS = 3  # on a multiprocessor: 85 registers a thread
CONSTANT, AFTER, BEFORE = 1, 2, 3  # what `scaling` says


@device_function
def swizzled(e: int) -> int:
    """Where value e of a tile lies, so that eight neighbouring threads of any step use all banks.

    Eight threads differ in three bits of e: 0 1 2, or 0 1 4, 0 3 4 or 2 3 4 in the last steps. Bits 3 and 4 are added
    to the lowest three such that each of these sets reaches all their values.
    """
    return e ^ (((e >> 3) & 1) << 1) ^ (((e >> 4) & 1) * 5)


@device_function
def _place(e: int, first: int, log_stride: int, log_columns: int) -> int:
    """Index in the array of value e of a tile: row e >> log_columns, rows being 2^log_stride apart."""
    return first + ((e >> log_columns) << log_stride) + (e & ((1 << log_columns) - 1))


@device_function
def _block_of(tile: int, log_stride: int, log_columns: int) -> int:
    """The block, at the pass's first stage, that a tile belongs to: a block has 2^(log_stride - log_columns) tiles."""
    return tile >> (log_stride - log_columns)


@device_function
def _first_of(tile: int, block: int, log_stride: int, log_rows: int, log_columns: int) -> int:
    """Index of a tile's first value."""
    inside = tile - (block << (log_stride - log_columns))
    return (block << (log_stride + log_rows)) + (inside << log_columns)


@device_function
def _load(x, tile, factors, first, size, log_stride, log_columns, scaling):  # type: ignore[no-untyped-def]
    e, threads = np.int64(cuda.threadIdx.x), np.int64(cuda.blockDim.x)
    if scaling != BEFORE:
        # four at a time: what is under way at once is what hides the memory's latency
        while e + 3 * threads < size:
            a = x[_place(e, first, log_stride, log_columns)]
            b = x[_place(e + threads, first, log_stride, log_columns)]
            c = x[_place(e + 2 * threads, first, log_stride, log_columns)]
            d = x[_place(e + 3 * threads, first, log_stride, log_columns)]
            tile[swizzled(e)] = a
            tile[swizzled(e + threads)] = b
            tile[swizzled(e + 2 * threads)] = c
            tile[swizzled(e + 3 * threads)] = d
            e += 4 * threads
    while e < size:
        place = _place(e, first, log_stride, log_columns)
        value = x[place]
        if scaling == BEFORE:
            value = value * factors[place]
        tile[swizzled(e)] = value
        e += threads


@device_function
def _store(tile, out, factors, first, size, log_stride, log_columns, scaling):  # type: ignore[no-untyped-def]
    e, threads = np.int64(cuda.threadIdx.x), np.int64(cuda.blockDim.x)
    while e < size:
        place = _place(e, first, log_stride, log_columns)
        value = tile[swizzled(e)]
        if scaling == CONSTANT:
            value = value * factors[0]
        if scaling == AFTER:
            value = value * factors[place]
        out[place] = value
        e += threads


@kernel(
    lambda field: (elements(field), elements(field), elements(field), elements(field), N, N, N, N, N, N),
    threads=THREADS,
    blocks=BLOCKS,
)
def to_reversed(x, out, table, factors, log_n, log_stride, log_rows, log_columns, nodes, scaling):  # type: ignore[no-untyped-def]
    """log_rows stages of transforms of 2^log_n values, from x to out, which may be x.

    A tile is 2^log_rows rows of 2^log_columns neighbouring values, rows 2^log_stride apart: the stages that are done
    before are those of larger strides.
    table:   see the module; nodes: 1 where it has the coset's shift in it.
    scaling: 0; CONSTANT: values are multiplied by factors[0] as they are stored; AFTER, BEFORE: value i by factors[i],
             as it is stored or loaded.
    Grid: (2^(log_n - log_rows - log_columns), transforms that lie one after another). Shared memory: a tile.
    """
    # one thread: four values a step of two stages
    tile = in_shared(cuda.shared.array(0, uint32), x)
    t, threads = np.int64(cuda.threadIdx.x), np.int64(cuda.blockDim.x)
    begin = np.int64(cuda.blockIdx.y) << log_n
    x, out = advance(x, begin), advance(out, begin)
    number, size = np.int64(cuda.blockIdx.x), 1 << (log_rows + log_columns)
    block = _block_of(number, log_stride, log_columns)
    first = _first_of(number, block, log_stride, log_rows, log_columns)
    stage = log_n - log_stride - log_rows
    done = np.int64(0)

    _load(x, tile, factors, first, size, log_stride, log_columns, scaling)
    cuda.syncthreads()
    if log_rows & 1:
        half = size >> 1
        z = table[(nodes << stage) + block]
        e = t
        while e < half:
            i, j = swizzled(e), swizzled(e + half)
            a, b = tile[i], tile[j] * z
            tile[i] = a + b
            tile[j] = a - b
            e += threads
        done += 1
        cuda.syncthreads()
    while done < log_rows:
        log_quarter = log_rows - done - 2 + log_columns
        quarter = 1 << log_quarter
        u = t
        while u < size >> 2:
            c = u >> log_quarter
            e = (c << (log_quarter + 2)) + (u & (quarter - 1))
            b = (block << done) + c
            i0, i1 = swizzled(e), swizzled(e + quarter)
            i2, i3 = swizzled(e + 2 * quarter), swizzled(e + 3 * quarter)
            z = table[(nodes << (stage + done)) + b]
            a0, a1 = tile[i0], tile[i1]
            p2, p3 = tile[i2] * z, tile[i3] * z
            below = (nodes << (stage + done + 1)) + 2 * b
            p1, p4 = (a1 + p3) * table[below], (a1 - p3) * table[below + 1]
            upper, lower = a0 + p2, a0 - p2
            tile[i0] = upper + p1
            tile[i1] = upper - p1
            tile[i2] = lower + p4
            tile[i3] = lower - p4
            u += threads
        done += 2
        cuda.syncthreads()
    _store(tile, out, factors, first, size, log_stride, log_columns, scaling)


@kernel(
    lambda field: (elements(field), elements(field), elements(field), elements(field), N, N, N, N, N, N),
    threads=THREADS,
    blocks=BLOCKS,
)
def from_reversed(x, out, table, factors, log_n, log_stride, log_rows, log_columns, nodes, scaling):  # type: ignore[no-untyped-def]
    """The same stages backwards: bit-reversed order goes into the first pass, natural comes out of the last.

    (x, y) -> (x + y, (x - y) z), so that a table of 1/w, and of a coset's inverse shift, undoes `to_reversed` but for
    a factor n.
    """
    # one thread: four values a step of two stages
    tile = in_shared(cuda.shared.array(0, uint32), x)
    t, threads = np.int64(cuda.threadIdx.x), np.int64(cuda.blockDim.x)
    begin = np.int64(cuda.blockIdx.y) << log_n
    x, out = advance(x, begin), advance(out, begin)
    number, size = np.int64(cuda.blockIdx.x), 1 << (log_rows + log_columns)
    block = _block_of(number, log_stride, log_columns)
    first = _first_of(number, block, log_stride, log_rows, log_columns)
    stage = log_n - log_stride - log_rows
    done = log_rows - 2

    _load(x, tile, factors, first, size, log_stride, log_columns, scaling)
    cuda.syncthreads()
    while done >= 0:
        log_quarter = log_rows - done - 2 + log_columns
        quarter = 1 << log_quarter
        u = t
        while u < size >> 2:
            c = u >> log_quarter
            e = (c << (log_quarter + 2)) + (u & (quarter - 1))
            b = (block << done) + c
            i0, i1 = swizzled(e), swizzled(e + quarter)
            i2, i3 = swizzled(e + 2 * quarter), swizzled(e + 3 * quarter)
            below = (nodes << (stage + done + 1)) + 2 * b
            a0, a1 = tile[i0], tile[i1]
            upper, d0 = a0 + a1, (a0 - a1) * table[below]
            a2, a3 = tile[i2], tile[i3]
            lower, d1 = a2 + a3, (a2 - a3) * table[below + 1]
            z = table[(nodes << (stage + done)) + b]
            tile[i0] = upper + lower
            tile[i2] = (upper - lower) * z
            tile[i1] = d0 + d1
            tile[i3] = (d0 - d1) * z
            u += threads
        done -= 2
        cuda.syncthreads()
    if log_rows & 1:
        half = size >> 1
        z = table[(nodes << stage) + block]
        e = t
        while e < half:
            i, j = swizzled(e), swizzled(e + half)
            a, b = tile[i], tile[j]
            tile[i] = a + b
            tile[j] = (a - b) * z
            e += threads
        cuda.syncthreads()
    _store(tile, out, factors, first, size, log_stride, log_columns, scaling)


@kernel(lambda field: (elements(field), elements(field), N, N), threads=THREADS)
def extend(table, steps, size, k):  # type: ignore[no-untyped-def]
    """table[size + j] = table[j] * steps[k] for j < size: powers in bit-reversed order, doubled."""
    # one thread: one power
    j = cuda.grid(1)
    if j < size:
        table[size + j] = table[j] * steps[k]


@kernel(lambda field: (elements(field), elements(field), elements(field), N), threads=THREADS)
def node_table(table, shifts, out, n):  # type: ignore[no-untyped-def]
    """out[2^s + b] = table[b] * shifts[s] for b < 2^s < n, n a power of two; out[0] = table[0], which nobody reads."""
    # one thread: one node
    i = cuda.grid(1)
    if i < n:
        s = np.int64(0)
        while (i >> (s + 1)) > 0:
            s += 1
        if i == 0:
            out[i] = table[i]
        else:
            out[i] = table[i - (np.int64(1) << s)] * shifts[s]
