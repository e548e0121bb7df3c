"""Sums of sorted points by bucket and by window, in the simulator, against Python ints: blocks of a few threads."""

from __future__ import annotations

import random
import re
from functools import cache

import numpy as np
import pytest

from cuzk.curve import host
from cuzk.errors import CuzkError
from cuzk.field.params import BLS12_381, BN254, Group
from cuzk.gpu.accumulating import BucketPlan, accumulate, bucket_plan, reduce
from cuzk.gpu.device import device
from cuzk.gpu.multiples import known_multiples
from msm_samples import xyzz_point

G1, G2 = BLS12_381.g1, BN254.g2
ALL_GROUPS = pytest.mark.parametrize("group", [BN254.g1, BLS12_381.g1, BN254.g2, BLS12_381.g2], ids=str)
GUARD = 0xA5A5A5A5  # what the simulator's fresh memory holds
SMALL = 40

# points are known multiples of the generator, so that a sum is judged by an int
Buckets = list[list[tuple[int, bool]]]  # of each bucket of all windows: (multiple, whether to subtract it)


@cache
def multiple(group: Group, k: int) -> host.Point:
    return host.multiply(group, k, group.generator)


def signed(entries: list[tuple[int, bool]]) -> int:
    return sum(-k if negative else k for k, negative in entries)


class Work:
    """Points, references and offsets of some buckets on the device, and what the kernels make of them."""

    def __init__(self, plan: BucketPlan) -> None:
        self.plan, self.gpu = plan, device()
        self.stream = self.gpu.default_stream
        self.buckets = self.gpu.allocate(plan.buckets_bytes)
        self.stream.zero(self.buckets.address, plan.buckets_bytes)
        self.scratch = self.gpu.allocate(plan.scratch_bytes)
        self.sums = self.gpu.allocate(plan.sums_bytes + 4)

    def accumulate(self, buckets: Buckets, add: bool = False) -> None:
        group = self.plan.group
        flat = [entry for bucket in buckets for entry in bucket]
        values = sorted({k for k, _ in flat})
        limbs = [host.to_limbs(group, multiple(group, k)) for k in values] or [host.to_limbs(group, None)]
        references = [2 * values.index(k) + negative for k, negative in flat]
        offsets = np.concatenate([[0], np.cumsum([len(bucket) for bucket in buckets])])
        arrays = np.stack(limbs), np.array(references or [GUARD], np.uint32), offsets.astype(np.uint32)
        places = [self.gpu.upload(array).address for array in arrays]
        accumulate(
            self.gpu, self.stream, self.plan, *places, self.buckets.address, self.scratch.address, add=add
        )  # fmt: skip

    def reduce(self) -> None:
        reduce(self.gpu, self.stream, self.plan, self.buckets.address, self.scratch.address, self.sums.address)

    def points(self, buffer: object, count: int) -> list[host.Point]:
        shape = (count, 2, *self.plan.group.point_shape)
        limbs = np.empty(shape, np.uint32)
        self.stream.dtoh(limbs, buffer)
        return [xyzz_point(self.plan.group, x) for x in limbs]


def check_buckets(plan: BucketPlan, *pieces: Buckets) -> Work:
    """Accumulate one piece after another; every bucket is judged."""
    work = Work(plan)
    totals = [0] * (plan.windows * plan.buckets)
    for i, buckets in enumerate(pieces):
        work.accumulate(buckets, add=i > 0)
        totals = [total + signed(bucket) for total, bucket in zip(totals, buckets, strict=True)]
    for k, point in enumerate(work.points(work.buckets, len(totals))):
        assert point == multiple(plan.group, totals[k]), k
    return work


def check_sums(work: Work, totals: list[int]) -> None:
    plan = work.plan
    work.reduce()
    sums = work.points(work.sums, plan.windows)
    for w, point in enumerate(sums):
        part = totals[w * plan.buckets : (w + 1) * plan.buckets]
        assert point == multiple(plan.group, sum((k + 1) * total for k, total in enumerate(part))), w
    guard = np.empty(plan.sums_bytes // 4 + 1, np.uint32)
    work.stream.dtoh(guard, work.sums)
    assert guard[-1] == GUARD  # nothing is written past the end


def plan_of(group: Group, windows: int, buckets: int, n: int, **shape: int) -> BucketPlan:
    small = {"threads": 4, "merge_threads": 4, "sum_threads": 4, "combine_threads": 4, "least": 1}
    return bucket_plan(group, windows, buckets, n, 1, **{**small, **shape})


def of_sizes(sizes: list[int]) -> Buckets:
    """Random small multiples, signs and infinities among them."""
    rng = random.Random(len(sizes))
    return [[(rng.randrange(8), rng.random() < 0.3) for _ in range(size)] for size in sizes]


# sizes of the buckets, accumulators, the least run: borders at runs' ends, inside them, and none for many runs
SIZES = {
    "mixed": ([3, 0, 1, 5, 0, 0, 7, 2], 8, 1),
    "runs end where buckets do": ([4, 4, 0, 8, 2, 2], 4, 1),
    "all in one": ([0, 0, 33, 0], 16, 1),
    "the last of all": ([0, 0, 0, 31], 8, 1),
    "one reference": ([0, 0, 1, 0], 4, 1),
    "more accumulators than references": ([1, 2, 0, 1], 12, 1),
    "many buckets in a run": ([1, 0, 2, 1, 0, 0, 0, 1, 1, 3, 0, 1], 4, 8),
    "one run": ([2, 0, 5, 1], 4, 16),
    "none": ([0, 0, 0, 0], 4, 1),
    "two long ones": ([0, 17, 0, 15], 32, 1),
}


@pytest.mark.parametrize("name", SIZES)
def test_every_bucket_has_its_points(name: str) -> None:
    sizes, accumulators, least = SIZES[name]
    plan = plan_of(G1, 1, len(sizes), 64, accumulators=accumulators, least=least)
    check_buckets(plan, of_sizes(sizes))


@pytest.mark.parametrize(("accumulators", "levels"), [(1, 1), (2, 2), (5, 3), (16, 3), (17, 4)])
def test_merges_of_several_levels(accumulators: int, levels: int) -> None:
    plan = plan_of(BN254.g1, 1, 3, 64, threads=1, accumulators=accumulators)
    assert len(plan.levels) == levels
    check_buckets(plan, of_sizes([0, 34, 3]))


@pytest.mark.parametrize(
    "bucket",
    [
        [(3, False)] * 9,
        [(3, False), (3, True)] * 4,
        [(3, False), (3, True), (0, False), (0, True), (3, True), (5, False), (5, False)],
        [(0, False)] * 5,
        [(1, False), (2, False), (3, True), (4, False)],
    ],
    ids=["equal", "opposite", "infinities", "only infinities", "sum and opposite"],
)
def test_special_sums_in_one_bucket(bucket: list[tuple[int, bool]]) -> None:
    # alone in a run, and over several
    for accumulators in (1, 4):
        plan = plan_of(G1, 1, 2, 64, threads=1, accumulators=accumulators, least=1 if accumulators > 1 else 64)
        check_buckets(plan, [[(1, False)], bucket])


def test_later_pieces_add_to_the_buckets() -> None:
    plan = plan_of(G1, 2, 4, 64, accumulators=8)
    pieces = [of_sizes(sizes) for sizes in ([3, 0, 1, 9, 0, 0, 2, 2], [0, 2, 1, 9, 9, 0, 0, 1], [0] * 8)]
    opposite = [[(k, not negative) for k, negative in bucket] for bucket in pieces[1]]
    check_buckets(plan, *pieces, opposite)


@pytest.mark.parametrize(
    ("windows", "buckets", "row", "sum_threads", "combine_threads"),
    [(1, 1, 1, 1, 2), (3, 2, 2, 2, 2), (2, 7, 3, 2, 4), (1, 16, 1, 4, 2), (2, 9, 4, 3, 8), (1, 13, 2, 4, 4)],
)
def test_windows_are_weighted_sums(
    windows: int, buckets: int, row: int, sum_threads: int, combine_threads: int
) -> None:
    shape = {"row": row, "sum_threads": sum_threads, "combine_threads": combine_threads, "least": 4}
    plan = plan_of(G1, windows, buckets, 64, threads=2, accumulators=4, **shape)
    rng = random.Random(buckets)
    work = Work(plan)
    content = of_sizes([rng.randrange(3) for _ in range(windows * buckets)])
    work.accumulate(content)
    check_sums(work, [signed(bucket) for bucket in content])


@ALL_GROUPS
def test_buckets_and_windows_of_every_group(group: Group) -> None:
    lanes = group.degree
    shape = {"threads": 2 * lanes, "merge_threads": 2 * lanes, "sum_threads": 2 * lanes, "combine_threads": 2 * lanes}
    plan = plan_of(group, 2, 3, 64, accumulators=4, row=1, **shape)
    content = [
        [(1, False)],
        [],
        [(2, False), (2, False), (3, True), (2, False)],
        [(5, True)],
        [(0, False)],
        [(1, True)],
    ]
    work = check_buckets(plan, content)
    check_sums(work, [signed(bucket) for bucket in content])


@pytest.mark.parametrize("group", [BLS12_381.g1, BLS12_381.g2, BN254.g1], ids=str)
@pytest.mark.parametrize("n", [0, 1, 237, 1 << 16, 1 << 26])
@pytest.mark.parametrize("digit_bits", [2, 5, 12, 16, 20, 23])
def test_plans_chosen_by_size(group: Group, n: int, digit_bits: int) -> None:
    windows, buckets = -(-255 // digit_bits), 1 << (digit_bits - 1)
    plan = bucket_plan(group, windows, buckets, n, 132)
    assert plan.accumulators * plan.lanes <= 132 * 512
    assert plan.row_levels[0] * plan.row >= buckets
    assert len(plan.levels) + len(plan.row_levels) <= 7  # launches: one each, all but the last, and one more
    # scratch memory is small beside the buckets, or small
    assert plan.scratch_bytes <= plan.buckets_bytes + (100 << 20)


def test_shapes_that_the_kernels_do_not_take_are_told() -> None:
    with pytest.raises(CuzkError, match=re.escape("merge_threads are 3, expected a multiple of 2 up to 128")):
        plan_of(G2, 1, 2, 8, merge_threads=3)
    with pytest.raises(CuzkError, match=re.escape("sum_threads are 256, expected a multiple of 1 up to 128")):
        plan_of(G1, 1, 2, 8, sum_threads=256)
    with pytest.raises(CuzkError, match="5 accumulators in blocks of 4 threads"):
        plan_of(G1, 1, 2, 8, accumulators=5)
    with pytest.raises(CuzkError, match="expected 4 at least, and 2 times a power of two"):
        plan_of(G2, 1, 2, 8, combine_threads=12)
    with pytest.raises(CuzkError, match="0 windows of 2"):
        plan_of(G1, 0, 2, 8)


@pytest.mark.parametrize(("n", "factor"), [(1, 4), (3, 4), (4, 4), (37, 4), (11, 11)])
def test_known_multiples(n: int, factor: int) -> None:
    check_multiples(G1, 5, 3, n, factor)


@ALL_GROUPS
def test_known_multiples_of_every_group(group: Group) -> None:
    check_multiples(group, group.scalar.modulus - 2, 1, 6, 3)


@pytest.mark.parametrize(("first", "step"), [(0, 0), (0, 1), (1, 0), (-8, 2), (-1, 1), (4, -4)])
def test_known_multiples_with_infinities_and_equal_points(first: int, step: int) -> None:
    check_multiples(BN254.g1, first, step, 9, 3)


def check_multiples(group: Group, first: int, step: int, n: int, factor: int) -> None:
    points = known_multiples(group, first, step, n, device(), threads=4, factor=factor).numpy()
    assert points.shape == (n, *group.point_shape)
    r = group.scalar.modulus
    for i, limbs in enumerate(points):
        k = (first + i * step) % r
        expected = multiple(group, k if k <= SMALL * 4 else k - r)
        assert host.from_limbs(group, limbs) == expected, i
