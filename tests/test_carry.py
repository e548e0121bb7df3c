"""Carry-chain programs: right on every input, of the cost they claim, and printed as the PTX they mean."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuzk.field import ptx
from cuzk.field.carry import MASK, PROGRAMS, Program, Step, can_fuse, program, words_of
from cuzk.field.interpret import ProgramError, run, run_ints
from cuzk.field.params import LIMB_BITS, Field
from field_samples import ALL_FIELDS, TINY, edge_values, elements

FIELDS = [*ALL_FIELDS, TINY]
EXPECTED: dict[str, Callable[..., int]] = {
    "mul": lambda f, a, b: a * b * f.r_inverse % f.modulus,
    "sqr": lambda f, a: a * a * f.r_inverse % f.modulus,
    "add": lambda f, a, b: (a + b) % f.modulus,
    "sub": lambda f, a, b: (a - b) % f.modulus,
    "neg": lambda f, a: -a % f.modulus,
    "double": lambda f, a: 2 * a % f.modulus,
    "mul_add": lambda f, a, b, c, d: (a * b + c * d) * f.r_inverse % f.modulus,
    "mul_sub": lambda f, a, b, c, d: (a * b - c * d) * f.r_inverse % f.modulus,
}
every_field = pytest.mark.parametrize("field", FIELDS, ids=repr)
FUSED = ("mul_add", "mul_sub")  # two products, one reduction: for fields with two spare bits


def cases(operations: Iterable[str]) -> pytest.MarkDecorator:
    """Every operation on every field that has it."""
    listed = [(f, op) for f in FIELDS for op in operations if op not in FUSED or can_fuse(f)]
    return pytest.mark.parametrize(("field", "operation"), listed, ids=lambda x: str(x))


def operands(operation: str, values: list[int]) -> list[tuple[int, ...]]:
    if operation in ("mul", "add", "sub"):
        return [(a, b) for a in values for b in values]
    if operation in FUSED:
        return [
            (a, b, c, d)
            for a, d in zip(values, reversed(values), strict=True)
            for b in values[::3]
            for c in values[1::3]
        ]
    return [(a,) for a in values]


def run_ptx(text: str, inputs: list[int], outputs: int) -> list[int]:
    """What the body of an asm block computes, by the PTX ISA and from the text alone."""
    registers = {f"${outputs + i}": word for i, word in enumerate(inputs)}
    declared: set[str] = set()
    flag = predicate = 0

    def value(name: str) -> int:
        return int(name, 16) if name.startswith("0x") else int(name) if name.isdigit() else registers[name]

    assert text.startswith("{ ")
    assert text.endswith(" }")
    for line in filter(None, (part.strip() for part in text[1:-1].split(";"))):
        name, _, rest = line.partition(" ")
        args = [x.strip() for x in rest.split(",")]
        if name == ".reg":
            kind, _, first = args[0].partition(" ")
            assert kind in (".u32", ".pred")
            declared |= {first, *args[1:]}
            continue
        out, *sources = args
        assert out in declared or out.startswith("$")
        if name == "setp.ne.u32":
            predicate = value(sources[0]) != value(sources[1])
        elif name == "selp.u32":
            assert sources[2] == "borrow"
            registers[out] = value(sources[0] if predicate else sources[1])
        elif name == "mov.u32":
            registers[out] = value(sources[0])
        else:
            match = re.fullmatch(r"(add|sub|mul|mad)(c?)(\.lo|\.hi)?(\.cc)?\.u32", name)
            assert match, f"not an instruction of the carry-chain kind: {name}"
            base, carry_in, half, carry_out = match.groups()
            assert (half is not None) == (base in ("mul", "mad"))
            a, b, *c = map(value, sources)
            carry = flag if carry_in else 0
            if base == "add":
                result = a + b + carry
            elif base == "sub":
                result = a - b - carry
            else:
                product = a * b
                result = (product >> 32 if half == ".hi" else product & MASK) + sum(c) + carry
            registers[out] = result & MASK
            if carry_out:
                flag = (result >> 32) & 1
    return [registers[f"${i}"] for i in range(outputs)]


@cases(EXPECTED)
def test_program_on_awkward_values(field: Field, operation: str) -> None:
    prog = program(operation, field)
    values = edge_values(field)
    if field.limbs > 8 and operation == "mul":
        values = values[::2]
    for args in operands(operation, values):
        assert run_ints(prog, *args) == EXPECTED[operation](field, *args), args


@every_field
@given(data=st.data())
def test_program_on_any_values(field: Field, data: st.DataObject) -> None:
    operands = [data.draw(elements(field)) for _ in range(4)]
    for operation, expected in EXPECTED.items():
        if operation in FUSED and not can_fuse(field):
            continue
        args = operands[: len(program(operation, field).inputs)]
        assert run_ints(program(operation, field), *args) == expected(field, *args), operation


@every_field
def test_reduce_takes_everything_below_two_p(field: Field) -> None:
    p = field.modulus
    for x in [*edge_values(field), *(p + v for v in edge_values(field))]:
        assert run_ints(program("reduce", field), x) == x % p


@cases(PROGRAMS)
def test_ptx_text_computes_what_the_program_does(field: Field, operation: str) -> None:
    prog = program(operation, field)
    text = ptx.assembly(prog)
    values = edge_values(field)
    for a, b in zip(values, reversed(values), strict=True):
        words = [words_of(x, field.limbs) for x in (a, b, b, a)[: len(prog.inputs)]]
        assert run_ptx(text, [*chain(*words)], field.limbs) == run(prog, *words)


@cases(PROGRAMS)
def test_ptx_text_has_one_line_a_step(field: Field, operation: str) -> None:
    prog = program(operation, field)
    lines = [line.strip() for line in ptx.assembly(prog)[1:-1].split(";")]
    printed = [line.split()[0] for line in lines if line and not line.startswith((".reg", "setp", "mov"))]
    assert printed == ["selp.u32" if step.op == "select" else ptx.mnemonic(step) for step in prog.steps]


@every_field
def test_cost_is_the_documented_one(field: Field) -> None:
    limbs = field.limbs
    mul, sqr = program("mul", field).cost(), program("sqr", field).cost()
    # BLS12-381's r is 1 - 2^32 modulo 2^64: no product for the multiplier, nor for two words of the modulus
    sparse = field.name == "Fr[bls12_381]"
    reduction, low = (limbs * (limbs - 2), 0) if sparse else (limbs**2, limbs)
    assert (mul["wide"], mul["low"]) == (limbs**2 + reduction, low)
    assert (sqr["wide"], sqr["low"]) == (limbs * (limbs + 1) // 2 + reduction, low)


@every_field
@given(data=st.data())
def test_products_whose_low_half_is_extreme(field: Field, data: st.DataObject) -> None:
    """The multipliers of the reduction come from the low half of a*b: words of zeros and of ones, in any places."""
    limbs, p = field.limbs, field.modulus
    words = data.draw(st.lists(st.sampled_from([0, 1, MASK, MASK - 1, 1 << 31]), min_size=limbs, max_size=limbs))
    low = sum(w << (LIMB_BITS * i) for i, w in enumerate(words))
    b = data.draw(st.integers(0, p // 2 - 1)) * 2 + 1
    a = low * pow(b, -1, 1 << LIMB_BITS * limbs) % (1 << LIMB_BITS * limbs)
    a %= 1 << (field.bits - 1)  # below p; the words of the low half above its bits are what they are
    assert run_ints(program("mul", field), a, b) == a * b * field.r_inverse % p


@pytest.mark.parametrize("field", [f for f in FIELDS if can_fuse(f)], ids=str)
def test_two_products_cost_one_reduction(field: Field) -> None:
    for operation in FUSED:
        assert program(operation, field).cost()["wide"] == 3 * field.limbs**2


def test_a_sum_of_products_needs_two_spare_bits() -> None:
    field = next(f for f in FIELDS if not can_fuse(f))
    for operation in FUSED:
        with pytest.raises(ValueError, match="two spare bits"):
            program(operation, field)


@every_field
def test_linear_operations_need_no_products(field: Field) -> None:
    for operation in ("add", "sub", "neg", "double", "reduce"):
        assert program(operation, field).cost()["wide"] == 0


@cases(PROGRAMS)
def test_each_register_is_set_once_and_used(field: Field, operation: str) -> None:
    prog = program(operation, field)
    written = [step.out for step in prog.steps]
    inputs = [r for names in prog.inputs for r in names]
    assert len(set(written + inputs)) == len(written) + len(inputs)
    read = {x for step in prog.steps for x in step.args} | set(prog.outputs)
    # a step may be there for its carry alone; otherwise its result is read
    assert all(step.out in read or step.carry_out for step in prog.steps)


def test_a_modulus_without_a_spare_bit_is_refused() -> None:
    secp256k1 = Field("Fp[secp256k1]", 2**256 - 2**32 - 977, 3)
    for operation in PROGRAMS:
        with pytest.raises(ValueError, match=r"spare bits?"):
            program(operation, secp256k1)


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        ([Step("add", "t0", ("a0", 1), carry_in=True)], "carry that is not there"),
        ([Step("add", "t0", ("a0", 1), carry_out=True), Step("sub", "t1", ("a0", 1), carry_in=True)], "borrow that is"),
        ([Step("sub", "t0", ("a0", 1), carry_out=True), Step("add", "t1", ("a0", 1), carry_in=True)], "carry that is"),
        ([Step("add", "t0", ("t9", 1))], "read before it is set"),
        ([Step("shift", "t0", ("a0", 1))], "unknown step"),
        (
            [
                Step("add", "t0", ("a0", 1), carry_out=True),
                Step("add", "t1", ("a0", 1), carry_in=True),
                Step("add", "t2", ("a0", 1), carry_in=True),
            ],
            "carry that is not there",
        ),
    ],
)
def test_interpreter_refuses_programs_that_are_right_by_accident(steps: list[Step], message: str) -> None:
    with pytest.raises(ProgramError, match=message):
        run(Program("bad", (("a0",),), ("t0",), tuple(steps)), [5])


def test_interpreter_refuses_operands_of_another_size() -> None:
    with pytest.raises(ProgramError, match="operand sizes"):
        run(program("add", TINY), [1, 2], [1, 2, 3])
