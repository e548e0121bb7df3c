"""The whole MSM in the simulator, against Python ints: few points, in small windows and pieces."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import cuzk
from cuzk.curve import host
from cuzk.errors import BackendError, CuzkError
from cuzk.field.host import encode, ints_to_limbs
from cuzk.field.params import BLS12_381, BN254, GROUPS, Group
from cuzk.gpu import multiexp
from cuzk.gpu.array import to_device
from cuzk.gpu.bases import DeviceBases
from cuzk.gpu.device import device
from cuzk.gpu.driver import GpuError
from cuzk.gpu.multiexp import DeviceMsm, plan_msm

Points = list[host.Point]


def samples(group: Group, n: int, first: int = 77) -> tuple[Points, list[int]]:
    """Small multiples of the generator, equal, opposite and infinite ones among them; scalars, but one of them small.

    Every digit that is not zero is a bucket with two additions for it and each below it, ten milliseconds each.
    """
    points = [host.multiply(group, k, group.generator) for k in (3, -3, 0, 3, 5, 1)]
    scalars = [first, 300, 7, 0, 9, 1]
    return [points[i % len(points)] for i in range(n)], [scalars[i % len(scalars)] for i in range(n)]


def limbs(group: Group, points: Points, scalars: list[int]) -> tuple[np.ndarray, np.ndarray]:
    flat = [host.to_limbs(group, p) for p in points]
    return np.array(flat, np.uint32).reshape(-1, *group.point_shape), ints_to_limbs(scalars, group.scalar.limbs)


def small_plan(group: Group, n: int, **options: Any) -> multiexp.MsmPlan:
    return plan_msm(group, n, digit_bits=4, multiprocessors=1, threads=2, **options)


@pytest.mark.parametrize(
    ("group", "first", "resident"),
    [
        (BN254.g1, BN254.fr.modulus - 1, False),
        (BLS12_381.g1, (BLS12_381.fr.modulus + 1) // 2, True),
        # digits at both ends
        (BN254.g2, (5 << 249) + 0x1DEADBEEF, True),
        (BLS12_381.g2, (7 << 250) + 0x9ABCDEF01, False),
    ],
    ids=["bn254.g1", "bls12_381.g1", "bn254.g2", "bls12_381.g2"],
)
def test_the_sum_is_that_of_its_terms(group: Group, first: int, resident: bool) -> None:
    n = 6
    points, scalars = samples(group, n, first)
    p, s = limbs(group, points, scalars)
    given = (DeviceBases(group, p), to_device(s)) if resident else (p, s)
    plan = small_plan(group, n, resident=resident, piece=n if resident else 4)
    result = multiexp.msm(group, *given, plan=plan)
    assert host.from_limbs(group, result) == host.msm(group, points, scalars)


def test_the_public_function_takes_every_kind_of_array(monkeypatch: pytest.MonkeyPatch) -> None:
    group = BN254.g1
    plan = small_plan(group, 3, resident=False)
    monkeypatch.setattr(multiexp, "_plan", lambda *arguments: plan)
    points, scalars = samples(group, 3)
    p, s = limbs(group, points, scalars)
    expected = host.msm(group, points, scalars)
    with DeviceBases(group, p) as bases, to_device(s) as resident:
        for given in ((p, s), (bases, s), (p, resident), (bases.array, resident)):
            assert host.from_limbs(group, cuzk.msm(group, *given, backend="cuda")) == expected
        # where an array lies decides
        assert host.from_limbs(group, cuzk.msm(group, bases, resident)) == expected
        with pytest.raises(BackendError, match="copy it to the host"):
            cuzk.msm(group, bases, s, backend="cpu")


@pytest.mark.parametrize("n", [0, 1])
def test_few_points(n: int) -> None:
    group = BLS12_381.g1
    points, scalars = samples(group, n)
    result = multiexp.msm(group, *limbs(group, points, scalars), plan=small_plan(group, n, resident=False))
    assert host.from_limbs(group, result) == host.msm(group, points, scalars)


def test_memory_serves_one_msm_after_another() -> None:
    group = BN254.g1
    plan = small_plan(group, 4, piece=2)
    points, scalars = samples(group, 12)
    p, s = limbs(group, points, scalars)
    with DeviceBases(group, p) as bases, DeviceMsm(plan, device()) as work:
        for begin in (0, 4, 8):
            part = slice(begin, begin + 4)
            with to_device(s[part]) as resident:
                work.start(bases[part], resident)
                with pytest.raises(CuzkError, match="has not been finished"):
                    work.start(bases[part], resident)
                assert host.from_limbs(group, work.finish()) == host.msm(group, points[part], scalars[part])
        with pytest.raises(CuzkError, match="nothing was started"):
            work.finish()


def test_scalars_in_montgomery_form() -> None:
    group = BLS12_381.g1
    points, scalars = samples(group, 3)
    p, _ = limbs(group, points, scalars)
    given = encode(group.scalar, scalars)
    result = multiexp.msm(group, p, given, plan=small_plan(group, 3, resident=False), montgomery=True)
    assert host.from_limbs(group, result) == host.msm(group, points, scalars)


def test_a_scalar_that_is_not_below_the_order_is_told_by_its_index() -> None:
    group = BN254.g1
    points, scalars = samples(group, 5)
    scalars[3] = group.scalar.modulus
    plan = small_plan(group, 5, resident=False, piece=2)
    p, s = limbs(group, points, scalars)
    with pytest.raises(CuzkError, match=re.escape("scalar 3 is not below Fr[bn254]'s modulus")):
        multiexp.msm(group, p, s, plan=plan)


def test_bases_are_cut_and_closed() -> None:
    group = BN254.g1
    p, _ = limbs(group, *samples(group, 6))
    bases = DeviceBases(group, p)
    assert [len(bases[a:b]) for a, b in ((0, 6), (2, 4), (4, 2), (-2, None), (5, 99))] == [6, 2, 0, 2, 1]
    assert bases[1:5][1:3].address.offset == 2 * group.point_bytes
    assert bases[2:4].__cuda_array_interface__["shape"] == (2, 2, 8)
    for key in (slice(0, 6, 2), 3):
        with pytest.raises(CuzkError, match="slices without a step"):
            bases[key]
    bases.close()
    with pytest.raises(GpuError, match="closed"):
        _ = bases[1:3].address


def test_inputs_that_do_not_fit_are_refused() -> None:
    group = BN254.g1
    p, s = limbs(group, *samples(group, 4))
    plan = small_plan(group, 4)
    for given, message in [
        ((group, p[:3], s, None), "3 points and 4 scalars"),
        ((group, p.reshape(4, 16), s, None), "expected uint32[n, 2, 8]"),
        ((group, p.astype(np.uint64), s, None), "points are uint64"),
        ((group, p, s[:, :7], None), "expected uint32[n, 8]"),
        ((BLS12_381.g1, DeviceBases(group, p), s, None), "bases of bn254.g1, expected bls12_381.g1"),
        ((group, p, s, plan), "expected 4 of bn254.g1, 96 bytes"),
        ((group, DeviceBases(group, p[:2]), to_device(s[:2]), plan), "a plan for 4 points"),
    ]:
        with pytest.raises(CuzkError, match=re.escape(message)):
            multiexp.msm(*given[:3], plan=given[3])


@pytest.mark.parametrize("group", GROUPS.values(), ids=str)
@pytest.mark.parametrize("log_n", [0, 5, 10, 16, 18, 20, 22, 24, 26, 28])
@pytest.mark.parametrize("resident", [True, False])
def test_plans_chosen_by_size_cover_all_points_within_the_limits(group: Group, log_n: int, resident: bool) -> None:
    n = (1 << log_n) + 1
    plan = plan_msm(group, n, resident=resident)
    assert plan.pieces[0][0] == 0
    assert plan.pieces[-1][1] == n
    assert all(a[1] == b[0] for a, b in zip(plan.pieces, plan.pieces[1:], strict=False))
    assert plan.windows * plan.digit_bits >= group.scalar.bits
    for begin, end in plan.pieces:
        assert plan.sort(end - begin).windows == plan.windows
    assert plan.scratch_bytes == sum(plan.memory.values())
    tight = plan_msm(group, n, resident=resident, memory=plan.scratch_bytes - 1) if n > 1 << 17 else plan
    assert tight.scratch_bytes <= plan.scratch_bytes


def test_a_plan_that_cannot_fit_says_what_it_needs() -> None:
    with pytest.raises(CuzkError, match=r"need \d+ bytes of device memory in pieces of \d+, 1000000 can be had"):
        plan_msm(BLS12_381.g2, 1 << 20, memory=1_000_000)
    for options, message in [
        ({"n": 1 << 30}, "fewer than 2^30"),
        ({"n": 4, "piece": 0}, "pieces of 0 points"),
        ({"n": 4, "digit_bits": 1}, "1 bits"),
        ({"n": 4, "digit_bits": 30}, "30 bits"),
    ]:
        with pytest.raises(CuzkError, match=re.escape(message)):
            _ = plan_msm(BN254.g1, **options).memory
