"""Measures the CUDA backend: rates of field and point operations, vector kernels, NTT and MSM.

    pip install -e ".[cuda13]"          or cuda12: `cuzk doctor` says which
    python benchmarks/gpu.py            on a machine with a GPU; some minutes on an H200

Every result is checked before it is timed. Prints tables with the peers' figures on the same card, if it is an
H200, and writes `benchmarks/results/gpu-DATE.json`. Exit code: 0, or 1 when a target is missed. README.md here says
how to read them.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import subprocess
import sys
import time
from pathlib import Path

import gpu_msm
import gpu_ntt
import gpu_rates
from gpu_measure import Record, show_all, write
from gpu_peers import CARD
from measure import HERE, ROOT, BenchError, commit, machine, today

from cuzk.errors import CuzkError
from cuzk.field.params import BLS12_381, BN254
from cuzk.gpu.device import device


class Bench:
    """The card, the options, and what was measured so far."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.runs: int = options.runs
        self.only: list[str] = options.only
        self.largest: int = options.largest
        self.gpu = device(options.device)
        self.stream = self.gpu.stream()
        self.records: list[Record] = []
        self.begin = time.perf_counter()

    def wanted(self, name: str) -> bool:
        return not self.only or any(part in name for part in self.only)

    def add(self, record: Record) -> None:
        self.records.append(record)
        self.progress(f"{record.label}: {record.median:.4g} {record.unit}")

    def progress(self, text: str) -> None:
        print(f"[{time.perf_counter() - self.begin:6.1f} s] {text}", flush=True)

    def run(self) -> None:
        for curve in (BLS12_381, BN254):
            for field in (curve.fp, curve.fr):
                gpu_rates.fields(self, field)
            for group in (curve.g1, curve.g2):
                gpu_rates.points(self, group)
            gpu_rates.vector_kernels(self, curve.fr)
            gpu_ntt.transforms(self, curve.fr)
            for group in (curve.g1, curve.g2):
                gpu_msm.multiexps(self, group)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure cuzk's CUDA backend.")
    parser.add_argument("--runs", type=int, default=5, metavar="N", help="measured runs after the warm-up (default: 5)")
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="NAME",
        help="only what has NAME in its name (products, ntt, msm bls12_381.g1, vector, ...); may be repeated",
    )
    parser.add_argument("--largest", type=int, default=27, metavar="K", help="no size above 2^K (default: 27)")
    parser.add_argument("--device", type=int, default=0, metavar="I", help="index of the GPU (default: 0)")
    parser.add_argument("--commit", metavar="HASH", help="of a checkout that came without its history")
    parser.add_argument("--output", type=Path, metavar="FILE", help="default: benchmarks/results/gpu-DATE.json")
    options = parser.parse_args()
    if options.runs < 1:
        parser.error("--runs: expected at least 1")
    return options


def driver_version() -> str | None:
    try:
        command = ["nvidia-smi", "--query-gpu=driver_version,clocks.max.sm,power.limit", "--format=csv,noheader"]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None


def main() -> int:
    options = parse()
    bench = Bench(options)
    gpu = bench.gpu
    head = {"date": today(), "machine": machine(), **commit(), "runs": options.runs, "only": options.only}
    if options.commit:
        head["commit"] = options.commit
    head["gpu"] = {
        "name": gpu.name,
        "capability": list(gpu.capability),
        "multiprocessors": gpu.multiprocessors,
        "memory_gib": round(gpu.memory()[1] / 2**30, 1),
        "driver, clock, power limit": driver_version(),
    }
    head["versions"] = {name: importlib.metadata.version(name) for name in ("numpy", "numba", "numba-cuda")}
    print(", ".join(map(str, [*head["gpu"].values(), head["versions"], head["commit"]])))
    if CARD not in gpu.name:
        print(f"the peers' figures and the floors are those of an {CARD}")
    path = options.output or HERE / "results" / f"gpu-{head['date']}.json"
    try:
        bench.run()
    finally:
        if bench.records:
            write(path, head, bench.records)
            bench.progress(f"wrote {path.relative_to(ROOT) if path.is_relative_to(ROOT) else path}")
    return 0 if show_all(bench.records) else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (BenchError, CuzkError) as error:
        sys.exit(f"benchmark stopped: {error}")
