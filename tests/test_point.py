"""The xyzz and affine formulas, as plain Python over the element twins, against textbook arithmetic.

Their compiled forms are what `test_msm.py` runs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuzk.curve import host
from cuzk.curve.point import (
    Affine,
    Xyzz,
    add,
    add_mixed,
    affine_is_infinity,
    dbl,
    dbl_affine,
    infinity_like,
    negate,
    on_curve,
    to_affine,
    to_xyzz,
)
from cuzk.field.element import Element, is_zero
from cuzk.field.params import GROUPS, Group
from cuzk.field.tower import Fp2Element

groups = pytest.mark.parametrize("group", GROUPS.values(), ids=str)
small = st.integers(-20, 20)


def element(group: Group, coordinate: tuple[int, ...]) -> Any:
    parts = [Element.of(group.base, c) for c in coordinate]
    return parts[0] if group.degree == 1 else Fp2Element(*parts)


def ints(x: Any) -> tuple[int, ...]:
    return (x.value,) if isinstance(x, Element) else (x.c0.value, x.c1.value)


def affine(group: Group, point: host.Point) -> Affine:
    zeros = (0,) * group.degree
    x, y = point or (zeros, zeros)
    return Affine(element(group, x), element(group, y))


def multiple(group: Group, k: int) -> host.Point:
    return host.multiply(group, k, group.generator)


def scaled(group: Group, point: host.Point, factor: int) -> Xyzz:
    """The same point with ZZ = factor^2, ZZZ = factor^3, so that formulas meet every representation."""
    p = to_xyzz(affine(group, point))
    z = element(group, (factor, *(1,) * (group.degree - 1)))
    zz = z * z
    return Xyzz(p.x * zz, p.y * zz * z, p.zz * zz, p.zzz * zz * z)


def value(point: Xyzz) -> host.Point:
    q = to_affine(point)
    return None if affine_is_infinity(q) else (ints(q.x), ints(q.y))


@groups
@given(j=small, k=small, f=st.integers(1, 1000), g=st.integers(1, 1000))
def test_additions_equal_the_textbook_law(group: Group, j: int, k: int, f: int, g: int) -> None:
    # small multiples meet infinity, equal and opposite points often
    p, q = multiple(group, j), multiple(group, k)
    expected = host.add(group, p, q)
    assert value(add(scaled(group, p, f), scaled(group, q, g))) == expected
    assert value(add_mixed(scaled(group, p, f), affine(group, q))) == expected


@groups
@given(k=small, f=st.integers(1, 1000))
def test_doublings_and_negation(group: Group, k: int, f: int) -> None:
    p = multiple(group, k)
    assert value(dbl(scaled(group, p, f))) == multiple(group, 2 * k)
    assert value(negate(scaled(group, p, f))) == multiple(group, -k)
    if p is not None:
        assert value(dbl_affine(affine(group, p))) == multiple(group, 2 * k)


@groups
@pytest.mark.parametrize("formula", [add, lambda p, q: add_mixed(p, to_affine(q))], ids=["add", "add_mixed"])
def test_infinity_equal_and_opposite_points(group: Group, formula: Callable[[Xyzz, Xyzz], Xyzz]) -> None:
    p = scaled(group, group.generator, 7)
    nothing = infinity_like(p.x)
    assert value(formula(nothing, nothing)) is None
    assert value(formula(p, nothing)) == group.generator == value(formula(nothing, p))
    assert value(formula(p, p)) == multiple(group, 2)
    assert value(formula(p, negate(p))) is None
    assert is_zero(formula(p, negate(p)).zz)


@groups
def test_generator_has_the_groups_order(group: Group) -> None:
    assert multiple(group, group.scalar.modulus) is None
    assert host.from_limbs(group, host.to_limbs(group, group.generator)) == group.generator
    assert host.from_limbs(group, host.to_limbs(group, None)) is None


@groups
@given(k=small)
def test_on_curve_holds_for_points_and_fails_beside_them(group: Group, k: int) -> None:
    p, b = affine(group, multiple(group, k)), element(group, group.b)
    assert on_curve(p, b)
    if k:
        assert not on_curve(Affine(p.x, p.y + element(group, (1,) * group.degree)), b)
