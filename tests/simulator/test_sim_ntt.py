"""The NTT kernels in the simulator: passes of every shape, every order, tables, and what is refused."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest

import cuzk
from cuzk.errors import BackendError, CuzkError
from cuzk.field.host import encode, ints_to_limbs, limbs_to_ints
from cuzk.field.params import BLS12_381, BN254, Field
from cuzk.gpu.array import DeviceArray, empty, to_device
from cuzk.gpu.device import device
from cuzk.gpu.transform import MAX_TILE, ORDERS, Nodes, Pass, Powers, Tables, plan_ntt, transform
from cuzk.kernels.ntt import swizzled
from cuzk.ntt import naive
from field_samples import edge_values

every_scalar_field = pytest.mark.parametrize("field", [BN254.fr, BLS12_381.fr], ids=str)
SHIFT = 7


def reversed_bits(i: int, log_n: int) -> int:
    return int(f"{i:0{log_n}b}"[::-1], 2) if log_n else 0


def samples(field: Field, n: int, seed: int = 0) -> list[int]:
    rng = random.Random(seed + n)
    edges = edge_values(field)
    rng.shuffle(edges)
    return [*edges, *(rng.randrange(field.modulus) for _ in range(n))][:n]


def model(field: Field, values: list[int], order: str, inverse: bool, shift: int, root: int) -> list[int]:
    """The definition, in the order that goes in and the one that comes out."""
    n, p = len(values), field.modulus
    log_n = n.bit_length() - 1
    flip = [reversed_bits(i, log_n) for i in range(n)]
    if order == "from_reversed":
        values = [values[i] for i in flip]
    if inverse:
        found = naive(field, values, pow(root, -1, p))
        found = [v * pow(n, -1, p) * pow(shift, -i, p) % p for i, v in enumerate(found)]
    else:
        found = naive(field, values, root, shift)
    return [found[i] for i in flip] if order == "to_reversed" else found


def small(log_n: int, rows: int, columns: int, threads: int = 4) -> tuple[Pass, ...]:
    """A plan for tiny tiles: a card without multiprocessors wants no small tiles for their sake."""
    return plan_ntt(log_n, 1, 0, rows=rows, columns=columns, threads=threads)


def upload(field: Field, values: list[int]) -> DeviceArray:
    return to_device(ints_to_limbs(values, field.limbs))


def download(x: DeviceArray) -> list[int]:
    return limbs_to_ints(x.numpy())


@pytest.mark.parametrize("log_n", range(6))
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(("inverse", "shift"), [*itertools.product([False, True], [1, SHIFT])])
@every_scalar_field
def test_every_order_direction_and_size(field: Field, inverse: bool, shift: int, order: str, log_n: int) -> None:
    values, root = samples(field, 1 << log_n), field.root_of_unity(log_n)
    plan = small(log_n, rows=2, columns=1, threads=2)
    with upload(field, values) as x:
        out = transform(field, x, order=order, inverse=inverse, coset=shift, plan=plan)
        assert download(out) == model(field, values, order, inverse, shift, root)
        assert download(x) == values, "the input was written to"


@pytest.mark.parametrize(("rows", "columns"), [(1, 0), (1, 1), (2, 2), (3, 0), (3, 1), (6, 0), (4, 2)])
@pytest.mark.parametrize("order", ["to_reversed", "from_reversed"])
def test_passes_of_every_shape(rows: int, columns: int, order: str) -> None:
    """Odd and even numbers of stages, strided and contiguous tiles, threads that do several butterflies or none."""
    field, log_n = BLS12_381.fr, 6
    values, root = samples(field, 1 << log_n), field.root_of_unity(log_n)
    for inverse, shift in [(False, 1), (order == "from_reversed", SHIFT)]:
        with upload(field, values) as x:
            transform(field, x, order=order, inverse=inverse, coset=shift, out=x, plan=small(log_n, rows, columns, 8))
            assert download(x) == model(field, values, order, inverse, shift, root)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("inverse", [False, True])
def test_several_polynomials_at_once_and_there_and_back(order: str, inverse: bool) -> None:
    field, log_n, batch = BN254.fr, 3, 3
    polynomials = [samples(field, 1 << log_n, seed) for seed in range(batch)]
    root = pow(field.root_of_unity(log_n), 3, field.modulus)
    limbs = ints_to_limbs([v for values in polynomials for v in values], field.limbs)
    with to_device(limbs.reshape(batch, 1 << log_n, -1)) as x:
        plan = small(log_n, 2, 1)
        out = transform(field, x, order=order, inverse=inverse, coset=SHIFT, root=root, plan=plan)
        expected = [model(field, values, order, inverse, SHIFT, root) for values in polynomials]
        assert download(out) == [v for values in expected for v in values]
        back = {"natural": "natural", "to_reversed": "from_reversed", "from_reversed": "to_reversed"}[order]
        transform(field, out, order=back, inverse=not inverse, coset=SHIFT, root=root, out=out, plan=plan)
        assert (out.numpy() == x.numpy()).all()
    with empty((0, 4, field.limbs)) as none:
        assert transform(field, none).shape == none.shape


@every_scalar_field
def test_the_public_call_on_both_kinds_of_memory(field: Field) -> None:
    values = samples(field, 8)
    limbs = ints_to_limbs(values, field.limbs)
    expected = model(field, values, "natural", False, SHIFT, field.root_of_unity(3))
    on_host = cuzk.ntt(field, limbs, coset=SHIFT, backend="cuda")
    assert isinstance(on_host, np.ndarray)
    assert limbs_to_ints(on_host) == expected
    with to_device(limbs) as x:
        found = cuzk.ntt(field, x, coset=SHIFT)
        assert isinstance(found, DeviceArray)
        assert download(found) == expected
        with pytest.raises(BackendError, match="lies in a GPU's memory"):
            cuzk.ntt(field, x, backend="cpu")


# --- plans and tables --------------------------------------------------------------------------------


@pytest.mark.parametrize("multiprocessors", [1, 40, 132])
@pytest.mark.parametrize("log_n", range(33))
def test_plans_do_every_stage_once_in_tiles_that_fit(log_n: int, multiprocessors: int) -> None:
    for batch in (1, 3, 1000):
        plan = plan_ntt(log_n, batch, multiprocessors)
        stride = log_n
        for step in plan:
            stride -= step.log_rows
            assert step.log_stride == stride
            assert 0 <= step.log_columns <= step.log_stride
            assert step.log_tile <= min(MAX_TILE, log_n)
            assert 1 <= step.threads <= 256
        assert stride == 0
    assert len(plan_ntt(27)) <= 3
    assert len(plan_ntt(28)) <= 3


@pytest.mark.parametrize(("rows", "columns", "threads"), [(0, 0, 32), (MAX_TILE, 0, 32), (4, -1, 32), (4, 0, 512)])
def test_plans_that_no_block_can_do_are_refused(rows: int, columns: int, threads: int) -> None:
    with pytest.raises(CuzkError, match="passes of"):
        plan_ntt(20, rows=rows, columns=columns, threads=threads)


def test_neighbouring_threads_use_different_banks() -> None:
    """16 bytes a thread and 8 threads at a time: each must have its own of the 8 groups of banks, in every step.

    A step's butterflies take e, e + q, e + 2q and e + 3q, q being a power of two, for threads that go through the
    rest of e in order; loads and stores go through e itself.
    """
    for log_tile in range(5, MAX_TILE + 1):
        for log_quarter in range(log_tile - 1):
            for quarter in range(4):
                for first in range(0, 1 << (log_tile - 2), 8):
                    places = []
                    for u in range(first, first + 8):
                        c = u >> log_quarter
                        e = (c << (log_quarter + 2)) + (u & ((1 << log_quarter) - 1))
                        places.append(swizzled(e + (quarter << log_quarter)))
                    assert _conflicts(places) == 1, (log_tile, log_quarter, quarter, first)
        for first in range(0, 1 << log_tile, 8):
            assert _conflicts([swizzled(e) for e in range(first, first + 8)]) == 1


def _conflicts(places: list[int]) -> int:
    """Accesses to the busiest group of banks, for the first 16 bytes of elements, as `field/vector.py` lays them."""
    banks = []
    for place in places:
        address = 32 * place
        banks.append(((address ^ ((address >> 3) & 16)) >> 4) & 7)
    return max(banks.count(bank) for bank in banks)


def test_swizzled_places_are_all_different() -> None:
    for log_tile in range(MAX_TILE + 1):
        assert sorted(swizzled(e) for e in range(1 << log_tile)) == list(range(1 << log_tile))


@every_scalar_field
def test_tables_hold_powers_in_reversed_order_and_nodes(field: Field) -> None:
    p, log_n = field.modulus, 3
    w, gpu = field.root_of_unity(log_n), device()
    tables = Tables(gpu)
    stream = gpu.default_stream

    def read(key: Powers | Nodes) -> list[int]:
        with tables.use(stream, [key]) as (place,):
            words = np.empty(key.nbytes // 4, np.uint32)
            stream.dtoh(words, place)
        return limbs_to_ints(words.reshape(-1, field.limbs))

    def montgomery(values: list[int]) -> list[int]:
        return limbs_to_ints(encode(field, values))

    twiddles = Powers(field, w, 1, log_n - 1)
    assert read(twiddles) == montgomery([pow(w, reversed_bits(i, log_n - 1), p) for i in range(4)])
    assert read(Powers(field, 5, 9, 3)) == montgomery([9 * pow(5, reversed_bits(i, 3), p) for i in range(8)])
    assert read(Powers(field, 1, 9, 0)) == montgomery([9])
    nodes = [pow(w, reversed_bits(b, 2), p) * pow(SHIFT, 8 >> (s + 1), p) for s in range(3) for b in range(1 << s)]
    assert read(Nodes(twiddles, SHIFT, log_n))[1:] == montgomery(nodes)


def test_tables_are_kept_up_to_a_limit_and_never_while_they_are_used() -> None:
    field, gpu = BN254.fr, device()
    stream = gpu.default_stream
    small_one, large, other = Powers(field, 3, 1, 1), Powers(field, 3, 1, 4), Powers(field, 5, 1, 4)
    tables = Tables(gpu, limit=large.nbytes)
    with tables.use(stream, [small_one]) as (first,):
        with tables.use(stream, [large]):
            assert tables.nbytes == small_one.nbytes + large.nbytes
        assert tables.nbytes == small_one.nbytes, "the one that is used stays, though it is older"
        with tables.use(stream, [small_one]) as (again,):
            assert again == first
    with tables.use(stream, [large]), tables.use(stream, [other]):
        assert tables.nbytes == small_one.nbytes + 2 * large.nbytes
    assert tables.nbytes == other.nbytes
    tables.clear()
    assert tables.nbytes == 0


def test_a_table_that_cannot_be_built_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    tables, stream = Tables(device()), device().default_stream

    def fail(*_: object) -> None:
        raise CuzkError("no")

    key = Powers(BN254.fr, 3, 1, 1)
    with monkeypatch.context() as patch:
        patch.setattr(Powers, "build", fail)
        with pytest.raises(CuzkError, match="no"), tables.use(stream, [key]):
            pass
    assert tables.nbytes == 0
    with tables.use(stream, [key]):
        assert tables.nbytes == key.nbytes


# --- refusals ----------------------------------------------------------------------------------------


def test_what_is_no_transform_is_refused() -> None:
    field = BLS12_381.fr
    with empty((4, 8)) as x, empty((3, 8)) as three, empty((4, 4)) as thin, empty((8, 8)) as out, empty(8) as flat:
        for bad, message in [(three, "3 values"), (thin, r"uint32\[4, 4\]"), (flat, r"uint32\[8\]")]:
            with pytest.raises(CuzkError, match=message):
                transform(field, bad)
        for options, message in [
            ({"order": "reversed"}, "order 'reversed', expected one of natural"),
            ({"coset": field.modulus}, "shift is 0"),
            ({"root": 1}, "not a primitive"),
            ({"out": out}, r"goes to uint32\[8, 8\]"),
            ({"plan": small(3, 2, 0)}, "3 stages, expected 2"),
        ]:
            with pytest.raises(CuzkError, match=message):
                transform(field, x, **options)  # type: ignore[arg-type]
    with pytest.raises(CuzkError, match="value 2 is not below"):
        cuzk.ntt(field, ints_to_limbs([0, 1, field.modulus, 3], 8), backend="cuda")
    with pytest.raises(CuzkError, match="float64"):
        cuzk.ntt(field, np.zeros((4, 8)), backend="cuda")


def test_results_are_not_written_over_a_part_of_the_input() -> None:
    field = BN254.fr
    with empty((12, 8)) as whole:
        first = DeviceArray(whole.gpu, whole.stream, whole, whole.address, (8, 8))
        second = DeviceArray(whole.gpu, whole.stream, whole, whole.address + 4 * 32, (8, 8))
        with pytest.raises(CuzkError, match="written over an input"):
            transform(field, first, out=second)
