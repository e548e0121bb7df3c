"""Compiled kernels on disk and in the driver: a unit is all kernels of one module for one field or group.

As on the CPU (`cpu/jit.py`), a unit is compiled by numba once and stored under a digest of the sources that it
reaches; later processes hand the stored cubins to the driver and never import numba.
"""

from __future__ import annotations

import ctypes
import hashlib
import importlib.metadata
import json
import threading
import time
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any

from cuzk.cpu import jit
from cuzk.errors import BackendError
from cuzk.field.params import Curve
from cuzk.gpu import driver
from cuzk.gpu.driver import GpuError

Unit = tuple[str, str]

MODULES = {
    "vector": "cuzk.kernels.vector",  # target: a scalar field's name
    "ntt": "cuzk.kernels.ntt",  # target: a scalar field's name
    "sort": "cuzk.kernels.sort",  # target: a scalar field's name
    "buckets": "cuzk.kernels.buckets",  # target: a group's name
    "multiples": "cuzk.kernels.multiples",  # target: a group's name
    "field_rates": "cuzk.kernels.field_rates",  # target: a field's name
    "point_rates": "cuzk.kernels.point_rates",  # target: a group's name
}
SCALAR_KINDS, GROUP_KINDS = ("vector", "ntt", "sort"), ("buckets", "multiples")  # what `cuzk.ntt` and `cuzk.msm` use
RATE_KINDS = ("field_rates", "point_rates")  # what only benchmarks use
MAGIC = b"cuzkcub1"
DEFAULT_SHARED = 48 << 10  # bytes of dynamic shared memory that need no permission
_lock = threading.Lock()


def _toolchain() -> str:
    try:
        return importlib.metadata.version("numba-cuda")
    except importlib.metadata.PackageNotFoundError:
        return "none"


@cache
def fingerprint(kind: str) -> str:
    """The key of a unit's machine code: a digest of its sources, of the compiler's, and of its version."""
    digest = hashlib.sha256(_toolchain().encode())
    compiler = Path(__file__).with_name("compiler.py")
    for path in [*jit.sources(MODULES[kind]), compiler]:
        digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()[:20]


def path_of(unit: Unit, capability: tuple[int, int]) -> Path:
    kind, target = unit
    safe = "".join(c if c.isalnum() else "_" for c in target)
    name = f"cuda-{kind}-{safe}-sm{capability[0]}{capability[1]}-{fingerprint(kind)}.bin"
    return jit.cache_directory() / name


def compile_unit(unit: Unit, capability: tuple[int, int]) -> bytes:
    """The stored form of a unit: header (name, symbol, arguments, offset, length of each kernel) and cubins."""
    try:
        from cuzk.gpu import compiler
        from cuzk.kernels.declare import target_named
    except ImportError as error:
        raise BackendError(f"compiling CUDA kernels needs numba-cuda: {error}") from error

    kind, target = unit
    header: dict[str, list[Any]] = {}
    code = b""
    for kernel in compiler.kernels_of(MODULES[kind]):
        ptx = compiler.compile_ptx(kernel, target_named(target), capability)
        cubin = compiler.assemble(ptx, capability)
        arguments = len(kernel.arguments(target_named(target)))
        header[kernel.name] = [compiler.entry_name(ptx), arguments, len(code), len(cubin)]
        code += cubin
    text = json.dumps(header).encode()
    body = len(text).to_bytes(4, "little") + text + code
    return MAGIC + hashlib.sha256(body).digest() + body


def read_unit(unit: Unit, capability: tuple[int, int]) -> bytes | None:
    """A unit from disk; None where it is absent or does not match its checksum."""
    try:
        data = path_of(unit, capability).read_bytes()
    except OSError:
        return None
    start = len(MAGIC) + 32
    if data[: len(MAGIC)] != MAGIC or hashlib.sha256(data[start:]).digest() != data[len(MAGIC) : start]:
        return None
    return data


def stored_unit(unit: Unit, capability: tuple[int, int]) -> bytes:
    """A unit from disk, or compiled now (seconds to a minute) and kept."""
    data = read_unit(unit, capability)
    if data is None:
        data = compile_unit(unit, capability)
        jit.keep(path_of(unit, capability), data)
    return data


def units_of(curve: Curve, *, rates: bool = False) -> list[Unit]:
    """The units for a curve; rates: those of the benchmarks as well."""
    groups = (curve.g1.name, curve.g2.name)
    units = [(kind, curve.fr.name) for kind in SCALAR_KINDS]
    units += [(kind, group) for kind in GROUP_KINDS for group in groups]
    if rates:
        units += [("field_rates", field.name) for field in (curve.fp, curve.fr)]
        units += [("point_rates", group) for group in groups]
    return units


def warm(
    curves: Iterable[Curve],
    capability: tuple[int, int],
    on_unit: Callable[[str, float], None] | None = None,
    *,
    rates: bool = False,
) -> None:
    """Compile and cache what is missing for devices of a compute capability; no device is needed.

    on_unit is called with a unit's name and its seconds as each is done.
    """
    for unit in [unit for curve in curves for unit in units_of(curve, rates=rates)]:
        if read_unit(unit, capability) is None:
            start = time.perf_counter()
            stored_unit(unit, capability)
            if on_unit:
                on_unit(f"cuda {' '.join(unit)}", time.perf_counter() - start)


# CU_LAUNCH_PARAM_BUFFER_POINTER, the arguments; CU_LAUNCH_PARAM_BUFFER_SIZE, where their size lies; the end
_Extra = ctypes.c_void_p * 5


class Function:
    """One kernel in the driver: `function(stream, grid, block, *words, shared=bytes)`."""

    def __init__(self, name: str, handle: int, arguments: int) -> None:
        self.name, self.handle, self.arguments = name, handle, arguments
        self._words = ctypes.c_int64 * arguments
        self._size = ctypes.c_size_t(8 * arguments)
        self._allowed = DEFAULT_SHARED
        number, pointer = ctypes.c_uint, ctypes.c_void_p
        self._launch = driver.typed("cuLaunchKernel", pointer, *[number] * 7, *[pointer] * 3)

    def __call__(
        self, stream: int, grid: tuple[int, int, int], block: int, words: tuple[int, ...], shared: int
    ) -> None:
        if shared > self._allowed:
            driver.call("cuFuncSetAttribute", self.handle, driver.MAX_DYNAMIC_SHARED, shared)
            self._allowed = shared
        if len(words) != self.arguments:
            raise GpuError(f"kernel {self.name} takes {self.arguments} arguments, got {len(words)}")
        # the driver copies the arguments before it returns
        packed = self._words(*words)
        extra = _Extra(1, ctypes.addressof(packed), 2, ctypes.addressof(self._size), 0)
        status = self._launch(self.handle, *grid, block, 1, 1, shared, stream, None, extra)
        if status != 0:
            raise driver.error(f"launching {self.name} (grid {grid}, block {block}, {shared} bytes shared)", status)


class Library:
    """The kernels of a unit in one device's context, as attributes."""

    def __init__(self, unit: Unit, data: bytes) -> None:
        self.unit = unit
        start = len(MAGIC) + 32
        length = int.from_bytes(data[start : start + 4], "little")
        header: dict[str, list[Any]] = json.loads(data[start + 4 : start + 4 + length])
        code = data[start + 4 + length :]
        self.functions: dict[str, Function] = {}
        for name, (symbol, arguments, offset, size) in header.items():
            module = driver.handle("cuModuleLoadData", ctypes.c_char_p(code[offset : offset + size]))
            function = driver.handle("cuModuleGetFunction", module, ctypes.c_char_p(symbol.encode()))
            self.functions[name] = Function(f"{'.'.join(unit)}.{name}", function, arguments)

    def __getattr__(self, name: str) -> Function:
        try:
            return self.functions[name]
        except KeyError:
            raise AttributeError(f"unit {self.unit} has no kernel {name}") from None
