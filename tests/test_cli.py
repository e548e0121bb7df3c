"""The command line, called in this process: exit codes, what is written, what is said."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import cuzk
from cuzk.cli import main
from helpers import EXAMPLE, run_snarkjs

KEY, WITNESS, VKEY = EXAMPLE / "chain.zkey", EXAMPLE / "chain.wtns", EXAMPLE / "verification_key.json"


class Said(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one JSON object that stdout has to be."""
        assert self.out.count("\n") == 1
        return json.loads(self.out)


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Any:
    def run(*arguments: object) -> Said:
        code = main([str(argument) for argument in arguments])
        return Said(code, *capsys.readouterr())

    return run


@pytest.fixture(scope="session")
def proved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a proof of the example."""
    folder = tmp_path_factory.mktemp("proved")
    assert main(["prove", str(KEY), str(WITNESS), "-o", str(folder)]) == 0
    return folder


def refused(said: Said, *words: str) -> None:
    """Exit code 2 and one line that says why, with no output and no traceback."""
    assert said.code == 2
    assert said.out == ""
    assert said.err.startswith("error: ")
    assert said.err.count("\n") == 1
    assert all(word in said.err for word in words), said.err


def test_version(cli: Any) -> None:
    assert cli("--version") == Said(0, f"cuzk {cuzk.__version__}\n", "")


def test_help_names_every_command(cli: Any) -> None:
    said = cli("--help")
    assert said.code == 0
    for command in ("prove", "verify", "info", "export-vkey", "warmup", "doctor"):
        assert f" {command} " in said.out
        assert cli(command, "--help").code == 0


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["prove"], "KEY"),
        (["prove", KEY], "WITNESS"),
        (["prove", KEY, WITNESS, "--backend", "gpu"], "gpu"),
        (["prove", KEY, WITNESS, "--frobnicate"], "--frobnicate"),
        (["provide"], "provide"),
        (["warmup", "--curve", "bn255"], "bn255"),
    ],
)
def test_wrong_usage_is_refused(cli: Any, arguments: list[object], word: str) -> None:
    refused(cli(*arguments), word)
    said = cli(*arguments, "--json")
    assert said.code == 2
    assert list(said.json) == ["error"]


def test_prove_writes_a_proof_that_verifies(cli: Any, proved: Path) -> None:
    assert cli("verify", VKEY, proved / "public.json", proved / "proof.json") == Said(0, "valid\n", "")
    assert sorted(path.name for path in proved.iterdir()) == ["proof.json", "public.json"]


@pytest.mark.snarkjs
def test_snarkjs_accepts_the_proof(proved: Path) -> None:
    done = run_snarkjs("groth16", "verify", VKEY, proved / "public.json", proved / "proof.json")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "OK" in done.stdout


def test_prove_prints_a_line_for_each_phase_and_fact(cli: Any, tmp_path: Path) -> None:
    said = cli("prove", KEY, WITNESS, "-o", tmp_path / "new" / "folder")
    assert said.code == 0
    phases = [line.split() for line in said.err.splitlines()]
    assert {"load", "quotient", "verify"} <= {line[0] for line in phases}
    assert all(float(line[-2]) >= 0 and line[-1] == "s" for line in phases)
    facts = dict(line.split(maxsplit=1) for line in said.out.splitlines())
    assert facts["proof"] == str(tmp_path / "new" / "folder" / "proof.json")
    assert (facts["curve"], facts["backend"], facts["verified"]) == ("bn254", "cpu", "yes")
    assert float(facts["seconds"]) > 0


def test_prove_json(cli: Any, tmp_path: Path) -> None:
    said = cli("prove", KEY, WITNESS, "-o", tmp_path, "--json")
    assert (said.code, said.err) == (0, "")
    result = said.json
    assert result["proof"] == str(tmp_path / "proof.json")
    assert result["public"] == str(tmp_path / "public.json")
    assert (result["curve"], result["backend"], result["verified"]) == ("bn254", "cpu", True)
    assert 0 < sum(result["phases"].values()) <= result["seconds"]


def test_no_check_leaves_the_verification_out(cli: Any, tmp_path: Path) -> None:
    result = cli("prove", KEY, WITNESS, "-o", tmp_path, "--json", "--no-check").json
    assert result["verified"] is False
    assert "verify" not in result["phases"]
    assert cli("verify", VKEY, tmp_path / "public.json", tmp_path / "proof.json").code == 0


def test_proofs_differ_unless_their_randomness_is_fixed(cli: Any, tmp_path: Path, proved: Path) -> None:
    def proof(*options: str) -> str:
        assert cli("prove", KEY, WITNESS, "-o", tmp_path, *options).code == 0
        return (tmp_path / "proof.json").read_text()

    assert proof() != (proved / "proof.json").read_text()
    assert proof("--unsafe-fixed-randomness", "3,0x10") == proof("--unsafe-fixed-randomness", "3,16")
    assert cli("verify", VKEY, tmp_path / "public.json", tmp_path / "proof.json").code == 0


@pytest.mark.parametrize("text", ["1", "1,2,3", "a,b", "", "1.5,2", "-1,2", f"1,{cuzk.BN254.fr.modulus}"])
def test_randomness_that_is_no_pair_of_field_elements_is_refused(cli: Any, tmp_path: Path, text: str) -> None:
    said = cli("prove", KEY, WITNESS, "-o", tmp_path, f"--unsafe-fixed-randomness={text}", "--json")
    assert said.code == 2
    assert "randomness" in said.json["error"]
    assert list(tmp_path.iterdir()) == []


def test_invalid_proof_has_exit_code_1(cli: Any, tmp_path: Path, proved: Path) -> None:
    public = tmp_path / "public.json"
    (value,) = json.loads((proved / "public.json").read_text())
    public.write_text(json.dumps([str(int(value) + 1)]))
    assert cli("verify", VKEY, public, proved / "proof.json") == Said(1, "INVALID\n", "")
    said = cli("verify", VKEY, public, proved / "proof.json", "--json")
    assert (said.code, said.json) == (1, {"valid": False})


def test_valid_proof_json(cli: Any, proved: Path) -> None:
    said = cli("verify", VKEY, proved / "public.json", proved / "proof.json", "--json")
    assert (said.code, said.json) == (0, {"valid": True})


def test_witness_that_does_not_satisfy_the_circuit_gives_no_proof(cli: Any, tmp_path: Path) -> None:
    witness = tmp_path / "wrong.wtns"
    data = bytearray(WITNESS.read_bytes())
    data[-32] ^= 1  # the last signal's lowest bit
    witness.write_bytes(data)
    out = tmp_path / "out"
    said = cli("prove", KEY, witness, "-o", out, "--json")
    assert said.code == 2
    assert str(witness) in said.json["error"]
    assert list(out.iterdir()) == []


def test_failure_leaves_an_earlier_proof_alone(cli: Any, tmp_path: Path, proved: Path) -> None:
    shutil.copytree(proved, tmp_path, dirs_exist_ok=True)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert cli("prove", KEY, tmp_path / "absent.wtns", "-o", tmp_path).code == 2
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize(
    "arguments",
    [
        ["prove", "{bad}", WITNESS, "-o", "{out}"],
        ["prove", KEY, "{bad}", "-o", "{out}"],
        ["verify", "{bad}", "{proved}/public.json", "{proved}/proof.json"],
        ["verify", VKEY, "{bad}", "{proved}/proof.json"],
        ["verify", VKEY, "{proved}/public.json", "{bad}"],
        ["info", "{bad}"],
        ["export-vkey", "{bad}", "-o", "{out}"],
    ],
    ids=lambda arguments: " ".join(Path(str(a)).name for a in arguments),
)
@pytest.mark.parametrize("bad", ["absent", "folder", "empty", "text", "half", "binary"])
def test_unusable_file_is_refused_by_name(
    cli: Any, tmp_path: Path, proved: Path, arguments: list[object], bad: str
) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "empty").touch()
    (tmp_path / "text").write_text("Nothing that anybody would prove.\n")
    (tmp_path / "half").write_bytes(KEY.read_bytes()[:1_000_000])
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00" * 100)
    places = {"bad": tmp_path / bad, "out": tmp_path / "out", "proved": proved}
    filled = [str(argument).format(**places) for argument in arguments]
    refused(cli(*filled), str(tmp_path / bad))
    said = cli(*filled, "--json")
    assert said.code == 2
    assert list(said.json) == ["error"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["prove", WITNESS, KEY], ["chain.wtns", "a witness", "a proving key"]),
        (["prove", VKEY, WITNESS], ["verification_key.json", "a proving key"]),
        (["verify", KEY, "{proved}/public.json", "{proved}/proof.json"], ["chain.zkey", "JSON"]),
        (["verify", "{proved}/proof.json", "{proved}/public.json", "{proved}/proof.json"], ["proof.json", "nPublic"]),
        (["verify", VKEY, "{proved}/proof.json", "{proved}/public.json"], ["proof.json", "a list of public signals"]),
        (["export-vkey", WITNESS], ["chain.wtns", "a witness", "a proving key"]),
    ],
    ids=lambda value: " ".join(Path(str(part)).name for part in value),
)
def test_file_of_another_kind_is_refused(
    cli: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, proved: Path, arguments: list[object], words: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    refused(cli(*(str(argument).format(proved=proved) for argument in arguments)), *words)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("place", ["file", "file/below"])
def test_output_folder_that_is_a_file_is_refused(cli: Any, tmp_path: Path, place: str) -> None:
    (tmp_path / "file").write_text("in the way")
    refused(cli("prove", KEY, WITNESS, "-o", tmp_path / place), str(tmp_path / place))
    assert (tmp_path / "file").read_text() == "in the way"


def test_output_file_that_is_a_folder_is_refused(cli: Any, tmp_path: Path) -> None:
    refused(cli("export-vkey", KEY, "-o", tmp_path), str(tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_cuda_is_refused_rather_than_replaced(cli: Any, tmp_path: Path) -> None:
    refused(cli("prove", KEY, WITNESS, "-o", tmp_path, "--backend", "cuda"), "backend cuda", "not in this version")


def test_export_vkey_writes_what_snarkjs_exported(cli: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli("export-vkey", KEY).code == 0
    ours, theirs = (json.loads(path.read_text()) for path in (tmp_path / "verification_key.json", VKEY))
    theirs.pop("vk_alphabeta_12")  # e(alpha, beta), which a verifier can compute
    ours.pop("vk_alphabeta_12", None)
    assert ours == theirs
    assert cli("export-vkey", KEY, "-o", "other.json", "--json").json == {"vkey": "other.json"}


def test_info_tells_every_kind_of_file(cli: Any, proved: Path) -> None:
    files = [KEY, WITNESS, EXAMPLE / "chain.r1cs", VKEY, proved / "proof.json", proved / "public.json"]
    facts = [cli("info", path, "--json").json for path in files]
    assert len({fact["kind"] for fact in facts}) == len(files)
    key, witness, r1cs, *_ = facts
    assert key["curve"] == witness["curve"] == r1cs["curve"] == "bn254"
    for path, fact in zip(files, facts, strict=True):
        said = cli("info", path)
        assert said.code == 0
        assert str(fact["kind"]) in said.out


def test_warmup_has_nothing_left_to_do_the_second_time(cli: Any) -> None:
    assert cli("warmup", "--curve", "bn254").code == 0
    result = cli("warmup", "--curve", "bn254", "--json").json
    assert result["curves"] == ["bn254"]
    assert result["compiled"] == {}
    assert Path(result["cache"]).is_dir()


def test_doctor(cli: Any, proved: Path) -> None:
    said = cli("doctor", "--json")
    assert said.code == 0
    report = said.json
    assert report["cuzk"] == cuzk.__version__
    assert report["cores"] >= 1
    assert report["compiled_bn254"] is True
    assert report["cache_bytes"] > 0
    assert report["missing"] == []
    text = cli("doctor").out
    assert all(hint in text for hint in report["hints"])
