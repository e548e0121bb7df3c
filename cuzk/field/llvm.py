"""The field operations as LLVM IR for the CPU: 64-bit limbs, i128 products, whole elements as iN.

On the CPU an element is one wide integer, i256 or i384: LLVM turns its additions and comparisons into
add/adc and sub/sbb chains, and keeps it in registers. Each operation becomes one function of the
module it is used in (linkonce_odr, so modules merge), not inlined when it is a product: the code of
an Fp12 product would otherwise be 54 copies of 500 instructions.

Montgomery product: CIOS (Koc, Acar, Kaliski, "Analyzing and comparing Montgomery multiplication
algorithms", 1996, section 5) without the extra word, as the modulus leaves a spare bit. The squaring and
the Fp2 product separate the product from the reduction (SOS, section 3 there).
"""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir

from cuzk.field.llvm_inverse import inverse
from cuzk.field.llvm_words import I64, WORD, Emitter, words_of
from cuzk.field.params import Field


def _mul(e: Emitter, x: ir.Value, y: ir.Value) -> ir.Value:
    """CIOS: a product row and a reduction row a word, one pass over both."""
    n, b = e.words, e.builder
    p = [ir.Constant(I64, w) for w in words_of(e.field.modulus, n)]
    inverse = ir.Constant(I64, e.field.montgomery_inverse(WORD))
    a_words, b_words = e.split(x), e.split(y)
    t: list[ir.Value] = [ir.Constant(I64, 0)] * n
    for i in range(n):
        low, carry = e.multiply_add(a_words[0], b_words[i], t[0])
        m = b.mul(low, inverse)
        _, borrow = e.multiply_add(m, p[0], low)
        for j in range(1, n):
            low, carry = e.multiply_add(a_words[j], b_words[i], t[j], carry)
            t[j - 1], borrow = e.multiply_add(m, p[j], low, borrow)
        t[n - 1] = b.add(carry, borrow)  # cannot overflow: the modulus leaves a spare bit
    return e.reduce_once(e.join(t))


def _sqr(e: Emitter, x: ir.Value) -> ir.Value:
    return e.montgomery_reduce(e.square(x))


def _add(e: Emitter, x: ir.Value, y: ir.Value) -> ir.Value:
    return e.reduce_once(e.builder.add(x, y))


def _double(e: Emitter, x: ir.Value) -> ir.Value:
    return e.reduce_once(e.builder.shl(x, e.constant(1)))


def _sub(e: Emitter, x: ir.Value, y: ir.Value) -> ir.Value:
    b = e.builder
    difference = b.sub(x, y)
    negative = b.icmp_signed("<", difference, e.constant(0))
    return b.add(difference, b.select(negative, e.constant(e.field.modulus), e.constant(0)))


def _neg(e: Emitter, x: ir.Value) -> ir.Value:
    return _sub(e, e.constant(0), x)


def _reduce(e: Emitter, x: ir.Value) -> ir.Value:
    return e.reduce_once(x)


def _fp2_mul(e: Emitter, a0: ir.Value, a1: ir.Value, b0: ir.Value, b1: ir.Value) -> list[ir.Value]:
    """(a0 + a1 u)(b0 + b1 u), u^2 = -1: Karatsuba with one reduction for each coordinate.

    Three products and two reductions (Aranha et al., "Faster explicit formulas for computing pairings",
    eprint 2010/526, section 3). a0 b0 - a1 b1 may be negative: p*p more makes it positive and keeps it
    below 2 p*p < p*R.
    """
    b = e.builder
    v0, v1 = e.product(a0, b0), e.product(a1, b1)
    cross = e.product(b.add(a0, a1), b.add(b0, b1))  # below 4 p*p: two spare bits
    real = b.add(b.sub(v0, v1), ir.Constant(e.wide, e.field.modulus**2))
    imaginary = b.sub(b.sub(cross, v0), v1)
    return [e.montgomery_reduce(real), e.montgomery_reduce(imaginary)]


def _fp2_sqr(e: Emitter, a0: ir.Value, a1: ir.Value) -> list[ir.Value]:
    """(a0 + a1)(a0 - a1) + 2 a0 a1 u: two products (complex squaring)."""
    b = e.builder
    return [_mul(e, b.add(a0, a1), _sub(e, a0, a1)), _mul(e, b.shl(a0, e.constant(1)), a1)]


def _inv(e: Emitter, x: ir.Value) -> ir.Value:
    multiply = function(e.builder.module, "mul", e.field, 2)
    return inverse(e, x, lambda a, b: e.builder.call(multiply, [a, b]))


OPERATIONS: dict[str, Callable[..., ir.Value | list[ir.Value]]] = {
    "mul": _mul,
    "sqr": _sqr,
    "add": _add,
    "sub": _sub,
    "neg": _neg,
    "double": _double,
    "reduce": _reduce,
    "inv": _inv,
    "fp2.mul": _fp2_mul,
    "fp2.sqr": _fp2_sqr,
}
INLINE = {"add", "sub", "neg", "double", "reduce"}  # a few instructions a word


def function(module: ir.Module, operation: str, field: Field, arity: int) -> ir.Function:
    """The function of an operation on iN values in this module, made on first use.

    Operations of Fp2 take and return its coordinates (in a struct {iN, iN}).
    """
    name = f"cuzk.{operation}.{field.name}"
    existing = module.globals.get(name)
    if existing is not None:
        return existing
    kind = ir.IntType(32 * field.limbs)
    result = ir.LiteralStructType([kind, kind]) if operation.startswith("fp2.") else kind
    made = ir.Function(module, ir.FunctionType(result, [kind] * arity), name)
    made.linkage = "linkonce_odr"
    made.attributes.add("alwaysinline" if operation in INLINE else "noinline")
    made.attributes.add("nounwind")
    builder = ir.IRBuilder(made.append_basic_block("entry"))
    value = OPERATIONS[operation](Emitter(builder, field), *made.args)
    if isinstance(value, list):
        pair: ir.Value = ir.Constant(result, ir.Undefined)
        for i, v in enumerate(value):
            pair = builder.insert_value(pair, v, i)
        value = pair
    builder.ret(value)
    return made


def emit(builder: ir.IRBuilder, operation: str, field: Field, operands: list[ir.Value]) -> ir.Value:
    """Call one operation on iN values; see `function` for the operations of Fp2."""
    return builder.call(function(builder.module, operation, field, len(operands)), operands)
