"""Verifying keys and proofs of the bellman family as bytes: BLS12-381 in compressed ZCash encoding.

Proof: A (G1, 48 bytes) | B (G2, 96) | C (G1, 48).
Verifying key: alpha (48) | beta (96) | gamma (96) | delta (96) | ic (48 each, one more than the public inputs).

Points at infinity are refused, as bellman does. Every point is checked to be on its curve and in the
subgroup of order r.
"""

from __future__ import annotations

import numpy as np

from cuzk.cpu import points
from cuzk.curve.encoding import decode_point, encode_point, encoded_size
from cuzk.errors import CuzkError
from cuzk.field.host import Limbs
from cuzk.field.params import BLS12_381, Group
from cuzk.groth16.key import Proof, VerifyingKey

G1, G2 = BLS12_381.g1, BLS12_381.g2
PROOF_LAYOUT = (("A", G1), ("B", G2), ("C", G1))
KEY_LAYOUT = (("alpha", G1), ("beta", G2), ("gamma", G2), ("delta", G2))
PROOF_SIZE = sum(encoded_size(group) for _, group in PROOF_LAYOUT)
KEY_SIZE = sum(encoded_size(group) for _, group in KEY_LAYOUT)


def proof_from_bytes(data: bytes, what: str = "proof") -> Proof:
    """192 bytes as a proof; CuzkError, naming point and offset, for anything else."""
    if len(data) != PROOF_SIZE:
        raise CuzkError(f"{what}: {len(data)} bytes, expected {PROOF_SIZE}")
    return Proof(BLS12_381, *_read(data, PROOF_LAYOUT, what))


def proof_to_bytes(proof: Proof) -> bytes:
    """The 192 bytes of a BLS12-381 proof."""
    if proof.curve != BLS12_381:
        raise CuzkError(f"a proof over {proof.curve} has no encoding in this format: expected {BLS12_381}")
    return encode_point(G1, proof.a) + encode_point(G2, proof.b) + encode_point(G1, proof.c)


def verifying_key_from_bytes(data: bytes, what: str = "verifying key") -> VerifyingKey:
    """336 + 48 (n + 1) bytes as the key for n public inputs; CuzkError, naming point and offset, for anything else."""
    size = encoded_size(G1)
    count, rest = divmod(len(data) - KEY_SIZE, size)
    if count < 1 or rest:
        raise CuzkError(f"{what}: {len(data)} bytes, expected {KEY_SIZE} + {size} k with k >= 1")
    layout = (*KEY_LAYOUT, *((f"ic[{i}]", G1) for i in range(count)))
    alpha, beta, gamma, delta, *ic = _read(data, layout, what)
    return VerifyingKey(BLS12_381, alpha, beta, gamma, delta, np.stack(ic))


def _read(data: bytes, layout: tuple[tuple[str, Group], ...], what: str) -> list[Limbs]:
    result = []
    offset = 0
    for name, group in layout:
        place = f"{what}, {name} at byte {offset}"
        size = encoded_size(group)
        point = decode_point(group, data[offset : offset + size], subgroup_check=False, what=place)
        if not point.any():
            raise CuzkError(f"{place}: the point is infinity")
        points.check_points(group, point, place)
        result.append(point)
        offset += size
    return result
