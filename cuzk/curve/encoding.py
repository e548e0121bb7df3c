"""Points as bytes: the ZCash encoding of BLS12-381 and the memory layout of snarkjs.

ZCash (Sapling specification, section 5.4.9.2, and the README of the pairing crate): big-endian x, or x | y
uncompressed; an Fp2 coordinate is c1 | c0. The three highest bits of the first byte are flags:

0x80  compressed: y is left out
0x40  infinity: all other bits are zero
0x20  compressed only: y is the larger of the two roots, that is y > -y, compared from the highest coefficient

snarkjs: x | y (Fp2 as c0 | c1) as little-endian Montgomery limbs: our own memory, so nothing is converted.
"""

from __future__ import annotations

import numpy as np

from cuzk.curve.host import Coordinate, Point, curve_equation, from_limbs, in_subgroup, on_curve, square_root, to_limbs
from cuzk.errors import CuzkError
from cuzk.field.host import Limbs
from cuzk.field.params import Group

COMPRESSED, INFINITY, SIGN = 0x80, 0x40, 0x20
FLAGS = COMPRESSED | INFINITY | SIGN


def encoded_size(group: Group, *, compressed: bool = True) -> int:
    """Bytes of a point: 48 (G1) or 96 (G2) compressed, twice that uncompressed."""
    _check_group(group)
    return group.degree * group.base.bytes * (1 if compressed else 2)


def decode_point(group: Group, data: bytes, *, subgroup_check: bool = True, what: str = "point") -> Limbs:
    """A point in ZCash encoding, compressed or not by its length, as uint32[*group.point_shape], Montgomery.

    CuzkError, beginning with `what`, for a wrong length, flags that are contradictory or not of this
    length, a coordinate >= p, infinity with other bits set, an x or a point that is not on the curve, and
    (unless subgroup_check is off: `cuzk.cpu.points` checks many points faster) one outside the subgroup.
    """
    point = _decode(group, bytes(data), what)
    if subgroup_check and not in_subgroup(group, point):
        raise CuzkError(f"{what}: the point is not in the subgroup of order r of {group}")
    return to_limbs(group, point)


def _decode(group: Group, data: bytes, what: str) -> Point:
    short = encoded_size(group)
    if len(data) not in (short, 2 * short):
        raise CuzkError(f"{what}: {len(data)} bytes, expected {short} or {2 * short} for a point of {group}")
    flags, compressed = data[0] & FLAGS, len(data) == short
    if bool(flags & COMPRESSED) != compressed:
        state = "set" if flags & COMPRESSED else "not set"
        raise CuzkError(f"{what}: the compression flag is {state} in an encoding of {len(data)} bytes")
    body = bytes([data[0] & ~FLAGS]) + data[1:]
    if flags & INFINITY:
        if flags & SIGN or any(body):
            raise CuzkError(f"{what}: infinity with other bits set")
        return None
    if flags & SIGN and not compressed:
        raise CuzkError(f"{what}: the sign flag is set in an uncompressed point")
    x = _read_coordinate(group, body[:short], f"{what}, x")
    if not compressed:
        point = x, _read_coordinate(group, body[short:], f"{what}, y")
        if not on_curve(group, point):
            raise CuzkError(f"{what}: the point is not on the curve {group}")
        return point
    y = square_root(group, curve_equation(group, x))
    if y is None:
        raise CuzkError(f"{what}: no point of {group} has this x")
    if _is_larger(group, y) != bool(flags & SIGN):
        y = tuple(-c % group.base.modulus for c in y)
    return x, y


def encode_point(group: Group, point: Limbs, compressed: bool = True) -> bytes:
    """The ZCash encoding of uint32[*group.point_shape], Montgomery; the point is not checked."""
    size = encoded_size(group, compressed=compressed)
    coordinates = from_limbs(group, point)
    if coordinates is None:
        return bytes([INFINITY | (COMPRESSED if compressed else 0)]) + bytes(size - 1)
    x, y = coordinates
    if not compressed:
        return _write_coordinate(group, x) + _write_coordinate(group, y)
    data = bytearray(_write_coordinate(group, x))
    data[0] |= COMPRESSED | (SIGN if _is_larger(group, y) else 0)
    return bytes(data)


def points_from_snarkjs(group: Group, data: bytes | memoryview, what: str = "points") -> Limbs:
    """A read-only view uint32[n, *group.point_shape] of points in snarkjs's layout; contents are not checked.

    CuzkError where the length is no multiple of a point. `cuzk.cpu.points.check_points` checks the contents.
    """
    view = memoryview(data).cast("B")
    if len(view) % group.point_bytes:
        raise CuzkError(f"{what}: {len(view)} bytes, expected a multiple of {group.point_bytes} ({group})")
    points = np.frombuffer(view, dtype="<u4").reshape(-1, *group.point_shape)
    points.flags.writeable = False
    return points


def points_to_snarkjs(points: Limbs) -> bytes:
    """The inverse of `points_from_snarkjs`."""
    return np.ascontiguousarray(points, dtype="<u4").tobytes()


def _check_group(group: Group) -> None:
    if 8 * group.base.bytes - group.base.bits < 3:
        raise CuzkError(f"the ZCash encoding has three flag bits and the coordinates of {group} leave no room for them")


def _read_coordinate(group: Group, data: bytes, what: str) -> Coordinate:
    size = group.base.bytes
    parts = [int.from_bytes(data[i : i + size], "big") for i in range(0, len(data), size)]
    for part in parts:
        if part >= group.base.modulus:
            raise CuzkError(f"{what}: the coordinate {part:#x} is not below the modulus of {group.base}")
    return tuple(parts[::-1])


def _write_coordinate(group: Group, x: Coordinate) -> bytes:
    return b"".join(c.to_bytes(group.base.bytes, "big") for c in reversed(x))


def _is_larger(group: Group, y: Coordinate) -> bool:
    """Whether y > -y, compared from the highest coefficient that is not zero."""
    leading = next((c for c in reversed(y) if c), 0)
    return leading > (group.base.modulus - 1) // 2
