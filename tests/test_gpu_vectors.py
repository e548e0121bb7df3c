"""Vector kernels on a real card: Python ints judge small arrays whole, large ones at places and by identities."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest

from cuzk.errors import CuzkError
from cuzk.field.host import Limbs, decode, encode, ints_to_limbs, limbs_to_ints, random_elements
from cuzk.field.params import BLS12_381, BN254, FIELDS, Field
from cuzk.gpu import vectors
from cuzk.gpu.array import DeviceArray, to_device
from cuzk.gpu.device import device
from cuzk.gpu.vectors import Vectors
from field_samples import edge_values

pytestmark = pytest.mark.gpu
SCALAR_FIELDS = pytest.mark.parametrize("field", [BN254.fr, BLS12_381.fr], ids=str)
ALL_FIELDS = pytest.mark.parametrize("field", FIELDS.values(), ids=str)
LENGTHS = [0, 1, 31, 32, 33, 237, 256, 257, 1 << 10, 5003]

OPERATIONS: dict[str, tuple[int, Callable[..., int]]] = {
    "add": (2, lambda f, a, b: a + b),
    "subtract": (2, lambda f, a, b: a - b),
    "multiply": (2, lambda f, a, b: a * b * f.r_inverse),
    "square": (1, lambda f, a: a * a * f.r_inverse),
    "to_montgomery": (1, lambda f, a: a * f.r),
    "from_montgomery": (1, lambda f, a: a * f.r_inverse),
}


def samples(field: Field, n: int, seed: int) -> Limbs:
    """Edges and random values, each pair of edges in some place for two operands of different seeds."""
    values = random_elements(field, n, np.random.default_rng([n, seed]))
    edges = ints_to_limbs(edge_values(field), field.limbs)
    k = len(edges)
    i = np.arange(min(n, k * k))
    values[: len(i)] = edges[i // k if seed else i % k]
    return values


@ALL_FIELDS
@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("n", LENGTHS)
def test_operations_equal_python_ints(field: Field, name: str, n: int) -> None:
    arity, model = OPERATIONS[name]
    operands = [samples(field, n, seed) for seed in range(arity)]
    arrays = [to_device(values) for values in operands]
    found = getattr(vectors, name)(field, *arrays).numpy()
    rows = zip(*map(limbs_to_ints, operands), strict=True)
    assert limbs_to_ints(found) == [model(field, *row) % field.modulus for row in rows]
    for x, values in zip(arrays, operands, strict=True):
        assert np.array_equal(x.numpy(), values), "an input was written to"


@SCALAR_FIELDS
@pytest.mark.parametrize("n", [1, 33, 257, 1 << 10])
@pytest.mark.parametrize("factor", [0, 1, -1, 12345678901234567890])
def test_one_factor_for_all(field: Field, n: int, factor: int) -> None:
    p = field.modulus
    a, b, c = (samples(field, n, seed) for seed in range(3))
    x, y, z = map(to_device, (a, b, c))
    assert decode(field, vectors.scale(field, x, factor).numpy()) == [v * factor % p for v in decode(field, a)]
    rows = zip(decode(field, a), decode(field, b), decode(field, c), strict=True)
    expected = [(i * j - k) * factor % p for i, j, k in rows]
    assert decode(field, vectors.quotient(field, x, y, z, factor).numpy()) == expected
    assert limbs_to_ints(vectors.quotient(field, x, y, z, factor, plain=True).numpy()) == expected


@SCALAR_FIELDS
@pytest.mark.parametrize("n", [*LENGTHS, 1 << 20, (1 << 20) + 1, 3 << 20])
def test_powers_of_a_generator(field: Field, n: int) -> None:
    p, base, first = field.modulus, field.root_of_unity(28), 12345
    found = vectors.powers(field, base, n, first=first).numpy()
    assert found.shape == (n, field.limbs)
    rng = random.Random(n)
    for i in {*range(min(n, 300)), *(rng.randrange(n) for _ in range(200 if n else 0)), *([n - 1] if n else [])}:
        assert decode(field, found[i]) == first * pow(base, i, p) % p, i


@ALL_FIELDS
@pytest.mark.parametrize("n", [*LENGTHS, 1 << 16, (1 << 16) + 1, 1 << 20])
@pytest.mark.parametrize("zeros", [0.0, 0.2, 1.0])
def test_inverses_of_many(field: Field, n: int, zeros: float) -> None:
    values = random_elements(field, min(n, 5000), np.random.default_rng(n))
    values = np.resize(values, (n, field.limbs)) if n else values
    nothing = np.random.default_rng(n).random(n) < zeros
    values[nothing] = 0
    x = to_device(values)
    inverses = vectors.batch_inverse(field, x)
    product = vectors.multiply(field, x, inverses).numpy()
    expected = np.where(nothing[:, None], np.uint32(0), encode(field, 1)[None, :])
    assert np.array_equal(product, expected)
    found = inverses.numpy()
    assert not found[nothing].any()
    for i in range(0, n, max(1, n // 7)):
        assert decode(field, found[i]) == (0 if nothing[i] else pow(decode(field, values[i]), -1, field.modulus))


@pytest.mark.parametrize("log_n", [*range(14), 17, 20, 21])
def test_bits_are_reversed(log_n: int) -> None:
    field, n = BN254.fr, 1 << log_n
    values = np.zeros((n, field.limbs), np.uint32)
    values[:, 0] = np.arange(n)
    values[:, 7] = np.arange(n)[::-1]
    flip = np.zeros(n, np.int64)
    for bit in range(log_n):
        flip = flip << 1 | (np.arange(n) >> bit & 1)
    x = to_device(values)
    out = vectors.reverse_bits(field, x)
    assert np.array_equal(out.numpy(), values[flip])
    assert np.array_equal(vectors.reverse_bits(field, out).numpy(), values)


@pytest.mark.parametrize("threads", [1, 2, 32, 64, 128, 256])
@pytest.mark.parametrize("run", [1, 3, 64])
def test_work_cut_up_in_other_ways(threads: int, run: int) -> None:
    field, n = BLS12_381.fr, 1000
    values = random_elements(field, n, np.random.default_rng(1))
    x, out = to_device(values), to_device(np.zeros_like(values))
    launcher = Vectors(field, device().default_stream, threads=threads, run=run)
    launcher.invert(x.address, out.address, n)
    launcher.multiply(x.address, out.address, out.address, n)
    assert np.array_equal(out.numpy(), np.tile(encode(field, 1), (n, 1)))
    table, step = vectors.power_table(field, 3, 5, threads)
    place = to_device(table)
    launcher.powers(place.address, step, out.address, n)
    assert decode(field, out.numpy()) == [5 * pow(3, i, field.modulus) % field.modulus for i in range(n)]


def test_large_arrays_by_identities() -> None:
    """Indices beyond 2^31 bytes: sums, products and inverses that cancel."""
    field, n = BLS12_381.fr, (1 << 26) + 77
    gpu = device()
    if gpu.memory()[0] < 5 * n * field.bytes:
        pytest.skip(f"{gpu.name} has too little free memory")
    x, y = vectors.powers(field, 3, n), vectors.powers(field, 5, n, first=7)
    out = vectors.multiply(field, x, y)
    inverse = vectors.batch_inverse(field, y)
    vectors.multiply(field, out, inverse, out)
    vectors.subtract(field, out, x, out)
    assert not out.numpy().any()


def test_arrays_of_other_libraries_and_results_in_place() -> None:
    torch = pytest.importorskip("torch")
    field, n = BN254.fr, 1000
    values = samples(field, n, 1)
    x = torch.from_numpy(values.view(np.int32)).cuda()
    out = vectors.square(field, x, out=x)
    assert isinstance(out, DeviceArray)
    torch.cuda.synchronize()
    expected = [v * v * field.r_inverse % field.modulus for v in limbs_to_ints(values)]
    assert limbs_to_ints(x.cpu().numpy().view(np.uint32)) == expected
    with pytest.raises(CuzkError, match="expected memory of its own"):
        vectors.batch_inverse(field, x, out=x)
