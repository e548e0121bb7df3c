"""Threads that run compiled jobs: they release the GIL, so threads are cores.

Each call has threads of its own, which end with it (a tenth of a millisecond). So there is no state that a fork or
an interrupt could leave broken for the next call.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable
from threading import Thread
from typing import TypeVar

from cuzk.cpu.jit import core_count

T = TypeVar("T")


def run(tasks: Iterable[Callable[[], T]]) -> list[T]:
    """Run tasks on all cores; their results in order.

    The first failure, or an interrupt of the caller, is raised once no task is running any more: nothing
    outlives the call, so tasks may work in memory that the caller owns.
    """
    waiting = list(tasks)
    results: dict[int, T] = {}
    failures: list[BaseException] = []
    stopped: list[bool] = []
    ended: list[bool] = []
    indices = iter(range(len(waiting)))  # next() and append() are atomic under the GIL

    def work() -> None:
        try:
            for i in indices:
                if stopped:
                    return
                results[i] = waiting[i]()
        except BaseException as error:
            stopped.append(True)
            failures.append(error)
        finally:
            ended.append(True)

    threads = [Thread(target=work, name="cuzk", daemon=True) for _ in range(min(core_count(), len(waiting)))]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    except BaseException:
        stopped.append(True)
        # an interrupted join() may call a running thread ended, so they are counted here
        while len(ended) < sum(thread.ident is not None for thread in threads):
            try:
                time.sleep(0.001)
            except KeyboardInterrupt:
                continue
        raise
    if failures:
        raise failures[0]
    return [results[i] for i in range(len(waiting))]


def split(n: int, parts: int) -> list[tuple[int, int]]:
    """(start, stop) of at most `parts` contiguous, nearly equal, non-empty ranges of n items."""
    parts = max(1, min(parts, n))
    bounds = [n * i // parts for i in range(parts + 1)]
    return [(a, b) for a, b in itertools.pairwise(bounds) if b > a]
