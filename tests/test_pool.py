"""The pool of threads: results in order, failures raised, nothing left running, children of a fork served."""

from __future__ import annotations

import os
import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuzk.cpu import pool
from helpers import run_python


@given(n=st.integers(0, 10**6), parts=st.integers(1, 100))
def test_ranges_cover_everything_once(n: int, parts: int) -> None:
    ranges = pool.split(n, parts)
    assert len(ranges) <= parts
    assert [i for a, b in ranges for i in (a, b)] == sorted(i for r in ranges for i in r)
    assert sum(b - a for a, b in ranges) == n
    assert all(b > a for a, b in ranges)


def test_results_come_in_order_whatever_finishes_first() -> None:
    def task(i: int) -> int:
        time.sleep(0.02 if i == 0 else 0)
        return i

    assert pool.run([lambda i=i: task(i) for i in range(20)]) == list(range(20))  # type: ignore[misc]
    assert pool.run([]) == []


def test_a_failure_is_raised_when_no_task_runs_any_more() -> None:
    running = threading.Semaphore(0)
    finished = []

    def slow() -> None:
        running.release()
        time.sleep(0.1)
        finished.append(True)

    def fail() -> None:
        running.acquire(timeout=5)
        raise ValueError("as planned")

    tasks = [slow, fail] if pool.core_count() > 1 else [slow, lambda: running.release(), fail]
    with pytest.raises(ValueError, match="as planned"):
        pool.run(tasks)
    assert finished == [True]


def test_an_interrupt_waits_for_running_tasks_and_leaves_the_next_call_whole() -> None:
    code = """
import _thread, signal, threading, time
signal.signal(signal.SIGINT, signal.default_int_handler)
from cuzk.cpu import pool
for delay in [0.0, 0.0001, 0.0005, 0.001, 0.005, 0.02] * 10:
    begun, ended = [], []
    def task():
        begun.append(1)
        time.sleep(0.01)
        ended.append(1)
    try:
        threading.Timer(delay, _thread.interrupt_main).start()
        pool.run([task] * 16)
        time.sleep(1)
    except KeyboardInterrupt:
        pass
    assert len(begun) == len(ended), (begun, ended)
    assert pool.run([lambda: 1] * 9) == [1] * 9
print("whole")
"""
    done = run_python("-c", code, timeout=120, CUZK_THREADS="3")
    assert done.stdout.strip() == "whole", done.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_can_use_the_pool() -> None:
    code = """
import os, warnings
warnings.simplefilter("ignore")
from cuzk.cpu import pool
assert pool.run([lambda: 1] * 8) == [1] * 8
child = os.fork()
if child == 0:
    os._exit(0 if pool.run([lambda: 2] * 8) == [2] * 8 else 1)
assert os.waitpid(child, 0)[1] == 0
print("served")
"""
    done = run_python("-c", code, timeout=30)
    assert done.stdout.strip() == "served", done.stderr
