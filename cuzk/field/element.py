"""A field element as a numba type with operators, and its plain Python twin.

A formula written with + - * ** == on elements compiles for the CPU and for CUDA and also runs as plain
Python, for every field and for G1 and G2, by type alone:

    @device_function
    def line(x, y):
        return sqr(x) * y - x

On CUDA an element is [L x i32] in registers and an operation is inline PTX (`ptx.py`); on the CPU it
is one iN and an operation is a call to LLVM IR (`llvm.py`). In plain Python it is an `Element`, whose
operations run the same carry-chain programs where asked to (`Element.interpreted`), else Python ints.
All of them hold Montgomery form and give the same limbs.

The intrinsics are module-level and close over nothing, so numba's disk cache works for kernels that
use them.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from llvmlite import ir
from numba.core import types
from numba.core.datamodel import models
from numba.core.extending import intrinsic, overload, register_jitable, register_model
from numba.core.typing import signature

from cuzk.field import carry, interpret, llvm, ptx
from cuzk.field.params import FIELDS, LIMB_BITS, Field

device_function = register_jitable
"""Marks a formula: callable from kernels of every target, and plain Python otherwise."""


class ElementType(types.Type):
    """The numba type of an element of a prime field, in Montgomery form, fully reduced."""

    def __init__(self, field: Field) -> None:
        self.field = field
        super().__init__(name=f"Element({field.name})")


ELEMENT_TYPES: dict[str, ElementType] = {name: ElementType(field) for name, field in FIELDS.items()}


def element_type(field: Field) -> ElementType:
    return ELEMENT_TYPES[field.name]


@register_model(ElementType)
class _CpuElementModel(models.PrimitiveModel):
    def __init__(self, dmm: Any, fe_type: ElementType) -> None:
        super().__init__(dmm, fe_type, ir.IntType(LIMB_BITS * fe_type.field.limbs))


class _CudaElementModel(models.PrimitiveModel):
    def __init__(self, dmm: Any, fe_type: ElementType) -> None:
        super().__init__(dmm, fe_type, ir.ArrayType(ptx.I32, fe_type.field.limbs))


def register_cuda_models() -> None:
    """Tell numba-cuda how elements lie in registers; called by whoever compiles for CUDA.

    Apart from the import of this module, since numba-cuda is an extra and its import is slow.
    """
    from numba.cuda.extending import register_model as register_cuda_model

    register_cuda_model(ElementType)(_CudaElementModel)


# --- the plain Python twin -------------------------------------------------------------------------


@dataclass(frozen=True)
class Element:
    """An element outside compiled code: `limbs_value` is its Montgomery form as one int.

    `Element.interpreted = True` runs every operation through its carry-chain program (the simulator's
    and the tests' setting) instead of through Python's own integers.
    """

    field: Field
    limbs_value: int
    interpreted: ClassVar[bool] = False

    @classmethod
    def of(cls, field: Field, value: int) -> Element:
        """The element of an ordinary integer, reduced mod p."""
        return cls(field, field.to_montgomery(value % field.modulus))

    @property
    def value(self) -> int:
        """The ordinary integer, out of Montgomery form."""
        return self.field.from_montgomery(self.limbs_value)

    def _apply(self, operation: str, *others: Element) -> Element:
        if any(x.field != self.field for x in others):
            raise TypeError(f"{operation}: elements of {self.field} and {[x.field for x in others]}")
        operands = [self.limbs_value, *(x.limbs_value for x in others)]
        fused = operation in ("mul_add", "mul_sub")
        if Element.interpreted and not (fused and not carry.can_fuse(self.field)):
            return Element(self.field, interpret.run_ints(carry.program(operation, self.field), *operands))
        return Element(self.field, _INTEGERS[operation](self.field, *operands))

    def __add__(self, other: Element) -> Element:
        return self._apply("add", other)

    def __sub__(self, other: Element) -> Element:
        return self._apply("sub", other)

    def __mul__(self, other: Element) -> Element:
        return self._apply("mul", other)

    def __neg__(self) -> Element:
        return self._apply("neg")

    def __pow__(self, exponent: int) -> Element:
        return Element.of(self.field, pow(self.value, exponent, self.field.modulus))

    def __repr__(self) -> str:
        return f"{self.field.name}({self.value})"


_INTEGERS: dict[str, Callable[..., int]] = {
    "mul": lambda f, a, b: a * b * f.r_inverse % f.modulus,
    "sqr": lambda f, a: a * a * f.r_inverse % f.modulus,
    "add": lambda f, a, b: (a + b) % f.modulus,
    "sub": lambda f, a, b: (a - b) % f.modulus,
    "neg": lambda f, a: -a % f.modulus,
    "double": lambda f, a: 2 * a % f.modulus,
    "mul_add": lambda f, a, b, c, d: (a * b + c * d) * f.r_inverse % f.modulus,
    "mul_sub": lambda f, a, b, c, d: (a * b - c * d) * f.r_inverse % f.modulus,
}


# --- one intrinsic an operation, for both targets ---------------------------------------------------


def emit(builder: ir.IRBuilder, operation: str, field: Field, operands: list[ir.Value]) -> ir.Value:
    """One operation, for the target that the operands' LLVM type belongs to."""
    target = ptx if isinstance(operands[0].type, ir.ArrayType) else llvm
    return target.emit(builder, operation, field, operands)


def literal(kind: ir.Type, x: int) -> ir.Value:
    """The element whose Montgomery form is x, as a constant of the target's element type."""
    if isinstance(kind, ir.ArrayType):
        return ir.Constant(kind, [ir.Constant(ptx.I32, w) for w in carry.words_of(x, kind.count)])
    return ir.Constant(kind, x)


@intrinsic
def _mul(typingctx, x, y):  # type: ignore[no-untyped-def]
    def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
        return emit(builder, "mul", x.field, list(args))

    return signature(x, x, y), codegen


@intrinsic
def _add(typingctx, x, y):  # type: ignore[no-untyped-def]
    def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
        return emit(builder, "add", x.field, list(args))

    return signature(x, x, y), codegen


@intrinsic
def _sub(typingctx, x, y):  # type: ignore[no-untyped-def]
    def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
        return emit(builder, "sub", x.field, list(args))

    return signature(x, x, y), codegen


@intrinsic
def _neg(typingctx, x):  # type: ignore[no-untyped-def]
    def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
        return emit(builder, "neg", x.field, list(args))

    return signature(x, x), codegen


@intrinsic
def _sqr(typingctx, x):  # type: ignore[no-untyped-def]
    def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
        return emit(builder, "sqr", x.field, list(args))

    return signature(x, x), codegen


@intrinsic
def _double(typingctx, x):  # type: ignore[no-untyped-def]
    def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
        return emit(builder, "double", x.field, list(args))

    return signature(x, x), codegen


@intrinsic
def _mul_add(typingctx, a, b, c, d):  # type: ignore[no-untyped-def]
    def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
        return emit(builder, "mul_add", a.field, list(args))

    return signature(a, a, b, c, d), codegen


@intrinsic
def _mul_sub(typingctx, a, b, c, d):  # type: ignore[no-untyped-def]
    def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
        return emit(builder, "mul_sub", a.field, list(args))

    return signature(a, a, b, c, d), codegen


@intrinsic
def _equal(typingctx, x, y):  # type: ignore[no-untyped-def]
    def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
        a, b = args
        if not isinstance(a.type, ir.ArrayType):
            return builder.icmp_unsigned("==", a, b)
        difference = ir.Constant(ptx.I32, 0)
        for i in range(a.type.count):
            word = builder.xor(builder.extract_value(a, i), builder.extract_value(b, i))
            difference = builder.or_(difference, word)
        return builder.icmp_unsigned("==", difference, ir.Constant(ptx.I32, 0))

    return signature(types.boolean, x, y), codegen


@intrinsic
def _zero(typingctx, x):  # type: ignore[no-untyped-def]
    def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
        return literal(args[0].type, 0)

    return signature(x, x), codegen


@intrinsic
def _one(typingctx, x):  # type: ignore[no-untyped-def]
    def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
        return literal(args[0].type, x.field.r)

    return signature(x, x), codegen


@intrinsic
def _raw_one(typingctx, x):  # type: ignore[no-untyped-def]
    def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
        return literal(args[0].type, 1)

    return signature(x, x), codegen


@intrinsic
def _r_squared(typingctx, x):  # type: ignore[no-untyped-def]
    def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
        return literal(args[0].type, x.field.r2)

    return signature(x, x), codegen


def _same_field(a: Any, b: Any) -> bool:
    return isinstance(a, ElementType) and a == b


@overload(operator.mul)
def _overload_mul(a, b):  # type: ignore[no-untyped-def]
    if _same_field(a, b):
        return lambda a, b: _mul(a, b)


@overload(operator.add)
def _overload_add(a, b):  # type: ignore[no-untyped-def]
    if _same_field(a, b):
        return lambda a, b: _add(a, b)


@overload(operator.sub)
def _overload_sub(a, b):  # type: ignore[no-untyped-def]
    if _same_field(a, b):
        return lambda a, b: _sub(a, b)


@overload(operator.neg)
def _overload_neg(a):  # type: ignore[no-untyped-def]
    if isinstance(a, ElementType):
        return lambda a: _neg(a)


@overload(operator.eq)
def _overload_eq(a, b):  # type: ignore[no-untyped-def]
    if _same_field(a, b):
        return lambda a, b: _equal(a, b)


@overload(operator.ne)
def _overload_ne(a, b):  # type: ignore[no-untyped-def]
    if _same_field(a, b):
        return lambda a, b: not _equal(a, b)


# --- functions of one element, in compiled code and in plain Python ---------------------------------


def sqr(x: Any) -> Any:
    """x*x by the real squaring."""
    return x._apply("sqr") if isinstance(x, Element) else x.sqr()


def double(x: Any) -> Any:
    """x + x."""
    return x._apply("double") if isinstance(x, Element) else x.double()


def mul_add(a: Any, b: Any, c: Any, d: Any) -> Any:
    """a*b + c*d; on CUDA with one reduction for both products where the field has spare bits."""
    return a._apply("mul_add", b, c, d) if isinstance(a, Element) else a * b + c * d


def mul_sub(a: Any, b: Any, c: Any, d: Any) -> Any:
    """a*b - c*d; on CUDA with one reduction for both products where the field has spare bits."""
    return a._apply("mul_sub", b, c, d) if isinstance(a, Element) else a * b - c * d


def zero_like(x: Any) -> Any:
    """Zero of x's field."""
    return Element(x.field, 0) if isinstance(x, Element) else x.zero_like()


def one_like(x: Any) -> Any:
    """One of x's field."""
    return Element(x.field, x.field.r) if isinstance(x, Element) else x.one_like()


def is_zero(x: Any) -> Any:
    """Whether x is zero."""
    return x.limbs_value == 0 if isinstance(x, Element) else x.is_zero()


def from_montgomery(x: Any) -> Any:
    """The limbs of x's ordinary value (a Montgomery product with the integer 1)."""
    return x * Element(x.field, 1)


def to_montgomery(x: Any) -> Any:
    """The Montgomery form of limbs that hold an ordinary value (a product with R^2)."""
    return x * Element(x.field, x.field.r2)


@overload(sqr)
def _overload_sqr(x):  # type: ignore[no-untyped-def]
    if isinstance(x, ElementType):
        return lambda x: _sqr(x)


@overload(double)
def _overload_double(x):  # type: ignore[no-untyped-def]
    if isinstance(x, ElementType):
        return lambda x: _double(x)


@overload(mul_add, target="cpu")
def _overload_mul_add(a, b, c, d):  # type: ignore[no-untyped-def]
    return lambda a, b, c, d: a * b + c * d


@overload(mul_sub, target="cpu")
def _overload_mul_sub(a, b, c, d):  # type: ignore[no-untyped-def]
    return lambda a, b, c, d: a * b - c * d


@overload(mul_add, target="cuda")
def _overload_mul_add_cuda(a, b, c, d):  # type: ignore[no-untyped-def]
    if isinstance(a, ElementType) and carry.can_fuse(a.field):
        return lambda a, b, c, d: _mul_add(a, b, c, d)
    return lambda a, b, c, d: a * b + c * d


@overload(mul_sub, target="cuda")
def _overload_mul_sub_cuda(a, b, c, d):  # type: ignore[no-untyped-def]
    if isinstance(a, ElementType) and carry.can_fuse(a.field):
        return lambda a, b, c, d: _mul_sub(a, b, c, d)
    return lambda a, b, c, d: a * b - c * d


@overload(zero_like)
def _overload_zero_like(x):  # type: ignore[no-untyped-def]
    if isinstance(x, ElementType):
        return lambda x: _zero(x)


@overload(one_like)
def _overload_one_like(x):  # type: ignore[no-untyped-def]
    if isinstance(x, ElementType):
        return lambda x: _one(x)


@overload(is_zero)
def _overload_is_zero(x):  # type: ignore[no-untyped-def]
    if isinstance(x, ElementType):
        return lambda x: _equal(x, _zero(x))


@overload(from_montgomery)
def _overload_from_montgomery(x):  # type: ignore[no-untyped-def]
    if isinstance(x, ElementType):
        return lambda x: _mul(x, _raw_one(x))


@overload(to_montgomery)
def _overload_to_montgomery(x):  # type: ignore[no-untyped-def]
    if isinstance(x, ElementType):
        return lambda x: _mul(x, _r_squared(x))
