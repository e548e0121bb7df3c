"""The CUDA driver through ctypes: every call is checked, and a launch costs microseconds.

Only what this package uses. Signatures are those of the CUDA Driver API reference; a status other than 0 raises
`GpuError` with the driver's own name for it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any

from cuzk.errors import CuzkError

_LIBRARY = "libcuda.so.1"

# CUdevice_attribute
MULTIPROCESSORS = 16
CAPABILITY_MAJOR, CAPABILITY_MINOR = 75, 76
SHARED_PER_BLOCK_OPTIN = 97
# CUfunction_attribute
MAX_DYNAMIC_SHARED = 8
# CUmemPool_attribute
POOL_RELEASE_THRESHOLD = 4
OUT_OF_MEMORY = 2


class GpuError(CuzkError):
    """The CUDA driver refused a call; `status` is its number."""

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


@cache
def library() -> ctypes.CDLL:
    try:
        return ctypes.CDLL(_LIBRARY)
    except OSError as error:
        raise GpuError(f"no NVIDIA driver: {_LIBRARY} cannot be loaded") from error


def _describe(status: int) -> str:
    text = ctypes.c_char_p()
    if library().cuGetErrorName(status, ctypes.byref(text)) != 0 or text.value is None:
        return f"status {status}"
    return f"{text.value.decode()} ({status})"


@cache
def _function(name: str) -> Callable[..., int]:
    return getattr(library(), name)


def call(name: str, *args: Any) -> None:
    """Call a driver function; plain ints are passed as 64-bit words."""
    status = _function(name)(*[ctypes.c_uint64(x) if type(x) is int else x for x in args])
    if status != 0:
        raise error(name, status)


def error(what: str, status: int) -> GpuError:
    return GpuError(f"{what}: {_describe(status)}", status)


def typed(name: str, *kinds: Any) -> Callable[..., int]:
    """A driver function of its own with argument types, which makes a call cheap; returns the status."""
    address = ctypes.cast(getattr(library(), name), ctypes.c_void_p).value
    assert address is not None  # getattr has found it
    return ctypes.CFUNCTYPE(ctypes.c_int, *kinds)(address)


def integer(name: str, *args: Any) -> int:
    """The int that a driver function writes through its first argument."""
    out = ctypes.c_int()
    call(name, ctypes.byref(out), *args)
    return out.value


def handle(name: str, *args: Any) -> int:
    """The handle or address that a driver function writes through its first argument."""
    out = ctypes.c_uint64()
    call(name, ctypes.byref(out), *args)
    return out.value
