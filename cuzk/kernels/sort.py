"""Kernels that sort an MSM's points by bucket: a radix sort of signed digits in two passes, counting in shared memory.

1. `digits`:         one thread, one scalar: its signed digits, one key a window.
2. `count_coarse`:   one block, a tile of one window's keys: how many fall into each of 2^h bins.
3. `scan_coarse`:    one block: where each bin of each window begins.
4. `scatter_coarse`: one block, a tile: its references, and the low bits of their buckets, into their bins.
5. `sort_bins`:      one block, one bin: counts its 2^f buckets, writes where they begin, moves references there.

A key is 2 |d| + (1 if d < 0) for the digit d; its bucket is |d| - 1, of c - 1 = h + f bits: the high h number the bin.
Digits 0 are left out: their keys are 0 or 1. A reference is 2 * index + (1 if d < 0).

Traffic in bytes a reference: 2.7 + 4, 4, -, 4 (and 4 from the cache) + 8, 12 + 4: about 35, if W = 12.

Literature: Merrill, Grimshaw, "High Performance and Scalable Radix Sorting" (PPL 21, 2011), for sorting by tiles; here
tiles reserve their places by atomics, since the order inside a bucket is free.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import cuda
from numba.core.types import uint32

from cuzk.field.element import device_function, from_montgomery
from cuzk.field.vector import atomic_add
from cuzk.kernels.declare import WORDS, N, elements, kernel

THREADS = 256
MAX_THREADS = 1024
WORD = 32
WORD_MASK = (1 << WORD) - 1


@kernel(lambda field: (elements(field), elements(field), N), threads=THREADS)
def scalars_from_montgomery(x, out, n):  # type: ignore[no-untyped-def]
    """out[i] = the plain limbs of x[i]; x and out may be the same."""
    # one thread: one scalar
    i = cuda.grid(1)
    if i < n:
        out[i] = from_montgomery(x[i])


@kernel(lambda field: (WORDS, WORDS, WORDS, *[N] * 12), threads=THREADS)
def digits(scalars, keys, status, n, windows, digit_bits, fold, m0, m1, m2, m3, m4, m5, m6, m7):  # type: ignore[no-untyped-def]
    """keys[w * n + i] = the key of window w of scalar i.

    scalars: uint32[n, 8], plain; m0..m7: the words of their field's modulus r. Digits are in [-2^(c-1), 2^(c-1)), but
    the last window's are not negative. fold: where s > r/2, take the digits of r - s, negated: a bit
    less to hold. A scalar that is not below r counts as zero, and status[0] becomes the index of one such plus 1.
    """
    # one thread: one scalar
    i = cuda.grid(1)
    if i < n:
        base = 8 * i
        v0, v1 = np.int64(scalars[base]), np.int64(scalars[base + 1])
        v2, v3 = np.int64(scalars[base + 2]), np.int64(scalars[base + 3])
        v4, v5 = np.int64(scalars[base + 4]), np.int64(scalars[base + 5])
        v6, v7 = np.int64(scalars[base + 6]), np.int64(scalars[base + 7])
        # scalar - modulus borrows exactly where the scalar is below it
        borrow = (v0 - m0) >> WORD
        borrow = (v1 - m1 + borrow) >> WORD
        borrow = (v2 - m2 + borrow) >> WORD
        borrow = (v3 - m3 + borrow) >> WORD
        borrow = (v4 - m4 + borrow) >> WORD
        borrow = (v5 - m5 + borrow) >> WORD
        borrow = (v6 - m6 + borrow) >> WORD
        borrow = (v7 - m7 + borrow) >> WORD
        if borrow == 0:
            status[0] = i + 1  # many threads may write; any of their values will do
            v0, v1, v2, v3, v4, v5, v6, v7 = 0, 0, 0, 0, 0, 0, 0, 0

        flip = 0
        if fold != 0:
            d0 = m0 - v0
            d1 = m1 - v1 + (d0 >> WORD)
            d2 = m2 - v2 + (d1 >> WORD)
            d3 = m3 - v3 + (d2 >> WORD)
            d4 = m4 - v4 + (d3 >> WORD)
            d5 = m5 - v5 + (d4 >> WORD)
            d6 = m6 - v6 + (d5 >> WORD)
            d7 = m7 - v7 + (d6 >> WORD)
            d0, d1, d2, d3 = d0 & WORD_MASK, d1 & WORD_MASK, d2 & WORD_MASK, d3 & WORD_MASK
            d4, d5, d6 = d4 & WORD_MASK, d5 & WORD_MASK, d6 & WORD_MASK
            borrow = (d0 - v0) >> WORD
            borrow = (d1 - v1 + borrow) >> WORD
            borrow = (d2 - v2 + borrow) >> WORD
            borrow = (d3 - v3 + borrow) >> WORD
            borrow = (d4 - v4 + borrow) >> WORD
            borrow = (d5 - v5 + borrow) >> WORD
            borrow = (d6 - v6 + borrow) >> WORD
            borrow = (d7 - v7 + borrow) >> WORD
            if borrow != 0:
                v0, v1, v2, v3, v4, v5, v6, v7 = d0, d1, d2, d3, d4, d5, d6, d7
                flip = 1

        full = 1 << digit_bits
        half = full >> 1
        carry = 0
        place = i
        for w in range(windows):
            digit = (v0 & (full - 1)) + carry
            negative = 0
            if digit >= half and w < windows - 1:
                digit = full - digit
                negative = 1
            carry = negative
            keys[place] = 2 * digit + (negative ^ flip)
            place += n
            v0 = (v0 | v1 << WORD) >> digit_bits & WORD_MASK
            v1 = (v1 | v2 << WORD) >> digit_bits & WORD_MASK
            v2 = (v2 | v3 << WORD) >> digit_bits & WORD_MASK
            v3 = (v3 | v4 << WORD) >> digit_bits & WORD_MASK
            v4 = (v4 | v5 << WORD) >> digit_bits & WORD_MASK
            v5 = (v5 | v6 << WORD) >> digit_bits & WORD_MASK
            v6 = (v6 | v7 << WORD) >> digit_bits & WORD_MASK
            v7 = v7 >> digit_bits


@device_function
def _clear(counts: Any, size: int, t: int, threads: int) -> None:
    b = t
    while b < size:
        counts[b] = 0
        b += threads


@device_function
def _bin(key: int, fine_bits: int) -> int:
    """The bin of a key; negative where the digit is zero."""
    return ((key >> 1) - 1) >> fine_bits


@device_function
def _count_one(counts: Any, b: int) -> None:
    if b >= 0:
        cuda.atomic.add(counts, b, 1)


@device_function
def _count_tile(counts: Any, keys: Any, first: int, last: int, fine_bits: int, t: int, threads: int) -> None:
    """counts[b] += how many of keys[first:last] are in bin b; four loads are under way at a time."""
    i = first + t
    while i + 3 * threads < last:
        k0, k1 = np.int64(keys[i]), np.int64(keys[i + threads])
        k2, k3 = np.int64(keys[i + 2 * threads]), np.int64(keys[i + 3 * threads])
        b0, b1, b2, b3 = _bin(k0, fine_bits), _bin(k1, fine_bits), _bin(k2, fine_bits), _bin(k3, fine_bits)
        if b0 == b1 and b1 == b2 and b2 == b3:
            # atomics on one address wait for each other: fewer of them where many scalars are alike
            if b0 >= 0:
                cuda.atomic.add(counts, b0, 4)
        else:
            _count_one(counts, b0)
            _count_one(counts, b1)
            _count_one(counts, b2)
            _count_one(counts, b3)
        i += 4 * threads
    while i < last:
        _count_one(counts, _bin(np.int64(keys[i]), fine_bits))
        i += threads


@kernel(lambda field: (WORDS, WORDS, N, N, N, N), threads=MAX_THREADS)
def count_coarse(keys, coarse, n, tile, coarse_bits, fine_bits):  # type: ignore[no-untyped-def]
    """coarse[w * 2^h + b] += how many keys of window w are in bin b.

    Grid: (tiles, windows). Shared memory: 2^h words.
    """
    # one block: one tile of one window
    counts = cuda.shared.array(0, uint32)
    t, threads = cuda.threadIdx.x, cuda.blockDim.x
    bins = 1 << coarse_bits
    window = np.int64(cuda.blockIdx.y)
    first = cuda.blockIdx.x * tile
    last = min(first + tile, n)
    _clear(counts, bins, t, threads)
    cuda.syncthreads()
    _count_tile(counts, keys, window * n + first, window * n + last, fine_bits, t, threads)
    cuda.syncthreads()
    b = np.int64(t)
    while b < bins:
        count = np.int64(counts[b])
        if count > 0:
            atomic_add(coarse, (window << coarse_bits) + b, count)
        b += threads


@device_function
def _exclusive_sum(sums: Any, first: int, mine: int, t: int, threads: int) -> int:
    """The sum of `mine` over all threads before t, by Hillis and Steele; sums[first:first + threads] is the block's."""
    sums[first + t] = mine
    cuda.syncthreads()
    distance = 1
    while distance < threads:
        before = np.int64(0)
        if t >= distance:
            before = np.int64(sums[first + t - distance])
        cuda.syncthreads()
        if t >= distance:
            sums[first + t] = np.int64(sums[first + t]) + before
        cuda.syncthreads()
        distance *= 2
    return np.int64(sums[first + t]) - mine


@kernel(lambda field: (WORDS, N, N), threads=MAX_THREADS)
def scan_coarse(coarse, entries, run):  # type: ignore[no-untyped-def]
    """coarse[k] = the sum of what was in coarse[:k], for k < entries.

    run: entries a thread, rounded up. Grid: 1. Shared memory: one word a thread.
    """
    # one thread: a run of entries
    sums = cuda.shared.array(0, uint32)
    t, threads = cuda.threadIdx.x, cuda.blockDim.x
    first = min(t * run, entries)
    last = min(first + run, entries)
    total = np.int64(0)
    for k in range(first, last):
        total += np.int64(coarse[k])
    place = _exclusive_sum(sums, 0, total, t, threads)
    for k in range(first, last):
        count = np.int64(coarse[k])
        coarse[k] = place
        place += count


@kernel(lambda field: (WORDS, WORDS, WORDS, WORDS, N, N, N, N), threads=MAX_THREADS)
def scatter_coarse(keys, coarse, references, lows, n, tile, coarse_bits, fine_bits):  # type: ignore[no-untyped-def]
    """Each key's reference, and the low f bits of its bucket, into its bin's part of references and of lows.

    coarse: where the next one of each bin goes; at the end, where the next bin begins.
    Grid: (tiles, windows). Shared memory: 2^h words.
    """
    # one block: one tile of one window
    places = cuda.shared.array(0, uint32)
    t, threads = cuda.threadIdx.x, cuda.blockDim.x
    bins = 1 << coarse_bits
    window = np.int64(cuda.blockIdx.y)
    first = cuda.blockIdx.x * tile
    last = min(first + tile, n)
    # how many go to each bin, then room for them
    _clear(places, bins, t, threads)
    cuda.syncthreads()
    _count_tile(places, keys, window * n + first, window * n + last, fine_bits, t, threads)
    cuda.syncthreads()
    b = np.int64(t)
    while b < bins:
        count = np.int64(places[b])
        if count > 0:
            places[b] = atomic_add(coarse, (window << coarse_bits) + b, count)
        b += threads
    cuda.syncthreads()
    low_mask = (1 << fine_bits) - 1
    i = np.int64(first + t)
    while i < last:
        key = np.int64(keys[window * n + i])
        if key >= 2:
            place = np.int64(cuda.atomic.add(places, _bin(key, fine_bits), 1))
            references[place] = 2 * i + (key & 1)
            lows[place] = ((key >> 1) - 1) & low_mask
        i += threads


@device_function
def _count_lows(counts: Any, lows: Any, begin: int, end: int, t: int, threads: int) -> None:
    """counts[low] += 1 for lows[begin:end]; four loads are under way at a time."""
    i = begin + t
    while i + 3 * threads < end:
        b0, b1 = np.int64(lows[i]), np.int64(lows[i + threads])
        b2, b3 = np.int64(lows[i + 2 * threads]), np.int64(lows[i + 3 * threads])
        if b0 == b1 and b1 == b2 and b2 == b3:
            cuda.atomic.add(counts, b0, 4)
        else:
            cuda.atomic.add(counts, b0, 1)
            cuda.atomic.add(counts, b1, 1)
            cuda.atomic.add(counts, b2, 1)
            cuda.atomic.add(counts, b3, 1)
        i += 4 * threads
    while i < end:
        cuda.atomic.add(counts, np.int64(lows[i]), 1)
        i += threads


@kernel(lambda field: (WORDS, WORDS, WORDS, WORDS, WORDS, N, N), threads=MAX_THREADS)
def sort_bins(coarse, unsorted, lows, references, offsets, fine_bits, run):  # type: ignore[no-untyped-def]
    """references = unsorted, by bucket in each bin; offsets[k] = where bucket k begins, and at the end their number.

    coarse: where each bin ends; run: buckets a thread, rounded up.
    Grid: the bins of all windows. Shared memory: 2^f words, and one a thread.
    """
    # one block: one bin
    places = cuda.shared.array(0, uint32)
    t, threads = cuda.threadIdx.x, cuda.blockDim.x
    size = 1 << fine_bits
    this = np.int64(cuda.blockIdx.x)
    begin = np.int64(0)
    if this > 0:
        begin = np.int64(coarse[this - 1])
    end = np.int64(coarse[this])
    _clear(places, size, t, threads)
    cuda.syncthreads()
    _count_lows(places, lows, begin, end, t, threads)
    cuda.syncthreads()

    # where each bucket begins: every thread sums a run of buckets
    first = min(t * run, size)
    last = min(first + run, size)
    total = np.int64(0)
    for k in range(first, last):
        total += np.int64(places[k])
    place = begin + _exclusive_sum(places, size, total, t, threads)
    for k in range(first, last):
        count = np.int64(places[k])
        places[k] = place
        place += count
    cuda.syncthreads()
    k = np.int64(t)
    while k < size:
        offsets[(this << fine_bits) + k] = np.int64(places[k])
        k += threads
    if t == 0 and this == cuda.gridDim.x - 1:
        offsets[(this + 1) << fine_bits] = end
    cuda.syncthreads()

    i = begin + t
    while i + 3 * threads < end:
        b0, b1 = np.int64(lows[i]), np.int64(lows[i + threads])
        b2, b3 = np.int64(lows[i + 2 * threads]), np.int64(lows[i + 3 * threads])
        r0, r1 = unsorted[i], unsorted[i + threads]
        r2, r3 = unsorted[i + 2 * threads], unsorted[i + 3 * threads]
        if b0 == b1 and b1 == b2 and b2 == b3:
            place = np.int64(cuda.atomic.add(places, b0, 4))
            references[place] = r0
            references[place + 1] = r1
            references[place + 2] = r2
            references[place + 3] = r3
        else:
            references[np.int64(cuda.atomic.add(places, b0, 1))] = r0
            references[np.int64(cuda.atomic.add(places, b1, 1))] = r1
            references[np.int64(cuda.atomic.add(places, b2, 1))] = r2
            references[np.int64(cuda.atomic.add(places, b3, 1))] = r3
        i += 4 * threads
    while i < end:
        references[np.int64(cuda.atomic.add(places, np.int64(lows[i]), 1))] = unsorted[i]
        i += threads
