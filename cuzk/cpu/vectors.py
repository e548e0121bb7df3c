"""Vectors of field elements on the CPU: products, inverses, in and out of Montgomery form. No numba import.

Vectors are uint32[n, L]; a result is a new array. One core: for conversions and study, not for the prover's
inner loops, which have jobs of their own.
"""

from __future__ import annotations

import numpy as np

from cuzk.cpu import jit
from cuzk.errors import CuzkError
from cuzk.field.host import Limbs, first_not_below
from cuzk.field.params import Field


def _vector(field: Field, x: Limbs) -> Limbs:
    x = np.asarray(x)
    if x.dtype != np.uint32 or x.ndim != 2 or x.shape[1] != field.limbs:
        raise CuzkError(f"a vector of {field}: {x.dtype}{list(x.shape)}, expected uint32[n, {field.limbs}]")
    bad = first_not_below(x, field.modulus)
    if bad is not None:
        raise CuzkError(f"a vector of {field}: element {bad} is not below the modulus")
    return np.ascontiguousarray(x)


def multiply(field: Field, x: Limbs, y: Limbs) -> Limbs:
    """x[i] * y[i], all in Montgomery form."""
    x, y = _vector(field, x), _vector(field, y)
    if len(x) != len(y):
        raise CuzkError(f"a product of vectors of {len(x)} and {len(y)} elements; expected as many")
    out = np.empty_like(x)
    jit.load("vector", field.name).multiply(x, y, out, len(x))
    return out


def to_montgomery(field: Field, x: Limbs) -> Limbs:
    """Plain limbs to Montgomery form."""
    x = _vector(field, x)
    out = np.empty_like(x)
    jit.load("vector", field.name).into_montgomery(x, out, len(x))
    return out


def from_montgomery(field: Field, x: Limbs) -> Limbs:
    """Montgomery form to plain limbs."""
    x = _vector(field, x)
    out = np.empty_like(x)
    jit.load("vector", field.name).out_of_montgomery(x, out, len(x))
    return out


def batch_inverse(field: Field, x: Limbs) -> Limbs:
    """1/x[i] in Montgomery form, 0 for 0, with one inversion for all."""
    x = _vector(field, x)
    out = np.empty_like(x)
    jit.load("vector", field.name).batch_inverse(x, out, len(x))
    return out
