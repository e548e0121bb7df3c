"""Points that stay on the device between multi-scalar multiplications."""

from __future__ import annotations

from typing import Any

import numpy as np

from cuzk.curve.host import check_points
from cuzk.errors import CuzkError
from cuzk.field.params import Group
from cuzk.gpu.array import DeviceArray, as_device, is_device, to_device


class DeviceBases:
    """n affine points of a group in device memory, for `cuzk.msm`.

        with DeviceBases(BLS12_381.g1, points) as bases:
            sums = [cuzk.msm(bases.group, bases, scalars) for scalars in many]

    points: uint32[n, 2, L] in G1 or uint32[n, 2, 2, L] in G2: affine, Montgomery; all zeros is infinity. An array of
            numpy's is copied; one in device memory (`__cuda_array_interface__`) is used where it lies and kept alive.
    gpu, stream: where they are to be; by default the first device, or where they lie, and its default stream.

    `bases[a:b]` are some of them, without a copy. `close()`, a `with` block or collection gives memory of our own back;
    parts must not be used after that. Raises CuzkError for arrays of another shape or type.
    """

    def __init__(self, group: Group, points: Any, gpu: Any = None, stream: Any = None) -> None:
        self.group = group
        if is_device(points):
            self._array = as_device(points, gpu, stream)
        else:
            points = np.asarray(points)
            check_points(group, points)
            self._array = to_device(points, gpu, stream)
        check_points(group, self._array)
        self._begin, self._end = 0, len(self._array)

    @property
    def gpu(self) -> Any:
        return self._array.gpu

    @property
    def stream(self) -> Any:
        return self._array.stream

    @property
    def array(self) -> DeviceArray:
        """The array that they, or the whole of which they are a part, lie in."""
        return self._array

    @property
    def address(self) -> Any:
        """Where the first one lies."""
        return self._array.address + self._begin * self.group.point_bytes

    @property
    def nbytes(self) -> int:
        return len(self) * self.group.point_bytes

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """The points, uint32[n, *group.point_shape], for other libraries."""
        whole = self._array.__cuda_array_interface__
        pointer, read_only = whole["data"]
        begin = pointer + self._begin * self.group.point_bytes if len(self) else 0
        return {**whole, "shape": (len(self), *self.group.point_shape), "data": (begin, read_only)}

    def __len__(self) -> int:
        return self._end - self._begin

    def __getitem__(self, part: slice) -> DeviceBases:
        if not isinstance(part, slice) or part.step not in (None, 1):
            raise CuzkError("bases are cut by slices without a step: bases[a:b]")
        begin, end, _ = part.indices(len(self))
        view = object.__new__(DeviceBases)
        view.group, view._array = self.group, self._array
        view._begin, view._end = self._begin + begin, self._begin + max(begin, end)
        return view

    def close(self) -> None:
        self._array.close()

    def __enter__(self) -> DeviceBases:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"DeviceBases({self.group}, {len(self)} points, {self.gpu.name})"
