"""Arrays of limbs in device memory: our own, and other libraries' as they lie.

`to_device` and `empty` make arrays; `as_device` looks at an array of CuPy, PyTorch, numba or any other library
through the CUDA Array Interface (version 3, numba's documentation, "CUDA Array Interface"), without a copy. What is
made here offers the same interface, so those libraries take it as theirs.

Nothing here waits for the device but `DeviceArray.numpy`. Under NUMBA_ENABLE_CUDASIM=1 a pointer is one to host memory.
"""

from __future__ import annotations

import ctypes
import math
from typing import Any

import numpy as np

from cuzk.errors import CuzkError
from cuzk.gpu import driver
from cuzk.gpu.device import Event, device
from cuzk.gpu.driver import GpuError

ALIGNMENT = 16  # bytes: elements are read and written so many at a time
LEGACY_STREAM = 1  # the protocol's name for stream 0, which it forbids since it may mean either default stream
ITEM_WORDS = {"<u4": 1, "<i4": 1, "<u8": 2, "<i8": 2}  # 32-bit words of an item, by the protocol's `typestr`
# CUpointer_attribute, and CUmemorytype
MEMORY_TYPE, DEVICE_ORDINAL = 2, 9
HOST_MEMORY, DEVICE_MEMORY = 1, 2

Shape = int | tuple[int, ...]


class DeviceArray:
    """uint32[shape] in device memory, C-contiguous, at a multiple of 16 bytes.

    gpu:    the device (`cuzk.gpu.device.Gpu`, or its twin in the simulator).
    stream: where its work is ordered: made, by default used, and freed there. Other streams that use it must
            have finished, or be waited for by this one, before `close()`.
    owner:  what keeps the memory: a buffer of ours, or the object of another library that was given to `as_device`.
    writable: whether results may be written to it.

    `close()`, a `with` block or collection gives memory of our own back; another library's is let go.
    """

    dtype = np.dtype(np.uint32)

    def __init__(
        self, gpu: Any, stream: Any, owner: Any, address: Any, shape: tuple[int, ...], *, writable: bool = True
    ) -> None:
        self.gpu, self.stream, self.shape, self.writable = gpu, stream, shape, writable
        self._owner, self._address = owner, address

    @property
    def nbytes(self) -> int:
        return 4 * math.prod(self.shape)

    @property
    def address(self) -> Any:
        """Where it begins: an int, or the simulator's `Address`. Raises GpuError after `close()`."""
        if self._owner is None:
            raise GpuError(f"{self!r} is used after it was closed")
        return self._address

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """The array for other libraries, who are to wait for `stream` first."""
        address = self.address
        pointer = address.view.ctypes.data if self.gpu.simulated else address
        return {
            "shape": self.shape,
            "typestr": "<u4",
            "data": (pointer if self.nbytes else 0, not self.writable),
            "strides": None,
            "stream": self.stream.handle or LEGACY_STREAM,
            "version": 3,
        }

    def numpy(self) -> np.ndarray:
        """A copy in host memory, uint32[shape]; waits for the array's stream."""
        out = np.empty(self.shape, self.dtype)
        self.stream.dtoh(out.reshape(-1), self.address)
        return out

    def check_apart(self, x: DeviceArray, what: str, *, or_equal: bool) -> None:
        """Raise CuzkError where results of `what`, written here, would overwrite x.

        or_equal: but for the very same place.
        """
        if not self.nbytes or not x.nbytes:
            return
        distance = self._place() - x._place()
        if -self.nbytes < distance < x.nbytes and not (or_equal and distance == 0):
            expected = "exactly there, or memory of its own" if or_equal else "memory of its own"
            raise CuzkError(f"{what}: the result was to be written over an input, expected {expected}")

    def _place(self) -> int:
        pointer: int = self.__cuda_array_interface__["data"][0]
        return pointer

    def close(self) -> None:
        owner, self._owner = self._owner, None
        if isinstance(owner, _Own):
            owner.buffer.close()

    def __enter__(self) -> DeviceArray:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("an array without axes has no length")
        return self.shape[0]

    def __repr__(self) -> str:
        return f"DeviceArray(uint32{list(self.shape)}, {self.gpu.name})"


class _Own:
    """A buffer that ends with its array; of other owners only the reference is dropped."""

    def __init__(self, buffer: Any) -> None:
        self.buffer = buffer


def empty(shape: Shape, gpu: Any = None, stream: Any = None) -> DeviceArray:
    """A new array that nothing has written; gpu: by default the stream's, else the first. Costs microseconds."""
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    if any(size < 0 for size in sizes):
        raise CuzkError(f"an array of shape {list(sizes)}: expected no negative size")
    gpu, stream = _place(gpu, stream)
    buffer = gpu.allocate(4 * math.prod(sizes), stream)
    return DeviceArray(gpu, stream, _Own(buffer), buffer.address, sizes)


def to_device(array: np.ndarray, gpu: Any = None, stream: Any = None) -> DeviceArray:
    """A copy of a host array of 32- or 64-bit integers; 64-bit ones become two words each, along the last axis."""
    array = np.ascontiguousarray(array) if np.ndim(array) else np.asarray(array)
    shape = _words_shape(array.shape, array.dtype.str, "a host array")
    out = empty(shape, gpu, stream)
    out.stream.htod(out.address, array.reshape(-1).view(np.uint32))
    return out


def is_device(x: Any) -> bool:
    """Whether `as_device` would look at x: an array or buffer of ours, or anything with __cuda_array_interface__."""
    return isinstance(x, DeviceArray) or _is_simulated_buffer(x) or hasattr(x, "__cuda_array_interface__")


def as_device(x: Any, gpu: Any = None, stream: Any = None, *, writable: bool = False) -> DeviceArray:
    """x as a DeviceArray, without a copy; x is kept alive by it. A DeviceArray comes back as it is.

    x: items of 32 bits, or of 64 bits (signed or not, since some libraries have no unsigned types): the last axis
       is then twice as long here, so int64[n, 4] is uint32[n, 8].
    gpu, stream: where it is to be used; by default where it lies, and that device's default stream. What the
       producer has under way on the stream that it names comes before later work on ours.
    writable: whether it must be.

    Raises CuzkError for other items, gaps or another order in memory, masks, a read-only array that is to be
    written, an address that is not a multiple of 16 bytes, host memory, and memory of another device.
    """
    if isinstance(x, DeviceArray):
        return _checked_own(x, gpu, stream, writable)
    what = f"{type(x).__module__}.{type(x).__qualname__}"
    if _is_simulated_buffer(x):
        gpu, stream = _place(gpu, stream)
        return DeviceArray(gpu, stream, x, x.address, (x.nbytes // 4,))
    try:
        interface = x.__cuda_array_interface__
    except AttributeError:
        raise CuzkError(f"{what} is not an array in device memory: it has no __cuda_array_interface__") from None

    shape = tuple(int(size) for size in interface["shape"])
    words = _words_shape(shape, interface["typestr"], what)
    _check_layout(interface, shape, what)
    pointer, read_only = interface["data"]
    pointer = int(pointer or 0)
    if read_only and writable:
        raise CuzkError(f"{what}: the array is read-only, expected one that results can be written to")
    if pointer % ALIGNMENT:
        raise CuzkError(f"{what}: address 0x{pointer:x}, expected a multiple of {ALIGNMENT}")
    nbytes = 4 * math.prod(words)
    if gpu is None and stream is None and nbytes:
        gpu = _device_of(pointer, what)
    gpu, stream = _place(gpu, stream)
    if nbytes:
        _check_device(gpu, pointer, what)
    _wait_for_producer(gpu, stream, interface.get("stream"), what)
    address = _host_address(pointer, nbytes) if gpu.simulated else pointer
    return DeviceArray(gpu, stream, x, address, words, writable=not read_only)


def _place(gpu: Any, stream: Any) -> tuple[Any, Any]:
    if gpu is None:
        gpu = stream.gpu if stream is not None else device()
    elif stream is not None and stream.gpu is not gpu:
        raise CuzkError(f"a stream of device {stream.gpu.index}, expected one of device {gpu.index}")
    return gpu, stream if stream is not None else gpu.default_stream


def _checked_own(x: DeviceArray, gpu: Any, stream: Any, writable: bool) -> DeviceArray:
    target = gpu if gpu is not None else stream.gpu if stream is not None else x.gpu
    if target is not x.gpu:
        raise CuzkError(f"{x!r} lies on device {x.gpu.index}, expected device {target.index}")
    if writable and not x.writable:
        raise CuzkError(f"{x!r} is read-only, expected one that results can be written to")
    if stream is not None and stream is not x.stream:
        stream.wait(x.stream.record())
    return x


def _words_shape(shape: tuple[int, ...], typestr: str, what: str) -> tuple[int, ...]:
    """The shape in 32-bit words."""
    words = ITEM_WORDS.get(typestr)
    if words is None:
        raise CuzkError(
            f"{what}: items of type {typestr}, expected integers of 32 or 64 bits ({', '.join(ITEM_WORDS)})"
        )
    if words == 1:
        return shape
    if not shape:
        raise CuzkError(f"{what}: one 64-bit integer without an axis, expected an array")
    return (*shape[:-1], words * shape[-1])


def _check_layout(interface: dict[str, Any], shape: tuple[int, ...], what: str) -> None:
    if interface.get("mask") is not None:
        raise CuzkError(f"{what}: the array has a mask, expected none")
    strides = interface.get("strides")
    if strides is None or 0 in shape:
        return
    step = 4 * ITEM_WORDS[interface["typestr"]]
    for size, stride in zip(reversed(shape), reversed(tuple(strides)), strict=True):
        if size != 1 and stride != step:
            raise CuzkError(
                f"{what}: shape {list(shape)} with strides of {list(strides)} bytes, expected C order without gaps"
            )
        step *= size


def _device_of(pointer: int, what: str) -> Any:
    """The device whose memory a pointer is to."""
    first = device()
    return first if first.simulated else device(_ordinal(pointer, what))


def _ordinal(pointer: int, what: str) -> int:
    number = ctypes.c_int(0)
    try:
        driver.call("cuPointerGetAttribute", ctypes.byref(number), MEMORY_TYPE, pointer)
        if number.value != DEVICE_MEMORY:
            kind = "host memory" if number.value == HOST_MEMORY else f"memory of type {number.value}"
            raise CuzkError(f"{what}: address 0x{pointer:x} is {kind}, expected device memory")
        driver.call("cuPointerGetAttribute", ctypes.byref(number), DEVICE_ORDINAL, pointer)
    except GpuError as error:
        raise CuzkError(f"{what}: address 0x{pointer:x} is not device memory: {error}") from error
    return number.value


def _check_device(gpu: Any, pointer: int, what: str) -> None:
    if gpu.simulated:
        return
    ordinal = _ordinal(pointer, what)
    if ordinal != gpu.index:
        raise CuzkError(f"{what}: the array lies on device {ordinal}, expected device {gpu.index}")


def _wait_for_producer(gpu: Any, stream: Any, producer: int | None, what: str) -> None:
    """Later work of `stream` comes after what the producer's stream has now; None means that nothing is under way."""
    if producer is None:
        return
    if producer == 0:
        raise CuzkError(f"{what}: stream 0, which the CUDA Array Interface forbids; expected 1, 2 or a handle")
    if gpu.simulated or producer == stream.handle or (producer == LEGACY_STREAM and stream.handle == 0):
        return
    event: Event = gpu.event()
    # 1 and 2 are the driver's names for the two default streams as well
    driver.call("cuEventRecord", event.handle, producer)
    stream.wait(event)


def _is_simulated_buffer(x: Any) -> bool:
    return hasattr(getattr(x, "address", None), "words") and hasattr(x, "nbytes")


def _host_address(pointer: int, nbytes: int) -> Any:
    """The simulator's address of host memory."""
    from cuzk.gpu.simulator import Address

    if not nbytes:
        return Address(np.empty(0, np.uint32))
    return Address(np.ctypeslib.as_array((ctypes.c_uint32 * (nbytes // 4)).from_address(pointer)))
