"""What the CUDA layer does without a card: the driver's absence, the store of compiled units, device arrays' checks.

Arrays are judged with the simulator's device, which can be had without its kernels.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from cuzk.errors import BackendError, CuzkError
from cuzk.gpu import array, driver, modules
from cuzk.gpu.array import DeviceArray, as_device, empty, is_device, to_device
from cuzk.gpu.device import Stream, grid_of
from cuzk.gpu.driver import GpuError
from cuzk.gpu.simulator import SimulatedBuffer, SimulatedGpu
from helpers import run_python


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> SimulatedGpu:
    """The simulator's device as the process's first."""
    simulated = SimulatedGpu()
    monkeypatch.setattr(array, "device", lambda index=0: simulated)
    return simulated


# --- driver ------------------------------------------------------------------------------------------


@pytest.fixture
def no_driver(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    driver.library.cache_clear()
    monkeypatch.setattr(driver, "_LIBRARY", "libno-such-driver.so.1")
    yield
    driver.library.cache_clear()


@pytest.mark.usefixtures("no_driver")
def test_a_missing_driver_is_told() -> None:
    driver._function.cache_clear()
    with pytest.raises(GpuError, match=r"no NVIDIA driver: libno-such-driver\.so\.1"):
        driver.call("cuInit", 0)


def test_a_status_has_the_name_that_the_driver_gives_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def name(status: int, text: Any) -> int:
        text._obj.value = b"CUDA_ERROR_OUT_OF_MEMORY"
        return 0 if status == 2 else 1

    fake = SimpleNamespace(cuGetErrorName=name, cuMemAlloc=lambda *args: 2, cuNothing=lambda *args: 77)
    monkeypatch.setattr(driver, "library", lambda: fake)
    driver._function.cache_clear()
    with pytest.raises(GpuError, match=r"^cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY \(2\)$") as caught:
        driver.call("cuMemAlloc", 1)
    assert caught.value.status == driver.OUT_OF_MEMORY
    with pytest.raises(GpuError, match=r"^cuNothing: status 77$"):
        driver.call("cuNothing")
    driver._function.cache_clear()


def test_plain_ints_are_passed_as_64_bit_words(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    monkeypatch.setattr(driver, "library", lambda: SimpleNamespace(f=lambda *args: seen.extend(args) or 0))
    driver._function.cache_clear()
    driver.call("f", 1 << 40, None)
    driver._function.cache_clear()
    assert seen[0].value == 1 << 40
    assert seen[1] is None


@pytest.mark.parametrize(
    ("grid", "sizes"), [(7, (7, 1, 1)), ((3, 4), (3, 4, 1)), ((3, 4, 5), (3, 4, 5)), (0, (0, 1, 1))]
)
def test_grids_have_three_sizes(grid: Any, sizes: tuple[int, int, int]) -> None:
    assert grid_of(grid) == sizes


def test_a_copy_that_does_not_fit_is_refused_before_it_starts(gpu: SimulatedGpu) -> None:
    with pytest.raises(GpuError, match="32 bytes do not fit in a buffer of 16"):
        gpu.default_stream.htod(SimulatedBuffer(16), np.zeros(8, np.uint32))
    with pytest.raises(GpuError, match="not contiguous"):
        Stream(gpu, 0).dtoh(np.zeros((4, 4), np.uint32)[:, :2], 0)  # type: ignore[arg-type]


# --- the store of compiled units ---------------------------------------------------------------------

CAPABILITY = (9, 0)
UNIT = ("vector", "Fr[bn254]")


def stored(code: bytes) -> bytes:
    """A unit's file with one kernel in it."""
    text = json.dumps({"multiply": ["entry", 4, 0, len(code)]}).encode()
    body = len(text).to_bytes(4, "little") + text + code
    return modules.MAGIC + hashlib.sha256(body).digest() + body


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CUZK_CACHE_DIR", str(tmp_path))
    return tmp_path


def test_a_unit_is_compiled_once_and_kept(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[Any] = []

    def compile_unit(unit: modules.Unit, capability: tuple[int, int]) -> bytes:
        compiled.append((unit, capability))
        return stored(b"cubin")

    monkeypatch.setattr(modules, "compile_unit", compile_unit)
    first = modules.stored_unit(UNIT, CAPABILITY)
    assert modules.stored_unit(UNIT, CAPABILITY) == first == stored(b"cubin")
    assert compiled == [(UNIT, CAPABILITY)]
    assert modules.path_of(UNIT, CAPABILITY).parent == store
    modules.stored_unit(UNIT, (8, 0))
    assert compiled[1:] == [(UNIT, (8, 0))]


@pytest.mark.usefixtures("store")
@pytest.mark.parametrize("harm", ["cut", "bit", "magic", "empty"])
def test_a_damaged_file_is_compiled_anew(harm: str, monkeypatch: pytest.MonkeyPatch) -> None:
    good = stored(b"cubin")
    bad = {"cut": good[:-1], "bit": good[:-1] + bytes([good[-1] ^ 1]), "magic": b"x" + good[1:], "empty": b""}[harm]
    modules.path_of(UNIT, CAPABILITY).write_bytes(bad)
    assert modules.read_unit(UNIT, CAPABILITY) is None
    monkeypatch.setattr(modules, "compile_unit", lambda unit, capability: good)
    assert modules.stored_unit(UNIT, CAPABILITY) == good
    assert modules.read_unit(UNIT, CAPABILITY) == good


def test_names_of_units_tell_kind_target_architecture_and_sources_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    paths = {
        modules.path_of((kind, target), capability)
        for kind in ("vector", "sort")
        for target in ("Fr[bn254]", "Fr[bls12_381]")
        for capability in ((7, 5), (9, 0))
    }
    before = modules.fingerprint("vector")
    modules.fingerprint.cache_clear()
    monkeypatch.setattr(modules, "_toolchain", lambda: "another release")
    paths.add(modules.path_of(UNIT, CAPABILITY))
    after = modules.fingerprint("vector")
    modules.fingerprint.cache_clear()
    assert len(paths) == 9
    assert before != after


def test_a_library_hands_each_kernel_to_the_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[Any, ...]] = []
    packed: list[int] = []

    def handle(name: str, *args: Any) -> int:
        calls.append((name, args[-1].value))
        return 40 + len(calls)

    def launch(function: int, *rest: Any) -> int:
        import ctypes

        extra = rest[-1]
        packed.extend((ctypes.c_int64 * 4).from_address(extra[1]))
        calls.append((function, *rest[:8]))
        return 0

    monkeypatch.setattr(driver, "handle", handle)
    monkeypatch.setattr(driver, "typed", lambda *kinds: launch)
    monkeypatch.setattr(driver, "call", lambda *args: calls.append(args))
    library = modules.Library(UNIT, stored(b"cubin"))
    assert calls == [("cuModuleLoadData", b"cubin"), ("cuModuleGetFunction", b"entry")]
    with pytest.raises(AttributeError, match=r"\('vector', 'Fr\[bn254\]'\) has no kernel nothing"):
        _ = library.nothing
    library.multiply(9, (2, 3, 1), 256, (1 << 40, 2, -3, 4), 0)
    assert packed == [1 << 40, 2, -3, 4]
    assert calls[2:] == [(42, 2, 3, 1, 256, 1, 1, 0, 9)]
    # shared memory beyond the default needs permission, once
    for _ in range(2):
        library.multiply(9, (1, 1, 1), 1, (1, 2, 3, 4), 100 << 10)
    assert [c for c in calls if c[0] == "cuFuncSetAttribute"] == [
        ("cuFuncSetAttribute", 42, driver.MAX_DYNAMIC_SHARED, 100 << 10)
    ]
    with pytest.raises(GpuError, match=r"kernel vector\.Fr\[bn254\]\.multiply takes 4 arguments, got 3"):
        library.multiply(9, (1, 1, 1), 1, (1, 2, 3), 0)


def test_compiling_without_numba_cuda_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cuzk.kernels.declare", None)
    with pytest.raises(BackendError, match="compiling CUDA kernels needs numba-cuda"):
        modules.compile_unit(UNIT, CAPABILITY)


def test_the_layer_does_not_import_numba() -> None:
    code = "import sys, cuzk.gpu.array, cuzk.gpu.sorting; print('numba' in sys.modules)"
    done = run_python("-c", code, NUMBA_ENABLE_CUDASIM="0")
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "False"


# --- device arrays -----------------------------------------------------------------------------------


class Foreign:
    """Another library's array: host memory stands for the device's."""

    def __init__(self, values: np.ndarray, **entries: Any) -> None:
        self.values = values
        self.__cuda_array_interface__ = {
            "shape": values.shape,
            "typestr": values.dtype.str,
            "data": (values.ctypes.data, False),
            "version": 3,
            **entries,
        }


def limbs(n: int) -> np.ndarray:
    """uint32[n, 8] at a multiple of 16 bytes."""
    raw = np.arange(8 * n + 4, dtype=np.uint32)
    first = -raw.ctypes.data % 16 // 4
    return raw[first : first + 8 * n].reshape(n, 8)


@pytest.mark.parametrize("shape", [(0, 8), (1, 8), (5, 8), (7,), (2, 3, 4), 6, ()])
def test_an_array_comes_back_as_it_went(gpu: SimulatedGpu, shape: Any) -> None:
    values = np.asarray(np.random.default_rng(1).integers(0, 1 << 32, shape, dtype=np.uint32))
    with to_device(values) as x:
        assert (x.shape, x.dtype, x.nbytes) == (values.shape, np.uint32, values.nbytes)
        assert x.gpu is gpu
        assert np.array_equal(x.numpy(), values)
        if values.ndim:
            assert len(x) == len(values)
    with pytest.raises(GpuError, match="used after it was closed"):
        x.numpy()
    x.close()  # a second time does nothing


@pytest.mark.parametrize("dtype", [np.int32, np.uint64, np.int64])
def test_other_integers_are_seen_as_words(gpu: SimulatedGpu, dtype: Any) -> None:
    words = limbs(4)
    host = words.view(dtype)
    assert np.array_equal(to_device(host).numpy(), words)
    assert np.array_equal(as_device(Foreign(host)).numpy(), words)


def test_a_foreign_array_is_not_copied_and_stays_alive(gpu: SimulatedGpu) -> None:
    foreign = Foreign(limbs(3))
    x = as_device(foreign)
    foreign.values[1, 2] = 77
    assert x.numpy()[1, 2] == 77
    x.address.view[0] = 5
    assert foreign.values[0, 0] == 5
    assert x._owner is foreign
    x.close()
    assert foreign.values[1, 2] == 77


def test_arrays_go_through_their_own_interface(gpu: SimulatedGpu) -> None:
    values = limbs(3)
    x = to_device(values)
    interface = x.__cuda_array_interface__
    assert interface["stream"] == 1  # stream 0 has this name in the protocol
    assert interface["version"] == 3
    again = as_device(Foreign(values, **interface))
    assert np.array_equal(again.numpy(), values)
    assert empty((0, 8)).__cuda_array_interface__["data"] == (0, False)
    assert as_device(x) is x
    buffer = gpu.upload(values)
    assert is_device(buffer)
    assert np.array_equal(as_device(buffer).numpy(), values.reshape(-1))


def test_what_is_a_device_array(gpu: SimulatedGpu) -> None:
    assert is_device(empty(3))
    assert is_device(Foreign(limbs(1)))
    assert not is_device(limbs(1))
    assert not is_device(b"")
    assert not is_device(None)


@pytest.mark.parametrize("n", [0, 1])
def test_strides_of_axes_that_do_not_step_do_not_matter(gpu: SimulatedGpu, n: int) -> None:
    values = limbs(n)
    x = as_device(Foreign(values, strides=(999, 4)))
    assert np.array_equal(x.numpy(), values)


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({"typestr": "<f4"}, "items of type <f4, expected integers of 32 or 64 bits"),
        ({"typestr": ">u4"}, "items of type >u4"),
        ({"typestr": "<u8", "shape": ()}, "without an axis"),
        ({"strides": (64, 4)}, r"strides of \[64, 4\] bytes, expected C order without gaps"),
        ({"strides": (4, 16)}, "expected C order"),
        ({"mask": object()}, "has a mask"),
        ({"stream": 0}, "stream 0, which the CUDA Array Interface forbids"),
    ],
)
def test_other_arrays_are_refused(gpu: SimulatedGpu, entries: dict[str, Any], message: str) -> None:
    with pytest.raises(CuzkError, match=message):
        as_device(Foreign(limbs(4), **entries))


def test_a_misplaced_array_is_refused(gpu: SimulatedGpu) -> None:
    values = limbs(4)
    with pytest.raises(CuzkError, match="expected a multiple of 16"):
        as_device(Foreign(values, data=(values.ctypes.data + 4, False)))
    with pytest.raises(CuzkError, match=r"numpy\.ndarray is not an array in device memory"):
        as_device(values)
    with pytest.raises(CuzkError, match="items of type <f8"):
        to_device(np.zeros(4))
    with pytest.raises(CuzkError, match=r"shape \[3, -1\]"):
        empty((3, -1))
    other = SimulatedGpu()
    with pytest.raises(CuzkError, match="a stream of device"):
        empty(3, gpu, other.default_stream)
    with pytest.raises(CuzkError, match="expected device"):
        as_device(empty(3), other)


def test_a_read_only_array_is_not_for_results(gpu: SimulatedGpu) -> None:
    values = limbs(4)
    foreign = Foreign(values, data=(values.ctypes.data, True))
    x = as_device(foreign)
    assert not x.writable
    assert x.__cuda_array_interface__["data"][1]
    for y in (foreign, x):
        with pytest.raises(CuzkError, match="read-only"):
            as_device(y, writable=True)


class FakeStream(SimpleNamespace):
    handle = 0

    def wait(self, event: Any) -> None:
        self.waits.append(event)


def card(index: int = 0) -> Any:
    """Something like a real device, for what never reaches one."""
    gpu = SimpleNamespace(simulated=False, index=index, name="card", event=lambda: SimpleNamespace(handle=123))
    gpu.default_stream = FakeStream(gpu=gpu, waits=[])
    return gpu


@pytest.fixture
def pointers(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the driver says of every pointer, and the events that it records."""
    state: dict[str, Any] = {"kind": 2, "ordinal": 0, "recorded": []}

    def call(name: str, *args: Any) -> None:
        if name == "cuPointerGetAttribute":
            if state["kind"] is None:
                raise GpuError("cuPointerGetAttribute: CUDA_ERROR_INVALID_VALUE (1)", 1)
            args[0]._obj.value = state["kind"] if args[1] == array.MEMORY_TYPE else state["ordinal"]
        else:
            state["recorded"].append((name, *args))

    monkeypatch.setattr(driver, "call", call)
    return state


@pytest.mark.parametrize(
    ("kind", "ordinal", "message"),
    [
        (1, 0, "is host memory, expected device memory"),
        (3, 0, "memory of type 3"),
        (None, 0, "is not device memory: cuPointerGetAttribute: CUDA_ERROR_INVALID_VALUE"),
        (2, 1, "lies on device 1, expected device 0"),
    ],
)
def test_the_driver_says_where_a_pointer_leads(
    pointers: dict[str, Any], kind: int | None, ordinal: int, message: str
) -> None:
    pointers.update(kind=kind, ordinal=ordinal)
    with pytest.raises(CuzkError, match=message):
        as_device(Foreign(limbs(2)), card())


def test_the_device_is_by_default_the_pointers(pointers: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    cards = [card(0), card(1)]
    monkeypatch.setattr(array, "device", lambda index=0: cards[index])
    pointers["ordinal"] = 1
    assert as_device(Foreign(limbs(2))).gpu is cards[1]
    assert as_device(Foreign(limbs(0), data=(0, False))).gpu is cards[0]


@pytest.mark.parametrize(("producer", "waits"), [(None, False), (1, False), (2, True), (0xABC0, True)])
def test_the_producers_stream_comes_first(pointers: dict[str, Any], producer: int | None, waits: bool) -> None:
    gpu = card()
    x = as_device(Foreign(limbs(2), stream=producer), gpu)
    assert isinstance(x, DeviceArray)
    assert pointers["recorded"] == ([("cuEventRecord", 123, producer)] if waits else [])
    assert [event.handle for event in gpu.default_stream.waits] == ([123] if waits else [])
