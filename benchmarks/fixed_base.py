"""Many multiples of a group's generator at once, in plain Python: what makes the benchmark's keys.

Slow beside compiled code and fast enough for a key that is made once (about 60 us a point in G1). It shares
nothing with the code under test, so that a mistake there cannot hide in the keys it is measured with.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import lru_cache
from multiprocessing import get_context
from typing import Any

import numpy as np

from cuzk.field.host import Limbs, encode
from cuzk.field.params import Group, fp2_mul

Element = Any  # int in Fp, (int, int) in Fp2
Point = tuple[Element, Element] | None  # affine; None is infinity

WINDOW = 13  # bits: 20 additions a point; the tables take 20 * 2^13 additions, 1/6 of those of 2^15 points
BATCH = 1 << 13  # points a task of one process; they share an inversion


def multiples(group: Group, scalars: Sequence[int]) -> Limbs:
    """scalars[i] * G, affine, Montgomery: uint32[n, 2, L] in G1 and uint32[n, 2, 2, L] in G2.

    Windowed fixed-base multiplication: with tables T_w[d] = d 2^(13 w) G, the sum of T_w[digit w of the scalar].
    """
    _tables(group)  # before the fork, so that the processes share them
    parts = [(group, scalars[i : i + BATCH]) for i in range(0, len(scalars), BATCH)]
    if len(parts) < 2:
        arrays = [_multiples(*part) for part in parts]
    else:
        with ProcessPoolExecutor(mp_context=get_context("fork")) as pool:
            arrays = list(pool.map(_multiples, *zip(*parts, strict=True)))
    return np.concatenate([np.zeros((0, *group.point_shape), np.uint32), *arrays])


def _multiples(group: Group, scalars: Sequence[int]) -> Limbs:
    zero = (0,) * group.degree
    reduced = [s % group.scalar.modulus for s in scalars]
    sums: list[Point] = [None] * len(reduced)
    for w, table in enumerate(_tables(group)):
        sums = _add(group, sums, [table[s >> (WINDOW * w) & ((1 << WINDOW) - 1)] for s in reduced])
    points = [(zero, zero) if p is None else (_coordinates(p[0]), _coordinates(p[1])) for p in sums]
    return encode(group.base, points).reshape(len(points), *group.point_shape)


def _coordinates(x: Element) -> tuple[int, ...]:
    return x if isinstance(x, tuple) else (x,)


@lru_cache(maxsize=2)  # G1 and G2 of one curve
def _tables(group: Group) -> list[list[Point]]:
    """T_w[d] for every window; step j doubles a table: its new half is the old one plus 2^j times the base."""
    windows = -(-group.scalar.bits // WINDOW)
    x, y = group.generator
    base: Point = (x, y) if group.degree == 2 else (x[0], y[0])
    powers = []  # 2^i G
    for _ in range(windows * WINDOW):
        powers.append(base)
        base = _add(group, [base], [base])[0]
    tables: list[list[Point]] = [[None] for _ in range(windows)]
    for j in range(WINDOW):
        left = [p for table in tables for p in table]
        right = [powers[WINDOW * w + j] for w, table in enumerate(tables) for _ in table]
        sums, size = _add(group, left, right), 1 << j
        for w, table in enumerate(tables):
            table += sums[w * size : (w + 1) * size]
    return tables


def _add(group: Group, left: Sequence[Point], right: Sequence[Point]) -> list[Point]:
    """left[i] + right[i], complete: the affine chord and tangent formulas, all the inversions shared."""
    p = group.base.modulus
    sub, mul, inverses = _operations(group)
    result: list[Point] = [r if q is None else q for q, r in zip(left, right, strict=True)]
    slopes: list[tuple[int, Element, Element]] = []  # index, numerator, denominator
    for i, (q, r) in enumerate(zip(left, right, strict=True)):
        if q is None or r is None:
            continue
        if q[0] != r[0]:
            slopes.append((i, sub(r[1], q[1], p), sub(r[0], q[0], p)))
        elif q[1] == r[1]:
            xx = mul(q[0], q[0], p)
            slopes.append((i, _times(3, xx, p), _times(2, q[1], p)))  # no point of odd order has y = 0
        else:
            result[i] = None
    for (i, numerator, _), inverse in zip(slopes, inverses([s[2] for s in slopes], p), strict=True):
        (x, y), other = left[i], right[i][0]  # type: ignore[misc, index]
        slope = mul(numerator, inverse, p)
        x3 = sub(sub(mul(slope, slope, p), x, p), other, p)
        result[i] = (x3, sub(mul(slope, sub(x, x3, p), p), y, p))
    return result


def _operations(group: Group) -> tuple[Callable[..., Element], Callable[..., Element], Callable[..., list[Element]]]:
    if group.degree == 1:
        return _fp_sub, _fp_mul, batch_inverse
    return _fp2_sub, fp2_mul, _fp2_inverses


def _fp_sub(a: int, b: int, p: int) -> int:
    return (a - b) % p


def _fp_mul(a: int, b: int, p: int) -> int:
    return a * b % p


def _fp2_sub(a: Element, b: Element, p: int) -> Element:
    return (a[0] - b[0]) % p, (a[1] - b[1]) % p


def _times(k: int, a: Element, p: int) -> Element:
    return (k * a[0] % p, k * a[1] % p) if isinstance(a, tuple) else k * a % p


def _fp2_inverses(values: Sequence[Element], p: int) -> list[Element]:
    norms = batch_inverse([(a * a + b * b) % p for a, b in values], p)
    return [(a * n % p, -b * n % p) for (a, b), n in zip(values, norms, strict=True)]


def batch_inverse(values: Sequence[int], p: int) -> list[int]:
    """1/v for each v, none of them zero modulo p: Montgomery's trick, one inversion and 3(n - 1) products."""
    prefixes = []
    product = 1
    for v in values:
        prefixes.append(product)
        product = product * v % p
    inverse = pow(product, -1, p)
    result = [0] * len(values)
    for i in range(len(values) - 1, -1, -1):
        result[i] = inverse * prefixes[i] % p
        inverse = inverse * values[i] % p
    return result
