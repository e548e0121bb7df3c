"""Small well-formed files made in memory, so that the format tests run without the folder of real ones."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np

from cuzk.field.host import Limbs, encode, encode_canonical, random_elements
from cuzk.field.params import CURVES, Curve, Group
from cuzk.formats import write_r1cs, write_wtns, write_zkey
from cuzk.groth16.key import Proof, ProvingKey, coefficient_dtype
from cuzk.groth16.r1cs import R1cs

CURVE_LIST = list(CURVES.values())
N_VARS, N_PUBLIC, DOMAIN = 6, 2, 8


def generator(group: Group) -> Limbs:
    return encode(group.base, group.generator).reshape(group.point_shape)


def points(group: Group, n: int, rng: np.random.Generator) -> Limbs:
    """Coordinates of the right form that lie on no curve: a loader does not look at them."""
    return random_elements(group.base, n * 2 * group.degree, rng).reshape(n, *group.point_shape)


def sample_key(curve: Curve, seed: int = 1) -> ProvingKey:
    rng = np.random.default_rng(seed)
    coefficients = np.zeros(12, dtype=coefficient_dtype(curve))
    coefficients["matrix"] = rng.integers(0, 2, 12)
    coefficients["row"] = rng.integers(0, DOMAIN, 12)
    coefficients["column"] = rng.integers(0, N_VARS, 12)
    coefficients["value"] = random_elements(curve.fr, 12, rng)
    single = {name: points(curve.g1, 1, rng)[0] for name in ("alpha1", "beta1", "delta1")}
    single |= {name: points(curve.g2, 1, rng)[0] for name in ("beta2", "gamma2", "delta2")}
    return ProvingKey(
        curve=curve,
        n_vars=N_VARS,
        n_public=N_PUBLIC,
        domain_size=DOMAIN,
        convention="snarkjs",
        **single,
        ic=points(curve.g1, N_PUBLIC + 1, rng),
        a=points(curve.g1, N_VARS, rng),
        b1=points(curve.g1, N_VARS, rng),
        b2=points(curve.g2, N_VARS, rng),
        c=points(curve.g1, N_VARS - N_PUBLIC - 1, rng),
        h=points(curve.g1, DOMAIN, rng),
        coefficients=coefficients,
    )


def sample_r1cs(curve: Curve) -> R1cs:
    """x * x = y and (y + 3) * (x - 1) = out, and a row with an empty combination."""
    r = curve.fr.modulus
    rows = [({2: 1}, {2: 1}, {3: 1}), ({3: 1, 0: 3}, {2: 1, 0: r - 1}, {1: 1}), ({}, {0: 5}, {})]
    return R1cs.from_constraints(curve, 4, rows, n_public_outputs=1, n_public_inputs=1)


def sample_values(curve: Curve) -> Limbs:
    return encode_canonical(curve.fr, [1, *range(7, 7 + N_VARS - 1)])


def sample_proof(curve: Curve) -> Proof:
    return Proof(curve, generator(curve.g1), generator(curve.g2), generator(curve.g1))


def write_sample(kind: str, path: Path, curve: Curve) -> bytes:
    """Write a sample of that kind ("zkey", "wtns", "r1cs"); its bytes."""
    if kind == "zkey":
        write_zkey(path, sample_key(curve))
    elif kind == "wtns":
        write_wtns(path, curve, sample_values(curve))
    else:
        write_r1cs(path, sample_r1cs(curve))
    return path.read_bytes()


def sections_of(data: bytes) -> dict[int, tuple[int, int]]:
    """kind -> (offset, length) of each section's content, read independently of cuzk.formats."""
    (count,) = struct.unpack_from("<I", data, 8)
    result, offset = {}, 12
    for _ in range(count):
        kind, length = struct.unpack_from("<IQ", data, offset)
        result[kind] = (offset + 12, length)
        offset += 12 + length
    return result


def patched(data: bytes, offset: int, new: bytes) -> bytes:
    return data[:offset] + new + data[offset + len(new) :]


def container(magic: bytes, version: int, sections: list[tuple[int, bytes]]) -> bytes:
    """A file put together by hand."""
    body = b"".join(struct.pack("<IQ", kind, len(content)) + content for kind, content in sections)
    return struct.pack("<4sII", magic, version, len(sections)) + body


def contents(data: bytes) -> list[tuple[int, bytes]]:
    """The sections of a file, to be changed and put together again by `container`."""
    return [(kind, data[offset : offset + length]) for kind, (offset, length) in sections_of(data).items()]
