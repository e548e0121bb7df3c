"""The NTT at every size, each checked at some places by a closed form.

A geometric progression's transform is known: the values of sum_j s g^j x^j are s (g^n - 1) / (g x - 1) where x^n = 1.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import numpy as np
from gpu_measure import Record, milliseconds, wide
from measure import BenchError

from cuzk.field.host import decode
from cuzk.field.params import Field
from cuzk.gpu import vectors
from cuzk.gpu.array import DeviceArray
from cuzk.gpu.transform import plan_ntt, transform

if TYPE_CHECKING:
    from gpu import Bench

SIZES = (16, 18, 20, 22, 24, 26, 27, 28)
VARIANTS_LOG = 24
FIRST, RATIO, SHIFT = 5, 3, 7
PLACES = 40
TO_REVERSED: dict[str, Any] = {"order": "to_reversed"}


def transforms(bench: Bench, field: Field) -> None:
    for log_n in SIZES:
        if log_n <= min(bench.largest, field.two_adicity):
            _one(bench, f"ntt reversed {field}", field, log_n, TO_REVERSED)
            _one(bench, f"ntt natural {field}", field, log_n, {})
    log_n = min(VARIANTS_LOG, bench.largest)
    variants: dict[str, dict[str, Any]] = {
        "from reversed": {"order": "from_reversed"},
        "reversed, on a coset": {"order": "to_reversed", "coset": SHIFT},
        "reversed, inverse on a coset": {"order": "to_reversed", "coset": SHIFT, "inverse": True},
        "from reversed, inverse": {"order": "from_reversed", "inverse": True},
    }
    for name, options in variants.items():
        _one(bench, f"ntt {name} {field}", field, log_n, options)
    _batch(bench, field)


def _one(bench: Bench, label: str, field: Field, log_n: int, options: dict[str, Any]) -> None:
    if not bench.wanted(label):
        return
    n = 1 << log_n
    with vectors.powers(field, RATIO, n, first=FIRST, stream=bench.stream) as x:
        if options.get("order") == "from_reversed":
            natural = x
            x = vectors.reverse_bits(field, natural)
            natural.close()
        with transform(field, x, **options) as out:
            check(field, out, log_n, options, label)
        # in place where that is possible, again and again: the values do not matter
        inplace = options.get("order", "natural") != "natural"
        with transform(field, x, **options) as out:
            source = out if inplace else x
            times = milliseconds(bench.stream, lambda: transform(field, source, out=out, **options), bench.runs)
        x.close()
    _record(bench, label, field, log_n, 1, times)


def _batch(bench: Bench, field: Field) -> None:
    """Many small transforms at once."""
    label, log_n, batch = f"ntt reversed {field}, 256 at once", 16, 256
    if not bench.wanted(label) or bench.largest < 24:
        return
    with vectors.powers(field, RATIO, batch << log_n, first=FIRST, stream=bench.stream) as flat:
        x = DeviceArray(flat.gpu, flat.stream, flat, flat.address, (batch, 1 << log_n, field.limbs))
        times = milliseconds(bench.stream, lambda: transform(field, x, order="to_reversed", out=x), bench.runs)
    _record(bench, label, field, log_n, batch, times)


def _record(bench: Bench, label: str, field: Field, log_n: int, batch: int, times: list[float]) -> None:
    n, plan = batch << log_n, plan_ntt(log_n, batch, bench.gpu.multiprocessors)
    natural = label.startswith("ntt natural")
    moved = 2 * (len(plan) + natural) * n * field.bytes
    facts = {"passes": [[step.log_stride, step.log_rows, step.log_columns, step.threads] for step in plan]}
    bench.add(Record(label, log_n, "ms", times, wide(field, n * log_n / 2), moved, facts))


def check(field: Field, out: DeviceArray, log_n: int, options: dict[str, Any], label: str) -> None:
    """Compare some values of the transform of FIRST * RATIO^j with the closed form."""
    p, n = field.modulus, 1 << log_n
    w, shift = field.root_of_unity(log_n), options.get("coset", 1)
    if options.get("inverse"):
        w, ratio, factor, shift = pow(w, -1, p), RATIO, pow(n, -1, p), pow(shift, -1, p)
    else:
        ratio, factor, shift = RATIO * shift, 1, 1
    rng = random.Random(log_n)
    for place in {0, 1, n // 2, n - 1, *(rng.randrange(n) for _ in range(PLACES))}:
        i = int(f"{place:0{log_n}b}"[::-1], 2) if options.get("order") == "to_reversed" else place
        x = ratio * pow(w, i, p)
        expected = FIRST * (pow(ratio, n, p) - 1) * pow(x - 1, -1, p) * factor * pow(shift, i, p) % p
        row = np.empty(field.limbs, np.uint32)
        out.stream.dtoh(row, out.address + field.bytes * place)
        if decode(field, row) != expected:
            raise BenchError(f"{label} 2^{log_n}: value {place} is wrong")
