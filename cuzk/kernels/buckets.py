"""Kernels that sum the points of an MSM's buckets, and each window's buckets, whatever the buckets' sizes.

1. `accumulate`: one accumulator, an equal run of the sorted references: the points of each bucket in it are summed.
   A bucket that lies in one run is finished there; of one that does not, each run has a part.
2. `merge`: the parts of a bucket, which lie in neighbouring runs, are summed in each block; a block has parts of
   buckets that go beyond it, as a run had: again, until one block has all.
3. `sum_rows`: each window's buckets are cut into rows, of which one accumulator makes two sums, one of them weighted.
4. `combine_rows`: the same two sums for a block's rows, by a scan and a tree; then for a window's blocks.

An accumulator is a thread, or in G2 a pair of them (`field/lanes.py`). Sums are xyzz, points affine, all in
Montgomery form; memory that is all zeros is infinity in both. Bucket k of window w is number w * buckets + k, of
weight k + 1.

Cost for N references, T runs and B buckets of all windows: N mixed additions, T to T log2(block) full ones, 2 B full
ones. All of the same scalar cost what random ones do: that is what the equal runs are for.

Literature: Pippenger's method as in Bernstein, Doumen, Lange, Oosterwijk, "Faster batch forgery identification" (2012),
section 4; the scan is Hillis's and Steele's, "Data parallel algorithms" (1986).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import cuda
from numba.core.types import uint32

from cuzk.curve.point import add, add_mixed, dbl, infinity_like, negate_affine
from cuzk.field.element import device_function
from cuzk.field.lanes import lanes
from cuzk.field.vector import in_shared
from cuzk.kernels.declare import WORDS, N, affine_points, kernel, xyzz_points

THREADS = 128
BLOCKS = 3  # of a multiprocessor: 168 registers a thread, which a mixed addition at 381 bits needs
SUM_BLOCKS = 2  # 255 registers, for full additions
NONE = 0xFFFFFFFF  # no bucket


@device_function
def _bucket_of(offsets: Any, place: int, low: int, count: int) -> int:
    """The bucket k >= low with offsets[k] <= place < offsets[k + 1], near low if it is near: steps double, then halve.

    offsets[low] <= place < offsets[count].
    """
    step = np.int64(1)
    while low + step < count and np.int64(offsets[low + step]) <= place:
        low += step
        step *= 2
    high = min(low + step, count)
    while high - low > 1:
        middle = (low + high) >> 1
        if np.int64(offsets[middle]) <= place:
            low = middle
        else:
            high = middle
    return low


@kernel(
    lambda group: (
        affine_points(group), WORDS, WORDS, xyzz_points(group), xyzz_points(group), xyzz_points(group), WORDS, N, N, N
    ),
    threads=THREADS,
    blocks=BLOCKS,
)  # fmt: skip
def accumulate(points, references, offsets, buckets, heads, tails, keys, count, least, adding):  # type: ignore[no-untyped-def]
    """buckets[k] = the sum of bucket k's points, or with `adding` that much more, if they lie in one run.

    Run i has references i * run to (i + 1) * run, run being their number over that of accumulators, at least `least`.
    offsets[k]: where bucket k's references begin, k <= count. A reference is 2 * index of a point + (1 to subtract it).

    heads[i]: the sum in run i of a bucket that began before; keys[i]: that bucket, or NONE.
    tails[i]: the sum in run i of a bucket that begins in it and goes beyond it, with what was in buckets if `adding`.
    Buckets without references are not written.
    """
    # one accumulator: one run
    i = cuda.grid(1) // lanes(points)
    accumulators = np.int64(cuda.gridDim.x) * cuda.blockDim.x // lanes(points)
    size = np.int64(offsets[count])
    run = max((size + accumulators - 1) // accumulators, least)
    place = i * run
    last = min(place + run, size)
    key = np.int64(NONE)
    if place < last:
        bucket = _bucket_of(offsets, place, np.int64(0), count)
        begun = np.int64(offsets[bucket]) == place
        end = np.int64(offsets[bucket + 1])
        reference = np.int64(references[place])
        total = infinity_like(points[reference >> 1].x)
        if not begun:
            key = bucket
        elif adding != 0:
            total = buckets[bucket]
        while place < last:
            if place == end:
                if begun:
                    buckets[bucket] = total
                else:
                    heads[i] = total
                bucket = _bucket_of(offsets, place, bucket + 1, count)
                begun = True
                end = np.int64(offsets[bucket + 1])
                total = infinity_like(total.x)
                if adding != 0:
                    total = buckets[bucket]
            q = points[reference >> 1]
            negative = reference & 1
            place += 1
            # the next reference is under way while this point is added
            reference = np.int64(references[min(place, last - 1)])
            if negative != 0:
                q = negate_affine(q)
            total = add_mixed(total, q)
        if not begun:
            heads[i] = total
        elif end > last:
            tails[i] = total
        else:
            buckets[bucket] = total
    keys[i] = key


@kernel(
    lambda group: (
        xyzz_points(group), xyzz_points(group), WORDS, N,
        xyzz_points(group), xyzz_points(group), xyzz_points(group), WORDS,
    ),
    threads=THREADS,
    blocks=SUM_BLOCKS,
)  # fmt: skip
def merge(heads, tails, keys, count, buckets, block_heads, block_tails, block_keys):  # type: ignore[no-untyped-def]
    """Sum the parts of each bucket that runs left behind: into buckets, if they lie in one block, else as a block's.

    heads, tails, keys: of `count` runs, by `accumulate`; or of blocks, by this kernel. Run i has a tail where
    keys[i + 1] is a bucket that is not keys[i]. block_heads, block_tails, block_keys: the same, of blocks for runs.
    Shared memory: one sum an accumulator.
    """
    # one accumulator: one head, and the tail before it
    shared = in_shared(cuda.shared.array(0, uint32), buckets)
    t, width = np.int64(cuda.threadIdx.x) // lanes(buckets), np.int64(cuda.blockDim.x) // lanes(buckets)
    block = np.int64(cuda.blockIdx.x)
    i = block * width + t
    key, before, beyond = np.int64(NONE), np.int64(NONE), np.int64(NONE)
    if i < count:
        key = np.int64(keys[i])
    if 0 < i < count:
        before = np.int64(keys[i - 1])
    if (block + 1) * width < count:
        beyond = np.int64(keys[(block + 1) * width])
    total = infinity_like(heads[0].x)
    if key != NONE:
        total = heads[i]

    # distance 0: the tail before. Then total is the sum of the bucket's parts from t to t + 2 * distance in the block
    distance = np.int64(0)
    while distance < width:
        shared[t] = total
        cuda.syncthreads()
        if distance == 0:
            wanted = key != NONE and key != before
        else:
            wanted = key != NONE and t + distance < width and i + distance < count
            if wanted:
                wanted = np.int64(keys[i + distance]) == key
        if wanted:
            if distance == 0:
                part = tails[i - 1]
            else:
                part = shared[t + distance]
            total = add(total, part)
        cuda.syncthreads()
        distance = max(2 * distance, 1)

    if key != NONE:
        if key != before:
            if key == beyond:
                block_tails[block] = total
            else:
                buckets[key] = total
        elif t == 0:
            block_heads[block] = total
    if t == 0:
        if key != before:
            key = np.int64(NONE)
        block_keys[block] = key


@kernel(
    lambda group: (xyzz_points(group), xyzz_points(group), xyzz_points(group), N, N, N, N),
    threads=THREADS,
    blocks=SUM_BLOCKS,
)
def sum_rows(buckets, sums, weighted, count, rows, run, total_rows):  # type: ignore[no-untyped-def]
    """sums[i] = the sum of row i's buckets, weighted[i] = the same with weights 1, 2, 3...

    A window's `count` buckets are cut into `rows` rows of `run`, the last of them shorter; total_rows: of all windows.
    Shared memory: one sum an accumulator.
    """
    # one accumulator: one row
    shared = in_shared(cuda.shared.array(0, uint32), buckets)
    t = np.int64(cuda.threadIdx.x) // lanes(buckets)
    i = cuda.grid(1) // lanes(buckets)
    if i < total_rows:
        window = i // rows
        first = (i - window * rows) * run
        last = min(first + run, count)
        total = infinity_like(buckets[0].x)
        shared[t] = total
        # from the last bucket to the first: total += bucket, then the weighted sum += total; one addition for both
        k = window * count + last
        odd = False
        for _ in range(2 * (last - first)):
            if odd:
                part = shared[t]
            else:
                k -= 1
                part = buckets[k]
            result = add(total, part)
            if odd:
                shared[t] = result
            else:
                total = result
            odd = not odd
        sums[i] = total
        weighted[i] = shared[t]


@kernel(
    lambda group: (xyzz_points(group), xyzz_points(group), xyzz_points(group), xyzz_points(group), N, N, N),
    threads=THREADS,
    blocks=SUM_BLOCKS,
)
def combine_rows(sums, weighted, block_sums, block_weighted, count, scale, width_bits):  # type: ignore[no-untyped-def]
    """The two sums of each block's rows from those of the rows: `count` rows a window, of `scale` buckets each.

    With S_t and W_t the sums of row t, they are sum S_t and sum (W_t + t * scale * S_t). The sum of t * S_t is that of
    all S_t + S_(t+1) + ..., t > 0:

    1. a scan: total_t = S_t + S_(t+1) + ...
    2. total_t = scale * total_t for t > 0, and nothing for 0, by doubling and adding
    3. a tree, whose leaves are the totals and then the W_t.

    Grid: (blocks of a window, windows); accumulators of a block: 2^width_bits. Shared memory: two sums an accumulator.
    """
    # one accumulator: one row
    shared = in_shared(cuda.shared.array(0, uint32), sums)
    t, width = np.int64(cuda.threadIdx.x) // lanes(sums), np.int64(1) << width_bits
    window = np.int64(cuda.blockIdx.y)
    row = np.int64(cuda.blockIdx.x) * width + t
    place = window * cuda.gridDim.x + cuda.blockIdx.x
    total = infinity_like(sums[0].x)
    shared[width + t] = total
    if row < count:
        total = sums[window * count + row]
        shared[width + t] = weighted[window * count + row]
    bits = np.int64(0)
    while scale >> bits > 0:
        bits += 1

    # all steps of all three in one loop, since an addition takes long to compile and much room
    for step in range(2 * width_bits + bits + 1):
        if step == width_bits:
            if t == 0:
                block_sums[place] = total
            shared[t] = total
            total = infinity_like(total.x)
        if step < width_bits:
            shared[t] = total
            other = t + (np.int64(1) << step)
            wanted = other < width
        elif step < width_bits + bits:
            total = dbl(total)
            other = t
            wanted = t > 0 and (scale >> (width_bits + bits - 1 - step)) & 1 != 0
        else:
            half = width >> (step - width_bits - bits)
            shared[t] = total
            other = t + half
            wanted = t < half
        cuda.syncthreads()
        if wanted:
            total = add(total, shared[other])
        cuda.syncthreads()
    if t == 0:
        block_weighted[place] = total
