"""Limb arrays and Python ints, there and back."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuzk.errors import CuzkError
from cuzk.field.host import (
    decode,
    decode_canonical,
    encode,
    encode_canonical,
    ints_to_limbs,
    limbs_to_ints,
    random_elements,
)
from cuzk.field.params import BLS12_381, BN254, Field
from field_samples import ALL_FIELDS, TINY, elements

every_field = pytest.mark.parametrize("field", [*ALL_FIELDS, TINY], ids=repr)


@given(st.lists(st.integers(0, 2**256 - 1)))
def test_ints_there_and_back(values: list[int]) -> None:
    limbs = ints_to_limbs(values, 8)
    assert limbs.shape == (len(values), 8)
    assert limbs.dtype == np.uint32
    assert limbs_to_ints(limbs) == values


def test_limbs_are_little_endian_and_writable() -> None:
    limbs = ints_to_limbs([0x0000000300000002_00000001FFFFFFFF], 4)
    assert limbs.tolist() == [[0xFFFFFFFF, 1, 2, 3]]
    limbs[0, 0] = 5
    assert limbs.tobytes() == b"\x05\0\0\0\x01\0\0\0\x02\0\0\0\x03\0\0\0"


@pytest.mark.parametrize("value", [-1, 1 << 256])
def test_what_does_not_fit_is_refused(value: int) -> None:
    with pytest.raises(CuzkError, match="8 limbs"):
        ints_to_limbs([1, value], 8)


def test_leading_axes_are_flattened_and_any_layout_is_read() -> None:
    array = np.arange(48, dtype=np.uint32).reshape(2, 3, 8)
    assert limbs_to_ints(array) == limbs_to_ints(array.reshape(6, 8))
    assert limbs_to_ints(array[:, ::2]) == limbs_to_ints(array[:, ::2].copy())


@every_field
@given(data=st.data())
def test_montgomery_there_and_back(field: Field, data: st.DataObject) -> None:
    values = data.draw(st.lists(elements(field), max_size=5))
    encoded = encode(field, values)
    assert encoded.shape == (len(values), field.limbs)
    assert limbs_to_ints(encoded) == [field.to_montgomery(v) for v in values]
    assert decode(field, encoded) == values
    assert decode_canonical(encode_canonical(field, values)) == values


@every_field
def test_encoding_reduces(field: Field) -> None:
    p = field.modulus
    assert decode(field, encode(field, [p, p + 5, -1])) == [0, 5, p - 1]
    assert limbs_to_ints(encode_canonical(field, [p, p + 5, -1])) == [0, 5, p - 1]


def test_nested_values_keep_their_shape() -> None:
    fp = BLS12_381.fp
    points = [[[1, 2], [3, 4]], [[5, 6], [7, 8]]]
    encoded = encode(fp, points)
    assert encoded.shape == (2, 2, 2, 12)
    assert decode(fp, encoded) == points
    one = encode(fp, 9)
    assert one.shape == (12,)
    assert decode(fp, one) == 9


@every_field
def test_random_elements_are_below_the_modulus_and_repeatable(field: Field) -> None:
    first = random_elements(field, 200, np.random.default_rng(1))
    assert first.shape == (200, field.limbs)
    np.testing.assert_array_equal(first, random_elements(field, 200, np.random.default_rng(1)))
    values = limbs_to_ints(first)
    assert max(values) < field.modulus
    assert len(set(values)) == 200
    # 200 uniform values: all in one half of the range has probability 2^-199
    assert min(values) < field.modulus // 2 < max(values)
    assert not np.array_equal(random_elements(BN254.fr, 4), random_elements(BN254.fr, 4))
    assert random_elements(field, 0).shape == (0, field.limbs)
