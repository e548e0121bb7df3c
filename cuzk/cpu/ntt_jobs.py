"""Jobs of the number-theoretic transform: whole passes over an array, in place.

A transform of n = 2^m values is m stages of butterflies. Stage s cuts the array into 2^s blocks, and every
butterfly of block b has the same twiddle, T[b] = w^(bit reversal of b in m - 1 bits). So one table in
bit-reversed order serves all stages, its first 2^s entries stage s, and it is read from left to right.

natural order -> bit-reversed: Cooley-Tukey butterflies (u + T v, u - T v), stages 0 .. m - 1;
bit-reversed -> natural: Gentleman-Sande butterflies (u + v, (u - v) T), stages m - 1 .. 0.

The inverse twiddles need no second table: 1/T[b] = -T[3 * 2^k - 1 - b] for 2^k <= b < 2^(k+1), since
negating the exponent n/2 - e keeps its lowest set bit and flips the bits above, which are the
lower bits of b.

Cache: the stages are grouped into passes, and a pass works on one tile at a time. A tile is either a contiguous
block (its stages see no other memory) or 2^k rows of a few adjacent columns, copied together; both go through
the same loops, with row length 1 in the first case. D. H. Bailey, "FFTs in external or hierarchical
memory" (1990), without its transpositions.
"""

from __future__ import annotations

from typing import Any

from numba.core import types

from cuzk.field.element import device_function, element_type
from cuzk.field.params import FIELDS
from cuzk.field.vector import Vector, advance


@device_function
def _last_power(b: int) -> int:
    """The largest power of two that is at most b, and 1 for 0."""
    top = 1
    while 2 * top <= b:
        top *= 2
    return top


@device_function
def _to_reversed(v: Any, log_rows: int, columns: int, table: Any, block: int, inverse: int) -> None:
    """log_rows stages of one tile, v[2^log_rows, columns], which is block `block` before the first."""
    half = columns << log_rows
    for stage in range(log_rows):
        half >>= 1
        b = block << stage
        top = _last_power(b)
        for c in range(1 << stage):
            low = 2 * half * c
            if b == 0:  # T[0] = 1
                for i in range(low, low + half):
                    x, y = v[i], v[i + half]
                    v[i] = x + y
                    v[i + half] = x - y
            else:
                if b == 2 * top:
                    top = b
                z = -table[3 * top - 1 - b] if inverse else table[b]
                for i in range(low, low + half):
                    x, y = v[i], v[i + half] * z
                    v[i] = x + y
                    v[i + half] = x - y
            b += 1


@device_function
def _from_reversed(v: Any, log_rows: int, columns: int, table: Any, block: int, inverse: int) -> None:
    """The same stages backwards."""
    half = columns
    for step in range(log_rows):
        stage = log_rows - 1 - step
        b = block << stage
        top = _last_power(b)
        for c in range(1 << stage):
            low = 2 * half * c
            if b == 0:
                for i in range(low, low + half):
                    x, y = v[i], v[i + half]
                    v[i] = x + y
                    v[i + half] = x - y
            else:
                if b == 2 * top:
                    top = b
                z = -table[3 * top - 1 - b] if inverse else table[b]
                for i in range(low, low + half):
                    x, y = v[i], v[i + half]
                    v[i] = x + y
                    v[i + half] = (x - y) * z
            b += 1
        half *= 2


@device_function
def _tile_place(tile: int, log_stride: int, log_rows: int, columns: int) -> tuple[int, int]:
    """(block, index of the first value) of a strided tile; a block has stride/columns of them."""
    per_block = (1 << log_stride) // columns
    block = tile // per_block
    return block, (block << (log_stride + log_rows)) + (tile - block * per_block) * columns


@device_function
def _gather(v: Any, first: int, log_stride: int, rows: int, columns: int, work: Any) -> None:
    for r in range(rows):
        for c in range(columns):
            work[r * columns + c] = v[first + (r << log_stride) + c]


@device_function
def _scatter(v: Any, first: int, log_stride: int, rows: int, columns: int, work: Any) -> None:
    for r in range(rows):
        for c in range(columns):
            v[first + (r << log_stride) + c] = work[r * columns + c]


def strided_to_reversed(
    v: Any, log_stride: int, log_rows: int, columns: int, start: int, stop: int, table: Any, inverse: int, work: Any
) -> int:
    """log_rows stages over tiles start .. stop - 1; a tile's rows lie 2^log_stride apart. work: one tile."""
    for tile in range(start, stop):
        block, first = _tile_place(tile, log_stride, log_rows, columns)
        _gather(v, first, log_stride, 1 << log_rows, columns, work)
        _to_reversed(work, log_rows, columns, table, block, inverse)
        _scatter(v, first, log_stride, 1 << log_rows, columns, work)
    return 0


def strided_from_reversed(
    v: Any, log_stride: int, log_rows: int, columns: int, start: int, stop: int, table: Any, inverse: int, work: Any
) -> int:
    """The same stages backwards."""
    for tile in range(start, stop):
        block, first = _tile_place(tile, log_stride, log_rows, columns)
        _gather(v, first, log_stride, 1 << log_rows, columns, work)
        _from_reversed(work, log_rows, columns, table, block, inverse)
        _scatter(v, first, log_stride, 1 << log_rows, columns, work)
    return 0


def blocks_to_reversed(v: Any, log_size: int, start: int, stop: int, table: Any, inverse: int) -> int:
    """The last log_size stages, of the contiguous blocks start .. stop - 1."""
    for block in range(start, stop):
        _to_reversed(advance(v, block << log_size), log_size, 1, table, block, inverse)
    return 0


def blocks_from_reversed(v: Any, log_size: int, start: int, stop: int, table: Any, inverse: int) -> int:
    """The same stages backwards, which are the first of that direction."""
    for block in range(start, stop):
        _from_reversed(advance(v, block << log_size), log_size, 1, table, block, inverse)
    return 0


def convolve_blocks(v: Any, log_size: int, start: int, stop: int, table: Any, factors: Any) -> int:
    """For each block: the last stages of an inverse transform, times factors, the first stages of a forward one.

    factors: in bit-reversed order, one for each value of the whole array.
    """
    for block in range(start, stop):
        first = block << log_size
        part = advance(v, first)
        _to_reversed(part, log_size, 1, table, block, 1)
        for i in range(1 << log_size):
            part[i] = part[i] * factors[first + i]
        _from_reversed(part, log_size, 1, table, block, 0)
    return 0


def extend_table(table: Any, size: int, start: int, stop: int) -> int:
    """table[size + j] = table[j] * table[size] for start <= j < stop, start >= 1: exponents of which add."""
    factor = table[size]
    for j in range(start, stop):
        table[size + j] = table[j] * factor
    return 0


@device_function
def _reverse_bits(i: int, bits: int) -> int:
    result = 0
    for _ in range(bits):
        result = 2 * result + (i & 1)
        i >>= 1
    return result


def permute(x: Any, out: Any, log_n: int, start: int, stop: int, factors: Any, scaling: int) -> int:
    """out[bit reversal of i] = x[i], times factors[0] * factors[1]^(i - start), for start <= i < stop.

    scaling: 0 for no factor, 1 for factors[0] alone, 2 for both.
    """
    j = _reverse_bits(start, log_n)
    factor, step = factors[0], factors[1]
    for i in range(start, stop):
        if scaling == 0:
            out[j] = x[i]
        else:
            out[j] = x[i] * factor
            if scaling == 2:
                factor = factor * step
        # j + 1 in reversed arithmetic: the carry runs downwards
        bit = (1 << log_n) >> 1
        while j & bit:
            j ^= bit
            bit >>= 1
        j |= bit
    return 0


def scale(x: Any, start: int, stop: int, factors: Any) -> int:
    """x[i] times factors[0] * factors[1]^(i - start), in place."""
    factor, step = factors[0], factors[1]
    for i in range(start, stop):
        x[i] = x[i] * factor
        factor = factor * step
    return 0


def first_not_below(words: Any, limbs: int, n: int, bound: Any) -> int:
    """Index of the first of n values of `limbs` words that is not below the bound, or -1."""
    for i in range(n):
        k = limbs - 1
        while k > 0 and words[i * limbs + k] == bound[k]:
            k -= 1
        if words[i * limbs + k] >= bound[k]:
            return i
    return -1


def jobs(target: str) -> dict[str, Any]:
    """target: a field's name."""
    v, n, u32 = Vector(element_type(FIELDS[target])), types.int64, Vector(types.uint32)
    strided = (v, n, n, n, n, n, v, n, v)
    blocks = (v, n, n, n, v, n)
    return {
        "strided_to_reversed": (strided_to_reversed, strided),
        "strided_from_reversed": (strided_from_reversed, strided),
        "blocks_to_reversed": (blocks_to_reversed, blocks),
        "blocks_from_reversed": (blocks_from_reversed, blocks),
        "convolve_blocks": (convolve_blocks, (v, n, n, n, v, v)),
        "extend_table": (extend_table, (v, n, n, n)),
        "permute": (permute, (v, v, n, n, n, v, n)),
        "scale": (scale, (v, n, n, v)),
        "first_not_below": (first_not_below, (u32, n, n, u32)),
    }
