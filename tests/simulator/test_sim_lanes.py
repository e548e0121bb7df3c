"""Elements of Fp2 that two threads share, in the simulator, against Python ints."""

from __future__ import annotations

import re

import numpy as np
import pytest
from numba.core import types

from cuzk.curve import host
from cuzk.field.lanes import fp2_lane_type, lanes
from cuzk.field.params import BLS12_381, BN254, Curve
from cuzk.field.vector import Vector
from cuzk.gpu.device import device
from cuzk.gpu.simulator import SimulatedFunction
from cuzk.kernels.declare import Kernel, affine_points
from lane_kernels import FP2_OPERATIONS, fp2_operations, point_sums
from lane_samples import encoded, fp2_pairs, judge_fp2, judge_points, point_pairs

CURVES = pytest.mark.parametrize("curve", [BN254, BLS12_381], ids=str)
THREADS = 6


def run(function, kinds, threads: int, x: np.ndarray, y: np.ndarray, out: np.ndarray) -> None:  # type: ignore[no-untyped-def]
    """Run a kernel over so many threads, in blocks of six; out is copied back."""
    gpu = device()
    kernel = SimulatedFunction(Kernel(function.__name__, function, lambda _: kinds, THREADS, 0), None)
    buffers = [gpu.upload(array) for array in (x, y, out)]
    gpu.default_stream.launch(kernel, -(-threads // THREADS), THREADS, *buffers, threads)
    gpu.default_stream.dtoh(out, buffers[-1])


@CURVES
def test_every_operation_on_shared_elements(curve: Curve) -> None:
    field = curve.fp
    pairs = fp2_pairs(field, 8)
    x, y = (encoded(field, [pair[k] for pair in pairs]) for k in range(2))
    out = np.zeros((len(pairs), FP2_OPERATIONS, 2, field.limbs), np.uint32)
    view = Vector(fp2_lane_type(field))
    run(fp2_operations, (view, view, view, types.int64), 2 * len(pairs), x, y, out)
    judge_fp2(field, pairs, out)


@CURVES
def test_point_additions_in_g2(curve: Curve) -> None:
    group = curve.g2
    pairs = point_pairs(group, 1)
    x, y = (np.stack([host.to_limbs(group, pair[k]) for pair in pairs]) for k in range(2))
    out = np.zeros((len(pairs), 2, *group.point_shape), np.uint32)
    view = affine_points(group)
    run(point_sums, (view, view, view, types.int64), 2 * len(pairs), x, y, out)
    judge_points(group, pairs, out)


def test_a_thread_whose_partner_goes_another_way_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    from cuzk.field import lanes as module

    monkeypatch.setattr(module, "WAIT", 0.2)
    field = BN254.fp
    x = encoded(field, [(1, 2)])
    view = Vector(fp2_lane_type(field))
    with pytest.raises(RuntimeError, match=re.escape("its partner went another way")):
        # one thread of the pair stays out
        run(fp2_operations, (view, view, view, types.int64), 1, x, x, np.zeros((FP2_OPERATIONS, 2, 8), np.uint32))


def test_only_g2_is_shared() -> None:
    from cuzk.gpu.simulator import view_of

    buffer = device().allocate(1 << 10)
    counts = {g: lanes(view_of(affine_points(g), buffer.address)) for c in (BN254, BLS12_381) for g in (c.g1, c.g2)}
    assert [count for group, count in counts.items() if group.degree == 1] == [1, 1]
    assert [count for group, count in counts.items() if group.degree == 2] == [2, 2]
