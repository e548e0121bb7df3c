"""How a card is measured: by its own events, medians of several runs after a warm-up; and what is kept of it."""

from __future__ import annotations

import json
import os
import statistics
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gpu_peers import BYTES_PER_SECOND, WIDE_PER_SECOND, peers_of, target_of
from tables import show

from cuzk.field import carry
from cuzk.field.params import Field, Group

LEAST_MS = 2.0  # of one sample: shorter work is repeated, since a launch and an event take microseconds
MOST_REPEATS = 400


def wide(field: Field, products: float = 0, squares: float = 0) -> float:
    """Wide multiplications of so many field operations: the unit of the first floor."""
    return products * carry.program("mul", field).cost()["wide"] + squares * carry.program("sqr", field).cost()["wide"]


def additions(group: Group, mixed: float = 0, full: float = 0) -> float:
    """Wide multiplications of point additions: 8M + 2S and 12M + 2S, of which a difference of two takes one reduction.

    In G2 a product is two sums of two products with one reduction each, a square two products.
    """
    f = group.base
    pair = carry.program("mul_sub", f).cost()["wide"]
    if group.degree == 1:
        return mixed * (wide(f, 6, 2) + pair) + full * (wide(f, 10, 2) + pair)
    return mixed * (8 * 2 * pair + wide(f, 4)) + full * (12 * 2 * pair + wide(f, 4))


@dataclass
class Record:
    """One measurement.

    name: what, without the size; log_n: log2 of the size, or None for a rate.
    values: milliseconds, or operations a nanosecond (G/s), one a run.
    wide, bytes: what the work needs at least; facts: whatever else belongs to it.
    """

    name: str
    log_n: int | None
    unit: str
    values: list[float]
    wide: float = 0.0
    bytes: float = 0.0
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    @property
    def label(self) -> str:
        return self.name if self.log_n is None else f"{self.name} 2^{self.log_n}"

    @property
    def floors(self) -> tuple[float, float] | None:
        """Milliseconds that the multipliers, and the memory, need at least."""
        if self.unit != "ms":
            return None
        return 1e3 * self.wide / WIDE_PER_SECOND, 1e3 * self.bytes / BYTES_PER_SECOND

    def as_json(self) -> dict[str, Any]:
        out: dict[str, Any] = {
            "name": self.name,
            "log_n": self.log_n,
            "unit": self.unit,
            "median": self.median,
            "values": self.values,
            "peers": peers_of(self.name, self.log_n),
            "target": target_of(self.name, self.log_n),
        }
        if self.floors:
            out |= {"floor_multipliers_ms": self.floors[0], "floor_memory_ms": self.floors[1]}
        return out | self.facts


def milliseconds(stream: Any, work: Callable[[], object], runs: int) -> list[float]:
    """Of one `work()`, in each of so many runs: between two events, over as many repeats as make LEAST_MS."""

    def sample(repeats: int) -> float:
        begin = stream.record()
        for _ in range(repeats):
            work()
        end = stream.record()
        end.synchronize()
        return float(end.milliseconds_since(begin)) / repeats

    work()  # loads the code
    stream.synchronize()
    first = sample(1)
    repeats = min(max(1, int(LEAST_MS / max(first, 1e-3))), MOST_REPEATS)
    sample(repeats)  # and the clock goes up
    return [sample(repeats) for _ in range(runs)]


def write(path: Path, head: dict[str, Any], records: list[Record]) -> None:
    """The results as JSON, in whole or not at all."""
    text = json.dumps({**head, "records": [record.as_json() for record in records]}, indent=1)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    partial.write_text(text + "\n")
    os.replace(partial, path)


def show_all(records: list[Record]) -> bool:
    """Print the tables; whether every target was met."""
    rates = [r for r in records if r.unit == "G/s"]
    times = [r for r in records if r.unit == "ms"]
    show(
        "Rates, G/s",
        ["operation", "cuzk", "target", "verdict", "peers"],
        [[r.label, f"{r.median:.2f}", *_verdict(r), _peers(r)] for r in rates],
    )
    show(
        "Times, ms",
        ["work", "cuzk", "floor: multipliers", "floor: memory", "ratio", "target", "verdict", "peers"],
        [[r.label, _number(r.median), *_floors(r), *_verdict(r), _peers(r)] for r in times],
    )
    return all(_met(r) is not False for r in records)


def _met(r: Record) -> bool | None:
    target = target_of(r.name, r.log_n)
    if target is None:
        return None
    return r.median >= target if r.unit == "G/s" else r.median <= target


def _verdict(r: Record) -> list[str]:
    met, target = _met(r), target_of(r.name, r.log_n)
    if met is None or target is None:
        return ["", ""]
    by = r.median / target if r.unit == "G/s" else target / r.median
    return [_number(target), f"{'met' if met else 'missed'} ({by:.2f} x)"]


def _floors(r: Record) -> list[str]:
    if not r.floors or not any(r.floors):
        return ["", "", ""]
    return [*map(_number, r.floors), f"{r.median / max(r.floors):.2f}"]


def _peers(r: Record) -> str:
    return ", ".join(f"{peer} {_number(value)}" for peer, value in peers_of(r.name, r.log_n).items())


def _number(x: float) -> str:
    return f"{x:.4f}" if x < 1 else f"{x:.2f}" if x < 100 else f"{x:.0f}"
