"""The programs that are compared: where they are, how they are started, how a proof is checked by them.

A peer that is not installed is None or absent here, and "not installed" in the tables; it is never a failure.

    cuzk         the checkout this file is in
    snarkjs      CUZK_SNARKJS (its build/cli.cjs, or a program), .node/node_modules, or PATH
    groth16py, zksnake, py_arkworks    this interpreter's packages, or those of the one that CUZK_BENCH_PYTHON names
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from cases import Case
from measure import HERE, ROOT, BenchError, JsonProcess, Launcher, Run

from cuzk.field.params import Curve

CUZK_ENV = {"PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))}
PYTHON_PEERS = {"groth16py": "groth16py", "zksnake": "zksnake", "py_arkworks": "py_arkworks_bls12381"}

GROTH16PY_PROVE = """
import sys
from groth16py import _groth16py
key, _ = _groth16py.import_zkey(sys.argv[1])
_groth16py.prove_wtns(key, sys.argv[2])
"""


# Aliases such as os.path and modules that replace themselves are reported as imports and cannot be repeated alone
READY = """
import contextlib, importlib, sys
for name in sys.argv[2:]:
    with contextlib.suppress(ImportError):
        importlib.import_module(name)
from cuzk.cpu import jit
from cuzk.field.params import CURVES
for unit in jit.proving_units(CURVES[sys.argv[1]]):
    jit.load(*unit)
"""


@dataclass(frozen=True)
class Snarkjs:
    command: tuple[str, ...]  # starts the command line
    library: Path | None  # build/main.cjs, for proving in a process that stays
    version: str


class Peers:
    """What is installed. `folder` takes the proofs that are made on the way."""

    def __init__(self, launcher: Launcher, folder: Path) -> None:
        self.launcher = launcher
        self.folder = folder
        self.python = os.environ.get("CUZK_BENCH_PYTHON", sys.executable)
        self.snarkjs = find_snarkjs()
        self.python_versions = find_python_peers(self.python)

    def has(self, system: str) -> bool:
        return self.snarkjs is not None if system == "snarkjs" else system in self.python_versions

    def versions(self) -> dict[str, str | None]:
        return {
            "snarkjs": self.snarkjs.version if self.snarkjs else None,
            "node": _version_of([shutil.which("node") or "node", "--version"]),
            **{name: self.python_versions.get(name) for name in PYTHON_PEERS},
        }

    # whole processes

    def cuzk_process(self, case: Case, env: dict[str, str] | None = None) -> Run:
        """`cuzk prove`, the proof verified before it is written, as by default."""
        command = [sys.executable, "-m", "cuzk", "prove", case.key, case.witness, "-o", self.folder / "cuzk"]
        return self.launcher.run(command, {**CUZK_ENV, **(env or {})})

    def cuzk_imports(self, case: Case) -> list[str]:
        """Names of the modules that such a process imports, in the order in which their imports end."""
        command = [sys.executable, "-X", "importtime", "-m", "cuzk", "prove", case.key, case.witness]
        done = subprocess.run(
            [str(part) for part in [*command, "-o", self.folder / "cuzk"]],
            env={**os.environ, **CUZK_ENV},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise BenchError(f"cuzk prove fails under -X importtime: {done.stderr[-2000:]}")
        # "import time:   self |  cumulative |   name"
        times = [line for line in done.stderr.splitlines() if line.startswith("import time:")]
        return [line.rsplit("|", 1)[1].strip() for line in times[1:]]

    def ready_process(self, curve: Curve, names: list[str]) -> Run:
        return self.launcher.run([sys.executable, "-c", READY, curve.name, *names], CUZK_ENV)

    def snarkjs_process(self, case: Case) -> Run:
        """`snarkjs groth16 prove`, which does not verify."""
        assert self.snarkjs is not None
        out = self.folder / "snarkjs"
        out.mkdir(exist_ok=True)
        files = case.key, case.witness, out / "proof.json", out / "public.json"
        return self.launcher.run([*self.snarkjs.command, "groth16", "prove", *files])

    def groth16py_process(self, case: Case) -> Run:
        return self.launcher.run([self.python, "-c", GROTH16PY_PROVE, case.key, case.witness])

    # processes that stay

    def worker(self, system: str) -> JsonProcess:
        if system == "snarkjs":
            assert self.snarkjs is not None
            return JsonProcess([shutil.which("node") or "node", HERE / "snarkjs_worker.cjs", self.snarkjs.library])
        if system == "cuzk":
            return JsonProcess([sys.executable, HERE / "worker.py", system], CUZK_ENV)
        return JsonProcess([self.python, HERE / "worker.py", system])

    # judges

    def check(self, case: Case, system: str) -> list[str]:
        """Names of the independent verifiers that accept the proof `system` has just written.

        Raises BenchError when one of them refuses it.
        """
        proof, public = (self.folder / system / name for name in ("proof.json", "public.json"))
        accepted = []
        if self.snarkjs is not None:
            # its exit code says whether the proof is valid
            self.launcher.run([*self.snarkjs.command, "groth16", "verify", case.vkey, public, proof])
            accepted.append("snarkjs")
        judge, files = (
            ("groth16py", {"key": case.key, "witness": case.witness})
            if case.curve.name == "bn254"
            else ("py_arkworks", {"vkey": case.vkey})
        )
        if self.has(judge):
            paths = {name: str(path) for name, path in {**files, "proof": proof, "public": public}.items()}
            with self.worker(judge) as worker:
                if not worker.ask(op="verify", **paths)["valid"]:
                    raise BenchError(f"{judge} refuses the proof that {system} made for {case.name}")
            accepted.append(judge)
        return accepted


def find_snarkjs() -> Snarkjs | None:
    node = shutil.which("node")
    script = ROOT / ".node/node_modules/snarkjs/build/cli.cjs"
    place = os.environ.get("CUZK_SNARKJS") or (str(script) if script.is_file() else shutil.which("snarkjs"))
    if not node or not place or not os.path.isfile(place):
        return None
    path = Path(place).resolve()  # an installed command is a link to build/cli.cjs
    command = (node, str(path)) if path.suffix in (".cjs", ".js", ".mjs") else (str(path),)
    library = path.with_name("main.cjs")
    package = path.parents[1] / "package.json"
    version = json.loads(package.read_text())["version"] if package.is_file() else "unknown"
    return Snarkjs(command, library if library.is_file() else None, version)


def find_python_peers(python: str) -> dict[str, str]:
    """name -> version of the packages that can be imported there."""
    script = """
import importlib, importlib.metadata, json, sys
found = {}
for name, package in json.loads(sys.argv[1]).items():
    try:
        importlib.import_module(package)
        found[name] = importlib.metadata.version(package)
    except ImportError:
        pass
print(json.dumps(found))
"""
    command = [python, "-c", script, json.dumps(PYTHON_PEERS)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BenchError(f"{python} does not run: {done.stderr[-2000:]}")
    found: dict[str, str] = json.loads(done.stdout)
    return found


def _version_of(command: list[str]) -> str | None:
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None
