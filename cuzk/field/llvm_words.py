"""Word-level LLVM IR for wide integers: what the CPU's field operations are made of.

On the CPU an element is one wide integer, i256 or i384; a 64 x 64 product is an i128.
"""

from __future__ import annotations

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
        p = [ir.Constant(I64, w) for w in words_of(self.field.modulus, n)]
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


def words_of(x: int, n: int) -> list[int]:
    return [(x >> (WORD * i)) & ((1 << WORD) - 1) for i in range(n)]
