"""The CUDA lowering, cross-compiled: formulas become straight PTX, without a driver or a card.

numba asks the current device for its capability where a kernel calls device functions; here a stand-in
answers.
"""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pytest
from numba.core import types

from cuzk.curve.point import add_mixed, affine_type, to_affine, xyzz_type
from cuzk.field import ptx
from cuzk.field.carry import program
from cuzk.field.element import double, element_type, register_cuda_models, sqr
from cuzk.field.params import FIELDS, GROUPS, Field, Group
from cuzk.field.prime import inv
from cuzk.field.vector import Vector

CAPABILITY = (9, 0)


def why_not() -> str | None:
    """What cross-compilation lacks here."""
    if importlib.util.find_spec("numba_cuda") is None:
        return "numba-cuda is not installed"
    try:
        from numba import cuda
        from numba.cuda.cudadrv import nvvm

        if cuda.config.ENABLE_CUDASIM:
            return "the CUDA simulator compiles nothing"
        nvvm.NVVM()
    except Exception as error:  # whatever a partial toolchain raises
        return f"numba-cuda cannot compile: {type(error).__name__}: {str(error).splitlines()[0]}"
    return None


REASON = why_not()
pytestmark = pytest.mark.skipif(REASON is not None, reason=REASON or "")


def find_ptxas() -> str | None:
    """NVIDIA's assembler: where a wheel (nvidia-cuda-nvcc) puts it, of the same release as the compiler, or on PATH."""
    spec = importlib.util.find_spec("nvidia")
    places = [Path(p) for p in spec.submodule_search_locations or []] if spec else []
    found = (path for place in places for path in place.glob("*/bin/ptxas"))
    return next((str(path) for path in found), None) or shutil.which("ptxas")


PTXAS = find_ptxas()
needs_ptxas = pytest.mark.skipif(PTXAS is None, reason="no ptxas: it comes with CUDA, and with nvidia-cuda-nvcc")


def multiply(x: Any, y: Any, out: Any) -> None:
    i = cuda_index()
    out[i] = x[i] * y[i]


def square(x: Any, y: Any, out: Any) -> None:
    i = cuda_index()
    out[i] = sqr(x[i])


def everything_else(x: Any, y: Any, out: Any) -> None:
    i = cuda_index()
    if x[i] == y[i]:
        out[i] = -x[i]
    else:
        out[i] = double(x[i] + y[i]) - y[i]


def add_points(x: Any, y: Any, out: Any) -> None:
    i = cuda_index()
    out[i] = add_mixed(x[i], y[i])


def invert(x: Any, y: Any, out: Any) -> None:
    i = cuda_index()
    out[i] = inv(x[i])


def make_affine(x: Any, out: Any) -> None:
    i = cuda_index()
    out[i] = to_affine(x[i])


def cuda_index() -> int:
    raise NotImplementedError("stands for cuda.grid(1) until a kernel is compiled")


def compile_kernel(kernel: Callable[..., None], *kinds: types.Type) -> str:
    """The PTX of a kernel whose arguments are views of these kinds."""
    from numba import cuda

    register_cuda_models()

    @cuda.jit(device=True)
    def index() -> int:
        return cuda.grid(1)

    device = SimpleNamespace(compute_capability=CAPABILITY)
    with (
        patch.dict(kernel.__globals__, {"cuda_index": index}),
        patch("numba.cuda.dispatcher.get_current_device", lambda: device),
        patch("numba.cuda.compiler.get_current_device", lambda: device),
    ):
        text, _ = cuda.compile_ptx(kernel, types.void(*map(Vector, kinds)), cc=CAPABILITY)
    return text


@cache
def field_kernel(name: str, field: Field) -> str:
    kernel = {"mul": multiply, "sqr": square, "rest": everything_else, "inv": invert}[name]
    return compile_kernel(kernel, *[element_type(field)] * 3)


@cache
def point_kernel(group: Group) -> str:
    return compile_kernel(add_points, xyzz_type(group), affine_type(group), xyzz_type(group))


def instructions(text: str) -> Counter[str]:
    """Mnemonics of the one kernel in the text; several may share a line inside an asm block."""
    assert text.count(".entry") == 1
    body = text[text.index(".entry") :]
    body = body[body.index("{") :]
    parts = (part.strip() for line in body.splitlines() for part in re.split("[;{}]", line.partition("//")[0]))
    return Counter(part.split()[0] for part in parts if part)


def expected_products(**operations: tuple[int, Field]) -> Counter[str]:
    """mad and mul instructions of so many programs."""
    total: Counter[str] = Counter()
    for name, (count, field) in operations.items():
        for step in program(name, field).steps:
            if step.op.startswith(("mad", "mul")):
                total[ptx.mnemonic(step)] += count
    return total


def products(text: str) -> Counter[str]:
    # index arithmetic uses signed or untyped forms; carry chains are .u32
    return Counter({k: n for k, n in instructions(text).items() if re.fullmatch(r"m(ad|ul)c?\.(lo|hi)(\.cc)?\.u32", k)})


def assemble(text: str, tmp_path: Path) -> str:
    """What ptxas says of the kernel."""
    assert PTXAS is not None
    source = tmp_path / "kernel.ptx"
    source.write_text(text)
    architecture = f"-arch=sm_{CAPABILITY[0]}{CAPABILITY[1]}"
    command = [PTXAS, "-v", architecture, str(source), "-o", str(tmp_path / "kernel.cubin")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if "Unsupported .version" in done.stderr:
        pytest.skip(f"{PTXAS} is older than the compiler: {done.stderr.splitlines()[0]}")
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stderr


def assert_straight(text: str) -> None:
    """One kernel, and in it no floating point, no call and no memory of a thread's own."""
    counted = instructions(text)
    assert ".func" not in text
    assert ".local" not in text
    assert not [name for name in counted if name.startswith("call") or re.search(r"\.f(16|32|64)", name)]


every_field = pytest.mark.parametrize("field", FIELDS.values(), ids=repr)
every_group = pytest.mark.parametrize("group", GROUPS.values(), ids=repr)


@every_field
@pytest.mark.parametrize("operation", ["mul", "sqr"])
def test_a_product_is_its_program(field: Field, operation: str) -> None:
    text = field_kernel(operation, field)
    assert_straight(text)
    assert products(text) == expected_products(**{operation: (1, field)})
    cost = program(operation, field).cost()
    by_half = Counter(re.search("lo|hi", name).group() for name in products(text).elements())  # type: ignore[union-attr]
    assert by_half == {"hi": cost["wide"], "lo": cost["wide"] + cost["low"]}


@every_field
def test_linear_operations_need_no_product(field: Field) -> None:
    text = field_kernel("rest", field)
    assert_straight(text)
    assert not products(text)
    counted = instructions(text)
    chained = sum(n for name, n in counted.items() if re.fullmatch(r"(add|sub)c?(\.cc)?\.u32", name))
    assert chained == sum(program(name, field).cost()["add"] for name in ("neg", "add", "double", "sub"))


@every_field
def test_inversion_is_a_power(field: Field) -> None:
    """Fermat on CUDA: the same steps in every thread. Its loop stands once, so there are few products in the text."""
    text = field_kernel("inv", field)
    counted = instructions(text)
    assert not [name for name in counted if name.startswith("call") or re.search(r"\.f(16|32|64)", name)]
    # x^2 .. x^15, then four squarings and a product a digit
    assert products(text) == expected_products(mul=(7 + 1, field), sqr=(7 + 4, field))


@every_group
def test_mixed_addition_is_one_straight_kernel(group: Group) -> None:
    """8M + 2S for the addition and 4M + 3S for the doubling of equal points, a difference of two products in each.

    In G2 a product is two sums of two products, and a square two products.
    """
    text = point_kernel(group)
    assert_straight(text)
    field = group.base
    mul, sqr_, mul_sub = 6 + 2, 2 + 3, 2
    if group.degree == 1:
        assert products(text) == expected_products(mul=(mul, field), sqr=(sqr_, field), mul_sub=(mul_sub, field))
    else:
        all_products = mul + 2 * mul_sub
        expected = expected_products(
            mul=(2 * sqr_, field), mul_add=(all_products, field), mul_sub=(all_products, field)
        )
        assert products(text) == expected


def test_inversion_in_fp2_compiles_as_well() -> None:
    group = GROUPS["bn254.g2"]
    counted = instructions(compile_kernel(make_affine, xyzz_type(group), affine_type(group)))
    assert not [name for name in counted if name.startswith("call") or re.search(r"\.f(16|32|64)", name)]


@needs_ptxas
@every_field
@pytest.mark.parametrize("operation", ["mul", "sqr", "rest"])
def test_field_operations_do_not_spill(field: Field, operation: str, tmp_path: Path) -> None:
    report = assemble(field_kernel(operation, field), tmp_path)
    assert "0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads" in report
    registers = int(re.search(r"Used (\d+) registers", report).group(1))  # type: ignore[union-attr]
    assert registers <= 5 * field.limbs + 16  # two operands, an accumulator of twice the width, a row


@needs_ptxas
@pytest.mark.parametrize("name", ["bn254.g1", "bls12_381.g1"])
def test_mixed_addition_does_not_spill(name: str, tmp_path: Path) -> None:
    report = assemble(point_kernel(GROUPS[name]), tmp_path)
    assert "0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads" in report


def test_elements_are_loaded_and_stored_in_16_byte_accesses() -> None:
    """The words of x and y in, those of the result out, four at a time and in global memory."""
    field = FIELDS["Fp[bls12_381]"]
    counted = instructions(field_kernel("mul", field))
    accesses = {name: n for name, n in counted.items() if re.match(r"(ld|st)\.(?!param)", name)}
    assert accesses == {"ld.global.v4.u32": 2 * field.limbs // 4, "st.global.v4.u32": field.limbs // 4}
