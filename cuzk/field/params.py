"""Every modulus, curve constant and root of unity, once, each with its source.

A curve is one declarative block at the end of this file. What can be computed from the moduli is
computed (Montgomery constants, two-adicity, roots of unity, twist coefficient, Frobenius
coefficients), so nothing is typed twice; `tests/test_params.py` asserts what is derived.

Pure Python ints, and no import beyond the standard library: formats, the command line and the
warm start of the CPU backend need these facts without paying for numba.

Sources
-------
BN254      EIP-196 and EIP-197 (alt_bn128); constantine and gnark-crypto agree.
BLS12-381  S. Bowe, "BLS12-381: New zk-SNARK Elliptic Curve Construction" (2017), and
           draft-irtf-cfrg-pairing-friendly-curves-11, section 4.2.1.
Subgroup checks through endomorphisms: M. Scott, "A note on group membership tests for G1, G2 and
GT on BLS pairing-friendly curves" (eprint 2021/1130); for BN254's G2: eprint 2022/348, section 4.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

LIMB_BITS = 32


@dataclass(frozen=True)
class Field:
    """A prime field, with what Montgomery arithmetic and the NTT need to know about it.

    name:      "Fp[bn254]" and so on; unique, since it names numba types and cache files.
    modulus:   the prime p.
    generator: a generator of the multiplicative group (of the 2-part is enough for the NTT).
    """

    name: str
    modulus: int
    generator: int

    @cached_property
    def bits(self) -> int:
        return self.modulus.bit_length()

    @cached_property
    def limbs(self) -> int:
        """Number of 32-bit limbs; even, so that the same memory is also whole 64-bit limbs."""
        return 2 * -(-self.bits // 64)

    @cached_property
    def bytes(self) -> int:
        return 4 * self.limbs

    @cached_property
    def r(self) -> int:
        """Montgomery's R modulo p, that is the number one in Montgomery form."""
        return (1 << (LIMB_BITS * self.limbs)) % self.modulus

    @cached_property
    def r2(self) -> int:
        return self.r * self.r % self.modulus

    @cached_property
    def r_inverse(self) -> int:
        return pow(self.r, -1, self.modulus)

    def montgomery_inverse(self, word_bits: int) -> int:
        """-1/p modulo 2^word_bits: the multiplier of one reduction step."""
        return -pow(self.modulus, -1, 1 << word_bits) % (1 << word_bits)

    @cached_property
    def two_adicity(self) -> int:
        t = self.modulus - 1
        return (t & -t).bit_length() - 1

    @cached_property
    def odd_part(self) -> int:
        return (self.modulus - 1) >> self.two_adicity

    def is_square(self, x: int) -> bool:
        return x % self.modulus == 0 or pow(x, (self.modulus - 1) // 2, self.modulus) == 1

    @cached_property
    def smallest_nonresidue(self) -> int:
        return next(x for x in range(2, 1000) if not self.is_square(x))

    def root_of_unity(self, log_n: int, base: int | None = None) -> int:
        """A primitive 2^log_n-th root of unity, (base^odd_part)^(2^(two_adicity - log_n)).

        base: `smallest_nonresidue` is snarkjs's convention (the default), `generator` is that of the
        bellman family. They differ on BLS12-381 (5 and 7); which one is right belongs to the key.
        """
        if not 0 <= log_n <= self.two_adicity:
            raise ValueError(f"{self.name} has no 2^{log_n}-th root of unity: at most 2^{self.two_adicity}")
        base = self.smallest_nonresidue if base is None else base
        return pow(base, self.odd_part << (self.two_adicity - log_n), self.modulus)

    def to_montgomery(self, x: int) -> int:
        return x * self.r % self.modulus

    def from_montgomery(self, x: int) -> int:
        return x * self.r_inverse % self.modulus

    def __repr__(self) -> str:
        return self.name


Fp2Int = tuple[int, int]


@dataclass(frozen=True)
class Group:
    """G1 or G2 of a curve: y^2 = x^3 + b over Fp (degree 1) or Fp2 (degree 2)."""

    name: str  # "bn254.g1"
    base: Field  # Fp, also for G2, whose coordinates are pairs
    scalar: Field  # Fr
    degree: int  # 1 or 2: base-field elements in a coordinate
    b: tuple[int, ...]
    generator: tuple[tuple[int, ...], tuple[int, ...]]  # affine x, y, each `degree` ints
    cofactor: int

    @cached_property
    def point_bytes(self) -> int:
        """Size of an affine point, x then y, in memory and in a .zkey."""
        return 2 * self.degree * self.base.bytes

    @cached_property
    def point_shape(self) -> tuple[int, ...]:
        """Shape of one affine point as uint32 limbs: (2, L) in G1, (2, 2, L) in G2."""
        return (2, self.base.limbs) if self.degree == 1 else (2, 2, self.base.limbs)

    def __repr__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Curve:
    """A pairing-friendly curve with embedding degree 12 and a sextic twist.

    Fp2 = Fp[u]/(u^2 + 1), Fp6 = Fp2[v]/(v^3 - xi), Fp12 = Fp6[w]/(w^2 - v).
    A D-twist is y^2 = x^3 + b/xi, an M-twist is y^2 = x^3 + b*xi.
    """

    name: str
    family: Literal["BN", "BLS12"]
    x: int  # the family's parameter; p and r are polynomials in it
    fp: Field
    fr: Field
    b: int
    xi: Fp2Int
    twist: Literal["D", "M"]
    g1_generator: tuple[int, int]
    g2_generator: tuple[Fp2Int, Fp2Int]
    g1_cofactor: int
    g2_cofactor: int
    json_names: tuple[str, ...]  # how vkey and proof files call it; the first is the one we write

    @cached_property
    def g1(self) -> Group:
        x, y = self.g1_generator
        return Group(f"{self.name}.g1", self.fp, self.fr, 1, (self.b,), ((x,), (y,)), self.g1_cofactor)

    @cached_property
    def b_twist(self) -> Fp2Int:
        factor = fp2_inverse(self.xi, self.fp.modulus) if self.twist == "D" else self.xi
        return fp2_mul(factor, (self.b, 0), self.fp.modulus)

    @cached_property
    def g2(self) -> Group:
        return Group(f"{self.name}.g2", self.fp, self.fr, 2, self.b_twist, self.g2_generator, self.g2_cofactor)

    @cached_property
    def _frobenius_bases(self) -> tuple[Fp2Int, Fp2Int, Fp2Int]:
        """xi^((p^n - 1)/6) for n = 1, 2, 3, by one power: the p-th power of an element of Fp2 is its conjugate."""
        p = self.fp.modulus
        first = fp2_pow(self.xi, (p - 1) // 6, p)
        second = fp2_mul(first, (first[0], -first[1] % p), p)
        return first, second, fp2_mul(second, first, p)

    def frobenius_coefficient(self, power: int, k: int) -> Fp2Int:
        """xi^(k (p^power - 1)/6), the factor of w^k under the p^power Frobenius map; power is 1, 2 or 3."""
        return fp2_pow(self._frobenius_bases[power - 1], k, self.fp.modulus)

    def __repr__(self) -> str:
        return self.name


def fp2_mul(a: Fp2Int, b: Fp2Int, p: int) -> Fp2Int:
    return (a[0] * b[0] - a[1] * b[1]) % p, (a[0] * b[1] + a[1] * b[0]) % p


def fp2_inverse(a: Fp2Int, p: int) -> Fp2Int:
    norm = pow(a[0] * a[0] + a[1] * a[1], -1, p)
    return a[0] * norm % p, -a[1] * norm % p


def fp2_pow(a: Fp2Int, e: int, p: int) -> Fp2Int:
    result: Fp2Int = (1, 0)
    for bit in bin(e)[2:]:
        result = fp2_mul(result, result, p)
        if bit == "1":
            result = fp2_mul(result, a, p)
    return result


# p = 36x^4 + 36x^3 + 24x^2 + 6x + 1, r = 36x^4 + 36x^3 + 18x^2 + 6x + 1
_X = 4965661367192848881
BN254 = Curve(
    name="bn254",
    family="BN",
    x=_X,
    fp=Field("Fp[bn254]", 36 * _X**4 + 36 * _X**3 + 24 * _X**2 + 6 * _X + 1, generator=3),
    fr=Field("Fr[bn254]", 36 * _X**4 + 36 * _X**3 + 18 * _X**2 + 6 * _X + 1, generator=5),
    b=3,
    xi=(9, 1),
    twist="D",
    g1_generator=(1, 2),
    g2_generator=(
        (
            10857046999023057135944570762232829481370756359578518086990519993285655852781,
            11559732032986387107991004021392285783925812861821192530917403151452391805634,
        ),
        (
            8495653923123431417604973247489272438418190587263600148770280649306958101930,
            4082367875863433681332203403145435568316851327593401208105741076214120093531,
        ),
    ),
    g1_cofactor=1,
    g2_cofactor=36 * _X**4 + 36 * _X**3 + 30 * _X**2 + 6 * _X + 1,
    json_names=("bn128", "bn254", "altbn128"),
)

# r = x^4 - x^2 + 1, p = (x - 1)^2 r / 3 + x
_X = -0xD201000000010000
_R = _X**4 - _X**2 + 1
BLS12_381 = Curve(
    name="bls12_381",
    family="BLS12",
    x=_X,
    fp=Field("Fp[bls12_381]", (_X - 1) ** 2 * _R // 3 + _X, generator=2),
    fr=Field("Fr[bls12_381]", _R, generator=7),
    b=4,
    xi=(1, 1),
    twist="M",
    g1_generator=(
        0x17F1D3A73197D7942695638C4FA9AC0FC3688C4F9774B905A14E3A3F171BAC586C55E83FF97A1AEFFB3AF00ADB22C6BB,
        0x08B3F481E3AAA0F1A09E30ED741D8AE4FCF5E095D5D00AF600DB18CB2C04B3EDD03CC744A2888AE40CAA232946C5E7E1,
    ),
    g2_generator=(
        (
            0x024AA2B2F08F0A91260805272DC51051C6E47AD4FA403B02B4510B647AE3D1770BAC0326A805BBEFD48056C8C121BDB8,
            0x13E02B6052719F607DACD3A088274F65596BD0D09920B61AB5DA61BBDC7F5049334CF11213945D57E5AC7D055D042B7E,
        ),
        (
            0x0CE5D527727D6E118CC9CDC6DA2E351AADFD9BAA8CBDD3A76D429A695160D12C923AC9CC3BACA289E193548608B82801,
            0x0606C4A02EA734CC32ACD2B02BC28B99CB3E287E85A763AF267492AB572E99AB3F370D275CEC1DA1AAA9075FF05F79BE,
        ),
    ),
    g1_cofactor=(_X - 1) ** 2 // 3,
    g2_cofactor=(_X**8 - 4 * _X**7 + 5 * _X**6 - 4 * _X**4 + 6 * _X**3 - 4 * _X**2 - 4 * _X + 13) // 9,
    json_names=("bls12381", "bls12_381", "bls12-381"),
)

CURVES: dict[str, Curve] = {curve.name: curve for curve in (BN254, BLS12_381)}
GROUPS: dict[str, Group] = {g.name: g for c in CURVES.values() for g in (c.g1, c.g2)}
FIELDS: dict[str, Field] = {f.name: f for c in CURVES.values() for f in (c.fp, c.fr)}
