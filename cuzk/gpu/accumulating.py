"""Summing an MSM's sorted points by bucket, and each window's buckets: how the work is cut up, memory, and launches.

The steps are those of `kernels/buckets.py`. Nothing here waits for the device.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from cuzk.errors import CuzkError
from cuzk.field.params import Group
from cuzk.gpu.sorting import aligned

# as in kernels/buckets.py, whose import would bring numba's
THREADS = 128
# blocks that fit on a multiprocessor, as registers allow, by the words of an element and the threads of an accumulator
BLOCKS = {(8, 1): 4, (8, 2): 3, (12, 1): 3, (12, 2): 3}  # of `accumulate`
SUM_BLOCKS = {(8, 1): 3, (8, 2): 2, (12, 1): 2, (12, 2): 2}  # of `sum_rows`
LEAST_RUN = 8  # references: shorter runs leave more to merge, and fewer threads each get more of the multipliers
LEAST_ROW = 4  # buckets, for the same reason


@dataclass(frozen=True)
class BucketPlan:
    """How the buckets of some windows, `buckets` each, are summed.

    threads:         of a block of `accumulate`; an accumulator is `lanes` of them.
    accumulators:    of `accumulate`: as many as the device holds at once, or fewer; a multiple of a block's.
    least:           references of a run, at least.
    merge_threads:   of a block of `merge`.
    row:             buckets of an accumulator of `sum_rows`, the last of a window excepted.
    sum_threads:     of a block of `sum_rows`.
    combine_threads: of a block of `combine_rows` at most: lanes times a power of two.

    Memory that the caller brings: `buckets_bytes`, `scratch_bytes`, `sums_bytes`, each aligned to 256.
    """

    group: Group
    windows: int
    buckets: int
    threads: int
    accumulators: int
    least: int
    merge_threads: int
    row: int
    sum_threads: int
    combine_threads: int

    def __post_init__(self) -> None:
        if self.windows < 1 or self.buckets < 1 or self.windows * self.buckets >= (1 << 32) - 1:
            raise CuzkError(
                f"buckets: {self.windows} windows of {self.buckets}, expected at least 1 and fewer than 2^32"
            )
        for name in ("threads", "merge_threads", "sum_threads", "combine_threads"):
            threads = getattr(self, name)
            if threads % self.lanes or not 1 <= threads <= THREADS:
                raise CuzkError(f"buckets: {name} are {threads}, expected a multiple of {self.lanes} up to {THREADS}")
        if self.accumulators < 1 or self.accumulators * self.lanes % self.threads or self.least < 1 or self.row < 1:
            raise CuzkError(
                f"buckets: {self.accumulators} accumulators in blocks of {self.threads} threads, runs of {self.least} "
                f"and rows of {self.row} at least; expected whole blocks, and at least 1"
            )
        width = self.combine_threads // self.lanes
        if self.merge_threads < 2 * self.lanes or width < 2 or width & (width - 1):
            raise CuzkError(
                f"buckets: blocks of {self.merge_threads} and {self.combine_threads} threads bring sums together; "
                f"expected {2 * self.lanes} at least, and {self.lanes} times a power of two"
            )

    @property
    def lanes(self) -> int:
        """Threads of an accumulator."""
        return self.group.degree

    @property
    def sum_bytes(self) -> int:
        """Of one sum, in xyzz."""
        return 2 * self.group.point_bytes

    @property
    def buckets_bytes(self) -> int:
        return self.windows * self.buckets * self.sum_bytes

    @property
    def sums_bytes(self) -> int:
        return self.windows * self.sum_bytes

    @cached_property
    def levels(self) -> tuple[int, ...]:
        """How many runs leave parts of buckets: the accumulators', then blocks', until one block has all."""
        counts = [self.accumulators]
        while counts[-1] > 1:
            counts.append(-(-counts[-1] * self.lanes // self.merge_threads))
        return tuple(counts)

    @cached_property
    def level_at(self) -> tuple[tuple[int, int, int], ...]:
        """Where the heads, the tails and the keys of each level lie in the scratch memory, in bytes."""
        place, places = 0, []
        for count in self.levels:
            sums = aligned(count * self.sum_bytes)
            places.append((place, place + sums, place + 2 * sums))
            place += 2 * sums + aligned(4 * count)
        return tuple(places)

    @cached_property
    def row_levels(self) -> tuple[int, ...]:
        """How many pairs of sums a window has: of rows, then of blocks of them, until there is one."""
        counts = [-(-self.buckets // self.row)]
        while counts[-1] > 1:
            counts.append(-(-counts[-1] * self.lanes // self.combine_threads))
        return tuple(counts)

    @cached_property
    def row_level_at(self) -> tuple[tuple[int, int], ...]:
        """Where the sums and the weighted sums of each level lie in the scratch memory; no runs are left by then."""
        place, places = 0, []
        for count in self.row_levels:
            sums = aligned(self.windows * count * self.sum_bytes)
            places.append((place, place + sums))
            place += 2 * sums
        return tuple(places)

    @property
    def scratch_bytes(self) -> int:
        merging = self.level_at[-1][2] + aligned(4 * self.levels[-1])
        return max(merging, self.row_level_at[-1][1] + aligned(self.sums_bytes))


def bucket_plan(
    group: Group,
    windows: int,
    buckets: int,
    n: int,
    multiprocessors: int,
    *,
    threads: int = THREADS,
    accumulators: int | None = None,
    least: int = LEAST_RUN,
    merge_threads: int = THREADS,
    row: int | None = None,
    sum_threads: int = THREADS,
    combine_threads: int = THREADS,
) -> BucketPlan:
    """A plan for n points, with what is not given chosen for a device of so many multiprocessors.

    buckets: of a window; n: an upper bound will do. Raises CuzkError for shapes that the kernels do not take.
    """
    lanes, shape = group.degree, (group.base.limbs, group.degree)
    if accumulators is None:
        block = max(threads // lanes, 1)
        wanted = max(1, -(-n * windows // (least * block)))
        accumulators = block * min(wanted, multiprocessors * BLOCKS[shape])
    if row is None:
        rows = multiprocessors * SUM_BLOCKS[shape] * sum_threads // lanes // max(windows, 1)
        row = max(-(-buckets // max(rows, 1)), LEAST_ROW)
    return BucketPlan(
        group, windows, buckets, threads, accumulators, least, merge_threads, row, sum_threads, combine_threads
    )


def accumulate(
    gpu: Any,
    stream: Any,
    plan: BucketPlan,
    points: Any,
    references: Any,
    offsets: Any,
    buckets: Any,
    scratch: Any,
    *,
    add: bool = False,
) -> None:
    """Start summing the points of each bucket; all arguments but the plan are on the device, as addresses.

    points:     affine, uint32[n, *group.point_shape], Montgomery; all zeros is infinity.
    references, offsets: of `sorting.sort`.
    buckets:    xyzz, uint32[windows * buckets, 2, *group.point_shape]: all zeros before, for those that get no points;
                with `add`, the sums that these are added to.
    scratch:    plan.scratch_bytes bytes.
    """
    p = plan
    library = gpu.library("buckets", p.group.name)
    levels = [tuple(scratch + at for at in places) for places in p.level_at]
    stream.launch(
        library.accumulate, p.accumulators * p.lanes // p.threads, p.threads, points, references, offsets,
        buckets, *levels[0], p.windows * p.buckets, p.least, int(add),
    )  # fmt: skip
    shared = p.merge_threads // p.lanes * p.sum_bytes
    for count, blocks, runs, ours in zip(p.levels, p.levels[1:], levels, levels[1:], strict=False):
        stream.launch(library.merge, blocks, p.merge_threads, *runs, count, buckets, *ours, shared=shared)


def reduce(gpu: Any, stream: Any, plan: BucketPlan, buckets: Any, scratch: Any, sums: Any) -> None:
    """Start sums[w] = the sum of (k + 1) * bucket k of window w: xyzz, uint32[windows, 2, *group.point_shape].

    buckets: as `accumulate` left them; they stay. scratch: plan.scratch_bytes bytes.
    """
    p = plan
    library = gpu.library("buckets", p.group.name)
    levels = [(scratch + plain, scratch + weighted) for plain, weighted in p.row_level_at]
    # the last weighted sums are the windows'
    levels[-1] = levels[-1][0], sums
    rows = p.windows * p.row_levels[0]
    grid = -(-rows * p.lanes // p.sum_threads)
    stream.launch(
        library.sum_rows, grid, p.sum_threads, buckets, *levels[0], p.buckets, p.row_levels[0], p.row, rows,
        shared=p.sum_threads // p.lanes * p.sum_bytes,
    )  # fmt: skip
    scale = p.row
    most = p.combine_threads // p.lanes
    for count, blocks, parts, whole in zip(p.row_levels, p.row_levels[1:], levels, levels[1:], strict=False):
        width = min(most, 1 << (count - 1).bit_length())
        stream.launch(
            library.combine_rows, (blocks, p.windows), width * p.lanes, *parts, *whole, count, scale,
            width.bit_length() - 1, shared=2 * width * p.sum_bytes,
        )  # fmt: skip
        scale *= width
