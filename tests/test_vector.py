"""Vector: values of every kind at 4-byte addresses, loaded and stored whole, by compiled code and by its twin."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from numba.core import types

from cuzk.cpu import jit
from cuzk.curve.point import Affine, affine_type, negate_affine, xyzz_type
from cuzk.field.element import Element, element_type
from cuzk.field.host import decode, encode, random_elements
from cuzk.field.params import FIELDS, GROUPS, Field, Group
from cuzk.field.tower import fp2_type
from cuzk.field.vector import Vector, VectorView, advance, byte_size, components, reinterpret
from field_samples import BASE_FIELDS, compile_jobs

GUARD = 0xDEADBEEF


def reverse(x: Any, out: Any, n: int) -> int:
    for i in range(n):
        out[i] = x[n - 1 - i]
    return 0


def reverse_advanced(x: Any, out: Any, n: int) -> int:
    """The same, each value through a view of its own."""
    for i in range(n):
        view = advance(out, i)
        view[0] = advance(x, n)[-1 - i]
    return 0


def total(x: Any, n: int) -> int:
    result = types.int64(0)
    for i in range(n):
        result += x[i]
    return result


def negate_points(x: Any, out: Any, n: int) -> int:
    for i in range(n):
        out[i] = negate_affine(x[i])
    return 0


def add_in_records(records: Any, words: int, skip: int, out: Any, n: int) -> int:
    """out[i] = out[i] + the element at word `skip` of record i."""
    for i in range(n):
        element = reinterpret(advance(records, i * words + skip), out)
        out[i] = out[i] + element[0]
    return 0


@cache
def copies() -> jit.Library:
    """reverse() for every kind of value, and the others."""
    kinds = {name: element_type(field) for name, field in FIELDS.items()}
    kinds |= {f"fp2 {field}": fp2_type(field) for field in BASE_FIELDS}
    kinds |= {f"affine {name}": affine_type(group) for name, group in GROUPS.items()}
    kinds |= {f"xyzz {name}": xyzz_type(group) for name, group in GROUPS.items()}
    kinds |= {str(kind): kind for kind in (types.int32, types.uint32, types.int64)}
    n, u32 = types.int64, Vector(types.uint32)
    jobs: dict[str, Any] = {name: (reverse, (Vector(kind), Vector(kind), n)) for name, kind in kinds.items()}
    jobs |= {f"total {kind}": (total, (Vector(kind), n)) for kind in (types.int32, types.uint32, types.int64)}
    g2 = Vector(affine_type(GROUPS["bls12_381.g2"]))
    jobs["advanced"] = (reverse_advanced, (g2, g2, n))
    for name, group in GROUPS.items():
        jobs[f"negate {name}"] = (negate_points, (Vector(affine_type(group)), Vector(affine_type(group)), n))
    for name, field in FIELDS.items():
        jobs[f"records {name}"] = (add_in_records, (u32, n, n, Vector(element_type(field)), n))
    return compile_jobs("vector", jobs)


def words_of_kind(name: str) -> int:
    if name in FIELDS:
        return FIELDS[name].limbs
    kind, _, rest = name.partition(" ")
    if kind == "fp2":
        return 2 * FIELDS[rest].limbs
    group = GROUPS[rest]
    return {"affine": 1, "xyzz": 2}[kind] * group.point_bytes // 4


KINDS = [*FIELDS, *(f"fp2 {f}" for f in BASE_FIELDS), *(f"{k} {g}" for k in ("affine", "xyzz") for g in GROUPS)]


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("offset", [0, 1, 3])
def test_values_are_moved_whole_at_any_word(name: str, offset: int) -> None:
    """Bit patterns are kept, neighbours untouched, and 4-byte alignment is enough."""
    words, n = words_of_kind(name), 5
    rng = np.random.default_rng(words)
    source = np.full(offset + words * n + 1, GUARD, np.uint32)
    source[offset:-1] = rng.integers(0, 2**32, words * n, dtype=np.uint32)
    target = np.full_like(source, GUARD)
    getattr(copies(), name)(source[offset:], target[offset:], n)
    expected = source[offset:-1].reshape(n, words)[::-1].ravel()
    np.testing.assert_array_equal(target[offset:-1], expected)
    assert (target[:offset] == GUARD).all()
    assert target[-1] == GUARD


def test_advance_is_an_offset_in_values() -> None:
    words, n = words_of_kind("affine bls12_381.g2"), 4
    source = np.random.default_rng(1).integers(0, 2**32, (n, words), dtype=np.uint32)
    target = np.empty_like(source)
    copies().advanced(source, target, n)
    np.testing.assert_array_equal(target, source[::-1])


@pytest.mark.parametrize("kind", ["int32", "uint32", "int64"])
def test_machine_integers(kind: str) -> None:
    info = np.iinfo(kind)
    values = np.array([info.max, info.min, 1, 7, info.max if kind != "int64" else 3], dtype=kind)
    out = np.empty_like(values)
    getattr(copies(), kind)(values, out, len(values))
    np.testing.assert_array_equal(out, values[::-1])
    assert getattr(copies(), f"total {kind}")(values, len(values)) == int(values.astype(object).sum())


@pytest.mark.parametrize("group", GROUPS.values(), ids=repr)
def test_points_lie_x_then_y_then_coordinates(group: Group) -> None:
    n = 3
    points = random_elements(group.base, n * 2 * group.degree, np.random.default_rng(2)).reshape(n, *group.point_shape)
    out = np.empty_like(points)
    getattr(copies(), f"negate {group}")(points, out, n)
    np.testing.assert_array_equal(out[:, 0], points[:, 0])
    p = group.base.modulus
    before, after = (np.array(decode(group.base, v[:, 1]), dtype=object).ravel() for v in (points, out))
    assert [(a + b) % p for a, b in zip(before, after, strict=True)] == [0] * len(before)


@pytest.mark.parametrize("field", FIELDS.values(), ids=repr)
def test_elements_inside_records(field: Field) -> None:
    n, skip, words = 4, 3, field.limbs + 3
    rng = np.random.default_rng(3)
    records = rng.integers(0, 2**32, (n, words), dtype=np.uint32)
    records[:, skip:] = encode(field, list(range(10, 10 + n)))
    out = encode(field, [100] * n)
    getattr(copies(), f"records {field}")(records, words, skip, out, n)
    assert decode(field, out) == [110, 111, 112, 113]


def test_sizes_of_kinds() -> None:
    bn, bls = GROUPS["bn254.g1"], GROUPS["bls12_381.g2"]
    assert byte_size(element_type(bn.base)) == 32
    assert byte_size(affine_type(bn)) == 64
    assert byte_size(xyzz_type(bls)) == 384
    assert byte_size(types.int64) == 8
    assert components(element_type(bn.base)) is None
    assert components(types.int32) is None
    assert components(fp2_type(bls.base)) == [element_type(bls.base)] * 2


# --- the plain Python twin -------------------------------------------------------------------------


@pytest.mark.parametrize("field", FIELDS.values(), ids=repr)
def test_view_of_elements(field: Field) -> None:
    array = encode(field, [1, 2, 3])
    view = VectorView(field, array)
    assert view[1] == Element.of(field, 2)
    view[1] = view[0] + view[2]
    assert decode(field, array) == [1, 4, 3]
    assert advance(view, 2)[0].value == 3
    advance(view, 1)[1] = Element.of(field, 9)
    assert decode(field, array) == [1, 4, 9]


def test_view_of_points_runs_a_job_as_plain_python() -> None:
    """The job's own source, on views: the same limbs as compiled."""
    group = GROUPS["bn254.g1"]
    points = random_elements(group.base, 6, np.random.default_rng(4)).reshape(3, 2, 8)
    compiled, plain = np.empty_like(points), np.empty_like(points)
    getattr(copies(), f"negate {group}")(points, compiled, 3)
    view, out = (VectorView(group.base, a, 2, Affine, tuple) for a in (points, plain))
    negate_points(view, out, 3)
    np.testing.assert_array_equal(plain, compiled)


def test_view_reinterprets_nowhere() -> None:
    with pytest.raises(TypeError, match="compiled code"):
        reinterpret(None, None)
