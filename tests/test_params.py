"""What params.py types is right, and what it derives is what it says."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from math import isqrt

import pytest

from cuzk.field.params import (
    BLS12_381,
    BN254,
    CURVES,
    FIELDS,
    GROUPS,
    Curve,
    Field,
    Group,
    fp2_inverse,
    fp2_mul,
    fp2_pow,
)

every_field = pytest.mark.parametrize("field", FIELDS.values(), ids=repr)
every_curve = pytest.mark.parametrize("curve", CURVES.values(), ids=repr)
every_group = pytest.mark.parametrize("group", GROUPS.values(), ids=repr)


def is_prime(n: int) -> bool:
    """Miller-Rabin with the first twenty primes as bases."""
    d, s = n - 1, 0
    while d % 2 == 0:
        d, s = d // 2, s + 1
    for base in (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71):
        x = pow(base, d, n)
        if x in (1, n - 1):
            continue
        for _ in range(s - 1):
            x = x * x % n
            if x == n - 1:
                break
        else:
            return False
    return True


# --- a plain affine group law over Fp2 (Fp is c1 = 0), None for infinity: the definition, for judging ------

Point = tuple[tuple[int, int], tuple[int, int]] | None


def add_points(a: Point, b: Point, p: int) -> Point:
    if a is None or b is None:
        return b if a is None else a
    (x1, y1), (x2, y2) = a, b
    if x1 == x2:
        if (y1[0] + y2[0]) % p == 0 and (y1[1] + y2[1]) % p == 0:
            return None
        slope = fp2_mul(fp2_mul((3, 0), fp2_mul(x1, x1, p), p), fp2_inverse(fp2_mul((2, 0), y1, p), p), p)
    else:
        slope = fp2_mul(subtract(y2, y1, p), fp2_inverse(subtract(x2, x1, p), p), p)
    x3 = subtract(subtract(fp2_mul(slope, slope, p), x1, p), x2, p)
    return x3, subtract(fp2_mul(slope, subtract(x1, x3, p), p), y1, p)


def subtract(a: tuple[int, int], b: tuple[int, int], p: int) -> tuple[int, int]:
    return (a[0] - b[0]) % p, (a[1] - b[1]) % p


def multiply_point(k: int, point: Point, p: int) -> Point:
    total: Point = None
    for bit in bin(k)[2:]:
        total = add_points(total, total, p)
        if bit == "1":
            total = add_points(total, point, p)
    return total


def pad(x: tuple[int, ...]) -> tuple[int, int]:
    return (x[0], 0) if len(x) == 1 else (x[0], x[1])


def generator(group: Group) -> Point:
    x, y = group.generator
    return pad(x), pad(y)


# --- fields ------------------------------------------------------------------------------------------


def test_moduli_are_those_of_the_standards() -> None:
    assert BN254.fp.modulus == 0x30644E72E131A029B85045B68181585D97816A916871CA8D3C208C16D87CFD47  # EIP-196
    assert BN254.fr.modulus == 0x30644E72E131A029B85045B68181585D2833E84879B9709143E1F593F0000001
    assert BLS12_381.fp.modulus == int(  # draft-irtf-cfrg-pairing-friendly-curves-11, 4.2.1
        "1a0111ea397fe69a4b1ba7b6434bacd764774b84f38512bf6730d2a0f6b0f6241eabfffeb153ffffb9feffffffffaaab", 16
    )
    assert BLS12_381.fr.modulus == 0x73EDA753299D7D483339D80809A1D80553BDA402FFFE5BFEFFFFFFFF00000001


@every_field
def test_derived_constants(field: Field) -> None:
    p = field.modulus
    assert is_prime(p)
    assert field.bits == p.bit_length()
    assert field.limbs % 2 == 0
    assert 32 * field.limbs - 64 < field.bits < 32 * field.limbs  # no 64-bit word to spare, but a bit
    assert field.bytes == 4 * field.limbs
    R = 1 << (32 * field.limbs)
    assert (field.r, field.r2) == (R % p, R * R % p)
    assert field.r * field.r_inverse % p == 1
    for word in (32, 64):
        assert field.montgomery_inverse(word) * p % (1 << word) == (1 << word) - 1
    assert field.from_montgomery(field.to_montgomery(12345)) == 12345
    assert field.odd_part % 2 == 1
    assert field.odd_part << field.two_adicity == p - 1


def test_sizes_and_two_adicities() -> None:
    assert [f.limbs for f in (BN254.fp, BN254.fr, BLS12_381.fp, BLS12_381.fr)] == [8, 8, 12, 8]
    assert (BN254.fr.two_adicity, BLS12_381.fr.two_adicity) == (28, 32)


@every_field
def test_generator_is_no_square(field: Field) -> None:
    """So its odd_part-th power generates the whole 2-part of the multiplicative group."""
    assert not field.is_square(field.generator)
    assert not field.is_square(field.smallest_nonresidue)
    assert all(field.is_square(x) for x in range(field.smallest_nonresidue))
    assert field.is_square(4)
    assert field.is_square(0)


@every_field
def test_roots_of_unity_have_the_order_they_should(field: Field) -> None:
    for base in (None, field.generator):
        for log_n in {0, 1, min(5, field.two_adicity), field.two_adicity}:
            root = field.root_of_unity(log_n, base)
            assert pow(root, 1 << log_n, field.modulus) == 1
            assert log_n == 0 or pow(root, 1 << (log_n - 1), field.modulus) == field.modulus - 1
            if log_n:
                assert field.root_of_unity(log_n - 1, base) == root * root % field.modulus


def test_both_conventions_of_roots_of_unity() -> None:
    fr = BLS12_381.fr
    snarkjs = 937917089079007706106976984802249742464848817460758522850752807661925904159
    bellman = 10238227357739495823651030575849232062558860180284477541189508159991286009131
    assert (fr.smallest_nonresidue, fr.root_of_unity(32)) == (5, snarkjs)
    assert (fr.generator, fr.root_of_unity(32, fr.generator)) == (7, bellman)
    fr = BN254.fr
    assert fr.root_of_unity(28) == fr.root_of_unity(28, fr.generator) == pow(5, fr.odd_part, fr.modulus)


@pytest.mark.parametrize("log_n", [-1, 29])
def test_roots_beyond_the_two_adicity_are_refused(log_n: int) -> None:
    with pytest.raises(ValueError, match=r"at most 2\^28"):
        BN254.fr.root_of_unity(log_n)


def test_names_are_unique_and_shown() -> None:
    assert len(FIELDS) == len(GROUPS) == 2 * len(CURVES) == 4
    assert repr(BN254.fr) == "Fr[bn254]"
    assert repr(BN254) == "bn254"
    assert repr(BN254.g2) == "bn254.g2"
    names = [name for curve in CURVES.values() for name in curve.json_names]
    assert len(set(names)) == len(names)


def test_facts_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        BN254.fr.modulus = 7  # type: ignore[misc]


# --- curves ------------------------------------------------------------------------------------------


@every_group
def test_generator_is_on_the_curve_and_of_prime_order(group: Group) -> None:
    p = group.base.modulus
    x, y = (pad(c) for c in group.generator)
    right = fp2_mul(fp2_mul(x, x, p), x, p)
    b = pad(group.b)
    assert fp2_mul(y, y, p) == ((right[0] + b[0]) % p, (right[1] + b[1]) % p)
    assert multiply_point(group.scalar.modulus, generator(group), p) is None


@every_curve
def test_cofactors_are_what_the_orders_leave(curve: Curve) -> None:
    """#E(Fp) = p + 1 - t; a sextic twist over Fp2 has p^2 + 1 - (t2 +- 3f)/2 points (eprint 2006/110, section 4)."""
    p, r, x = curve.fp.modulus, curve.fr.modulus, curve.x
    t = 6 * x**2 + 1 if curve.family == "BN" else x + 1
    assert (p + 1 - t) == r * curve.g1_cofactor
    t2 = t * t - 2 * p
    f2, rest = divmod(4 * p * p - t2 * t2, 3)
    f = isqrt(f2)
    assert rest == 0
    assert f * f == f2
    orders = [p * p + 1 - (t2 + 3 * f) // 2, p * p + 1 - (t2 - 3 * f) // 2]
    assert r * curve.g2_cofactor in orders


@every_curve
def test_embedding_degree_is_twelve(curve: Curve) -> None:
    p, r = curve.fp.modulus, curve.fr.modulus
    assert [k for k in range(1, 13) if pow(p, k, r) == 1] == [12]


@every_curve
def test_tower_is_a_tower(curve: Curve) -> None:
    """u^2 = -1, v^3 = xi and w^2 = v are irreducible: -1 is no square, xi neither square nor cube."""
    p = curve.fp.modulus
    assert not curve.fp.is_square(p - 1)
    for k in (2, 3):
        assert fp2_pow(curve.xi, (p * p - 1) // k, p) != (1, 0)


@every_curve
def test_twist_and_frobenius_coefficients(curve: Curve) -> None:
    p = curve.fp.modulus
    if curve.twist == "D":
        assert fp2_mul(curve.b_twist, curve.xi, p) == (curve.b, 0)
    else:
        assert curve.b_twist == fp2_mul((curve.b, 0), curve.xi, p)
    assert curve.g2.b == curve.b_twist
    for power in (1, 2, 3):
        one = curve.frobenius_coefficient(power, 1)
        assert curve.frobenius_coefficient(power, 0) == (1, 0)
        assert curve.frobenius_coefficient(power, 5) == fp2_pow(one, 5, p)
        # w^(p^k) = coefficient * w, so its sixth power is xi^(p^k)/xi
        conjugate = curve.xi if power % 2 == 0 else (curve.xi[0], -curve.xi[1] % p)
        assert fp2_mul(fp2_pow(one, 6, p), curve.xi, p) == conjugate


@every_group
def test_point_layout(group: Group) -> None:
    size = 4
    for n in group.point_shape:
        size *= n
    assert size == group.point_bytes
    assert group.point_bytes == {"bn254": 64, "bls12_381": 96}[group.name.split(".")[0]] * group.degree


def test_fp2_helpers() -> None:
    p = BN254.fp.modulus
    a = (5, p - 7)
    assert fp2_mul(a, fp2_inverse(a, p), p) == (1, 0)
    assert fp2_pow(a, 0, p) == (1, 0)
    assert fp2_pow(a, 3, p) == fp2_mul(a, fp2_mul(a, a, p), p)
