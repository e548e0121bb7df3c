"""The field and point formulas on a real card: every operation, against Python ints."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numba.core import types

from cuzk.curve import host
from cuzk.curve.point import add_mixed, affine_type, to_affine, to_xyzz
from cuzk.field.element import (
    double,
    element_type,
    from_montgomery,
    is_zero,
    register_cuda_models,
    sqr,
    to_montgomery,
)
from cuzk.field.host import encode, ints_to_limbs, limbs_to_ints, random_elements
from cuzk.field.lanes import fp2_lane_type
from cuzk.field.params import CURVES, FIELDS, GROUPS, Curve, Field, Group
from cuzk.field.prime import inv
from cuzk.field.vector import Vector
from lane_samples import encoded, fp2_pairs, judge_fp2, judge_points, point_pairs

cuda = pytest.importorskip("numba.cuda")
from cuzk.kernels.declare import affine_points  # noqa: E402
from lane_kernels import FP2_OPERATIONS, fp2_operations, point_sums  # noqa: E402

pytestmark = pytest.mark.gpu
THREADS = 128
OPERATIONS = 10


class _Views:
    """Lets a kernel argument of type Vector be given as a device array: its address is passed."""

    @staticmethod
    def prepare_args(kind: types.Type, value: Any, **kwargs: Any) -> tuple[types.Type, Any]:
        if isinstance(kind, Vector):
            return types.uint64, value.__cuda_array_interface__["data"][0]
        return kind, value


def launch(kernel: Callable[..., None], signature: tuple[types.Type, ...], n: int, *arrays: np.ndarray) -> None:
    """Run the kernel over n threads; the last array is copied back in place."""
    register_cuda_models()
    compiled = cuda.jit(types.void(*signature), extensions=[_Views()])(kernel)
    device = [cuda.to_device(np.ascontiguousarray(array)) for array in arrays]
    compiled[-(-n // THREADS), THREADS](*device, n)
    device[-1].copy_to_host(arrays[-1])


def all_operations(x: Any, y: Any, out: Any, n: int) -> None:
    # one thread: every operation on one pair
    i = cuda.grid(1)
    if i < n:
        a, b = x[i], y[i]
        base = OPERATIONS * i
        out[base] = a * b
        out[base + 1] = sqr(a)
        out[base + 2] = a + b
        out[base + 3] = a - b
        out[base + 4] = -a
        out[base + 5] = double(a)
        out[base + 6] = from_montgomery(a)
        out[base + 7] = to_montgomery(b)
        out[base + 8] = inv(a)
        out[base + 9] = a - a if is_zero(a - b) else a


@pytest.mark.parametrize("field", FIELDS.values(), ids=str)
def test_every_operation_equals_python_ints(field: Field) -> None:
    p = field.modulus
    edges = [0, 1, 2, p - 1, p - 2, (p - 1) // 2, (p + 1) // 2, field.r, field.r2, (1 << field.bits - 1) - 1]
    pairs = [(a, b) for a in edges for b in edges]
    x = np.concatenate([ints_to_limbs([a for a, _ in pairs], field.limbs), random_elements(field, 5000)])
    y = np.concatenate([ints_to_limbs([b for _, b in pairs], field.limbs), random_elements(field, 5000)])
    n = len(x)
    out = np.zeros((n, OPERATIONS, field.limbs), np.uint32)
    view = Vector(element_type(field))
    launch(all_operations, (view, view, view, types.int64), n, x, y, out)
    inverse_r = field.r_inverse
    for a, b, row in zip(limbs_to_ints(x), limbs_to_ints(y), out, strict=True):
        expected = [a * b * inverse_r, a * a * inverse_r, a + b, a - b, -a, 2 * a, a * inverse_r, b * field.r]
        inverse = pow(a, -1, p) * field.r2 if a else 0
        expected += [inverse, 0 if a == b else a]
        assert limbs_to_ints(row) == [v % p for v in expected]


def add_points(x: Any, y: Any, out: Any, n: int) -> None:
    # one thread: one complete mixed addition, made affine
    i = cuda.grid(1)
    if i < n:
        out[i] = to_affine(add_mixed(to_xyzz(x[i]), y[i]))


@pytest.mark.parametrize("group", GROUPS.values(), ids=str)
def test_point_addition_equals_the_textbook(group: Group) -> None:
    multiples = [host.multiply(group, k, group.generator) for k in range(-6, 7)]
    pairs = [(p, q) for p in multiples for q in multiples]
    x = np.stack([host.to_limbs(group, p) for p, _ in pairs])
    y = np.stack([host.to_limbs(group, q) for _, q in pairs])
    out = np.zeros_like(x)
    view = Vector(affine_type(group))
    launch(add_points, (view, view, view, types.int64), len(pairs), x, y, out)
    for (p, q), point in zip(pairs, out, strict=True):
        assert host.from_limbs(group, point) == host.add(group, p, q)


@pytest.mark.parametrize("curve", CURVES.values(), ids=str)
def test_every_operation_on_elements_that_two_threads_share(curve: Curve) -> None:
    field = curve.fp
    pairs = fp2_pairs(field, 5000)
    x, y = (encoded(field, [pair[k] for pair in pairs]) for k in range(2))
    out = np.zeros((len(pairs), FP2_OPERATIONS, 2, field.limbs), np.uint32)
    view = Vector(fp2_lane_type(field))
    launch(fp2_operations, (view, view, view, types.int64), 2 * len(pairs), x, y, out)
    judge_fp2(field, pairs, out)


@pytest.mark.parametrize("curve", CURVES.values(), ids=str)
def test_g2_additions_by_two_threads_equal_the_textbook(curve: Curve) -> None:
    # neighbouring pairs of threads take different branches: infinity, doubling, the rest
    group = curve.g2
    pairs = point_pairs(group, 6)
    x, y = (np.stack([host.to_limbs(group, pair[k]) for pair in pairs]) for k in range(2))
    out = np.zeros((len(pairs), 2, *group.point_shape), np.uint32)
    view = affine_points(group)
    launch(point_sums, (view, view, view, types.int64), 2 * len(pairs), x, y, out)
    judge_points(group, pairs, out)


def test_encoding_is_what_the_card_computes_with() -> None:
    field = FIELDS["Fr[bn254]"]
    x, out = encode(field, [3, 5]), np.zeros((2, OPERATIONS, field.limbs), np.uint32)
    view = Vector(element_type(field))
    launch(all_operations, (view, view, view, types.int64), 2, x, encode(field, [7, 9]), out)
    assert np.array_equal(out[:, 0], encode(field, [21, 45]))
