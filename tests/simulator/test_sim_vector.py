"""Vector kernels in the simulator, against Python ints: blocks of a few threads, runs that end early."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from cuzk.errors import CuzkError
from cuzk.field.element import Element
from cuzk.field.host import encode, ints_to_limbs, limbs_to_ints
from cuzk.field.params import BLS12_381, BN254, FIELDS, Field
from cuzk.field.prime import inv, inv_in_table
from cuzk.gpu import vectors
from cuzk.gpu.array import DeviceArray, as_device, empty, to_device
from cuzk.gpu.device import device
from cuzk.gpu.vectors import Vectors, power_table
from field_samples import edge_values

SCALAR_FIELDS = [BN254.fr, BLS12_381.fr]
GUARD = 0xA5A5A5A5  # what the simulator's fresh memory holds

every_scalar_field = pytest.mark.parametrize("field", SCALAR_FIELDS, ids=str)


def samples(field: Field, n: int, seed: int = 0) -> list[int]:
    """Montgomery forms as ints: edges first, then random."""
    rng = random.Random(n + seed)
    edges = edge_values(field)
    rng.shuffle(edges)
    return [*edges, *(rng.randrange(field.modulus) for _ in range(n))][:n]


def on_device(field: Field, values: list[int]) -> DeviceArray:
    return to_device(ints_to_limbs(values, field.limbs))


def guarded(field: Field, n: int) -> DeviceArray:
    """Room for n elements and one more, which nobody may write."""
    return empty((n + 1, field.limbs))


def judge(out: DeviceArray, expected: list[int]) -> None:
    found = out.numpy()
    assert limbs_to_ints(found[: len(expected)]) == expected
    if len(found) > len(expected):
        assert (found[len(expected) :] == GUARD).all()


OPERATIONS: list[tuple[str, int, Callable[..., int]]] = [
    ("add", 2, lambda f, a, b: a + b),
    ("subtract", 2, lambda f, a, b: a - b),
    ("multiply", 2, lambda f, a, b: a * b * f.r_inverse),
    ("square", 1, lambda f, a: a * a * f.r_inverse),
    ("to_montgomery", 1, lambda f, a: a * f.r),
    ("from_montgomery", 1, lambda f, a: a * f.r_inverse),
]


@pytest.mark.parametrize("field", FIELDS.values(), ids=str)
@pytest.mark.parametrize(("name", "arity", "model"), OPERATIONS, ids=[name for name, _, _ in OPERATIONS])
def test_operations_equal_python_ints(field: Field, name: str, arity: int, model: Callable[..., int]) -> None:
    n = 19
    operands = [samples(field, n, seed) for seed in range(arity)]
    arrays = [on_device(field, values) for values in operands]
    out = guarded(field, n)
    launcher = Vectors(field, device().default_stream, threads=8)
    getattr(launcher, name)(*(x.address for x in arrays), out.address, n)
    judge(out, [model(field, *row) % field.modulus for row in zip(*operands, strict=True)])
    for x, values in zip(arrays, operands, strict=True):
        judge(x, values)


@pytest.mark.parametrize(("name", "arity", "model"), OPERATIONS, ids=[name for name, _, _ in OPERATIONS])
def test_checked_operations_and_results_in_place(name: str, arity: int, model: Callable[..., int]) -> None:
    field, n = BN254.fr, 5
    operands = [samples(field, n, seed) for seed in range(arity)]
    expected = [model(field, *row) % field.modulus for row in zip(*operands, strict=True)]
    arrays = [on_device(field, values) for values in operands]
    operation = getattr(vectors, name)
    judge(operation(field, *arrays), expected)
    assert operation(field, *arrays, out=arrays[0]) is arrays[0]
    judge(arrays[0], expected)
    assert operation(field, *[empty((0, field.limbs))] * arity).shape == (0, field.limbs)


@every_scalar_field
def test_one_factor_for_all(field: Field) -> None:
    p, values = field.modulus, samples(field, 7)
    a, b, c = (samples(field, 7, seed) for seed in (1, 2, 3))
    x = on_device(field, values)
    places = [on_device(field, part) for part in (a, b, c)]
    for k in (0, 1, p - 1, p + 5, -3, 1234567):
        judge(vectors.scale(field, x, k), [v * k % p for v in values])
        rows = [(i * j * field.r_inverse - l) * k % p for i, j, l in zip(a, b, c, strict=True)]
        judge(vectors.quotient(field, *places, k), rows)
        judge(vectors.quotient(field, *places, k, plain=True), [v * field.r_inverse % p for v in rows])
    judge(vectors.quotient(field, *places, 9, out=places[0]), [
        (i * j * field.r_inverse - l) * 9 % p for i, j, l in zip(a, b, c, strict=True)
    ])  # fmt: skip


# n, threads, run: less than a block, blocks and runs that end early, exponents of several digits, one thread
@pytest.mark.parametrize(
    ("n", "threads", "run"), [(0, 4, 2), (1, 4, 2), (33, 4, 3), (37, 16, 1), (300, 2, 50), (5, 1, 2), (65, 32, 2)]
)
@every_scalar_field
def test_powers_of_a_generator(field: Field, n: int, threads: int, run: int) -> None:
    base, first = field.root_of_unity(12), 12345
    table, step = power_table(field, base, first, threads)
    place, out = to_device(table), guarded(field, n)
    Vectors(field, device().default_stream, threads=threads, run=run).powers(place.address, step, out.address, n)
    judge(out, limbs_to_ints(encode(field, [first * pow(base, i, field.modulus) for i in range(n)])) if n else [])


def test_tables_of_powers_hold_what_the_kernel_looks_for() -> None:
    field, base = BN254.fr, 7
    for threads in (1, 2, 16, 32, 128, 256):
        table, step = power_table(field, base, 3, threads)
        assert np.array_equal(table[step], encode(field, pow(base, threads, field.modulus)))
        assert np.array_equal(table[0], encode(field, 3))
        for place in range(8):
            for digit in range(1, 16):
                expected = encode(field, pow(base, digit << 4 * place, field.modulus))
                assert np.array_equal(table[1 + 16 * place + digit], expected)


def test_powers_as_they_are_cut_for_a_card() -> None:
    field = BLS12_381.fr
    judge(vectors.powers(field, -2, 5), limbs_to_ints(encode(field, [1, -2, 4, -8, 16])))
    judge(vectors.powers(field, 0, 3, first=6), limbs_to_ints(encode(field, [6, 0, 0])))
    assert vectors.powers(field, 3, 0).shape == (0, field.limbs)
    out = empty((4, field.limbs))
    assert vectors.powers(field, 3, 4, first=0, out=out) is out
    judge(out, [0] * 4)


@pytest.mark.parametrize(("n", "threads", "run"), [(0, 4, 2), (1, 2, 1), (13, 4, 2), (31, 8, 3), (8, 1, 4), (9, 4, 4)])
@every_scalar_field
def test_inverses_of_many(field: Field, n: int, threads: int, run: int) -> None:
    rng = random.Random(n)
    values = samples(field, n)
    for i in range(n):
        if rng.random() < 0.2:
            values[i] = 0
    x, out = on_device(field, values), guarded(field, n)
    Vectors(field, device().default_stream, threads=threads, run=run).invert(x.address, out.address, n)
    judge(out, [pow(v, -1, field.modulus) * field.r2 % field.modulus if v else 0 for v in values])
    judge(x, values)


@pytest.mark.parametrize(
    "values", [[0] * 9, [0] * 8 + [7], [1] * 9, [5] * 9], ids=["zeros", "one-hot", "ones", "equal"]
)
def test_inverses_of_alike(values: list[int]) -> None:
    field = BLS12_381.fp
    x, out = to_device(encode(field, values)), guarded(field, 9)
    Vectors(field, device().default_stream, threads=4, run=2).invert(x.address, out.address, 9)
    judge(out, limbs_to_ints(encode(field, [pow(v, -1, field.modulus) if v else 0 for v in values])))


@pytest.mark.parametrize("field", FIELDS.values(), ids=str)
def test_an_inversion_by_a_table_is_an_inversion(field: Field) -> None:
    for value in (0, 1, 2, field.modulus - 1, 0xDEADBEEF):
        x = Element.of(field, value)
        assert inv_in_table(x, [x] * 16) == inv(x)


@pytest.mark.parametrize("log_n", range(8))
@pytest.mark.parametrize("threads", [1, 4, 16, 256])
def test_bits_are_reversed(log_n: int, threads: int) -> None:
    field, n = BN254.fr, 1 << log_n
    x, out = on_device(field, list(range(n))), guarded(field, n)
    Vectors(field, device().default_stream, threads=threads).reverse_bits(x.address, out.address, log_n)
    judge(out, [int(f"{i:0{log_n}b}"[::-1], 2) if log_n else 0 for i in range(n)])


def test_bits_are_reversed_in_tiles_of_the_largest_kind() -> None:
    field, log_n = BLS12_381.fr, 9
    x = on_device(field, list(range(1 << log_n)))
    judge(vectors.reverse_bits(field, x), [int(f"{i:09b}"[::-1], 2) for i in range(1 << log_n)])
    assert vectors.reverse_bits(field, empty((0, 8))).shape == (0, 8)


def test_what_does_not_fit_is_refused() -> None:
    field = BN254.fr
    x = on_device(field, [1, 2, 3, 4])
    flat = as_device(device().upload(np.zeros(32, np.uint32)))

    def rows(first: int) -> DeviceArray:
        # three of x's four elements
        return DeviceArray(x.gpu, x.stream, x, x.address + first * field.bytes, (3, 8))

    cases: list[tuple[Callable[[], Any], str]] = [
        (lambda: vectors.multiply(field, x, on_device(field, [1, 2, 3])), r"multiply: an array uint32\[3, 8\] for Fr"),
        (lambda: vectors.add(field, flat, flat), r"uint32\[32\] for Fr\[bn254\], expected uint32\[32, 8\]"),
        (lambda: vectors.square(BLS12_381.fp, x), r"expected uint32\[4, 12\]"),
        (lambda: vectors.square(field, empty(())), r"expected uint32\[0, 8\]"),
        (lambda: vectors.square(field, x, out=empty((5, 8))), r"uint32\[5, 8\] for"),
        (lambda: vectors.square(field, np.zeros((4, 8), np.uint32)), "not an array in device memory"),
        (lambda: vectors.batch_inverse(field, x, out=x), "written over an input, expected memory of its own"),
        (lambda: vectors.reverse_bits(field, x, out=x), "reverse_bits: the result was to be written over"),
        (
            lambda: vectors.square(field, rows(1), out=rows(0)),
            "square: .* expected exactly there, or memory of its own",
        ),
        (lambda: vectors.add(field, rows(0), rows(1), out=rows(0)), "add: the result was to be written over an input"),
        (lambda: vectors.reverse_bits(field, on_device(field, [1, 2, 3])), "3 elements, expected a power of two"),
        (lambda: vectors.powers(field, 3, -1), "powers: -1 elements"),
        (lambda: vectors.powers(field, 3, (1 << 32) + 1), r"expected 0 to 2\^32"),
        (lambda: Vectors(field, x.stream, threads=3), "blocks of 3 threads"),
        (lambda: Vectors(field, x.stream, threads=512), "blocks of 512 threads"),
        (lambda: Vectors(field, x.stream, run=0), "runs of 0 elements"),
    ]
    for attempt, message in cases:
        with pytest.raises(CuzkError, match=message):
            attempt()


@pytest.mark.parametrize("log_n", range(29))
def test_runs_chosen_by_size_occupy_a_card(log_n: int) -> None:
    n = 1 << log_n
    for wanted, limits in ((132 * 4, vectors.POWERS_RUN), (132 * 3, vectors.INVERSE_RUN)):
        run = vectors._run(n, vectors.THREADS, wanted, limits)
        blocks = -(-n // (run * vectors.THREADS))
        assert limits[0] <= run <= limits[1]
        # no more blocks than run at once, unless runs are as long as they get; not half as many, unless as short
        assert blocks <= wanted or run == limits[1]
        assert blocks > wanted // 2 or run == limits[0]
