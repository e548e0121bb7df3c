"""The number-theoretic transform: a polynomial's values at the powers of a root of unity, and back.

This file plans (passes, tiles, twiddle tables) and orders the work; the loops are in `cpu/ntt_jobs.py`.

Cost of n = 2^m values: n (m/2 - 1) products and n m additions, over all cores. Arrays beyond the second-level
cache are read once for each pass of TILE_LOG - 4 stages.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np

from cuzk.backend import resolve_for
from cuzk.cpu import jit, pool
from cuzk.errors import CuzkError
from cuzk.field.domain import check_root, check_shift, check_size
from cuzk.field.host import Limbs, encode, first_not_below, ints_to_limbs
from cuzk.field.params import Field

TILE_LOG = 12  # values of a tile: 128 KiB at 256 bits, a part of the smallest second-level caches (256 KiB)
COLUMNS_LOG = 4  # adjacent values of a strided tile's row: eight cache lines
PARALLEL_LOG = 10  # from 2^10 values (about 0.2 ms of work) threads pay
TABLE_BYTES = 1 << 28  # twiddle tables kept for the next transform


def ntt(
    field: Field,
    values: Any,
    *,
    inverse: bool = False,
    coset: int | None = None,
    root: int | None = None,
    backend: str = "auto",
) -> Any:
    """The transform of n values, n a power of two up to 2^two_adicity, both orders natural; a new array.

    Forward, coefficients c_j become the values sum_j c_j (g w^i)^j for i = 0 .. n - 1; `inverse` undoes that,
    the factor 1/n included.

    values: uint32[n, L], each below the modulus, in Montgomery form or plain: the transform is linear, so the
        result is in the form of the input. An array in a GPU's memory (`DeviceArray`, or another library's) gives a
        `DeviceArray`; nobody looks whether its values are below the modulus, and nothing waits for the GPU.
    coset: the shift g, an ordinary integer, not 0 modulo p; 1 where it is None.
    root: w, a primitive n-th root of unity as an ordinary integer; `field.root_of_unity(log2 n)` where it is
        None, which is snarkjs's choice (see there).
    backend: "cpu", "cuda", or "auto": "cuda" where there is a GPU or the values lie on one. `gpu.transform.transform`
        offers other orders, several polynomials at once, and results in place.
    Raises CuzkError for a length that is no power of two or too large, another type or number of limbs, a value
    that is not below the modulus, a root of another order, and a shift of 0.
    """
    if resolve_for(backend, values) == "cuda":
        return _on_gpu(field, values, inverse, coset, root)
    values, log_n = _check(field, values)
    n = 1 << log_n
    root = check_root(field, log_n, root)
    shift = check_shift(field, coset)
    library = jit.load("ntt", field.name)
    bad = library.first_not_below(values, field.limbs, n, ints_to_limbs([field.modulus], field.limbs))
    if bad >= 0:
        raise _value_not_below(field, bad)

    table = twiddles(field, log_n, root)
    out = np.empty_like(values)
    if not inverse:
        scaling, factor = (2, 1) if shift != 1 else (0, 1)
    elif shift == 1:
        scaling, factor = 1, pow(n, -1, field.modulus)
    else:
        scaling, factor = 0, 1

    def permute(start: int, stop: int) -> None:
        factors = encode(field, [factor * pow(shift, start, field.modulus), shift])
        library.permute(values, out, log_n, start, stop, factors, scaling)

    _in_ranges(n, permute)
    from_reversed(field, [out], table, inverse=inverse)
    if inverse and shift != 1:
        step = pow(shift, -1, field.modulus)
        base = pow(n, -1, field.modulus)

        def scale(start: int, stop: int) -> None:
            library.scale(out, start, stop, encode(field, [base * pow(step, start, field.modulus), step]))

        _in_ranges(n, scale)
    return out


def _on_gpu(field: Field, values: Any, inverse: bool, coset: int | None, root: int | None) -> Any:
    from cuzk.gpu.array import is_device, to_device
    from cuzk.gpu.transform import transform

    if is_device(values):
        return transform(field, values, inverse=inverse, coset=coset, root=root)
    values, _ = _check(field, values)
    bad = first_not_below(values, field.modulus)
    if bad is not None:
        raise _value_not_below(field, bad)
    with to_device(values) as x, transform(field, x, inverse=inverse, coset=coset, root=root) as out:
        return out.numpy()


def _value_not_below(field: Field, index: int) -> CuzkError:
    return CuzkError(f"ntt: value {index} is not below the modulus of {field}")


def naive(field: Field, values: Sequence[int], root: int, shift: int = 1) -> list[int]:
    """The definition, on ints: n^2 products. Judges the fast one."""
    p = field.modulus
    points = [shift * pow(root, i, p) % p for i in range(len(values))]
    return [sum(c * pow(x, j, p) for j, c in enumerate(values)) % p for x in points]


# --- in place, for the prover --------------------------------------------------------------------------


@dataclass(frozen=True)
class Pass:
    """`log_rows` consecutive stages over an array: in contiguous blocks (stride 1) or in strided tiles."""

    log_stride: int
    log_rows: int
    log_columns: int

    @property
    def log_tile(self) -> int:
        return self.log_rows + self.log_columns


@lru_cache(maxsize=256)
def passes(log_n: int, log_tasks: int) -> tuple[Pass, ...]:
    """The passes of a transform in the order natural -> reversed, the last of contiguous blocks.

    log_tasks: blocks are made so small that there are at least 2^log_tasks of them, where n allows it.
    """
    block = max(0, min(TILE_LOG, log_n - log_tasks))
    left = log_n - block  # stages before the last pass
    steps = -(-left // (TILE_LOG - COLUMNS_LOG))
    result, stride = [], log_n
    for i in range(steps):
        rows = left * (i + 1) // steps - left * i // steps
        stride -= rows
        # no wider than the rows are, nor so wide that there are too few tiles
        columns = max(0, min(COLUMNS_LOG, stride, log_n - rows - log_tasks))
        result.append(Pass(stride, rows, columns))
    return (*result, Pass(0, block, 0))


def plan(log_n: int, arrays: int) -> tuple[Pass, ...]:
    """The passes for `arrays` transforms of 2^log_n values at once on this machine's cores."""
    cores = jit.core_count()
    if cores == 1 or log_n < PARALLEL_LOG:
        return passes(log_n, 0)
    tasks = -(-2 * cores // arrays)
    return passes(log_n, (tasks - 1).bit_length())


def to_reversed(field: Field, arrays: Sequence[Limbs], table: Limbs, *, inverse: bool = False) -> None:
    """Transform each array in place, natural order in and bit-reversed out, without the factor 1/n.

    arrays: uint32[n, L], contiguous, reduced. table: `twiddles(field, log2 n, w)`, or that of a finer root w'
    with w'^(2^k) = w; `inverse` takes 1/w.
    """
    log_n = len(arrays[0]).bit_length() - 1
    for step in plan(log_n, len(arrays)):
        _run_pass(field, arrays, table, step, "to_reversed", inverse)


def from_reversed(field: Field, arrays: Sequence[Limbs], table: Limbs, *, inverse: bool = False) -> None:
    """The same with bit-reversed order in and natural out."""
    log_n = len(arrays[0]).bit_length() - 1
    for step in reversed(plan(log_n, len(arrays))):
        _run_pass(field, arrays, table, step, "from_reversed", inverse)


def shift_to_odd_coset(field: Field, arrays: Sequence[Limbs], table: Limbs) -> None:
    """Replace values at the powers of w = v^2 by n times the values at v w^i, in place, both orders natural.

    table: `twiddles(field, log2 n + 1, v)`, uint32[n, L]: its first half are the twiddles of w, and the whole is
    the powers of v in bit-reversed order, by which coefficients are scaled. Both transforms work in blocks
    where they meet, and no array is reversed.
    """
    log_n = len(arrays[0]).bit_length() - 1
    *outer, inner = plan(log_n, len(arrays))
    for step in outer:
        _run_pass(field, arrays, table, step, "to_reversed", True)
    library = jit.load("ntt", field.name)
    blocks = 1 << (log_n - inner.log_rows)

    def convolve(array: Limbs, start: int, stop: int) -> None:
        library.convolve_blocks(array, inner.log_rows, start, stop, table, table)

    _run(partial(convolve, array, *part) for array in arrays for part in _parts(blocks, log_n, len(arrays)))
    for step in reversed(outer):
        _run_pass(field, arrays, table, step, "from_reversed", False)


def _run_pass(field: Field, arrays: Sequence[Limbs], table: Limbs, step: Pass, direction: str, inverse: bool) -> None:
    log_n = len(arrays[0]).bit_length() - 1
    library = jit.load("ntt", field.name)
    contiguous = getattr(library, f"blocks_{direction}")
    strided = getattr(library, f"strided_{direction}")

    def work(array: Limbs, start: int, stop: int) -> None:
        if step.log_stride == 0:
            contiguous(array, step.log_rows, start, stop, table, inverse)
        else:
            tile = np.empty((1 << step.log_tile, field.limbs), np.uint32)
            strided(array, step.log_stride, step.log_rows, 1 << step.log_columns, start, stop, table, inverse, tile)

    parts = _parts(1 << (log_n - step.log_tile), log_n, len(arrays))
    _run(partial(work, array, *part) for array in arrays for part in parts)


def _parts(items: int, log_n: int, arrays: int) -> list[tuple[int, int]]:
    """Ranges of tiles: enough for every core to have two tasks, so that a slow one can be made up for."""
    cores = jit.core_count()
    return pool.split(items, 1 if cores == 1 or log_n < PARALLEL_LOG else -(-2 * cores // arrays))


def _run(tasks: Iterator[Callable[[], object]]) -> None:
    listed = list(tasks)
    if len(listed) == 1:
        listed[0]()
    else:
        pool.run(listed)


def _in_ranges(n: int, work: Callable[[int, int], None]) -> None:
    _run(partial(work, *part) for part in _parts(n, n.bit_length() - 1, 1))


# --- twiddles ------------------------------------------------------------------------------------------

_tables: OrderedDict[tuple[str, int, int], Limbs] = OrderedDict()
_tables_lock = threading.Lock()


def twiddles(field: Field, log_n: int, root: int) -> Limbs:
    """uint32[max(n/2, 1), L], Montgomery: root^(bit reversal of i) for a primitive n-th root of unity.

    Kept for the next call up to TABLE_BYTES of them, the latest used; read-only.
    """
    key = (field.name, log_n, root)
    with _tables_lock:
        if key in _tables:
            _tables.move_to_end(key)
            return _tables[key]
    table = _build_table(field, log_n, root)
    with _tables_lock:
        _tables[key] = table
        while _tables and sum(t.nbytes for t in _tables.values()) > TABLE_BYTES:
            _tables.popitem(last=False)
    return table


def _build_table(field: Field, log_n: int, root: int) -> Limbs:
    """By doubling: entry 2^k is root^(n / 2^(k + 2)), and entry 2^k + j is the product of entries 2^k and j."""
    half = max(1, (1 << log_n) >> 1)
    table = np.empty((half, field.limbs), np.uint32)
    table[0] = encode(field, 1)
    power = root
    for k in reversed(range(log_n - 1)):
        table[1 << k] = encode(field, power)
        power = power * power % field.modulus
    library = jit.load("ntt", field.name)
    for k in range(1, log_n - 1):
        size = 1 << k
        parts = _parts(size - 1, k, 1)
        _run(partial(library.extend_table, table, size, start + 1, stop + 1) for start, stop in parts)
    table.flags.writeable = False
    return table


# --- checks --------------------------------------------------------------------------------------------


def _check(field: Field, values: Any) -> tuple[Limbs, int]:
    values = np.asarray(values)
    if values.dtype != np.uint32 or values.ndim != 2 or values.shape[1] != field.limbs:
        raise CuzkError(
            f"ntt: values are {values.dtype}{list(values.shape)}, expected uint32[n, {field.limbs}] for {field}"
        )
    return np.ascontiguousarray(values), check_size(field, len(values))
