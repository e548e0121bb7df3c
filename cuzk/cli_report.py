"""How the command line speaks: facts and JSON on stdout, errors and progress on stderr."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID


def print_json(value: Mapping[str, Any]) -> None:
    print(json.dumps(value), flush=True)


def print_facts(facts: Mapping[str, Any]) -> None:
    """One `name  value` line a fact; a list of records is a line each, below its name."""
    width = max(map(len, facts), default=0)
    for name, value in facts.items():
        title = name.replace("_", " ")
        if isinstance(value, list) and value and isinstance(value[0], dict):
            print(title)
            for record in value:
                print(f"  {_words(record)}")
        else:
            print(f"{title:<{width}}  {_words(value)}")
    sys.stdout.flush()


def _words(value: Any) -> str:
    if value is None or value == []:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, dict):
        return ", ".join(f"{name} {_words(item)}" for name, item in value.items())
    return ", ".join(map(_words, value)) if isinstance(value, list | tuple) else str(value)


def print_error(message: str, as_json: bool) -> None:
    """One line on stderr, whatever the message holds; as JSON, an object on stdout."""
    if as_json:
        print_json({"error": message})
    else:
        print(f"error: {' '.join(message.split())}", file=sys.stderr)


class Phases:
    """Shows a prover's phases: a bar each on a terminal, else a line as each ends; nothing when quiet.

    `update` is what `cuzk.prove` takes as on_phase.
    """

    def __init__(self, *, quiet: bool = False) -> None:
        self._quiet = quiet
        self._started: dict[str, float] = {}
        self._ended: set[str] = set()
        self._bars: Progress | None = None
        self._tasks: dict[str, TaskID] = {}

    def __enter__(self) -> Phases:
        if not self._quiet and sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

            columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
            self._bars = Progress(*columns, console=Console(stderr=True))
            self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bars is not None:
            self._bars.stop()

    def update(self, name: str, fraction: float) -> None:
        if self._quiet:
            return
        if self._bars is not None:
            if name not in self._tasks:
                self._tasks[name] = self._bars.add_task(name, total=1.0)
            self._bars.update(self._tasks[name], completed=fraction)
            return
        start = self._started.setdefault(name, time.perf_counter())
        if fraction >= 1 and name not in self._ended:
            self._ended.add(name)
            print(f"{name:<16} {time.perf_counter() - start:9.3f} s", file=sys.stderr, flush=True)
