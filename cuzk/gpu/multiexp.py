"""Multi-scalar multiplication on the device: the window, the memory, the pieces, and the order of the work.

Pippenger's method (Bernstein, Doumen, Lange, Oosterwijk, "Faster batch forgery identification", 2012, section 4) over
signed digits, all windows at once:

1. each piece of the points: its references are sorted by bucket (`sorting.py`);
2. the buckets' points are summed, whatever the buckets' sizes (`accumulating.py`); later pieces add to the same
   buckets;
3. each window's buckets are reduced to one sum, sum_k (k + 1) bucket_k;
4. the windows' sums, a few KiB, are copied to the host, which doubles and adds them together (`cpu/msm_jobs.combine`).

Cost for n points in windows of c bits: ceil(bits/c) (n mixed additions + 2^c additions).

Points and scalars that lie on the device are used where they are. Those in host memory go up piece by piece, into
one of two buffers while the device works on the other.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from cuzk.cpu import jit
from cuzk.curve.host import check_points
from cuzk.errors import CuzkError
from cuzk.field.host import Limbs, scalar_not_below
from cuzk.field.params import Group
from cuzk.gpu.accumulating import BucketPlan, accumulate, bucket_plan, reduce
from cuzk.gpu.array import DeviceArray, as_device, is_device
from cuzk.gpu.bases import DeviceBases
from cuzk.gpu.device import device
from cuzk.gpu.sorting import MAX_DIGIT_BITS, SortPlan, sort, sort_plan, windows_of

# What a plan weighs, in nanoseconds on an H200; only their ratios matter.
WIDE_NS = 1 / 8150  # of a multiply-and-add of 32-bit words, the rate of its multipliers
SORT_NS = 0.06  # of a reference in the sort
MIXED_PRODUCTS, BUCKET_PRODUCTS = 10, 2 * 14  # field products of a mixed addition; of two full ones, in the reduction
WINDOW_NS = 3000.0  # of a window whatever its size: the last steps of its reduction, and its doublings

RESERVE = 256 << 20  # bytes of free device memory that a plan made for it leaves
MIN_PIECE = 1 << 16  # points; pieces are halved down to this where memory is short
STREAMED_PIECE = 1 << 20  # points; what goes up while the device works on as many
POINTS_A_BUCKET = 4  # in a streamed piece at least, since each piece adds a full addition to every bucket it meets
MAX_POINTS = 1 << 30  # references have 32 bits, sign included


@dataclass(frozen=True)
class MsmPlan:
    """How one MSM of n points is done.

    digit_bits: c; windows: of c bits each, all of them at once.
    piece:      points that are sorted and summed at a time.
    streamed:   bytes of device memory a point that comes from the host takes: 0 where points and scalars are resident.
    threads:    of every block, for trials; where it is None, each kernel has its best.

    `scratch_bytes` is all the device memory that it takes beside resident inputs; it is asked for before anything
    starts.
    """

    group: Group
    n: int
    digit_bits: int
    windows: int
    piece: int
    streamed: int
    multiprocessors: int
    threads: int | None = None

    @cached_property
    def pieces(self) -> tuple[tuple[int, int], ...]:
        """(begin, end) of each."""
        return tuple((i, min(i + self.piece, self.n)) for i in range(0, self.n, self.piece))

    @property
    def largest(self) -> int:
        return min(self.piece, self.n)

    def sort(self, n: int) -> SortPlan:
        """The sort of a piece of n points."""
        return sort_plan(self.group.scalar, n, self.digit_bits, self.windows, threads=self.threads)

    @cached_property
    def buckets(self) -> BucketPlan:
        blocks = ("threads", "merge_threads", "sum_threads", "combine_threads")
        chosen = {} if self.threads is None else dict.fromkeys(blocks, self.threads * self.group.degree)
        size = 1 << (self.digit_bits - 1)
        return bucket_plan(self.group, self.windows, size, self.largest, self.multiprocessors, **chosen)

    @cached_property
    def memory(self) -> dict[str, int]:
        """Bytes of each part of the scratch memory."""
        largest = self.sort(self.largest)
        staged = min(2, len(self.pieces)) * self.largest * self.streamed
        return {
            "sort": largest.scratch_bytes,
            "references": largest.references_bytes,
            "offsets": largest.offsets_bytes,
            "buckets": self.buckets.buckets_bytes,
            "partial sums": self.buckets.scratch_bytes,
            "window sums": self.buckets.sums_bytes,
            "bad scalars": 4 * max(1, len(self.pieces)),
            "staging": staged,
        }

    @property
    def scratch_bytes(self) -> int:
        return sum(self.memory.values())


def _nanoseconds(group: Group, n: int, digit_bits: int) -> float:
    windows = windows_of(group.scalar, digit_bits, folded=True)
    wide = 2 * group.base.limbs**2 * (1 if group.degree == 1 else 3)
    product = wide * WIDE_NS
    references, buckets = n * windows, windows << (digit_bits - 1)
    return references * (MIXED_PRODUCTS * product + SORT_NS) + buckets * BUCKET_PRODUCTS * product + windows * WINDOW_NS


@lru_cache(maxsize=256)
def _cheapest(group: Group, n: int) -> int:
    return min(range(4, MAX_DIGIT_BITS), key=lambda c: _nanoseconds(group, n, c))


def plan_msm(
    group: Group,
    n: int,
    *,
    digit_bits: int | None = None,
    piece: int | None = None,
    resident: bool = True,
    memory: int | None = None,
    multiprocessors: int = 132,
    threads: int | None = None,
) -> MsmPlan:
    """The plan for n points; what is not given is chosen for the least time.

    resident: whether points and scalars lie on the device; else both are streamed from host memory.
    memory: bytes of device memory that it may take (no limit where it is None): pieces are made smaller to fit.
    multiprocessors: of the device; an H200's by default. threads: of every block (`MsmPlan`).
    Raises CuzkError for too many points, for windows the sort cannot do, and where even small pieces do not fit.
    """
    streamed = 0 if resident else group.point_bytes + group.scalar.bytes
    plan = _plan(group, n, digit_bits, piece, streamed, memory, multiprocessors)
    return plan if threads is None else replace(plan, threads=threads)


def _plan(
    group: Group, n: int, digit_bits: int | None, piece: int | None, streamed: int, memory: int | None, processors: int
) -> MsmPlan:
    if not 0 <= n < MAX_POINTS:
        raise CuzkError(f"msm: {n} points, expected fewer than 2^30 (references to them are 32-bit)")
    if piece is not None and piece < 1:
        raise CuzkError(f"msm: pieces of {piece} points, expected at least 1")
    c = _cheapest(group, max(n, 1)) if digit_bits is None else digit_bits
    # every scalar s is taken as s or -(r - s), whichever is shorter, where that saves a window
    windows = windows_of(group.scalar, c, folded=True) if c > 1 else 1  # the sort refuses windows of one bit
    size = piece
    if size is None:
        size = max(n, 1)
        if streamed:
            size = min(size, max(STREAMED_PIECE, POINTS_A_BUCKET << (c - 1)))
        # the sort counts digits in 32 bits
        size = min(size, ((1 << 32) - 1) // windows)
    plan = MsmPlan(group, n, c, windows, size, streamed, processors)
    if memory is None or plan.scratch_bytes <= memory:
        return plan
    if piece is None:
        while size > MIN_PIECE:
            size = -(-size // 2)
            plan = MsmPlan(group, n, c, windows, size, streamed, processors)
            if plan.scratch_bytes <= memory:
                return plan
    raise CuzkError(
        f"msm: {n} points of {group} need {plan.scratch_bytes} bytes of device memory in pieces of {plan.largest}, "
        f"{memory} can be had"
    )


class DeviceMsm:
    """The memory of a plan, for one MSM after another in a stream.

        with DeviceMsm(plan, gpu, stream) as work:
            work.start(points, scalars)   # returns when all is under way
            ...
            result = work.finish()        # waits

    An MSM starts only after the one before has finished. `memory` has the address of each part of `plan.memory`.
    """

    def __init__(self, plan: MsmPlan, gpu: Any, stream: Any = None) -> None:
        self.plan, self.gpu = plan, gpu
        self.stream = stream if stream is not None else gpu.default_stream
        self._stack = ExitStack()
        self._copies: Any = None
        self._started = False
        self._host: list[Any] = []  # what copies under way read from
        try:
            self.memory = {name: self._allocate(size) for name, size in plan.memory.items()}
        except BaseException:
            self.close()
            raise

    def _allocate(self, nbytes: int) -> Any:
        return self._stack.enter_context(self.gpu.allocate(nbytes, self.stream)).address

    def close(self) -> None:
        """Give the memory back, in the stream's order."""
        if self._copies is not None:
            self._copies.synchronize()
        self._stack.close()

    def __enter__(self) -> DeviceMsm:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def start(self, points: DeviceBases | Limbs, scalars: DeviceArray | Limbs, *, montgomery: bool = False) -> None:
        """Order all the work. For the arguments see `msm`; they must not change before `finish`."""
        p, memory = self.plan, self.memory
        if self._started:
            raise CuzkError("msm: the one before has not been finished")
        if len(points) != p.n or len(scalars) != p.n:
            raise CuzkError(f"msm: {len(points)} points and {len(scalars)} scalars, expected {p.n} by the plan")
        self._started = True
        bad = memory["bad scalars"]
        self.stream.zero(memory["buckets"], p.memory["buckets"])
        for k, (points_at, scalars_at, n) in enumerate(self._pieces(points, scalars)):
            sorting = p.sort(n)
            work = memory["sort"], memory["references"], memory["offsets"]
            sort(self.gpu, self.stream, sorting, scalars_at, *work, montgomery=montgomery)
            self.stream.dtod(bad + 4 * k, memory["sort"] + sorting.status_at, 4)
            accumulate(
                self.gpu, self.stream, p.buckets, points_at, *work[1:], memory["buckets"], memory["partial sums"],
                add=k > 0,
            )  # fmt: skip
        reduce(self.gpu, self.stream, p.buckets, memory["buckets"], memory["partial sums"], memory["window sums"])

    def finish(self) -> Limbs:
        """Wait; the result, affine. Raises CuzkError where a scalar was not below the group's order."""
        p, group = self.plan, self.plan.group
        if not self._started:
            raise CuzkError("msm: nothing was started")
        self._started = False
        out = np.zeros(group.point_shape, np.uint32)
        if p.n:
            sums = np.empty(p.buckets.sums_bytes // 4, np.uint32)
            self.stream.dtoh(sums, self.memory["window sums"])
            bad = np.empty(len(p.pieces), np.uint32)
            self.stream.dtoh(bad, self.memory["bad scalars"])
            self._host.clear()
            for (begin, _), index in zip(p.pieces, bad.tolist(), strict=True):
                if index:
                    raise scalar_not_below(group.scalar, begin + index - 1)
            jit.load("msm", group.name).combine(sums, p.windows, 1, p.digit_bits, out)
        return out

    def _pieces(self, points: Any, scalars: Any) -> Iterator[tuple[Any, Any, int]]:
        """Addresses of each piece's points and scalars, and its size; what is ordered before the next works on it."""
        p, group, gpu = self.plan, self.plan.group, self.gpu
        sources = [(points, group.point_bytes), (scalars, group.scalar.bytes)]
        staged = [isinstance(array, np.ndarray) for array, _ in sources]
        if any(staged) and self._copies is None:
            self._copies = gpu.stream()
            # memory that is new to this stream comes from the other
            self._copies.wait(self.stream.record())
        done: list[Any] = [None, None]  # when the device no longer needs a buffer
        for k, (begin, end) in enumerate(p.pieces):
            place = self.memory["staging"] + k % 2 * p.largest * p.streamed
            addresses = []
            if any(staged) and done[k % 2] is not None:
                self._copies.wait(done[k % 2])
            for (array, size), copied in zip(sources, staged, strict=True):
                if copied:
                    piece = np.ascontiguousarray(array[begin:end])
                    self._host.append(piece)
                    self._copies.htod(place, piece)
                    addresses.append(place)
                    place = place + p.largest * size
                else:
                    addresses.append(array.address + begin * size)
            if any(staged):
                self.stream.wait(self._copies.record())
            yield addresses[0], addresses[1], end - begin
            done[k % 2] = self.stream.record()


def msm(
    group: Group,
    points: Any,
    scalars: Any,
    *,
    plan: MsmPlan | None = None,
    stream: Any = None,
    montgomery: bool = False,
) -> Limbs:
    """The sum of scalars[i] * points[i] as an affine point, uint32[*group.point_shape] in host memory.

    points:  `DeviceBases`, or what they are made of; as for `cuzk.msm`.
    scalars: uint32[n, 8], plain, in host memory or on the device; `montgomery`: in Montgomery form.
    plan:    of `plan_msm`, by default the best that fits in the memory that is free.
    stream:  the order that the work takes, by default that of the points or scalars that lie on the device.
    """
    points, scalars, gpu, stream = _placed(group, points, scalars, stream)
    n = len(points)
    if len(scalars) != n:
        raise CuzkError(f"msm: {n} points and {len(scalars)} scalars; expected as many")
    streamed = group.point_bytes * isinstance(points, np.ndarray) + group.scalar.bytes * isinstance(scalars, np.ndarray)
    if plan is None:
        free, _ = gpu.memory()
        plan = _plan(group, n, None, None, streamed, max(0, free - RESERVE), gpu.multiprocessors)
    elif plan.group is not group or plan.n != n or plan.streamed < streamed:
        raise CuzkError(
            f"msm: a plan for {plan.n} points of {plan.group}, {plan.streamed} bytes of each streamed; "
            f"expected {n} of {group}, {streamed} bytes"
        )
    with DeviceMsm(plan, gpu, stream) as work:
        work.start(points, scalars, montgomery=montgomery)
        return work.finish()


def _placed(group: Group, points: Any, scalars: Any, stream: Any) -> tuple[Any, Any, Any, Any]:
    """Points and scalars, checked, each on the device or a numpy array, and where the work is to be done."""
    if isinstance(points, DeviceBases):
        if points.group is not group:
            raise CuzkError(f"msm: bases of {points.group}, expected {group}")
    elif is_device(points):
        points = DeviceBases(group, points, None, stream)
    else:
        points = np.asarray(points)
        check_points(group, points)
    if isinstance(points, DeviceBases):
        if stream is None:
            stream = points.stream
        elif stream is not points.stream:
            stream.wait(points.stream.record())
    if is_device(scalars):
        scalars = as_device(scalars, None, stream)
        stream = scalars.stream if stream is None else stream
    else:
        scalars = np.asarray(scalars)
    words = group.scalar.limbs
    if scalars.dtype != np.uint32 or scalars.shape[1:] != (words,):
        raise CuzkError(f"msm: scalars are {scalars.dtype}{list(scalars.shape)}, expected uint32[n, {words}]")
    gpu = stream.gpu if stream is not None else device()
    return points, scalars, gpu, stream if stream is not None else gpu.default_stream
