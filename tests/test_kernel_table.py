"""Every CUDA kernel, cross-compiled for four generations of cards, is no worse than `kernel_table.json` says.

Registers decide how many threads a card holds, spills cost memory traffic, and neither shows in a test that only looks
at results. The table is renewed by `make update-kernel-table`, so that a worse figure is somebody's decision, seen in
the change that brings it.
"""

from __future__ import annotations

import json
import platform
import re
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from cuzk.errors import CuzkError
from cuzk.gpu import figures
from cuzk.gpu.figures import NEWEST, Figures, Measured

TABLE = Path(__file__).with_name("kernel_table.json")
UPDATE = "`make update-kernel-table` if that is wanted"
DOUBLES_ON_PURPOSE: frozenset[str] = frozenset()  # kernels that are meant to compute with them


def compare(table: dict[str, Any], measured: Iterable[Measured]) -> tuple[list[str], list[str]]:
    """(what is wrong, what is better), each in words, of measured figures beside a table's."""
    wrong, better = [], []
    seen = set()
    for m in measured:
        where = f"{m.kernel} on {m.architecture}"
        if m.figures is None:
            wrong.append(f"{where}: {m.problem}")
            continue
        seen.add((m.kernel, m.column))
        old = table["kernels"].get(m.kernel, {}).get(m.column)
        if old is None:
            wrong.append(f"{where}: not in the table: {UPDATE}")
            continue
        changes = [(name, a, b) for name, a, b in zip(Figures._fields, old, m.figures, strict=True) if a != b]
        told = ", ".join(f"{name} {a} -> {b}" for name, a, b in changes)
        if any(b > a for _, a, b in changes):
            wrong.append(f"{where}: {told}: {UPDATE}")
        elif changes:
            better.append(f"{where}: {told}")
    for name, columns in table["kernels"].items():
        gone = [column for column in columns if (name, column) not in seen]
        if gone:
            wrong.append(f"{name} on {', '.join(gone)}: in the table, but was not measured: {UPDATE}")
    return wrong, better


# --- the gate ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def measured() -> list[Measured]:
    """Every kernel's figures: about two minutes of two cores."""
    if platform.system() != "Linux":
        pytest.skip("CUDA's compiler is installed for the tests on Linux only")
    reason = figures.why_not()
    if reason:
        pytest.fail(f"kernels cannot be compiled here: {reason}; pip install '.[test]' brings the toolchain")
    return sorted(figures.measure())


def test_no_kernel_got_worse(measured: list[Measured]) -> None:
    table = json.loads(TABLE.read_text())
    wrong, better = compare(table, measured)
    if better:
        warnings.warn(
            f"better than the table, which `make update-kernel-table` renews: {'; '.join(better)}", stacklevel=1
        )
    if wrong and table["toolchain"] != figures.toolchain():
        wrong.append(f"(the table was made with {table['toolchain']}, this is {figures.toolchain()})")
    assert not wrong, "\n".join(["kernels against tests/kernel_table.json:", *wrong])


def test_no_kernel_computes_with_doubles(measured: list[Measured]) -> None:
    """numba makes float64 of uint64 and a Python int (numba#10151): wrong above 2^53, and slow on most cards."""
    found = {m.kernel: m.doubles for m in measured if m.doubles}
    assert set(found) == DOUBLES_ON_PURPOSE, found


def test_every_kernel_was_measured_on_every_architecture(measured: list[Measured]) -> None:
    expected = {
        (f"{kind}.{target}.{name}", column)
        for kind, target in figures.all_units()
        for name in figures.kernel_names(kind)
        for column in figures.COLUMNS
    }
    assert {(m.kernel, m.column) for m in measured} == expected
    assert len(measured) == len(expected)


# --- the gate's own parts ----------------------------------------------------------------------------

ADD = "vector.Fr[bn254].add"


def one(*values: int, kernel: str = ADD, column: str = "sm_90") -> Measured:
    return Measured(kernel, column, "sm_121" if column == NEWEST else column, Figures(*values), (), "")


def table(**columns: list[int]) -> dict[str, Any]:
    return {"kernels": {ADD: columns}}


@pytest.mark.parametrize("place", range(4))
def test_a_worse_figure_is_wrong_and_a_better_one_is_told(place: int) -> None:
    old = [32, 8, 16, 64]
    more, less = list(old), list(old)
    more[place] += 1
    less[place] -= 1
    name = Figures._fields[place]
    assert compare(table(sm_90=old), [one(*old)]) == ([], [])
    wrong, better = compare(table(sm_90=old), [one(*more)])
    assert wrong == [f"{ADD} on sm_90: {name} {old[place]} -> {more[place]}: {UPDATE}"]
    assert not better
    assert compare(table(sm_90=old), [one(*less)]) == ([], [f"{ADD} on sm_90: {name} {old[place]} -> {less[place]}"])


def test_fewer_registers_do_not_make_up_for_spills() -> None:
    wrong, better = compare(table(sm_90=[64, 0, 0, 0]), [one(56, 24, 16, 0)])
    assert wrong == [f"{ADD} on sm_90: registers 64 -> 56, spilled 0 -> 24, stack 0 -> 16: {UPDATE}"]
    assert not better


def test_kernels_that_are_new_gone_or_broken_are_wrong() -> None:
    figure = [26, 0, 0, 0]
    wrong, _ = compare(table(sm_90=figure), [one(*figure), one(*figure, kernel="vector.Fr[bn254].cube")])
    assert wrong == [f"vector.Fr[bn254].cube on sm_90: not in the table: {UPDATE}"]
    wrong, _ = compare(table(sm_75=figure, sm_90=figure, newest=figure), [one(*figure)])
    assert wrong == [f"{ADD} on sm_75, newest: in the table, but was not measured: {UPDATE}"]
    broken = Measured(ADD, "sm_90", "sm_90", None, (), "TypingError: no such operator")
    wrong, _ = compare(table(sm_90=figure), [broken])
    assert wrong[0] == f"{ADD} on sm_90: TypingError: no such operator"


def test_the_newest_architecture_is_held_to_its_column_whatever_its_name() -> None:
    assert compare(table(newest=[26, 0, 0, 0]), [one(26, 0, 0, 0, column=NEWEST)]) == ([], [])
    wrong, _ = compare(table(newest=[26, 0, 0, 0]), [one(27, 0, 0, 0, column=NEWEST)])
    assert wrong == [f"{ADD} on sm_121: registers 26 -> 27: {UPDATE}"]


@pytest.mark.parametrize(
    ("listed", "capability"),
    [("sm_75\nsm_90\nsm_90a\nsm_100\nsm_121\nsm_121a\nsm_107\n", (12, 1)), ("75\n80\n90\n", (9, 0))],
)
def test_the_newest_architecture_is_the_highest_number(listed: str, capability: tuple[int, int]) -> None:
    assert figures.newest_capability(listed) == capability


def test_figures_are_read_from_the_assemblers_report() -> None:
    kernel = """ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'f' for 'sm_75'
ptxas info    : Function properties for f
    48 bytes stack frame, 52 bytes spill stores, 60 bytes spill loads
ptxas info    : Used 168 registers, used 1 barriers, 48 bytes cumulative stack size, 1024 bytes smem, 384 bytes cmem[0]
"""
    assert figures.parse_report(kernel) == Figures(168, 112, 48, 1024)
    called = "    16 bytes stack frame, 8 bytes spill stores, 4 bytes spill loads\n"
    assert figures.parse_report(called + kernel) == Figures(168, 124, 48, 1024)
    plain = "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\nptxas info    : Used 26 registers\n"
    assert figures.parse_report(plain) == Figures(26, 0, 0, 0)
    for report in ("", plain + plain, "ptxas info    : Used 26 registers\n"):
        with pytest.raises(CuzkError, match="ptxas -v tells of"):
            figures.parse_report(report)


def test_doubles_are_found_in_code_and_not_in_comments() -> None:
    ptx = """
    cvt.rn.f64.s64 %fd1, %rd1; // add.f64
    add.rn.f64 %fd2, %fd1, %fd1;
    add.rn.f32 %f2, %f1, %f1;
    { add.cc.u32 a, b, c; mul.f64 x, y, z; }
    """
    assert figures.doubles_in(ptx) == ("add.rn.f64", "cvt.rn.f64.s64", "mul.f64")
    assert figures.doubles_in("ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%rd1]; // .f64") == ()


def test_a_table_is_json_with_a_line_for_each_kernel_in_the_order_of_the_modules(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(figures, "toolchain", lambda: {"ptxas": "1.2"})
    names = ["sort.Fr[bn254].digits", "vector.Fr[bn254].subtract", ADD]
    rows = [one(k, 0, 0, 8, kernel=name, column=column) for k, column in enumerate(figures.COLUMNS) for name in names]
    made = figures.table_of(rows)
    assert list(made["kernels"]) == [ADD, "vector.Fr[bn254].subtract", "sort.Fr[bn254].digits"]
    assert made[NEWEST] == "sm_121"
    text = figures.table_text(made)
    assert json.loads(text) == json.loads(json.dumps(made))
    assert [line for line in text.splitlines() if "digits" in line] == [
        '    "sort.Fr[bn254].digits": {"sm_75": [0, 0, 0, 8], "sm_80": [1, 0, 0, 8], "sm_90": [2, 0, 0, 8], '
        '"newest": [3, 0, 0, 8]}'
    ]
    assert compare(made, rows) == ([], [])
    with pytest.raises(CuzkError, match=re.escape("ntt.* : no module")):
        figures.table_of([*rows, Measured("ntt.*", "", "", None, (), "no module")])


def test_what_is_not_known_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figures, "why_not", lambda: None)
    with pytest.raises(CuzkError, match="there are no kernels called vectors; there are vector, ntt"):
        list(figures.measure(["vectors"]))
    monkeypatch.setattr(figures, "why_not", lambda: "no ptxas")
    with pytest.raises(CuzkError, match="no figures of kernels: no ptxas"):
        list(figures.measure())
    monkeypatch.setitem(figures.MODULES, "cubes", "cuzk.kernels.cubes")
    with pytest.raises(CuzkError, match="no targets are known for kernels of cubes"):
        figures.all_units()
