"""Carry-chain programs: a field operation as plain data, a list of 32-bit steps.

A program is straight-line code over 32-bit registers and one carry flag, the machine that PTX offers
(PTX ISA, "Extended-Precision Arithmetic Instructions"). Three readers take the same program:
`ptx.py` prints it as inline assembly, `interpret.py` runs it on Python ints, and a notebook can count
or print its steps. The CPU has its own lowering (`llvm.py`), since 64-bit words need another order.

Montgomery product, even/odd form
---------------------------------
A 32 x 32 product is 64 bits wide, so the products a[j]*b[i] of one row overlap their neighbours by a
word. Splitting them by the parity of i + j gives two rows of *disjoint* 64-bit products: each is one
carry chain of mad.lo.cc / madc.hi.cc pairs, and a pair becomes one IMAD.WIDE on the card. The
accumulators E and O hold the even and the odd words' pairs; they are added where a word is needed.
The method is that of sppark's and ICICLE's CUDA fields; Montgomery's reduction itself is from
"Modular multiplication without trial division" (Math. Comp. 44, 1985).

Costs in wide products, L limbs: mul 2L^2 plus L low halves; sqr L(L+1)/2 + L^2 plus L. BLS12-381's r, which is
1 - 2^32 modulo 2^64, needs 2L fewer and no low halves (`Builder.reduce_row`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from functools import cache
from typing import NamedTuple

from cuzk.field.params import LIMB_BITS, Field

MASK = (1 << LIMB_BITS) - 1

Register = str
Operand = str | int  # a register, or a 32-bit constant


class Step(NamedTuple):
    """out = op(args), with the carry flag read (carry_in) or written (carry_out).

    ops: add(a, b), sub(a, b) whose flag is the borrow, mul.lo(a, b), mul.hi(a, b),
    mad.lo(a, b, c) = lo(a*b) + c, mad.hi(a, b, c) = hi(a*b) + c, select(mask, a, b) = a if mask else b.
    """

    op: str
    out: Register
    args: tuple[Operand, ...]
    carry_in: bool = False
    carry_out: bool = False


@dataclass(frozen=True)
class Program:
    """Straight-line code: `inputs` (the registers of each operand), `outputs`, and the steps between."""

    name: str
    inputs: tuple[tuple[Register, ...], ...]
    outputs: tuple[Operand, ...]
    steps: tuple[Step, ...]

    def cost(self) -> dict[str, int]:
        """Steps by kind; "wide" counts lo/hi pairs, the unit in which a card's limit is measured."""
        count = Counter(step.op for step in self.steps)
        wide = count["mul.hi"] + count["mad.hi"]
        return {
            "wide": wide,
            "low": count["mul.lo"] + count["mad.lo"] - wide,
            "add": count["add"] + count["sub"],
            "select": count["select"],
        }


@dataclass
class Builder:
    """Collects steps and names registers; knows which words of an accumulator are still zero."""

    steps: list[Step] = dataclass_field(default_factory=list)
    registers: int = 0

    def emit(self, op: str, *args: Operand, carry_in: bool = False, carry_out: bool = False) -> Register:
        out = f"t{self.registers}"
        self.registers += 1
        self.steps.append(Step(op, out, args, carry_in, carry_out))
        return out

    def chain(self, op: str, a: Sequence[Operand], b: Sequence[Operand], *, carry_out: bool = False) -> list[Register]:
        """Word-wise a op b (add or sub) as one carry chain; carry_out leaves the last flag set."""
        last = len(a) - 1
        return [
            self.emit(op, x, y, carry_in=i > 0, carry_out=i < last or carry_out)
            for i, (x, y) in enumerate(zip(a, b, strict=True))
        ]

    def multiply_row(
        self, acc: Accumulator, terms: Sequence[tuple[int, Operand, Operand]], *, carry: bool = False
    ) -> bool:
        """acc += sum of x*y << 32*word over `terms`, whose words rise by two: one carry chain.

        carry: whether the flag comes in. Returns whether a carry may be left in the flag.
        """
        for word, x, y in terms:
            low, high = acc.get(word, 0), acc.get(word + 1, 0)
            if low == 0 and not carry:
                acc[word] = self.emit("mul.lo", x, y)
            else:
                acc[word] = self.emit("mad.lo", x, y, low, carry_in=carry, carry_out=True)
                carry = True
            if high == 0 and not carry:
                acc[word + 1] = self.emit("mul.hi", x, y)
            else:
                # hi(x*y) is at most 2^32 - 2: with nothing but a carry to add, no carry comes out
                acc[word + 1] = self.emit("mad.hi", x, y, high, carry_in=carry, carry_out=high != 0)
                carry = high != 0
        return carry

    def merge(self, even: Accumulator, odd: Accumulator, start: int, stop: int) -> list[Operand]:
        """Words start..stop-1 of even + odd, as one carry chain that begins without a carry."""
        words: list[Operand] = []
        carry = False
        for word in range(start, stop):
            x, y = even.get(word, 0), odd.get(word, 0)
            if not carry and (x == 0 or y == 0):
                words.append(x or y)
            else:
                words.append(self.emit("add", x, y, carry_in=carry, carry_out=word < stop - 1))
                carry = True
        return words

    def settle(self, main: Accumulator, other: Accumulator, i: int) -> bool:
        """Move all of word i into `main`; returns whether a carry is pending for word i + 1 of `other`."""
        if other.get(i, 0) == 0:
            return False
        main[i] = self.emit("add", main.get(i, 0), other.pop(i), carry_out=True)
        return True

    def long_row(
        self, main: Accumulator, other: Accumulator, i: int, x: Sequence[Operand], y: Operand, *, carry: bool
    ) -> None:
        """main + other += x * y << 32*i: the words of i's parity in `main`, the rest in `other`.

        carry: whether a carry is pending for word i + 1. No carry leaves `other`, since the top limb
        of p (and of x) has a spare bit; that of `main` ends in the top word of `other`.
        """
        limbs = len(x)
        self.multiply_row(other, [(i + j, x[j], y) for j in range(1, limbs, 2)], carry=carry)
        if self.multiply_row(main, [(i + j, x[j], y) for j in range(0, limbs, 2)]):
            other[i + limbs] = self.emit("add", other.get(i + limbs, 0), 0, carry_in=True)

    def reduce_row(
        self, main: Accumulator, other: Accumulator, i: int, field: Field, *, carry: bool = False
    ) -> Operand | None:
        """One Montgomery step: a multiple of p << 32*i that makes word i (settled) zero.

        In general m*p is added, m = -word/p modulo 2^32. Where p is 1 - 2^32 modulo 2^64 (`_is_sparse`), m is the
        word t itself and is subtracted: -t p = -t + (t << 32) + (t Q << 64) - (t << 32 L), with Q of L - 2 words:
        2^(32 L) - p = 2^64 Q + 2^32 - 1.
        That needs no product for m nor for two words of p. The last term is left to the caller: t is returned.
        """
        limbs = field.limbs
        if not _is_sparse(field):
            m = self.emit("mul.lo", main.get(i, 0), field.montgomery_inverse(LIMB_BITS))
            self.long_row(main, other, i, words_of(field.modulus, limbs), m, carry=carry)
            return None
        t = main.get(i, 0)
        q = words_of(((1 << LIMB_BITS * limbs) - field.modulus) >> 2 * LIMB_BITS, limbs - 2)
        main[i + 1] = self.emit("add", main.get(i + 1, 0), t, carry_in=carry, carry_out=True)
        if self.multiply_row(main, [(i + 2 + j, q[j], t) for j in range(0, limbs - 2, 2)], carry=True):
            other[i + limbs] = self.emit("add", other.get(i + limbs, 0), 0, carry_in=True)
        # no carry leaves `other`: its top pair was empty, and the top limbs of x and of Q add up to less than 2^32
        self.multiply_row(other, [(i + 2 + j, q[j], t) for j in range(1, limbs - 2, 2)])
        return t


Accumulator = dict[int, Operand]  # word position -> register; an absent word is zero


def words_of(x: int, limbs: int) -> list[int]:
    return [(x >> (LIMB_BITS * i)) & MASK for i in range(limbs)]


def _operand(name: str, limbs: int) -> tuple[Register, ...]:
    return tuple(f"{name}{i}" for i in range(limbs))


def _new(field: Field) -> Builder:
    if field.modulus >> (LIMB_BITS * field.limbs - 1):
        raise ValueError(f"{field.name}: these programs need a spare bit above the modulus")
    return Builder()


def _is_sparse(field: Field) -> bool:
    """Whether p is 1 - 2^32 modulo 2^64, as BLS12-381's r is, whose low words cost no products then."""
    return field.modulus % (1 << 2 * LIMB_BITS) == (1 << 2 * LIMB_BITS) - (1 << LIMB_BITS) + 1


def _finish(
    build: Builder, field: Field, words: Sequence[Operand], owed: Sequence[Operand | None]
) -> tuple[Operand, ...]:
    """Words to below p: by one conditional subtraction from below 2p, or by subtracting what `reduce_row` left."""
    subtracted = [word for word in owed if word is not None]
    if subtracted:
        # a*b/R - (multiple of p)/R: between -p and p
        return _subtract(build, field, words, subtracted)
    reduced = build.chain("sub", words, words_of(field.modulus, field.limbs), carry_out=True)
    borrow = build.emit("sub", 0, 0, carry_in=True)
    return tuple(build.emit("select", borrow, x, y) for x, y in zip(words, reduced, strict=True))


def multiply(field: Field) -> Program:
    """a*b/R mod p for a, b < p: L rows, each one product row and one reduction step."""
    build, limbs = _new(field), field.limbs
    a, b = _operand("a", limbs), _operand("b", limbs)
    accumulators: tuple[Accumulator, Accumulator] = ({}, {})
    owed = []
    for i in range(limbs):
        main, other = accumulators[i % 2], accumulators[1 - i % 2]
        carry = build.settle(main, other, i)
        build.long_row(main, other, i, a, b[i], carry=carry)
        owed.append(build.reduce_row(main, other, i, field))
    # a*b + m*p < p*p + R*p, so the quotient by R is below 2p
    result = build.merge(*accumulators, limbs, 2 * limbs)
    return Program(f"mul {field}", (a, b), _finish(build, field, result, owed), tuple(build.steps))


def multiply_add(field: Field, *, subtract: bool = False) -> Program:
    """(a*b + c*d)/R mod p, or with `subtract` (a*b - c*d)/R: two products, one reduction.

    3L^2 wide products instead of 4L^2. a*b + c*d + m*p < 2p*p + R*p, so the quotient is below 2p where 2p <= R; the
    top limbs of a, c and p must add up to less than 2^32 (`can_fuse`), so that no carry leaves a row.
    """
    if not can_fuse(field):
        raise ValueError(f"{field.name}: the sum of two products needs two spare bits above the modulus")
    build, limbs = _new(field), field.limbs
    a, b, c, d = (_operand(name, limbs) for name in "abcd")
    factor: Sequence[Operand] = d
    if subtract:
        factor = build.chain("sub", words_of(field.modulus, limbs), d)  # p - d; p itself for 0 is as good
    accumulators: tuple[Accumulator, Accumulator] = ({}, {})
    for i in range(limbs):
        main, other = accumulators[i % 2], accumulators[1 - i % 2]
        carry = build.settle(main, other, i)
        build.long_row(main, other, i, a, b[i], carry=carry)
        build.long_row(main, other, i, c, factor[i], carry=False)
        build.reduce_row(main, other, i, field)
    result = build.merge(*accumulators, limbs, 2 * limbs)
    name = f"{'mul_sub' if subtract else 'mul_add'} {field}"
    return Program(name, (a, b, c, d), _finish(build, field, result, ()), tuple(build.steps))


def multiply_subtract(field: Field) -> Program:
    """(a*b - c*d)/R mod p with one reduction."""
    return multiply_add(field, subtract=True)


def can_fuse(field: Field) -> bool:
    """Whether a field has the two spare bits that `multiply_add` needs."""
    return 3 * ((field.modulus >> LIMB_BITS * (field.limbs - 1)) + 1) <= MASK and not _is_sparse(field)


def square(field: Field) -> Program:
    """a*a/R mod p: cross products once and doubled, the diagonal, then a reduction of 2L words.

    L(L-1)/2 + L wide products instead of L^2 before the reduction.
    """
    build, limbs = _new(field), field.limbs
    a = _operand("a", limbs)
    cross: tuple[Accumulator, Accumulator] = ({}, {})
    for i in range(limbs - 1):
        for parity in (0, 1):
            row = [(i + j, a[i], a[j]) for j in range(i + 1, limbs) if (i + j) % 2 == parity]
            if row and build.multiply_row(cross[parity], row):
                cross[parity][row[-1][0] + 2] = build.emit("add", 0, 0, carry_in=True)
    words = build.merge(*cross, 0, 2 * limbs)
    # 2 * (cross products) <= a*a < 2^(64 L): doubling by one chain of additions loses nothing
    words = [words[0], *build.chain("add", words[1:], words[1:])]
    total: Accumulator = dict(enumerate(words))
    build.multiply_row(total, [(2 * i, a[i], a[i]) for i in range(limbs)])

    # the lower half L becomes (L + m*p)/R <= p; with the upper half, below p*p/R, less than 2p
    accumulators: tuple[Accumulator, Accumulator] = ({i: total[i] for i in range(limbs)}, {})
    owed = []
    for i in range(limbs):
        main, other = accumulators[i % 2], accumulators[1 - i % 2]
        carry = build.settle(main, other, i)
        owed.append(build.reduce_row(main, other, i, field, carry=carry))
    low = build.merge(*accumulators, limbs, 2 * limbs)
    result = build.chain("add", low, [total[i] for i in range(limbs, 2 * limbs)])
    return Program(f"sqr {field}", (a,), _finish(build, field, result, owed), tuple(build.steps))


def add(field: Field) -> Program:
    """a + b mod p for a, b < p."""
    build = _new(field)
    a, b = _operand("a", field.limbs), _operand("b", field.limbs)
    return Program(f"add {field}", (a, b), _finish(build, field, build.chain("add", a, b), ()), tuple(build.steps))


def double(field: Field) -> Program:
    """2a mod p for a < p."""
    build = _new(field)
    a = _operand("a", field.limbs)
    return Program(f"double {field}", (a,), _finish(build, field, build.chain("add", a, a), ()), tuple(build.steps))


def subtract(field: Field) -> Program:
    """a - b mod p for a, b < p: the modulus, masked by the borrow, is added back."""
    build = _new(field)
    a, b = _operand("a", field.limbs), _operand("b", field.limbs)
    outputs = _subtract(build, field, a, b)
    return Program(f"sub {field}", (a, b), outputs, tuple(build.steps))


def negate(field: Field) -> Program:
    """-a mod p for a < p: p - a, and 0 stays 0."""
    build = _new(field)
    a = _operand("a", field.limbs)
    outputs = _subtract(build, field, [0] * field.limbs, a)
    return Program(f"neg {field}", (a,), outputs, tuple(build.steps))


def _subtract(build: Builder, field: Field, a: Sequence[Operand], b: Sequence[Operand]) -> tuple[Operand, ...]:
    difference = build.chain("sub", a, b, carry_out=True)
    borrow = build.emit("sub", 0, 0, carry_in=True)
    masked = [build.emit("select", borrow, word, 0) for word in words_of(field.modulus, field.limbs)]
    return tuple(build.chain("add", difference, masked))


def reduce_once(field: Field) -> Program:
    """a mod p for a < 2p: one conditional subtraction."""
    build = _new(field)
    a = _operand("a", field.limbs)
    return Program(f"reduce {field}", (a,), _finish(build, field, a, ()), tuple(build.steps))


PROGRAMS: dict[str, Callable[[Field], Program]] = {
    "mul": multiply,
    "sqr": square,
    "add": add,
    "sub": subtract,
    "neg": negate,
    "double": double,
    "reduce": reduce_once,
    "mul_add": multiply_add,
    "mul_sub": multiply_subtract,
}


@cache
def program(operation: str, field: Field) -> Program:
    """The program of an operation in PROGRAMS for a field, built once."""
    return PROGRAMS[operation](field)
