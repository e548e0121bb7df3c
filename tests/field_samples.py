"""What the tests of the field layer share: fields, awkward values, and jobs compiled for a test alone."""

from __future__ import annotations

from functools import cache
from typing import Any

from hypothesis import strategies as st
from numba.core import types

from cuzk.cpu import compiler, jit
from cuzk.field.element import (
    double,
    element_type,
    from_montgomery,
    is_zero,
    one_like,
    sqr,
    to_montgomery,
    zero_like,
)
from cuzk.field.params import CURVES, FIELDS, Field
from cuzk.field.prime import inv
from cuzk.field.tower import fp2_type
from cuzk.field.vector import Vector

ALL_FIELDS = list(FIELDS.values())
BASE_FIELDS = [curve.fp for curve in CURVES.values()]
# two limbs and a modulus of ones: nothing in the field layer may be about four or six words
TINY = Field("Fp[2^61-1]", 2**61 - 1, 37)


def edge_values(field: Field) -> list[int]:
    """Integers below p whose limbs make carries and borrows run: as Montgomery forms they are elements like any."""
    p, limbs = field.modulus, field.limbs
    values = [0, 1, 2, p - 1, p - 2, (p - 1) // 2, (p + 1) // 2, field.r, field.r2, p - field.r]
    values += [(1 << 32 * k) - 1 for k in range(1, limbs)] + [1 << 32 * k for k in range(1, limbs)]
    values += [((1 << 32 * limbs) - 1) % p, p & ~0xFFFFFFFF, p ^ (p & -p)]
    values += [sum(0xFFFFFFFF << 32 * k for k in range(start, limbs - 1, 2)) for start in (0, 1)]
    return sorted({v for v in values if 0 <= v < p})


def elements(field: Field) -> st.SearchStrategy[int]:
    return st.one_of(st.sampled_from(edge_values(field)), st.integers(0, field.modulus - 1))


def multiply(x: Any, y: Any, out: Any, n: int) -> int:
    for i in range(n):
        out[i] = x[i] * y[i]
    return 0


def add(x: Any, y: Any, out: Any, n: int) -> int:
    for i in range(n):
        out[i] = x[i] + y[i]
    return 0


def subtract(x: Any, y: Any, out: Any, n: int) -> int:
    for i in range(n):
        out[i] = x[i] - y[i]
    return 0


def square(x: Any, out: Any, n: int) -> int:
    for i in range(n):
        out[i] = sqr(x[i])
    return 0


def negate(x: Any, out: Any, n: int) -> int:
    for i in range(n):
        out[i] = -x[i]
    return 0


def twice(x: Any, out: Any, n: int) -> int:
    for i in range(n):
        out[i] = double(x[i])
    return 0


def invert(x: Any, out: Any, n: int) -> int:
    for i in range(n):
        out[i] = inv(x[i])
    return 0


def raise_to(x: Any, exponent: int, out: Any, n: int) -> int:
    for i in range(n):
        out[i] = x[i] ** exponent
    return 0


def cube(x: Any, out: Any, n: int) -> int:
    for i in range(n):
        out[i] = x[i] ** 3  # numba treats a constant exponent apart
    return 0


def leave_montgomery(x: Any, out: Any, n: int) -> int:
    for i in range(n):
        out[i] = from_montgomery(x[i])
    return 0


def enter_montgomery(x: Any, out: Any, n: int) -> int:
    for i in range(n):
        out[i] = to_montgomery(x[i])
    return 0


def constants(x: Any, out: Any) -> int:
    out[0] = zero_like(x[0])
    out[1] = one_like(x[0])
    return 0


def compare(x: Any, y: Any) -> int:
    """Bits: x == y, x != y, x is zero."""
    a, b = x[0], y[0]
    result = 0
    if a == b:
        result |= 1
    if a != b:
        result |= 2
    if is_zero(a):
        result |= 4
    return result


def ring_laws(x: Any, y: Any, z: Any) -> int:
    """One bit a law that does not hold."""
    a, b, c = x[0], y[0], z[0]
    zero, one = zero_like(a), one_like(a)
    broken = 0
    if a + b != b + a or a * b != b * a:
        broken |= 1
    if (a + b) + c != a + (b + c):
        broken |= 2
    if (a * b) * c != a * (b * c):
        broken |= 4
    if a * (b + c) != a * b + a * c:
        broken |= 8
    if a + zero != a or a * one != a or a * zero != zero:
        broken |= 16
    if a - a != zero or a + (-a) != zero or a - b != -(b - a):
        broken |= 32
    if sqr(a) != a * a or double(a) != a + a:
        broken |= 64
    if sqr(a + b) != sqr(a) + double(a * b) + sqr(b):
        broken |= 128
    if (a - b) * (a + b) != sqr(a) - sqr(b):
        broken |= 256
    return broken


def _jobs(kind: types.Type, *, prime: bool) -> compiler.Jobs:
    v, n = Vector(kind), types.int64
    jobs: compiler.Jobs = {
        "mul": (multiply, (v, v, v, n)),
        "add": (add, (v, v, v, n)),
        "sub": (subtract, (v, v, v, n)),
        "sqr": (square, (v, v, n)),
        "neg": (negate, (v, v, n)),
        "double": (twice, (v, v, n)),
        "inv": (invert, (v, v, n)),
        "power": (raise_to, (v, n, v, n)),
        "cube": (cube, (v, v, n)),
        "constants": (constants, (v, v)),
        "compare": (compare, (v, v)),
        "ring_laws": (ring_laws, (v, v, v)),
    }
    if prime:
        jobs["from_montgomery"] = (leave_montgomery, (v, v, n))
        jobs["to_montgomery"] = (enter_montgomery, (v, v, n))
    return jobs


def compile_jobs(name: str, jobs: compiler.Jobs) -> jit.Library:
    """Compile jobs now, for this process alone."""
    return jit.Library(("test", name), *compiler.compile_unit(jobs, f"test.{name}"))


@cache
def field_library(field: Field) -> jit.Library:
    """Every operation of a prime field as a job."""
    return compile_jobs(field.name, _jobs(element_type(field), prime=True))


@cache
def fp2_library(field: Field) -> jit.Library:
    """The same for Fp2 over a base field."""
    return compile_jobs(f"Fp2 {field.name}", _jobs(fp2_type(field), prime=False))
