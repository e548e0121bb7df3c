"""Compile the CPU jobs once, keep the object code on disk, call it through ctypes without numba.

A *job* is a nopython loop over `Vector` views (module `*_jobs.py`); a *unit* is all jobs of one module
for one target, such as ("msm", "bn254.g1"). The first use of a unit compiles it with numba, links its
functions into one module, and stores the object code under a key made of the sources, the versions and
the processor. Every later process maps the object code through llvmlite alone: numba is never
imported, which is what makes a small proof start fast. Calls release the GIL, so plain threads are
enough to use every core.

Calling convention: numba's own, status f(return*, excinfo**, args...) with int64 arguments; jobs allocate
nothing, raise nothing, and return an int64.
"""

from __future__ import annotations

import ctypes
import hashlib
import importlib
import importlib.util
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import llvmlite
import llvmlite.binding as llvm
import numpy as np

from cuzk.errors import CuzkError
from cuzk.field.params import CURVES, Curve

Unit = tuple[str, str]  # (kind, target)

MODULES = {
    "vector": "cuzk.cpu.vector_jobs",  # target: a field's name
    "ntt": "cuzk.cpu.ntt_jobs",  # target: a field's name
    "r1cs": "cuzk.cpu.r1cs_jobs",  # target: a field's name
    "msm": "cuzk.cpu.msm_jobs",  # target: a group's name
    "point": "cuzk.cpu.point_jobs",  # target: a group's name
    "pairing": "cuzk.cpu.pairing_jobs",  # target: a curve's name
}
_ELSEWHERE = "set CUZK_CACHE_DIR to a folder that can"
MAGIC = b"cuzkobj1"
_ROOT = Path(__file__).resolve().parent.parent
_IMPORT = re.compile(r"^from (cuzk(?:\.\w+)*) import (\([^)]*\)|.*)$", re.MULTILINE)
_lock = threading.Lock()


class JobError(CuzkError):
    """A compiled job reported a failure status; a fault of the project, not of its inputs."""


def verifying_units(curve: Curve) -> list[Unit]:
    """What verifying on one curve needs, the slowest to compile first."""
    return [("pairing", curve.name), ("point", curve.g2.name), ("point", curve.g1.name)]


def proving_units(curve: Curve) -> list[Unit]:
    """What proving on one curve needs, verification included."""
    pairing, *points = verifying_units(curve)
    fr = curve.fr.name
    return [pairing, ("msm", curve.g2.name), ("msm", curve.g1.name), *points, ("ntt", fr), ("r1cs", fr)]


def cache_directory() -> Path:
    """Where object code is kept: $CUZK_CACHE_DIR, else the user's cache folder."""
    chosen = os.environ.get("CUZK_CACHE_DIR")
    if chosen:
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "cuzk"


@cache
def _environment() -> bytes:
    """What object code depends on besides the sources: the compiler's versions and the processor."""
    numba = importlib.util.find_spec("numba")  # found, not imported
    version = b"" if numba is None or numba.origin is None else (Path(numba.origin).parent / "_version.py").read_bytes()
    facts = [llvmlite.__version__, platform.python_version(), platform.machine()]
    facts += [llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()]
    return version + "\0".join(facts).encode()


@cache
def _imports(path: Path) -> tuple[Path, ...]:
    """The files of this package that a file imports by name."""
    found: set[Path] = set()
    for module, names in _IMPORT.findall(path.read_text(encoding="utf-8")):
        base = _ROOT.joinpath(*module.split(".")[1:])
        candidates = [base.with_suffix(".py"), *(base / f"{name}.py" for name in re.findall(r"\w+", names))]
        found.update(candidate for candidate in candidates if candidate.is_file())
    return tuple(sorted(found))


def sources(module: str) -> list[Path]:
    """Every file of this package that a jobs module reaches through imports, and the compiler's."""
    reached: set[Path] = set()
    waiting = [_ROOT.joinpath(*module.split(".")[1:]).with_suffix(".py"), Path(__file__).with_name("compiler.py")]
    while waiting:
        path = waiting.pop()
        if path not in reached:
            reached.add(path)
            waiting += _imports(path)
    return sorted(reached)


@cache
def _fingerprint(module: str) -> str:
    """The key of a unit's object code: a digest of the environment and of the sources of its jobs module.

    A change to one module leaves the code of the units that do not use it in place.
    """
    digest = hashlib.sha256(_environment())
    for path in sources(module):
        digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()[:20]


def _object_path(unit: Unit) -> Path:
    kind, target = unit
    safe = "".join(c if c.isalnum() else "_" for c in target)
    return cache_directory() / f"{kind}-{safe}-{_fingerprint(MODULES[kind])}.o"


class Library:
    """The jobs of one unit: `library.job(array, 3)` passes addresses and integers."""

    def __init__(self, unit: Unit, symbols: dict[str, list[Any]], code: bytes) -> None:
        self.unit = unit
        self._engine = _engine()
        self._engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        self._engine.finalize_object()
        for name, (symbol, arity) in symbols.items():
            setattr(self, name, self._function(name, self._engine.get_function_address(symbol), arity))

    def _function(self, name: str, address: int, arity: int) -> Callable[..., int]:
        if not address:
            raise JobError(f"{self.unit}: the object code has no function {name}")
        # a CFUNCTYPE call releases the GIL
        call = ctypes.CFUNCTYPE(ctypes.c_int32, *[ctypes.c_void_p] * 2, *[ctypes.c_int64] * arity)(address)

        def job(*args: Any) -> int:
            result, exception = ctypes.c_int64(), ctypes.c_void_p()
            status = call(ctypes.addressof(result), ctypes.addressof(exception), *[_word(x) for x in args])
            if status != 0:
                raise JobError(f"job {name} of {self.unit} failed with status {status}")
            return result.value

        job.__name__ = name
        return job

    def __getattr__(self, name: str) -> Callable[..., int]:
        raise AttributeError(f"unit {self.unit} has no job {name}")


def _word(x: Any) -> int:
    """An argument as the integer that a job takes; arrays as the address of their first value."""
    if isinstance(x, np.ndarray):
        if not x.flags.c_contiguous:
            raise JobError("a job was given an array that is not contiguous")
        return x.ctypes.data
    return int(x)


@cache
def _engine() -> llvm.ExecutionEngine:
    """The process's place for object code: one for all units, since each costs a megabyte."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine(jit=True)
    return llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)


_libraries: dict[Unit, Library] = {}


def load(kind: str, target: str) -> Library:
    """The compiled jobs of a unit: from memory, from disk, or compiled now (seconds)."""
    unit = (kind, target)
    library = _libraries.get(unit)
    if library is None:
        with _lock:
            if unit not in _libraries:
                _libraries[unit] = Library(unit, *(_read(unit) or _compile_and_store(unit)))
            library = _libraries[unit]
    return library


def missing(units: Iterable[Unit]) -> list[Unit]:
    """Those units that neither memory nor disk has."""
    return [unit for unit in units if unit not in _libraries and _read(unit) is None]


def prepare(units: Sequence[Unit], on_unit: Callable[[str, float], None] | None = None) -> None:
    """Compile what is missing, one process a core (numba compiles one function at a time).

    on_unit is called with a unit's name and its seconds as each is done. Raises CuzkError with the
    compiler's own words when a compilation fails.
    """
    waiting = missing(units)
    if not waiting:
        return
    if len(waiting) == 1 or not _cache_writable():
        for unit in waiting:
            start = time.perf_counter()
            load(*unit)
            if on_unit:
                on_unit(" ".join(unit), time.perf_counter() - start)
        return
    running: dict[Unit, tuple[subprocess.Popen[bytes], float, Any]] = {}
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    try:
        while waiting or running:
            while waiting and len(running) < core_count():
                unit = waiting.pop(0)
                log = tempfile.TemporaryFile()  # noqa: SIM115 - closed when the process is collected
                command = [sys.executable, "-m", "cuzk.cpu.jit", *unit]
                process = subprocess.Popen(command, env=environment, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
                running[unit] = (process, time.perf_counter(), log)
            time.sleep(0.02)
            for unit in [u for u, (p, _, _) in running.items() if p.poll() is not None]:
                process, start, log = running.pop(unit)
                log.seek(0)
                output = log.read().decode(errors="replace").strip()
                log.close()
                if process.returncode != 0:
                    raise CuzkError(f"compiling {' '.join(unit)} failed (exit {process.returncode}): {output[-2000:]}")
                if on_unit:
                    on_unit(" ".join(unit), time.perf_counter() - start)
    finally:
        for process, _, log in running.values():
            process.kill()
            process.wait()
            log.close()


def warm(curves: Iterable[str], on_unit: Callable[[str, float], None] | None = None) -> None:
    """Compile and cache everything that proving and verifying on these curves needs."""
    if not _cache_writable():
        raise CuzkError(
            f"the cache folder {cache_directory()} cannot be written, so nothing would be kept: {_ELSEWHERE}"
        )
    units = [unit for name in curves for unit in proving_units(CURVES[name])]
    prepare(units, on_unit)


def core_count() -> int:
    """Cores this process may use: $CUZK_THREADS, else its processor affinity."""
    chosen = os.environ.get("CUZK_THREADS")
    if chosen:
        if not (chosen.isascii() and chosen.isdigit()) or int(chosen) < 1:
            raise CuzkError(f"CUZK_THREADS is {chosen!r}: expected a whole number of at least 1")
        return int(chosen)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _cache_writable() -> bool:
    try:
        cache_directory().mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=cache_directory()):
            return True
    except OSError:
        return False


def _read(unit: Unit) -> tuple[dict[str, list[Any]], bytes] | None:
    """A unit from disk; None where it is absent or does not match its checksum."""
    try:
        data = _object_path(unit).read_bytes()
    except OSError:
        return None
    start = len(MAGIC) + 32
    if data[: len(MAGIC)] != MAGIC or hashlib.sha256(data[start:]).digest() != data[len(MAGIC) : start]:
        return None
    length = int.from_bytes(data[start : start + 4], "little")
    header = data[start + 4 : start + 4 + length]
    return json.loads(header), data[start + 4 + length :]


def _compile_and_store(unit: Unit) -> tuple[dict[str, list[Any]], bytes]:
    from cuzk.cpu import compiler  # imports numba

    symbols, code = compiler.compile_unit(importlib.import_module(MODULES[unit[0]]).jobs(unit[1]), ".".join(unit))
    header = json.dumps(symbols).encode()
    body = len(header).to_bytes(4, "little") + header + code
    if not keep(_object_path(unit), MAGIC + hashlib.sha256(body).digest() + body):
        message = f"compiled code cannot be kept in {cache_directory()}, so every process compiles again: {_ELSEWHERE}"
        warnings.warn(message, RuntimeWarning, stacklevel=2)
    return symbols, code


def keep(path: Path, data: bytes) -> bool:
    """Put a file into the cache at once; False where that cannot be, and then nothing is left behind."""
    if not _cache_writable():
        return False
    temporary = None
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.name)
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.replace(temporary, path)
    except OSError:  # a full disk, say
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)
        return False
    return True


if __name__ == "__main__":
    load(sys.argv[1], sys.argv[2])
