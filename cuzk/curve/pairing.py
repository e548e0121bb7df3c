"""The optimal ate pairing: one Miller loop over many pairs, one final exponentiation.

product of e(P_i, Q_i), P_i in G1 and Q_i in G2, both affine and in the subgroups of order r. A pair with a point
at infinity contributes 1. One source for BN and BLS12 curves, D- and M-twists, compiled code and plain Python
(where vectors are lists).

1. Miller loop: f and every T_i = Q_i; for each digit of the loop count, f = f^2 once for all pairs, and each
   pair multiplies in the tangent at T_i, and for a digit +-1 the chord through T_i and +-Q_i.
2. BN: two more chords, through psi(Q) and -psi^2(Q). BLS12 with x < 0: f is conjugated.
3. Final exponentiation, easy part: f^((p^6 - 1)(p^2 + 1)).
4. Hard part: the power (p^4 - p^2 + 1)/r times a number prime to r (3 on BLS12, 2x(6x^2 + 3x + 1) on BN): the value
   is that power of the textbook's pairing, which is a pairing as well.

Literature
----------
[V08]  Vercauteren, "Optimal pairings" (eprint 2008/096): the loop counts.
[CLN10] Costello, Lange, Naehrig, "Faster pairing computations on curves with high-degree twists" (eprint 2009/615).
[ABLR13] Aranha, Barreto, Longa, Ricardini, "The realm of the pairings" (eprint 2013/722), section 4: the formulas used.
[FKR11] Fuentes-Castaneda, Knapp, Rodriguez-Henriquez, "Faster hashing to G2" (SAC 2011), section 5: BN's hard part.
[HHT20] Hayashida, Hayasaka, Teruya, "Efficient final exponentiation via cyclotomic structure for pairings over
        families of elliptic curves" (eprint 2020/875), section 4: BLS12's hard part.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from numba.core.extending import overload

from cuzk.curve.constants import PSI_X, PSI_Y, TRIPLE_B
from cuzk.curve.endomorphism import psi
from cuzk.curve.point import affine_is_infinity, negate_affine
from cuzk.field.element import device_function, double, one_like, sqr
from cuzk.field.prime import inv
from cuzk.field.tower import fp2
from cuzk.field.tower6 import CURVE_OF_FP
from cuzk.field.tower12 import Fp12Type, conjugate, cyclotomic_sqr, frobenius, mul_by_line


class Projective(NamedTuple):
    """x = X/Z, y = Y/Z on the twist."""

    x: Any
    y: Any
    z: Any


class Line(NamedTuple):
    """constant + by_x x_P + by_y y_P, up to a factor that the final exponentiation removes."""

    constant: Any
    by_x: Any
    by_y: Any


class Parameters(NamedTuple):
    """constants: `pairing_constants`; loop and x: digits, with their lengths; negative: whether x < 0."""

    constants: Any
    loop: Any
    loop_length: Any
    x: Any
    x_length: Any
    negative: Any


@device_function
def tangent(t: Any, triple_b: Any) -> Any:
    """(2T, the tangent at T)."""
    # ABLR13 (11), [X : Y : Z] scaled by 4 to avoid halving: 4M + 5S
    B = sqr(t.y)
    C = sqr(t.z)
    E = triple_b * C
    F = double(E) + E
    H = sqr(t.y + t.z) - (B + C)
    J = sqr(t.x)
    EE = double(sqr(E))
    x = double(t.x * t.y * (B - F))
    y = sqr(B + F) - double(double(EE) + EE)
    line = Line(E - B, double(J) + J, -H)
    return Projective(x, y, double(double(B * H))), line


@device_function
def chord(t: Any, q: Any) -> Any:
    """(T + Q, the line through T and Q), for an affine Q other than T, -T and infinity."""
    # ABLR13 (12): 11M + 2S
    theta = t.y - q.y * t.z
    lam = t.x - q.x * t.z
    D = sqr(lam)
    E = lam * D
    F = t.z * sqr(theta)
    G = t.x * D
    H = E + F - double(G)
    line = Line(theta * q.x - lam * q.y, -theta, lam)
    return Projective(lam * H, theta * (G - H) - E * t.y, t.z * E), line


@device_function
def scale(k: Any, x: Any) -> Any:
    """k * x for k in Fp2 and x in Fp."""
    return fp2(k.c0 * x, k.c1 * x)


@device_function
def evaluate(f: Any, line: Any, p: Any) -> Any:
    """f times the line's value at p."""
    return mul_by_line(f, line.constant, scale(line.by_x, p.x), scale(line.by_y, p.y))


@device_function
def _has_infinity(p: Any, q: Any) -> Any:
    return affine_is_infinity(p) or affine_is_infinity(q)


@device_function
def miller_loop(ps: Any, qs: Any, n: int, ts: Any, one: Any, parameters: Any) -> Any:
    """The product of n Miller functions; ts: room for n `Projective` points; one: 1 in Fp12."""
    f = one
    triple_b = parameters.constants[TRIPLE_B]
    for i in range(n):
        ts[i] = Projective(qs[i].x, qs[i].y, one_like(qs[i].x))
    for k in range(parameters.loop_length):
        f = sqr(f)
        digit = parameters.loop[k]
        for i in range(n):
            p, q = ps[i], qs[i]
            if _has_infinity(p, q):
                continue
            t, line = tangent(ts[i], triple_b)
            f = evaluate(f, line, p)
            if digit != 0:
                if digit < 0:
                    q = negate_affine(q)
                t, line = chord(t, q)
                f = evaluate(f, line, p)
            ts[i] = t
    return finish_loop(f, ps, qs, n, ts, parameters)


@device_function
def _finish_bn(f: Any, ps: Any, qs: Any, n: int, ts: Any, parameters: Any) -> Any:
    x_factor, y_factor = parameters.constants[PSI_X], parameters.constants[PSI_Y]
    for i in range(n):
        p, q = ps[i], qs[i]
        if not _has_infinity(p, q):
            q = psi(q, x_factor, y_factor)
            t, line = chord(ts[i], q)
            f = evaluate(f, line, p)
            t, line = chord(t, negate_affine(psi(q, x_factor, y_factor)))
            f = evaluate(f, line, p)
    return f


@device_function
def _finish_bls12(f: Any, parameters: Any) -> Any:
    return conjugate(f) if parameters.negative else f


def finish_loop(f: Any, ps: Any, qs: Any, n: int, ts: Any, parameters: Any) -> Any:
    """Step 2, by the family of the curve."""
    if _family(f.c0.c0.c0.field.name) == "BN":
        return _finish_bn(f, ps, qs, n, ts, parameters)
    return _finish_bls12(f, parameters)


@overload(finish_loop)
def _overload_finish_loop(f, ps, qs, n, ts, parameters):  # type: ignore[no-untyped-def]
    if isinstance(f, Fp12Type):
        if _family(f.field.name) == "BN":
            return lambda f, ps, qs, n, ts, parameters: _finish_bn(f, ps, qs, n, ts, parameters)
        return lambda f, ps, qs, n, ts, parameters: _finish_bls12(f, parameters)


def _family(fp: str) -> str:
    return CURVE_OF_FP[fp].family


@device_function
def power_x(f: Any, parameters: Any) -> Any:
    """f^x in the cyclotomic subgroup, where the inverse is the conjugate."""
    inverse = conjugate(f)
    result = f
    for i in range(parameters.x_length):
        result = cyclotomic_sqr(result)
        digit = parameters.x[i]
        if digit > 0:
            result = result * f
        elif digit < 0:
            result = result * inverse
    return conjugate(result) if parameters.negative else result


@device_function
def easy_part(f: Any, constants: Any) -> Any:
    """f^((p^6 - 1)(p^2 + 1))."""
    f = conjugate(f) * inv(f)
    return frobenius(f, 2, constants) * f


@device_function
def _hard_part_bls12(f: Any, parameters: Any) -> Any:
    # HHT20: 3 (p^4 - p^2 + 1)/r = (x - 1)^2 (x + p)(x^2 + p^2 - 1) + 3
    a = power_x(f, parameters) * conjugate(f)
    a = power_x(a, parameters) * conjugate(a)
    a = power_x(a, parameters) * frobenius(a, 1, parameters.constants)
    b = power_x(power_x(a, parameters), parameters)
    a = b * frobenius(a, 2, parameters.constants) * conjugate(a)
    return a * cyclotomic_sqr(f) * f


@device_function
def _hard_part_bn(f: Any, parameters: Any) -> Any:
    # FKR11: with a = 12x^3 + 6x^2 + 6x and b = a - 2x, the power
    # (a + 6x^2 + 1) + b p + a p^2 + (b - 1) p^3 is 2x(6x^2 + 3x + 1)(p^4 - p^2 + 1)/r
    x2 = cyclotomic_sqr(power_x(f, parameters))
    x6 = cyclotomic_sqr(x2) * x2
    xx6 = power_x(x6, parameters)
    xxx12 = power_x(cyclotomic_sqr(xx6), parameters)
    a = xxx12 * xx6 * x6
    b = a * conjugate(x2)
    result = a * xx6 * f
    result = result * frobenius(b, 1, parameters.constants)
    result = result * frobenius(a, 2, parameters.constants)
    return result * frobenius(b * conjugate(f), 3, parameters.constants)


def hard_part(f: Any, parameters: Any) -> Any:
    """Step 4, by the family of the curve."""
    return (_hard_part_bn if _family(f.c0.c0.c0.field.name) == "BN" else _hard_part_bls12)(f, parameters)


@overload(hard_part)
def _overload_hard_part(f, parameters):  # type: ignore[no-untyped-def]
    if isinstance(f, Fp12Type):
        if _family(f.field.name) == "BN":
            return lambda f, parameters: _hard_part_bn(f, parameters)
        return lambda f, parameters: _hard_part_bls12(f, parameters)


@device_function
def final_exponentiation(f: Any, parameters: Any) -> Any:
    return hard_part(easy_part(f, parameters.constants), parameters)
