"""The quotient polynomial's scalars, as snarkjs has them: a b - c on the odd coset.

With A(X), B(X), C(X) the polynomials whose values at the n-th roots of unity w^i are the rows a_i, b_i, c_i:

1. rows      a = A w and b = B w from the key's coefficients, c = a b row by row (snarkjs stores no C);
2. coset     the values of A, B, C at v w^i, v = w_2n a 2n-th root of unity with v^2 = w: six transforms;
3. quotient  q_i = A(v w^i) B(v w^i) - C(v w^i).

The key's h points are L_i(tau)/delta for the Lagrange polynomials of all 2n roots at the odd ones, where X^n - 1
is the constant -2: so no division is needed. Source: snarkjs, groth16_prove.js (buildABC1, joinABC).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from cuzk.cpu import jit, pool
from cuzk.errors import CuzkError
from cuzk.field.host import Limbs, encode, ints_to_limbs
from cuzk.groth16.key import ProvingKey, Witness, coefficient_dtype
from cuzk.ntt import shift_to_odd_coset, twiddles

CHUNK = 1 << 14  # coefficients whose least and greatest row are noted together
SMALL = 1 << 10  # rows below which threads do not pay


def quotient_scalars(key: ProvingKey, witness: Witness, on_phase: Callable[[str, float], None] | None = None) -> Limbs:
    """uint32[n, L], plain (not Montgomery): the scalars of the MSM with the key's h points, n the domain size.

    on_phase: called as on_phase("quotient", share done) after each step.
    Needs memory for three polynomials and a table of n values. Raises CuzkError for a domain without a 2n-th
    root of unity, a witness of another length, and a coefficient whose matrix, row or column is out of range.
    """
    field, n = key.curve.fr, key.domain_size
    report = on_phase or (lambda name, share: None)
    log_n = n.bit_length() - 1
    if n != 1 << log_n:
        raise CuzkError(f"{key.path or 'the key'}: the domain size is {n}, expected a power of two")
    if log_n + 1 > field.two_adicity:
        raise CuzkError(
            f"{key.path or 'the key'}: the domain size is 2^{log_n}, and the quotient needs a root of unity of twice "
            f"that order: {field} has them up to 2^{field.two_adicity}, so expected at most 2^{field.two_adicity - 1}"
        )
    a, b, c = constraint_rows(key, witness)
    report("quotient", 0.2)
    shift_to_odd_coset(field, [a, b, c], twiddles(field, log_n + 1, field.root_of_unity(log_n + 1)))
    report("quotient", 0.95)
    # the transforms left a factor n: (na nb - n nc)/n^2; a product with plain n^-2 leaves Montgomery form as well
    factors = np.concatenate([encode(field, [n]), ints_to_limbs([pow(n, -2, field.modulus)], field.limbs)])
    library = jit.load("r1cs", field.name)
    _in_rows(n, lambda first, last: library.quotient(a, b, c, first, last, factors))
    report("quotient", 1.0)
    return a


def constraint_rows(key: ProvingKey, witness: Witness) -> tuple[Limbs, Limbs, Limbs]:
    """(a, b, c), each uint32[n, L], Montgomery: the constraint rows at the witness, c = a b."""
    field, n = key.curve.fr, key.domain_size
    library = jit.load("r1cs", field.name)
    entries, values = key.coefficients, witness.values
    if entries.dtype != coefficient_dtype(key.curve) or not entries.flags.c_contiguous:
        raise CuzkError(f"{key.path or 'the key'}: coefficients are {entries.dtype}, expected packed entries")
    if values.dtype != np.uint32 or values.shape != (key.n_vars, field.limbs):
        raise CuzkError(
            f"{witness.path or 'the witness'}: values are {values.dtype}{list(values.shape)}, "
            f"expected uint32[{key.n_vars}, {field.limbs}]"
        )
    values = np.ascontiguousarray(values)
    limbs, count = field.limbs, len(entries)
    bounds = np.zeros((-(-count // CHUNK), 2), np.int64)

    def note_bounds(chunk: int) -> None:
        start = chunk * CHUNK
        stop = min(start + CHUNK, count)
        _refuse(key, library.row_bounds(entries, limbs, start, stop, n, key.n_vars, bounds[chunk]))

    # Entries may come in any order. Each range of rows is one task's, so nothing is written by two; it
    # reads those chunks only that have a row in its range, which are few where the file is in order.
    pool.run(partial(note_bounds, chunk) for chunk in range(len(bounds)))
    a, b = np.zeros((n, limbs), np.uint32), np.zeros((n, limbs), np.uint32)
    c = np.empty((n, limbs), np.uint32)

    def evaluate(first: int, last: int) -> None:
        for chunk in np.flatnonzero((bounds[:, 0] < last) & (bounds[:, 1] >= first)).tolist():
            start = chunk * CHUNK
            stop = min(start + CHUNK, count)
            bad = library.evaluate(entries, limbs, start, stop, first, last, key.n_vars, values, a, b)
            _refuse(key, bad)
        library.multiply_rows(a, b, c, first, last)

    _in_rows(n, evaluate)
    return a, b, c


def _refuse(key: ProvingKey, bad: int) -> None:
    if bad < 0:
        return
    entry = key.coefficients[bad]
    raise CuzkError(
        f"{key.path or 'the key'}: coefficient {bad} has matrix {entry['matrix']}, row {entry['row']}, column "
        f"{entry['column']}; expected matrix 0 or 1, row below {key.domain_size}, column below {key.n_vars}"
    )


def _in_rows(n: int, work: Callable[[int, int], object]) -> None:
    if n < SMALL:
        work(0, n)
    else:
        pool.run(partial(work, *part) for part in pool.split(n, 4 * jit.core_count()))
