"""Jobs over a circuit's constraint rows: evaluating them at a witness, and the quotient's last step.

Entries are what section 4 of a .zkey holds, in place (`coefficient_dtype`): words matrix, row, column, then the
value's limbs, at any 4-byte address and in any order of rows.
"""

from __future__ import annotations

from typing import Any

from numba.core import types

from cuzk.field.element import element_type
from cuzk.field.params import FIELDS
from cuzk.field.vector import Vector, advance, reinterpret

HEADER_WORDS = 3  # matrix, row, column


def row_bounds(entries: Any, limbs: int, start: int, stop: int, rows: int, columns: int, bounds: Any) -> int:
    """bounds[0], bounds[1] = the least and the greatest row of entries start .. stop - 1 (start < stop).

    Returns the index of the first entry whose matrix, row or column is out of range, or -1.
    """
    size = HEADER_WORDS + limbs
    least, greatest = rows, -1
    for e in range(start, stop):
        row = types.int64(entries[e * size + 1])
        if entries[e * size] > 1 or row >= rows or types.int64(entries[e * size + 2]) >= columns:
            return e
        least = min(least, row)
        greatest = max(greatest, row)
    bounds[0] = least
    bounds[1] = greatest
    return -1


def evaluate(
    entries: Any, limbs: int, start: int, stop: int, first: int, last: int, columns: int, witness: Any, a: Any, b: Any
) -> int:
    """Add the entries start .. stop - 1 whose row is in first .. last - 1 to those rows of a and b.

    witness: plain; values are times R^2, so a and b are in Montgomery form. Returns the index of the first
    entry, among those, whose matrix or column is out of range, or -1.
    """
    size = HEADER_WORDS + limbs
    for e in range(start, stop):
        row = types.int64(entries[e * size + 1])
        if row < first or row >= last:
            continue
        matrix, column = entries[e * size], types.int64(entries[e * size + 2])
        if matrix > 1 or column >= columns:
            return e
        value = reinterpret(advance(entries, e * size + HEADER_WORDS), witness)
        term = value[0] * witness[column]
        if matrix == 0:
            a[row] = a[row] + term
        else:
            b[row] = b[row] + term
    return -1


def multiply_rows(a: Any, b: Any, c: Any, first: int, last: int) -> int:
    """c = a * b in rows first .. last - 1."""
    for row in range(first, last):
        c[row] = a[row] * b[row]
    return 0


def quotient(a: Any, b: Any, c: Any, first: int, last: int, factors: Any) -> int:
    """a = (a * b - c * factors[0]) * factors[1] in rows first .. last - 1."""
    n, scale = factors[0], factors[1]
    for row in range(first, last):
        a[row] = (a[row] * b[row] - c[row] * n) * scale
    return 0


def jobs(target: str) -> dict[str, Any]:
    """target: a field's name."""
    v, n, u32 = Vector(element_type(FIELDS[target])), types.int64, Vector(types.uint32)
    return {
        "row_bounds": (row_bounds, (u32, n, n, n, n, n, Vector(types.int64))),
        "evaluate": (evaluate, (u32, n, n, n, n, n, n, v, v, v)),
        "multiply_rows": (multiply_rows, (v, v, v, n, n)),
        "quotient": (quotient, (v, v, v, n, n, v)),
    }
