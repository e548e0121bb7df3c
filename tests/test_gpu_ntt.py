"""The NTT on a card: equal to the CPU's in every order, and to closed forms where no oracle is fast enough."""

from __future__ import annotations

import itertools
import random
from typing import Any

import numpy as np
import pytest

import cuzk
from cuzk.field.host import Limbs, decode, ints_to_limbs, limbs_to_ints, random_elements
from cuzk.field.params import BLS12_381, BN254, Field
from cuzk.gpu import vectors
from cuzk.gpu.array import DeviceArray, empty, to_device
from cuzk.gpu.device import device
from cuzk.gpu.transform import ORDERS, Powers, Tables, plan_ntt, tables_of, transform
from cuzk.ntt import naive
from field_samples import edge_values

pytestmark = pytest.mark.gpu

SHIFT = 7
every_scalar_field = pytest.mark.parametrize("field", [BN254.fr, BLS12_381.fr], ids=str)
CASES = [*itertools.product(ORDERS, [False, True], [1, SHIFT])]


def samples(field: Field, n: int, seed: int = 0) -> Limbs:
    values = random_elements(field, n, np.random.default_rng(n + seed))
    edges = ints_to_limbs(edge_values(field), field.limbs)[:n]
    values[np.random.default_rng(seed).permutation(n)[: len(edges)]] = edges
    return values


def reversal(n: int) -> np.ndarray:
    """The places of 0 .. n - 1 with their bits in the opposite order."""
    flip = np.zeros(n, np.int64)
    for bit in range(n.bit_length() - 1):
        flip = flip << 1 | (np.arange(n) >> bit & 1)
    return flip


def on_cpu(field: Field, x: Limbs, order: str, **options: Any) -> Limbs:
    flip = reversal(len(x))
    out: Limbs = cuzk.ntt(field, x[flip] if order == "from_reversed" else x, backend="cpu", **options)
    return out[flip] if order == "to_reversed" else out


@pytest.mark.parametrize("log_n", range(7))
@every_scalar_field
def test_small_ones_equal_the_definition(field: Field, log_n: int) -> None:
    values = samples(field, 1 << log_n)
    expected = naive(field, limbs_to_ints(values), field.root_of_unity(log_n), SHIFT)
    assert limbs_to_ints(cuzk.ntt(field, values, coset=SHIFT, backend="cuda")) == expected


@pytest.mark.parametrize("log_n", [*range(15), 16, 18, 19, 20])
@every_scalar_field
def test_every_order_equals_the_cpu(field: Field, log_n: int) -> None:
    values = samples(field, 1 << log_n)
    with to_device(values) as x:
        for order, inverse, shift in CASES if log_n < 19 else [CASES[3], CASES[5], CASES[10]]:
            expected = on_cpu(field, values, order, inverse=inverse, coset=shift)
            with transform(field, x, order=order, inverse=inverse, coset=shift) as out:
                assert (out.numpy() == expected).all(), (order, inverse, shift)
        assert (x.numpy() == values).all(), "the input was written to"


@pytest.mark.parametrize("rows", [1, 2, 3, 5, 7, 8, 9, 10])
@pytest.mark.parametrize("columns", [0, 1, 2, 3])
def test_passes_of_every_shape(rows: int, columns: int) -> None:
    field, log_n = BLS12_381.fr, 13
    values = samples(field, 1 << log_n)
    expected = on_cpu(field, values, "to_reversed", coset=SHIFT)
    for threads in (32, 96, 256):
        plan = plan_ntt(log_n, 1, 1, rows=rows, columns=columns, threads=threads)
        with to_device(values) as x:
            transform(field, x, order="to_reversed", coset=SHIFT, out=x, plan=plan)
            assert (x.numpy() == expected).all()
            transform(field, x, order="from_reversed", inverse=True, coset=SHIFT, out=x, plan=plan)
            assert (x.numpy() == values).all()


@pytest.mark.parametrize(("log_n", "batch"), [(0, 5), (1, 70000), (4, 1000), (10, 33), (12, 3), (15, 4)])
@pytest.mark.parametrize("order", ORDERS)
def test_several_at_once_equal_one_after_another(order: Any, log_n: int, batch: int) -> None:
    field = BN254.fr
    if order == "natural" and batch > 1000:
        batch = 100  # each is put in order by a launch of its own
    limbs = random_elements(field, batch << log_n, np.random.default_rng(1)).reshape(batch, 1 << log_n, -1)
    with to_device(limbs) as x, transform(field, x, order=order, coset=SHIFT) as out:
        found = out.numpy()
        for k in {0, 1, batch // 2, batch - 1}:
            with to_device(limbs[k]) as y, transform(field, y, order=order, coset=SHIFT) as one:
                assert (found[k] == one.numpy()).all()


@pytest.mark.parametrize("log_n", [21, 22, 23, 24, 25, 26, 27, 28])
@every_scalar_field
def test_large_ones_equal_a_closed_form(field: Field, log_n: int) -> None:
    """The values of sum_j g^j x^j are ((g x)^n - 1) / (g x - 1); and the inverse gives the coefficients back."""
    n, p, g = 1 << log_n, field.modulus, 3
    gpu = device()
    if gpu.memory()[0] < 7 * n * field.bytes:
        pytest.skip(f"{gpu.name} has too little free memory for 2^{log_n}")
    w = field.root_of_unity(log_n)
    rng = random.Random(log_n)
    places = [0, 1, n // 2, n - 1, *(rng.randrange(n) for _ in range(30))]

    def value(out: DeviceArray, place: int) -> int:
        row = np.empty(field.limbs, np.uint32)
        out.stream.dtoh(row, out.address + field.bytes * place)
        found: int = decode(field, row)
        return found

    with vectors.powers(field, g, n) as x:
        transform(field, x, order="to_reversed", coset=SHIFT, out=x)
        for place in places:
            point = g * SHIFT * pow(w, int(f"{place:0{log_n}b}"[::-1], 2), p)
            assert value(x, place) == (pow(g * SHIFT, n, p) - 1) * pow(point - 1, -1, p) % p
        transform(field, x, order="from_reversed", inverse=True, coset=SHIFT, out=x)
        for place in places:
            assert value(x, place) == pow(g, place, p)
    tables_of(gpu).clear()


def test_arrays_of_other_libraries_are_transformed_where_they_lie() -> None:
    torch = pytest.importorskip("torch")
    field = BN254.fr
    values = samples(field, 1 << 10)
    x = torch.from_numpy(values.view(np.int64)).cuda()
    out = cuzk.ntt(field, x, coset=SHIFT)
    assert isinstance(out, DeviceArray)
    expected = cuzk.ntt(field, values, coset=SHIFT, backend="cpu")
    assert (torch.as_tensor(out, device="cuda").cpu().numpy().view(np.uint32) == expected).all()
    transform(field, x, coset=SHIFT, out=x)
    torch.cuda.synchronize()
    assert (x.cpu().numpy().view(np.uint32) == expected).all()


def test_streams_share_tables_and_wait_for_them() -> None:
    """A table is built in one stream and used by others at once; evicted ones are freed only after their last use."""
    field, log_n, gpu = BLS12_381.fr, 16, device()
    values = samples(field, 1 << log_n)
    expected = on_cpu(field, values, "to_reversed", coset=SHIFT)
    tables = tables_of(gpu)
    tables.clear()
    streams = [gpu.stream() for _ in range(4)]
    before = tables.limit
    try:
        for limit in (before, 0):
            tables.limit = limit
            arrays = [to_device(values, stream=stream) for stream in streams]
            for _ in range(5):
                results = [transform(field, x, order="to_reversed", coset=SHIFT) for x in arrays]
                for out in results:
                    assert (out.numpy() == expected).all()
        assert tables.nbytes == 0
    finally:
        tables.limit = before


def test_memory_comes_back() -> None:
    field, gpu = BN254.fr, device()
    tables_of(gpu).clear()
    gpu.synchronize()
    before = gpu.memory()[0]
    with empty((1 << 16, field.limbs)) as x:
        vectors.powers(field, 3, 1 << 16, out=x)
        with transform(field, x, coset=SHIFT):
            pass
    tables_of(gpu).clear()
    gpu.synchronize()
    assert gpu.memory()[0] == before


def test_tables_that_do_not_fit_are_told() -> None:
    gpu = device()
    tables = Tables(gpu)
    key = Powers(BN254.fr, 3, 1, 40)
    with pytest.raises(cuzk.CuzkError, match="of device memory asked for"), tables.use(gpu.default_stream, [key]):
        pass
    assert tables.nbytes == 0
