"""The checks of content: coefficients and witness values in range, key and witness of one circuit."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuzk.errors import CuzkError
from cuzk.field import host as host_module
from cuzk.field.host import first_not_below, ints_to_limbs
from cuzk.field.params import BLS12_381, BN254
from cuzk.formats import check_coefficients, check_pair, check_witness, load_wtns, load_zkey, write_wtns, write_zkey
from cuzk.groth16.key import Witness
from formats_samples import CURVE_LIST, DOMAIN, N_VARS, sample_key, sample_values, sections_of, write_sample

# Coefficients


@pytest.mark.parametrize("curve", CURVE_LIST, ids=str)
@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [("matrix", 2, "0 (A) or 1 (B)"), ("row", DOMAIN, "the domain size 8"), ("column", N_VARS, "n_vars 6")],
)
def test_coefficient_out_of_range_is_named_by_index_and_offset(name, value, expected, curve, tmp_path):
    key = sample_key(curve)
    key.coefficients[name][7] = value
    write_zkey(tmp_path / "range", key)
    loaded = load_zkey(tmp_path / "range")  # structure alone is fine
    begin = sections_of((tmp_path / "range").read_bytes())[4][0]
    with pytest.raises(CuzkError) as caught:
        check_coefficients(loaded)
    assert f"range: section 4 (coefficients): entry 7 of 12 at offset {begin + 4 + 7 * 44}:" in str(caught.value)
    assert f"its {name} is {value}, expected" in str(caught.value)
    assert expected in str(caught.value)
    with pytest.raises(CuzkError, match="the key: section 4"):
        check_coefficients(key)  # from memory: no file to name


@pytest.mark.parametrize("curve", CURVE_LIST, ids=str)
def test_coefficient_not_below_r(curve):
    key = sample_key(curve)
    check_coefficients(key)
    key.coefficients["value"][3] = ints_to_limbs([curve.fr.modulus], curve.fr.limbs)[0]
    with pytest.raises(CuzkError, match=f"entry 3 of 12: its value is {curve.fr.modulus}, expected less than r"):
        check_coefficients(key)


# Witnesses


@pytest.mark.parametrize("curve", CURVE_LIST, ids=str)
@pytest.mark.parametrize("excess", [0, 1, 5 << 128])
@pytest.mark.parametrize("index", [0, 1, N_VARS - 1])
def test_witness_value_not_below_r_is_named(curve, excess, index, tmp_path):
    values = sample_values(curve)
    values[index] = ints_to_limbs([curve.fr.modulus + excess], curve.fr.limbs)[0]
    write_wtns(tmp_path / "large", curve, values)
    witness = load_wtns(tmp_path / "large")
    begin = sections_of((tmp_path / "large").read_bytes())[2][0]
    with pytest.raises(CuzkError) as caught:
        check_witness(witness)
    assert f"large: value {index} (section 2 at offset {begin + 32 * index}) is {curve.fr.modulus + excess}" in str(
        caught.value
    )


@pytest.mark.parametrize("curve", CURVE_LIST, ids=str)
def test_witness_values_just_below_r_pass(curve):
    values = sample_values(curve)
    values[1:] = ints_to_limbs([curve.fr.modulus - 1], curve.fr.limbs)
    check_witness(Witness(curve, values))


@pytest.mark.parametrize("first", [0, 2, 1 << 32, BN254.fr.modulus - 1])
def test_witness_that_does_not_begin_with_one(first):
    values = sample_values(BN254)
    values[0] = ints_to_limbs([first], 8)[0]
    with pytest.raises(CuzkError, match=f"value 0 is {first}, expected 1"):
        check_witness(Witness(BN254, values))


@given(choice=st.data())
def test_first_not_below_agrees_with_ints(choice):
    """Small limbs and pieces of three, so that equal top limbs and piece borders occur."""
    modulus = choice.draw(st.integers(1, 2**96 - 1))
    near = st.integers(-3, 3).map(lambda d: min(max(modulus + d, 0), 2**96 - 1))
    mixed = st.integers(0, 2**64 - 1).map(lambda v: (modulus >> 64 << 64) | v)
    values = choice.draw(st.lists(st.one_of(near, mixed, st.integers(0, 2**96 - 1)), max_size=8))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(host_module, "CHUNK", 3)
        found = first_not_below(ints_to_limbs(values, 3), modulus)
    assert found == next((i for i, v in enumerate(values) if v >= modulus), None)


# Pairs


def test_witness_of_another_curve_or_circuit_is_named(tmp_path):
    paths = {}
    for curve in CURVE_LIST:
        for kind in ("zkey", "wtns"):
            paths[kind, curve] = tmp_path / f"{curve}.{kind}"
            write_sample(kind, paths[kind, curve], curve)
    key, witness = load_zkey(paths["zkey", BN254]), load_wtns(paths["wtns", BN254])
    check_pair(key, witness)
    other = load_wtns(paths["wtns", BLS12_381])
    with pytest.raises(CuzkError) as caught:
        check_pair(key, other)
    assert str(caught.value) == f"{key.path}: key is for bn254, {other.path}: witness for bls12_381"
    with pytest.raises(CuzkError) as caught:
        check_pair(key, replace(witness, values=witness.values[:-1]))
    assert f"{key.path}: key wants 6 values, {witness.path}: witness has 5" in str(caught.value)
    # of another curve and another length: the curve is what matters
    with pytest.raises(CuzkError, match="key is for bn254"):
        check_pair(key, replace(other, values=other.values[:-1]))
    with pytest.raises(CuzkError, match="the key: key wants 6 values, the witness: witness has 5"):
        check_pair(replace(key, path=None), Witness(BN254, witness.values[:-1]))
