"""Multi-scalar multiplication: random and skewed scalars, and its phases, each checked by a known linear relation.

Bases are (a + i b) G and scalars g^i, both made on the card, so that the result is one known multiple of G.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np
from gpu_measure import Record, additions, milliseconds
from measure import BenchError

from cuzk.curve import host
from cuzk.field.host import Limbs, ints_to_limbs
from cuzk.field.params import Group
from cuzk.gpu import vectors
from cuzk.gpu.accumulating import accumulate, reduce
from cuzk.gpu.array import to_device
from cuzk.gpu.bases import DeviceBases
from cuzk.gpu.multiexp import DeviceMsm, plan_msm
from cuzk.gpu.multiples import known_multiples
from cuzk.gpu.sorting import sort

if TYPE_CHECKING:
    from gpu import Bench

SIZES = {1: (16, 18, 20, 22, 24, 26), 2: (16, 18, 20, 22, 24)}  # log2 of the points, by the group's degree
SKEWED_LOG = 22
STREAMED_LOG = 24
FIRST, STEP, RATIO = 12345, 3, 7
WARM_UP = 2


def multiexps(bench: Bench, group: Group) -> None:
    name = f"msm {group}"
    sizes = [k for k in SIZES[group.degree] if k <= bench.largest]
    if not sizes or not any(bench.wanted(part) for part in (name, f"msm phases {group}")):
        return
    with DeviceBases(group, known_multiples(group, FIRST, STEP, 1 << sizes[-1], stream=bench.stream)) as bases:
        for log_n in sizes:
            with _powers(bench, group, 1 << log_n) as scalars:
                part, expected = bases[: 1 << log_n], _expected(group, 1 << log_n)
                _one(bench, name, group, part, scalars, expected)
                _phases(bench, part, scalars)
        _skewed(bench, bases[: 1 << SKEWED_LOG])
        if group.degree == 1:
            _streamed(bench, bases[: 1 << STREAMED_LOG])


def _powers(bench: Bench, group: Group, n: int) -> Any:
    """g^i as plain scalars, on the card."""
    x = vectors.powers(group.scalar, RATIO, n, stream=bench.stream)
    return vectors.from_montgomery(group.scalar, x, x)


def _expected(group: Group, n: int) -> host.Point:
    """The sum of g^i (a + i b) over i < n, times the generator.

    With S = sum g^i = (g^n - 1)/(g - 1), sum i g^i = (n g^n - g S)/(g - 1).
    """
    r = group.scalar.modulus
    last, inverse = pow(RATIO, n, r), pow(RATIO - 1, -1, r)
    powers = (last - 1) * inverse
    weighted = (n * last - RATIO * powers) * inverse
    return host.multiply(group, (FIRST * powers + STEP * weighted) % r, group.generator)


def _one(bench: Bench, name: str, group: Group, points: Any, scalars: Any, expected: host.Point) -> None:
    """Time start to result, on the host's clock: the last doublings are done there."""
    if not bench.wanted(name):
        return
    n = len(points)
    resident = isinstance(points, DeviceBases)
    plan = plan_msm(group, n, resident=resident, multiprocessors=bench.gpu.multiprocessors)
    with DeviceMsm(plan, bench.gpu, bench.stream) as work:
        times = []
        for run in range(WARM_UP + bench.runs):
            bench.stream.synchronize()
            begin = time.perf_counter()
            work.start(points, scalars)
            result = work.finish()
            if run >= WARM_UP:
                times.append(1e3 * (time.perf_counter() - begin))
            if host.from_limbs(group, result) != expected:
                raise BenchError(f"{name}, {n} points: a wrong result")
    references, buckets = plan.windows * n, plan.windows << (plan.digit_bits - 1)
    record = Record(
        name,
        n.bit_length() - 1,
        "ms",
        times,
        additions(group, mixed=references, full=2 * buckets),
        references * group.point_bytes,
        {
            "digit_bits": plan.digit_bits,
            "windows": plan.windows,
            "pieces": len(plan.pieces),
            "scratch_bytes": plan.memory,
        },
    )
    bench.add(record)


def _phases(bench: Bench, bases: DeviceBases, scalars: Any) -> None:
    """Sort, accumulation and reduction alone, by events."""
    group, n, stream, gpu = bases.group, len(bases), bench.stream, bench.gpu
    names = [f"msm phases {group}: {phase}" for phase in ("sort", "accumulate", "reduce")]
    if not any(bench.wanted(name) for name in names):
        return
    plan = plan_msm(group, n, multiprocessors=gpu.multiprocessors)
    with DeviceMsm(plan, gpu, stream) as work:
        m, sorting = work.memory, plan.sort(n)
        stream.zero(m["buckets"], plan.memory["buckets"])
        steps = [
            lambda: sort(gpu, stream, sorting, scalars.address, m["sort"], m["references"], m["offsets"]),
            lambda: accumulate(
                gpu,
                stream,
                plan.buckets,
                bases.address,
                m["references"],
                m["offsets"],
                m["buckets"],
                m["partial sums"],
            ),
            lambda: reduce(gpu, stream, plan.buckets, m["buckets"], m["partial sums"], m["window sums"]),
        ]
        references, buckets = plan.windows * n, plan.windows << (plan.digit_bits - 1)
        needs = [
            # a digit is read and a reference written at least once
            (0.0, n * group.scalar.bytes + 4 * references),
            (additions(group, mixed=references), references * (group.point_bytes + 4)),
            (additions(group, full=2 * buckets), buckets * 2 * group.point_bytes),
        ]
        for name, step, (wide, moved) in zip(names, steps, needs, strict=True):
            if bench.wanted(name):
                times = milliseconds(stream, step, bench.runs)
                bench.add(Record(name, n.bit_length() - 1, "ms", times, wide, moved))


def _skewed(bench: Bench, bases: DeviceBases) -> None:
    """Scalars that put very many points into few buckets."""
    group, n, r = bases.group, len(bases), bases.group.scalar.modulus
    words = group.scalar.limbs
    rng = np.random.default_rng(1)
    bits = np.zeros((n, words), np.uint32)
    bits[:, 0] = rng.integers(0, 2, n, np.uint32)
    mostly = bits.copy()
    wide = rng.random(n) < 0.3
    mostly[wide] = rng.integers(0, 1 << 28, (int(wide.sum()), words), np.uint32)  # below any of the moduli
    one_hot = np.zeros((n, words), np.uint32)
    one_hot[n // 3] = ints_to_limbs([r - 1], words)
    equal = np.tile(ints_to_limbs([r // 3], words), (n, 1))
    cases: dict[str, Limbs] = {"all equal": equal, "0 and 1": bits, "one-hot": one_hot, "70 % bits": mostly}
    for case, scalars in cases.items():
        name = f"msm {group}, {case}"
        if bench.wanted(name):
            expected = _weighted(group, scalars)
            with to_device(scalars, stream=bench.stream) as resident:
                _one(bench, name, group, bases, resident, expected)


def _weighted(group: Group, scalars: Limbs) -> host.Point:
    """The sum of s_i (a + i b) G for any scalars: by words, in pieces whose sums fit in 64 bits."""
    n = len(scalars)
    index = np.arange(n, dtype=np.uint64)
    total = 0
    for word in range(scalars.shape[1]):
        column = scalars[:, word].astype(np.uint64)
        plain = int(column.sum())
        low, high = column & np.uint64(0xFFFF), column >> np.uint64(16)
        by_index = 0
        for begin in range(0, n, 1 << 20):
            part = slice(begin, begin + (1 << 20))
            by_index += int((low[part] * index[part]).sum()) + (int((high[part] * index[part]).sum()) << 16)
        total += (FIRST * plain + STEP * by_index) << (32 * word)
    return host.multiply(group, total % group.scalar.modulus, group.generator)


def _streamed(bench: Bench, bases: DeviceBases) -> None:
    """Points and scalars from host memory that is not pinned."""
    name = f"msm {bases.group}, from the host"
    if not bench.wanted(name):
        return
    n = len(bases)
    with _powers(bench, bases.group, n) as scalars:
        plain = scalars.numpy()
    points = bases.array.numpy()[:n]
    _one(bench, name, bases.group, points, plain, _expected(bases.group, n))
