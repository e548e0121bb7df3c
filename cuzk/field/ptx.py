"""A carry-chain program as inline PTX: one llvmlite InlineAsm block for each operation.

Inside the block the program's registers are PTX virtual registers of its own scope, so ptxas sees the
whole chain and pairs mad.lo.cc / madc.hi.cc into IMAD.WIDE. The block has no side effects, so
LLVM may move or drop it. PTX ISA 8.x, "Extended-Precision Arithmetic Instructions".
"""

from __future__ import annotations

from functools import cache

from llvmlite import ir

from cuzk.field.carry import Operand, Program, Step, program
from cuzk.field.params import Field

I32 = ir.IntType(32)


def mnemonic(step: Step) -> str:
    """The PTX instruction of a step: `madc.hi.cc.u32` and so on."""
    base, _, half = step.op.partition(".")
    parts = [base + ("c" if step.carry_in else "")]
    if half:
        parts.append(half)
    if step.carry_out:
        parts.append("cc")
    return ".".join([*parts, "u32"])


@cache
def assembly(prog: Program) -> str:
    """The body of the asm block; operands $0.. are the outputs, then the inputs in order."""
    outputs = len(prog.outputs)
    names: dict[Operand, str] = {}
    for position, register in enumerate(r for operand in prog.inputs for r in operand):
        names[register] = f"${outputs + position}"

    def text(x: Operand) -> str:
        return f"0x{x & 0xFFFFFFFF:x}" if isinstance(x, int) else names.get(x, x)

    locals_ = ", ".join(step.out for step in prog.steps)
    lines = [f".reg .u32 {locals_};", ".reg .pred borrow;"]
    tested = None
    for step in prog.steps:
        if step.op == "select":
            mask, x, y = step.args
            if mask != tested:  # one comparison serves all the words that it selects
                lines.append(f"setp.ne.u32 borrow, {text(mask)}, 0;")
                tested = mask
            lines.append(f"selp.u32 {step.out}, {text(x)}, {text(y)}, borrow;")
        else:
            lines.append(f"{mnemonic(step)} {', '.join(text(x) for x in (step.out, *step.args))};")
    lines += [f"mov.u32 ${i}, {text(x)};" for i, x in enumerate(prog.outputs)]
    return "{ " + " ".join(lines) + " }"


def emit(builder: ir.IRBuilder, operation: str, field: Field, operands: list[ir.Value]) -> ir.Value:
    """Emit one operation on values of type [L x i32]; returns a value of the same type."""
    prog = program(operation, field)
    limbs = field.limbs
    words = [builder.extract_value(x, i) for x in operands for i in range(limbs)]
    kind = ir.FunctionType(ir.LiteralStructType([I32] * limbs), [I32] * len(words))
    constraints = ",".join(["=&r"] * limbs + ["r"] * len(words))
    result = builder.call(ir.InlineAsm(kind, assembly(prog), constraints, side_effect=False), words)
    out: ir.Value = ir.Constant(ir.ArrayType(I32, limbs), ir.Undefined)
    for i in range(limbs):
        out = builder.insert_value(out, builder.extract_value(result, i), i)
    return out
