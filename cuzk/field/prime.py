"""Powers and inverses, built from an element's operators; for any element type that has them."""

from __future__ import annotations

import operator
from typing import Any

from llvmlite import ir
from numba.core import types
from numba.core.extending import intrinsic, overload
from numba.core.typing import signature

from cuzk.field import llvm
from cuzk.field.element import Element, ElementType, device_function, one_like, sqr
from cuzk.field.params import Field

I64 = ir.IntType(64)
CUDA_CONSTANT_MEMORY = 4  # NVVM IR, "Address Spaces"
WINDOW = 4  # bits of the exponent a step: 15 products for the table, then one in four squarings


def _exponent_digits(exponent: int, window: int = WINDOW) -> list[int]:
    """Base-2^window digits, most significant first."""
    digits = []
    while exponent:
        digits.append(exponent & ((1 << window) - 1))
        exponent >>= window
    return digits[::-1] or [0]


def _inversion_digits(field: Field) -> list[int]:
    return _exponent_digits(field.modulus - 2)


@intrinsic
def _inversion_length(typingctx, x):  # type: ignore[no-untyped-def]
    def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
        return ir.Constant(I64, len(_inversion_digits(x.field)))

    return signature(types.int64, x), codegen


@intrinsic
def _inversion_digit(typingctx, x, i):  # type: ignore[no-untyped-def]
    """Digit i of p - 2, from a constant table in the module."""

    def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
        digits = _inversion_digits(x.field)
        kind = ir.ArrayType(I64, len(digits))
        # PTX allows letters, digits, _ and $ in names, and constants in a memory of their own
        name = "cuzk_inversion_" + "".join(c if c.isalnum() else "_" for c in x.field.name)
        table = builder.module.globals.get(name)
        if table is None:
            on_cuda = isinstance(args[0].type, ir.ArrayType)
            table = ir.GlobalVariable(builder.module, kind, name, addrspace=CUDA_CONSTANT_MEMORY if on_cuda else 0)
            table.global_constant = True
            table.linkage = "internal"
            table.initializer = ir.Constant(kind, digits)
        zero = ir.Constant(ir.IntType(32), 0)
        return builder.load(builder.gep(table, [zero, args[1]]), typ=I64)

    return signature(types.int64, x, types.int64), codegen


def inv(x: Any) -> Any:
    """1/x, and 0 for 0: on the CPU Kaliski's almost inverse (`llvm_inverse.py`), on CUDA Fermat's power.

    All lanes of a warp take the same steps in a power; on the CPU a tenth of its time is better.
    """
    if isinstance(x, Element):
        return x ** (x.field.modulus - 2)
    return x.inv()


@device_function
def _fermat(x: Any) -> Any:
    # x^0 .. x^15 in a tuple would be an indexed load from the stack; it is that here as well
    x2 = sqr(x)
    x3 = x2 * x
    x4 = sqr(x2)
    x5 = x4 * x
    x6 = sqr(x3)
    x7 = x6 * x
    x8 = sqr(x4)
    x9 = x8 * x
    x10 = sqr(x5)
    x11 = x10 * x
    x12 = sqr(x6)
    x13 = x12 * x
    x14 = sqr(x7)
    x15 = x14 * x
    table = (one_like(x), x, x2, x3, x4, x5, x6, x7, x8, x9, x10, x11, x12, x13, x14, x15)
    result = table[_inversion_digit(x, 0)]
    for i in range(1, _inversion_length(x)):
        result = sqr(sqr(sqr(sqr(result))))
        digit = _inversion_digit(x, i)
        if digit != 0:
            result = result * table[digit]
    return result


def inversion_length(x: Any) -> int:
    """How many digits p - 2 has, each of WINDOW bits."""
    return len(_inversion_digits(x.field))


def inversion_digit(x: Any, i: int) -> int:
    """Digit i of p - 2, the most significant first."""
    return _inversion_digits(x.field)[i]


@overload(inversion_length)
def _overload_inversion_length(x):  # type: ignore[no-untyped-def]
    if isinstance(x, ElementType):
        return lambda x: _inversion_length(x)


@overload(inversion_digit)
def _overload_inversion_digit(x, i):  # type: ignore[no-untyped-def]
    if isinstance(x, ElementType):
        return lambda x, i: _inversion_digit(x, i)


@device_function
def inv_in_table(x: Any, table: Any) -> Any:
    """1/x, and 0 for 0, by Fermat's power; table: room for 2^WINDOW elements, in a block's shared memory say.

    The same steps as `inv` on CUDA, but no memory of the thread's own and a fifth of the code.
    """
    table[0] = one_like(x)
    for k in range(1, 1 << WINDOW):
        table[k] = table[k - 1] * x
    result = table[inversion_digit(x, 0)]
    for i in range(1, inversion_length(x)):
        for _ in range(WINDOW):
            result = sqr(result)
        result = result * table[inversion_digit(x, i)]
    return result


@intrinsic
def _almost_inverse(typingctx, x):  # type: ignore[no-untyped-def]
    def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
        return llvm.emit(builder, "inv", x.field, list(args))

    return signature(x, x), codegen


@overload(inv, target="cpu")
def _overload_inv(x):  # type: ignore[no-untyped-def]
    if isinstance(x, ElementType):
        return lambda x: _almost_inverse(x)


@overload(inv, target="cuda")
def _overload_inv_cuda(x):  # type: ignore[no-untyped-def]
    if isinstance(x, ElementType):
        return lambda x: _fermat(x)


@device_function
def power(x: Any, exponent: int) -> Any:
    """x^exponent for an exponent >= 0 (a 64-bit one in compiled code), by square and multiply; not constant time."""
    result = one_like(x)
    length = 0
    while exponent >> length:
        length += 1
    for i in range(length):
        result = sqr(result)
        if (exponent >> (length - 1 - i)) & 1:
            result = result * x
    return result


@overload(operator.pow)
def _overload_pow(x, exponent):  # type: ignore[no-untyped-def]
    if isinstance(x, ElementType) and isinstance(exponent, types.Integer):
        return lambda x, exponent: power(x, exponent)
