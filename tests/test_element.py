"""One meaning for every target: compiled for the CPU, interpreted carry chains and Python ints give the same limbs."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuzk.field.element import (
    Element,
    device_function,
    double,
    from_montgomery,
    is_zero,
    one_like,
    sqr,
    to_montgomery,
    zero_like,
)
from cuzk.field.host import Limbs, ints_to_limbs, limbs_to_ints, random_elements
from cuzk.field.params import BLS12_381, BN254, Field
from cuzk.field.prime import inv
from cuzk.field.tower import Fp2Element, fp2
from field_samples import ALL_FIELDS, BASE_FIELDS, edge_values, elements, field_library, fp2_library

every_field = pytest.mark.parametrize("field", ALL_FIELDS, ids=repr)
every_base = pytest.mark.parametrize("field", BASE_FIELDS, ids=repr)
TWINS: dict[str, Any] = {
    "mul": lambda a, b: a * b,
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "sqr": sqr,
    "neg": lambda a: -a,
    "double": double,
}


@pytest.fixture(params=[False, True], ids=["ints", "interpreted"])
def interpreted(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    monkeypatch.setattr(Element, "interpreted", request.param)
    return bool(request.param)


def apply(library: Any, operation: str, *operands: Limbs) -> Limbs:
    out = np.empty_like(operands[0])
    getattr(library, operation)(*operands, out, len(out))
    return out


def pairs(field: Field, extra: int = 300) -> tuple[list[int], list[int]]:
    rng = np.random.default_rng(extra)
    grid = list(product(edge_values(field), repeat=2))
    random = limbs_to_ints(random_elements(field, 2 * extra, rng))
    return [a for a, _ in grid] + random[:extra], [b for _, b in grid] + random[extra:]


# --- prime fields ----------------------------------------------------------------------------------


@every_field
@pytest.mark.parametrize("operation", TWINS)
def test_cpu_equals_ints(field: Field, operation: str) -> None:
    a, b = pairs(field)
    arity = 2 if operation in ("mul", "add", "sub") else 1
    limbs = [ints_to_limbs(x, field.limbs) for x in (a, b)[:arity]]
    twins = zip(*[[Element(field, v) for v in x] for x in (a, b)[:arity]], strict=True)
    expected = [TWINS[operation](*args).limbs_value for args in twins]
    assert limbs_to_ints(apply(field_library(field), operation, *limbs)) == expected


@every_field
@given(data=st.data())
def test_cpu_equals_interpreted_programs(field: Field, data: st.DataObject) -> None:
    a, b = data.draw(elements(field)), data.draw(elements(field))
    library = field_library(field)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Element, "interpreted", True)
        for operation, twin in TWINS.items():
            arguments = (a, b)[: 2 if operation in ("mul", "add", "sub") else 1]
            expected = twin(*(Element(field, x) for x in arguments)).limbs_value
            got = apply(library, operation, *(ints_to_limbs([x], field.limbs) for x in arguments))
            assert limbs_to_ints(got) == [expected], operation


@every_field
@given(data=st.data())
def test_ring_laws(field: Field, data: st.DataObject) -> None:
    operands = [ints_to_limbs([data.draw(elements(field))], field.limbs) for _ in range(3)]
    assert field_library(field).ring_laws(*operands) == 0


@every_field
def test_constants_and_comparisons(field: Field) -> None:
    library, limbs = field_library(field), field.limbs
    out = np.empty((2, limbs), np.uint32)
    library.constants(out, out)
    assert limbs_to_ints(out) == [0, field.r]
    values = [ints_to_limbs([v], limbs) for v in (0, 1, field.modulus - 1, 1 << 32 * (limbs - 1))]
    for (i, x), (j, y) in product(enumerate(values), repeat=2):
        assert library.compare(x, y) == (1 if i == j else 2) + (4 if i == 0 else 0)


@every_field
@given(data=st.data())
def test_montgomery_form_there_and_back(field: Field, data: st.DataObject) -> None:
    library = field_library(field)
    x = data.draw(elements(field))
    plain = ints_to_limbs([x], field.limbs)
    inside = apply(library, "to_montgomery", plain)
    assert limbs_to_ints(inside) == [field.to_montgomery(x)]
    np.testing.assert_array_equal(apply(library, "from_montgomery", inside), plain)


# --- the plain Python twin -------------------------------------------------------------------------


@every_field
@given(data=st.data())
def test_twin_is_arithmetic_modulo_p(field: Field, data: st.DataObject) -> None:
    p = field.modulus
    a, b = data.draw(elements(field)), data.draw(elements(field))
    x, y = Element.of(field, a), Element.of(field, b)
    assert ((x + y).value, (x - y).value, (x * y).value) == ((a + b) % p, (a - b) % p, a * b % p)
    assert ((-x).value, sqr(x).value, double(x).value) == (-a % p, a * a % p, 2 * a % p)
    assert (x**5).value == pow(a, 5, p)
    assert (x == y) == (a == b)
    assert to_montgomery(from_montgomery(x)) == x
    assert (zero_like(x).value, one_like(x).value, is_zero(x)) == (0, 1, a == 0)


@every_field
def test_formulas_run_as_plain_python(field: Field, interpreted: bool) -> None:
    @device_function
    def line(x: Any, y: Any) -> Any:
        return sqr(x) * y - x + double(-y)

    a, b = field.modulus - 3, 12345
    assert line(Element.of(field, a), Element.of(field, b)).value == (a * a * b - a - 2 * b) % field.modulus


def test_twins_of_different_fields_do_not_mix() -> None:
    with pytest.raises(TypeError, match="elements of"):
        Element.of(BN254.fp, 1) + Element.of(BN254.fr, 1)


def test_twin_shows_its_value() -> None:
    assert repr(Element.of(BLS12_381.fr, 7)) == "Fr[bls12_381](7)"


# --- Fp2 -------------------------------------------------------------------------------------------


def fp2_limbs(field: Field, value: Fp2Element) -> Limbs:
    return ints_to_limbs([value.c0.limbs_value, value.c1.limbs_value], field.limbs).reshape(1, -1)


def fp2_elements(field: Field) -> st.SearchStrategy[Fp2Element]:
    part = elements(field).map(lambda v: Element(field, v))
    return st.builds(fp2, part, part)


@every_base
@given(data=st.data())
def test_fp2_cpu_equals_twin(field: Field, data: st.DataObject) -> None:
    a, b = data.draw(fp2_elements(field)), data.draw(fp2_elements(field))
    library = fp2_library(field)
    for operation, twin in {**TWINS, "inv": inv}.items():
        arguments = (a, b)[: 2 if operation in ("mul", "add", "sub") else 1]
        got = apply(library, operation, *(fp2_limbs(field, x) for x in arguments))
        np.testing.assert_array_equal(got, fp2_limbs(field, twin(*arguments)), err_msg=operation)


@every_base
def test_fp2_on_awkward_coordinates(field: Field) -> None:
    """Where the product that saves reductions (llvm._fp2_mul) is nearest to its bounds."""
    values = [Element(field, v) for v in (0, 1, field.modulus - 1, (field.modulus + 1) // 2)]
    pairs = [fp2(x, y) for x, y in product(values, repeat=2)]
    library = fp2_library(field)
    for a, b in product(pairs, repeat=2):
        got = apply(library, "mul", fp2_limbs(field, a), fp2_limbs(field, b))
        np.testing.assert_array_equal(got, fp2_limbs(field, a * b))
        got = apply(library, "sqr", fp2_limbs(field, a))
        np.testing.assert_array_equal(got, fp2_limbs(field, a * a))


@every_base
@given(data=st.data())
def test_fp2_ring_laws(field: Field, data: st.DataObject) -> None:
    operands = [fp2_limbs(field, data.draw(fp2_elements(field))) for _ in range(3)]
    assert fp2_library(field).ring_laws(*operands) == 0


@every_base
def test_fp2_twin_interpreted_is_the_definition(field: Field, interpreted: bool) -> None:
    """(a + bu)(c + du) = (ac - bd) + (ad + bc)u."""
    p = field.modulus
    a, b, c, d = p - 1, 5, (p - 1) // 2, 3**100 % p
    x, y = (fp2(Element.of(field, i), Element.of(field, j)) for i, j in ((a, b), (c, d)))
    assert ((x * y).c0.value, (x * y).c1.value) == ((a * c - b * d) % p, (a * d + b * c) % p)
    assert (sqr(x).c0.value, sqr(x).c1.value) == ((a * a - b * b) % p, 2 * a * b % p)
    assert x * inv(x) == one_like(x)
    assert is_zero(x - x)
    assert not is_zero(x)
    assert double(x) == x + x
