"""Rates of field and point operations in registers, and the vector kernels."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import numpy as np
from gpu_measure import Record, milliseconds, wide
from measure import BenchError

from cuzk.curve import host
from cuzk.field.host import decode, encode
from cuzk.field.params import Field, Group
from cuzk.gpu import vectors
from cuzk.gpu.array import DeviceArray, empty, to_device
from cuzk.gpu.multiples import known_multiples

if TYPE_CHECKING:
    from gpu import Bench

ROUNDS = 2000  # dependent operations of one thread
CHECKED, CHECKED_ROUNDS = 64, 5  # threads or pairs, and operations of each, that are compared with Python ints
FIELD_SHAPES = [(256, blocks) for blocks in (2, 3, 4, 5, 6, 8)]  # threads of a block, blocks a multiprocessor
POINT_SHAPES = {"mixed_additions": [(128, 3), (256, 1), (256, 2), (384, 1)], "additions": [(128, 1), (128, 2)]}
TABLE_LOG = 20  # log2 of the points that mixed additions pick from: 192 MiB in G1 at 381 bits, more than the L2 cache
POINT_ROUNDS = 200
VECTOR_LOG = 24


def fields(bench: Bench, field: Field) -> None:
    library = bench.gpu.library("field_rates", field.name)
    kernels: dict[str, Any] = {
        "products": (library.products, lambda a, b, t, k: [a * pow(b, k, field.modulus)]),
        "squares": (library.squares, lambda a, b, t, k: [pow(a, 1 << k, field.modulus)]),
        "sums": (library.sums, lambda a, b, t, k: [a + k * b]),
        "butterflies": (library.butterflies, lambda a, b, t, k: _butterflies(field, a, b, t, k)),
    }
    most = max(threads * blocks for threads, blocks in FIELD_SHAPES) * bench.gpu.multiprocessors
    rng = random.Random(1)
    values = [rng.randrange(field.modulus) for _ in range(1 << 10)]
    with (
        to_device(np.resize(encode(field, values), (most + 2, field.limbs)), stream=bench.stream) as x,
        empty((2 * most, field.limbs), stream=bench.stream) as out,
    ):
        for name, (kernel, model) in kernels.items():
            label = f"{name} {field}"
            if not bench.wanted(label):
                continue
            bench.stream.launch(kernel, 1, CHECKED, x.address, out.address, CHECKED_ROUNDS)
            width = len(model(0, 0, 0, 0))
            found = decode(field, out.numpy()[: CHECKED * width])
            for i in range(CHECKED):
                expected = [v % field.modulus for v in model(*values[i : i + 3], CHECKED_ROUNDS)]
                if found[width * i : width * (i + 1)] != expected:
                    raise BenchError(f"{label}: thread {i} gives a wrong result")
            _rate(bench, label, kernel, (x.address, out.address, ROUNDS), FIELD_SHAPES, ROUNDS)


def _butterflies(field: Field, u: int, v: int, t: int, rounds: int) -> list[int]:
    for _ in range(rounds):
        w = v * t
        u, v = (u + w) % field.modulus, (u - w) % field.modulus
    return [u, v]


def points(bench: Bench, group: Group) -> None:
    labels = {"mixed_additions": f"mixed additions {group}", "additions": f"full additions {group}"}
    if not any(bench.wanted(label) for label in labels.values()):
        return
    library = bench.gpu.library("point_rates", group.name)
    shapes = POINT_SHAPES["mixed_additions"] + POINT_SHAPES["additions"]
    most = max(threads * blocks for threads, blocks in shapes) * bench.gpu.multiprocessors
    words = 2 * group.point_bytes // 4
    with (
        known_multiples(group, 1, 1, 1 << TABLE_LOG, stream=bench.stream) as table,
        empty((most + 1, words), stream=bench.stream) as sums,
        empty((most + 1, words), stream=bench.stream) as out,
    ):
        mask = len(table) - 1
        threads = CHECKED * group.degree
        bench.stream.launch(library.mixed_additions, 2, threads, table.address, sums.address, mask, CHECKED_ROUNDS)
        bench.stream.launch(library.additions, 1, threads, sums.address, out.address, CHECKED_ROUNDS)
        found, added = sums.numpy(), out.numpy()
        totals = [_scattered_sum(i, mask) for i in range(CHECKED + 1)]
        for i in range(0, CHECKED, 7):
            _check_point(group, found[i], totals[i], labels["mixed_additions"])
            _check_point(group, added[i], totals[i] + CHECKED_ROUNDS * totals[i + 1], labels["additions"])
        launches = {
            "mixed_additions": (table.address, sums.address, mask, POINT_ROUNDS),
            "additions": (sums.address, out.address, POINT_ROUNDS),
        }
        for kernel, label in labels.items():
            # two threads share a point of G2
            each = POINT_ROUNDS / group.degree
            _rate(bench, label, getattr(library, kernel), launches[kernel], POINT_SHAPES[kernel], each)


def _scattered_sum(i: int, mask: int) -> int:
    """The discrete logarithm of what thread i of `mixed_additions` adds up: point k of the table is k + 1."""
    place, total = i & mask, (i & mask) + 1
    for _ in range(CHECKED_ROUNDS):
        place = (place * 1664525 + 1013904223) & mask
        total += place + 1
    return total


def _rate(
    bench: Bench, label: str, kernel: Any, arguments: tuple[Any, ...], shapes: list[tuple[int, int]], each: float
) -> None:
    """The best of some launch shapes; each: operations of one thread."""
    if not bench.wanted(label):
        return
    records = []
    for threads, blocks in shapes:
        grid = blocks * bench.gpu.multiprocessors

        def work(grid: int = grid, threads: int = threads) -> None:
            bench.stream.launch(kernel, grid, threads, *arguments)

        times = milliseconds(bench.stream, work, bench.runs)
        shape = {"threads": threads, "blocks_per_multiprocessor": blocks}
        records.append(Record(label, None, "G/s", [grid * threads * each / t / 1e6 for t in times], facts=shape))
    bench.add(max(records, key=lambda record: record.median))


def _check_point(group: Group, xyzz: np.ndarray, multiple: int, label: str) -> None:
    """xyzz[8 or 16 * L] is `multiple` times the generator: x = X/ZZ, y = Y/ZZZ."""
    expected = host.multiply(group, multiple, group.generator)
    coordinates = decode(group.base, xyzz.reshape(4, group.degree, group.base.limbs))
    x, y, zz, zzz = (tuple(int(v) for v in c) for c in coordinates)
    if (
        expected is None
        or x != host.multiply_coordinates(group, expected[0], zz)
        or y != host.multiply_coordinates(group, expected[1], zzz)
    ):
        raise BenchError(f"{label}: a wrong result")


def _three_vectors(bench: Bench, field: Field) -> list[DeviceArray]:
    """Three vectors of powers."""
    return [vectors.powers(field, 3 + k, 1 << VECTOR_LOG, first=5 + k, stream=bench.stream) for k in range(3)]


def _check_vector(field: Field, found: DeviceArray, expected: Any, label: str) -> None:
    """A few elements, judged by Python ints; expected(i) is the value of element i."""
    rows = found.numpy()
    n = len(rows)
    for i in sorted({0, 1, 255, 256, n // 3, n - 2, n - 1}):
        value = decode(field, rows[i])
        if int(value) != expected(i) % field.modulus:
            raise BenchError(f"{label}: element {i} is {value}")


def vector_kernels(bench: Bench, field: Field) -> None:
    n, p = 1 << VECTOR_LOG, field.modulus
    if not any(bench.wanted(f"vector {name} {field}") for name in ("add", "multiply", "quotient", "powers", "invert")):
        return
    x, y, z = _three_vectors(bench, field)
    out = empty((n, field.limbs), stream=bench.stream)

    def value(k: int, i: int) -> int:
        return (5 + k) * pow(3 + k, i, p) % p

    size = field.bytes
    cases: dict[str, tuple[Any, Any, float, float]] = {
        "add": (lambda: vectors.add(field, x, y, out), lambda i: value(0, i) + value(1, i), 0, 3),
        "subtract": (lambda: vectors.subtract(field, x, y, out), lambda i: value(0, i) - value(1, i), 0, 3),
        "multiply": (lambda: vectors.multiply(field, x, y, out), lambda i: value(0, i) * value(1, i), 1, 3),
        "square": (lambda: vectors.square(field, x, out), lambda i: value(0, i) ** 2, 1, 2),
        "scale": (lambda: vectors.scale(field, x, 7, out), lambda i: value(0, i) * 7, 1, 2),
        "quotient": (
            lambda: vectors.quotient(field, x, y, z, 9, out),
            lambda i: (value(0, i) * value(1, i) - value(2, i)) * 9,
            2,
            4,
        ),
        "powers": (lambda: vectors.powers(field, 11, n, first=2, out=out), lambda i: 2 * pow(11, i, p), 1, 1),
        "invert": (lambda: vectors.batch_inverse(field, x, out), lambda i: pow(value(0, i), -1, p), 3, 2),
        "reverse bits": (
            lambda: vectors.reverse_bits(field, x, out),
            lambda i: value(0, int(f"{i:0{VECTOR_LOG}b}"[::-1], 2)),
            0,
            2,
        ),
    }
    try:
        for name, (work, expected, products, moved) in cases.items():
            label = f"vector {name} {field}"
            if bench.wanted(label):
                work()
                _check_vector(field, out, expected, label)
                times = milliseconds(bench.stream, work, bench.runs)
                bench.add(Record(label, VECTOR_LOG, "ms", times, n * wide(field, products), n * moved * size))
    finally:
        for array in (x, y, z, out):
            array.close()
