"""The NTT against its definition, and every way of cutting it up against every other."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuzk.cpu import jit
from cuzk.errors import BackendError, CuzkError
from cuzk.field.host import Limbs, decode, encode, ints_to_limbs, limbs_to_ints, random_elements
from cuzk.field.params import BLS12_381, BN254, Field
from cuzk.ntt import from_reversed, naive, ntt, passes, shift_to_odd_coset, to_reversed, twiddles

module = importlib.import_module("cuzk.ntt")  # `cuzk.ntt` itself is the function
SCALAR_FIELDS = [BN254.fr, BLS12_381.fr]
every_field = pytest.mark.parametrize("field", SCALAR_FIELDS, ids=repr)


def sample(field: Field, n: int, seed: int = 0) -> Limbs:
    return random_elements(field, n, np.random.default_rng(seed))


def evaluate(field: Field, coefficients: list[int], x: int) -> int:
    value = 0
    for c in reversed(coefficients):
        value = (value * x + c) % field.modulus
    return value


def reversed_order(array: Limbs) -> Limbs:
    bits = len(array).bit_length() - 1
    return array[[int(f"{i:0{bits}b}"[::-1], 2) if bits else 0 for i in range(len(array))]]


@pytest.fixture
def small_tiles(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Tiles of eight values in rows of two: sizes that are quick to check take several strided passes."""
    monkeypatch.setattr(module, "TILE_LOG", 3)
    monkeypatch.setattr(module, "COLUMNS_LOG", 1)
    monkeypatch.setattr(module, "PARALLEL_LOG", 4)
    passes.cache_clear()
    yield
    passes.cache_clear()


# --- the definition ----------------------------------------------------------------------------------


@every_field
@pytest.mark.parametrize("log_n", range(7))
@pytest.mark.parametrize("coset", [None, 7])
def test_equals_the_definition(field: Field, log_n: int, coset: int | None) -> None:
    n = 1 << log_n
    values = sample(field, n)
    expected = naive(field, limbs_to_ints(values), field.root_of_unity(log_n), coset or 1)
    assert limbs_to_ints(ntt(field, values, coset=coset)) == expected


@every_field
@pytest.mark.parametrize("log_n", [0, 1, 2, 5, 9, 10, 11, 12, 13, 16])
@pytest.mark.parametrize("coset", [None, 7])
def test_inverse_undoes_it(field: Field, log_n: int, coset: int | None) -> None:
    values = sample(field, 1 << log_n)
    transformed = ntt(field, values, coset=coset)
    np.testing.assert_array_equal(ntt(field, transformed, coset=coset, inverse=True), values)
    np.testing.assert_array_equal(ntt(field, ntt(field, values, coset=coset, inverse=True), coset=coset), values)


@every_field
@pytest.mark.parametrize("log_n", [8, 12, 13, 15])
def test_large_sizes_at_chosen_points(field: Field, log_n: int) -> None:
    """A few results by Horner's rule, for sizes that the definition would take too long for."""
    n = 1 << log_n
    values = sample(field, n)
    coefficients = limbs_to_ints(values)
    result = ntt(field, values, coset=5)
    for i in (0, 1, 2, n // 2 - 1, n // 2, n - 1, 12345 % n):
        x = 5 * pow(field.root_of_unity(log_n), i, field.modulus) % field.modulus
        assert limbs_to_ints(result[i : i + 1]) == [evaluate(field, coefficients, x)]


@every_field
@given(data=st.data())
def test_product_of_transforms_is_the_transform_of_the_product(field: Field, data: st.DataObject) -> None:
    p = field.modulus
    n = 1 << data.draw(st.integers(1, 6))
    number = st.integers(0, p - 1)
    a, b = (data.draw(st.lists(number, min_size=n // 2, max_size=n // 2)) for _ in range(2))
    c = [0] * n
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            c[i + j] = (c[i + j] + x * y) % p
    fa, fb, fc = (decode(field, ntt(field, encode(field, v + [0] * (n - len(v))))) for v in (a, b, c))
    assert fc == [x * y % p for x, y in zip(fa, fb, strict=True)]


@every_field
def test_form_is_that_of_the_input(field: Field) -> None:
    values = list(range(1, 17))
    plain = limbs_to_ints(ntt(field, ints_to_limbs(values, field.limbs), coset=3))
    assert decode(field, ntt(field, encode(field, values), coset=3)) == plain


@every_field
def test_extreme_values(field: Field) -> None:
    """All p - 1, and a lone coefficient in each place."""
    p, n = field.modulus, 16
    root = field.root_of_unity(4)
    rows = [[p - 1] * n] + [[p - 1 if i == j else 0 for i in range(n)] for j in range(n)]
    for row in rows:
        assert limbs_to_ints(ntt(field, ints_to_limbs(row, field.limbs))) == naive(field, row, root)


def test_roots_of_both_conventions() -> None:
    field, n = BLS12_381.fr, 32
    values = sample(field, n)
    bellman = field.root_of_unity(5, field.generator)
    assert bellman != field.root_of_unity(5)
    assert limbs_to_ints(ntt(field, values, root=bellman)) == naive(field, limbs_to_ints(values), bellman)
    back = ntt(field, ntt(field, values, root=bellman), root=bellman, inverse=True)
    np.testing.assert_array_equal(back, values)
    # any primitive root will do, an inverse too
    inverse_root = pow(bellman, -1, field.modulus)
    assert limbs_to_ints(ntt(field, values, root=inverse_root)) == naive(field, limbs_to_ints(values), inverse_root)


def test_any_prime_field_with_roots() -> None:
    field = BN254.fp  # two-adicity 1: sizes 1 and 2
    assert limbs_to_ints(ntt(field, ints_to_limbs([5, 3], 8))) == [8, 2]


# --- cutting it up -----------------------------------------------------------------------------------


@pytest.mark.parametrize("log_n", range(0, 29))
@pytest.mark.parametrize("log_tasks", [0, 1, 3, 7])
def test_passes_cover_each_stage_once(log_n: int, log_tasks: int) -> None:
    steps = passes(log_n, log_tasks)
    assert sum(step.log_rows for step in steps) == log_n
    stride = log_n
    for step in steps:
        stride -= step.log_rows
        assert step.log_stride == stride
        assert step.log_columns <= stride or step.log_columns == 0
        assert step.log_tile <= module.TILE_LOG
        if log_n >= 2 * log_tasks:
            assert log_n - step.log_tile >= log_tasks  # tiles for every task
    assert len(steps) <= 1 + -(-log_n // (module.TILE_LOG - module.COLUMNS_LOG))


@every_field
@pytest.mark.parametrize("threads", ["1", "2", "5"])
@pytest.mark.parametrize("log_n", range(0, 12))
def test_every_cut_gives_the_same(
    field: Field, threads: str, log_n: int, small_tiles: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    n = 1 << log_n
    values = sample(field, n, seed=log_n)
    table = twiddles(field, log_n, field.root_of_unity(log_n))
    whole = values.copy()  # one block, one thread
    jit.load("ntt", field.name).blocks_to_reversed(whole, log_n, 0, 1, table, 0)
    monkeypatch.setenv("CUZK_THREADS", threads)
    cut = values.copy()
    to_reversed(field, [cut], table)
    np.testing.assert_array_equal(cut, whole)
    np.testing.assert_array_equal(ntt(field, values), reversed_order(whole))
    from_reversed(field, [cut], table, inverse=True)
    n_times = encode(field, [n * v for v in decode(field, values)])
    np.testing.assert_array_equal(cut, n_times)


@every_field
@pytest.mark.parametrize("log_n", [0, 1, 4, 7])
def test_orders_of_the_transforms_in_place(field: Field, log_n: int) -> None:
    values = sample(field, 1 << log_n)
    root = field.root_of_unity(log_n)
    table = twiddles(field, log_n, root)
    for inverse in (False, True):
        w = pow(root, -1, field.modulus) if inverse else root
        expected = ints_to_limbs(naive(field, limbs_to_ints(values), w), field.limbs)
        array = values.copy()
        to_reversed(field, [array], table, inverse=inverse)
        np.testing.assert_array_equal(array, reversed_order(expected))
        array = reversed_order(values)
        from_reversed(field, [array], table, inverse=inverse)
        np.testing.assert_array_equal(array, expected)


@every_field
@pytest.mark.parametrize("log_n", [0, 1, 3, 8, 11])
@pytest.mark.parametrize("cut", [False, True])
def test_shift_to_odd_coset(field: Field, log_n: int, cut: bool, request: pytest.FixtureRequest) -> None:
    if cut:
        request.getfixturevalue("small_tiles")
    n = 1 << log_n
    v = field.root_of_unity(log_n + 1)
    coefficients = [sample(field, n, seed) for seed in range(3)]
    arrays = [ntt(field, x) for x in coefficients]
    shift_to_odd_coset(field, arrays, twiddles(field, log_n + 1, v))
    for x, array in zip(coefficients, arrays, strict=True):
        expected = [n * y % field.modulus for y in limbs_to_ints(ntt(field, x, coset=v))]
        assert limbs_to_ints(array) == expected


@every_field
@pytest.mark.parametrize("log_n", [0, 1, 2, 3, 6, 12])
def test_twiddles_are_powers_in_reversed_order(field: Field, log_n: int) -> None:
    root = field.root_of_unity(log_n)
    table = twiddles(field, log_n, root)
    half = max(1, (1 << log_n) // 2)
    assert table.shape == (half, field.limbs)
    assert not table.flags.writeable
    powers = decode(field, reversed_order(table))
    assert powers == [pow(root, i, field.modulus) for i in range(half)]
    assert twiddles(field, log_n, root) is table


def test_tables_are_kept_within_a_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    field = BN254.fr
    module._tables.clear()
    monkeypatch.setattr(module, "TABLE_BYTES", 3 * 512 * field.bytes)
    tables = [twiddles(field, 10, pow(field.root_of_unity(10), k, field.modulus)) for k in (1, 3, 5)]
    assert twiddles(field, 10, field.root_of_unity(10)) is tables[0]  # now the latest used
    twiddles(field, 10, pow(field.root_of_unity(10), 7, field.modulus))
    assert len(module._tables) == 3
    assert twiddles(field, 10, field.root_of_unity(10)) is tables[0]
    assert twiddles(field, 10, pow(field.root_of_unity(10), 3, field.modulus)) is not tables[1]
    # larger than the whole budget: made, and not kept
    assert len(twiddles(field, 12, field.root_of_unity(12))) == 2048
    assert len(module._tables) == 0


# --- inputs ------------------------------------------------------------------------------------------


def test_input_is_left_alone_and_may_be_read_only_or_strided() -> None:
    field = BN254.fr
    values = sample(field, 64)
    before = values.copy()
    values.flags.writeable = False
    result = ntt(field, values)
    np.testing.assert_array_equal(values, before)
    strided = np.repeat(values, 2, axis=0)[::2]
    np.testing.assert_array_equal(ntt(field, strided), result)
    assert result.flags.writeable
    assert result.dtype == np.uint32


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.zeros((3, 8), np.uint32), "3 values, expected a power of two"),
        (np.zeros((0, 8), np.uint32), "0 values"),
        (np.zeros((4, 12), np.uint32), r"uint32\[4, 12\], expected uint32\[n, 8\]"),
        (np.zeros((4, 8), np.uint64), r"uint64\[4, 8\]"),
        (np.zeros(8, np.uint32), r"uint32\[8\]"),
        ([1, 2], r"int64\[2\]"),
        (np.broadcast_to(np.zeros(8, np.uint32), (2**29, 8)), r"2\^29 values, expected at most 2\^28"),
    ],
)
def test_wrong_arrays_are_refused(values: Any, message: str) -> None:
    with pytest.raises(CuzkError, match=message):
        ntt(BN254.fr, values)


def test_values_not_below_the_modulus_are_refused() -> None:
    field = BN254.fr
    p = field.modulus
    good = ints_to_limbs([p - 1, 0, p - 2, 1], 8)
    ntt(field, good)
    for value in (p, p + 1, 2**256 - 1, p + (1 << 224)):
        bad = good.copy()
        bad[2] = ints_to_limbs([value], 8)
        with pytest.raises(CuzkError, match="value 2 is not below"):
            ntt(field, bad)


def test_roots_of_another_order_are_refused() -> None:
    field = BN254.fr
    values = sample(field, 8)
    wrong = [0, 1, field.modulus - 1, field.root_of_unity(2), field.root_of_unity(4), 5]
    for root in wrong:
        with pytest.raises(CuzkError, match=r"not a primitive 2\^3-th root"):
            ntt(field, values, root=root)
    with pytest.raises(CuzkError, match=r"not a primitive 2\^0-th root"):
        ntt(field, values[:1], root=field.modulus - 1)
    np.testing.assert_array_equal(ntt(field, values[:1], root=1), values[:1])


def test_a_shift_of_zero_is_refused() -> None:
    field = BN254.fr
    for shift in (0, field.modulus):
        with pytest.raises(CuzkError, match="shift is 0"):
            ntt(field, sample(field, 4), coset=shift)
    values = sample(field, 4)
    np.testing.assert_array_equal(ntt(field, values, coset=1 + field.modulus), ntt(field, values))


def test_backend_is_checked() -> None:
    with pytest.raises(BackendError, match="unknown backend"):
        ntt(BN254.fr, sample(BN254.fr, 4), backend="tpu")
    np.testing.assert_array_equal(ntt(BN254.fr, sample(BN254.fr, 4), backend="cpu"), ntt(BN254.fr, sample(BN254.fr, 4)))
