"""Which tests can run here, and how hypothesis is to behave."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings

from cuzk.backend import cuda
from helpers import SNARKJS

# Compilation happens inside the first example, so times say nothing about the property.
settings.register_profile("cuzk", deadline=None, max_examples=50, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("cuzk")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    no_gpu = pytest.mark.skip(reason="no CUDA device")
    no_snarkjs = pytest.mark.skip(reason="no snarkjs: `make test` installs it where npm is; or set CUZK_SNARKJS")
    on_gpu = [item for item in items if item.get_closest_marker("gpu")]
    if on_gpu and not cuda().gpus:
        for item in on_gpu:
            item.add_marker(no_gpu)
    for item in items:
        if SNARKJS is None and item.get_closest_marker("snarkjs"):
            item.add_marker(no_snarkjs)
