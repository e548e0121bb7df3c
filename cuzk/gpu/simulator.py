"""The device of `device.py` without a device: kernels run in numba's CUDA simulator, one Python thread each.

For small sizes and for tests. Field operations go through their carry-chain programs (`Element.interpreted`), so that
what is tested is what the card runs. Memory is numpy; nothing is asynchronous.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numba.core import types
from numba.cuda.simulator.cudadrv.devicearray import FakeCUDAArray

from cuzk.errors import CuzkError
from cuzk.field.element import Element, ElementType
from cuzk.field.lanes import Fp2LaneType, LaneElement, is_odd
from cuzk.field.tower import Fp2Element, Fp2Type
from cuzk.field.vector import Vector, VectorView, byte_size, leaves
from cuzk.gpu.device import Grid, grid_of
from cuzk.gpu.driver import GpuError
from cuzk.gpu.modules import MODULES


@dataclass(frozen=True)
class Address:
    """A place in a buffer: the twin of a device address."""

    words: np.ndarray  # uint32[buffer's size / 4]
    offset: int = 0  # bytes

    def __add__(self, nbytes: int) -> Address:
        return Address(self.words, self.offset + nbytes)

    @property
    def view(self) -> np.ndarray:
        if self.offset % 4 or not 0 <= self.offset <= self.words.nbytes:
            raise GpuError(f"address {self.offset} is outside a buffer of {self.words.nbytes} bytes")
        return self.words[self.offset // 4 :]


def _build(dtype: types.Type, values: list[Element]) -> Any:
    """The plain Python value of a type from its elements in order."""
    if isinstance(dtype, ElementType):
        return values[0]
    if isinstance(dtype, Fp2Type):
        return Fp2Element(*values)
    if isinstance(dtype, Fp2LaneType):
        return LaneElement(values[is_odd()])
    size = len(values) // len(dtype)
    return dtype.instance_class(*(_build(t, values[i * size : (i + 1) * size]) for i, t in enumerate(dtype)))


def _flatten(value: Any) -> tuple[Element | None, ...]:
    if isinstance(value, Element):
        return (value,)
    if isinstance(value, LaneElement):
        return (None, value.own) if is_odd() else (value.own, None)
    parts = (value.c0, value.c1) if isinstance(value, Fp2Element) else value
    return tuple(x for part in parts for x in _flatten(part))


def view_of(kind: types.Type, address: Address) -> Any:
    """What a kernel's argument of type `kind` is in Python."""
    dtype = kind.dtype
    if isinstance(dtype, types.Integer):
        # a plain array would be copied, and back after the kernel: over what it wrote through other views of the buffer
        return FakeCUDAArray(address.view)
    first, size = leaves(dtype)[0], byte_size(dtype) // 4
    words = address.view
    words = words[: len(words) - len(words) % size]
    parts, lanes = size // first.field.limbs, getattr(first, "lanes", 1)
    return VectorView(first.field, words, parts, lambda *x: _build(dtype, list(x)), _flatten, lanes=lanes)


class SimulatedFunction:
    def __init__(self, kernel: Any, target: Any) -> None:
        self.name, self.kernel, self.kinds = kernel.name, kernel, kernel.arguments(target)

    def run(self, grid: tuple[int, int, int], block: int, words: tuple[Any, ...], shared: int) -> None:
        if len(words) != len(self.kinds):
            raise GpuError(f"kernel {self.name} takes {len(self.kinds)} arguments, got {len(words)}")
        if block > self.kernel.threads:
            raise GpuError(f"kernel {self.name}: a block of {block} threads, expected at most {self.kernel.threads}")
        arguments = [
            view_of(kind, w.address if isinstance(w, SimulatedBuffer) else w) if isinstance(kind, Vector) else int(w)
            for kind, w in zip(self.kinds, words, strict=True)
        ]
        before, Element.interpreted = Element.interpreted, True
        try:
            self.kernel.dispatcher[grid, block, 0, shared](*arguments)
        finally:
            Element.interpreted = before


class SimulatedLibrary:
    def __init__(self, kind: str, target: str) -> None:
        from cuzk.gpu.compiler import kernels_of
        from cuzk.kernels.declare import target_named

        for kernel in kernels_of(MODULES[kind]):
            setattr(self, kernel.name, SimulatedFunction(kernel, target_named(target)))


class SimulatedBuffer:
    def __init__(self, nbytes: int) -> None:
        self.nbytes = nbytes
        # memory that nothing has written holds no zeros
        self._words: np.ndarray | None = np.full(max(1, -(-nbytes // 4)), 0xA5A5A5A5, np.uint32)

    @property
    def address(self) -> Address:
        if self._words is None:
            raise GpuError("device memory is used after it was freed")
        return Address(self._words)

    def close(self) -> None:
        self._words = None

    def __enter__(self) -> SimulatedBuffer:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def _address(x: SimulatedBuffer | Address) -> Address:
    return x.address if isinstance(x, SimulatedBuffer) else x


class SimulatedStream:
    handle = 0

    def __init__(self, gpu: SimulatedGpu) -> None:
        self.gpu = gpu

    def htod(self, target: SimulatedBuffer | Address, array: np.ndarray) -> None:
        words = np.ascontiguousarray(array).reshape(-1).view(np.uint32)
        place = _address(target).view
        if len(place) < len(words):
            raise GpuError(f"{array.nbytes} bytes do not fit in a buffer of {place.nbytes}")
        place[: len(words)] = words

    def dtoh(self, array: np.ndarray, source: SimulatedBuffer | Address) -> None:
        words = array.reshape(-1).view(np.uint32)
        words[:] = _address(source).view[: len(words)]

    def dtod(self, target: Address, source: Address, nbytes: int) -> None:
        target.view[: nbytes // 4] = source.view[: nbytes // 4]

    def zero(self, address: Address, nbytes: int) -> None:
        address.view[: nbytes // 4] = 0

    def launch(self, function: SimulatedFunction, grid: Grid, block: int, *words: Any, shared: int = 0) -> None:
        sizes = grid_of(grid)
        if 0 not in sizes:
            function.run(sizes, block, words, shared)

    def record(self, event: SimulatedEvent | None = None) -> SimulatedEvent:
        return SimulatedEvent()

    def wait(self, event: SimulatedEvent) -> None:
        pass

    def synchronize(self) -> None:
        pass


class SimulatedEvent:
    def __init__(self) -> None:
        self.time = time.perf_counter()

    def synchronize(self) -> None:
        pass

    def milliseconds_since(self, earlier: SimulatedEvent) -> float:
        return 1e3 * (self.time - earlier.time)


class SimulatedGpu:
    """Two multiprocessors, so that plans cut work up, and a GiB of memory."""

    simulated = True
    index = 0
    name = "numba CUDA simulator"
    capability = (9, 0)
    shared_per_block = 227 << 10
    multiprocessors = 2

    @cached_property
    def _libraries(self) -> dict[tuple[str, str], SimulatedLibrary]:
        return {}

    @cached_property
    def default_stream(self) -> SimulatedStream:
        return SimulatedStream(self)

    def enter(self) -> None:
        pass

    def memory(self) -> tuple[int, int]:
        return 1 << 30, 1 << 30

    def library(self, kind: str, target: str) -> SimulatedLibrary:
        if kind not in MODULES:
            raise CuzkError(f"there are no kernels called {kind}")
        if (kind, target) not in self._libraries:
            self._libraries[kind, target] = SimulatedLibrary(kind, target)
        return self._libraries[kind, target]

    def stream(self) -> SimulatedStream:
        return SimulatedStream(self)

    def event(self) -> SimulatedEvent:
        return SimulatedEvent()

    def allocate(self, nbytes: int, stream: Any = None) -> SimulatedBuffer:
        return SimulatedBuffer(nbytes)

    def upload(self, array: np.ndarray, stream: Any = None) -> SimulatedBuffer:
        buffer = self.allocate(array.nbytes)
        self.default_stream.htod(buffer, array)
        return buffer

    def synchronize(self) -> None:
        pass
