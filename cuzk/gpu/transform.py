"""The NTT on the device: passes, tables, and the order of the work. Nothing here waits for the device.

    with to_device(coefficients) as x:
        values = transform(field, x, order="to_reversed", out=x)

The passes are those of `kernels/ntt.py`; the tables are built on the device and kept for the next transform.

Cost of n = 2^m values: n m / 2 products, and in each of the ceil((m - 1) / 9) passes n values read and written; the
passes of all but the first stages read tables of about as much again as a pass in all.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from cuzk.errors import CuzkError
from cuzk.field.domain import check_root, check_shift, check_size
from cuzk.field.host import encode
from cuzk.field.params import Field
from cuzk.gpu.array import DeviceArray, as_device, empty
from cuzk.gpu.vectors import Vectors

Order = Literal["natural", "to_reversed", "from_reversed"]
ORDERS = ("natural", "to_reversed", "from_reversed")

# as in kernels/ntt.py, whose import would bring numba's
THREADS = 256
CONSTANT, AFTER, BEFORE = 1, 2, 3
VALUES_A_THREAD = 4  # a step's: two stages of four values
WARP = 32
MAX_ROWS = 9  # stages of a pass, but for the last, which takes one more; up to 2^20, two passes of ten
MAX_COLUMNS = 2  # log2 of the neighbouring values of a row: four, 128 bytes
MAX_TILE = 11  # log2 of a tile's values: 64 KiB, which every card since Turing has for a block
TILES_A_MULTIPROCESSOR = 2  # wanted at least, where the rows allow it
MAX_BATCH = 65535  # transforms of one launch
TABLES_SHARE = 8  # tables are kept up to an eighth of the device's memory


@dataclass(frozen=True)
class Pass:
    """log_rows stages over tiles of 2^log_rows rows, 2^log_stride apart, of 2^log_columns values."""

    log_stride: int
    log_rows: int
    log_columns: int
    threads: int

    @property
    def log_tile(self) -> int:
        return self.log_rows + self.log_columns


@lru_cache(maxsize=256)
def plan_ntt(
    log_n: int,
    batch: int = 1,
    multiprocessors: int = 132,
    *,
    rows: int | None = None,
    columns: int = MAX_COLUMNS,
    threads: int = THREADS,
) -> tuple[Pass, ...]:
    """The passes of `batch` transforms of 2^log_n values, in the order natural -> reversed.

    Few and small transforms get small tiles, so that every multiprocessor has work.

    rows, columns, threads: for trials: stages of a pass at most (one more in the last), log2 of a row's values at most,
    threads of a block at most. Raises CuzkError where a tile would be larger than 2^11 values.
    """
    if rows is None:
        rows = MAX_ROWS if log_n > 2 * (MAX_ROWS + 1) else MAX_ROWS + 1
    if not 1 <= rows < MAX_TILE or columns < 0 or not 1 <= threads <= THREADS:
        raise CuzkError(f"ntt: passes of {rows} stages and 2^{columns} columns in blocks of {threads} threads")
    count = max(1, -(-(log_n - 1) // rows))
    wanted = TILES_A_MULTIPROCESSOR * multiprocessors
    result, stride = [], log_n
    for left in range(count, 0, -1):
        stages = stride // left if left > 1 else stride
        stride -= stages
        width = min(columns, stride, MAX_TILE - stages)
        while width > 0 and batch << (log_n - stages - width) < wanted:
            width -= 1
        size = 1 << (stages + width)
        result.append(Pass(stride, stages, width, min(max(size // VALUES_A_THREAD, WARP), threads)))
    return tuple(result)


class Transforms:
    """Transforms over addresses in a stream, without checks: for those who own the memory.

    root, shift: as ordinary integers, reduced. The tables are taken for as long as the object is used in a
    `with` block; later transforms of other sizes need others.
    """

    def __init__(self, field: Field, stream: Any) -> None:
        self.field, self.stream, self.gpu = field, stream, stream.gpu
        self.library = self.gpu.library("ntt", field.name)
        self.tables = tables_of(self.gpu)

    def run(
        self,
        x: Any,
        out: Any,
        log_n: int,
        batch: int,
        order: Order,
        *,
        inverse: bool,
        root: int,
        shift: int,
        plan: tuple[Pass, ...] | None = None,
    ) -> None:
        """batch transforms of 2^log_n values from x to out, which may be x unless both orders are natural."""
        if plan is None:
            plan = plan_ntt(log_n, batch, self.gpu.multiprocessors)
        if log_n == 0:
            if out is not x:
                self.stream.dtod(out, x, batch * self.field.bytes)
            return
        if order == "natural":
            with self.gpu.allocate(batch * self.field.bytes << log_n, self.stream) as scratch:
                self._run(x, scratch.address, log_n, batch, False, inverse, root, shift, plan)
                vectors = Vectors(self.field, self.stream)
                for k in range(batch):
                    begin = k * self.field.bytes << log_n
                    vectors.reverse_bits(scratch.address + begin, out + begin, log_n)
        else:
            self._run(x, out, log_n, batch, order == "from_reversed", inverse, root, shift, plan)

    def _run(
        self,
        x: Any,
        out: Any,
        log_n: int,
        batch: int,
        from_reversed: bool,
        inverse: bool,
        root: int,
        shift: int,
        plan: tuple[Pass, ...],
    ) -> None:
        table, factors, scaling = _multipliers(self.field, log_n, from_reversed, inverse, root, shift)
        kernel = self.library.from_reversed if from_reversed else self.library.to_reversed
        passes = plan[::-1] if from_reversed else plan
        scaled = 0 if scaling == BEFORE else len(passes) - 1  # the pass that does it
        nodes = int(isinstance(table, Nodes))
        launch, size = self.stream.launch, self.field.bytes << log_n
        with self.tables.use(self.stream, (table,) if factors is None else (table, factors)) as places:
            for i, step in enumerate(passes):
                for begin in range(0, batch, MAX_BATCH):
                    launch(
                        kernel,
                        (1 << (log_n - step.log_tile), min(MAX_BATCH, batch - begin)),
                        step.threads,
                        (x if i == 0 else out) + begin * size,
                        out + begin * size,
                        places[0],
                        places[-1],
                        log_n,
                        step.log_stride,
                        step.log_rows,
                        step.log_columns,
                        nodes,
                        scaling if i == scaled else 0,
                        shared=self.field.bytes << step.log_tile,
                    )


@lru_cache(maxsize=256)
def _multipliers(
    field: Field, log_n: int, from_reversed: bool, inverse: bool, root: int, shift: int
) -> tuple[Powers | Nodes, Powers | None, int]:
    """The twiddles, what values are multiplied with besides, if anything, and when (`scaling`).

    A coset's powers are in the twiddles where the coefficients are in natural order, since the network splits a
    polynomial from there; else they are multiplied with in the pass that has the coefficients.
    """
    p, first = field.modulus, 1
    if inverse:
        root, shift, first = pow(root, -1, p), pow(shift, -1, p), pow(1 << log_n, -1, p)
    twiddles = Powers(field, root, 1, log_n - 1)
    constant = (Powers(field, 1, first, 0), CONSTANT) if inverse else (None, 0)
    if shift == 1:
        return twiddles, *constant
    if from_reversed == inverse:
        return Nodes(twiddles, shift, log_n), *constant
    return twiddles, Powers(field, shift, first, log_n), AFTER if inverse else BEFORE


def transform(
    field: Field,
    x: Any,
    *,
    order: Order = "natural",
    inverse: bool = False,
    coset: int | None = None,
    root: int | None = None,
    out: Any = None,
    stream: Any = None,
    plan: tuple[Pass, ...] | None = None,
) -> DeviceArray:
    """`cuzk.ntt` for arrays in device memory, in three orders, of one polynomial or several.

    x: uint32[n, L], or uint32[batch, n, L]: transforms of n values each, n a power of two up to 2^two_adicity; a
        DeviceArray or whatever `as_device` takes. Values below the modulus (nobody looks whether they are), in
        Montgomery form or plain; the result is in the same form.
    order: "natural"; "to_reversed": the result's value i is at the place that i's bits in the opposite order give;
        "from_reversed": the same of the input. The latter two need no memory beside the tables, and one pass less.
    inverse, coset, root: as in `cuzk.ntt`.
    out: where the result goes, by default a new array; may be x.
    plan: of `plan_ntt`, for trials.
    Raises CuzkError for what `cuzk.ntt` refuses, for an `out` that lies partly over x, and for unknown orders.
    """
    if order not in ORDERS:
        raise CuzkError(f"ntt: order {order!r}, expected one of {', '.join(ORDERS)}")
    x = as_device(x, None, stream)
    stream = stream or x.stream
    if len(x.shape) not in (2, 3) or x.shape[-1] != field.limbs:
        raise CuzkError(
            f"ntt: values are uint32{list(x.shape)}, expected uint32[n, {field.limbs}] or uint32[batch, n, "
            f"{field.limbs}] for {field}"
        )
    log_n = check_size(field, x.shape[-2])
    root, shift = check_root(field, log_n, root), check_shift(field, coset)
    if plan is not None and sum(step.log_rows for step in plan) != log_n:
        raise CuzkError(f"ntt: the plan has {sum(step.log_rows for step in plan)} stages, expected {log_n}")
    if out is None:
        result = empty(x.shape, stream.gpu, stream)
    else:
        result = as_device(out, stream.gpu, stream, writable=True)
        if result.shape != x.shape:
            raise CuzkError(f"ntt: the result goes to uint32{list(result.shape)}, expected uint32{list(x.shape)}")
        result.check_apart(x, "ntt", or_equal=True)
    batch = x.shape[0] if len(x.shape) == 3 else 1
    if batch:
        Transforms(field, stream).run(
            x.address, result.address, log_n, batch, order, inverse=inverse, root=root, shift=shift, plan=plan
        )
    return result


# --- tables ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Powers:
    """first * base^(bit reversal of i) for i < 2^log_size, Montgomery."""

    field: Field
    base: int
    first: int
    log_size: int

    @property
    def nbytes(self) -> int:
        return self.field.bytes << self.log_size

    def build(self, tables: Tables, out: Any, stream: Any) -> None:
        """By doubling: entry 2^k + j is entry j times base^(2^(log_size - 1 - k))."""
        library = stream.gpu.library("ntt", self.field.name)
        stream.htod(out, encode(self.field, self.first))
        steps, power = [], self.base
        for _ in range(self.log_size):
            steps.append(power)
            power = power * power % self.field.modulus
        if not steps:
            return
        with stream.gpu.upload(encode(self.field, steps[::-1]), stream) as factors:
            for k in range(self.log_size):
                stream.launch(library.extend, -(-(1 << k) // THREADS), min(THREADS, 1 << k), out, factors, 1 << k, k)


@dataclass(frozen=True)
class Nodes:
    """twiddles[b] * shift^(n / 2^(s + 1)) at 2^s + b, for b < 2^s < n = 2^log_n: what stage s of a coset takes."""

    twiddles: Powers
    shift: int
    log_n: int

    @property
    def nbytes(self) -> int:
        return self.twiddles.field.bytes << self.log_n

    def build(self, tables: Tables, out: Any, stream: Any) -> None:
        field = self.twiddles.field
        shifts, power = [], self.shift
        for _ in range(self.log_n):
            shifts.append(power)
            power = power * power % field.modulus
        n = 1 << self.log_n
        with (
            tables.use(stream, [self.twiddles]) as (twiddles,),
            stream.gpu.upload(encode(field, shifts[::-1]), stream) as factors,
        ):
            kernel, threads = stream.gpu.library("ntt", field.name).node_table, min(THREADS, n)
            stream.launch(kernel, -(-n // threads), threads, twiddles, factors, out, n)


Key = Powers | Nodes


class Table:
    """One table in device memory.

    stream:  that made it, and frees it; ready: when it was made.
    holders: uses that are being started; users: the streams that it was used in, by their handles.
    """

    def __init__(self, buffer: Any, stream: Any) -> None:
        self.buffer, self.stream, self.ready = buffer, stream, stream.record()
        self.holders = 0
        self.users = {stream.handle: stream}

    def close(self) -> None:
        """Free the memory after its last uses: in its stream's order, which waits for the others."""
        for stream in self.users.values():
            if stream is not self.stream:
                self.stream.wait(stream.record())
        self.buffer.close()


class Tables:
    """Tables on one device, the latest used kept up to `limit` bytes."""

    def __init__(self, gpu: Any, limit: int | None = None) -> None:
        self.gpu = gpu
        self.limit = gpu.memory()[1] // TABLES_SHARE if limit is None else limit
        self.nbytes = 0
        self._tables: OrderedDict[Key, Table] = OrderedDict()
        self._lock = threading.RLock()

    @contextmanager
    def use(self, stream: Any, keys: Sequence[Key]) -> Iterator[list[Any]]:
        """The addresses of tables for what is started in `stream` inside; built now where they are not there."""
        taken: list[Table] = []
        try:
            with self._lock:
                for key in keys:
                    taken.append(self._take(key, stream))
            yield [table.buffer.address for table in taken]
        finally:
            with self._lock:
                for table in taken:
                    table.holders -= 1
                if self.nbytes > self.limit:
                    self._shrink(self.limit)

    def clear(self) -> None:
        """Free all that nobody uses."""
        with self._lock:
            self._shrink(0)

    def _take(self, key: Key, stream: Any) -> Table:
        table = self._tables.get(key)
        if table is None:
            buffer = self.gpu.allocate(key.nbytes, stream)
            try:
                key.build(self, buffer.address, stream)
            except BaseException:
                buffer.close()
                raise
            table = self._tables[key] = Table(buffer, stream)
            self.nbytes += buffer.nbytes
        elif stream.handle not in table.users:
            # once is enough: what is started there later comes later
            stream.wait(table.ready)
            table.users[stream.handle] = stream
        self._tables.move_to_end(key)
        table.holders += 1
        return table

    def _shrink(self, limit: int) -> None:
        for key, table in list(self._tables.items()):
            if self.nbytes <= limit:
                break
            if table.holders == 0:
                self.nbytes -= table.buffer.nbytes
                del self._tables[key]
                table.close()


_all: dict[Any, Tables] = {}
_all_lock = threading.Lock()


def tables_of(gpu: Any) -> Tables:
    """The tables on a device, the same for all who ask."""
    with _all_lock:
        if gpu not in _all:
            _all[gpu] = Tables(gpu)
        return _all[gpu]
