"""Kernels to machine code: numba types and lowers them, NVVM makes PTX, NVIDIA's linker makes a cubin.

No driver and no card are needed: numba asks the current device for its capability where a kernel calls device
functions, and a stand-in answers. Imports numba and numba-cuda.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from numba.core import types

from cuzk.errors import CuzkError
from cuzk.field.element import register_cuda_models

Capability = tuple[int, int]
_entry = re.compile(r"\.entry\s+(\S+?)\(")


@contextmanager
def _device_of(capability: Capability) -> Iterator[None]:
    device = SimpleNamespace(compute_capability=capability)
    with (
        patch("numba.cuda.dispatcher.get_current_device", lambda: device),
        patch("numba.cuda.compiler.get_current_device", lambda: device),
    ):
        yield


def compile_ptx(kernel: Any, target: Any, capability: Capability) -> str:
    """The PTX of one kernel (`kernels.declare.Kernel`) for a field or group."""
    return next(compile_ptxs(kernel, target, [capability]))


def compile_ptxs(kernel: Any, target: Any, capabilities: Iterable[Capability]) -> Iterator[str]:
    """The same for several capabilities: numba's part, half of the time, is done once.

    It is what `numba.cuda.compile_ptx` does, which has no form for several; nothing that numba does depends on the
    capability but the one that it asks a device for, and no kernel asks for it.
    """
    from numba.cuda.compiler import _compile_pyfunc_with_fixup

    register_cuda_models()
    bounds = (kernel.threads, kernel.blocks) if kernel.blocks else (kernel.threads,)
    library = None
    for capability in capabilities:
        with _device_of(capability):
            if library is None:
                library, _ = _compile_pyfunc_with_fixup(
                    kernel.function,
                    types.void(*kernel.arguments(target)),
                    device=False,
                    abi="numba",
                    cc=capability,
                    launch_bounds=bounds,
                )
            text = library.get_asm_str(cc=capability)
        if len(_entry.findall(text)) != 1:
            raise CuzkError(f"kernel {kernel.name}: the compiler left {len(_entry.findall(text))} entries in its PTX")
        yield text


def entry_name(ptx: str) -> str:
    return _entry.findall(ptx)[0]


def assemble(ptx: str, capability: Capability) -> bytes:
    """The cubin of a PTX text."""
    from cuda.core import Linker, LinkerOptions, ObjectCode

    options = LinkerOptions(arch=f"sm_{capability[0]}{capability[1]}")
    code = Linker(ObjectCode.from_ptx(ptx.encode()), options=options).link("cubin").code
    if not isinstance(code, bytes):
        raise CuzkError("the linker gave no machine code")
    return code


def kernels_of(module: str) -> list[Any]:
    """The kernels that a module declares, in order."""
    from cuzk.kernels.declare import Kernel

    return [value for value in vars(importlib.import_module(module)).values() if isinstance(value, Kernel)]
