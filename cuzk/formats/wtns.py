"""Witnesses as circom's calculators and snarkjs write them (.wtns, version 2): mapped and written.

Section 1  size and value of the prime r, then u32 n.
        2  n values of that size, little-endian, plain (not Montgomery); the first is 1.

Source: snarkjs, wtns_utils.js.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cuzk.errors import CuzkError
from cuzk.field.host import Limbs, encode_canonical
from cuzk.field.params import Curve
from cuzk.formats.binfile import WTNS, BinFile, Reader, read_scalar_field, write_binfile
from cuzk.formats.files import PathLike
from cuzk.groth16.key import Witness


def load_wtns(path: PathLike) -> Witness:
    """Map a witness; `values` is a read-only view of the file, and nothing is read but the header.

    Raises CuzkError for a wrong magic, version, prime or length. Whether each value is below r is
    `check_witness`'s matter.
    """
    return read_wtns(BinFile(path, WTNS))


def read_wtns(file: BinFile) -> Witness:
    """`load_wtns` for a file that is open already."""
    reader = Reader(file, file.section(1))
    curve = read_scalar_field(reader)
    n = reader.uint(4, "the number of values")
    if n == 0:
        raise reader.error("the number of values is 0, expected at least the leading 1", 4)
    reader.finish()
    section = file.section(2, n * curve.fr.bytes, f"{n} values of {curve.fr.bytes} bytes")
    return Witness(curve, file.array(section, "<u4", (n, curve.fr.limbs)), file.path)


def write_wtns(path: PathLike, curve: Curve, values: Limbs | Sequence[int]) -> None:
    """Write a witness.

    values: plain limbs uint32[n, limbs of Fr], or ints, which are reduced modulo r; the leading 1 included.
    Raises CuzkError for an array of another shape, and for a path that cannot be written.
    """
    limbs = values if isinstance(values, np.ndarray) else encode_canonical(curve.fr, values)
    if limbs.dtype != np.uint32 or limbs.ndim != 2 or limbs.shape[1] != curve.fr.limbs or not len(limbs):
        raise CuzkError(
            f"{path}: cannot be written: values are {limbs.dtype}{list(limbs.shape)}, "
            f"expected uint32[n, {curve.fr.limbs}] with n > 0"
        )
    fr = curve.fr
    header = b"".join(
        [
            fr.bytes.to_bytes(4, "little"),
            fr.modulus.to_bytes(fr.bytes, "little"),
            len(limbs).to_bytes(4, "little"),
        ]
    )
    write_binfile(path, WTNS, [(1, [header]), (2, [limbs])])
