"""Real circuits from key and witness to a proof that we and others accept."""

from __future__ import annotations

import json
import pickle
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import cuzk
from cuzk.errors import BackendError, CuzkError, ProofError
from cuzk.field.host import encode_canonical
from helpers import CASES, needs_cases, run_snarkjs
from verifiers import py_ecc_accepts, zksnake_accepts

pytestmark = needs_cases

# every shipped key that has a witness; the keys of a known trapdoor use the witness of their circuit
PROVABLE = {
    "bn254/rs1000": "rs1000",
    "bn254/semaphore20": "semaphore20",
    "bn254/unirep_epochKeyLite": "unirep_epochKeyLite",
    "bn254/chain8_kt": "chain8",
    "bn254/chain12_kt": "chain12",
    "bls12381/chain8": "chain8",
    "bls12381/chain12": "chain12",
    "bls12381/chain8_kt": "chain8",
    "bls12381/chain12_kt": "chain12",
}
names = pytest.mark.parametrize("name", PROVABLE)
SMALL = ["bn254/chain8_kt", "bls12381/chain8_kt"]
small = pytest.mark.parametrize("name", SMALL)


def files(name: str) -> tuple[Path, Path, Path]:
    """Key, witness and verifying key of a case."""
    key = CASES / f"{name}.zkey"
    return key, key.with_name(f"{PROVABLE[name]}.wtns"), CASES / f"{name}.vkey.json"


@pytest.fixture(scope="session")
def proved(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[cuzk.ProveResult, Path, Path]]:
    """Each case proved once: (result, public.json, proof.json)."""
    made: dict[str, tuple[cuzk.ProveResult, Path, Path]] = {}

    def prove(name: str) -> tuple[cuzk.ProveResult, Path, Path]:
        if name not in made:
            key, witness, _ = files(name)
            result = cuzk.prove(key, witness)
            folder = tmp_path_factory.mktemp("proof")
            public, proof = folder / "public.json", folder / "proof.json"
            cuzk.write_public(public, result.proof.curve, result.public)
            cuzk.write_proof(proof, result.proof)
            made[name] = result, public, proof
        return made[name]

    return prove


Proved = Callable[[str], tuple[cuzk.ProveResult, Path, Path]]


@names
def test_is_accepted_here_and_by_another_implementation(name: str, proved: Proved) -> None:
    result, public, proof = proved(name)
    path = files(name)[2]
    vkey = cuzk.load_vkey(path)
    assert cuzk.verify(vkey, cuzk.load_public(public, vkey.curve), cuzk.load_proof(proof))
    assert zksnake_accepts(path, public, proof)
    assert result.backend == "cpu"
    assert list(result.phases)[-1] == "verify"


@names
@pytest.mark.snarkjs
def test_is_accepted_by_snarkjs(name: str, proved: Proved) -> None:
    _, public, proof = proved(name)
    answer = run_snarkjs("groth16", "verify", files(name)[2], public, proof)
    assert answer.returncode == 0, answer.stdout
    assert "OK!" in answer.stdout


@small
def test_is_accepted_by_pure_python(name: str, proved: Proved) -> None:
    _, public, proof = proved(name)
    assert py_ecc_accepts(files(name)[2], public, proof)


@names
def test_another_public_input_is_refused(name: str, proved: Proved) -> None:
    result, _, _ = proved(name)
    vkey = cuzk.load_vkey(files(name)[2])
    for i in range(len(result.public)):
        changed = list(result.public)
        changed[i] = (changed[i] + 1) % vkey.curve.fr.modulus
        assert not cuzk.verify(vkey, changed, result.proof)


@small
def test_randomness_is_fresh_unless_it_is_fixed(name: str) -> None:
    key, witness = cuzk.load_zkey(files(name)[0]), cuzk.load_wtns(files(name)[1])
    first, second = cuzk.prove(key, witness), cuzk.prove(key, witness)
    assert not np.array_equal(first.proof.a, second.proof.a)
    assert not np.array_equal(first.proof.c, second.proof.c)
    fixed = [cuzk.prove(key, witness, unsafe_fixed_randomness=(5, 7)).proof for _ in range(2)]
    assert all(np.array_equal(getattr(fixed[0], part), getattr(fixed[1], part)) for part in "abc")
    order = key.curve.fr.modulus
    # zero randomness is a legal choice: the sums alone have to be right
    cuzk.prove(key, witness, unsafe_fixed_randomness=(0, 0))
    cuzk.prove(key, witness, unsafe_fixed_randomness=(order - 1, order - 1))
    for bad in ((order, 0), (0, -1), (1,)):
        with pytest.raises(CuzkError, match="unsafe_fixed_randomness"):
            cuzk.prove(key, witness, unsafe_fixed_randomness=bad)  # type: ignore[arg-type]


@small
def test_a_witness_that_does_not_satisfy_the_circuit_is_refused(name: str) -> None:
    key, witness = cuzk.load_zkey(files(name)[0]), cuzk.load_wtns(files(name)[1])
    values = witness.values.copy()
    values[-1] = encode_canonical(key.curve.fr, [123456789])[0]
    wrong = replace(witness, values=values)
    with pytest.raises(ProofError, match="does not satisfy"):
        cuzk.prove(key, wrong)
    # without the check the proof is handed out, and it is as invalid as the witness
    result = cuzk.prove(key, wrong, check=False)
    assert "verify" not in result.phases
    assert not cuzk.verify(key.verifying_key, result.public, result.proof)


@pytest.mark.parametrize("part", ["a", "b1", "b2", "c", "h"])
@small
def test_a_damaged_key_is_noticed(name: str, part: str) -> None:
    key, witness = cuzk.load_zkey(files(name)[0]), cuzk.load_wtns(files(name)[1])
    points = np.array(getattr(key, part))
    finite = (k for k in range(3, len(points)) if points[k].any())
    i = next(finite)
    j = next(k for k in finite if not np.array_equal(points[k], points[i]))
    points[[i, j]] = points[[j, i]]
    with pytest.raises(ProofError):
        cuzk.prove(replace(key, **{part: points}), witness)


def test_keys_and_witnesses_survive_pickling() -> None:
    key, witness = (pickle.loads(pickle.dumps(x)) for x in map(_load, files(SMALL[0])[:2]))
    cuzk.prove(key, witness)


def _load(path: Path) -> cuzk.ProvingKey | cuzk.Witness:
    return cuzk.load_zkey(path) if path.suffix == ".zkey" else cuzk.load_wtns(path)


def test_files_that_do_not_belong_together() -> None:
    bn, bls = CASES / "bn254", CASES / "bls12381"
    with pytest.raises(CuzkError, match=r"key is for bn254.*witness for bls12_381"):
        cuzk.prove(bn / "chain8_kt.zkey", bls / "chain8.wtns")
    with pytest.raises(CuzkError, match="another circuit"):
        cuzk.prove(bn / "chain8_kt.zkey", bn / "chain12.wtns")
    with pytest.raises(CuzkError):
        cuzk.prove(bn / "chain8.wtns", bn / "chain8.wtns")
    with pytest.raises(CuzkError):
        cuzk.prove(bn / "missing.zkey", bn / "chain8.wtns")


def test_asking_for_cuda_is_not_answered_by_the_cpu() -> None:
    with pytest.raises(BackendError):
        cuzk.prove(*files(SMALL[0])[:2], backend="cuda")


def test_phases_are_reported_in_order() -> None:
    seen: list[tuple[str, float]] = []
    result = cuzk.prove(*files(SMALL[0])[:2], on_phase=lambda name, share: seen.append((name, share)))
    started = [name for name, share in seen if share == 0.0]
    assert started == list(result.phases)
    assert {"load", "quotient", "msm", "assemble", "verify"} <= set(started)
    assert all(0.0 <= share <= 1.0 for _, share in seen)
    assert all((name, 1.0) in seen for name in started)


@pytest.mark.parametrize("name", ["bn254/semaphore20", "bls12381/chain8", "bls12381/chain12"])
class TestShippedProofs:
    def load(self, name: str) -> tuple[cuzk.VerifyingKey, list[int], cuzk.Proof]:
        base = CASES / name
        vkey = cuzk.load_vkey(base.with_suffix(".vkey.json"))
        public = cuzk.load_public(base.with_suffix(".public.json"), vkey.curve)
        return vkey, public, cuzk.load_proof(base.with_suffix(".proof.json"))

    def test_verifies(self, name: str) -> None:
        assert cuzk.verify(*self.load(name))

    def test_one_altered_public_input_fails(self, name: str) -> None:
        vkey, public, proof = self.load(name)
        for i in range(len(public)):
            for value in (0, 1, vkey.curve.fr.modulus - 1, (public[i] + 1) % vkey.curve.fr.modulus):
                if value != public[i]:
                    assert not cuzk.verify(vkey, [*public[:i], value, *public[i + 1 :]], proof)

    def test_one_altered_point_fails(self, name: str) -> None:
        vkey, public, proof = self.load(name)
        for altered in (
            replace(proof, a=proof.c),
            replace(proof, c=proof.a),
            replace(proof, a=np.zeros_like(proof.a)),
            replace(proof, b=np.zeros_like(proof.b)),
            replace(proof, c=np.zeros_like(proof.c)),
            replace(proof, b=vkey.beta2),
        ):
            assert not cuzk.verify(vkey, public, altered)

    def test_one_altered_bit_fails(self, name: str) -> None:
        vkey, public, proof = self.load(name)
        rng = np.random.default_rng(8)
        for part in "abc":
            for _ in range(20):
                limbs = getattr(proof, part).copy()
                limbs.reshape(-1)[rng.integers(limbs.size)] ^= np.uint32(1 << int(rng.integers(32)))
                assert not cuzk.verify(vkey, public, replace(proof, **{part: limbs}))

    def test_one_altered_digit_of_the_file_fails(self, name: str, tmp_path: Path) -> None:
        source = json.loads((CASES / name).with_suffix(".proof.json").read_text())
        for part, row in (("pi_a", 0), ("pi_a", 1), ("pi_c", 1)):
            changed = json.loads(json.dumps(source))
            digits = changed[part][row]
            changed[part][row] = digits[:-1] + str((int(digits[-1]) + 1) % 10)
            path = tmp_path / "proof.json"
            path.write_text(json.dumps(changed))
            with pytest.raises(CuzkError, match="curve"):
                cuzk.load_proof(path)
        shutil.rmtree(tmp_path)
