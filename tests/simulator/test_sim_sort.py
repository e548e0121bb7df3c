"""The sort of points by bucket, in the simulator, against Python ints: blocks, tiles and runs of a few threads."""

from __future__ import annotations

import random
import re

import numpy as np
import pytest

from cuzk.errors import CuzkError
from cuzk.field.host import encode, ints_to_limbs
from cuzk.field.params import BLS12_381, BN254, Field
from cuzk.gpu.device import device
from cuzk.gpu.sorting import SortPlan, check_scalars, sort, sort_plan, windows_of

FIELDS = [BN254.fr, BLS12_381.fr]
GUARD = 0xA5A5A5A5  # what the simulator's fresh memory holds


def signed_digits(scalar: int, digit_bits: int, windows: int) -> list[int]:
    """Digits in [-2^(c-1), 2^(c-1)), lowest first; the last takes what is left."""
    out = []
    for _ in range(windows - 1):
        digit = (scalar + (1 << (digit_bits - 1))) % (1 << digit_bits) - (1 << (digit_bits - 1))
        out.append(digit)
        scalar = (scalar - digit) >> digit_bits
    return [*out, scalar]


def run(plan: SortPlan, limbs: np.ndarray, montgomery: bool = False) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(references, offsets) of a sort, and the scalars as they lie on the device afterwards."""
    gpu = device()
    stream = gpu.default_stream
    scalars = gpu.upload(limbs)
    scratch, references = gpu.allocate(plan.scratch_bytes), gpu.allocate(plan.references_bytes)
    offsets = gpu.allocate(plan.offsets_bytes + 4)
    sort(
        gpu, stream, plan, scalars.address, scratch.address, references.address, offsets.address, montgomery=montgomery
    )
    check_scalars(stream, plan, scratch.address)
    begins = np.empty(plan.windows * plan.buckets + 2, np.uint32)
    stream.dtoh(begins, offsets)
    assert begins[-1] == GUARD  # nothing is written past the end
    sorted_references = np.empty(int(begins[-2]), np.uint32)
    stream.dtoh(sorted_references, references)
    after = np.empty_like(limbs)
    stream.dtoh(after, scalars)
    return sorted_references, begins[:-1], after


def check(plan: SortPlan, scalars: list[int], montgomery: bool = False) -> None:
    field, c = plan.field, plan.digit_bits
    limbs = encode(field, scalars) if montgomery else ints_to_limbs(scalars, 8)
    references, offsets, after = run(plan, limbs, montgomery)
    assert np.array_equal(after, limbs)

    expected: list[list[int]] = [[] for _ in range(plan.windows * plan.buckets)]
    for i, scalar in enumerate(scalars):
        if plan.folded and 2 * scalar > field.modulus:
            digits = [-digit for digit in signed_digits(field.modulus - scalar, c, plan.windows)]
            scalar -= field.modulus
        else:
            digits = signed_digits(scalar, c, plan.windows)
        assert sum(digit << (c * w) for w, digit in enumerate(digits)) == scalar
        for w, digit in enumerate(digits):
            if digit:
                expected[w * plan.buckets + abs(digit) - 1].append(2 * i + (digit < 0))
    sizes = [len(bucket) for bucket in expected]
    assert offsets.tolist() == np.concatenate([[0], np.cumsum(sizes)]).tolist()
    for k, bucket in enumerate(expected):
        assert sorted(references[offsets[k] : offsets[k + 1]].tolist()) == bucket


def samples(field: Field, n: int, digit_bits: int) -> list[int]:
    """Edges first, in an order that mixes them where n is large, then random scalars."""
    rng = random.Random(n)
    windows = windows_of(field, digit_bits)
    lowest = sum(1 << (digit_bits * w + digit_bits - 1) for w in range(windows - 1)) % (1 << (field.bits - 1))
    edges = [0, 1, field.modulus - 1, lowest, lowest - 1, (1 << (field.bits - 1)) - 1, 1 << (digit_bits - 1)]
    values = edges + [rng.randrange(field.modulus) for _ in range(n)]
    values = values[:n]
    rng.shuffle(values)
    return values


# (field, scalars, bits of a digit, of the first pass, scalars of a tile, threads): no fine bits, no coarse bits, both;
# tiles and runs that do not divide evenly, threads that take several of everything
SHAPES = [
    (BN254.fr, 33, 2, 1, 64, 2),
    (BLS12_381.fr, 33, 4, 0, 24, 2),
    (BN254.fr, 64, 8, 2, 40, 3),
    (BLS12_381.fr, 64, 11, 2, 24, 2),
    (BLS12_381.fr, 31, 10, 2, 8, 5),
]


@pytest.mark.parametrize(("field", "n", "digit_bits", "coarse_bits", "tile", "threads"), SHAPES)
def test_every_reference_lies_in_its_bucket(
    field: Field, n: int, digit_bits: int, coarse_bits: int, tile: int, threads: int
) -> None:
    plan = sort_plan(field, n, digit_bits, coarse_bits=coarse_bits, tile=tile, threads=threads)
    check(plan, samples(field, n, digit_bits))


@pytest.mark.parametrize("n", [0, 1])
def test_few_scalars(n: int) -> None:
    plan = sort_plan(BN254.fr, n, 12, coarse_bits=1, tile=16, threads=4)
    check(plan, samples(BN254.fr, n + 7, 12)[:n])


@pytest.mark.parametrize(
    "scalars",
    [[12345678901234567890] * 40, [0] * 40, [0, 1] * 20, [0] * 39 + [BN254.fr.modulus - 1], [1 << 9] * 40],
    ids=["all equal", "zeros", "bits", "one-hot", "lowest digit"],
)
def test_skewed_scalars(scalars: list[int]) -> None:
    check(sort_plan(BN254.fr, 40, 10, coarse_bits=1, tile=32, threads=3), scalars)


def test_scalars_in_montgomery_form() -> None:
    # one window more than needed: the last digits are all zero
    windows = windows_of(BLS12_381.fr, 10) + 1
    plan = sort_plan(BLS12_381.fr, 9, 10, windows, coarse_bits=1, tile=5, threads=3)
    check(plan, samples(BLS12_381.fr, 9, 10), montgomery=True)


def test_scalars_above_half_the_modulus_are_folded() -> None:
    field = BLS12_381.fr
    half = field.modulus // 2
    plan = sort_plan(field, 26, 5, windows_of(field, 5, folded=True), coarse_bits=1, tile=16, threads=2)
    assert plan.folded
    assert plan.windows == windows_of(field, 5) - 1
    check(plan, [half - 1, half, half + 1, half + 2, *samples(field, 22, 5)])
    assert not sort_plan(field, 26, 5).folded


@pytest.mark.parametrize("n", [0, 1, 237, 1 << 10, 1 << 16, 1 << 20, 1 << 26])
@pytest.mark.parametrize("digit_bits", range(2, 23))
def test_plans_chosen_by_size_keep_the_limits(n: int, digit_bits: int) -> None:
    plan = sort_plan(BLS12_381.fr, n if digit_bits > 4 else min(n, 1 << 24), digit_bits)
    assert plan.coarse_bits + plan.fine_bits == digit_bits - 1
    assert plan.windows * digit_bits > BLS12_381.fr.bits
    assert plan.scratch_bytes + plan.references_bytes <= 16 * plan.n * plan.windows + 4 * plan.bins + 2048
    for threads in (plan.tile_threads, plan.scan_threads, plan.bin_threads):
        assert 32 <= threads <= 1024


def test_plans_that_cannot_be_are_refused() -> None:
    field = BN254.fr
    for arguments, message in [
        ((field, 4, 1), "1 bits"),
        ((field, 4, 25), "25 bits"),
        ((field, 4, 16, 15), "do not hold every"),
        ((field, 1 << 28, 15), "fewer than 2^32"),
        ((BN254.fp, 4, 16, 3), "do not hold every"),
        ((BLS12_381.fp, 4, 16), "12 words"),
    ]:
        with pytest.raises(CuzkError, match=re.escape(message)):
            sort_plan(*arguments)
    with pytest.raises(CuzkError, match="passes of 0 and 15 bits"):
        sort_plan(field, 4, 16, coarse_bits=0)


@pytest.mark.parametrize("excess", [0, 1, 1 << 224])
def test_a_scalar_that_is_not_below_the_modulus_is_told(excess: int) -> None:
    field = BLS12_381.fr
    scalars = [field.modulus - 1, 5, field.modulus + excess, 7]
    plan = sort_plan(field, 4, 12, coarse_bits=0, tile=4, threads=2)
    with pytest.raises(CuzkError, match=r"scalar 2 is not below Fr\[bls12_381\]'s modulus"):
        run(plan, ints_to_limbs(scalars, 8))
