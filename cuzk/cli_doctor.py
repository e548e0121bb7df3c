"""What `cuzk doctor` looks at."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import platform
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cuzk
from cuzk.backend import cuda
from cuzk.cpu import jit
from cuzk.field.params import CURVES

PACKAGES = ("numpy", "numba", "llvmlite", "typer", "rich")


@dataclass(frozen=True)
class Report:
    facts: dict[str, Any]
    missing: list[str]  # what proving on the CPU cannot do without
    hints: list[str]  # what would be faster, or would allow the GPU


def examine() -> Report:
    missing, hints = [], []
    facts: dict[str, Any] = {
        "cuzk": cuzk.__version__,
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
    }
    for package in PACKAGES:
        try:
            facts[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            facts[package] = None
            missing.append(f"{package} (pip install --upgrade cuzk brings it)")
    facts["cores"] = jit.core_count()

    cache = jit.cache_directory()
    facts["cache"] = str(cache)
    facts["cache_bytes"] = _size(cache)
    for curve in CURVES.values():
        absent = jit.missing(jit.proving_units(curve))
        facts[f"compiled_{curve.name}"] = not absent
        if absent:
            hints.append(f"{curve.name}: the first proof will compile its code first; `cuzk warmup` does it now")

    there = cuda()
    facts["numba_cuda"] = there.package
    facts["cuda_driver"] = ".".join(map(str, there.driver)) if there.driver else None
    facts["gpus"] = [
        f"{gpu.name}, {gpu.memory_bytes / 2**30:.1f} GiB, sm_{gpu.capability[0]}{gpu.capability[1]}"
        for gpu in there.gpus
    ]
    hints += [f"cuda: {line}" for line in there.missing]
    return Report(facts, missing, hints)


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.glob("**/*") if path.is_file()) if folder.is_dir() else 0
