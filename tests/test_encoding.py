"""Point encodings: known bytes, an independent implementation, every malformed form, real proofs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cuzk.cpu import points
from cuzk.curve import host
from cuzk.curve.encoding import decode_point, encode_point, encoded_size, points_from_snarkjs, points_to_snarkjs
from cuzk.errors import CuzkError
from cuzk.field.params import BLS12_381, BN254, GROUPS, Group
from helpers import CASES, needs_cases

G1, G2 = BLS12_381.g1, BLS12_381.g2
bls_groups = pytest.mark.parametrize("group", [G1, G2], ids=str)
groups = pytest.mark.parametrize("group", GROUPS.values(), ids=str)
scalars = st.integers(0, BLS12_381.fr.modulus - 1)

# "BLS12-381: New zk-SNARK Elliptic Curve Construction" and the pairing crate's README
G1_GENERATOR = "97f1d3a73197d7942695638c4fa9ac0fc3688c4f9774b905a14e3a3f171bac586c55e83ff97a1aeffb3af00adb22c6bb"
G2_GENERATOR = (
    "93e02b6052719f607dacd3a088274f65596bd0d09920b61ab5da61bbdc7f5049334cf11213945d57e5ac7d055d042b7e"
    "024aa2b2f08f0a91260805272dc51051c6e47ad4fa403b02b4510b647ae3d1770bac0326a805bbefd48056c8c121bdb8"
)


def point(group: Group, k: int) -> np.ndarray:
    scalar = np.array([[(k >> 32 * i) & 0xFFFFFFFF for i in range(8)]], np.uint32)
    return points.linear_combination(group, host.generator(group), scalar)


def test_generators() -> None:
    for group, expected in ((G1, G1_GENERATOR), (G2, G2_GENERATOR)):
        assert encode_point(group, host.generator(group)).hex() == expected
        assert np.array_equal(decode_point(group, bytes.fromhex(expected)), host.generator(group))


@bls_groups
@settings(max_examples=15)
@given(k=scalars)
def test_round_trip(group: Group, k: int) -> None:
    for p in (point(group, k), points.negate(group, point(group, k))):
        for compressed in (True, False):
            data = encode_point(group, p, compressed)
            assert len(data) == encoded_size(group, compressed=compressed)
            assert np.array_equal(decode_point(group, data), p)


@bls_groups
@settings(max_examples=15)
@given(k=st.one_of(st.integers(0, 2), scalars))
def test_bytes_are_those_of_arkworks(group: Group, k: int) -> None:
    arkworks = pytest.importorskip("py_arkworks_bls12381")
    kind = arkworks.G1Point if group.degree == 1 else arkworks.G2Point
    theirs = kind() * arkworks.Scalar(k)
    ours = encode_point(group, point(group, k))
    assert bytes(theirs.to_compressed_bytes()) == ours
    assert kind.from_compressed_bytes(ours) == theirs


@bls_groups
def test_infinity(group: Group) -> None:
    for compressed, first in ((True, 0xC0), (False, 0x40)):
        data = bytes([first]) + bytes(encoded_size(group, compressed=compressed) - 1)
        assert encode_point(group, np.zeros(group.point_shape, np.uint32), compressed) == data
        assert not decode_point(group, data).any()


def malformed(group: Group) -> Iterator[tuple[str, bytes]]:
    """(what the message says, data) of every way to be malformed."""
    short, long = (bytearray(encode_point(group, point(group, 5), compressed)) for compressed in (True, False))
    size = len(short)

    def flip(data: bytearray, bits: int) -> bytes:
        return bytes([data[0] ^ bits]) + bytes(data[1:])

    for data in (b"", bytes(short[:-1]), bytes(short) + b"\0", bytes(long[:-1]), bytes(long) + b"\0"):
        yield f"{len(data)} bytes, expected {size} or {2 * size}", data
    yield "compression flag is not set", flip(short, 0x80)
    yield "compression flag is set", flip(long, 0x80)
    yield "infinity with other bits set", flip(short, 0x40)
    yield "infinity with other bits set", flip(long, 0x40)
    yield "sign flag is set in an uncompressed point", flip(long, 0x20)
    for flags, length in ((0xC0, size), (0x40, 2 * size)):
        yield "infinity with other bits set", bytes([flags | 0x20]) + bytes(length - 1)
        yield "infinity with other bits set", bytes([flags | 0x01]) + bytes(length - 1)
        for place in (1, length // 2, length - 1):
            yield "infinity with other bits set", bytes([flags]) + bytes(place - 1) + b"\1" + bytes(length - 1 - place)
    p = group.base.modulus.to_bytes(48, "big")
    for part in range(group.degree):  # p in place of each coefficient
        large = bytearray(short)
        large[48 * part : 48 * part + 48] = p
        large[0] |= 0x80
        yield "not below the modulus", bytes(large)
    for part in range(2 * group.degree):
        large = bytearray(long)
        large[48 * part : 48 * part + 48] = p
        yield "not below the modulus", bytes(large)
    yield "not below the modulus", b"\x9f" + b"\xff" * (size - 1)
    wrong = bytearray(long)
    wrong[-1] ^= 1
    yield "not on the curve", bytes(wrong)


@bls_groups
def test_malformed_encodings_are_refused(group: Group) -> None:
    for message, data in malformed(group):
        with pytest.raises(CuzkError, match=f"^proof, B.*{message}"):
            decode_point(group, data, what="proof, B")


@bls_groups
def test_every_x_without_a_point_is_refused(group: Group) -> None:
    refused = 0
    for i in range(20):
        x = (i,) if group.degree == 1 else (i, 1)
        data = bytearray(b"".join(c.to_bytes(48, "big") for c in reversed(x)))
        data[0] |= 0x80
        if host.square_root(group, host.curve_equation(group, x)) is None:
            refused += 1
            with pytest.raises(CuzkError, match=r"no point of .* has this x"):
                decode_point(group, bytes(data), subgroup_check=False)
        else:
            decoded = host.from_limbs(group, decode_point(group, bytes(data), subgroup_check=False))
            assert decoded is not None
            assert decoded[0] == x
            assert host.on_curve(group, decoded)
    assert 0 < refused < 20


@bls_groups
def test_points_outside_the_subgroup_are_refused_unless_asked(group: Group) -> None:
    for i in range(100):
        x = (i,) if group.degree == 1 else (i, 1)
        y = host.square_root(group, host.curve_equation(group, x))
        if y is not None and not host.in_subgroup(group, (x, y)):
            break
    limbs = host.to_limbs(group, (x, y))
    for compressed in (True, False):
        data = encode_point(group, limbs, compressed)
        with pytest.raises(CuzkError, match="not in the subgroup of order r"):
            decode_point(group, data)
        assert np.array_equal(decode_point(group, data, subgroup_check=False), limbs)


@groups
@given(data=st.data())
def test_square_root(group: Group, data: Any) -> None:
    coefficient = st.one_of(st.integers(-2, 2), st.integers(0, group.base.modulus - 1))
    a = tuple(data.draw(coefficient) % group.base.modulus for _ in range(group.degree))
    square = host.multiply_coordinates(group, a, a)
    root = host.square_root(group, square)
    assert root is not None
    assert host.multiply_coordinates(group, root, root) == square
    root = host.square_root(group, a)
    # a^((q - 1)/2) = 1 for squares; the norm to Fp decides it in Fp2
    norm = a[0] if group.degree == 1 else (a[0] ** 2 + a[1] ** 2) % group.base.modulus
    assert (root is not None) == group.base.is_square(norm)
    assert root is None or host.multiply_coordinates(group, root, root) == a


@pytest.mark.parametrize("group", [BN254.g1, BN254.g2], ids=str)
def test_curves_without_room_for_flags_are_refused(group: Group) -> None:
    for call in (lambda: decode_point(group, bytes(32)), lambda: encode_point(group, host.generator(group))):
        with pytest.raises(CuzkError, match="no room"):
            call()


@groups
def test_snarkjs_layout(group: Group) -> None:
    data = b"".join(
        (c * group.base.r % group.base.modulus).to_bytes(group.base.bytes, "little")
        for coordinate in group.generator
        for c in coordinate
    )
    view = points_from_snarkjs(group, data * 3)
    assert view.shape == (3, *group.point_shape)
    assert np.array_equal(view[1], host.generator(group))
    assert points_to_snarkjs(view) == data * 3
    assert len(points_from_snarkjs(group, b"")) == 0
    points.check_points(group, view, "view")
    with pytest.raises(ValueError, match="read-only"):
        view[0] = 0
    with pytest.raises(CuzkError, match=f"{len(data) - 1} bytes, expected a multiple of {len(data)}"):
        points_from_snarkjs(group, data[:-1])


# --- real proofs -------------------------------------------------------------------------------------


def filecoin_proofs() -> list[bytes]:
    """Single proofs of 192 bytes; records of other lengths are aggregates in another format."""
    proofs = []
    with (CASES / "vectors" / "seal_regression_records-v18.json").open() as file:
        for line in file:
            proof = bytes(json.loads(line)["proof"])
            if len(proof) % 192 == 0:
                proofs += [proof[i : i + 192] for i in range(0, len(proof), 192)]
    return proofs


def check_decoding(proofs: list[bytes]) -> None:
    parts = ((G1, slice(0, 48)), (G2, slice(48, 144)), (G1, slice(144, 192)))
    for group, place in parts:
        decoded = [decode_point(group, proof[place], subgroup_check=False) for proof in proofs]
        points.check_points(group, np.stack(decoded), f"{place}")
        for proof, p in zip(proofs, decoded, strict=True):
            assert encode_point(group, p) == proof[place]
            assert np.array_equal(decode_point(group, encode_point(group, p, False), subgroup_check=False), p)


@needs_cases
def test_filecoin_proofs_decode_and_encode_to_the_same_bytes() -> None:
    proofs = filecoin_proofs()
    assert len(proofs) == 98
    parts = ((G1, slice(0, 48)), (G2, slice(48, 144)), (G1, slice(144, 192)))
    for group, place in parts:
        decoded = [decode_point(group, proof[place], subgroup_check=False) for proof in proofs]
        points.check_points(group, np.stack(decoded), f"bytes {place}")
        for proof, p in zip(proofs, decoded, strict=True):
            assert encode_point(group, p) == proof[place]
            assert np.array_equal(decode_point(group, encode_point(group, p, False), subgroup_check=False), p)
