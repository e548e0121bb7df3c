"""Powers and inverses, in compiled code and in its twin; the vector jobs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba.core import types

from cuzk.cpu import jit, vectors
from cuzk.errors import CuzkError
from cuzk.field.element import Element, element_type
from cuzk.field.host import decode, ints_to_limbs, limbs_to_ints, random_elements
from cuzk.field.params import BLS12_381, BN254, Field, fp2_pow
from cuzk.field.prime import _fermat, inv, power
from cuzk.field.tower import fp2
from cuzk.field.vector import Vector
from field_samples import ALL_FIELDS, BASE_FIELDS, compile_jobs, edge_values, elements, field_library, fp2_library

every_field = pytest.mark.parametrize("field", ALL_FIELDS, ids=repr)
SCALAR_FIELDS = [BN254.fr, BLS12_381.fr]
every_scalar_field = pytest.mark.parametrize("field", SCALAR_FIELDS, ids=repr)


@every_field
def test_inverse_of_awkward_values(field: Field) -> None:
    x = ints_to_limbs(edge_values(field), field.limbs)
    out = np.empty_like(x)
    field_library(field).inv(x, out, len(x))
    expected = [pow(v, -1, field.modulus) if v else 0 for v in decode(field, x)]
    assert decode(field, out) == expected


@every_field
@given(data=st.data())
def test_inverse(field: Field, data: st.DataObject) -> None:
    value = data.draw(elements(field))
    x = ints_to_limbs([value], field.limbs)
    out = np.empty_like(x)
    field_library(field).inv(x, out, 1)
    assert limbs_to_ints(out) == [inv(Element(field, value)).limbs_value]


@pytest.mark.parametrize("field", BASE_FIELDS, ids=repr)
def test_inverse_of_zero_is_zero(field: Field) -> None:
    assert inv(Element.of(field, 0)) == Element.of(field, 0)
    x = np.zeros((1, 2, field.limbs), np.uint32)
    out = np.ones_like(x)
    fp2_library(field).inv(x, out, 1)
    assert not out.any()


def invert_by_fermat(x: Any, out: Any, n: int) -> int:
    for i in range(n):
        out[i] = _fermat(x[i])
    return 0


@pytest.mark.parametrize("field", [BN254.fr, BLS12_381.fp], ids=repr)
def test_power_that_inverts_on_cuda(field: Field) -> None:
    """Compiled for the CPU, where it runs without a card."""
    v = Vector(element_type(field))
    library = compile_jobs(f"fermat {field}", {"invert": (invert_by_fermat, (v, v, types.int64))})
    x = ints_to_limbs(edge_values(field), field.limbs)
    out = np.empty_like(x)
    library.invert(x, out, len(x))
    assert decode(field, out) == [pow(v, -1, field.modulus) if v else 0 for v in decode(field, x)]


@every_field
@given(data=st.data(), exponent=st.one_of(st.integers(0, 20), st.integers(0, 2**63 - 1)))
def test_power(field: Field, data: st.DataObject, exponent: int) -> None:
    value = data.draw(elements(field))
    x = ints_to_limbs([value], field.limbs)
    out = np.empty_like(x)
    field_library(field).power(x, exponent, out, 1)
    assert decode(field, out[0]) == pow(field.from_montgomery(value), exponent, field.modulus)
    assert power(Element(field, value), exponent).value == decode(field, out[0])
    field_library(field).cube(x, out, 1)
    assert decode(field, out[0]) == pow(field.from_montgomery(value), 3, field.modulus)


@pytest.mark.parametrize("field", BASE_FIELDS, ids=repr)
@given(data=st.data(), exponent=st.integers(0, 2**63 - 1))
def test_power_in_fp2(field: Field, data: st.DataObject, exponent: int) -> None:
    parts = [data.draw(elements(field)) for _ in range(2)]
    x = ints_to_limbs(parts, field.limbs)
    twin = fp2(*(Element(field, part) for part in parts))
    value = (twin.c0.value, twin.c1.value)
    out = np.empty_like(x)
    library = fp2_library(field)
    for e in (exponent, 3):
        if e == exponent:
            library.power(x, e, out, 1)
        else:
            library.cube(x, out, 1)
        raised = twin**e
        assert (raised.c0.value, raised.c1.value) == fp2_pow(value, e, field.modulus)
        assert decode(field, out) == [raised.c0.value, raised.c1.value]


@every_scalar_field
@pytest.mark.parametrize("n", [0, 1, 31, 33, 237])
@pytest.mark.parametrize("zeros", ["none", "some", "all"])
def test_batch_inverse(field: Field, n: int, zeros: str) -> None:
    x = random_elements(field, n, np.random.default_rng(n))
    if zeros == "all":
        x[:] = 0
    elif zeros == "some":
        x[::3] = 0  # the first, and in the middle
        x[-1:] = 0
    out = np.full((n + 1, field.limbs), 0xABCD, np.uint32)
    jit.load("vector", field.name).batch_inverse(x, out, n)
    assert decode(field, out[:n]) == [pow(v, -1, field.modulus) if v else 0 for v in decode(field, x)]
    assert (out[n] == 0xABCD).all()  # nothing past the end


@every_scalar_field
def test_vector_operations_are_what_they_say(field: Field) -> None:
    n, p = 33, field.modulus
    rng = np.random.default_rng(1)
    x, y = (random_elements(field, n, rng) for _ in range(2))
    a, b = (decode(field, v) for v in (x, y))
    assert decode(field, vectors.multiply(field, x, y)) == [i * j % p for i, j in zip(a, b, strict=True)]
    assert limbs_to_ints(vectors.from_montgomery(field, x)) == a
    np.testing.assert_array_equal(vectors.to_montgomery(field, vectors.from_montgomery(field, x)), x)
    np.testing.assert_array_equal(vectors.batch_inverse(field, vectors.batch_inverse(field, x)), x)


@every_scalar_field
def test_vector_operations_refuse_what_is_no_vector(field: Field) -> None:
    x = random_elements(field, 3, np.random.default_rng(2))
    with pytest.raises(CuzkError, match="3 and 2 elements"):
        vectors.multiply(field, x, x[:2])
    for bad in (x.astype(np.int32), x[0], x[:, :4]):
        with pytest.raises(CuzkError, match="expected uint32"):
            vectors.to_montgomery(field, bad)
    x[1] = ints_to_limbs([field.modulus], field.limbs)[0]
    with pytest.raises(CuzkError, match="element 1 is not below"):
        vectors.batch_inverse(field, x)
