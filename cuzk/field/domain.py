"""The domain of a transform, g w^i for i < n, as callers give it: checked, and as ordinary integers."""

from __future__ import annotations

from functools import lru_cache

from cuzk.errors import CuzkError
from cuzk.field.params import Field


def check_size(field: Field, n: int) -> int:
    """log2 n. Raises CuzkError where n is no power of two, or the field has no root of unity of that order."""
    if n == 0 or n & (n - 1):
        raise CuzkError(f"ntt: {n} values, expected a power of two")
    log_n = n.bit_length() - 1
    if log_n > field.two_adicity:
        raise CuzkError(f"ntt: 2^{log_n} values, expected at most 2^{field.two_adicity} for {field}")
    return log_n


@lru_cache(maxsize=256)  # a long power, tens of microseconds: more than starting a small transform on a GPU
def check_root(field: Field, log_n: int, root: int | None) -> int:
    """w reduced, the field's own where it is None. Raises CuzkError where its order is not 2^log_n."""
    if root is None:
        return field.root_of_unity(log_n)
    root %= field.modulus
    # of order 2^log_n exactly: half that power is -1
    if (root != 1) if log_n == 0 else pow(root, 1 << (log_n - 1), field.modulus) != field.modulus - 1:
        raise CuzkError(f"ntt: {root} is not a primitive 2^{log_n}-th root of unity in {field}")
    return root


def check_shift(field: Field, coset: int | None) -> int:
    """g reduced, 1 where it is None. Raises CuzkError for 0."""
    if coset is None:
        return 1
    if coset % field.modulus == 0:
        raise CuzkError("ntt: the coset's shift is 0, expected a non-zero element")
    return coset % field.modulus
