"""Multi-scalar multiplication on a real card: against the CPU, against arkworks, and by known discrete logarithms."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import cuzk
from cuzk.curve import host
from cuzk.errors import CuzkError
from cuzk.field.host import encode, ints_to_limbs, limbs_to_ints
from cuzk.field.params import BLS12_381, BN254, GROUPS, Group
from cuzk.gpu import multiexp, vectors
from cuzk.gpu.array import DeviceArray, to_device
from cuzk.gpu.bases import DeviceBases
from cuzk.gpu.device import device
from cuzk.gpu.multiexp import DeviceMsm, plan_msm
from cuzk.gpu.multiples import known_multiples
from msm_samples import FIRST, SKEWED, STEP, arkworks_msm, logarithm, random_scalars, skewed_scalars

pytestmark = pytest.mark.gpu
ALL_GROUPS = pytest.mark.parametrize("group", GROUPS.values(), ids=str)
LARGEST = 1 << 20


@pytest.fixture(scope="module")
def points() -> dict[str, np.ndarray]:
    """2^20 points of every group in host memory: (FIRST + i * STEP) * generator."""
    return {name: known_multiples(group, FIRST, STEP, LARGEST).numpy() for name, group in GROUPS.items()}


def edges(group: Group) -> np.ndarray:
    r = group.scalar.modulus
    values = [r - 1, 0, 1, 2, r - 2, r // 2, r // 2 + 1, (1 << 128) - 1, 1 << 253, 1 << 32, (1 << 253) - 1]
    return ints_to_limbs(values, 8)


def random_with_edges(group: Group, n: int) -> np.ndarray:
    scalars = random_scalars(group.scalar, n, n)
    some = edges(group)[:n]
    scalars[np.random.default_rng(n).permutation(n)[: len(some)]] = some
    return scalars


def known(group: Group, total: int) -> np.ndarray:
    return host.to_limbs(group, host.multiply(group, total % group.scalar.modulus, group.generator))


# --- every size --------------------------------------------------------------------------------------


@ALL_GROUPS
@pytest.mark.parametrize("n", [0, 1, 2, 31, 33, 237, 1 << 10, (1 << 14) + 1, 1 << 16, LARGEST])
def test_random_scalars_equal_the_cpu_and_the_logarithm(group: Group, n: int, points: dict[str, np.ndarray]) -> None:
    p, s = points[group.name][:n], random_with_edges(group, n)
    found = cuzk.msm(group, p, s, backend="cuda")
    assert np.array_equal(found, known(group, logarithm(group.scalar, s)))
    assert np.array_equal(found, cuzk.msm(group, p, s, backend="cpu"))
    with DeviceBases(group, p) as bases, to_device(s) as resident:
        assert np.array_equal(cuzk.msm(group, bases, resident), found)


@ALL_GROUPS
@pytest.mark.parametrize("kind", SKEWED)
@pytest.mark.parametrize("n", [1, 31, 33, 237, 1 << 16, LARGEST])
def test_skewed_scalars_equal_the_logarithm(group: Group, kind: str, n: int, points: dict[str, np.ndarray]) -> None:
    s = skewed_scalars(group.scalar, kind, n)
    found = cuzk.msm(group, points[group.name][:n], s, backend="cuda")
    assert np.array_equal(found, known(group, logarithm(group.scalar, s)))


@ALL_GROUPS
@pytest.mark.parametrize("n", [2, 33, 237, 20000])
def test_points_that_are_infinite_equal_and_opposite(group: Group, n: int, points: dict[str, np.ndarray]) -> None:
    """Bases as adversaries choose them: every formula's special case meets every other."""
    rng = np.random.default_rng(n)
    given, opposites = points[group.name][:n].copy(), known_multiples(group, -FIRST, -STEP, n).numpy()
    opposite = rng.random(n) < 0.3
    given[opposite] = opposites[opposite]
    few = rng.random(n) < 0.5
    given[few] = given[rng.integers(0, min(n, 3), int(few.sum()))]
    given[rng.random(n) < 0.2] = 0
    for s in (random_with_edges(group, n), *(skewed_scalars(group.scalar, kind, n) for kind in SKEWED)):
        expected = cuzk.msm(group, given, s, backend="cpu")
        assert np.array_equal(cuzk.msm(group, given, s, backend="cuda"), expected)
    nothing = np.zeros_like(given)
    assert not cuzk.msm(group, nothing, random_with_edges(group, n), backend="cuda").any()


@ALL_GROUPS
@pytest.mark.parametrize(("first", "step"), [(5, 0), (0, 0), (-500, 1), (1, 1)])
def test_sums_of_small_multiples(group: Group, first: int, step: int) -> None:
    """One point again and again; infinities; opposites about an infinity."""
    n = 1001
    with known_multiples(group, first, step, n) as bases:
        for s in (skewed_scalars(group.scalar, "two values", n), skewed_scalars(group.scalar, "all equal", n)):
            total = logarithm(group.scalar, s, first, step)
            assert np.array_equal(cuzk.msm(group, bases, s), known(group, total))


@pytest.mark.parametrize("group", [BLS12_381.g1, BLS12_381.g2], ids=str)
@pytest.mark.parametrize("n", [1, 33, 5000])
def test_equals_arkworks(group: Group, n: int, points: dict[str, np.ndarray]) -> None:
    p, s = points[group.name][:n], random_with_edges(group, n)
    assert np.array_equal(cuzk.msm(group, p, s, backend="cuda"), arkworks_msm(group, p, s))


# --- how it is done ----------------------------------------------------------------------------------


@ALL_GROUPS
@pytest.mark.parametrize("digit_bits", [2, 3, 7, 13, 16, 20])
def test_windows_of_every_width(group: Group, digit_bits: int, points: dict[str, np.ndarray]) -> None:
    n = 3000
    s = random_with_edges(group, n)
    plan = plan_msm(group, n, digit_bits=digit_bits, resident=False)
    found = multiexp.msm(group, points[group.name][:n], s, plan=plan)
    assert np.array_equal(found, known(group, logarithm(group.scalar, s)))


@ALL_GROUPS
@pytest.mark.parametrize("piece", [1, 7, 999, 1000, 1024])
@pytest.mark.parametrize("resident", [True, False])
def test_pieces(group: Group, piece: int, resident: bool, points: dict[str, np.ndarray]) -> None:
    n = 1000 if piece > 1 else 5
    for s in (random_with_edges(group, n), skewed_scalars(group.scalar, "all equal", n)):
        p = points[group.name][:n]
        given: tuple[Any, Any] = (DeviceBases(group, p), to_device(s)) if resident else (p, s)
        plan = plan_msm(group, n, piece=piece, resident=resident)
        assert np.array_equal(multiexp.msm(group, *given, plan=plan), known(group, logarithm(group.scalar, s)))


def test_little_memory_makes_small_pieces(points: dict[str, np.ndarray]) -> None:
    group, n = BN254.g1, LARGEST
    s = random_scalars(group.scalar, n)
    whole = plan_msm(group, n, resident=False)
    tight = plan_msm(group, n, resident=False, memory=whole.scratch_bytes // 3)
    assert len(tight.pieces) > len(whole.pieces)
    assert tight.scratch_bytes <= whole.scratch_bytes // 3
    found = multiexp.msm(group, points[group.name], s, plan=tight)
    assert np.array_equal(found, known(group, logarithm(group.scalar, s)))


def test_the_reported_memory_is_what_is_taken(points: dict[str, np.ndarray]) -> None:
    group, gpu = BLS12_381.g1, device()
    plan = plan_msm(group, 1 << 18)
    gpu.synchronize()
    before = gpu.memory()[0]
    with DeviceMsm(plan, gpu):
        gpu.synchronize()
        taken = before - gpu.memory()[0]
    assert taken <= plan.scratch_bytes + (64 << 20)  # the pool takes memory in pieces of its own


def test_one_memory_serves_many_and_nothing_is_left_over(points: dict[str, np.ndarray]) -> None:
    """Buckets, counts and partial sums of one MSM must not show in the next."""
    group, n = BLS12_381.g1, 1 << 12
    with DeviceBases(group, points[group.name][: 4 * n]) as bases, DeviceMsm(plan_msm(group, n), device()) as work:
        for k, kind in enumerate(["all equal", "zeros", "bits", "one-hot"] * 2):
            s = skewed_scalars(group.scalar, kind, n)
            begin = k % 4 * n
            with to_device(s) as resident:
                work.start(bases[begin : begin + n], resident)
                found = work.finish()
            assert np.array_equal(found, known(group, logarithm(group.scalar, s, FIRST + begin * STEP)))


def test_several_under_way_in_streams_of_their_own(points: dict[str, np.ndarray]) -> None:
    n, gpu = 1 << 14, device()
    groups = [BN254.g1, BLS12_381.g2, BLS12_381.g1, BN254.g2]
    started = []
    for k, group in enumerate(groups):
        stream = gpu.stream()
        s = random_scalars(group.scalar, n, k)
        arrays = DeviceBases(group, points[group.name][:n], gpu, stream), to_device(s, gpu, stream)
        work = DeviceMsm(plan_msm(group, n), gpu, stream)
        work.start(*arrays)
        started.append((work, s, arrays))
    for group, (work, s, _) in zip(groups, started, strict=True):
        assert np.array_equal(work.finish(), known(group, logarithm(group.scalar, s)))
        work.close()


def test_scalars_in_montgomery_form(points: dict[str, np.ndarray]) -> None:
    group, n = BLS12_381.g1, 500
    s = random_with_edges(group, n)
    given = encode(group.scalar, limbs_to_ints(s))
    found = multiexp.msm(group, points[group.name][:n], given, montgomery=True)
    assert np.array_equal(found, known(group, logarithm(group.scalar, s)))


def test_memory_comes_back(points: dict[str, np.ndarray]) -> None:
    group, n, gpu = BN254.g2, 1 << 14, device()
    s = random_scalars(group.scalar, n)
    for bad in (False, True):
        if bad:
            s[n // 2] = 0xFFFFFFFF
        gpu.synchronize()
        before = gpu.memory()[0]
        if bad:
            with pytest.raises(CuzkError, match=f"scalar {n // 2} is not below"):
                cuzk.msm(group, points[group.name][:n], s, backend="cuda")
        else:
            cuzk.msm(group, points[group.name][:n], s, backend="cuda")
        gpu.synchronize()
        assert gpu.memory()[0] == before


# --- arrays and refusals -----------------------------------------------------------------------------


def test_arrays_of_other_libraries_are_used_where_they_lie(points: dict[str, np.ndarray]) -> None:
    torch = pytest.importorskip("torch")
    group, n = BLS12_381.g1, 2000
    p, s = points[group.name][:n], random_with_edges(group, n)
    bases = torch.from_numpy(p.view(np.int32)).cuda()
    resident = torch.from_numpy(s.view(np.int32)).cuda()
    expected = known(group, logarithm(group.scalar, s))
    assert np.array_equal(cuzk.msm(group, bases, resident), expected)
    with DeviceBases(group, bases) as held:
        assert held.address == bases.data_ptr()
        assert np.array_equal(cuzk.msm(group, held, s), expected)


@ALL_GROUPS
@pytest.mark.parametrize("excess", ["order", "order and 2^128", "the largest"])
def test_scalars_that_are_not_below_the_order_are_told(
    group: Group, excess: str, points: dict[str, np.ndarray]
) -> None:
    r, n = group.scalar.modulus, 3000
    value = {"order": r, "order and 2^128": r + (1 << 128), "the largest": (1 << 256) - 1}[excess]
    s = random_scalars(group.scalar, n)
    for index in (0, 1234, n - 1):
        wrong = s.copy()
        wrong[index] = ints_to_limbs([value], 8)
        for piece in (n, 700):
            plan = plan_msm(group, n, piece=piece, resident=False)
            with pytest.raises(CuzkError, match=re.escape(f"scalar {index} is not below")):
                multiexp.msm(group, points[group.name][:n], wrong, plan=plan)


def test_what_does_not_fit_is_refused(points: dict[str, np.ndarray]) -> None:
    group, n = BN254.g1, 8
    p, s = points[group.name][:n], random_scalars(group.scalar, n)
    with DeviceBases(group, p) as bases, to_device(s) as resident:
        for given, message in [
            ((group, p[:7], s), "7 points and 8 scalars"),
            ((group, bases[:7], resident), "7 points and 8 scalars"),
            ((BLS12_381.g1, bases, resident), "bases of bn254.g1, expected bls12_381.g1"),
            ((BLS12_381.g1, bases.array, resident), "expected uint32[n, 2, 12]"),
            ((group, p, s[:, :7]), "expected uint32[n, 8]"),
            ((group, p.astype(np.uint64), s), "points are uint64"),
        ]:
            with pytest.raises(CuzkError, match=re.escape(message)):
                cuzk.msm(*given, backend="cuda")
        with pytest.raises(CuzkError, match="copy it to the host"):
            cuzk.msm(group, bases, s, backend="cpu")
    enormous = plan_msm(BLS12_381.g2, (1 << 30) - 1, digit_bits=24, piece=1 << 27)
    if enormous.scratch_bytes > device().memory()[1]:
        with pytest.raises(CuzkError, match="bytes of device memory asked for"):
            DeviceMsm(enormous, device())


# --- sizes that no oracle is fast enough for ---------------------------------------------------------


@pytest.mark.parametrize(
    ("group", "log_n"),
    [(BN254.g1, 24), (BLS12_381.g1, 24), (BN254.g2, 24), (BLS12_381.g2, 24), (BN254.g1, 26), (BLS12_381.g1, 26)],
    ids=str,
)
def test_large_ones_equal_a_linear_relation(group: Group, log_n: int) -> None:
    """Bases (FIRST + i STEP) G, scalars 7^i: the logarithm is a sum in closed form."""
    n, r, ratio = (1 << log_n) - 5, group.scalar.modulus, 7
    gpu = device()
    plan = plan_msm(group, n, multiprocessors=gpu.multiprocessors)
    if gpu.memory()[0] < plan.scratch_bytes + n * (group.point_bytes + 64) + (1 << 30):
        pytest.skip(f"{gpu.name} has too little free memory for 2^{log_n}")
    last, inverse = pow(ratio, n, r), pow(ratio - 1, -1, r)
    plain = (last - 1) * inverse % r
    weighted = (n * last - ratio * plain) * inverse % r
    with known_multiples(group, FIRST, STEP, n) as bases, vectors.powers(group.scalar, ratio, n) as s:
        scalars: DeviceArray = vectors.from_montgomery(group.scalar, s, s)
        found = cuzk.msm(group, bases, scalars)
    assert np.array_equal(found, known(group, FIRST * plain + STEP * weighted))
