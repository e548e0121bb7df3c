"""A carry-chain program run on Python ints: the judge of the PTX, and arithmetic for the simulator.

One register file and one carry flag, as in the PTX ISA; after `sub` the flag is the borrow. Reading a
flag that the previous flag-setting step did not leave on purpose, or a register before it is set,
raises: a program that is right by accident is wrong.
"""

from __future__ import annotations

from collections.abc import Sequence

from cuzk.field.carry import MASK, Operand, Program, words_of
from cuzk.field.params import LIMB_BITS


class ProgramError(ValueError):
    """A program reads a carry or a register that nothing has set."""


def run(program: Program, *operands: Sequence[int]) -> list[int]:
    """The output words of `program` for operands given as lists of 32-bit words."""
    if [len(x) for x in operands] != [len(names) for names in program.inputs]:
        raise ProgramError(f"{program.name}: operand sizes do not match the program's inputs")
    registers = {
        r: w for names, words in zip(program.inputs, operands, strict=True) for r, w in zip(names, words, strict=True)
    }
    flag: int | None = None
    flag_kind = ""

    def value(x: Operand) -> int:
        if isinstance(x, int):
            return x & MASK
        if x not in registers:
            raise ProgramError(f"{program.name}: register {x} is read before it is set")
        return registers[x]

    for step in program.steps:
        args = [value(x) for x in step.args]
        kind = "borrow" if step.op == "sub" else "carry"
        carry = 0
        if step.carry_in:
            if flag is None or flag_kind != kind:
                raise ProgramError(f"{program.name}: {step} reads a {kind} that is not there")
            carry = flag
        if step.op == "add":
            result = args[0] + args[1] + carry
        elif step.op == "sub":
            result = args[0] - args[1] - carry
        elif step.op in ("mul.lo", "mul.hi", "mad.lo", "mad.hi"):
            product = args[0] * args[1]
            half = product & MASK if step.op.endswith("lo") else product >> LIMB_BITS
            result = half + (args[2] if step.op.startswith("mad") else 0) + carry
        elif step.op == "select":
            result = args[1] if args[0] else args[2]
        else:
            raise ProgramError(f"{program.name}: unknown step {step.op}")
        registers[step.out] = result & MASK
        if step.carry_out:
            flag, flag_kind = (result >> LIMB_BITS) & 1, kind
        elif step.carry_in:
            flag = None  # a chain that ends leaves nothing to read
    return [value(x) for x in program.outputs]


def run_ints(program: Program, *operands: int) -> int:
    """The same on whole integers, little-endian in the program's limbs."""
    words = [words_of(x, len(names)) for x, names in zip(operands, program.inputs, strict=True)]
    return sum(w << (LIMB_BITS * i) for i, w in enumerate(run(program, *words)))
