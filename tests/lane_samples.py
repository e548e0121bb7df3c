"""What the kernels of `lane_kernels.py` are given, and what has to come out."""

from __future__ import annotations

import random
from itertools import product

import numpy as np

from cuzk.curve import host
from cuzk.field.host import decode, encode
from cuzk.field.params import Field, Group, fp2_inverse, fp2_mul

Fp2 = tuple[int, int]


def fp2_pairs(field: Field, n: int) -> list[tuple[Fp2, Fp2]]:
    """All pairs of edges, one of whose coordinates is zero or which are equal or opposite, then n random ones."""
    rng, p = random.Random(n), field.modulus
    edges = [(0, 0), (1, 0), (0, 1), (p - 1, 0), (0, p - 1), (p - 1, p - 1), (5, p - 7)]
    return [*product(edges, edges), *(((rng.randrange(p), rng.randrange(p)),) * 2 for _ in range(n // 4))] + [
        ((rng.randrange(p), rng.randrange(p)), (rng.randrange(p), rng.randrange(p))) for _ in range(n)
    ]


def fp2_expected(field: Field, a: Fp2, b: Fp2) -> list[Fp2]:
    p = field.modulus

    def mul(x: Fp2, y: Fp2) -> Fp2:
        return fp2_mul(x, y, p)

    def combine(k: int, x: Fp2, m: int, y: Fp2) -> Fp2:
        return (k * x[0] + m * y[0]) % p, (k * x[1] + m * y[1]) % p

    ab, aa, zero = mul(a, b), mul(a, a), (0, 0)
    return [
        ab,
        aa,
        combine(1, a, 1, b),
        combine(1, a, -1, b),
        combine(-1, a, 0, a),
        combine(2, a, 0, a),
        zero if a == zero else fp2_inverse(a, p),
        combine(1, ab, 1, aa),
        combine(1, ab, -1, mul(b, b)),
        mul(mul(aa, aa), a),
        (1, 0) if a == zero else zero,
        b,
        a,
    ]


def judge_fp2(field: Field, pairs: list[tuple[Fp2, Fp2]], out: np.ndarray) -> None:
    for (a, b), row in zip(pairs, decode(field, out), strict=True):
        assert [tuple(x) for x in row] == fp2_expected(field, a, b), (a, b)


def encoded(field: Field, values: list[Fp2]) -> np.ndarray:
    return encode(field, [list(v) for v in values])


def point_pairs(group: Group, span: int) -> list[tuple[host.Point, host.Point]]:
    """Pairs of small multiples of the generator: infinity, equal and opposite ones among them."""
    multiples = [host.multiply(group, k, group.generator) for k in range(-span, span + 1)]
    return list(product(multiples, multiples))


def judge_points(group: Group, pairs: list[tuple[host.Point, host.Point]], out: np.ndarray) -> None:
    for (p, q), sums in zip(pairs, out, strict=True):
        expected = host.add(group, p, q)
        assert host.from_limbs(group, sums[0]) == expected
        assert host.from_limbs(group, sums[1]) == host.add(group, expected, q)
