"""Jobs of the multi-scalar multiplication: Pippenger's buckets with batch-affine additions.

One task sums one window of a range of points:

1. digits: the window's signed digit of each scalar, d in [-2^(c-1), 2^(c-1)].
2. sort: a counting sort of the points by |d|, the sign kept beside the index; d = 0 drops out.
3. accumulate: each bucket's points are added pairwise, then the sums pairwise, and so on. All additions of a
   round are independent, so they share inversions: an affine addition costs 5M + 1S and a share of
   one inversion, instead of the 8M + 2S of a mixed addition, and a single huge bucket is no
   slower than many small ones.
4. reduce: sum of d * bucket[d], in two dimensions (see `_weighted_sum`).

Literature: Bernstein, Doumen, Lange, Oosterwijk, "Faster batch forgery identification" (BDLO12, eprint
2012/549), section 4, for the buckets; Montgomery's trick for the shared inversions as in
Botrel, El Housni, "Faster MSM and EdMSM" (TCHES 2023), section 4.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.core import types

from cuzk.curve.point import (
    Affine,
    add,
    add_mixed,
    affine_is_infinity,
    affine_type,
    coordinate_type,
    dbl,
    infinity_like,
    negate_affine,
    to_affine,
    xyzz_type,
)
from cuzk.field.element import device_function, double, is_zero, one_like, sqr
from cuzk.field.hints import never_inline
from cuzk.field.params import GROUPS
from cuzk.field.prime import inv
from cuzk.field.vector import Vector, advance

WORD = 32
WORD_MASK = (1 << WORD) - 1


@device_function
def _signed_digit(scalars: Any, i: int, words: int, bias: Any, shift: int, mask: int, offset: int) -> int:
    """The digit at bit `shift` of scalar i.

    Adding bias = the sum of 2^(c-1) over all windows but the last makes the digits of windows independent:
    digit = ((s + bias) >> shift & mask) - 2^(c-1), with no carry to hand from window to window.
    """
    first = shift // WORD
    carry = 0
    low = 0
    high = 0
    base = i * words
    for k in range(min(first + 2, words)):
        total = np.int64(scalars[base + k]) + np.int64(bias[k]) + carry
        carry = total >> WORD
        if k == first:
            low = total & WORD_MASK
        elif k == first + 1:
            high = total & WORD_MASK
    return (((high << WORD | low) >> (shift - first * WORD)) & mask) - offset


@device_function
def _signed_point(points: Any, reference: int) -> Any:
    """A reference is 2*index, plus 1 where the point is to be negated."""
    p = points[reference >> 1]
    if reference & 1:
        return negate_affine(p)
    return p


@device_function
def _add_batch(left: Any, right: Any, out: Any, pairs: Any, count: int, slopes: Any, prefixes: Any) -> None:
    """out[pairs[3k+2]] = left[pairs[3k]] + right[pairs[3k+1]] for k < count, with one inversion.

    The slope of each pair has the denominator x2 - x1, or 2y for a doubling; pairs with none (a point at
    infinity, or a sum that is infinity) take 1, so that the product of all is never zero.
    """
    never_inline()
    if count == 0:
        return
    product = one_like(slopes[0])
    for k in range(count):
        p = _signed_point(left, pairs[3 * k])
        q = _signed_point(right, pairs[3 * k + 1])
        denominator = q.x - p.x
        if is_zero(denominator):
            denominator = double(p.y)
            if is_zero(denominator) or p.y != q.y:
                denominator = one_like(p.x)
        elif affine_is_infinity(p) or affine_is_infinity(q):
            denominator = one_like(p.x)
        slopes[k] = denominator
        prefixes[k] = product
        product = product * denominator
    inverse = inv(product)
    for step in range(count):
        k = count - 1 - step
        p = _signed_point(left, pairs[3 * k])
        q = _signed_point(right, pairs[3 * k + 1])
        target = pairs[3 * k + 2]
        share = inverse * prefixes[k]
        inverse = inverse * slopes[k]
        if affine_is_infinity(p):
            out[target] = q
        elif affine_is_infinity(q):
            out[target] = p
        else:
            dy = q.y - p.y
            if is_zero(q.x - p.x):
                if is_zero(dy) and not is_zero(p.y):
                    square = sqr(p.x)
                    dy = double(square) + square  # the tangent's slope is 3x^2 / 2y
                else:
                    zero = dy - dy
                    out[target] = Affine(zero, zero)
                    continue
            slope = dy * share
            x = sqr(slope) - p.x - q.x
            out[target] = Affine(x, slope * (p.x - x) - p.y)


@device_function
def _halve_segments(
    source: Any, order: Any, lengths: Any, segments: int, out: Any, pairs: Any, batch: int, slopes: Any, prefixes: Any
) -> int:
    """One round: each segment's points, order[...], are added in pairs; an odd one out is copied.

    Segments lie one after another, in `order` and in `out`; `lengths` becomes the new lengths, and `order`
    the plain references to `out`. Returns the longest new length.
    """
    never_inline()
    read = 0
    write = 0
    count = 0
    longest = 0
    for s in range(segments):
        length = lengths[s]
        for _ in range(length >> 1):
            pairs[3 * count] = order[read]
            pairs[3 * count + 1] = order[read + 1]
            pairs[3 * count + 2] = write
            read += 2
            write += 1
            count += 1
            if count == batch:
                _add_batch(source, source, out, pairs, count, slopes, prefixes)
                count = 0
        if length & 1:
            out[write] = _signed_point(source, order[read])
            read += 1
            write += 1
        half = (length + 1) >> 1
        lengths[s] = half
        longest = max(longest, half)
    _add_batch(source, source, out, pairs, count, slopes, prefixes)
    for k in range(write):
        order[k] = 2 * k
    return longest


@device_function
def _sum_segments(
    source: Any,
    order: Any,
    lengths: Any,
    segments: int,
    work: Any,
    half: int,
    pairs: Any,
    batch: int,
    slopes: Any,
    prefixes: Any,
) -> Any:
    """The sum of each segment; returns a view of work in which segment s's sum is at the place of s.

    Empty segments take no place. work holds two buffers of `half` points, used in turn.
    """
    never_inline()
    one, other = work, advance(work, half)
    longest = _halve_segments(source, order, lengths, segments, one, pairs, batch, slopes, prefixes)
    while longest > 1:
        longest = _halve_segments(one, order, lengths, segments, other, pairs, batch, slopes, prefixes)
        one, other = other, one
    return one


@device_function
def _weighted_sum(
    buckets: Any,
    log_buckets: int,
    order: Any,
    lengths: Any,
    work: Any,
    half: int,
    pairs: Any,
    batch: int,
    slopes: Any,
    prefixes: Any,
) -> Any:
    """The sum of (d + 1) * buckets[d] over all d < 2^log_buckets, in xyzz.

    With d = hi * 2^k + lo it is 2^k * sum(hi * row[hi]) + sum((lo + 1) * column[lo]): the sums of rows and of
    columns are batch-affine, and only 2 * 2^(log/2) points are left for the running sums in xyzz.
    """
    size = 1 << log_buckets
    k = (log_buckets + 1) >> 1
    columns = 1 << k
    rows = size >> k

    for d in range(size):
        order[d] = 2 * d
    for s in range(rows):
        lengths[s] = columns
    sums = _sum_segments(buckets, order, lengths, rows, work, half, pairs, batch, slopes, prefixes)
    running = infinity_like(buckets[0].x)
    total = running
    for step in range(rows - 1):
        running = add_mixed(running, sums[rows - 1 - step])
        total = add(total, running)
    for _ in range(k):
        total = dbl(total)

    for lo in range(columns):
        for hi in range(rows):
            order[lo * rows + hi] = 2 * ((hi << k) + lo)
        lengths[lo] = rows
    sums = _sum_segments(buckets, order, lengths, columns, work, half, pairs, batch, slopes, prefixes)
    running = infinity_like(buckets[0].x)
    for step in range(columns):
        running = add_mixed(running, sums[columns - 1 - step])
        total = add(total, running)
    return total


def window_sum(
    points: Any,
    scalars: Any,
    words: int,
    start: int,
    stop: int,
    bias: Any,
    shift: int,
    digit_bits: int,
    offset: int,
    log_buckets: int,
    chunk: int,
    half: int,
    batch: int,
    buckets: Any,
    work: Any,
    keys: Any,
    order: Any,
    lengths: Any,
    pairs: Any,
    slopes: Any,
    prefixes: Any,
    out: Any,
) -> int:
    """out[0] = the sum over start <= i < stop of digit_i * points[i], in xyzz, for one window.

    scalars: plain, `words` 32-bit words each; bias, shift, digit_bits, offset: see `_signed_digit`. The rest are
    work arrays: buckets[2^log_buckets], work[2 * half], keys[chunk], order[max(chunk, 2^log_buckets)],
    lengths[2^log_buckets], pairs[3 * batch], slopes[batch], prefixes[batch].
    """
    size = 1 << log_buckets
    mask = (1 << digit_bits) - 1
    zero = points[start].x - points[start].x
    for d in range(size):
        buckets[d] = Affine(zero, zero)

    first = start
    while first < stop:
        last = min(first + chunk, stop)
        # 1, 2: digits, and a counting sort by bucket; keys hold 2*bucket + sign, or -1
        for d in range(size):
            lengths[d] = 0
        for i in range(first, last):
            digit = _signed_digit(scalars, i, words, bias, shift, mask, offset)
            if digit == 0:
                keys[i - first] = -1
            elif digit > 0:
                keys[i - first] = 2 * (digit - 1)
                lengths[digit - 1] += 1
            else:
                keys[i - first] = 2 * (-digit - 1) + 1
                lengths[-digit - 1] += 1
        position = 0
        for d in range(size):
            length = lengths[d]
            lengths[d] = position
            position += length
        for i in range(first, last):
            key = keys[i - first]
            if key >= 0:
                place = lengths[key >> 1]
                order[place] = 2 * i + (key & 1)
                lengths[key >> 1] = place + 1
        # `lengths` now holds each bucket's end: turn it back into lengths
        position = 0
        for d in range(size):
            end = lengths[d]
            lengths[d] = end - position
            position = end
        # 3: sum each bucket's share of this chunk, and add it to the bucket
        if position > 0:
            sums = _sum_segments(points, order, lengths, size, work, half, pairs, batch, slopes, prefixes)
            count = 0
            place = 0
            for d in range(size):
                if lengths[d] > 0:
                    if affine_is_infinity(buckets[d]):
                        buckets[d] = sums[place]
                    else:
                        pairs[3 * count] = 2 * d
                        pairs[3 * count + 1] = 2 * place
                        pairs[3 * count + 2] = d
                        count += 1
                        if count == batch:
                            _add_batch(buckets, sums, buckets, pairs, count, slopes, prefixes)
                            count = 0
                    place += 1
            _add_batch(buckets, sums, buckets, pairs, count, slopes, prefixes)
        first = last

    # 4
    out[0] = _weighted_sum(buckets, log_buckets, order, lengths, work, half, pairs, batch, slopes, prefixes)
    return 0


def combine(sums: Any, windows: int, parts: int, digit_bits: int, out: Any) -> int:
    """out[0] = affine of the sum over windows w and parts k of 2^(w * digit_bits) * sums[w * parts + k]."""
    total = infinity_like(sums[0].x)
    for step in range(windows):
        w = windows - 1 - step
        for _ in range(digit_bits):
            total = dbl(total)
        for k in range(parts):
            total = add(total, sums[w * parts + k])
    out[0] = to_affine(total)
    return 0


def jobs(target: str) -> dict[str, Any]:
    """target: a group's name."""
    group = GROUPS[target]
    n = types.int64
    points, xyzz, elements = Vector(affine_type(group)), Vector(xyzz_type(group)), Vector(coordinate_type(group))
    u32, i32 = Vector(types.uint32), Vector(types.int32)
    window = (
        points,
        u32,
        n,
        n,
        n,
        u32,
        n,
        n,
        n,
        n,
        n,
        n,
        n,
        points,
        points,
        i32,
        i32,
        i32,
        i32,
        elements,
        elements,
        xyzz,
    )
    return {
        "window_sum": (window_sum, window),
        "combine": (combine, (xyzz, n, n, n, points)),
    }
