"""Fp6 and Fp12: the formulas against polynomial arithmetic, and compiled code against the formulas."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tower_model as model
from cuzk.cpu.compiler import compile_unit
from cuzk.cpu.jit import Library
from cuzk.curve.pairing import easy_part
from cuzk.field.element import Element, device_function, double, is_zero, one_like, sqr, zero_like
from cuzk.field.host import decode, encode
from cuzk.field.params import CURVES, Curve
from cuzk.field.prime import inv
from cuzk.field.tower import Fp2Element, fp2_type
from cuzk.field.tower6 import fp6, mul_by_v, mul_by_xi
from cuzk.field.tower12 import (
    Fp12Element,
    conjugate,
    cyclotomic_sqr,
    fp12,
    fp12_type,
    frobenius,
    mul_by_014,
    mul_by_034,
    mul_by_line,
)
from cuzk.field.vector import Vector

curves = pytest.mark.parametrize("curve", CURVES.values(), ids=str)
EDGES = (0, 1, 2, -1, -2)


@lru_cache
def elements(curve: Curve) -> st.SearchStrategy[Fp12Element]:
    coordinate = st.one_of(st.sampled_from(EDGES), st.integers(0, curve.fp.modulus - 1))
    return st.lists(coordinate, min_size=12, max_size=12).map(lambda values: model.of_ints(curve, values))


def frobenius_table(curve: Curve) -> list[Fp2Element]:
    pairs = [curve.frobenius_coefficient(power, k) for power in (1, 2, 3) for k in range(6)]
    return [Fp2Element(*(Element.of(curve.fp, c) for c in pair)) for pair in pairs]


def polynomials(curve: Curve, *values: Fp12Element) -> list[model.Polynomial]:
    return [model.to_polynomial(curve, f) for f in values]


@curves
@given(data=st.data())
def test_products_squares_and_inverses_are_those_of_polynomials(curve: Curve, data: Any) -> None:
    f, g = data.draw(elements(curve)), data.draw(elements(curve))
    a, b = polynomials(curve, f, g)
    assert model.to_polynomial(curve, f * g) == model.multiply(curve, a, b)
    assert model.to_polynomial(curve, sqr(f)) == model.multiply(curve, a, a)
    assert sqr(f.c0) == f.c0 * f.c0
    assert inv(f) * f == (f if is_zero(f) else one_like(f))
    assert inv(f.c0) * f.c0 == (f.c0 if is_zero(f.c0) else one_like(f.c0))


@curves
@given(data=st.data())
def test_sums_and_multiples(curve: Curve, data: Any) -> None:
    f, g = data.draw(elements(curve)), data.draw(elements(curve))
    p = curve.fp.modulus
    a, b = polynomials(curve, f, g)
    assert model.to_polynomial(curve, f + g) == [(x + y) % p for x, y in zip(a, b, strict=True)]
    assert model.to_polynomial(curve, f - g) == [(x - y) % p for x, y in zip(a, b, strict=True)]
    assert f + (-f) == zero_like(f)
    assert double(f) == f + f
    assert double(f.c0) == f.c0 + f.c0


@curves
def test_generators_of_the_tower(curve: Curve) -> None:
    one = one_like(model.of_ints(curve, [0] * 12))
    two = one.c0.c0
    zero = zero_like(two)
    v = fp6(zero, two, zero)
    w = fp12(zero_like(one.c0), one.c0)
    xi = Fp2Element(*(Element.of(curve.fp, c) for c in curve.xi))
    assert v * v * v == fp6(xi, zero, zero)
    assert mul_by_xi(two) == xi
    assert sqr(w) == fp12(v, zero_like(v))


@curves
@given(data=st.data())
def test_sparse_products_are_full_products(curve: Curve, data: Any) -> None:
    f, g = data.draw(elements(curve)), data.draw(elements(curve))
    a, b, c = g.c0.c0, g.c0.c1, g.c0.c2
    zero = zero_like(a)
    l034, l014 = fp12(fp6(a, zero, zero), fp6(b, c, zero)), fp12(fp6(a, b, zero), fp6(zero, c, zero))
    assert mul_by_034(f, a, b, c) == f * l034
    assert mul_by_014(f, a, b, c) == f * l014
    assert mul_by_line(f, a, b, c) == (mul_by_034(f, c, b, a) if curve.twist == "D" else mul_by_014(f, a, b, c))
    assert mul_by_v(f.c0) == f.c0 * fp6(zero, one_like(a), zero)
    assert fp6(mul_by_xi(a), zero, zero) == mul_by_v(mul_by_v(mul_by_v(fp6(a, zero, zero))))


@curves
@settings(max_examples=3)
@given(data=st.data())
def test_frobenius_maps_are_powers(curve: Curve, data: Any) -> None:
    f, table, p = data.draw(elements(curve)), frobenius_table(curve), curve.fp.modulus
    image = model.to_polynomial(curve, f)
    for power in (1, 2, 3):
        image = model.power(curve, image, p)
        assert model.to_polynomial(curve, frobenius(f, power, table)) == image
    assert frobenius(frobenius(f, 3, table), 3, table) == conjugate(f)
    assert conjugate(f.c0.c0) == Fp2Element(f.c0.c0.c0, -f.c0.c0.c1)


@curves
@settings(max_examples=10)
@given(data=st.data())
def test_cyclotomic_squares_and_inverses(curve: Curve, data: Any) -> None:
    f = data.draw(elements(curve))
    if is_zero(f):
        return
    g = easy_part(f, frobenius_table(curve))
    assert cyclotomic_sqr(g) == sqr(g)
    assert conjugate(g) * g == one_like(g)


# --- compiled code ---------------------------------------------------------------------------------


@device_function
def _apply(f: Any, g: Any, table: Any, out: Any) -> None:
    """Every operation on f and g; the same function runs compiled and on the Python twins."""
    out[0] = f * g
    out[1] = sqr(f)
    out[2] = inv(f)
    out[3] = f + g
    out[4] = f - g
    out[5] = -f
    out[6] = double(f)
    out[7] = conjugate(f)
    out[8] = frobenius(f, 1, table)
    out[9] = frobenius(f, 2, table)
    out[10] = frobenius(f, 3, table)
    out[11] = mul_by_line(f, g.c0.c0, g.c0.c1, g.c1.c2)
    out[12] = cyclotomic_sqr(f)  # outside the subgroup it is not a square, but the same formula
    out[13] = zero_like(f)
    out[14] = one_like(f)
    out[15] = fp12(sqr(f.c0), inv(f.c1) * f.c0)


RESULTS = 16


def job(f: Any, g: Any, table: Any, out: Any) -> int:
    _apply(f[0], g[0], table, out)
    flags = 4 if f[0] == g[0] else 2
    return flags + 1 if is_zero(f[0].c0.c0) else flags


@pytest.fixture(scope="module", params=CURVES.values(), ids=str)
def compiled(request: pytest.FixtureRequest) -> tuple[Curve, Any]:
    curve = request.param
    vector = Vector(fp12_type(curve.fp))
    arguments = (vector, vector, Vector(fp2_type(curve.fp)), vector)
    return curve, Library(
        ("test", curve.name), *compile_unit({"job": (job, arguments)}, f"test.{job.__name__}.{curve.name}")
    ).job


@given(data=st.data())
@settings(max_examples=20)
def test_compiled_code_and_python_twin_agree(compiled: Any, data: Any) -> None:
    curve, run = compiled
    f = data.draw(elements(curve))
    g = data.draw(st.one_of(st.just(f), elements(curve)))
    expected: list[Any] = [None] * RESULTS
    _apply(f, g, frobenius_table(curve), expected)
    limbs = [encode(curve.fp, [e.value for e in model.flatten(x)]) for x in (f, g)]
    table = encode(curve.fp, [[x.c0.value, x.c1.value] for x in frobenius_table(curve)])
    out = np.zeros((RESULTS, 12, curve.fp.limbs), np.uint32)
    flags = run(*limbs, table, out)
    assert flags == (4 if f == g else 2) + is_zero(f.c0.c0)
    for i, value in enumerate(expected):
        assert decode(curve.fp, out[i]) == [e.value for e in model.flatten(value)], f"result {i}"
