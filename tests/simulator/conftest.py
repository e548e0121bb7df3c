"""The simulator's tests run where NUMBA_ENABLE_CUDASIM=1 was set before numba was imported; elsewhere nobody sees them.

`tests/test_simulator.py` runs them so, in a process of its own.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

import pytest

collect_ignore_glob = [] if os.environ.get("NUMBA_ENABLE_CUDASIM") == "1" else ["test_*.py"]


@pytest.fixture(autouse=True, scope="session")
def _quick_switches() -> Iterator[None]:
    """The simulator's block manager polls its threads: with the default of 5 ms each barrier costs as much."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)
