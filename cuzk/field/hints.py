"""Hints to LLVM from inside a compiled function."""

from __future__ import annotations

from numba.core import types
from numba.core.extending import intrinsic
from numba.core.typing import signature


@intrinsic
def never_inline(typingctx):  # type: ignore[no-untyped-def]
    """Keep the function that calls this out of its callers: one copy of a long body, not many."""

    def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
        builder.function.attributes.add("noinline")
        return context.get_dummy_value()

    return signature(types.void), codegen
