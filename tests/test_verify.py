"""Verification of real proofs, and of each of them altered."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from cuzk.cpu import points
from cuzk.curve import host
from cuzk.errors import CuzkError
from cuzk.field.host import encode_canonical, ints_to_limbs
from cuzk.formats import load_proof, load_public, load_vkey
from cuzk.formats.bellman import proof_from_bytes, proof_to_bytes, verifying_key_from_bytes
from cuzk.groth16.key import Proof, VerifyingKey
from cuzk.groth16.verify import verify
from helpers import CASES, needs_cases, run_python

pytestmark = needs_cases

SHIPPED = ["bn254/semaphore20", "bls12381/chain8", "bls12381/chain12"]
shipped = pytest.mark.parametrize("name", SHIPPED)


def load(name: str) -> tuple[VerifyingKey, list[int], Proof]:
    vkey = load_vkey(CASES / f"{name}.vkey.json")
    public = load_public(CASES / f"{name}.public.json", vkey.curve)
    return vkey, public, load_proof(CASES / f"{name}.proof.json", vkey.curve)


def bellman_cases() -> list[dict[str, Any]]:
    path = CASES / "vectors" / "bellman_bls12381_vectors.json"
    return json.loads(path.read_text()) if path.exists() else []


def load_bellman(case: dict[str, Any]) -> tuple[bytes, bytes, list[int]]:
    """(key, proof, public inputs); the inputs of these vectors are 32 bytes each, big-endian."""
    key, proof, inputs = (base64.b64decode(case[name]) for name in ("vk", "proof", "inputs"))
    return key, proof, [int.from_bytes(inputs[i : i + 32], "big") for i in range(0, len(inputs), 32)]


# --- right answers -----------------------------------------------------------------------------------


@shipped
def test_shipped_proofs_verify(name: str) -> None:
    vkey, public, proof = load(name)
    assert verify(vkey, public, proof) is True
    assert verify(vkey, encode_canonical(vkey.curve.fr, public), proof) is True


@pytest.mark.parametrize("index", range(11))
def test_bellman_vectors(index: int) -> None:
    case = bellman_cases()[index]
    key, proof, public = load_bellman(case)
    assert verify(verifying_key_from_bytes(key), public, proof_from_bytes(proof)) is case["ok"]
    assert proof_to_bytes(proof_from_bytes(proof)) == proof


def test_bellman_vectors_are_all_there() -> None:
    assert sum(case["ok"] for case in bellman_cases()) == 6
    assert len(bellman_cases()) == 11


# --- altered proofs and inputs -----------------------------------------------------------------------


@shipped
def test_an_altered_public_input_fails(name: str) -> None:
    vkey, public, proof = load(name)
    r = vkey.curve.fr.modulus
    for i, x in enumerate(public):
        for other in {(x + 1) % r, (x ^ 1) % r, 0 if x else 1, -x % r}:
            assert not verify(vkey, [*public[:i], other, *public[i + 1 :]], proof)


@shipped
def test_an_altered_point_fails(name: str) -> None:
    vkey, public, proof = load(name)
    for part, group in (("a", vkey.curve.g1), ("b", vkey.curve.g2), ("c", vkey.curve.g1)):
        p = getattr(proof, part)
        altered = {
            "opposite": points.negate(group, p),
            "doubled": points.add(group, p, p),
            "moved": points.add(group, p, host.generator(group)),
            "infinity": np.zeros_like(p),
            "generator": host.generator(group),
        }
        for how, point in altered.items():
            assert verify(vkey, public, replace(proof, **{part: point})) is False, f"{part} {how}"


@shipped
def test_the_points_exchanged_fail(name: str) -> None:
    vkey, public, proof = load(name)
    assert not verify(vkey, public, replace(proof, a=proof.c, c=proof.a))


@shipped
def test_both_signs_changed_is_another_valid_proof(name: str) -> None:
    """Groth16 proofs are malleable: e(-A, -B) = e(A, B)."""
    vkey, public, proof = load(name)
    g1, g2 = vkey.curve.g1, vkey.curve.g2
    assert verify(vkey, public, replace(proof, a=points.negate(g1, proof.a), b=points.negate(g2, proof.b)))


@shipped
def test_an_altered_byte_of_a_point_fails(name: str) -> None:
    vkey, public, proof = load(name)
    for part in ("a", "b", "c"):
        data = getattr(proof, part).tobytes()
        for place in range(0, len(data), 5):
            changed = bytearray(data)
            changed[place] ^= 1 << (place % 8)
            point = np.frombuffer(bytes(changed), np.uint32).reshape(getattr(proof, part).shape)
            assert verify(vkey, public, replace(proof, **{part: point})) is False, f"{part} byte {place}"


@shipped
def test_coordinates_that_are_not_reduced_fail(name: str) -> None:
    """x + p is the same residue, and must not be a second form of the same proof."""
    vkey, public, proof = load(name)
    x = int.from_bytes(proof.a[0].tobytes(), "little") + vkey.curve.fp.modulus
    a = proof.a.copy()
    a[0] = np.frombuffer(x.to_bytes(vkey.curve.fp.bytes, "little"), np.uint32)
    assert verify(vkey, public, replace(proof, a=a)) is False


@shipped
def test_a_point_outside_the_subgroup_fails(name: str) -> None:
    vkey, public, proof = load(name)
    group = vkey.curve.g2
    for i in range(1, 100):
        x = (i, 1)
        y = host.square_root(group, host.curve_equation(group, x))
        if y is not None:
            break
    wrong = host.multiply(group, group.scalar.modulus, (x, y))
    assert wrong is not None
    # the pairing may not see the part of small order; the check must
    b = points.add(group, proof.b, host.to_limbs(group, wrong))
    assert points.first_off_curve(group, b) is None
    assert verify(vkey, public, replace(proof, b=b)) is False


def test_a_proof_for_another_key_fails() -> None:
    (_, public, proof), (vkey, _, _) = load("bls12381/chain8"), load("bls12381/chain12")
    assert not verify(vkey, public, proof)


@pytest.mark.parametrize("index", [0, 4])
def test_an_altered_byte_of_an_encoded_proof_fails(index: int) -> None:
    key, data, public = load_bellman(bellman_cases()[index])
    vkey = verifying_key_from_bytes(key)
    for place in range(0, 192, 3):
        changed = bytearray(data)
        changed[place] ^= 0x80 >> (place % 8)
        try:
            proof = proof_from_bytes(bytes(changed))
        except CuzkError as error:
            assert str(error).startswith("proof, ")  # noqa: PT017 - most alterations are no point at all
        else:
            assert verify(vkey, public, proof) is False, f"byte {place}"


# --- questions that are refused ----------------------------------------------------------------------


@shipped
def test_the_number_of_public_inputs_must_match(name: str) -> None:
    vkey, public, proof = load(name)
    for wrong in ([], public[:-1], [*public, 0]):
        if len(wrong) != len(public):
            with pytest.raises(CuzkError, match=f"{len(wrong)} public inputs: the verifying key takes {len(public)}"):
                verify(vkey, wrong, proof)


@shipped
def test_public_inputs_must_be_below_r(name: str) -> None:
    vkey, public, proof = load(name)
    r = vkey.curve.fr.modulus
    for wrong in (public[0] + r, r, -1, 2**256):
        with pytest.raises(CuzkError, match="public input 0 is"):
            verify(vkey, [wrong, *public[1:]], proof)


def test_a_proof_of_another_curve_is_refused() -> None:
    (vkey, public, _), (_, _, proof) = load("bn254/semaphore20"), load("bls12381/chain8")
    with pytest.raises(CuzkError, match=r"proof is for bls12_381 and the verifying key for bn254"):
        verify(vkey, public, proof)


@shipped
def test_a_key_with_a_bad_point_is_refused(name: str) -> None:
    vkey, public, proof = load(name)
    for part in ("alpha1", "beta2", "gamma2", "delta2"):
        point = getattr(vkey, part).copy()
        point.reshape(-1)[0] ^= 1
        with pytest.raises(CuzkError, match=f"verifying key, {part}: the point is not on the curve"):
            verify(replace(vkey, **{part: point}), public, proof)
    ic = vkey.ic.copy()
    ic[1, 0, 0] ^= 1
    with pytest.raises(CuzkError, match=r"verifying key, ic\[1\]: the point is not on the curve"):
        verify(replace(vkey, ic=ic), public, proof)


def test_malformed_bytes_are_refused() -> None:
    key, proof, _ = load_bellman(bellman_cases()[0])
    for data in (b"", proof[:-1], proof + b"\0"):
        with pytest.raises(CuzkError, match=f"{len(data)} bytes, expected 192"):
            proof_from_bytes(data)
    for data in (b"", key[:-1], key[:336]):
        with pytest.raises(CuzkError, match=rf"{len(data)} bytes, expected 336 \+ 48 k"):
            verifying_key_from_bytes(data)
    infinity = bytes([0xC0]) + bytes(95)
    with pytest.raises(CuzkError, match="proof, B at byte 48: the point is infinity"):
        proof_from_bytes(proof[:48] + infinity + proof[144:])
    with pytest.raises(CuzkError, match=r"verifying key, ic\[0\] at byte 336, x: .* not below the modulus"):
        verifying_key_from_bytes(key[:336] + b"\x9f" + bytes(47))
    bn_proof = load("bn254/semaphore20")[2]
    with pytest.raises(CuzkError, match="expected bls12_381"):
        proof_to_bytes(bn_proof)


# --- start-up ------------------------------------------------------------------------------------------


def test_a_warm_verification_does_not_import_numba() -> None:
    assert verify(*load("bn254/semaphore20"))  # compiled and cached from here on
    code = f"""
import sys
from cuzk.formats import load_proof, load_public, load_vkey
from cuzk.groth16.verify import verify
name = {str(CASES / "bn254" / "semaphore20")!r}
vkey = load_vkey(name + ".vkey.json")
assert verify(vkey, load_public(name + ".public.json", vkey.curve), load_proof(name + ".proof.json"))
assert "numba" not in sys.modules
"""
    done = run_python("-c", code)
    assert done.returncode == 0, done.stderr


@needs_cases
def test_public_inputs_of_another_type_cannot_stand_for_other_numbers() -> None:
    vkey, public, proof = load("bn254/semaphore20")
    limbs = ints_to_limbs(public, vkey.curve.fr.limbs)
    assert verify(vkey, limbs, proof)
    assert verify(vkey, np.array(public, dtype=object).tolist(), proof)
    wrong: list[Any] = [limbs.astype(np.uint64) + 2**32, limbs.astype(np.int64) - 2**32, limbs.astype(float) + 0.25]
    wrong += [limbs[None], np.pad(limbs, ((0, 0), (0, 3))), limbs.reshape(-1), [str(x) for x in public], None]
    for value in wrong:
        with pytest.raises(CuzkError, match="public inputs"):
            verify(vkey, value, proof)


@needs_cases
@pytest.mark.parametrize("name", ["alpha1", "beta2", "gamma2", "delta2"])
def test_a_key_with_a_point_at_infinity_is_refused(name: str) -> None:
    vkey, public, proof = load("bn254/semaphore20")
    with pytest.raises(CuzkError, match=f"{name}: the point is infinity"):
        verify(replace(vkey, **{name: np.zeros_like(getattr(vkey, name))}), public, proof)
