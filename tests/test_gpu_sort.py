"""The sort of an MSM's points by bucket on a real card, judged reference by reference with numpy."""

from __future__ import annotations

import numpy as np
import pytest

from cuzk.errors import CuzkError
from cuzk.field.host import encode, ints_to_limbs, limbs_to_ints
from cuzk.field.params import BLS12_381, BN254, Field
from cuzk.gpu.device import device
from cuzk.gpu.sorting import SortPlan, check_scalars, sort, sort_plan, windows_of
from msm_samples import SKEWED, random_scalars, skewed_scalars

pytestmark = pytest.mark.gpu
FIELDS = [BN254.fr, BLS12_381.fr]
GUARD = np.uint32(0xA5A5A5A5)


def window_digits(limbs: np.ndarray, plan: SortPlan, w: int) -> np.ndarray:
    """int64[n]: a window's digits, ((s + bias) >> (c w) mod 2^c) - 2^(c-1), with bias 2^(c-1) in all but the last."""
    c, last = plan.digit_bits, w == plan.windows - 1
    bias = sum(1 << (c * k + c - 1) for k in range(plan.windows - 1))
    words = np.zeros((len(limbs), 10), np.uint64)
    carry = np.zeros(len(limbs), np.uint64)
    for k in range(8):
        total = limbs[:, k].astype(np.uint64) + np.uint64(bias >> (32 * k) & 0xFFFFFFFF) + carry
        words[:, k], carry = total & np.uint64(0xFFFFFFFF), total >> np.uint64(32)
    assert not carry.any()
    first, shift = divmod(c * w, 32)
    pair = words[:, first] | words[:, first + 1] << np.uint64(32)
    digit = (pair >> np.uint64(shift) & np.uint64((1 << c) - 1)).astype(np.int64)
    return digit if last else digit - (1 << (c - 1))


def check(plan: SortPlan, limbs: np.ndarray, given: np.ndarray | None = None) -> None:
    """Sort and judge. given: what lies on the device, where that is not the plain scalars."""
    gpu = device()
    stream = gpu.stream()
    capacity = plan.windows * plan.n
    scalars = gpu.upload(limbs if given is None else given, stream)
    scratch = gpu.allocate(plan.scratch_bytes, stream)
    references = gpu.upload(np.full(capacity + 1, GUARD), stream)
    offsets = gpu.upload(np.full(plan.windows * plan.buckets + 2, GUARD), stream)
    places = [x.address for x in (scalars, scratch, references, offsets)]
    sort(gpu, stream, plan, *places, montgomery=given is not None)
    check_scalars(stream, plan, scratch.address)
    begins = np.empty(plan.windows * plan.buckets + 2, np.uint32)
    stream.dtoh(begins, offsets)
    order = np.empty(capacity + 1, np.uint32)
    stream.dtoh(order, references)
    assert begins[-1] == GUARD
    assert order[-1] == GUARD

    sign = np.ones(plan.n, np.int64)
    if plan.folded:
        r = plan.field.modulus
        values = limbs_to_ints(limbs)
        sign[[2 * v > r for v in values]] = -1
        limbs = ints_to_limbs([min(v, r - v) for v in values], 8)
    begins = begins[:-1].astype(np.int64)
    sizes = np.diff(begins)
    assert begins[0] == 0
    assert (sizes >= 0).all()
    for w in range(plan.windows):
        digits = window_digits(limbs, plan, w) * sign
        first = w * plan.buckets
        part = order[begins[first] : begins[first + plan.buckets]]
        index = (part >> np.uint32(1)).astype(np.int64)
        # every index whose digit is not zero, once
        assert np.array_equal(np.bincount(index, minlength=plan.n), digits != 0)
        found = digits[index]
        bucket = np.repeat(np.arange(plan.buckets), sizes[first : first + plan.buckets])
        assert np.array_equal(np.abs(found) - 1, bucket)
        assert np.array_equal(found < 0, (part & np.uint32(1)) == 1)


@pytest.mark.parametrize(
    ("n", "digit_bits"),
    [(n, c) for n in (1, 31, 33, 237, 1 << 10) for c in (2, 3, 4, 7, 8, 12, 13, 16, 20)]
    + [(1 << 16, c) for c in (2, 8, 12, 13, 16)]
    + [((1 << 16) + 77, 14), (1 << 20, 12), (1 << 20, 16), (1 << 20, 17), (1 << 20, 20), ((1 << 20) - 1, 15)],
)
def test_every_reference_lies_in_its_bucket(n: int, digit_bits: int) -> None:
    field = FIELDS[n % 2]
    check(sort_plan(field, n, digit_bits), random_scalars(field, n))


@pytest.mark.parametrize("field", FIELDS, ids=str)
def test_the_lowest_and_the_highest_digits(field: Field) -> None:
    for c in (2, 8, 13, 16, 22):
        plan = sort_plan(field, 6, c)
        lowest = sum(1 << (c * w + c - 1) for w in range(plan.windows - 1)) % (1 << (field.bits - 1))
        edges = [0, 1, field.modulus - 1, lowest, lowest - 1, (1 << (field.bits - 1)) - 1]
        check(plan, ints_to_limbs(edges, 8))


@pytest.mark.parametrize("kind", SKEWED)
@pytest.mark.parametrize(("n", "digit_bits"), [(237, 6), (1 << 16, 13), (1 << 20, 16)])
def test_skewed_scalars(kind: str, n: int, digit_bits: int) -> None:
    check(sort_plan(BN254.fr, n, digit_bits), skewed_scalars(BN254.fr, kind, n))


@pytest.mark.parametrize("field", FIELDS, ids=str)
def test_scalars_in_montgomery_form(field: Field) -> None:
    plain = random_scalars(field, 3000)
    check(sort_plan(field, 3000, 10), plain, encode(field, limbs_to_ints(plain)))


@pytest.mark.parametrize("digit_bits", [5, 15, 17])
def test_scalars_above_half_the_modulus_are_folded(digit_bits: int) -> None:
    field = BLS12_381.fr
    plan = sort_plan(field, 20000, digit_bits, windows_of(field, digit_bits, folded=True))
    assert plan.folded
    check(plan, random_scalars(field, 20000))


@pytest.mark.parametrize("excess", [0, 1 << 128, (1 << 256) - 1 - BLS12_381.fr.modulus])
def test_a_scalar_that_is_not_below_the_modulus_is_told(excess: int) -> None:
    field, n = BLS12_381.fr, 5000
    limbs = random_scalars(field, n)
    limbs[4321] = ints_to_limbs([field.modulus + excess], 8)
    limbs[17] = ints_to_limbs([field.modulus - 1], 8)
    gpu = device()
    stream = gpu.default_stream
    plan = sort_plan(field, n, 13)
    with (
        gpu.upload(limbs) as scalars,
        gpu.allocate(plan.scratch_bytes) as scratch,
        gpu.allocate(plan.references_bytes) as references,
        gpu.allocate(plan.offsets_bytes) as offsets,
    ):
        sort(gpu, stream, plan, scalars.address, scratch.address, references.address, offsets.address)
        with pytest.raises(CuzkError, match="scalar 4321 is not below"):
            check_scalars(stream, plan, scratch.address)
