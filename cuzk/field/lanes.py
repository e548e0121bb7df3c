"""Values of an extension field shared by neighbouring threads of a warp: on CUDA two hold one element of Fp2."""

from __future__ import annotations

from typing import Any

from numba.core.extending import overload

from cuzk.field.vector import Vector


def lanes(view: Any) -> int:
    """How many neighbouring threads hold one value of a view: known when a kernel is compiled."""
    return 1


@overload(lanes)
def _overload_lanes(view):  # type: ignore[no-untyped-def]
    if isinstance(view, Vector):
        return lambda view: 1
