"""Arithmetic progressions of multiples of a group's generator, made on the device: bases whose MSM is known."""

from __future__ import annotations

from typing import Any

import numpy as np

from cuzk.curve import host
from cuzk.errors import CuzkError
from cuzk.field.params import Group
from cuzk.gpu.array import DeviceArray, empty

# as in kernels/multiples.py, whose import would bring numba's
THREADS = 128
FACTOR = 256  # points that share an inversion, which costs about two products a point then


def known_multiples(
    group: Group,
    first: int,
    step: int,
    n: int,
    gpu: Any = None,
    stream: Any = None,
    *,
    threads: int = THREADS,
    factor: int = FACTOR,
) -> DeviceArray:
    """uint32[n, *group.point_shape]: (first + i * step) * generator, affine, Montgomery; all zeros for infinity.

    The sum of scalars[i] * points[i] is then (first * sum scalars[i] + step * sum i * scalars[i]) * generator.

    threads: of a block; factor: by which the known ones grow in a launch. The host makes `factor` points for each of
    log(n) / log(factor) launches; nothing waits for the device.
    """
    lanes = group.degree
    if threads % lanes or not 1 <= threads <= THREADS:
        raise CuzkError(f"multiples: blocks of {threads} threads, expected a multiple of {lanes} up to {THREADS}")
    if factor < 2:
        raise CuzkError(f"multiples: a factor of {factor}, expected at least 2")
    points = empty((n, *group.point_shape), gpu, stream)
    if n == 0:
        return points
    stream = points.stream
    grow = stream.gpu.library("multiples", group.name).grow
    stream.htod(points.address, host.to_limbs(group, _multiple(group, first)))
    for known in _sizes(n, factor):
        steps = _steps(group, step * known, min(factor, -(-n // known)))
        with stream.gpu.upload(steps, stream) as table:
            grid = -(-known * lanes // threads)
            stream.launch(grow, grid, threads, points.address, table, known, len(steps), n)
    return points


def _sizes(n: int, factor: int) -> list[int]:
    """How many points are known before each launch: every one but the first grows by the whole factor."""
    sizes = []
    while n > 1:
        n = -(-n // factor)
        sizes.append(n)
    return sizes[::-1]


def _multiple(group: Group, k: int) -> host.Point:
    return host.multiply(group, k % group.scalar.modulus, group.generator)


def _steps(group: Group, step: int, count: int) -> np.ndarray:
    """uint32[count, *point_shape]: j * step * generator."""
    point, total, rows = _multiple(group, step), None, []
    for _ in range(count):
        rows.append(host.to_limbs(group, total))
        total = host.add(group, total, point)
    return np.stack(rows)
