"""snarkjs's JSON: every abuse is one CuzkError that names the file and the key path."""

from __future__ import annotations

import copy
import json
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuzk.errors import CuzkError
from cuzk.field.host import decode
from cuzk.field.params import BLS12_381, BN254, GROUPS, Group, fp2_mul
from cuzk.formats import (
    describe,
    identify,
    load_proof,
    load_public,
    load_vkey,
    on_curve,
    proof_to_json,
    vkey_to_json,
    write_proof,
    write_vkey,
)
from cuzk.formats import snarkjs_json as module
from cuzk.formats.snarkjs_json import Json, point_from_json, point_to_json
from cuzk.groth16.key import VerifyingKey
from formats_samples import CURVE_LIST, generator, sample_proof


def sample_vkey(curve) -> VerifyingKey:
    g1, g2 = generator(curve.g1), generator(curve.g2)
    return VerifyingKey(curve, g1, g2, g2, g2, np.stack([g1, np.zeros_like(g1), g1]))


def put(path: Path, value) -> Path:
    path.write_text(value if isinstance(value, str) else json.dumps(value))
    return path


DELETE = object()


def changed(value, keys: tuple, new):
    """A copy with the element at `keys` replaced, or removed."""
    value = copy.deepcopy(value)
    *parents, last = keys
    node = value
    for key in parents:
        node = node[key]
    if new is DELETE:
        del node[last]
    else:
        node[last] = new
    return value


def json_path(keys: tuple) -> str:
    return "$" + "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in keys)


P = BN254.fp.modulus
HEX, PADDED, HUGE = "0x1", "01", "9" * 5000
NOT_NUMBERS = [
    1,
    1.5,
    None,
    True,
    "",
    " 1",
    "1 ",
    "-1",
    "+1",
    "1e3",
    "1.0",
    HEX,
    PADDED,
    "\u0661",
    HUGE,
    [],
    ["1"],
    {},
    "NaN",
]


@pytest.mark.parametrize("bad", NOT_NUMBERS, ids=lambda v: repr(v)[:12])
@pytest.mark.parametrize("keys", [("pi_a", 0), ("pi_b", 1, 1), ("pi_c", 2)], ids=json_path)
def test_what_is_no_decimal_string_is_refused(bad, keys, tmp_path):
    path = put(tmp_path / "proof.json", changed(proof_to_json(sample_proof(BN254)), keys, bad))
    with pytest.raises(CuzkError, match="expected a number as a decimal string") as caught:
        load_proof(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: {json_path(keys)}: found ")
    assert len(message) < len(str(path)) + 200


PROOF_ABUSE = [
    (("pi_a", 0), str(P), "is not below p"),
    (("pi_a", 0), str(P + 1), "is not below p"),  # the generator's 1, not reduced
    (("pi_b", 0, 1), str(2**256), "is not below p"),
    (("pi_a",), ["1", "2"], "has 2 elements, expected a point [x, y, z]"),
    (("pi_a",), ["1", "2", "1", "1"], "has 4 elements, expected a point [x, y, z]"),
    (("pi_a",), "1", 'found "1", expected a point [x, y, z]'),
    (("pi_a",), {"x": "1"}, "found an object of 1, expected a point [x, y, z]"),
    (("pi_b",), ["1", "2", "1"], 'found "1", expected a pair [c0, c1]'),
    (("pi_b", 1), ["1"], "has 1 elements, expected a pair [c0, c1]"),
    (("pi_a", 1), "3", "the point is not on the curve bn254.g1"),
    (("pi_b", 1, 0), "3", "the point is not on the curve bn254.g2"),
    (("pi_c", 2), "2", "the point is not on the curve bn254.g1"),
    (("pi_a",), DELETE, 'the key "pi_a" is missing'),
    (("protocol",), DELETE, 'the key "protocol" is missing'),
    (("curve",), DELETE, 'the key "curve" is missing'),
    (("protocol",), "plonk", 'found "plonk", expected "groth16"'),
    (("protocol",), ["groth16"], "found a list of 1"),
    (("curve",), "secp256k1", 'found "secp256k1", expected "bn128" or "bls12381"'),
    (("curve",), None, "found null"),
    (("curve",), ["bn128"], "found a list of 1"),
    (("curve",), "bls12381", "the point is not on the curve bls12_381.g1"),
]


@pytest.mark.parametrize(("keys", "new", "expected"), PROOF_ABUSE)
def test_bad_proof(keys, new, expected, tmp_path):
    path = put(tmp_path / "proof.json", changed(proof_to_json(sample_proof(BN254)), keys, new))
    with pytest.raises(CuzkError, match=re.escape(expected)) as caught:
        load_proof(path)
    assert str(caught.value).startswith(f"{path}: $")


VKEY_ABUSE = [
    (("nPublic",), 3, "$.IC: has 3 elements, expected 4 points, one more than nPublic says"),
    (("nPublic",), -1, "$.nPublic: found -1, expected a number of public signals"),
    (("nPublic",), True, "$.nPublic: found true"),
    (("nPublic",), "2", '$.nPublic: found "2"'),
    (("nPublic",), 1 << 32, "$.nPublic: found 4294967296, expected a number of public signals"),
    (("IC",), [], "$.IC: has 0 elements"),
    (("IC",), {}, "$.IC: found an object of 0"),
    (("IC", 1, 0), "1", "$.IC[1]: the point is not on the curve"),
    (("vk_gamma_2", 0, 0), str(P), "$.vk_gamma_2[0][0]: "),
    (("vk_delta_2",), DELETE, '$: the key "vk_delta_2" is missing'),
    (("IC",), DELETE, '$: the key "IC" is missing'),
    (("protocol",), "fflonk", '$.protocol: found "fflonk", expected "groth16"'),
]


@pytest.mark.parametrize(("keys", "new", "expected"), VKEY_ABUSE)
def test_bad_vkey(keys, new, expected, tmp_path):
    value = vkey_to_json(sample_vkey(BN254))
    if keys == ("IC", 1, 0):
        value["IC"][1] = ["1", "2", "1"]
        new = "2"
    path = put(tmp_path / "vkey.json", changed(value, keys, new))
    with pytest.raises(CuzkError, match=re.escape(f"{path}: {expected}")):
        load_vkey(path)


@pytest.mark.parametrize("curve", CURVE_LIST, ids=str)
def test_public_signals(curve, tmp_path):
    r, path = curve.fr.modulus, tmp_path / "public.json"
    assert load_public(put(path, ["0", "1", str(r - 1)]), curve) == [0, 1, r - 1]
    assert load_public(put(path, []), curve) == []
    for bad, expected in (
        (["1", str(r)], f"$[1]: {r} is not below r = {r}"),
        (["1", str(r + 1)], "$[1]"),
        (["1", 5], "$[1]: found 5, expected a number as a decimal string"),
        ([["1"]], "$[0]: found a list of 1"),
        ({"0": "1"}, "$: found an object of 1, expected a list of public signals"),
        ("3", "$: found 3"),
    ):
        with pytest.raises(CuzkError, match=re.escape(f"{path}: {expected}")):
            load_public(put(path, bad), curve)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "is empty"),
        ("{", "is not JSON: line 1, column 2"),
        ('{"pi_a": [1,]}', "is not JSON: line 1"),
        ("[1] [2]", "is not JSON: line 1, column 5"),
        ("[" * 200_000, "is not JSON that can be read"),
        ("[" + "9" * 10_000 + "]", "is not JSON that can be read"),
        ("[NaN]", "NaN is no JSON number"),
        ('{"pi_a": 1, "pi_b": 2, "pi_a": 3}', 'the key "pi_a" occurs twice'),
        ("proof", "is not JSON"),
    ],
)
def test_what_is_not_json(text, expected, tmp_path):
    path = put(tmp_path / "file.json", text)
    for load in (load_proof, load_vkey, lambda p: load_public(p, BN254)):
        with pytest.raises(CuzkError, match=re.escape(expected)) as caught:
            load(path)
        assert str(caught.value).startswith(f"{path}: ")


def test_bytes_that_are_no_text(tmp_path):
    (tmp_path / "file.json").write_bytes(b'{"curve": "\xff\xfe"}')
    with pytest.raises(CuzkError, match="is not JSON that can be read"):
        load_proof(tmp_path / "file.json")


def test_huge_file_is_refused_before_it_is_read(tmp_path):
    with open(tmp_path / "huge.json", "wb") as file:
        file.write(b"[")
        file.truncate(1 << 40)  # a hole
    with pytest.raises(CuzkError, match=r"huge.json: has 1099511627776 bytes, expected at most 67108864"):
        load_public(tmp_path / "huge.json", BN254)


@given(
    value=st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda s: (
            st.lists(s)
            | st.dictionaries(
                st.sampled_from(["pi_a", "pi_b", "pi_c", "protocol", "curve", "IC", "nPublic", "vk_alpha_1"]), s
            )
        ),
    )
)
def test_any_json_is_a_cuzk_error(value, tmp_path_factory):
    path = put(tmp_path_factory.getbasetemp() / "any.json", json.dumps(value))
    with pytest.raises(CuzkError):
        load_proof(path)
    with pytest.raises(CuzkError):
        load_vkey(path)


# Points


def fp2_scale(value, factor, p):
    """`value` times `factor`, both of one or two ints."""
    pad = lambda v: (*v, 0)[:2]  # noqa: E731
    return fp2_mul(pad(value), pad(factor), p)[: len(value)]


@pytest.mark.parametrize("group", GROUPS.values(), ids=str)
@given(choice=st.data())
def test_any_jacobian_triple_is_the_affine_point(group: Group, choice):
    p = group.base.modulus
    element = st.tuples(*[st.integers(0, p - 1)] * group.degree).filter(any)
    z = choice.draw(element)
    zz = fp2_scale(z, z, p)
    x, y = (fp2_scale(c, f, p) for c, f in zip(group.generator, (zz, fp2_scale(zz, z, p)), strict=True))
    triple = [[str(c) for c in coordinate] for coordinate in (x, y, z)]
    node = Json(triple if group.degree == 2 else [t[0] for t in triple], "test")
    np.testing.assert_array_equal(point_from_json(node, group), generator(group))


@pytest.mark.parametrize("group", GROUPS.values(), ids=str)
def test_infinity(group):
    zero = np.zeros(group.point_shape, np.uint32)
    written = point_to_json(group, zero)
    assert written == (["0", "1", "0"] if group.degree == 1 else [["0", "0"], ["1", "0"], ["0", "0"]])
    assert not point_from_json(Json(written, "test"), group).any()


@pytest.mark.parametrize("group", GROUPS.values(), ids=str)
def test_on_curve(group):
    x, y = group.generator
    p = group.base.modulus
    assert on_curve(group, x, y)
    assert on_curve(group, x, tuple(-c % p for c in y))
    assert not on_curve(group, x, ((y[0] + 1) % p, *y[1:]))
    assert not on_curve(group, y, x)


@pytest.mark.parametrize("group", GROUPS.values(), ids=str)
def test_point_written_and_read(group):
    point = generator(group)
    written = point_to_json(group, point)
    flat = [c for coordinate in written for c in ([coordinate] if group.degree == 1 else coordinate)]
    expected = [c for coordinate in group.generator for c in coordinate]
    assert [int(c) for c in flat] == expected + [1] + [0] * (group.degree - 1)
    np.testing.assert_array_equal(point_from_json(Json(written, "test"), group), point)
    assert point_from_json(Json(written, "test"), group).shape == group.point_shape


# Whole files


@pytest.mark.parametrize("curve", CURVE_LIST, ids=str)
def test_proof_and_vkey_written_and_read(curve, tmp_path):
    proof, vkey = sample_proof(curve), sample_vkey(curve)
    write_proof(tmp_path / "proof.json", proof)
    write_vkey(tmp_path / "vkey.json", vkey)
    assert identify(tmp_path / "proof.json") == "proof"
    assert identify(tmp_path / "vkey.json") == "vkey"
    read = load_proof(tmp_path / "proof.json")
    for name in "abc":
        np.testing.assert_array_equal(getattr(read, name), getattr(proof, name))
    key = load_vkey(tmp_path / "vkey.json")
    for name in ("alpha1", "beta2", "gamma2", "delta2", "ic"):
        np.testing.assert_array_equal(getattr(key, name), getattr(vkey, name))
    assert not key.ic[1].any()
    assert (
        json.loads((tmp_path / "vkey.json").read_text())["curve"]
        == {"bn254": "bn128", "bls12_381": "bls12381"}[curve.name]
    )
    assert decode(curve.fp, key.alpha1) == [c[0] for c in curve.g1.generator]


@pytest.mark.parametrize(
    ("name", "curve"),
    [("bn128", BN254), ("BN254", BN254), ("alt_bn128", BN254), ("BLS12-381", BLS12_381), ("bls12_381", BLS12_381)],
)
def test_curve_names(name, curve, tmp_path):
    path = put(tmp_path / "proof.json", {**proof_to_json(sample_proof(curve)), "curve": name})
    assert load_proof(path).curve is curve


@pytest.mark.parametrize("curve", CURVE_LIST, ids=str)
def test_proof_without_a_curve_is_read_where_the_curve_is_known(curve, tmp_path):
    value = proof_to_json(sample_proof(curve))
    del value["curve"]
    path = put(tmp_path / "proof.json", value)
    assert load_proof(path, curve).curve is curve
    assert describe(path)["curve"] == curve.name
    with pytest.raises(CuzkError, match='the key "curve" is missing'):
        load_proof(path)
    value["pi_a"][1] = "5"
    with pytest.raises(CuzkError, match="no proof on any known here"):
        describe(put(path, value))


def test_proof_of_another_curve_than_the_expected_one(tmp_path):
    path = put(tmp_path / "proof.json", proof_to_json(sample_proof(BLS12_381)))
    with pytest.raises(CuzkError, match=r"proof.json: \$.curve: is for bls12_381, expected bn254"):
        load_proof(path, BN254)


def test_limits_hold_what_they_say():
    assert max(len(str(c.fp.modulus)) for c in CURVE_LIST) < module.MAX_DIGITS
