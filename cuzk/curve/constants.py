"""What compiled pairings and subgroup checks take as arguments, derived from `params.py`; no numba.

psi = untwist, p-power Frobenius, twist: an endomorphism of G2 with psi(P) = [t - 1]P on the subgroup of order
r, where t is the trace of Frobenius: t - 1 = x on BLS12 curves, 6x^2 on BN curves.
phi(x, y) = (beta x, y), beta^3 = 1: an endomorphism of G1 over BLS12 curves with phi(P) = [-x^2]P there.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from cuzk.field.host import Limbs, encode
from cuzk.field.params import CURVES, Curve, Fp2Int, Group, fp2_inverse

# places in `pairing_constants`, after the 18 Frobenius coefficients
PSI_X, PSI_Y, TRIPLE_B = 18, 19, 20


def naf(n: int) -> list[int]:
    """The non-adjacent form of n > 0: digits -1, 0, 1, most significant (always 1) first."""
    digits = []
    while n:
        digit = 2 - n % 4 if n % 2 else 0
        digits.append(digit)
        n = (n - digit) // 2
    return digits[::-1]


@cache
def x_digits(curve: Curve) -> np.ndarray:
    """int64[n]: |x| in non-adjacent form, without the leading 1."""
    return np.array(naf(abs(curve.x))[1:], dtype=np.int64)


@cache
def loop_digits(curve: Curve) -> np.ndarray:
    """int64[n]: the optimal ate loop without the leading 1: 6x + 2 on BN curves, |x| on BLS12 curves.

    Vercauteren, "Optimal pairings" (eprint 2008/096), section 4.
    """
    return np.array(naf(6 * curve.x + 2)[1:], dtype=np.int64) if curve.family == "BN" else x_digits(curve)


def psi_coefficients(curve: Curve) -> tuple[Fp2Int, Fp2Int]:
    """psi(x, y) = (a conj(x), b conj(y)): a = xi^((p-1)/3), b = xi^((p-1)/2) on D-twists, inverses on M-twists."""
    a, b = curve.frobenius_coefficient(1, 2), curve.frobenius_coefficient(1, 3)
    if curve.twist == "D":
        return a, b
    return fp2_inverse(a, curve.fp.modulus), fp2_inverse(b, curve.fp.modulus)


def phi_coefficient(curve: Curve) -> int:
    """beta, the cube root of 1 in Fp for which phi is [-x^2] on G1 of a BLS12 curve."""
    real, imaginary = curve.frobenius_coefficient(2, 2)
    assert imaginary == 0
    return real


@cache
def pairing_constants(curve: Curve) -> Limbs:
    """uint32[21, 2, L], Montgomery elements of Fp2.

    6 (power - 1) + k: the factor of w^k under the p^power Frobenius map, power 1..3, k 0..5;
    then psi's two coefficients, and three times the twist's b.
    """
    values = [curve.frobenius_coefficient(power, k) for power in (1, 2, 3) for k in range(6)]
    values += psi_coefficients(curve)
    values.append((3 * curve.b_twist[0], 3 * curve.b_twist[1]))
    return encode(curve.fp, values)


@cache
def point_constants(group: Group) -> Limbs:
    """uint32[3, ..., L], Montgomery coordinates: b, then phi's (beta, unused) in G1 or psi's (x, y) in G2."""
    curve = curve_of(group)
    if group.degree == 2:
        return encode(group.base, [group.b, *psi_coefficients(curve)])
    return encode(group.base, [group.b[0], phi_coefficient(curve), 0])


@cache
def curve_of(group: Group) -> Curve:
    return next(curve for curve in CURVES.values() if group.name in (curve.g1.name, curve.g2.name))
