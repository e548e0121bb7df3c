"""Jobs over vectors of field elements."""

from __future__ import annotations

from typing import Any

from numba.core import types

from cuzk.field.element import element_type, from_montgomery, one_like, to_montgomery
from cuzk.field.params import FIELDS
from cuzk.field.prime import inv
from cuzk.field.vector import Vector


def multiply(x: Any, y: Any, out: Any, n: int) -> int:
    """out[i] = x[i] * y[i]."""
    for i in range(n):
        out[i] = x[i] * y[i]
    return 0


def into_montgomery(x: Any, out: Any, n: int) -> int:
    for i in range(n):
        out[i] = to_montgomery(x[i])
    return 0


def out_of_montgomery(x: Any, out: Any, n: int) -> int:
    for i in range(n):
        out[i] = from_montgomery(x[i])
    return 0


def batch_inverse(x: Any, out: Any, n: int) -> int:
    """out[i] = 1/x[i], 0 for 0, with one inversion (Montgomery's trick); out must not be x.

    P. L. Montgomery, "Speeding the Pollard and elliptic curve methods of factorization" (1987), 10.3.1.
    """
    if n == 0:
        return 0
    product = one_like(x[0])
    zero = product - product
    for i in range(n):
        out[i] = product
        if x[i] != zero:
            product = product * x[i]
    inverse = inv(product)
    for k in range(n):
        i = n - 1 - k
        if x[i] == zero:
            out[i] = zero
        else:
            out[i] = out[i] * inverse
            inverse = inverse * x[i]
    return 0


def jobs(target: str) -> dict[str, Any]:
    """target: a field's name."""
    v, n = Vector(element_type(FIELDS[target])), types.int64
    return {
        "multiply": (multiply, (v, v, v, n)),
        "into_montgomery": (into_montgomery, (v, v, n)),
        "out_of_montgomery": (out_of_montgomery, (v, v, n)),
        "batch_inverse": (batch_inverse, (v, v, n)),
    }
