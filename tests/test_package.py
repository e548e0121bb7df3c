"""The package from outside: what importing it brings along, and what it promises to export."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest

import cuzk
from cuzk.backend import NAMES, cuda, resolve
from helpers import EXAMPLE, ROOT, run_python

LOADED = "import json, sys; print(json.dumps(sorted({name.partition('.')[0] for name in sys.modules})))"


def modules_after(code: str) -> set[str]:
    done = run_python("-c", f"{code}\n{LOADED}")
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_import_brings_neither_compiler_nor_command_line() -> None:
    assert not {"numba", "typer", "rich", "hypothesis", "pytest"} & modules_after("import cuzk")


def test_a_warm_proof_does_not_import_numba(tmp_path: Path) -> None:
    from cuzk.cpu import jit

    jit.warm(["bn254"])
    code = f"import cuzk; cuzk.prove({str(EXAMPLE / 'chain.zkey')!r}, {str(EXAMPLE / 'chain.wtns')!r})"
    assert not {"numba", "typer", "rich"} & modules_after(code)


def test_help_imports_neither_compiler_nor_llvm() -> None:
    assert not {"numba", "llvmlite"} & modules_after("from cuzk.cli import main; main(['--help'])")


def test_every_exported_name_is_there() -> None:
    assert all(hasattr(cuzk, name) for name in cuzk.__all__)
    assert len(set(cuzk.__all__)) == len(cuzk.__all__)


def test_type_checkers_see_every_exported_name() -> None:
    """What `if TYPE_CHECKING` imports is what the package hands out at run time, from the same modules."""
    tree = ast.parse(Path(cuzk.__file__).read_text())
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and str(node.module)[:5] == "cuzk."]
    assert {alias.asname: node.module for node in imports for alias in node.names} == cuzk._HOME


def test_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = cuzk.no_such_name
    assert set(cuzk.__all__) <= set(dir(cuzk))


def test_msm_and_ntt_are_functions_whatever_was_imported_first() -> None:
    """Both are also modules of the package, and the last import must not win."""
    code = "import cuzk.msm, cuzk.ntt, cuzk; import cuzk.msm; print(callable(cuzk.msm), callable(cuzk.ntt))"
    done = run_python("-c", code)
    assert done.stdout == "True True\n", done.stderr


def test_package_is_marked_typed() -> None:
    assert (ROOT / "cuzk" / "py.typed").is_file()


def test_cpu_backend_is_always_there() -> None:
    assert resolve("cpu") == resolve("auto", ("cpu",)) == "cpu"


@pytest.mark.skipif(not cuda().missing, reason="this machine has what CUDA needs")
def test_cuda_backend_is_refused_with_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NUMBA_ENABLE_CUDASIM", raising=False)
    with pytest.raises(cuzk.BackendError, match="backend cuda: ") as caught:
        resolve("cuda")
    assert all(line in str(caught.value) for line in cuda().missing)
    assert resolve("auto") == "cpu"


def test_a_backend_that_the_caller_does_not_have_is_refused() -> None:
    with pytest.raises(cuzk.BackendError, match="backend cuda: proofs on the GPU are not in this version"):
        resolve("cuda", ("cpu",))


def test_simulator_counts_as_a_gpu_where_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_ENABLE_CUDASIM", "1")
    assert resolve("cuda") == "cuda"


@pytest.mark.gpu
def test_a_gpu_is_used_where_there_is_one() -> None:
    assert resolve("auto") == resolve("cuda") == "cuda"


def test_unknown_backend_is_refused_with_the_known_names() -> None:
    with pytest.raises(cuzk.BackendError, match=r"'gpu'.*" + ", ".join(NAMES)):
        resolve("gpu")


@pytest.mark.gpu
def test_driver_describes_its_gpus() -> None:
    there = cuda()
    assert there.driver is not None
    assert there.driver >= (11, 0)
    for gpu in there.gpus:
        assert gpu.name
        assert gpu.memory_bytes > 2**28
        assert gpu.capability >= (5, 0)
