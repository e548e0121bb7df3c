"""Compiled code on disk: found again, checked, made anew where it is damaged, done without where it cannot be kept."""

from __future__ import annotations

import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cuzk.cpu import jit, pool
from cuzk.errors import CuzkError
from cuzk.field.host import decode, encode
from cuzk.field.params import BN254
from helpers import run_python

FIELD = BN254.fr
MULTIPLY = """
import json, sys
import numpy as np
from cuzk.cpu import jit
from cuzk.field.host import decode, encode
from cuzk.field.params import BN254
x, out = encode(BN254.fr, [2, 3, 4]), encode(BN254.fr, [0, 0, 0])
jit.load("vector", BN254.fr.name).multiply(x, x, out, 3)
loaded = {name: name in sys.modules for name in ("numba", "llvmlite")}
print(json.dumps({"result": decode(BN254.fr, out), **loaded}))
"""


def multiply_in_a_process(cache: Path) -> dict[str, Any]:
    done = run_python("-c", MULTIPLY, CUZK_CACHE_DIR=str(cache))
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def state(cache: Path) -> dict[str, tuple[int, int]]:
    return {path.name: (path.stat().st_mtime_ns, path.stat().st_ino) for path in cache.iterdir()}


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache that a first process has filled with one unit."""
    folder = tmp_path_factory.mktemp("cache") / "made" / "on demand"
    assert multiply_in_a_process(folder) == {"result": [4, 9, 16], "numba": True, "llvmlite": True}
    return folder


@pytest.fixture
def library() -> jit.Library:
    return jit.load("vector", FIELD.name)


def test_a_second_process_compiles_nothing(cache: Path) -> None:
    before = state(cache)
    assert [name.partition("-")[0] for name in before] == ["vector"]
    assert multiply_in_a_process(cache) == {"result": [4, 9, 16], "numba": False, "llvmlite": True}
    assert state(cache) == before


@pytest.mark.parametrize("damage", ["truncated", "empty", "altered", "another magic"])
def test_a_damaged_file_is_compiled_again(cache: Path, damage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUZK_CACHE_DIR", str(cache))
    (path,) = cache.iterdir()
    good = path.read_bytes()
    middle = len(good) // 2
    path.write_bytes(
        {
            "truncated": good[:middle],
            "empty": b"",
            "altered": good[:middle] + bytes([good[middle] ^ 1]) + good[middle + 1 :],
            "another magic": b"cuzkobj0" + good[8:],
        }[damage]
    )
    unit = ("vector", FIELD.name)
    assert jit._read(unit) is None
    compiled: list[object] = []

    def compile_and_store(which: jit.Unit) -> Any:
        compiled.append(which)
        path.write_bytes(good)
        return jit._read(which)

    monkeypatch.setattr(jit, "_libraries", {})
    monkeypatch.setattr(jit, "_compile_and_store", compile_and_store)
    x, out = encode(FIELD, [5]), encode(FIELD, [0])
    jit.load(*unit).multiply(x, x, out, 1)
    assert (compiled, decode(FIELD, out)) == ([unit], [25])


def test_a_truncated_file_is_replaced_by_a_good_one(cache: Path) -> None:
    """The same, with the compiler and in another process."""
    (path,) = cache.iterdir()
    size = path.stat().st_size
    path.write_bytes(path.read_bytes()[:1000])
    assert multiply_in_a_process(cache) == {"result": [4, 9, 16], "numba": True, "llvmlite": True}
    assert [p.stat().st_size for p in cache.iterdir()] == [size]
    assert multiply_in_a_process(cache)["numba"] is False


def test_a_cache_that_cannot_be_written_is_done_without(tmp_path: Path) -> None:
    """Below a file no folder can be made, not even by root."""
    blocker = tmp_path / "file"
    blocker.write_text("")
    assert multiply_in_a_process(blocker / "cache") == {"result": [4, 9, 16], "numba": True, "llvmlite": True}


def test_a_cache_that_cannot_be_written_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocker = tmp_path / "file"
    blocker.write_text("")
    monkeypatch.setenv("CUZK_CACHE_DIR", str(blocker / "cache"))
    monkeypatch.setattr(jit, "_libraries", {})
    with pytest.warns(RuntimeWarning, match="every process compiles again"):
        jit.load("r1cs", FIELD.name)
    with pytest.raises(CuzkError, match="nothing would be kept"):
        jit.warm(["bn254"])


def test_a_write_that_fails_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUZK_CACHE_DIR", str(tmp_path))
    jit._object_path(("r1cs", FIELD.name)).mkdir()  # a folder where the file belongs
    monkeypatch.setattr(jit, "_libraries", {})
    with pytest.warns(RuntimeWarning, match="cannot be kept"):
        jit.load("r1cs", FIELD.name)
    assert len(list(tmp_path.iterdir())) == 1


def test_units_that_are_missing_are_made_by_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUZK_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(jit, "_libraries", {})
    units = [("vector", FIELD.name), ("r1cs", FIELD.name)]
    assert jit.missing(units) == units
    seen: list[str] = []
    jit.prepare(units, lambda name, seconds: seen.append(name))
    assert sorted(seen) == sorted(" ".join(unit) for unit in units)
    assert jit.missing(units) == []
    assert not [p.name for p in tmp_path.iterdir() if not p.name.endswith(".o")]  # no temporary file is left
    jit.prepare(units, lambda name, seconds: pytest.fail("nothing is missing"))


def test_a_failed_compilation_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUZK_CACHE_DIR", str(tmp_path))
    units = [("vector", "Fp[nowhere]"), ("ntt", "Fp[nowhere]")]
    with pytest.raises(CuzkError, match=r"compiling .* failed.*(?s:.*)KeyError.*Fp\[nowhere\]"):
        jit.prepare(units)


def test_key_of_the_cache_covers_the_sources_a_unit_reaches(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A line more in a source, directly imported or not, gives a unit another key; in any other source it does not."""
    files = {
        "cpu/compiler.py": "",
        "cpu/one_jobs.py": "from cuzk.field.a import x\n",
        "cpu/two_jobs.py": "from cuzk.field import (\n    b,\n    c,\n)\n",
        "field/a.py": "from cuzk.field import c\n",
        "field/b.py": "",
        "field/c.py": "",
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    monkeypatch.setattr(jit, "_ROOT", tmp_path)
    monkeypatch.setattr(jit, "__file__", str(tmp_path / "cpu" / "jit.py"))

    def keys() -> tuple[str, str]:
        jit._imports.cache_clear()
        jit._fingerprint.cache_clear()
        return jit._fingerprint("cuzk.cpu.one_jobs"), jit._fingerprint("cuzk.cpu.two_jobs")

    try:
        for changed, affected in (("field/a.py", (1, 0)), ("field/b.py", (0, 1)), ("field/c.py", (1, 1)),
                                  ("cpu/compiler.py", (1, 1)), ("cpu/two_jobs.py", (0, 1))):  # fmt: skip
            before = keys()
            path = tmp_path / changed
            path.write_text(path.read_text() + "y = 1\n")
            assert tuple(int(a != b) for a, b in zip(before, keys(), strict=True)) == affected
    finally:
        monkeypatch.undo()
        jit._imports.cache_clear()
        jit._fingerprint.cache_clear()


def test_every_formula_a_unit_uses_is_in_its_key() -> None:
    reached = jit.sources("cuzk.cpu.msm_jobs")
    names = {path.name for path in reached}
    assert {"msm_jobs.py", "point.py", "element.py", "llvm.py", "llvm_inverse.py", "params.py", "compiler.py"} <= names
    assert "pairing.py" not in names


# --- calls -------------------------------------------------------------------------------------------


def test_arrays_must_be_contiguous(library: jit.Library) -> None:
    x = encode(FIELD, [1, 2, 3, 4])
    with pytest.raises(jit.JobError, match="not contiguous"):
        library.multiply(x[::2], x, x, 2)


def test_unknown_jobs_and_units_are_refused(library: jit.Library) -> None:
    with pytest.raises(AttributeError, match="no job no_such_job"):
        library.no_such_job  # noqa: B018
    with pytest.raises(KeyError):
        jit.load("no_such_kind", FIELD.name)


def test_wrong_number_of_arguments_is_an_error(library: jit.Library) -> None:
    x = encode(FIELD, [1])
    with pytest.raises(TypeError):
        library.multiply(x, x, x)


# --- cores -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", ["0", "-1", "two", "1.5", " "])
def test_a_bad_number_of_threads_is_refused(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUZK_THREADS", value)
    with pytest.raises(CuzkError, match=f"CUZK_THREADS is '{value}'.*at least 1"):
        jit.core_count()


def test_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUZK_THREADS", "3")
    assert jit.core_count() == 3
    monkeypatch.setenv("CUZK_THREADS", "")
    assert jit.core_count() >= 1
    if hasattr(os, "sched_getaffinity"):
        assert jit.core_count() == len(os.sched_getaffinity(0))


def test_pool_keeps_order_and_raises_when_all_are_done() -> None:
    assert pool.run((lambda i=i: i * i) for i in range(20)) == [i * i for i in range(20)]
    assert pool.run([]) == []
    running = SimpleNamespace(count=0)

    def fail() -> None:
        raise CuzkError("one of them")

    def work() -> None:
        running.count += 1
        sum(range(10000))
        running.count -= 1

    with pytest.raises(CuzkError, match="one of them"):
        pool.run([fail, *[work] * 20])
    assert running.count == 0


@pytest.mark.parametrize(("n", "parts"), [(0, 3), (1, 3), (7, 3), (8, 8), (5, 100), (100, 1)])
def test_split_covers_everything_evenly(n: int, parts: int) -> None:
    ranges = pool.split(n, parts)
    assert [i for a, b in ranges for i in range(a, b)] == list(range(n))
    sizes = [b - a for a, b in ranges]
    assert len(ranges) <= parts
    assert not sizes or (min(sizes) >= 1 and max(sizes) - min(sizes) <= 1)


# --- numba's own cache, for kernels that a user writes --------------------------------------------------

KERNEL = """
import json
import numba
from numba.core import types
from cuzk.curve.point import add_mixed, affine_type, xyzz_type
from cuzk.field.element import element_type, sqr
from cuzk.field.params import BN254
from cuzk.field.prime import inv
from cuzk.field.tower import fp2_type
from cuzk.field.vector import Vector

fp, fp2, n = Vector(element_type(BN254.fp)), Vector(fp2_type(BN254.fp)), types.int64


@numba.njit((fp, fp, fp2, n), cache=True)
def elements(x, out, pairs, n):
    for i in range(n):
        out[i] = sqr(x[i]) * x[i] - inv(x[i])
        pairs[i] = sqr(pairs[i]) * pairs[i]


@numba.njit((Vector(xyzz_type(BN254.g1)), Vector(affine_type(BN254.g1)), n), cache=True)
def points(sums, points, n):
    for i in range(n):
        sums[i] = add_mixed(sums[i], points[i])


count = lambda stats: [sum(stats.cache_hits.values()), sum(stats.cache_misses.values())]
print(json.dumps([count(elements.stats), count(points.stats)]))
"""


def test_kernels_of_a_user_are_found_in_numbas_cache(tmp_path: Path) -> None:
    script = tmp_path / "kernel.py"
    script.write_text(KERNEL)
    cache = str(tmp_path / "numba")

    def hits_and_misses() -> Any:
        done = run_python(script, NUMBA_CACHE_DIR=cache)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    assert hits_and_misses() == [[0, 1], [0, 1]]
    assert hits_and_misses() == [[1, 0], [1, 0]]
