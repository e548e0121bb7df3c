"""Multi-scalar multiplication: the sum of scalars[i] * points[i], one API for every backend.

This file plans (window size, ranges, memory) and orders the work; the loops are in `cpu/msm_jobs.py`.

Cost of one window of n points with 2^(c-1) buckets, in field products: 6 n for the batch-affine
additions, 12 * 2^(c-1) for the reduction; there are ceil((bits + 1)/c) windows.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from cuzk.backend import resolve_for
from cuzk.cpu import jit, pool
from cuzk.curve.host import check_points
from cuzk.errors import CuzkError
from cuzk.field.host import Limbs, first_not_below, ints_to_limbs, scalar_not_below
from cuzk.field.params import Group

MAX_DIGIT_BITS = 16
MAX_POINTS = 1 << 30
ADDITION_COST = 6.0  # field products of a batch-affine addition
BUCKET_COST = 14.0  # of a bucket in the reduction: two more additions and the sort's bookkeeping
WINDOW_COST = 1500.0  # of a window whatever its size: inversions, running sums, doublings
BATCH = 1024  # additions that share an inversion, whose cost is about 400 products
MIN_CHUNK = 1 << 13  # points sorted at a time; their work arrays should stay in the second-level cache


@dataclass(frozen=True)
class Plan:
    """How one MSM is cut up: windows of `digit_bits` bits, and ranges of points inside a window."""

    group: Group
    n: int
    digit_bits: int
    windows: int
    ranges: tuple[tuple[int, int], ...]
    chunk: int

    @property
    def log_buckets(self) -> int:
        return self.digit_bits - 1

    @property
    def half(self) -> int:
        """Points that the first round of pairwise additions can leave."""
        size = 1 << self.log_buckets
        return max((self.chunk + min(self.chunk, size)) // 2, size // 2) + 1

    def workspace_bytes(self) -> int:
        """Memory of one task: buckets, two buffers of partial sums, and the sort's arrays."""
        size = 1 << self.log_buckets
        points = size + 2 * self.half
        integers = self.chunk + max(self.chunk, size) + size + 3 * BATCH
        return points * self.group.point_bytes + 4 * integers + BATCH * self.group.point_bytes


def plan(group: Group, n: int, significant: int, cores: int) -> Plan:
    """Choose the window for `significant` full-size scalars among n, and the ranges for `cores` threads."""
    bits = group.scalar.bits

    def cost(c: int) -> float:
        windows = -(-(bits + 1) // c)
        # bits and other small scalars meet one window only
        additions = significant + (n - significant) / windows
        return windows * (ADDITION_COST * additions + BUCKET_COST * (1 << (c - 1)) + WINDOW_COST)

    digit_bits = min(range(2, MAX_DIGIT_BITS + 1), key=cost)
    windows = -(-(bits + 1) // digit_bits)
    # windows are the tasks; where there are more cores than that, cut each into ranges
    parts = max(1, min(-(-2 * cores // windows) if cores > windows // 2 else 1, n >> 12 or 1))
    chunk = min(n, max(MIN_CHUNK, 8 << (digit_bits - 1)))
    return Plan(group, n, digit_bits, windows, tuple(pool.split(n, parts)), chunk)


_local = threading.local()


def _workspace(p: Plan) -> list[np.ndarray]:
    """This thread's work arrays, kept between tasks of like plans."""
    key = (p.group.name, p.chunk, p.digit_bits)
    if getattr(_local, "key", None) != key:
        size, half, point = 1 << p.log_buckets, p.half, p.group.point_bytes // 4
        _local.arrays = [
            np.empty(size * point, np.uint32),
            np.empty(2 * half * point, np.uint32),
            np.empty(p.chunk, np.int32),
            np.empty(max(p.chunk, size), np.int32),
            np.empty(size, np.int32),
            np.empty(3 * BATCH, np.int32),
            np.empty(BATCH * point // 2, np.uint32),
            np.empty(BATCH * point // 2, np.uint32),
        ]
        _local.key = key
    return _local.arrays


@dataclass
class Msm:
    """An MSM as independent tasks for a pool, and the step that ends it."""

    plan: Plan
    points: Limbs
    scalars: Limbs
    sums: Limbs
    tasks: list[Callable[[], int]]

    def finish(self) -> Limbs:
        """The affine result, once every task has run."""
        p = self.plan
        out = np.zeros(p.group.point_shape, np.uint32)
        if p.n:
            jit.load("msm", p.group.name).combine(self.sums, p.windows, len(p.ranges), p.digit_bits, out)
        return out


def prepare(group: Group, points: Limbs, scalars: Limbs) -> Msm:
    """Check the inputs and cut the MSM into tasks; see `msm` for the arguments."""
    points, scalars = _check(group, points, scalars)
    n = len(points)
    significant = int(np.count_nonzero(scalars[:, 1:].any(axis=1)))
    p = plan(group, n, significant, jit.core_count())
    parts = len(p.ranges)
    sums = np.zeros((p.windows, parts, 2, group.point_bytes // 4), np.uint32)
    if n == 0:
        return Msm(p, points, scalars, sums, [])
    library = jit.load("msm", group.name)
    offset = 1 << (p.digit_bits - 1)
    bias = ints_to_limbs([sum(offset << (p.digit_bits * w) for w in range(p.windows - 1))], scalars.shape[1] + 1)

    def window(w: int, part: int) -> int:
        start, stop = p.ranges[part]
        last = w == p.windows - 1  # the top window keeps an unsigned digit
        arrays = _workspace(p)
        return library.window_sum(
            points, scalars, scalars.shape[1], start, stop, bias, w * p.digit_bits,
            p.digit_bits, 0 if last else offset, p.log_buckets, p.chunk, p.half, BATCH, *arrays, sums[w, part],
        )  # fmt: skip

    tasks: list[Callable[[], int]] = [partial(window, w, part) for w in range(p.windows) for part in range(parts)]
    return Msm(p, points, scalars, sums, tasks)


def msm(group: Group, points: Any, scalars: Any, backend: str = "auto") -> Limbs:
    """The sum of scalars[i] * points[i] as an affine point.

    group:   `BN254.g1`, `BLS12_381.g2` and so on.
    points:  uint32[n, 2, L] in G1 or uint32[n, 2, 2, L] in G2: affine, Montgomery; all zeros is infinity.
             They are taken to be on the curve and in the group, of order r. `DeviceBases`, which stay on the GPU
             between calls, or any array in its memory, serve as well.
    scalars: uint32[n, 8], plain integers (not Montgomery), below the group's order; numpy's, or on the GPU.
    Any n, 0 included; zero scalars and infinities cost nothing.
    backend: "cpu", "cuda", or "auto": "cuda" where there is a GPU or an argument lies on one.
    Returns uint32[2, L] or uint32[2, 2, L], in host memory. Raises CuzkError for arrays of another shape or type,
    for scalars that are not below the order, for device arrays on the CPU backend, and for too little device memory.
    """
    if resolve_for(backend, points, scalars) == "cuda":
        from cuzk.gpu import multiexp

        return multiexp.msm(group, points, scalars)
    prepared = prepare(group, points, scalars)
    pool.run(prepared.tasks)
    return prepared.finish()


def _check(group: Group, points: Any, scalars: Any) -> tuple[Limbs, Limbs]:
    points, scalars = np.asarray(points), np.asarray(scalars)
    words = group.scalar.limbs
    check_points(group, points)
    if scalars.dtype != np.uint32 or scalars.shape[1:] != (words,):
        raise CuzkError(f"msm: scalars are {scalars.dtype}{list(scalars.shape)}, expected uint32[n, {words}]")
    if len(points) >= MAX_POINTS:
        raise CuzkError(f"msm: {len(points)} points, expected fewer than 2^30 (references to them are 32-bit)")
    if len(points) != len(scalars):
        raise CuzkError(f"msm: {len(points)} points and {len(scalars)} scalars; expected as many")
    bad = first_not_below(scalars, group.scalar.modulus)
    if bad is not None:
        raise scalar_not_below(group.scalar, bad)
    return np.ascontiguousarray(points), np.ascontiguousarray(scalars)
