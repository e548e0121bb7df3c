"""Job functions to one object file: numba compiles each, LLVM links them. Imports numba."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import llvmlite.binding as llvm
import numba
from numba.core import types

Jobs = dict[str, tuple[Callable[..., int], tuple[types.Type, ...]]]
"""name -> (function, argument types): Vectors and int64s, which are all 64-bit words to a caller."""

# no runtime, no wrappers, no Python exceptions: the code must load where numba is not
OPTIONS = {"_nrt": False, "no_cpython_wrapper": True, "no_cfunc_wrapper": True, "error_model": "numpy"}


def compile_unit(jobs: Jobs) -> tuple[dict[str, list[Any]], bytes]:
    """({name: [symbol, number of arguments]}, object code) of all jobs together."""
    symbols: dict[str, list[Any]] = {}
    linked: llvm.ModuleRef | None = None
    for name, (function, arguments) in jobs.items():
        dispatcher = numba.njit(**OPTIONS)(function)
        dispatcher.compile(types.int64(*arguments))
        (result,) = dispatcher.overloads.values()
        symbols[name] = [result.fndesc.llvm_func_name, len(arguments)]
        module = llvm.parse_bitcode(result.library._final_module.as_bitcode())
        if linked is None:
            linked = module
        else:
            linked.link_in(module)
    if linked is None:
        raise ValueError("a unit without jobs")
    machine = result.library._codegen._tm
    return symbols, machine.emit_object(linked)
