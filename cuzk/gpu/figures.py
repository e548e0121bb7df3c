"""What each kernel takes of a card, found without one: registers, spilled bytes, stack, static shared memory.

    python -m cuzk.gpu.figures                  every kernel for every architecture of interest, to standard output
    python -m cuzk.gpu.figures vector sort      those of some kinds (the names in `modules.MODULES`)
    python -m cuzk.gpu.figures --output FILE    the table that the tests hold the kernels to

Kernels are compiled as for a card of that architecture, then assembled by `ptxas -v`, which tells the figures; it is
to be of the same CUDA release as the compiler (nvidia-cuda-nvcc beside numba-cuda[cu13]: the project's extra `test`).
"""

from __future__ import annotations

import argparse
import importlib
import importlib.metadata
import importlib.util
import json
import multiprocessing
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from cuzk.errors import BackendError, CuzkError
from cuzk.field.params import CURVES
from cuzk.gpu.modules import MODULES, Unit, units_of

Capability = tuple[int, int]

CAPABILITIES: dict[str, Capability] = {"sm_75": (7, 5), "sm_80": (8, 0), "sm_90": (9, 0)}  # Turing, Ampere, Hopper
NEWEST = "newest"  # the table's name for the last architecture that the assembler knows, whichever it is
COLUMNS = (*CAPABILITIES, NEWEST)


class Figures(NamedTuple):
    """Of one kernel on one architecture, by thread but for `shared`; what is less is better."""

    registers: int
    spilled: int  # bytes stored and loaded, as instructions of the program, for want of registers
    stack: int  # bytes of local memory: spills, and arrays that registers cannot hold
    shared: int  # static bytes of a block


class Measured(NamedTuple):
    """A kernel ("vector.Fr[bn254].add") on an architecture ("sm_90"; column: its name in the table)."""

    kernel: str
    column: str
    architecture: str
    figures: Figures | None  # None where there is a problem
    doubles: tuple[str, ...]  # PTX instructions on 64-bit floating-point numbers
    problem: str  # why there are no figures


# --- assembler ---------------------------------------------------------------------------------------


def find_ptxas() -> str | None:
    """NVIDIA's assembler: where a wheel (nvidia-cuda-nvcc) puts it, of the same release as the compiler, or on PATH."""
    spec = importlib.util.find_spec("nvidia")
    places = [Path(p) for p in spec.submodule_search_locations or []] if spec else []
    found = (path for place in places for path in place.glob("*/bin/ptxas") if os.access(path, os.X_OK))
    return next((str(path) for path in found), None) or shutil.which("ptxas")


@cache
def _ptxas() -> str:
    path = find_ptxas()
    if path is None:
        raise BackendError("no ptxas: it comes with nvidia-cuda-nvcc (the extra `test`), and with CUDA")
    return path


def _run_ptxas(*arguments: str) -> str:
    done = subprocess.run([_ptxas(), *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        reason = next(iter((done.stderr or done.stdout).strip().splitlines()), f"exit code {done.returncode}")
        raise BackendError(f"{_ptxas()}: {reason}")
    return done.stdout + done.stderr


def newest_capability(listed: str | None = None) -> Capability:
    """Of the highest number that `ptxas --list-arch` (or this text) has."""
    text = _run_ptxas("--list-arch") if listed is None else listed
    numbers = [int(n) for n in re.findall(r"^(?:sm_|compute_)?(\d+)$", text, re.MULTILINE)]
    if not numbers:
        raise BackendError(f"{_ptxas()} --list-arch names no architecture: {text[:200]!r}")
    return max((n // 10, n % 10) for n in numbers)


def toolchain() -> dict[str, str]:
    """What the figures depend on beside the sources."""
    release = re.search(r"\bV(\d+(?:\.\d+)+)", _run_ptxas("--version"))
    return {"numba-cuda": importlib.metadata.version("numba-cuda"), "ptxas": release.group(1) if release else "unknown"}


def why_not() -> str | None:
    """What is missing for figures here; None where nothing is."""
    try:
        from numba import cuda

        if cuda.config.ENABLE_CUDASIM:
            return "the CUDA simulator compiles nothing"
        toolchain()
    except (ImportError, importlib.metadata.PackageNotFoundError) as error:
        return f"no numba-cuda: {error}"
    except BackendError as error:
        return str(error)
    return None


def parse_report(report: str) -> Figures:
    """The figures in what `ptxas -v` says of a file with one kernel, and any functions that it calls."""
    used = re.findall(r"Used (\d+) registers", report)
    frames = re.findall(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", report)
    if len(used) != 1 or not frames:
        raise CuzkError(f"ptxas -v tells of {len(used)} kernels, expected one: {report[:500]}")
    shared = re.search(r"(\d+) bytes smem", report)
    stack = [int(frame) for frame, _, _ in frames] + [
        int(n) for n in re.findall(r"(\d+) bytes cumulative stack", report)
    ]
    spilled = sum(int(stores) + int(loads) for _, stores, loads in frames)
    return Figures(int(used[0]), spilled, max(stack), int(shared.group(1)) if shared else 0)


def doubles_in(ptx: str) -> tuple[str, ...]:
    """The different instructions of a PTX text that have a 64-bit floating-point operand, or move one."""
    code = re.sub(r"//.*", "", ptx)
    return tuple(sorted(set(re.findall(r"(?:[a-z]\w*)(?:\.\w+)*\.f64\b[.\w]*", code))))


# --- kernels -----------------------------------------------------------------------------------------


def all_units() -> list[Unit]:
    """Every unit, those of points in G2 first, since they take longest. Raises CuzkError for a kind without any."""
    units = [unit for curve in CURVES.values() for unit in units_of(curve, rates=True)]
    without = set(MODULES) - {kind for kind, _ in units}
    if without:
        raise CuzkError(f"no targets are known for kernels of {', '.join(sorted(without))}: see `modules.units_of`")
    return sorted(units, key=lambda unit: (not unit[1].endswith(".g2"), not unit[1].endswith(".g1")))


def kernel_names(kind: str) -> list[str]:
    from cuzk.gpu.compiler import kernels_of

    return [kernel.name for kernel in kernels_of(MODULES[kind])]


def _measure(unit: Unit, name: str, columns: dict[str, Capability]) -> list[Measured]:
    """Compile one kernel for all columns' capabilities, and assemble each; runs in a process of the pool."""
    from cuzk.gpu import compiler
    from cuzk.kernels.declare import target_named

    kind, target = unit
    full, done = f"{kind}.{target}.{name}", []
    try:
        kernel = next(k for k in compiler.kernels_of(MODULES[kind]) if k.name == name)
        texts = compiler.compile_ptxs(kernel, target_named(target), columns.values())
        for (column, capability), ptx in zip(columns.items(), texts, strict=True):
            architecture = _architecture(capability)
            with tempfile.TemporaryDirectory() as folder:
                source = Path(folder, "kernel.ptx")
                source.write_text(ptx)
                report = _run_ptxas("-v", f"-arch={architecture}", str(source), "-o", str(source.with_suffix(".cubin")))
            done.append(Measured(full, column, architecture, parse_report(report), doubles_in(ptx), ""))
    except Exception as error:  # of numba, of the assembler, of the kernel: told with the others'
        lines = str(error).strip().splitlines()
        reason = f"{type(error).__name__}: {' | '.join(line.strip() for line in lines[:6] if line.strip())}"
        column, capability = list(columns.items())[len(done)]
        done.append(Measured(full, column, _architecture(capability), None, (), reason))
    return done


def _architecture(capability: Capability) -> str:
    return f"sm_{capability[0]}{capability[1]}"


def measure(kinds: Iterable[str] | None = None, processes: int | None = None) -> Iterator[Measured]:
    """The figures of every kernel of some kinds (by default all) for each target and architecture, as they are done.

    A module that cannot be imported is one `Measured` with a problem, whose kernel is called "KIND.*". Raises
    BackendError where the toolchain is incomplete.
    """
    reason = why_not()
    if reason:
        raise BackendError(f"no figures of kernels: {reason}")
    wanted = set(MODULES if kinds is None else kinds)
    if unknown := wanted - set(MODULES):
        raise CuzkError(f"there are no kernels called {', '.join(sorted(unknown))}; there are {', '.join(MODULES)}")
    names: dict[str, list[str]] = {}
    for kind in sorted(wanted):
        try:
            names[kind] = kernel_names(kind)
        except Exception as error:  # whatever a module raises when it is imported
            yield Measured(f"{kind}.*", "", "", None, (), f"{type(error).__name__}: {error}")
    columns = {**CAPABILITIES, NEWEST: newest_capability()}
    jobs = [(unit, name, columns) for unit in all_units() for name in names.get(unit[0], [])]
    # numba and its compiler are started anew: a fork would take over their threads' locks
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes or len(os.sched_getaffinity(0)), mp_context=context) as pool:
        for future in as_completed([pool.submit(_measure, *job) for job in jobs]):
            yield from future.result()


# --- table -------------------------------------------------------------------------------------------


def table_of(measured: Iterable[Measured]) -> dict[str, Any]:
    """The figures as they are kept: for each kernel a list for each column. Raises CuzkError for problems."""
    kernels: dict[str, dict[str, Figures]] = {}
    newest = ""
    for m in measured:
        if m.figures is None:
            raise CuzkError(f"{m.kernel} {m.architecture}: {m.problem}")
        kernels.setdefault(m.kernel, {})[m.column] = m.figures
        if m.column == NEWEST:
            newest = m.architecture
    order = list(MODULES)
    rank = {name: (order.index(name.split(".")[0]), name) for name in kernels}
    return {
        "about": "Figures of every kernel on every architecture: made by `make update-kernel-table`, not by hand.",
        "toolchain": toolchain(),
        NEWEST: newest,
        "figures": list(Figures._fields),
        "kernels": {name: {c: kernels[name][c] for c in COLUMNS} for name in sorted(kernels, key=rank.__getitem__)},
    }


def table_text(table: dict[str, Any]) -> str:
    """JSON with a line for each kernel, so that a change reads as one."""
    lines = [f"  {json.dumps(key)}: {json.dumps(value)}," for key, value in table.items() if key != "kernels"]
    rows = [f"    {json.dumps(name)}: {json.dumps(row)}" for name, row in table["kernels"].items()]
    return "\n".join(["{", *lines, '  "kernels": {', ",\n".join(rows), "  }", "}", ""])


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m cuzk.gpu.figures", description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("kinds", nargs="*", help=f"of {', '.join(MODULES)}; by default all")
    parser.add_argument("--output", type=Path, help="write the table of all kernels here")
    options = parser.parse_args(arguments)
    if options.output and options.kinds:
        parser.error("a table has every kind: --output takes no names of kinds")
    try:
        done = []
        for m in measure(options.kinds or None):
            text = (
                ", ".join(f"{value} {name}" for name, value in m.figures._asdict().items()) if m.figures else m.problem
            )
            print(f"{m.kernel:<50} {m.architecture:<7} {text} {' '.join(m.doubles)}".rstrip(), flush=True)
            done.append(m)
        problems = [m for m in done if m.figures is None]
        if options.output and not problems:
            part = options.output.with_suffix(".part")
            part.write_text(table_text(table_of(done)))
            part.replace(options.output)
    except CuzkError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    if problems:
        print(
            f"error: {len(problems)} kernels have no figures{', no table written' * bool(options.output)}",
            file=sys.stderr,
        )
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
