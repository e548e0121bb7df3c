"""Constraint rows and the quotient, against their definitions on ints."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuzk.cpu import jit
from cuzk.errors import CuzkError
from cuzk.field.host import decode, encode_canonical, ints_to_limbs, limbs_to_ints
from cuzk.field.params import CURVES, Curve
from cuzk.formats import load_wtns, load_zkey
from cuzk.groth16 import quotient
from cuzk.groth16.key import ProvingKey, Witness, coefficient_dtype
from cuzk.groth16.quotient import constraint_rows, quotient_scalars
from helpers import CASES, EXAMPLE, needs_cases

every_curve = pytest.mark.parametrize("curve", CURVES.values(), ids=repr)
Entry = tuple[int, int, int, int]  # matrix, row, column, value


def make_key(curve: Curve, n: int, n_vars: int, entries: list[Entry]) -> ProvingKey:
    """A key with coefficients and no points: all that the quotient reads."""
    g1, g2 = (np.zeros(g.point_shape, np.uint32) for g in (curve.g1, curve.g2))
    none1, none2 = (np.zeros((0, *g.point_shape), np.uint32) for g in (curve.g1, curve.g2))
    coefficients = np.zeros(len(entries), coefficient_dtype(curve))
    for i, (matrix, row, column, value) in enumerate(entries):
        limbs = ints_to_limbs([value * curve.fr.r2 % curve.fr.modulus], curve.fr.limbs)
        coefficients[i] = (matrix, row, column, limbs[0])
    return ProvingKey(
        curve, n_vars, 0, n, "snarkjs", g1, g1, g1, g2, g2, g2, none1, none1, none1, none2, none1, none1, coefficients
    )


def make_witness(curve: Curve, values: list[int]) -> Witness:
    return Witness(curve, encode_canonical(curve.fr, values))


def random_circuit(curve: Curve, n: int, n_vars: int, count: int, seed: int) -> tuple[list[Entry], list[int]]:
    rng = random.Random(seed)
    p = curve.fr.modulus
    entries = [
        (rng.randrange(2), rng.randrange(n), rng.randrange(n_vars), rng.choice([1, p - 1, rng.randrange(p)]))
        for _ in range(count)
    ]
    return entries, [1] + [rng.choice([0, 1, p - 1, rng.randrange(p)]) for _ in range(n_vars - 1)]


def rows_by_definition(curve: Curve, n: int, entries: list[Entry], witness: list[int]) -> list[list[int]]:
    p = curve.fr.modulus
    rows = [[0] * n, [0] * n]
    for matrix, row, column, value in entries:
        rows[matrix][row] = (rows[matrix][row] + value * witness[column]) % p
    return [*rows, [a * b % p for a, b in zip(*rows, strict=True)]]


def quotient_by_definition(curve: Curve, rows: list[list[int]]) -> list[int]:
    """a b - c at the odd powers of the 2n-th root, the polynomials by Lagrange interpolation."""
    p, n = curve.fr.modulus, len(rows[0])
    v = curve.fr.root_of_unity(n.bit_length())
    roots = [pow(v, 2 * i, p) for i in range(n)]

    def value(values: list[int], x: int) -> int:
        # sum of values[i] * w^i (x^n - 1) / (n (x - w^i))
        scale = (pow(x, n, p) - 1) * pow(n, -1, p)
        return sum(y * w * scale * pow(x - w, -1, p) for y, w in zip(values, roots, strict=True)) % p

    points = [v * w % p for w in roots]
    return [(value(rows[0], x) * value(rows[1], x) - value(rows[2], x)) % p for x in points]


# --- against the definitions -------------------------------------------------------------------------


@every_curve
@given(data=st.data())
def test_rows(curve: Curve, data: st.DataObject) -> None:
    """Any entries in any order: empty rows, repeated places, coefficients 0, values 0."""
    n, n_vars = 1 << data.draw(st.integers(0, 4)), data.draw(st.integers(1, 8))
    number = st.one_of(st.sampled_from([0, 1, curve.fr.modulus - 1]), st.integers(0, curve.fr.modulus - 1))
    entry = st.tuples(st.integers(0, 1), st.integers(0, n - 1), st.integers(0, n_vars - 1), number)
    entries = data.draw(st.lists(entry, max_size=30))
    witness = data.draw(st.lists(number, min_size=n_vars, max_size=n_vars))
    got = constraint_rows(make_key(curve, n, n_vars, entries), make_witness(curve, witness))
    assert [decode(curve.fr, x) for x in got] == rows_by_definition(curve, n, entries, witness)


@every_curve
@pytest.mark.parametrize("log_n", [0, 1, 2, 5])
def test_quotient(curve: Curve, log_n: int) -> None:
    n = 1 << log_n
    entries, witness = random_circuit(curve, n, 7, 6 * n, seed=log_n)
    key = make_key(curve, n, 7, entries)
    rows = rows_by_definition(curve, n, entries, witness)
    assert limbs_to_ints(quotient_scalars(key, make_witness(curve, witness))) == quotient_by_definition(curve, rows)


@every_curve
def test_quotient_divides(curve: Curve) -> None:
    """(A B - C)/(X^n - 1) has degree n - 2: the values on the coset, over -2, interpolate to such a polynomial."""
    from cuzk.ntt import ntt

    n, p = 64, curve.fr.modulus
    entries, witness = random_circuit(curve, n, 20, 300, seed=1)
    values = quotient_scalars(make_key(curve, n, 20, entries), make_witness(curve, witness))
    assert values.any()
    v = curve.fr.root_of_unity(7)
    h = limbs_to_ints(ntt(curve.fr, values, inverse=True, coset=v))
    assert h[-1] == 0
    # and it is the quotient: at a point elsewhere, A B - C = H (X^n - 1)
    x = 123456789
    roots = [pow(v, 2 * i, p) for i in range(n)]
    scale = (pow(x, n, p) - 1) * pow(n, -1, p)
    a, b, c = (
        sum(y * w * scale * pow(x - w, -1, p) for y, w in zip(row, roots, strict=True)) % p
        for row in rows_by_definition(curve, n, entries, witness)
    )
    at_x = sum(c * pow(x, i, p) for i, c in enumerate(h)) * pow(-2, -1, p)
    assert (a * b - c) % p == at_x * (pow(x, n, p) - 1) % p


@pytest.mark.parametrize("threads", ["1", "3"])
def test_threads_and_chunks_change_nothing(threads: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Entries of all rows in all chunks, so that every task reads every chunk."""
    curve, n, n_vars = CURVES["bn254"], 256, 50
    entries, witness = random_circuit(curve, n, n_vars, 2000, seed=3)
    monkeypatch.setattr(quotient, "CHUNK", 64)
    monkeypatch.setattr(quotient, "SMALL", 16)
    monkeypatch.setenv("CUZK_THREADS", threads)
    got = constraint_rows(make_key(curve, n, n_vars, entries), make_witness(curve, witness))
    assert [decode(curve.fr, x) for x in got] == rows_by_definition(curve, n, entries, witness)


def test_order_of_the_coefficients_does_not_matter() -> None:
    key, witness = load_zkey(EXAMPLE / "chain.zkey"), load_wtns(EXAMPLE / "chain.wtns")
    expected = quotient_scalars(key, witness)
    shuffled = np.random.default_rng(1).permutation(key.coefficients)
    np.testing.assert_array_equal(quotient_scalars(replace(key, coefficients=shuffled), witness), expected)


@needs_cases
@pytest.mark.parametrize(
    "name", ["bn254/rs1000", "bn254/semaphore20", "bn254/unirep_epochKeyLite", "bls12381/chain12", "bls12381/chain8"]
)
def test_real_rows_are_those_of_the_file(name: str) -> None:
    """Rows drawn from a real key, recomputed from the mapped entries as they lie in the file."""
    key, witness = load_zkey(CASES / f"{name}.zkey"), load_wtns(CASES / f"{name}.wtns")
    fr = key.curve.fr
    got = constraint_rows(key, witness)
    for row in random.Random(name).sample(range(key.domain_size), 20):
        mine = key.coefficients[key.coefficients["row"] == row]
        sums = [0, 0]
        for entry in mine:
            (value,), (w,) = limbs_to_ints(entry["value"]), limbs_to_ints(witness.values[entry["column"]])
            sums[entry["matrix"]] += value * fr.r_inverse**2 * w
        a, b = (x % fr.modulus for x in sums)
        assert [decode(fr, x[row]) for x in got] == [a, b, a * b % fr.modulus]


def test_progress_is_reported() -> None:
    curve = CURVES["bn254"]
    entries, witness = random_circuit(curve, 8, 4, 20, seed=5)
    seen: list[tuple[str, float]] = []
    quotient_scalars(make_key(curve, 8, 4, entries), make_witness(curve, witness), lambda *x: seen.append(x))
    assert {name for name, _ in seen} == {"quotient"}
    shares = [share for _, share in seen]
    assert shares == sorted(shares)
    assert shares[-1] == 1.0


# --- inputs ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("matrix", 2, "matrix 2"),
        ("row", 8, "row 8"),
        ("row", 2**32 - 1, "row 4294967295"),
        ("column", 4, "column 4"),
        ("column", 2**31, "column 2147483648"),
    ],
)
def test_indices_out_of_range_are_refused(field: str, value: int, message: str) -> None:
    curve = CURVES["bn254"]
    entries, witness = random_circuit(curve, 8, 4, 20, seed=6)
    key = make_key(curve, 8, 4, entries)
    key.coefficients[13][field] = value
    with pytest.raises(CuzkError, match=f"coefficient 13 has .*{message}.*row below 8, column below 4"):
        quotient_scalars(key, make_witness(curve, witness))


def test_the_job_itself_never_leaves_its_arrays() -> None:
    """Even a file that changes between the first reading and the second cannot make it write elsewhere."""
    curve = CURVES["bn254"]
    key = make_key(curve, 8, 4, [(0, 3, 1, 5), (1, 9, 1, 5), (0, 3, 4, 5), (2, 3, 1, 5)])
    library = jit.load("r1cs", curve.fr.name)
    witness = make_witness(curve, [1, 2, 3, 4]).values

    def run(start: int, stop: int) -> tuple[int, list[int]]:
        a, b = np.zeros((8, 8), np.uint32), np.zeros((8, 8), np.uint32)
        bad = library.evaluate(key.coefficients, 8, start, stop, 0, 8, 4, witness, a, b)
        return bad, decode(curve.fr, a) + decode(curve.fr, b)

    expected = [0, 0, 0, 10, 0, 0, 0, 0] + [0] * 8
    assert run(0, 2) == (-1, expected)  # the row beyond the range is passed over
    assert run(0, 3) == (2, expected)  # column 4 of 4
    assert run(3, 4) == (3, [0] * 16)  # matrix 2


@every_curve
def test_a_domain_without_a_root_of_twice_its_order_is_refused(curve: Curve) -> None:
    adicity = curve.fr.two_adicity
    key = make_key(curve, 1 << adicity, 1, [])
    with pytest.raises(CuzkError, match=rf"2\^{adicity}.*at most 2\^{adicity - 1}"):
        quotient_scalars(key, make_witness(curve, [1]))


def test_shapes_that_do_not_fit_are_refused() -> None:
    curve = CURVES["bn254"]
    key = make_key(curve, 8, 4, [(0, 0, 0, 1)])
    with pytest.raises(CuzkError, match=r"uint32\[3, 8\], expected uint32\[4, 8\]"):
        quotient_scalars(key, make_witness(curve, [1, 2, 3]))
    with pytest.raises(CuzkError, match="domain size is 6"):
        quotient_scalars(make_key(curve, 6, 4, []), make_witness(curve, [1, 2, 3, 4]))
    loose = np.zeros(2, np.dtype([("matrix", "<u4"), ("row", "<u4"), ("column", "<u4")]))
    with pytest.raises(CuzkError, match="expected packed entries"):
        quotient_scalars(replace(key, coefficients=loose), make_witness(curve, [1, 2, 3, 4]))


def test_no_coefficients_at_all() -> None:
    curve = CURVES["bls12_381"]
    result = quotient_scalars(make_key(curve, 16, 2, []), make_witness(curve, [1, 5]))
    assert result.shape == (16, 8)
    assert not result.any()
