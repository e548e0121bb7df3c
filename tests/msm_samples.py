"""Scalars, random and skewed, and what an MSM of them is over points whose discrete logarithms are known."""

from __future__ import annotations

import numpy as np
import pytest

from cuzk.curve import host
from cuzk.curve.encoding import decode_point, encode_point
from cuzk.field.host import decode
from cuzk.field.params import Field, Group, fp2_inverse, fp2_mul

# kinds of scalars, for `skewed_scalars`
SKEWED = ["all equal", "zeros", "ones", "minus ones", "bits", "one-hot", "bits, and some of full size", "two values"]
FIRST, STEP = 123456789, 987654321  # logarithms of points are FIRST + i * STEP


def random_scalars(field: Field, n: int, seed: int = 0) -> np.ndarray:
    """uint32[n, 8] below the modulus: its top word is below the modulus's."""
    rng = np.random.default_rng(seed)
    limbs = rng.integers(0, 1 << 32, (n, 8), dtype=np.uint32)
    limbs[:, 7] = rng.integers(0, field.modulus >> 224, n, dtype=np.uint32)
    return limbs


def skewed_scalars(field: Field, kind: str, n: int) -> np.ndarray:
    """uint32[n, 8]: scalars that put many points into few buckets, or into none."""
    rng = np.random.default_rng(n)
    limbs = np.zeros((n, 8), np.uint32)
    if kind == "all equal":
        limbs[:] = random_scalars(field, 1, 5)
    elif kind == "ones":
        limbs[:, 0] = 1
    elif kind == "minus ones":
        limbs[:] = [(field.modulus - 1) >> (32 * k) & 0xFFFFFFFF for k in range(8)]
    elif kind == "bits":
        limbs[:, 0] = rng.integers(0, 2, n)
    elif kind == "one-hot":
        limbs[n // 3] = random_scalars(field, 1, 1)
    elif kind == "bits, and some of full size":
        full = rng.random(n) < 0.3
        limbs[:, 0] = rng.integers(0, 2, n)
        limbs[full] = random_scalars(field, int(full.sum()), 2)
    elif kind == "two values":
        limbs = random_scalars(field, 2, 3)[rng.integers(0, 2, n)]
    return limbs


def logarithm(field: Field, scalars: np.ndarray, first: int = FIRST, step: int = STEP) -> int:
    """Of the sum of scalars[i] * (first + i * step) * generator; up to 2^22 of them, so that sums fit in 64 bits."""
    index = np.arange(len(scalars), dtype=np.uint64)
    halves = np.ascontiguousarray(scalars).view(np.uint16).astype(np.uint64)
    plain = sum(int(total) << (16 * k) for k, total in enumerate(halves.sum(axis=0)))
    weighted = sum(int((column * index).sum()) << (16 * k) for k, column in enumerate(halves.T))
    return (first * plain + step * weighted) % field.modulus


def arkworks_msm(group: Group, points: np.ndarray, scalars: np.ndarray) -> np.ndarray:
    """The MSM by another library, whose points come and go as bytes; BLS12-381 only."""
    ark = pytest.importorskip("py_arkworks_bls12381")
    kind = ark.G1Point if group.degree == 1 else ark.G2Point
    theirs = [kind.from_compressed_bytes_unchecked(encode_point(group, p)) for p in points]
    factors = [ark.Scalar.from_le_bytes(s.tobytes()) for s in scalars]
    total = kind.multiexp_unchecked(theirs, factors)
    return decode_point(group, bytes(total.to_compressed_bytes()))


def xyzz_point(group: Group, limbs: np.ndarray) -> host.Point:
    """The point of xyzz limbs, uint32[2, *group.point_shape]: x/zz, y/zzz."""
    p = group.base.modulus

    def divide(a: list[int], b: list[int]) -> host.Coordinate:
        if group.degree == 1:
            return (a[0] * pow(b[0], -1, p) % p,)
        return fp2_mul((a[0], a[1]), fp2_inverse((b[0], b[1]), p), p)

    x, y, zz, zzz = decode(group.base, limbs.reshape(4, group.degree, group.base.limbs))
    return (divide(x, zz), divide(y, zzz)) if any(zz) else None
