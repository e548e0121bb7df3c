"""How it is measured: processes started and timed, processes that stay, samples, and the machine."""

from __future__ import annotations

import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing_extensions import Self

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent


class BenchError(Exception):
    """A measured program failed; the message holds the end of its output."""


@dataclass
class Samples:
    """Measured values of one thing, in seconds or bytes."""

    values: list[float] = field(default_factory=list)

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    def as_json(self) -> dict[str, Any]:
        return {"median": self.median, "min": min(self.values), "max": max(self.values), "values": self.values}


@dataclass(frozen=True)
class Run:
    """One finished process."""

    wall: float  # seconds
    cpu: float  # seconds, of all cores
    peak_bytes: int
    output: str


class JsonProcess:
    """A process that answers one JSON object a line with one JSON object a line."""

    def __init__(self, command: Sequence[object], env: Mapping[str, str] | None = None) -> None:
        self.name = " ".join(Path(str(part)).name for part in command)
        self.process = subprocess.Popen(
            [str(part) for part in command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **(env or {})},
        )

    def ask(self, **request: Any) -> dict[str, Any]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        try:
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            raise BenchError(f"{self.name} ended before {request}") from None
        line = self.process.stdout.readline()
        if not line:
            raise BenchError(f"{self.name} ended on {request}")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise BenchError(f"{self.name}: {answer['error']}")
        return answer

    def close(self) -> None:
        """End the process; it has nothing to lose."""
        self.process.kill()
        self.process.communicate()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


class Launcher(JsonProcess):
    """Starts whole processes and measures them; see launch.py for why it is a process itself."""

    def __init__(self) -> None:
        super().__init__([sys.executable, "-I", "-S", HERE / "launch.py"])

    def run(self, command: Sequence[object], env: Mapping[str, str] | None = None) -> Run:
        """Run to the end; BenchError when the exit code is not 0."""
        answer = self.ask(command=[str(part) for part in command], env=dict(env or {}))
        if answer["code"]:
            shown = " ".join(str(part) for part in command)
            raise BenchError(f"exit code {answer['code']}: {shown}\n{answer['output']}")
        return Run(answer["wall"], answer["cpu"], answer["peak_bytes"], answer["output"])


def interleaved(measures: Mapping[str, Callable[[], Any]], runs: int, warm_up: int = 1) -> dict[str, list[Any]]:
    """Call every measure in turn, `warm_up` rounds whose results are dropped and then `runs` rounds.

    Turn by turn, since a machine's speed drifts: what is compared ran at the same time. Each round
    begins with another measure, so that none always follows the same one.
    """
    results: dict[str, list[Any]] = {name: [] for name in measures}
    names = list(measures)
    for i in range(warm_up + runs):
        turn = i % len(names) if names else 0
        for name in names[turn:] + names[:turn]:
            result = measures[name]()
            if i >= warm_up:
                results[name].append(result)
    return results


def machine() -> dict[str, Any]:
    """CPU, cores, memory and system; enough to tell which machine a result is from."""
    model = platform.processor() or platform.machine()
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    except OSError:
        pass
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return {
        "cpu": model,
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": round(pages / 2**30, 1),
        "os": platform.platform(),
        "load_average_before": os.getloadavg()[0],
        "python": platform.python_version(),
    }


def commit() -> dict[str, Any]:
    """The checkout's commit, and whether files differ from it."""

    def git(*arguments: str) -> str | None:
        try:
            done = subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, check=True)
        except (OSError, subprocess.CalledProcessError):
            return None
        return done.stdout.strip()

    status = git("status", "--porcelain", "--untracked-files=no")
    return {"commit": git("rev-parse", "HEAD"), "dirty": None if status is None else bool(status)}


def today() -> str:
    return time.strftime("%Y-%m-%d", time.gmtime())
