"""One GPU: its memory, streams, events and kernels.

`device()` gives the process's `Gpu`, or under NUMBA_ENABLE_CUDASIM=1 its twin of `simulator.py`, which runs the
same kernels in Python threads. Host code is written once against this interface.

Addresses are plain integers here and `simulator.Address` there; both take `+ bytes`. Memory comes from the
device's stream-ordered pool ("Stream Ordered Memory Allocator", CUDA Driver API), whose blocks stay with the process,
so asking again costs microseconds.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from cuzk.errors import BackendError
from cuzk.gpu import driver, modules
from cuzk.gpu.driver import GpuError

Grid = int | tuple[int, int] | tuple[int, int, int]


@lru_cache(maxsize=8)
def device(index: int = 0) -> Any:
    """The GPU of an index, once a process. Raises GpuError or BackendError where there is none."""
    if os.environ.get("NUMBA_ENABLE_CUDASIM") == "1":
        from cuzk.gpu.simulator import SimulatedGpu

        return SimulatedGpu()
    return Gpu(index)


def grid_of(grid: Grid) -> tuple[int, int, int]:
    sizes = (grid,) if isinstance(grid, int) else tuple(grid)
    x, y, z = (*sizes, 1, 1)[:3]
    return x, y, z


class Gpu:
    """One device, with its primary context (shared with numba, CuPy and PyTorch)."""

    simulated = False

    def __init__(self, index: int = 0) -> None:
        self.index = index
        driver.call("cuInit", 0)
        count = driver.integer("cuDeviceGetCount")
        if not 0 <= index < count:
            raise BackendError(f"GPU {index} was asked for; this process sees {count}")
        self._device = driver.integer("cuDeviceGet", index)
        self._context = driver.handle("cuDevicePrimaryCtxRetain", self._device)
        self.multiprocessors = self._attribute(driver.MULTIPROCESSORS)
        self.capability = (self._attribute(driver.CAPABILITY_MAJOR), self._attribute(driver.CAPABILITY_MINOR))
        self.shared_per_block = self._attribute(driver.SHARED_PER_BLOCK_OPTIN)
        name = ctypes.create_string_buffer(256)
        driver.call("cuDeviceGetName", name, len(name), self._device)
        self.name = name.value.decode(errors="replace")
        self._pool = driver.handle("cuDeviceGetDefaultMemPool", self._device)
        keep_all = ctypes.c_uint64(2**64 - 1)
        driver.call("cuMemPoolSetAttribute", self._pool, driver.POOL_RELEASE_THRESHOLD, ctypes.byref(keep_all))
        self._set_current = driver.typed("cuCtxSetCurrent", ctypes.c_void_p)
        self._libraries: dict[modules.Unit, modules.Library] = {}
        self._lock = threading.Lock()
        self.enter()
        self.default_stream = Stream(self, 0)

    def _attribute(self, number: int) -> int:
        return driver.integer("cuDeviceGetAttribute", number, self._device)

    def enter(self) -> None:
        """Make this device the calling thread's; every method that needs it does so itself."""
        status = self._set_current(self._context)
        if status != 0:
            raise driver.error("cuCtxSetCurrent", status)

    def memory(self) -> tuple[int, int]:
        """(free, total) bytes; what the pool keeps for reuse counts as free."""
        self.enter()
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        driver.call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
        return free.value + self._pool_attribute(5) - self._pool_attribute(7), total.value  # reserved, used

    def _pool_attribute(self, number: int) -> int:
        out = ctypes.c_uint64()
        driver.call("cuMemPoolGetAttribute", self._pool, number, ctypes.byref(out))
        return out.value

    def library(self, kind: str, target: str) -> modules.Library:
        """The kernels of a unit, from memory, from disk, or compiled now."""
        unit = (kind, target)
        with self._lock:
            if unit not in self._libraries:
                self.enter()
                self._libraries[unit] = modules.Library(unit, modules.stored_unit(unit, self.capability))
            return self._libraries[unit]

    def stream(self) -> Stream:
        """A new stream that does not wait for the default one."""
        self.enter()
        return Stream(self, driver.handle("cuStreamCreate", 1))

    def event(self) -> Event:
        self.enter()
        return Event(driver.handle("cuEventCreate", 0))

    def allocate(self, nbytes: int, stream: Stream | None = None) -> DeviceBuffer:
        """Memory from the pool, aligned to 256 bytes, in the stream's order. Raises GpuError if there is too little."""
        self.enter()
        stream = stream or self.default_stream
        address = ctypes.c_uint64()
        size = max(nbytes, 16)
        try:
            driver.call("cuMemAllocAsync", ctypes.byref(address), size, stream.handle)
        except GpuError as error:
            if error.status == driver.OUT_OF_MEMORY:
                free, total = self.memory()
                raise GpuError(
                    f"{self.name}: {nbytes} bytes of device memory asked for, {free} of {total} free", error.status
                ) from error
            raise
        return DeviceBuffer(self, stream, address.value, nbytes)

    def upload(self, array: np.ndarray, stream: Stream | None = None) -> DeviceBuffer:
        """A new buffer with an array's bytes."""
        buffer = self.allocate(array.nbytes, stream)
        (stream or self.default_stream).htod(buffer, array)
        return buffer

    def synchronize(self) -> None:
        """Wait for everything; reports errors of kernels."""
        self.enter()
        driver.call("cuCtxSynchronize")


class DeviceBuffer:
    """Device memory that is freed, in its stream's order, by `close()`, by a `with` block or by collection."""

    def __init__(self, gpu: Gpu, stream: Stream, address: int, nbytes: int) -> None:
        self.gpu, self.stream, self.nbytes = gpu, stream, nbytes
        self._address: int | None = address

    @property
    def address(self) -> int:
        if self._address is None:
            raise GpuError("device memory is used after it was freed")
        return self._address

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {"shape": (self.nbytes // 4,), "typestr": "<u4", "data": (self.address, False), "version": 3}

    def close(self) -> None:
        if self._address is not None:
            address, self._address = self._address, None
            self.gpu.enter()
            driver.call("cuMemFreeAsync", address, self.stream.handle)

    def __enter__(self) -> DeviceBuffer:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __del__(self, ending: Callable[[], bool] = sys.is_finalizing) -> None:
        # at the interpreter's end the modules that are needed may be gone, and the memory goes with the process
        if getattr(self, "_address", None) is not None and not ending():
            self.close()


class Stream:
    """Work on a device in order. Copies to and from pageable host memory return when the host array is free again."""

    def __init__(self, gpu: Gpu, handle: int) -> None:
        self.gpu, self.handle = gpu, handle

    def htod(self, target: DeviceBuffer | int, array: np.ndarray) -> None:
        """Copy an array to device memory (a buffer, or an address)."""
        array = np.ascontiguousarray(array)
        if isinstance(target, DeviceBuffer) and target.nbytes < array.nbytes:
            raise GpuError(f"{array.nbytes} bytes do not fit in a buffer of {target.nbytes}")
        if array.nbytes:
            self.gpu.enter()
            address = target if isinstance(target, int) else target.address
            driver.call("cuMemcpyHtoDAsync_v2", address, array.ctypes.data, array.nbytes, self.handle)

    def dtoh(self, array: np.ndarray, source: DeviceBuffer | int) -> None:
        """Copy device memory into a contiguous array and wait for it."""
        if not array.flags.c_contiguous:
            raise GpuError("the host array of a copy is not contiguous")
        if array.nbytes:
            self.gpu.enter()
            address = source if isinstance(source, int) else source.address
            driver.call("cuMemcpyDtoHAsync_v2", array.ctypes.data, address, array.nbytes, self.handle)
        self.synchronize()

    def dtod(self, target: int, source: int, nbytes: int) -> None:
        if nbytes:
            self.gpu.enter()
            driver.call("cuMemcpyDtoDAsync_v2", target, source, nbytes, self.handle)

    def zero(self, address: int, nbytes: int) -> None:
        """Set bytes, a multiple of four, to zero."""
        if nbytes:
            self.gpu.enter()
            driver.call("cuMemsetD32Async", address, 0, nbytes // 4, self.handle)

    def launch(
        self, function: modules.Function, grid: Grid, block: int, *words: int | DeviceBuffer, shared: int = 0
    ) -> None:
        """Start a kernel. words: addresses (or buffers) and integers; shared: bytes of dynamic shared memory."""
        sizes = grid_of(grid)
        if 0 in sizes:
            return
        self.gpu.enter()
        function(self.handle, sizes, block, tuple(w if type(w) is int else _word(w) for w in words), shared)

    def record(self, event: Event | None = None) -> Event:
        event = event or self.gpu.event()
        driver.call("cuEventRecord", event.handle, self.handle)
        return event

    def wait(self, event: Event) -> None:
        """Later work here starts after the event."""
        driver.call("cuStreamWaitEvent", self.handle, event.handle, 0)

    def synchronize(self) -> None:
        self.gpu.enter()
        driver.call("cuStreamSynchronize", self.handle)


class Event:
    """A point in a stream's work, with its time."""

    def __init__(self, handle: int) -> None:
        self.handle = handle

    def synchronize(self) -> None:
        driver.call("cuEventSynchronize", self.handle)

    def milliseconds_since(self, earlier: Event) -> float:
        out = ctypes.c_float()
        driver.call("cuEventElapsedTime_v2", ctypes.byref(out), earlier.handle, self.handle)
        return out.value

    def __del__(self, ending: Callable[[], bool] = sys.is_finalizing) -> None:
        if not ending():
            driver.library().cuEventDestroy_v2(ctypes.c_uint64(self.handle))


def _word(x: Any) -> int:
    return x.address if isinstance(x, DeviceBuffer) else int(x)
