"""The pool of threads that runs compiled jobs: they release the GIL, so threads are cores."""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from typing import TypeVar

from cuzk.cpu.jit import core_count

T = TypeVar("T")
_pool: ThreadPoolExecutor | None = None
_lock = threading.Lock()


def pool() -> ThreadPoolExecutor:
    """The process's pool, made on first use with one thread a core."""
    global _pool
    with _lock:
        if _pool is None:
            _pool = ThreadPoolExecutor(core_count(), thread_name_prefix="cuzk")
        return _pool


def _forget() -> None:
    """A forked child has none of its parent's threads: it makes a pool of its own."""
    global _pool, _lock
    _pool, _lock = None, threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def run(tasks: Iterable[Callable[[], T]]) -> list[T]:
    """Run tasks (which must not call `run` themselves) on all cores; their results in order.

    The first failure is raised once no task is running any more: nothing outlives the call, so
    tasks may work in memory that the caller owns.
    """
    futures: list[Future[T]] = [pool().submit(task) for task in tasks]
    try:
        wait(futures, return_when=FIRST_EXCEPTION)
    finally:
        for future in futures:
            future.cancel()
        wait(futures)
    return [future.result() for future in futures]


def split(n: int, parts: int) -> list[tuple[int, int]]:
    """(start, stop) of at most `parts` contiguous, nearly equal, non-empty ranges of n items."""
    parts = max(1, min(parts, n))
    bounds = [n * i // parts for i in range(parts + 1)]
    return [(a, b) for a, b in itertools.pairwise(bounds) if b > a]
