"""The command line. Commands parse, call the library and report; nothing is computed here.

Exit codes: 0 good, 1 the proof is invalid, 2 bad input or usage, 3 a fault of cuzk itself, 130 interrupted.
With --json, stdout carries exactly one JSON object, and errors are {"error": "..."} there.

Everything heavy is imported inside the command that needs it, so that --help answers at once.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import typer

import cuzk
from cuzk.cli_report import Phases, print_error, print_facts, print_json
from cuzk.errors import CuzkError

GOOD, INVALID, BAD_INPUT, FAULT, INTERRUPTED, PIPE_CLOSED = 0, 1, 2, 3, 130, 141

app = typer.Typer(
    name="cuzk",
    help="Groth16 proofs from snarkjs keys and witnesses, on BN254 and BLS12-381.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout, errors included.")]


class BackendName(str, Enum):
    auto = "auto"
    cpu = "cpu"
    cuda = "cuda"


class CurveName(str, Enum):
    bn254 = "bn254"
    bls12_381 = "bls12_381"


@app.callback(invoke_without_command=True)
def _options(
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.", is_eager=True)] = False,
) -> None:
    if version:
        print(f"cuzk {cuzk.__version__}")
        raise typer.Exit


@app.command()
def prove(
    key: Annotated[Path, typer.Argument(metavar="KEY", help="Proving key, .zkey (groth16).")],
    witness: Annotated[Path, typer.Argument(metavar="WITNESS", help="Witness of the key's circuit, .wtns.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="DIR", help="Folder for proof.json and public.json.")
    ] = Path("."),
    backend: Annotated[BackendName, typer.Option(help="What computes; auto takes the best there is.")] = (
        BackendName.auto
    ),
    check: Annotated[bool, typer.Option("--check/--no-check", help="Verify the proof before it is written.")] = True,
    json: Json = False,
    unsafe_fixed_randomness: Annotated[
        str | None,
        typer.Option(
            metavar="R,S", help="Debugging only: fixed blinding numbers. Such a proof gives the witness away."
        ),
    ] = None,
) -> None:
    """Prove a witness: writes proof.json and public.json."""
    start = time.perf_counter()
    randomness = None if unsafe_fixed_randomness is None else _parse_randomness(unsafe_fixed_randomness)
    _prepare_folder(output)
    with Phases(quiet=json) as phases:
        result = cuzk.prove(
            key,
            witness,
            backend=backend.value,
            check=check,
            unsafe_fixed_randomness=randomness,
            on_phase=phases.update,
        )
    proof_path, public_path = output / "proof.json", output / "public.json"
    # the proof comes last: where it is, its public inputs are too
    cuzk.write_public(public_path, result.proof.curve, result.public)
    cuzk.write_proof(proof_path, result.proof)
    facts: dict[str, Any] = {
        "proof": str(proof_path),
        "public": str(public_path),
        "curve": result.proof.curve.name,
        "backend": result.backend,
        "verified": check,
        "seconds": round(time.perf_counter() - start, 6),
    }
    if json:
        print_json({**facts, "phases": {name: round(seconds, 6) for name, seconds in result.phases.items()}})
    else:
        print_facts({**facts, "seconds": f"{facts['seconds']:.3f}"})


@app.command()
def verify(
    vkey: Annotated[Path, typer.Argument(metavar="VKEY", help="Verification key, JSON as snarkjs writes it.")],
    public: Annotated[Path, typer.Argument(metavar="PUBLIC", help="Public inputs, JSON.")],
    proof: Annotated[Path, typer.Argument(metavar="PROOF", help="Proof, JSON.")],
    json: Json = False,
) -> None:
    """Check a proof; the exit code is 1 when it is invalid."""
    key = cuzk.load_vkey(vkey)
    valid = cuzk.verify(key, cuzk.load_public(public, key.curve), cuzk.load_proof(proof, key.curve))
    if json:
        print_json({"valid": valid})
    else:
        print("valid" if valid else "INVALID")
    if not valid:
        raise typer.Exit(INVALID)


@app.command()
def info(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Any file that cuzk reads.")], json: Json = False
) -> None:
    """Say what a file is: key, witness, circuit, verification key, proof or public inputs."""
    facts = cuzk.describe(file)
    if json:
        print_json(facts)
    else:
        print_facts(facts)


@app.command("export-vkey")
def export_vkey(
    key: Annotated[Path, typer.Argument(metavar="KEY", help="Proving key, .zkey (groth16).")],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE")] = Path("verification_key.json"),
    json: Json = False,
) -> None:
    """Write the verification key that a proving key holds."""
    cuzk.write_vkey(output, cuzk.load_zkey(key).verifying_key)
    if json:
        print_json({"vkey": str(output)})
    else:
        print_facts({"vkey": output})


@app.command()
def warmup(
    curve: Annotated[list[CurveName] | None, typer.Option(help="May be repeated; all curves when absent.")] = None,
    cuda: Annotated[
        str | None,
        typer.Option(
            metavar="CAPABILITY",
            help="Compile the CUDA kernels too, for GPUs of this compute capability (9.0, say); no GPU is needed.",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Compile what proving and verifying need and keep it on disk, so that the first proof need not."""
    from cuzk.cpu import jit

    capability = None if cuda is None else _capability(cuda)
    start = time.perf_counter()
    curves = [name.value for name in curve or CurveName]
    units: dict[str, float] = {}

    def compiled(unit: str, seconds: float) -> None:
        units[unit] = round(seconds, 3)
        if not json:
            print(f"{unit:<24} {seconds:8.1f} s", file=sys.stderr, flush=True)

    jit.warm(curves, compiled)
    if capability is not None:
        from cuzk.field.params import CURVES
        from cuzk.gpu import modules

        modules.warm([CURVES[name] for name in curves], capability, compiled)
    facts: dict[str, Any] = {
        "curves": curves,
        "compiled": units,
        "cache": str(jit.cache_directory()),
        "seconds": round(time.perf_counter() - start, 3),
    }
    if json:
        print_json(facts)
    else:
        print_facts({**facts, "compiled": f"{len(units)} units, the rest was there"})


def _capability(text: str) -> tuple[int, int]:
    major, dot, minor = text.partition(".")
    if not dot or not (text.isascii() and major.isdigit() and minor.isdigit()):
        raise CuzkError(f"--cuda {text}: expected a compute capability such as 9.0")
    return int(major), int(minor)


@app.command()
def doctor(json: Json = False) -> None:
    """Say what there is on this machine, what is missing, and how to get it."""
    from cuzk.cli_doctor import examine

    report = examine()
    if json:
        print_json(report.facts | {"missing": report.missing, "hints": report.hints})
    else:
        print_facts(report.facts)
        for line in report.missing:
            print(f"missing: {line}")
        for line in report.hints:
            print(f"hint: {line}")
    if report.missing:
        raise typer.Exit(BAD_INPUT)


def _parse_randomness(text: str) -> tuple[int, int]:
    try:
        r, s = (int(part, 0) for part in text.split(","))
    except ValueError:
        raise CuzkError(
            f"--unsafe-fixed-randomness is {text!r}: expected two whole numbers R,S, decimal or 0x..."
        ) from None
    return r, s


def _prepare_folder(folder: Path) -> None:
    """Make the output folder, and fail before any work where a file cannot be written into it."""
    import tempfile

    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise CuzkError(f"{folder}: not a folder that can be written to ({error.strerror})") from error


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command, sys.argv's by default, and return its exit code."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    json = "--json" in arguments
    try:
        # not app(): that turns a closed pipe into exit code 1, which means an invalid proof here
        command = typer.main.get_command(app)
        with command.make_context("cuzk", list(arguments)) as context:
            command.invoke(context)
        return GOOD
    except typer.Exit as stop:
        return stop.exit_code
    except (KeyboardInterrupt, typer.Abort):
        print_error("interrupted", json)
        return INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # nobody reads; the flush at exit must not fail
        return PIPE_CLOSED
    except (CuzkError, OSError) as error:
        print_error(str(error), json)
        return BAD_INPUT
    except Exception as error:
        if hasattr(error, "format_message"):  # a usage error of typer's, whose base class has no public name
            print_error(error.format_message() or "no command, see cuzk --help", json)
            return BAD_INPUT
        import traceback

        traceback.print_exc()
        print_error(f"a fault in cuzk itself, {type(error).__name__}: {error}", json)
        return FAULT


if __name__ == "__main__":
    sys.exit(main())
