"""Files read and written again are the same bytes, and what was read is what an independent reading finds."""

from __future__ import annotations

import json
import resource
import struct
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cuzk.errors import CuzkError
from cuzk.field.host import decode, limbs_to_ints
from cuzk.field.params import CURVES, Curve
from cuzk.formats import (
    check_coefficients,
    check_pair,
    check_witness,
    describe,
    identify,
    load_proof,
    load_public,
    load_r1cs,
    load_vkey,
    load_wtns,
    load_zkey,
    read_section,
    write_proof,
    write_public,
    write_r1cs,
    write_vkey,
    write_wtns,
    write_zkey,
)
from cuzk.groth16.r1cs import R1cs, SparseMatrix
from formats_samples import CURVE_LIST, container, contents, sample_key, sample_r1cs, sections_of, write_sample
from helpers import CASES, EXAMPLE, needs_cases


def real(pattern: str) -> list:
    """Parameters: the example's files, which are always there, and those of the folder of real ones."""
    shared = sorted(CASES.glob(f"*/{pattern}")) if CASES.is_dir() else []
    files = [*sorted(EXAMPLE.glob(pattern)), *shared]
    return [pytest.param(f, id="-".join(f.parts[-2:])) for f in files]


def curve_of(path: Path) -> Curve:
    return CURVES["bls12_381" if "bls12381" in path.parts else "bn254"]


@pytest.mark.parametrize("path", real("*.zkey"))
def test_zkey_is_the_same_bytes_after_load_and_write(path, tmp_path):
    key = load_zkey(path)
    assert key.curve is curve_of(path)
    check_coefficients(key)
    write_zkey(tmp_path / "key", key, read_section(path, 10))
    assert (tmp_path / "key").read_bytes() == path.read_bytes()


@pytest.mark.parametrize("path", real("*.wtns"))
def test_wtns_is_the_same_bytes_after_load_and_write(path, tmp_path):
    witness = load_wtns(path)
    assert witness.curve is curve_of(path)
    check_witness(witness)
    write_wtns(tmp_path / "limbs", witness.curve, witness.values)
    write_wtns(tmp_path / "ints", witness.curve, limbs_to_ints(witness.values))
    assert (tmp_path / "limbs").read_bytes() == path.read_bytes() == (tmp_path / "ints").read_bytes()


@pytest.mark.parametrize("path", real("*.r1cs"))
def test_r1cs_is_the_same_bytes_after_load_and_write(path, tmp_path):
    r1cs = load_r1cs(path)
    assert r1cs.curve is curve_of(path)
    order = [row["kind"] for row in describe(path)["sections"]]
    write_r1cs(tmp_path / "circuit", r1cs, order)
    assert (tmp_path / "circuit").read_bytes() == path.read_bytes()


@pytest.mark.parametrize("path", real("*.r1cs"))
def test_r1cs_is_satisfied_by_its_witness(path):
    r1cs, w = load_r1cs(path), limbs_to_ints(load_wtns(path.with_suffix(".wtns")).values)
    r = r1cs.curve.fr.modulus
    assert r1cs.n_vars == len(w)
    for i in range(r1cs.n_constraints):
        a, b, c = (sum(value * w[k] for k, value in m.row(i)) % r for m in (r1cs.a, r1cs.b, r1cs.c))
        assert a * b % r == c, f"constraint {i}"


@pytest.mark.parametrize("path", real("*.r1cs"))
def test_matrices_of_a_key_are_those_of_its_circuit(path):
    keys = [p for p in (path.with_suffix(".zkey"), path.with_name(f"{path.stem}_kt.zkey")) if p.exists()]
    r1cs = load_r1cs(path)
    r = r1cs.curve.fr.modulus
    inverse = pow(r1cs.curve.fr.r2, -1, r)
    for key_path in keys:
        key = load_zkey(key_path)
        assert (key.n_vars, key.n_public) == (r1cs.n_vars, r1cs.n_public)
        found: list[dict] = [{}, {}]
        values = [v * inverse % r for v in limbs_to_ints(key.coefficients["value"])]
        places = (key.coefficients[name].tolist() for name in ("matrix", "row", "column"))
        for matrix, row, column, value in zip(*places, values, strict=True):
            found[matrix][row, column] = value
        wanted: list[dict] = [{}, {}]
        for entries, matrix in zip(wanted, (r1cs.a, r1cs.b), strict=True):
            for i in range(r1cs.n_constraints):
                entries.update({(i, column): value for column, value in matrix.row(i)})
        wanted[0].update({(r1cs.n_constraints + s, s): 1 for s in range(r1cs.n_public + 1)})
        assert found == wanted


@pytest.mark.parametrize("path", real("*.vkey.json") + real("verification_key.json"))
def test_vkey_is_the_same_bytes_and_its_points_are_the_numbers_written(path, tmp_path):
    raw, vkey = json.loads(path.read_text()), load_vkey(path)
    fp = vkey.curve.fp
    assert vkey.curve is curve_of(path)
    assert vkey.n_public == raw["nPublic"]
    assert decode(fp, vkey.alpha1) == [int(c) for c in raw["vk_alpha_1"][:2]]
    for name in ("beta", "gamma", "delta"):
        expected = [[int(c) for c in pair] for pair in raw[f"vk_{name}_2"][:2]]
        assert decode(fp, getattr(vkey, f"{name}2")) == expected
    assert decode(fp, vkey.ic) == [[int(c) for c in point[:2]] for point in raw["IC"]]
    write_vkey(tmp_path / "vkey", vkey, raw["vk_alphabeta_12"])
    assert (tmp_path / "vkey").read_bytes() == path.read_bytes()
    write_vkey(tmp_path / "short", vkey)
    del raw["vk_alphabeta_12"]
    assert json.loads((tmp_path / "short").read_text()) == raw


@pytest.mark.parametrize("path", real("*.proof.json"))
def test_proof_is_the_same_bytes_and_its_points_are_the_numbers_written(path, tmp_path):
    raw, proof = json.loads(path.read_text()), load_proof(path)
    fp = proof.curve.fp
    assert proof.curve is curve_of(path)
    assert decode(fp, proof.a) == [int(c) for c in raw["pi_a"][:2]]
    assert decode(fp, proof.b) == [[int(c) for c in pair] for pair in raw["pi_b"][:2]]
    assert decode(fp, proof.c) == [int(c) for c in raw["pi_c"][:2]]
    write_proof(tmp_path / "proof", proof)
    assert (tmp_path / "proof").read_bytes() == path.read_bytes()


@pytest.mark.parametrize("path", real("*.public.json"))
def test_public_signals_are_the_same_bytes_and_the_witness_holds_them(path, tmp_path):
    values = load_public(path, curve_of(path))
    witness = load_wtns(path.with_name(path.name.replace(".public.json", ".wtns")))
    assert values == limbs_to_ints(witness.values[1 : len(values) + 1])
    write_public(tmp_path / "public", witness.curve, values)
    assert (tmp_path / "public").read_bytes() == path.read_bytes()


@pytest.mark.parametrize("path", real("*_kt.vkey.json") + real("chain*.vkey.json") + real("verification_key.json"))
def test_vkey_of_a_key_is_the_one_that_snarkjs_exported(path, tmp_path):
    name = "chain.zkey" if path.name == "verification_key.json" else path.name.replace(".vkey.json", ".zkey")
    alphabeta = json.loads(path.read_text())["vk_alphabeta_12"]
    write_vkey(tmp_path / "vkey", load_zkey(path.with_name(name)).verifying_key, alphabeta)
    assert (tmp_path / "vkey").read_bytes() == path.read_bytes()


@needs_cases
def test_keys_and_witnesses_pair_up():
    for path in sorted(CASES.glob("*/*.wtns")):
        check_pair(load_zkey(next(path.parent.glob(f"{path.stem}*.zkey"))), load_wtns(path))


def test_describe_counts_a_keys_constraints_as_the_circuit_file_does():
    assert describe(EXAMPLE / "chain.zkey")["n_constraints"] == describe(EXAMPLE / "chain.r1cs")["n_constraints"]


@needs_cases
def test_describe_knows_the_circuits():
    facts = describe(CASES / "bn254/semaphore20.zkey")
    assert (facts["n_constraints"], facts["n_vars"], facts["domain_size"]) == (6431, 6454, 8192)
    assert facts["kind"] == "zkey"
    assert 0.35 < facts["infinities"]["b1"] < 0.36
    assert facts["infinities"]["b1"] == facts["infinities"]["b2"]
    assert [row["kind"] for row in facts["sections"]] == list(range(1, 11))
    assert describe(CASES / "bls12381/chain8.r1cs")["n_constraints"] == 252
    assert describe(CASES / "bls12381/chain8.proof.json")["curve"] == "bls12_381"
    assert describe(CASES / "bls12381/chain8.public.json")["n_public"] == 2
    assert describe(CASES / "bn254/rs1000.vkey.json")["n_public"] == 1
    json.dumps(facts)


@pytest.mark.parametrize("kind", ["zkey", "wtns", "r1cs"])
@pytest.mark.parametrize("curve", CURVE_LIST, ids=str)
def test_sample_is_identified_and_described(kind, curve, tmp_path):
    path = tmp_path / "sample"
    data = write_sample(kind, path, curve)
    assert identify(path) == kind
    facts = describe(path)
    assert (facts["curve"], facts["bytes"]) == (curve.name, len(data))
    table = {row["kind"]: (row["offset"], row["length"]) for row in facts["sections"]}
    assert table == sections_of(data)


@pytest.mark.parametrize("curve", CURVE_LIST, ids=str)
def test_key_written_and_loaded_is_the_same_arrays(curve, tmp_path):
    key = sample_key(curve)
    write_zkey(tmp_path / "key", key)
    loaded = load_zkey(tmp_path / "key")
    assert loaded.path == tmp_path / "key"
    for name, value in vars(key).items():
        if isinstance(value, np.ndarray):
            np.testing.assert_array_equal(getattr(loaded, name), value)
            assert not getattr(loaded, name).flags.writeable
        elif name != "path":
            assert getattr(loaded, name) == value
    assert read_section(tmp_path / "key", 10) == bytes(68)


@pytest.mark.parametrize("curve", CURVE_LIST, ids=str)
def test_r1cs_written_and_loaded_is_the_same_rows(curve, tmp_path):
    r1cs = sample_r1cs(curve)
    for order in ((1, 2, 3), (2, 1, 3), (3, 2, 1)):
        write_r1cs(tmp_path / "r1cs", r1cs, order)
        loaded = load_r1cs(tmp_path / "r1cs")
        assert list(sections_of((tmp_path / "r1cs").read_bytes())) == list(order)
        for name in "abc":
            rows = [getattr(loaded, name).row(i) for i in range(3)]
            assert rows == [getattr(r1cs, name).row(i) for i in range(3)]
    assert loaded.b.row(1) == [(2, 1), (0, curve.fr.modulus - 1)]
    assert loaded.a.row(2) == []


def test_r1cs_without_constraints(tmp_path):
    write_r1cs(tmp_path / "r1cs", R1cs.from_constraints(CURVES["bn254"], 1, []))
    assert load_r1cs(tmp_path / "r1cs").n_constraints == 0


def test_sections_may_come_in_any_order_and_at_any_alignment(tmp_path):
    curve = CURVES["bls12_381"]
    data = write_sample("zkey", tmp_path / "key", curve)
    key = sample_key(curve)
    sections = contents(data)
    shuffled = [(10, b"odd"), (77, b"unknown"), *reversed(sections[:-1])]
    (tmp_path / "key").write_bytes(container(b"zkey", 1, shuffled))
    loaded = load_zkey(tmp_path / "key")
    np.testing.assert_array_equal(loaded.b2, key.b2)
    np.testing.assert_array_equal(loaded.delta2, key.delta2)
    np.testing.assert_array_equal(loaded.coefficients, key.coefficients)
    for name in ("alpha1", "b2", "coefficients"):
        assert getattr(loaded, name).ctypes.data % 4 == 0
        assert not getattr(loaded, name).flags.writeable


def test_key_whose_signals_are_all_public(tmp_path):
    """Section 8 is empty then."""
    key = sample_key(CURVES["bn254"])
    key = replace(key, n_vars=3, a=key.a[:3], b1=key.b1[:3], b2=key.b2[:3], c=key.c[:0])
    write_zkey(tmp_path / "key", key)
    assert len(load_zkey(tmp_path / "key").c) == 0
    assert describe(tmp_path / "key")["infinities"]["c"] == 0.0


def sparse_key(path: Path, log_n: int) -> None:
    """A key of zeros with 2^log_n variables, as a file with holes: it takes no room on disk."""
    curve, n = CURVES["bn254"], 1 << log_n
    fields = (curve.fp, curve.fr)
    header = b"".join(f.bytes.to_bytes(4, "little") + f.modulus.to_bytes(f.bytes, "little") for f in fields)
    header += struct.pack("<III", n, 1, n) + bytes(3 * 64 + 3 * 128)
    lengths = {3: 128, 4: 4 + 44 * n, 5: 64 * n, 6: 64 * n, 7: 128 * n, 8: 64 * (n - 2), 9: 64 * n, 10: 68}
    with open(path, "wb") as file:
        file.write(struct.pack("<4sII", b"zkey", 1, 10))
        file.write(struct.pack("<IQI", 1, 4, 1))
        file.write(struct.pack("<IQ", 2, len(header)) + header)
        for kind, length in lengths.items():
            file.write(struct.pack("<IQ", kind, length))
            start = file.tell()
            if kind == 4:
                file.write(struct.pack("<I", n))
            file.truncate(start + length)
            file.seek(start + length)


def test_loading_takes_no_longer_for_a_key_of_gigabytes(tmp_path):
    times = {}
    for log_n in (4, 23):
        sparse_key(tmp_path / "key", log_n)
        before = resident_bytes()
        times[log_n] = min(_seconds(lambda: load_zkey(tmp_path / "key")) for _ in range(5))
        key = load_zkey(tmp_path / "key")
        assert resident_bytes() - before < 16 << 20
        assert len(key.h) == 1 << log_n
    assert (tmp_path / "key").stat().st_size > 3 << 30
    assert times[23] < max(20 * times[4], 0.02)


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def _seconds(action) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def test_writers_refuse_what_does_not_fit(tmp_path):
    curve = CURVES["bn254"]
    key = sample_key(curve)
    for bad in (
        replace(key, a=key.a[:-1]),
        replace(key, b2=key.a),
        replace(key, h=key.h.astype(np.uint64)),
        replace(key, n_public=6),
        replace(key, coefficients=key.coefficients["value"]),
        replace(key, curve=CURVES["bls12_381"]),
    ):
        with pytest.raises(CuzkError, match="cannot be written"):
            write_zkey(tmp_path / "key", bad)
    for values in (np.zeros((3, 12), np.uint32), np.zeros((3, 8), np.uint64), np.zeros((0, 8), np.uint32), []):
        with pytest.raises(CuzkError, match="cannot be written"):
            write_wtns(tmp_path / "wtns", curve, values)
    r1cs = sample_r1cs(curve)
    one_row = SparseMatrix.from_rows(curve.fr, [{0: 1}])
    for bad_r1cs, order in (
        (replace(r1cs, n_vars=5), (1, 2, 3)),
        (replace(r1cs, a=one_row), (1, 2, 3)),
        (r1cs, (1, 2)),
    ):
        with pytest.raises(CuzkError, match="cannot be written"):
            write_r1cs(tmp_path / "r1cs", bad_r1cs, order)
    for value in (-1, curve.fr.modulus):
        with pytest.raises(CuzkError, match="value 1"):
            write_public(tmp_path / "public", curve, [1, value])
    assert list(tmp_path.iterdir()) == []
