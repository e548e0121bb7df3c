"""The command line as a process of its own: terminals, signals, pipes."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

from helpers import EXAMPLE, ROOT, run_python

PROVE = ["-m", "cuzk", "prove", EXAMPLE / "chain.zkey", EXAMPLE / "chain.wtns"]


def test_prove_and_verify(tmp_path: Path) -> None:
    done = run_python(*PROVE, "-o", tmp_path)
    assert done.returncode == 0, done.stderr
    assert "\x1b" not in done.stdout + done.stderr
    assert done.stdout.count("\n") == 6
    paths = (EXAMPLE / "verification_key.json", tmp_path / "public.json", tmp_path / "proof.json")
    assert run_python("-m", "cuzk", "verify", *paths).returncode == 0
    (tmp_path / "public.json").write_text('["1"]')
    assert run_python("-m", "cuzk", "verify", *paths).returncode == 1


def test_bad_input_is_one_line_without_traceback(tmp_path: Path) -> None:
    done = run_python(*PROVE[:-1], tmp_path / "absent.wtns", "-o", tmp_path)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.splitlines()[-1].startswith("error: ")
    assert "Traceback" not in done.stderr


def test_terminal_gets_progress_bars(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm-256color", "COLUMNS": "100"}
    command = [sys.executable, *map(str, PROVE), "-o", str(tmp_path)]
    process = subprocess.Popen(command, stderr=theirs, stdout=subprocess.PIPE, env=environment)
    os.close(theirs)
    shown = b""
    try:
        while chunk := os.read(ours, 65536):
            shown += chunk
    except OSError:  # how Linux says that the other side of the terminal is closed
        pass
    os.close(ours)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 0, shown.decode()
    assert "quotient" in shown.decode()
    assert "100%" in shown.decode()
    assert "\x1b[" in shown.decode()
    assert b"\x1b" not in out


def test_interrupt_has_exit_code_130_and_no_traceback() -> None:
    # a job in the background of a shell inherits SIGINT as ignored, so the child asks for the usual handler
    code = """
import signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)
from cuzk.cli import main
from cuzk.cpu import jit
def warm(curves, on_unit):
    print("ready", flush=True)
    time.sleep(60)
jit.warm = warm
sys.exit(main(["warmup"]))
"""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGINT)
    try:
        _, err = process.communicate(timeout=30)
    finally:
        process.kill()
    assert process.returncode == 130
    assert err == "error: interrupted\n"


def test_fault_of_our_own_has_an_exit_code_of_its_own() -> None:
    code = """
import sys
import cuzk.cli
def broken(path):
    raise ZeroDivisionError("made up")
cuzk.describe = broken
sys.exit(cuzk.cli.main(["info", "x", "--json"]))
"""
    done = run_python("-c", code)
    assert done.returncode == 3
    assert '"error"' in done.stdout
    assert "Traceback" in done.stderr


def test_closed_pipe_is_no_fault() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "cuzk", "info", str(EXAMPLE / "chain.zkey")]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, env=environment, timeout=60, check=False)
    os.close(writer)
    assert done.returncode == 141
    assert done.stderr == b""
