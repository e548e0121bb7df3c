"""Sorting the points of an MSM by bucket on the device: how the work is cut up, its memory, and the launches.

The steps are those of `kernels/sort.py`. Nothing here waits for the device.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from cuzk.errors import CuzkError
from cuzk.field.host import scalar_not_below
from cuzk.field.params import Field

# as in kernels/sort.py, whose import would bring numba's
THREADS = 256
MAX_THREADS = 1024
SCALAR_WORDS = 8
MAX_PASS_BITS = 11  # bits of the bucket that one pass sorts by: its counters take 8 KiB of shared memory
MAX_DIGIT_BITS = 24
MAX_BINS = 1 << 17  # of all windows: one block sums their counts
BIN_BITS = 11  # log2 of the references wanted in a bin: enough to occupy a block, and there are many blocks
RUN_BITS = 4  # log2 of the references of one tile that go to one bin: a run of 64 bytes
MIN_TILE, MAX_TILE = 1 << 11, 1 << 15
REFERENCES_A_THREAD = 8
ALIGNMENT = 256


def windows_of(field: Field, digit_bits: int, folded: bool = False) -> int:
    """Windows of signed digits that hold any scalar s: the sign takes a bit; folded: that hold s or r - s."""
    return -(-(field.bits + (not folded)) // digit_bits)


@dataclass(frozen=True)
class SortPlan:
    """One sort: n scalars of a field, in windows of signed digits of `digit_bits` bits.

    coarse_bits: bits of the bucket's number that the first pass sorts by; the second sorts by the rest.
    tile:        scalars of one block of the first pass.
    tile_threads, scan_threads, bin_threads: threads of a block in the first pass, between the two, in the second.

    Memory that the caller brings: `scratch_bytes`, and the results, `references_bytes` and `offsets_bytes`. The
    keys of the first steps lie where the references are written in the last.
    """

    field: Field
    n: int
    digit_bits: int
    windows: int
    coarse_bits: int
    tile: int
    tile_threads: int
    scan_threads: int
    bin_threads: int

    def __post_init__(self) -> None:
        c, w = self.digit_bits, self.windows
        if self.field.limbs != SCALAR_WORDS:
            raise CuzkError(f"sort: scalars of {self.field} have {self.field.limbs} words, expected {SCALAR_WORDS}")
        if not 2 <= c <= MAX_DIGIT_BITS or w < 1:
            raise CuzkError(f"sort: {w} windows of {c} bits, expected at least 1 of 2 to {MAX_DIGIT_BITS} bits")
        if not self._holds(self.field.modulus // 2):
            raise CuzkError(f"sort: {w} windows of {c} bits do not hold every signed scalar of {self.field}")
        if not 0 <= self.n * w < 1 << 32 or self.n >= 1 << 31:
            raise CuzkError(f"sort: {self.n} scalars in {w} windows, expected fewer than 2^32 digits and 2^31 scalars")
        if not 0 <= self.coarse_bits <= MAX_PASS_BITS or not 0 <= self.fine_bits <= MAX_PASS_BITS:
            raise CuzkError(
                f"sort: passes of {self.coarse_bits} and {self.fine_bits} bits, expected 0 to {MAX_PASS_BITS}"
            )
        if self.bins > MAX_BINS:
            raise CuzkError(f"sort: {self.bins} bins, expected at most {MAX_BINS}")

    def _holds(self, largest: int) -> bool:
        """Whether the last digit, with the carry that may come to it, is at most the number of buckets."""
        return (largest >> self.digit_bits * (self.windows - 1)) + 1 <= self.buckets

    @property
    def folded(self) -> bool:
        """Whether the windows are too few for every scalar, so that those above r/2 are taken as -(r - s).

        For points of order r only. With 255 bits it saves a window of 15 or 17 bits.
        """
        return not self._holds(self.field.modulus - 1)

    @property
    def buckets(self) -> int:
        """Buckets of one window."""
        return 1 << (self.digit_bits - 1)

    @property
    def fine_bits(self) -> int:
        return self.digit_bits - 1 - self.coarse_bits

    @property
    def bins(self) -> int:
        """Bins of all windows."""
        return self.windows << self.coarse_bits

    @property
    def references_bytes(self) -> int:
        return 4 * self.windows * self.n

    @property
    def offsets_bytes(self) -> int:
        return 4 * (self.windows * self.buckets + 1)

    # --- the pieces of the scratch memory, in bytes from its beginning -----------------------------------

    @property
    def status_at(self) -> int:
        """One word: 0, or the index of a scalar that is not below the modulus, plus 1."""
        return 0

    @property
    def coarse_at(self) -> int:
        """uint32[bins]: counts, then places."""
        return ALIGNMENT

    @property
    def unsorted_at(self) -> int:
        """uint32[windows * n]: references by bin. Before that, plain scalars of ones in Montgomery form."""
        return self.coarse_at + aligned(4 * self.bins)

    @property
    def lows_at(self) -> int:
        """uint32[windows * n]: the low bits of the buckets of `unsorted`."""
        return self.unsorted_at + aligned(self.references_bytes)

    @property
    def scratch_bytes(self) -> int:
        plain_end = self.unsorted_at + aligned(4 * SCALAR_WORDS * self.n)
        return max(self.lows_at + aligned(self.references_bytes), plain_end)


def aligned(nbytes: int) -> int:
    return -(-nbytes // ALIGNMENT) * ALIGNMENT


def sort_plan(
    field: Field,
    n: int,
    digit_bits: int,
    windows: int | None = None,
    *,
    coarse_bits: int | None = None,
    tile: int | None = None,
    threads: int | None = None,
) -> SortPlan:
    """A plan, with what is not given chosen by n: bins of about 2^11 references, tiles of 16 a bin.

    Raises CuzkError where the windows do not hold every scalar, or the digits are too many or too wide.
    """
    if windows is None:
        windows = windows_of(field, digit_bits)
    bucket_bits = digit_bits - 1
    if coarse_bits is None:
        wanted = max(0, (n - 1).bit_length() - BIN_BITS, bucket_bits - MAX_PASS_BITS)
        coarse_bits = min(wanted, MAX_PASS_BITS, bucket_bits)
    if tile is None:
        tile = min(max(1 << (coarse_bits + RUN_BITS), MIN_TILE), MAX_TILE)
    return SortPlan(
        field,
        n,
        digit_bits,
        windows,
        coarse_bits,
        tile,
        tile_threads=threads or _block(tile),
        scan_threads=threads or MAX_THREADS,
        bin_threads=threads or _block(n >> coarse_bits),
    )


def _block(references: int) -> int:
    """Threads of a block for that many references: a power of two."""
    wanted = 1 << (references // REFERENCES_A_THREAD).bit_length()
    return min(max(wanted, 64), MAX_THREADS)


def sort(
    gpu: Any,
    stream: Any,
    plan: SortPlan,
    scalars: Any,
    scratch: Any,
    references: Any,
    offsets: Any,
    *,
    montgomery: bool = False,
) -> None:
    """Start the sort; all arguments but the plan are on the device, as addresses.

    scalars:    uint32[n, 8], plain, or in Montgomery form where `montgomery` says so; they stay as they are.
    scratch:    plan.scratch_bytes bytes, aligned to 256.
    references: uint32[plan.windows * n]; the sorted ones fill its beginning.
    offsets:    uint32[plan.windows * plan.buckets + 1]: bucket k of window w has
                references[offsets[w * buckets + k]:offsets[w * buckets + k + 1]].
    `check_scalars` says afterwards whether all scalars were below the modulus; those that are not count as zero.
    """
    p = plan
    library = gpu.library("sort", p.field.name)
    status, coarse = scratch + p.status_at, scratch + p.coarse_at
    unsorted, lows = scratch + p.unsorted_at, scratch + p.lows_at
    keys = references
    split = (p.coarse_bits, p.fine_bits)
    grid = -(-p.n // THREADS)
    tiles = (-(-p.n // p.tile), p.windows)
    counters = 4 << p.coarse_bits
    words = [p.field.modulus >> (32 * k) & 0xFFFFFFFF for k in range(SCALAR_WORDS)]

    stream.zero(scratch, p.unsorted_at)
    if montgomery:
        stream.launch(library.scalars_from_montgomery, grid, THREADS, scalars, unsorted, p.n)
        scalars = unsorted
    stream.launch(
        library.digits, grid, THREADS, scalars, keys, status, p.n, p.windows, p.digit_bits, int(p.folded), *words
    )
    stream.launch(library.count_coarse, tiles, p.tile_threads, keys, coarse, p.n, p.tile, *split, shared=counters)
    stream.launch(
        library.scan_coarse, 1, p.scan_threads, coarse, p.bins, -(-p.bins // p.scan_threads), shared=4 * p.scan_threads
    )
    stream.launch(
        library.scatter_coarse,
        tiles,
        p.tile_threads,
        keys,
        coarse,
        unsorted,
        lows,
        p.n,
        p.tile,
        *split,
        shared=counters,
    )
    size = 1 << p.fine_bits
    stream.launch(
        library.sort_bins, p.bins, p.bin_threads, coarse, unsorted, lows, references, offsets, p.fine_bits,
        -(-size // p.bin_threads), shared=4 * (size + p.bin_threads),
    )  # fmt: skip


def check_scalars(stream: Any, plan: SortPlan, scratch: Any) -> None:
    """Wait for the stream; raise CuzkError if a scalar of its last sort was not below the modulus."""
    status = np.empty(1, np.uint32)
    stream.dtoh(status, scratch + plan.status_at)
    if status[0]:
        raise scalar_not_below(plan.field, int(status[0]) - 1)
