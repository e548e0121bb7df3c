"""The pairing as a compiled job."""

from __future__ import annotations

from typing import Any

from numba.core import types

from cuzk.curve.pairing import Parameters, Projective, final_exponentiation, miller_loop
from cuzk.curve.point import affine_type
from cuzk.field.element import one_like
from cuzk.field.params import CURVES
from cuzk.field.tower import fp2_type
from cuzk.field.tower12 import fp12_type
from cuzk.field.vector import Vector


def product(
    ps: Any,
    qs: Any,
    n: int,
    ts: Any,
    constants: Any,
    loop: Any,
    loop_length: int,
    x: Any,
    x_length: int,
    negative: int,
    out: Any,
) -> int:
    """out[0] = the product of e(ps[i], qs[i]); returns 1 where that is one, else 0.

    ts: room for n projective points of G2; the rest as in `Parameters`.
    """
    one = one_like(out[0])
    parameters = Parameters(constants, loop, loop_length, x, x_length, negative)
    value = final_exponentiation(miller_loop(ps, qs, n, ts, one, parameters), parameters)
    out[0] = value
    if value == one:
        return 1
    return 0


def jobs(target: str) -> dict[str, Any]:
    """target: a curve's name."""
    curve = CURVES[target]
    fp2, n = fp2_type(curve.fp), types.int64
    digits = Vector(types.int64)
    arguments = (
        Vector(affine_type(curve.g1)),
        Vector(affine_type(curve.g2)),
        n,
        Vector(types.NamedUniTuple(fp2, 3, Projective)),
        Vector(fp2),
        digits,
        n,
        digits,
        n,
        n,
        Vector(fp12_type(curve.fp)),
    )
    return {"product": (product, arguments)}
