"""Fp12 as polynomials in w over Fp, on Python ints: the judge of the tower, sharing no formula with it.

w^6 = xi = a + u and u^2 = -1 give (w^6 - a)^2 = -1, so Fp12 = Fp[w]/(w^12 - 2a w^6 + a^2 + 1).
"""

from __future__ import annotations

from collections.abc import Sequence

from cuzk.field.element import Element
from cuzk.field.params import Curve
from cuzk.field.tower import Fp2Element
from cuzk.field.tower6 import Fp6Element
from cuzk.field.tower12 import Fp12Element

Polynomial = list[int]


def multiply(curve: Curve, f: Polynomial, g: Polynomial) -> Polynomial:
    a, imaginary = curve.xi
    assert imaginary == 1
    product = [0] * 23
    for i, x in enumerate(f):
        for j, y in enumerate(g):
            product[i + j] += x * y
    for k in reversed(range(12, 23)):
        product[k - 6] += 2 * a * product[k]
        product[k - 12] -= (a * a + 1) * product[k]
    return [c % curve.fp.modulus for c in product[:12]]


def power(curve: Curve, f: Polynomial, exponent: int) -> Polynomial:
    result = [1] + [0] * 11
    for bit in bin(exponent)[2:]:
        result = multiply(curve, result, result)
        if bit == "1":
            result = multiply(curve, result, f)
    return result


def flatten(f: Fp12Element) -> list[Element]:
    """The twelve coordinates in the order of memory."""
    return [e for six in (f.c0, f.c1) for two in (six.c0, six.c1, six.c2) for e in (two.c0, two.c1)]


def build(parts: Sequence[Element]) -> Fp12Element:
    """The inverse of `flatten`."""
    twos = [Fp2Element(parts[i], parts[i + 1]) for i in range(0, 12, 2)]
    return Fp12Element(Fp6Element(*twos[:3]), Fp6Element(*twos[3:]))


def of_ints(curve: Curve, values: Sequence[int]) -> Fp12Element:
    return build([Element.of(curve.fp, v) for v in values])


def polynomial(curve: Curve, values: Sequence[int]) -> Polynomial:
    """The polynomial of twelve coordinates in the order of memory: v = w^2 and u = w^6 - a."""
    result = [0] * 12
    for i, (c0, c1) in enumerate(zip(values[::2], values[1::2], strict=True)):
        k = 2 * (i % 3) + i // 3
        result[k] = (c0 - curve.xi[0] * c1) % curve.fp.modulus
        result[k + 6] = c1 % curve.fp.modulus
    return result


def to_polynomial(curve: Curve, f: Fp12Element) -> Polynomial:
    return polynomial(curve, [e.value for e in flatten(f)])
