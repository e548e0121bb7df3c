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

from cuzk.field.params import Field

WORD = 64
I64 = ir.IntType(WORD)
I128 = ir.IntType(2 * WORD)


class Emitter:
    """Word-level helpers around an IRBuilder, for one field."""

    def __init__(self, builder: ir.IRBuilder, field: Field) -> None:
        self.builder = builder
        self.field = field
        self.words = field.limbs // 2
        self.type = ir.IntType(WORD * self.words)
        self.wide = ir.IntType(2 * WORD * self.words)

    def constant(self, x: int) -> ir.Value:
        return ir.Constant(self.type, x)

    def split(self, x: ir.Value, count: int | None = None) -> list[ir.Value]:
        """The 64-bit words of a wide integer, low first."""
        b = self.builder
        return [
            b.trunc(b.lshr(x, ir.Constant(x.type, WORD * i)) if i else x, I64)
            for i in range(count or x.type.width // WORD)
        ]

    def join(self, words: list[ir.Value]) -> ir.Value:
        b, kind = self.builder, ir.IntType(WORD * len(words))
        result = b.zext(words[0], kind)
        for i, word in enumerate(words[1:], 1):
            result = b.or_(result, b.shl(b.zext(word, kind), ir.Constant(kind, WORD * i)))
        return result

    def multiply_add(self, x: ir.Value, y: ir.Value, *addends: ir.Value) -> tuple[ir.Value, ir.Value]:
        """(low, high) of x*y + the addends, at most two: 2^64 - 1 squared leaves room for both."""
        b = self.builder
        total = b.mul(b.zext(x, I128), b.zext(y, I128))
        for addend in addends:
            total = b.add(total, b.zext(addend, I128))
        return b.trunc(total, I64), b.trunc(b.lshr(total, ir.Constant(I128, WORD)), I64)

    def reduce_once(self, x: ir.Value) -> ir.Value:
        """x - p where that is not negative; the spare bit makes the sign of x - p its top bit."""
        b = self.builder
        difference = b.sub(x, self.constant(self.field.modulus))
        return b.select(b.icmp_signed("<", difference, self.constant(0)), x, difference)

    def product(self, x: ir.Value, y: ir.Value) -> ir.Value:
        """x*y as an integer of twice the width, row by row."""
        n = self.words
        a, b = self.split(x), self.split(y)
        total: list[ir.Value] = []
        for i in range(n):
            carry: ir.Value | None = None
            for j in range(n):
                addends = ([total[i + j]] if i else []) + ([carry] if carry is not None else [])
                low, carry = self.multiply_add(a[j], b[i], *addends)
                if i:
                    total[i + j] = low
                else:
                    total.append(low)
            assert carry is not None
            total.append(carry)
        return self.join(total)

    def square(self, x: ir.Value) -> ir.Value:
        """x*x as an integer of twice the width: cross products once, doubled, and the diagonal."""
        n, b = self.words, self.builder
        a = self.split(x)
        total: dict[int, ir.Value] = {}
        for i in range(n - 1):
            carry: ir.Value | None = None
            for j in range(i + 1, n):
                addends = ([total[i + j]] if i + j in total else []) + ([carry] if carry is not None else [])
                total[i + j], carry = self.multiply_add(a[i], a[j], *addends)
            assert carry is not None
            total[i + n] = carry
        zero = ir.Constant(I64, 0)
        cross = self.join([total.get(k, zero) for k in range(2 * n)])
        diagonal: list[ir.Value] = []
        for i in range(n):
            diagonal += self.multiply_add(a[i], a[i])
        return b.add(b.shl(cross, ir.Constant(self.wide, 1)), self.join(diagonal))

    def montgomery_reduce(self, x: ir.Value) -> ir.Value:
        """x/R mod p for x < p*R of twice the width: n steps, each of which clears one word."""
        n = self.words
        inverse = ir.Constant(I64, self.field.montgomery_inverse(WORD))
        p = [ir.Constant(I64, w) for w in _words(self.field.modulus, n)]
        b = self.builder
        t = self.split(x)
        top: ir.Value | None = None  # the carry out of word i + n
        for i in range(n):
            m = b.mul(t[i], inverse)
            _, carry = self.multiply_add(m, p[0], t[i])
            for j in range(1, n):
                t[i + j], carry = self.multiply_add(m, p[j], t[i + j], carry)
            total = b.add(b.zext(t[i + n], I128), b.zext(carry, I128))
            if top is not None:
                total = b.add(total, b.zext(top, I128))
            t[i + n] = b.trunc(total, I64)
            top = b.trunc(b.lshr(total, ir.Constant(I128, WORD)), I64)
        return self.reduce_once(self.join(t[n:]))


def _words(x: int, n: int) -> list[int]:
    return [(x >> (WORD * i)) & ((1 << WORD) - 1) for i in range(n)]


def _mul(e: Emitter, x: ir.Value, y: ir.Value) -> ir.Value:
    """CIOS: a product row and a reduction row a word, one pass over both."""
    n, b = e.words, e.builder
    p = [ir.Constant(I64, w) for w in _words(e.field.modulus, n)]
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


OPERATIONS: dict[str, Callable[..., ir.Value | list[ir.Value]]] = {
    "mul": _mul,
    "sqr": _sqr,
    "add": _add,
    "sub": _sub,
    "neg": _neg,
    "double": _double,
    "reduce": _reduce,
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
