"""Between Python ints and numpy limb arrays, and into and out of Montgomery form, on the host.

An element in memory is `field.limbs` little-endian 32-bit limbs: byte for byte what snarkjs, blst and
sppark store, so key files are mapped, not parsed. Arrays are uint32[..., L]; the last axis is one
element. Bulk work on big arrays belongs to the backends; these helpers serve tests, file headers,
JSON and notebooks, at about a microsecond an element.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuzk.errors import CuzkError
from cuzk.field.params import Field

Limbs = NDArray[np.uint32]


def ints_to_limbs(values: Iterable[int], limbs: int) -> Limbs:
    """uint32[n, limbs], little-endian limbs of non-negative ints; CuzkError when one does not fit."""
    size = 4 * limbs
    try:
        data = b"".join(v.to_bytes(size, "little") for v in values)
    except OverflowError as error:
        raise CuzkError(f"an integer is negative or needs more than {limbs} limbs of 32 bits") from error
    return np.frombuffer(bytearray(data), dtype="<u4").reshape(-1, limbs)


def limbs_to_ints(array: Limbs) -> list[int]:
    """The inverse: uint32[..., L], flattened over the leading axes, as a list of ints."""
    array = np.ascontiguousarray(array, dtype="<u4")
    size = 4 * array.shape[-1]
    data = array.tobytes()
    return [int.from_bytes(data[i : i + size], "little") for i in range(0, len(data), size)]


def encode(field: Field, values: Any) -> Limbs:
    """Ints (one, or nested sequences of them), reduced mod p, as Montgomery limbs uint32[..., L]."""
    ints = np.asarray(values, dtype=object)
    flat = [v * field.r % field.modulus for v in ints.reshape(-1)]
    return ints_to_limbs(flat, field.limbs).reshape(*ints.shape, field.limbs)


def decode(field: Field, array: Limbs) -> Any:
    """Montgomery limbs uint32[..., L] as ints in nested lists of shape [...] (one int for one element)."""
    array = np.asarray(array)
    factor, p = field.r_inverse, field.modulus
    flat = np.empty(int(np.prod(array.shape[:-1], dtype=np.int64)), dtype=object)
    flat[:] = [v * factor % p for v in limbs_to_ints(array)]
    return flat.reshape(array.shape[:-1]).tolist()


def encode_canonical(field: Field, values: Sequence[int]) -> Limbs:
    """Ints reduced mod p as plain limbs uint32[n, L], not Montgomery: what an MSM takes as scalars."""
    return ints_to_limbs([v % field.modulus for v in values], field.limbs)


def decode_canonical(array: Limbs) -> list[int]:
    """Plain limbs uint32[n, L] as ints; the same as `limbs_to_ints`, named for its twin."""
    return limbs_to_ints(array)


def random_elements(field: Field, n: int, rng: np.random.Generator | None = None) -> Limbs:
    """uint32[n, L], uniform below p as limbs, in either form (uniform stays uniform in Montgomery form).

    rng: a numpy Generator for repeatable tests; without it the bits come from `secrets`.
    """
    # 128 surplus bits make the reduction's bias smaller than 2^-128
    size = field.bytes + 16
    data = secrets.token_bytes(size * n) if rng is None else rng.bytes(size * n)
    return ints_to_limbs(
        (int.from_bytes(data[i * size : (i + 1) * size], "little") % field.modulus for i in range(n)), field.limbs
    )


CHUNK = 1 << 20  # elements looked at in one go: some ten MiB of temporaries


def first_not_below(values: np.ndarray, modulus: int) -> int | None:
    """Index of the first of uint32[n, L] little-endian numbers that is >= modulus; None when there is none.

    Looks at the top limb alone, and at the others only of the few elements whose top limb equals the modulus's.
    Works in pieces, so a map of any size needs little memory.
    """
    limbs = values.shape[1]
    wanted = [(modulus >> (32 * i)) & 0xFFFFFFFF for i in range(limbs)]
    for start in range(0, len(values), CHUNK):
        piece = values[start : start + CHUNK]
        top = piece[:, -1]
        if not len(piece) or top.max() < wanted[-1]:
            continue
        bad = top > wanted[-1]
        equal = np.flatnonzero(top == wanted[-1])
        for i in reversed(range(limbs - 1)):
            column = piece[equal, i]
            bad[equal[column > wanted[i]]] = True
            equal = equal[column == wanted[i]]
        bad[equal] = True  # equal in every limb
        if bad.any():
            return start + int(np.argmax(bad))
    return None


def scalar_not_below(field: Field, index: int) -> CuzkError:
    """The error for a scalar of an MSM that `first_not_below`, or a kernel, has found."""
    return CuzkError(f"msm: scalar {index} is not below {field}'s modulus (is it in Montgomery form?)")
