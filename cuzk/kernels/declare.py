"""How a kernel is declared: a plain function with the numba types of its arguments.

    @kernel(lambda field: (elements(field), elements(field), N), threads=256)
    def square(x, out, n):
        # one thread: one element
        i = cuda.grid(1)
        if i < n:
            out[i] = sqr(x[i])

The decorated name is a `Kernel`. `gpu/compiler.py` compiles it for a target, a field or a group, whose types the
lambda gives; the simulator runs `Kernel.dispatcher`, numba's own. A notebook may launch either.

Arguments are views (`Vector`: an address) and int64s, so every argument is one 64-bit word and a launch packs
a few integers. Block and thread numbers come from numba's `cuda`, which the simulator replaces in the
module that holds the kernel: write `from numba import cuda` there, and use it there only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from numba import cuda
from numba.core import types

from cuzk.curve.point import Affine, Xyzz
from cuzk.field.element import element_type
from cuzk.field.lanes import fp2_lane_type
from cuzk.field.params import FIELDS, GROUPS, Field, Group
from cuzk.field.vector import Vector

N = types.int64
WORDS = Vector(types.uint32)

Arguments = Callable[[Any], tuple[types.Type, ...]]


@dataclass(frozen=True)
class Kernel:
    """One kernel and how it may be compiled.

    arguments: the numba types for a target (Field or Group).
    threads:   the largest block that it will be launched with.
    blocks:    blocks of that size that should fit on one multiprocessor: bounds the registers; 0 leaves it open.
    """

    name: str
    function: Callable[..., None]
    arguments: Arguments
    threads: int
    blocks: int

    @cached_property
    def dispatcher(self) -> Any:
        """numba's object for the kernel: `kernel.dispatcher[grid, block](...)`."""
        return cuda.jit(self.function)


def kernel(arguments: Arguments, *, threads: int, blocks: int = 0) -> Callable[[Callable[..., None]], Kernel]:
    def declare(function: Callable[..., None]) -> Kernel:
        return Kernel(function.__name__, function, arguments, threads, blocks)

    return declare


def elements(field: Field) -> Vector:
    return Vector(element_type(field))


def _coordinate_type(group: Group) -> types.Type:
    """As in `curve.point.coordinate_type`, but that two threads share a coordinate in G2 (`field/lanes.py`)."""
    return element_type(group.base) if group.degree == 1 else fp2_lane_type(group.base)


def affine_points(group: Group) -> Vector:
    return Vector(types.NamedUniTuple(_coordinate_type(group), 2, Affine))


def xyzz_points(group: Group) -> Vector:
    return Vector(types.NamedUniTuple(_coordinate_type(group), 4, Xyzz))


def target_named(name: str) -> Field | Group:
    """The field or group of a name such as "Fr[bn254]" or "bls12_381.g2"."""
    return FIELDS[name] if name in FIELDS else GROUPS[name]
