"""The shipped example: its script says what its files hold."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

import cuzk
from helpers import EXAMPLE, run_snarkjs


@pytest.fixture(scope="module")
def make() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_mimc_chain", EXAMPLE / "make.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_round_function_is_a_permutation_with_enough_rounds(make: ModuleType) -> None:
    assert (make.R - 1) % 5 != 0
    assert 5 ** (make.ROUNDS - 1) < make.R < 5**make.ROUNDS
    assert len(set(make.CONSTANTS)) == make.ROUNDS


def test_circuit_computes_the_hash(make: ModuleType) -> None:
    for text in ("", "a", "x" * 372, "ä" * 186):
        messages = make.blocks(text)
        circuit = make.build(messages)
        assert circuit.values[1] == make.hash_chain(messages)
        for a, b, c in circuit.constraints:
            assert circuit.value(a) * circuit.value(b) % make.R == circuit.value(c)
    assert len(circuit.constraints) + 2 <= 1 << make.LOG_DOMAIN


def test_text_that_is_too_long_is_refused(make: ModuleType) -> None:
    with pytest.raises(SystemExit, match="373 bytes"):
        make.blocks("x" * 373)


def test_script_makes_the_shipped_witness_and_circuit(make: ModuleType, tmp_path: Path) -> None:
    circuit = make.build(make.blocks(make.TEXT))
    make.write_files(tmp_path, circuit, circuit_too=True)
    for name in ("chain.wtns", "chain.r1cs"):
        assert (tmp_path / name).read_bytes() == (EXAMPLE / name).read_bytes()


def test_another_text_has_a_proof_of_its_hash(make: ModuleType, tmp_path: Path) -> None:
    messages = make.blocks("another text")
    make.write_files(tmp_path, make.build(messages))
    result = cuzk.prove(EXAMPLE / "chain.zkey", tmp_path / "chain.wtns")
    assert result.public == [make.hash_chain(messages)]


@pytest.mark.snarkjs
def test_snarkjs_finds_that_the_witness_satisfies_the_circuit() -> None:
    done = run_snarkjs("wtns", "check", EXAMPLE / "chain.r1cs", EXAMPLE / "chain.wtns")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "WITNESS IS CORRECT" in done.stdout
