"""Sums of an MSM's buckets and windows on a real card, over points whose discrete logarithms are known."""

from __future__ import annotations

import numpy as np
import pytest

import cuzk
from cuzk.cpu.points import first_off_curve
from cuzk.curve import host
from cuzk.field.host import ints_to_limbs
from cuzk.field.params import BLS12_381, BN254, Group
from cuzk.gpu.accumulating import accumulate, bucket_plan, reduce
from cuzk.gpu.device import device
from cuzk.gpu.multiples import known_multiples
from cuzk.gpu.sorting import sort, sort_plan
from msm_samples import FIRST, SKEWED, STEP, logarithm, random_scalars, skewed_scalars, xyzz_point

pytestmark = pytest.mark.gpu
ALL_GROUPS = [BN254.g1, BLS12_381.g1, BN254.g2, BLS12_381.g2]
GROUPS = pytest.mark.parametrize("group", ALL_GROUPS, ids=str)
KINDS = ["random", *SKEWED]


def scalars_of(group: Group, kind: str, n: int) -> np.ndarray:
    return random_scalars(group.scalar, n, n) if kind == "random" else skewed_scalars(group.scalar, kind, n)


def window_sums(
    group: Group, digit_bits: int, scalars: np.ndarray, first: int, step: int, pieces: int = 1, **shape: int
) -> host.Point:
    """The MSM by sort, accumulate and reduce; Python doubles and adds the windows' sums."""
    gpu = device()
    stream = gpu.stream()
    n = len(scalars)
    size = -(-n // pieces)
    points = known_multiples(group, first, step, n, gpu, stream)
    sorting = sort_plan(group.scalar, size, digit_bits)
    plan = bucket_plan(group, sorting.windows, sorting.buckets, size, gpu.multiprocessors, **shape)
    memory = [
        gpu.allocate(nbytes, stream)
        for nbytes in (
            sorting.scratch_bytes, sorting.references_bytes, sorting.offsets_bytes,
            plan.buckets_bytes, plan.scratch_bytes, plan.sums_bytes,
        )
    ]  # fmt: skip
    work, references, offsets, buckets, scratch, sums = (x.address for x in memory)
    stream.zero(buckets, plan.buckets_bytes)
    uploaded = gpu.upload(scalars, stream)
    for begin in range(0, n, size):
        count = min(size, n - begin)
        piece = sort_plan(group.scalar, count, digit_bits)
        sort(gpu, stream, piece, uploaded.address + 32 * begin, work, references, offsets)
        place = points.address + begin * group.point_bytes
        accumulate(gpu, stream, plan, place, references, offsets, buckets, scratch, add=begin > 0)
    reduce(gpu, stream, plan, buckets, scratch, sums)
    out = np.empty((plan.windows, 2, *group.point_shape), np.uint32)
    stream.dtoh(out, sums)
    result: host.Point = None
    for limbs in out[::-1]:
        result = host.add(group, host.multiply(group, 1 << digit_bits, result), xyzz_point(group, limbs))
    return result


def check(
    group: Group, digit_bits: int, scalars: np.ndarray, first: int = FIRST, step: int = STEP, **shape: int
) -> None:
    expected = host.multiply(group, logarithm(group.scalar, scalars, first, step), group.generator)
    assert window_sums(group, digit_bits, scalars, first, step, **shape) == expected


@GROUPS
@pytest.mark.parametrize(
    ("n", "digit_bits"),
    [(n, c) for n in (1, 31, 33, 237, 1 << 10) for c in (2, 5, 8, 12, 16)]
    + [(1 << 14, 9), (1 << 16, 12), (1 << 16, 20), (1 << 20, 16)],
)
def test_the_sum_of_random_scalars(group: Group, n: int, digit_bits: int) -> None:
    check(group, digit_bits, scalars_of(group, "random", n))


@GROUPS
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("n", "digit_bits"), [(237, 6), (1 << 16, 13)])
def test_the_sum_of_skewed_scalars(group: Group, kind: str, n: int, digit_bits: int) -> None:
    check(group, digit_bits, scalars_of(group, kind, n))


@GROUPS
@pytest.mark.parametrize(
    ("first", "step"),
    [(5, 0), (0, 0), (-500 * STEP, STEP), (1, 1), (-600, 1)],
    ids=["one point", "infinities", "opposites and an infinity", "small multiples", "small ones of both signs"],
)
def test_the_sum_of_special_points(group: Group, first: int, step: int) -> None:
    scalars = scalars_of(group, "two values", 1000)
    check(group, 4, scalars, first, step)
    check(group, 11, scalars, first, step)


@GROUPS
@pytest.mark.parametrize("pieces", [2, 3, 7])
def test_pieces_add_to_the_same_buckets(group: Group, pieces: int) -> None:
    for kind in ("random", "all equal", "bits, and some of full size"):
        check(group, 10, scalars_of(group, kind, 20000), pieces=pieces)


@pytest.mark.parametrize(
    "shape",
    [
        {"accumulators": 2, "threads": 2, "least": 1},
        {"accumulators": 1 << 16, "least": 1},
        {"accumulators": 1 << 14, "least": 1, "merge_threads": 4, "combine_threads": 4, "row": 1},
        {"threads": 32, "merge_threads": 64, "sum_threads": 32, "combine_threads": 32, "row": 3},
        {"row": 1 << 10},
    ],
    ids=str,
)
@pytest.mark.parametrize("group", [BLS12_381.g1, BN254.g2], ids=str)
def test_work_cut_up_in_other_ways(group: Group, shape: dict[str, int]) -> None:
    for kind in ("random", "all equal"):
        check(group, 9, scalars_of(group, kind, 5000), **shape)


@GROUPS
@pytest.mark.parametrize("n", [1, 2, 255, 256, 257, 65536, 65537, (1 << 18) + 3])
def test_known_multiples(group: Group, n: int) -> None:
    points = known_multiples(group, FIRST, STEP, n).numpy()
    assert first_off_curve(group, points) is None
    for i in {0, n - 1, n // 2, n // 3, min(256, n - 1)}:
        assert host.from_limbs(group, points[i]) == host.multiply(group, FIRST + i * STEP, group.generator), i
    # and all of them at once, by the CPU
    scalars = random_scalars(group.scalar, n, 7)
    found = cuzk.msm(group, points, scalars, backend="cpu")
    expected = host.multiply(group, logarithm(group.scalar, scalars, FIRST, STEP), group.generator)
    assert host.from_limbs(group, found) == expected


@GROUPS
def test_known_multiples_about_zero(group: Group) -> None:
    points = known_multiples(group, -300, 1, 601).numpy()
    assert not points[300].any()
    total: host.Point = None
    for k in range(1, 301):
        total = host.add(group, total, group.generator)
        assert host.from_limbs(group, points[300 + k]) == total
        assert host.from_limbs(group, points[300 - k]) == host.negate(group, total)


def test_one_scalar_of_the_field_that_is_in_one_window() -> None:
    # the last digit is negative nowhere; r - 1 has large ones everywhere
    group = BLS12_381.g1
    check(group, 13, ints_to_limbs([group.scalar.modulus - 1], 8))
