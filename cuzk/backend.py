"""Which backend runs a job, and what the machine has for it.

The driver is asked through ctypes, so that neither this question nor the CPU backend imports numba.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from cuzk.errors import BackendError

Backend = Literal["cpu", "cuda"]
NAMES = ("auto", "cpu", "cuda")

_LIBRARY = "libcuda.so.1"
_NO_DEVICE = 100  # CUDA_ERROR_NO_DEVICE
_CAPABILITY_MAJOR, _CAPABILITY_MINOR = 75, 76  # CUdevice_attribute


@dataclass(frozen=True)
class Gpu:
    index: int
    name: str
    memory_bytes: int
    capability: tuple[int, int]


@dataclass(frozen=True)
class Cuda:
    """What this machine has for CUDA; each of `missing` says what it lacks and how to get it."""

    package: str | None  # version of numba-cuda
    driver: tuple[int, int] | None  # the newest CUDA version that the driver serves
    gpus: tuple[Gpu, ...]
    missing: tuple[str, ...]


def resolve(name: str, offered: Sequence[Backend] = ("cpu", "cuda")) -> Backend:
    """The backend to use for "auto", "cpu" or "cuda"; "auto" is "cuda" where all that it needs is there.

    offered: those that the caller has. Raises BackendError for an unknown name, and for "cuda", saying what is
    missing: there is no silent fallback. numba's CUDA simulator counts as a GPU, for "cuda" only.
    """
    if name not in NAMES:
        raise BackendError(f"unknown backend {name!r}: expected one of {', '.join(NAMES)}")
    if name == "cpu" or (name == "auto" and ("cuda" not in offered or cuda().missing)):
        return "cpu"
    if "cuda" not in offered:
        raise BackendError("backend cuda: proofs on the GPU are not in this version; msm and ntt are")
    if cuda().missing and os.environ.get("NUMBA_ENABLE_CUDASIM") != "1":
        raise BackendError(f"backend cuda: {'; '.join(cuda().missing)}")
    return "cuda"


def resolve_for(name: str, *arrays: Any) -> Backend:
    """`resolve` for arrays, some of which may lie on a GPU: "auto" is then "cuda", and "cpu" is refused."""
    if not any(hasattr(x, "__cuda_array_interface__") for x in arrays):
        return resolve(name)
    if name == "cpu":
        raise BackendError("backend cpu: an array lies in a GPU's memory; copy it to the host, or ask for cuda")
    return resolve("cuda" if name == "auto" else name)


@lru_cache(maxsize=1)
def cuda() -> Cuda:
    """Look for the numba-cuda package, the driver and its GPUs, without importing or initialising more than that."""
    import importlib.metadata  # a fortieth of a second, so not before somebody asks for CUDA

    missing = []
    driver, gpus, problem = _ask_driver()
    try:
        package = importlib.metadata.version("numba-cuda")
    except importlib.metadata.PackageNotFoundError:
        package = None
        extra = f"cuda{driver[0]}" if driver and driver[0] in (12, 13) else "cuda13"
        missing.append(f"no numba-cuda (pip install 'cuzk[{extra}]')")
    if problem:
        missing.append(problem)
    return Cuda(package, driver, gpus, tuple(missing))


def _ask_driver() -> tuple[tuple[int, int] | None, tuple[Gpu, ...], str | None]:
    """The driver's CUDA version, its GPUs, and what is wrong if anything is."""
    try:
        library = ctypes.CDLL(_LIBRARY)
    except OSError:
        return None, (), f"no NVIDIA driver ({_LIBRARY} cannot be loaded; it comes with the driver, not with pip)"
    number = ctypes.c_int(0)
    version = None
    if library.cuDriverGetVersion(ctypes.byref(number)) == 0:
        version = (number.value // 1000, number.value % 1000 // 10)
    status = library.cuInit(0)
    if status not in (0, _NO_DEVICE):
        return version, (), f"the NVIDIA driver does not start (cuInit returned {status})"
    if status or library.cuDeviceGetCount(ctypes.byref(number)) or number.value == 0:
        return version, (), "no GPU that the NVIDIA driver shows to this process (see CUDA_VISIBLE_DEVICES)"
    return version, tuple(_describe_gpu(library, index) for index in range(number.value)), None


def _describe_gpu(library: ctypes.CDLL, index: int) -> Gpu:
    device, name, memory = ctypes.c_int(0), ctypes.create_string_buffer(256), ctypes.c_size_t(0)
    library.cuDeviceGet(ctypes.byref(device), index)
    library.cuDeviceGetName(name, len(name), device)
    library.cuDeviceTotalMem_v2(ctypes.byref(memory), device)
    capability = []
    for attribute in (_CAPABILITY_MAJOR, _CAPABILITY_MINOR):
        value = ctypes.c_int(0)
        library.cuDeviceGetAttribute(ctypes.byref(value), attribute, device)
        capability.append(value.value)
    return Gpu(index, name.value.decode(errors="replace"), memory.value, (capability[0], capability[1]))
