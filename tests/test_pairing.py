"""The pairing: its exponents, its value against py_ecc, bilinearity, and the points module it works with."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tower_model as model
from cuzk.cpu import points
from cuzk.curve import host
from cuzk.curve.constants import (
    loop_digits,
    naf,
    pairing_constants,
    phi_coefficient,
    point_constants,
    psi_coefficients,
    x_digits,
)
from cuzk.curve.endomorphism import in_g1_bls12, in_g2_bls12, in_g2_bn, phi, psi
from cuzk.curve.pairing import Parameters, final_exponentiation, miller_loop
from cuzk.curve.point import Affine
from cuzk.errors import CuzkError
from cuzk.field.element import Element, one_like
from cuzk.field.host import decode, encode_canonical
from cuzk.field.params import CURVES, GROUPS, Curve, Group
from cuzk.field.tower import Fp2Element

curves = pytest.mark.parametrize("curve", CURVES.values(), ids=str)
groups = pytest.mark.parametrize("group", GROUPS.values(), ids=str)
SCALARS = st.one_of(st.integers(0, 3), st.integers(0, 2**256 - 1))


def multiples(group: Group, *scalars: int) -> np.ndarray:
    """uint32[n, *point_shape]: multiples of the generator."""
    base = host.generator(group)[None]
    rows = [points.linear_combination(group, base, encode_canonical(group.scalar, [k])) for k in scalars]
    return np.stack(rows)


def value_of(curve: Curve, limbs: np.ndarray) -> model.Polynomial:
    return model.polynomial(curve, decode(curve.fp, limbs))


def cofactor_of_the_value(curve: Curve) -> int:
    """The power of the textbook's pairing that ours is."""
    x = curve.x
    return 3 if curve.family == "BLS12" else 2 * x * (6 * x * x + 3 * x + 1)


def outside(group: Group) -> np.ndarray:
    """A point on the curve that is not in the subgroup."""
    for i in range(1, 100):
        x = (i,) if group.degree == 1 else (i, 1)
        y = host.square_root(group, host.curve_equation(group, x))
        if y is not None and not host.in_subgroup(group, (x, y)):
            return host.to_limbs(group, (x, y))
    raise AssertionError("no such point")


# --- constants ---------------------------------------------------------------------------------------


@given(st.integers(1, 2**80))
def test_naf_is_the_number_and_not_adjacent(n: int) -> None:
    digits = naf(n)
    assert sum(d << i for i, d in enumerate(reversed(digits))) == n
    assert digits[0] == 1
    assert all(not (a and b) for a, b in itertools.pairwise(digits))


@curves
def test_hard_part_is_a_power_of_the_textbooks(curve: Curve) -> None:
    p, r, x = curve.fp.modulus, curve.fr.modulus, curve.x
    if curve.family == "BN":
        a = 12 * x**3 + 6 * x**2 + 6 * x
        b = a - 2 * x
        exponent = (a + 6 * x**2 + 1) + b * p + a * p**2 + (b - 1) * p**3
    else:
        exponent = (x - 1) ** 2 * (x + p) * (x * x + p * p - 1) + 3
    power = cofactor_of_the_value(curve)
    assert exponent == power * ((p**4 - p**2 + 1) // r)
    assert power % r != 0


@curves
def test_loop_digits(curve: Curve) -> None:
    def number(digits: np.ndarray) -> int:
        return sum(int(d) << i for i, d in enumerate([*digits[::-1], 1]))

    assert number(x_digits(curve)) == abs(curve.x)
    assert number(loop_digits(curve)) == (6 * curve.x + 2 if curve.family == "BN" else abs(curve.x))


def coordinate(group: Group, values: Any) -> Any:
    parts = [Element.of(group.base, c) for c in values]
    return Fp2Element(*parts) if group.degree == 2 else parts[0]


def affine(group: Group, point: host.Point) -> Affine:
    assert point is not None
    return Affine(*(coordinate(group, c) for c in point))


@curves
def test_endomorphisms_are_multiplications_on_the_generators(curve: Curve) -> None:
    factors = [coordinate(curve.g2, pair) for pair in psi_coefficients(curve)]
    trace = curve.x if curve.family == "BLS12" else 6 * curve.x**2
    assert (curve.fp.modulus - trace) % curve.fr.modulus == 0
    expected = host.multiply(curve.g2, trace, curve.g2.generator)
    assert psi(affine(curve.g2, curve.g2.generator), *factors) == affine(curve.g2, expected)
    if curve.family == "BLS12":
        beta = Element.of(curve.fp, phi_coefficient(curve))
        expected = host.multiply(curve.g1, -(curve.x**2), curve.g1.generator)
        assert phi(affine(curve.g1, curve.g1.generator), beta) == affine(curve.g1, expected)


# --- the pairing ---------------------------------------------------------------------------------------


@curves
def test_compiled_pairing_and_python_twin_agree(curve: Curve) -> None:
    ps, qs = multiples(curve.g1, 5, 7), multiples(curve.g2, 11, 1)
    compiled, _ = points.pairing_product(curve, ps, qs)
    constants = [coordinate(curve.g2, pair) for pair in decode(curve.fp, pairing_constants(curve))]
    loop, x = loop_digits(curve), x_digits(curve)
    parameters = Parameters(constants, loop, len(loop), x, len(x), curve.x < 0)
    one = one_like(model.of_ints(curve, [0] * 12))
    twins = [[affine(g, host.from_limbs(g, p)) for p in limbs] for g, limbs in ((curve.g1, ps), (curve.g2, qs))]
    value = final_exponentiation(miller_loop(*twins, 2, [None, None], one, parameters), parameters)
    assert [e.value for e in model.flatten(value)] == decode(curve.fp, compiled)


@pytest.mark.parametrize(("curve", "module"), [("bn254", "bn128"), ("bls12_381", "bls12_381")])
def test_value_is_the_power_of_py_eccs_value(curve: Any, module: str) -> None:
    py_ecc = pytest.importorskip("py_ecc")
    curve, oracle = CURVES[curve], getattr(py_ecc, module)
    theirs = [int(c) for c in oracle.pairing(oracle.G2, oracle.multiply(oracle.G1, 6)).coeffs]
    ours, _ = points.pairing_product(curve, multiples(curve.g1, 2), multiples(curve.g2, 3))
    # py_ecc runs the loop over |x|: the inverse where x is negative
    exponent = cofactor_of_the_value(curve) * (-1 if curve.x < 0 and curve.family == "BLS12" else 1)
    assert value_of(curve, ours) == model.power(curve, theirs, exponent % curve.fr.modulus)


@curves
def test_value_has_order_r(curve: Curve) -> None:
    value, is_one = points.pairing_product(curve, multiples(curve.g1, 1), multiples(curve.g2, 1))
    assert not is_one
    assert model.power(curve, value_of(curve, value), curve.fr.modulus) == [1] + [0] * 11


@curves
@settings(max_examples=15)
@given(a=SCALARS, b=SCALARS)
def test_bilinear(curve: Curve, a: int, b: int) -> None:
    r = curve.fr.modulus
    ps = multiples(curve.g1, a % r, a * b % r, 1)
    qs = multiples(curve.g2, b % r, 1, a * b % r)
    ps[1] = points.negate(curve.g1, ps[1])
    one = [1] + [0] * 11
    value, is_one = points.pairing_product(curve, ps[:2], qs[:2])
    assert is_one
    assert value_of(curve, value) == one
    left, right = (points.pairing_product(curve, ps[i : i + 1], qs[i : i + 1])[0] for i in (0, 2))
    assert np.array_equal(left, right)
    assert points.pairing_product(curve, ps[:1], qs[:1])[1] == (a * b % r == 0)


@curves
def test_products_of_many_pairs_and_of_none(curve: Curve) -> None:
    ks = [3, 1, 4, 1, 5, 9, 2]
    ps, qs = multiples(curve.g1, *ks, 1), multiples(curve.g2, *ks, curve.fr.modulus - sum(k * k for k in ks))
    assert points.pairing_product(curve, ps, qs)[1]
    assert not points.pairing_product(curve, ps[:-1], qs[:-1])[1]
    assert points.pairing_product(curve, ps[:0], qs[:0])[1]


@curves
def test_infinity_contributes_one(curve: Curve) -> None:
    ps, qs = multiples(curve.g1, 2, 0, 6), multiples(curve.g2, 3, 5, 0)
    with_infinity, _ = points.pairing_product(curve, ps, qs)
    alone, _ = points.pairing_product(curve, ps[:1], qs[:1])
    assert np.array_equal(with_infinity, alone)
    assert points.pairing_product(curve, ps[1:], qs[1:])[1]


@curves
def test_a_pairing_of_unequal_numbers_is_refused(curve: Curve) -> None:
    with pytest.raises(CuzkError, match="2 points of G1 and 1 of G2"):
        points.pairing_product(curve, multiples(curve.g1, 1, 2), multiples(curve.g2, 1))


# --- points --------------------------------------------------------------------------------------------


@groups
@settings(max_examples=10)
@given(ks=st.lists(SCALARS, min_size=0, max_size=4))
def test_linear_combination_is_the_naive_one(group: Group, ks: list[int]) -> None:
    bases = [host.multiply(group, i + 2, group.generator) for i in range(len(ks))]
    expected: host.Point = None
    for k, base in zip(ks, bases, strict=True):
        expected = host.add(group, expected, host.multiply(group, k, base))
    limbs = np.array([host.to_limbs(group, base) for base in bases], np.uint32).reshape(-1, *group.point_shape)
    scalars = np.array([[(k >> 32 * i) & 0xFFFFFFFF for i in range(8)] for k in ks], np.uint32).reshape(-1, 8)
    assert host.from_limbs(group, points.linear_combination(group, limbs, scalars)) == expected


@groups
def test_sums_and_opposites_in_every_case(group: Group) -> None:
    some = [None, *(host.multiply(group, k, group.generator) for k in (1, 2, -1, 5))]
    pairs = [(a, b) for a in some for b in some]
    left, right = (np.stack([host.to_limbs(group, pair[i]) for pair in pairs]) for i in (0, 1))
    sums = points.add(group, left, right)
    assert [host.from_limbs(group, s) for s in sums] == [host.add(group, a, b) for a, b in pairs]
    assert [host.from_limbs(group, s) for s in points.negate(group, left)] == [host.negate(group, a) for a, _ in pairs]
    single = points.add(group, left[-1], right[-1])
    assert single.shape == group.point_shape
    with pytest.raises(CuzkError, match="adding 25 points"):
        points.add(group, left, right[:3])


@groups
def test_points_off_the_curve_are_found(group: Group) -> None:
    good = multiples(group, 1, 0, 2, 3)
    assert points.first_off_curve(group, good) is None
    assert points.first_off_curve(group, good[0]) is None
    assert points.first_off_curve(group, good[:0]) is None
    for index in range(4):
        bad = good.copy()
        bad[index].reshape(-1)[0] ^= 1
        assert points.first_off_curve(group, bad) == index
        with pytest.raises(CuzkError, match=rf"key, a\[{index}\]: the point is not on the curve"):
            points.check_points(group, bad, "key, a")


@groups
def test_coordinates_that_are_not_reduced_are_found(group: Group) -> None:
    good = multiples(group, 1, 2)
    for place in range(2 * group.degree):
        bad = good.copy()
        parts = bad.reshape(2, -1, group.base.limbs)
        value = sum(int(w) << 32 * i for i, w in enumerate(parts[1, place])) + group.base.modulus
        parts[1, place] = [(value >> 32 * i) & 0xFFFFFFFF for i in range(group.base.limbs)]
        assert points.first_off_curve(group, bad) == 1
        parts[1, place] = 0xFFFFFFFF
        assert points.first_off_curve(group, bad) == 1


@groups
@given(data=st.data())
def test_is_canonical(group: Group, data: Any) -> None:
    field = group.base
    top = 1 << (32 * field.limbs)
    near = st.integers(-3, 3).map(lambda d: field.modulus + d)
    values = data.draw(st.lists(st.one_of(near, st.integers(0, top - 1)), min_size=1, max_size=5))
    limbs = np.array([[(v >> 32 * i) & 0xFFFFFFFF for i in range(field.limbs)] for v in values], np.uint32)
    assert points.is_canonical(field, limbs).tolist() == [v < field.modulus for v in values]


@groups
def test_points_outside_the_subgroup_are_found(group: Group) -> None:
    good = multiples(group, 1, 0, 2, 3, 2**200)
    assert points.first_outside_subgroup(group, good) is None
    if group.cofactor == 1:
        return
    for index in (0, 1, 4):
        bad = good.copy()
        bad[index] = outside(group)
        assert points.first_off_curve(group, bad) is None
        assert points.first_outside_subgroup(group, bad) == index
    with pytest.raises(CuzkError, match="x: the point is not in the subgroup"):
        points.check_points(group, outside(group), "x")
    points.check_points(group, outside(group), "x", subgroup=False)


@groups
def test_small_order_and_mixed_points_are_outside(group: Group) -> None:
    """Points of the cofactor's order, and such a point plus one of the subgroup."""
    if group.cofactor == 1:
        return
    wrong = host.multiply(group, group.scalar.modulus, host.from_limbs(group, outside(group)))
    assert wrong is not None
    mixed = host.add(group, wrong, group.generator)
    for point in (wrong, mixed):
        assert points.first_outside_subgroup(group, host.to_limbs(group, point)) == 0


@curves
def test_subgroup_formulas_on_the_python_twin(curve: Curve) -> None:
    digits = x_digits(curve)
    for group, check in ((curve.g2, in_g2_bn if curve.family == "BN" else in_g2_bls12), (curve.g1, in_g1_bls12)):
        if group.cofactor == 1:
            continue
        rows = decode(group.base, point_constants(group).reshape(3, group.degree, -1))
        constants = [coordinate(group, row) for row in rows]
        arguments = (constants, digits, len(digits), curve.x < 0)
        assert check(affine(group, group.generator), *arguments)
        assert not check(affine(group, host.from_limbs(group, outside(group))), *arguments)


@groups
def test_malformed_arrays_are_refused(group: Group) -> None:
    good = multiples(group, 1)
    for bad in (good.astype(np.uint64), good[..., :-1], np.zeros(3, np.uint32), np.uint32(1)):
        with pytest.raises(CuzkError, match=f"points of {group}"):
            points.first_off_curve(group, np.asarray(bad))
    with pytest.raises(CuzkError, match="one row for each point"):
        points.linear_combination(group, good, np.zeros((2, 8), np.uint32))
