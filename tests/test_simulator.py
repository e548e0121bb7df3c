"""Runs `tests/simulator`: the CUDA kernels in numba's simulator, which is chosen for a whole process, before numba.

Each file there has a process of its own, two at a time: threads of one simulation hold each other's interpreter lock.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from helpers import run_python

FOLDER = Path(__file__).with_name("simulator")
FILES = sorted(FOLDER.glob("test_*.py"), key=lambda path: (-path.stat().st_size, path.name))  # long ones first
LIMIT = 240  # seconds for a file; all of them take about as long


Run = subprocess.CompletedProcess[str]


def simulate(path: Path) -> Run:
    options = ["-q", "-m", "not slow", "-p", "no:cacheprovider", "--color=no"]
    return run_python("-m", "pytest", *options, path, timeout=LIMIT, NUMBA_ENABLE_CUDASIM="1")


@pytest.fixture(scope="module")
def runs() -> Iterator[dict[Path, Future[Run]]]:
    with ThreadPoolExecutor(2) as pool:
        yield {path: pool.submit(simulate, path) for path in FILES}
        pool.shutdown(cancel_futures=True)


def test_there_are_tests_to_run() -> None:
    assert FILES


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_in_the_simulator(path: Path, runs: dict[Path, Future[Run]]) -> None:
    try:
        done = runs[path].result()
    except subprocess.TimeoutExpired as error:
        output = error.stdout.decode(errors="replace") if isinstance(error.stdout, bytes) else error.stdout
        pytest.fail(f"{path.name} took more than {LIMIT} s:\n{output}")
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert re.search(r"\b[1-9]\d* passed\b", done.stdout), f"{path.name} tested nothing:\n{done.stdout}"
    assert "skipped" not in done.stdout, done.stdout
