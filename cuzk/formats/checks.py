"""The checks that read a file's content, or compare two files; the prover runs them before it starts.

They are vectorised and cost one pass over the memory that they look at, far less than any transform.
"""

from __future__ import annotations

from typing import NoReturn

import numpy as np

from cuzk.errors import CuzkError
from cuzk.field.host import CHUNK, first_not_below, limbs_to_ints
from cuzk.formats.binfile import WTNS, BinFile, show_prime
from cuzk.formats.zkey import locate_coefficients
from cuzk.groth16.key import ProvingKey, Witness


def check_pair(key: ProvingKey, witness: Witness) -> None:
    """CuzkError unless the witness is of the key's curve and length; the curve is compared first.

    Another circuit's witness of the same length passes: only the finished proof shows that.
    """
    key_name, witness_name = key.path or "the key", witness.path or "the witness"
    if key.curve != witness.curve:
        raise CuzkError(f"{key_name}: key is for {key.curve}, {witness_name}: witness for {witness.curve}")
    if key.n_vars != len(witness.values):
        raise CuzkError(
            f"{key_name}: key wants {key.n_vars} values, {witness_name}: witness has {len(witness.values)}: "
            "a witness of another circuit?"
        )


def check_witness(witness: Witness) -> None:
    """CuzkError unless every value is below r and the first is 1; names the value's index and its file offset."""
    r = witness.curve.fr.modulus
    index = first_not_below(witness.values, r)
    if index is not None:
        expected = f"expected less than r = {show_prime(r)} of {witness.curve}"
    elif limbs_to_ints(witness.values[:1]) != [1]:
        index, expected = 0, "expected 1"
    else:
        return
    (value,) = limbs_to_ints(witness.values[index])
    raise CuzkError(f"{witness.path or 'the witness'}: value {index}{_at(witness, index)} is {value}, {expected}")


def _at(witness: Witness, index: int) -> str:
    if witness.path is None:
        return ""
    try:
        offset = BinFile(witness.path, WTNS).section(2).offset
    except CuzkError:  # gone since it was mapped; the message does without the offset
        return ""
    return f" (section 2 at offset {offset + index * witness.curve.fr.bytes})"


def check_coefficients(key: ProvingKey) -> None:
    """CuzkError unless every entry's matrix is 0 or 1, its row in the domain, its column a variable, its value below r.

    The error names the entry's index and its file offset. Kernels index by row and column without checks,
    so this has to have passed before they run. Reads section 4 once.
    """
    entries = key.coefficients
    bounds = (
        ("matrix", 2, "0 (A) or 1 (B)"),
        ("row", key.domain_size, f"less than the domain size {key.domain_size}"),
        ("column", key.n_vars, f"less than n_vars {key.n_vars}"),
    )
    for start in range(0, len(entries), CHUNK):
        piece = entries[start : start + CHUNK]
        for name, bound, expected in bounds:
            column = piece[name]
            if column.max() >= bound:
                index = int(np.argmax(column >= bound))
                _bad_coefficient(key, start + index, f"its {name} is {column[index]}, expected {expected}")
    r = key.curve.fr.modulus
    bad = first_not_below(entries["value"], r)
    if bad is not None:
        (value,) = limbs_to_ints(entries["value"][bad])
        _bad_coefficient(key, bad, f"its value is {value}, expected less than r = {show_prime(r)}")


def _bad_coefficient(key: ProvingKey, index: int, message: str) -> NoReturn:
    begin = locate_coefficients(key.path)
    at = "" if begin is None else f" at offset {begin + index * key.coefficients.dtype.itemsize}"
    raise CuzkError(
        f"{key.path or 'the key'}: section 4 (coefficients): entry {index} of {len(key.coefficients)}{at}: {message}"
    )
