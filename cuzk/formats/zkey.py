"""Groth16 proving keys as snarkjs writes them (.zkey): mapped, checked, and written.

Section 1  protocol, u32: 1 is groth16.
        2  size and value of q, size and value of r, then u32 n_vars, n_public, domain, then the points
           alpha1, beta1, beta2, gamma2, delta1, delta2.
        3  IC, n_public + 1 points.   4  u32 count, and as many coefficients (see `coefficient_dtype`).
        5  A, 6 B1 (G1) and 7 B2 (G2), n_vars points each.   8  C, n_vars - n_public - 1 points.
        9  H, `domain` points.   10  contributions of the ceremony, of no use to a prover.

Points are affine, Montgomery, little-endian, all zeros for infinity. Source: snarkjs, zkey_utils.js.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from cuzk.errors import CuzkError
from cuzk.field.host import Limbs, ints_to_limbs
from cuzk.field.params import CURVES, Curve, Field
from cuzk.formats.binfile import ZKEY, BinFile, Reader, show_prime, write_binfile
from cuzk.formats.files import PathLike
from cuzk.groth16.key import ProvingKey, coefficient_dtype

GROTH16 = 1
PROTOCOLS = {1: "groth16", 2: "plonk", 10: "fflonk"}

# Section 10 of a key nobody contributed to: 64 bytes of circuit hash, not computed here, and a count of 0
NO_CONTRIBUTIONS = bytes(64) + bytes(4)


def load_zkey(path: PathLike) -> ProvingKey:
    """Map a proving key. Points and coefficients are read-only views of the file: the time does not grow with its size.

    Everything about the file's structure is checked: magic, version, sections, protocol, primes, counts and
    lengths. What takes reading the content is left to its user: `check_coefficients` for the matrices;
    points are not checked at all (a bad one gives a proof that does not verify).

    Raises CuzkError naming file, section, offset, what was found and what was expected.
    """
    return read_zkey(BinFile(path, ZKEY))


def read_zkey(file: BinFile) -> ProvingKey:
    """`load_zkey` for a file that is open already."""
    _check_protocol(file)
    reader = Reader(file, file.section(2))
    curve = _read_curve(reader)
    n_vars, n_public, domain = _read_sizes(reader, curve)
    g1, g2 = curve.g1.point_shape, curve.g2.point_shape
    alpha1 = reader.limbs(g1, "alpha1")
    beta1 = reader.limbs(g1, "beta1")
    beta2 = reader.limbs(g2, "beta2")
    gamma2 = reader.limbs(g2, "gamma2")
    delta1 = reader.limbs(g1, "delta1")
    delta2 = reader.limbs(g2, "delta2")
    reader.finish()

    variables = f"n_vars is {n_vars}"
    return ProvingKey(
        curve=curve,
        n_vars=n_vars,
        n_public=n_public,
        domain_size=domain,
        convention="snarkjs",
        alpha1=alpha1,
        beta1=beta1,
        delta1=delta1,
        beta2=beta2,
        gamma2=gamma2,
        delta2=delta2,
        ic=file.points(3, n_public + 1, g1, f"n_public is {n_public}, and one more"),
        a=file.points(5, n_vars, g1, variables),
        b1=file.points(6, n_vars, g1, variables),
        b2=file.points(7, n_vars, g2, variables),
        c=file.points(8, n_vars - n_public - 1, g1, f"n_vars {n_vars} - n_public {n_public} - 1"),
        h=file.points(9, domain, g1, f"the domain is {domain}"),
        coefficients=_read_coefficients(file, curve),
        path=file.path,
    )


def _check_protocol(file: BinFile) -> None:
    section = file.section(1, 4)
    protocol = Reader(file, section).uint(4, "the protocol")
    if protocol != GROTH16:
        name = PROTOCOLS.get(protocol, "unknown")
        raise file.error(section, f"protocol is {protocol} ({name}), expected {GROTH16} (groth16)")


def _read_curve(reader: Reader) -> Curve:
    q = reader.prime("the prime q")
    q_size = reader.position - 4
    curve = next((c for c in CURVES.values() if c.fp.modulus == q), None)
    if curve is None:
        known = ", ".join(CURVES)
        raise reader.error(f"q = {show_prime(q)} is the base field of no curve known here ({known})", q_size)
    _check_prime(reader, curve.fp, "q", q, q_size)
    r_begins = reader.position + 4
    r = reader.prime("the prime r")
    _check_prime(reader, curve.fr, "r", r, reader.position - r_begins)
    return curve


def _check_prime(reader: Reader, field: Field, name: str, value: int, size: int) -> None:
    if size != field.bytes:
        raise reader.error(f"{name} is given {size} bytes, expected {field.bytes} for {field}", size + 4)
    if value != field.modulus:
        raise reader.error(f"{name} = {show_prime(value)}, expected {show_prime(field.modulus)} of {field}", size)


def _read_sizes(reader: Reader, curve: Curve) -> tuple[int, int, int]:
    n_vars = reader.uint(4, "n_vars")
    n_public = reader.uint(4, "n_public")
    if n_public >= n_vars:
        raise reader.error(f"n_public is {n_public}, expected less than n_vars = {n_vars}", 4)
    domain = reader.uint(4, "the domain size")
    if domain == 0 or domain & (domain - 1):
        raise reader.error(f"the domain size is {domain}, expected a power of two", 4)
    if domain.bit_length() - 1 > curve.fr.two_adicity:
        raise reader.error(f"the domain size is {domain}, {curve} has at most 2^{curve.fr.two_adicity}", 4)
    if domain < n_public + 1:
        raise reader.error(
            f"the domain size is {domain}, expected a row for each of the {n_public + 1} public signals", 4
        )
    return n_vars, n_public, domain


def _read_coefficients(file: BinFile, curve: Curve) -> np.ndarray:
    section = file.section(4)
    dtype = coefficient_dtype(curve)
    count = Reader(file, section).uint(4, "the number of coefficients")
    expected = 4 + count * dtype.itemsize
    file.section(4, expected, f"a count, and the {count} coefficients of {dtype.itemsize} bytes that it says")
    return file.array(section, dtype, (count,), 4)


def read_section(path: PathLike, kind: int) -> bytes:
    """The content of one section of a .zkey, copied: `read_section(path, 10)` are the contributions."""
    file = BinFile(path, ZKEY)
    section = file.section(kind)
    return file.data[section.offset : section.offset + section.length].tobytes()


def write_zkey(path: PathLike, key: ProvingKey, contributions: bytes = NO_CONTRIBUTIONS) -> None:
    """Write a key so that snarkjs reads it; sections in snarkjs's order, 1 to 10.

    contributions: content of section 10, for instance `read_section(old, 10)`. A key read and written with
    its contributions is the same file byte for byte. Without them `snarkjs zkey verify` will refuse the key,
    while proving and exporting work.

    Raises CuzkError for arrays that do not fit the key's sizes, and for a path that cannot be written.
    """
    curve, g1, g2 = key.curve, key.curve.g1.point_shape, key.curve.g2.point_shape
    n = key.n_vars
    if not 0 <= key.n_public < n:
        raise CuzkError(f"{path}: cannot be written: n_public is {key.n_public}, n_vars {n}")
    for name, array, shape in (
        ("ic", key.ic, (key.n_public + 1, *g1)),
        ("a", key.a, (n, *g1)),
        ("b1", key.b1, (n, *g1)),
        ("b2", key.b2, (n, *g2)),
        ("c", key.c, (n - key.n_public - 1, *g1)),
        ("h", key.h, (key.domain_size, *g1)),
        *((name, getattr(key, name), g1) for name in ("alpha1", "beta1", "delta1")),
        *((name, getattr(key, name), g2) for name in ("beta2", "gamma2", "delta2")),
    ):
        if array.shape != shape or array.dtype != np.uint32:
            raise CuzkError(
                f"{path}: cannot be written: {name} is {array.dtype}{list(array.shape)}, expected uint32{list(shape)}"
            )
    if key.coefficients.dtype != coefficient_dtype(curve):
        raise CuzkError(
            f"{path}: cannot be written: coefficients are {key.coefficients.dtype}, expected {coefficient_dtype(curve)}"
        )

    def u32(*values: int) -> Limbs:
        return ints_to_limbs(values, 1)

    def prime(field: Field) -> bytes:
        return field.bytes.to_bytes(4, "little") + field.modulus.to_bytes(field.bytes, "little")

    header = [prime(curve.fp), prime(curve.fr), u32(n, key.n_public, key.domain_size)]
    header += [key.alpha1, key.beta1, key.beta2, key.gamma2, key.delta1, key.delta2]
    write_binfile(
        path,
        ZKEY,
        [
            (1, [u32(GROTH16)]),
            (2, header),
            (3, [key.ic]),
            (4, [u32(len(key.coefficients)), key.coefficients]),
            (5, [key.a]),
            (6, [key.b1]),
            (7, [key.b2]),
            (8, [key.c]),
            (9, [key.h]),
            (10, [contributions]),
        ],
    )


def locate_coefficients(path: Path | None) -> int | None:
    """Offset in the file of the first coefficient, for messages; None for a key that comes from no readable file."""
    if path is None:
        return None
    try:
        return BinFile(path, ZKEY).section(4).offset + 4
    except CuzkError:
        return None
