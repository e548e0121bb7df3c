"""What several test modules share: the folder of real files, snarkjs, and child processes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
EXAMPLE = ROOT / "examples" / "mimc_chain"

CASES = ROOT.parent / "shared" / "cases"
needs_cases = pytest.mark.skipif(not CASES.is_dir(), reason=f"no folder of real keys at {CASES}")


def _find_snarkjs() -> list[str] | None:
    """The command that starts snarkjs: CUZK_SNARKJS (a script or a program), `make test`'s copy, or PATH."""
    node = shutil.which("node")
    places = [os.environ.get("CUZK_SNARKJS", ""), str(ROOT / ".node/node_modules/snarkjs/build/cli.cjs")]
    for place in filter(os.path.isfile, places):
        if not place.endswith((".cjs", ".js", ".mjs")):
            return [place]
        if node:
            return [node, place]
    found = shutil.which("snarkjs")
    return [found] if found and node else None


SNARKJS = _find_snarkjs()


def run_snarkjs(*arguments: object, timeout: float = 300) -> subprocess.CompletedProcess[str]:
    """Run `snarkjs ARGUMENTS`; the exit code is not checked. Only in tests marked `snarkjs`."""
    assert SNARKJS is not None, "a test that runs snarkjs carries @pytest.mark.snarkjs"
    return _run([*SNARKJS, *arguments], timeout)


def run_python(*arguments: object, timeout: float = 300, **env: str) -> subprocess.CompletedProcess[str]:
    """Run this interpreter in a process of its own, the checkout importable; the exit code is not checked."""
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    return _run([sys.executable, *arguments], timeout, {"PYTHONPATH": path, **env})


def _run(
    command: list[object] | list[str], timeout: float, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(part) for part in command],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=timeout,
        env={**os.environ, **(env or {})},
        check=False,
    )
