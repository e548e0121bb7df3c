"""MSM on the CPU: against textbook sums, and against scalar multiplication with known logarithms."""

from __future__ import annotations

import random
from importlib import import_module

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cuzk
from cuzk.cpu import pool
from cuzk.cpu.points import linear_combination
from cuzk.curve import host
from cuzk.errors import BackendError, CuzkError
from cuzk.field.host import Limbs, encode_canonical, ints_to_limbs, limbs_to_ints, random_elements
from cuzk.field.params import BLS12_381, BN254, GROUPS, Group
from msm_samples import arkworks_msm

planning = import_module("cuzk.msm")
groups = pytest.mark.parametrize("group", GROUPS.values(), ids=str)
LENGTHS = (0, 1, 2, 31, 33, 237)


def scalars_of(group: Group, values: list[int]) -> Limbs:
    return ints_to_limbs(values, group.scalar.limbs)


def multiply(group: Group, k: int) -> Limbs:
    """k times the generator by the compiled double-and-add, which `test_scalar_multiplication` judges."""
    return linear_combination(group, host.generator(group), encode_canonical(group.scalar, [k]))


class Bases:
    """Points with known logarithms: point i is logarithms[i] times the generator."""

    def __init__(self, group: Group, n: int) -> None:
        self.group = group
        rng = random.Random(n)
        known = [rng.randrange(group.scalar.modulus) for _ in range(64)]
        points = [multiply(group, k) for k in known]
        self.logarithms = [known[i % 64] for i in range(n)]
        self.points = np.stack([points[i % 64] for i in range(n)])

    def expect(self, values: list[int]) -> Limbs:
        total = sum(k * v for k, v in zip(self.logarithms, values, strict=False))
        return multiply(self.group, total)

    def check(self, values: list[int], points: Limbs | None = None) -> None:
        points = self.points[: len(values)] if points is None else points
        result = cuzk.msm(self.group, points, scalars_of(self.group, values))
        assert np.array_equal(result, self.expect(values))


@pytest.fixture(scope="module")
def bases() -> dict[str, Bases]:
    return {name: Bases(group, 1000) for name, group in GROUPS.items()}


@groups
@given(k=st.integers(0, 2**256 - 1))
@settings(max_examples=10)
def test_scalar_multiplication_equals_the_textbooks(group: Group, k: int) -> None:
    k %= group.scalar.modulus
    assert host.from_limbs(group, multiply(group, k)) == host.multiply(group, k, group.generator)


@groups
@given(data=st.data())
@settings(max_examples=15)
def test_equals_the_naive_sum(group: Group, data: st.DataObject) -> None:
    r = group.scalar.modulus
    edges = st.sampled_from([0, 1, 2, r - 1, r - 2, r // 2, (1 << 128) - 1, 1 << 253])
    values = data.draw(st.lists(edges | st.integers(0, r - 1), max_size=6))
    # few multiples of the generator, so that equal, opposite and infinite points are common
    multiples = data.draw(st.lists(st.integers(-2, 2), min_size=len(values), max_size=len(values)))
    points = [host.multiply(group, m, group.generator) for m in multiples]
    limbs = np.array([host.to_limbs(group, p) for p in points], np.uint32).reshape(-1, *group.point_shape)
    result = cuzk.msm(group, limbs, scalars_of(group, values))
    assert host.from_limbs(group, result) == host.msm(group, points, values)


@groups
@pytest.mark.parametrize("n", LENGTHS)
def test_random_scalars_at_every_kind_of_length(group: Group, n: int, bases: dict[str, Bases]) -> None:
    rng = random.Random(n)
    bases[group.name].check([rng.randrange(group.scalar.modulus) for _ in range(n)])


@groups
@pytest.mark.parametrize(
    "name", ["all equal", "ones", "zeros", "minus one", "bits", "one hot", "one bucket", "powers of two"]
)
def test_adversarial_scalars(group: Group, name: str, bases: dict[str, Bases]) -> None:
    r, n = group.scalar.modulus, 1000
    rng = random.Random(name)
    values = {
        "all equal": [rng.randrange(r)] * n,
        "ones": [1] * n,
        "zeros": [0] * n,
        "minus one": [r - 1] * n,
        "bits": [rng.randrange(2) for _ in range(n)],
        "one hot": [0] * (n - 1) + [r - 2],
        "one bucket": [5] * (n // 2) + [r - 5] * (n // 2),
        "powers of two": [1 << (i % 254) for i in range(n)],
    }[name]
    bases[group.name].check(values)


@groups
def test_infinities_in_the_bases_add_nothing(group: Group, bases: dict[str, Bases]) -> None:
    base = bases[group.name]
    rng = random.Random(5)
    values = [rng.randrange(group.scalar.modulus) for _ in range(1000)]
    points = base.points.copy()
    points[::3] = 0
    result = cuzk.msm(group, points, scalars_of(group, values))
    assert np.array_equal(result, base.expect([0 if i % 3 == 0 else v for i, v in enumerate(values)]))
    assert not cuzk.msm(group, np.zeros_like(points), scalars_of(group, values)).any()


@groups
def test_equal_and_opposite_points_meet_in_a_bucket(group: Group) -> None:
    generator = host.to_limbs(group, group.generator)
    opposite = host.to_limbs(group, host.negate(group, group.generator))
    points = np.stack([generator, opposite] * 100 + [generator] * 37)
    result = cuzk.msm(group, points, scalars_of(group, [9] * 237))
    assert np.array_equal(result, multiply(group, 9 * 37))
    points = np.stack([generator] * 50 + [opposite] * 50)
    assert not cuzk.msm(group, points, scalars_of(group, [9] * 100)).any()


@groups
@pytest.mark.parametrize("digit_bits", [2, 3, 5, 8, 11, 13, 16])
def test_every_window_size_gives_the_same_sum(
    group: Group, digit_bits: int, bases: dict[str, Bases], monkeypatch: pytest.MonkeyPatch
) -> None:
    base = bases[group.name]
    # several chunks and several ranges, neither of them even
    real = planning.plan(group, 500, 500, 1)
    windows = -(-(group.scalar.bits + 1) // digit_bits)
    forced = planning.Plan(group, 500, digit_bits, windows, tuple(pool.split(500, 3)), 77)
    assert real.windows * real.digit_bits > group.scalar.bits
    monkeypatch.setattr(planning, "plan", lambda *arguments: forced)
    rng = random.Random(digit_bits)
    r = group.scalar.modulus
    base.check([rng.choice([0, 1, r - 1, rng.randrange(r)]) for _ in range(500)])


@pytest.mark.parametrize("group", [BN254.g1, BLS12_381.g2], ids=str)
def test_more_than_one_chunk_and_batch(group: Group) -> None:
    base = Bases(group, 40_000)
    values = random_elements(group.scalar, 40_000, np.random.default_rng(3))
    result = cuzk.msm(group, base.points, values)
    assert np.array_equal(result, base.expect(limbs_to_ints(values)))


@given(n=st.integers(1, 10**9), share=st.floats(0, 1), cores=st.integers(1, 256))
def test_a_plan_covers_every_bit_and_every_point(n: int, share: float, cores: int) -> None:
    for group in (BN254.g1, BLS12_381.g2):
        p = planning.plan(group, n, int(n * share), cores)
        assert p.windows * p.digit_bits >= group.scalar.bits + 1
        assert p.ranges[0][0] == 0
        assert p.ranges[-1][1] == n
        assert all(a[1] == b[0] for a, b in zip(p.ranges, p.ranges[1:], strict=False))
        assert 1 <= p.chunk <= n
        assert p.workspace_bytes() < 64 << 20


def test_bad_arrays_are_refused() -> None:
    group = BN254.g1
    points, values = np.zeros((3, 2, 8), np.uint32), np.zeros((3, 8), np.uint32)
    with pytest.raises(CuzkError, match="3 points and 2 scalars"):
        cuzk.msm(group, points, values[:2])
    with pytest.raises(CuzkError, match="expected uint32"):
        cuzk.msm(group, points.astype(np.uint64), values)
    with pytest.raises(CuzkError, match="expected uint32"):
        cuzk.msm(BLS12_381.g1, points, values)
    with pytest.raises(CuzkError, match="scalars are"):
        cuzk.msm(group, points, values[:, :4])
    values[1] = scalars_of(group, [group.scalar.modulus - 1])[0]
    cuzk.msm(group, points, values)
    values[2] = scalars_of(group, [group.scalar.modulus])[0]
    with pytest.raises(CuzkError, match="scalar 2 is not below"):
        cuzk.msm(group, points, values)


def test_cuda_where_there_is_none_is_an_error_that_says_so() -> None:
    with pytest.raises(BackendError):
        cuzk.msm(BN254.g1, np.zeros((1, 2, 8), np.uint32), np.zeros((1, 8), np.uint32), backend="cuda")
    with pytest.raises(CuzkError):
        cuzk.msm(BN254.g1, np.zeros((1, 2, 8), np.uint32), np.zeros((1, 8), np.uint32), backend="abacus")


@groups
def test_equals_independent_implementations(group: Group, bases: dict[str, Bases]) -> None:
    base = bases[group.name]
    rng = random.Random(11)
    values = [rng.randrange(group.scalar.modulus) for _ in range(33)]
    result = host.from_limbs(group, cuzk.msm(group, base.points[:33], scalars_of(group, values)))
    points = [host.from_limbs(group, p) for p in base.points[:33]]
    assert result is not None
    if group.base.limbs == 12:
        theirs = arkworks_msm(group, base.points[:33], scalars_of(group, values))
        assert host.from_limbs(group, theirs) == result
    else:
        assert _py_ecc_msm(group, points[:3], values[:3]) == host.msm(group, points[:3], values[:3])


def _py_ecc_msm(group: Group, points: list[host.Point], values: list[int]) -> host.Point:
    ecc = pytest.importorskip("py_ecc.optimized_bn128")
    total = ecc.Z1 if group.degree == 1 else ecc.Z2
    for point, value in zip(points, values, strict=True):
        assert point is not None
        x, y = (ecc.FQ(c[0]) if group.degree == 1 else ecc.FQ2(c) for c in point)
        one = ecc.FQ.one() if group.degree == 1 else ecc.FQ2.one()
        total = ecc.add(total, ecc.multiply((x, y, one), value))
    normalized = ecc.normalize(total)
    if group.degree == 1:
        return tuple((int(c),) for c in normalized)  # type: ignore[return-value]
    return tuple(tuple(int(v) for v in c.coeffs) for c in normalized)  # type: ignore[return-value]
