"""Job functions to one object file: numba types and lowers them, LLVM links and optimises once.

numba's own pipeline finishes every device function as if Python were to call it: wrappers, a full
optimisation and machine code for each, 50 times over for a unit. Here only the linked module needs
them, so for the length of a compilation those steps are set aside (`_ahead_of_time`), which halves
the time of a first proof. Imports numba.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

import llvmlite.binding as llvm
import numba
from numba.core import types
from numba.core.codegen import CPUCodeLibrary, JITCodeLibrary, JITCPUCodegen
from numba.core.compiler_lock import global_compiler_lock
from numba.core.cpu import CPUContext

Jobs = dict[str, tuple[Callable[..., int], tuple[types.Type, ...]]]
"""name -> (function, argument types): Vectors and int64s, which are all 64-bit words to a caller."""

# no runtime, no wrappers, no Python exceptions: the code must load where numba is not
OPTIONS = {"_nrt": False, "no_cpython_wrapper": True, "no_cfunc_wrapper": True, "error_model": "numpy"}


@contextmanager
def _ahead_of_time() -> Iterator[None]:
    """Let numba produce LLVM modules only: no wrappers, no per-function optimisation, no machine code."""

    def nothing(*args: Any, **kwargs: Any) -> None:
        return None

    def no_entry_point(*args: Any, **kwargs: Any) -> Any:
        return {}.popitem  # numba insists on a built-in; this one raises if it is ever called

    with global_compiler_lock, ExitStack() as stack:
        for owner, name, replacement in (
            (CPUContext, "create_cfunc_wrapper", nothing),
            (CPUContext, "get_executable", no_entry_point),
            (CPUCodeLibrary, "_optimize_final_module", nothing),
            (JITCodeLibrary, "_finalize_specific", nothing),
            (JITCPUCodegen, "_add_module", nothing),
        ):
            stack.enter_context(patch.object(owner, name, replacement))
        yield


def compile_unit(jobs: Jobs, prefix: str) -> tuple[dict[str, list[Any]], bytes]:
    """({name: [symbol, number of arguments]}, object code) of all jobs together.

    The symbols begin with the prefix and everything else is internal, so that units can share one engine.
    """
    symbols: dict[str, list[Any]] = {}
    linked: llvm.ModuleRef | None = None
    with _ahead_of_time():
        for name, (function, arguments) in jobs.items():
            dispatcher = numba.njit(**OPTIONS)(function)
            dispatcher.compile(types.int64(*arguments))
            (result,) = dispatcher.overloads.values()
            result.library._ensure_finalized()  # links what the job calls
            symbols[name] = [result.fndesc.llvm_func_name, len(arguments)]
            module = llvm.parse_bitcode(result.library._final_module.as_bitcode())
            if linked is None:
                linked = module
            else:
                linked.link_in(module)
    if linked is None:
        raise ValueError("a unit without jobs")
    exported = {symbol: f"{prefix}.{name}" for name, (symbol, _) in symbols.items()}
    for value in [*linked.functions, *linked.global_variables]:
        if value.name in exported:
            value.name = exported[value.name]
        elif not value.is_declaration:
            value.linkage = "internal"
    symbols = {name: [exported[symbol], arity] for name, (symbol, arity) in symbols.items()}
    codegen = result.library._codegen
    manager, builder = codegen._module_pass_manager()
    manager.run(linked, builder)
    unknown = [f.name for f in linked.functions if f.is_declaration and not f.name.startswith(("llvm.", "mem"))]
    if unknown:
        raise RuntimeError(f"the jobs call what is not there without numba: {', '.join(unknown)}")
    return symbols, codegen._tm.emit_object(linked)
