"""The container that .zkey, .wtns and .r1cs share: a magic, a version, and numbered sections.

    magic    4 bytes
    version  u32
    count    u32, the number of sections
    then count times:  kind u32, length u64, and `length` bytes of content

All numbers are little-endian. Sections may come in any order. Source: iden3/binfileutils, and section 4
of the r1cs binary format description of iden3/r1csfile.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuzk.errors import CuzkError
from cuzk.field.params import CURVES, Curve
from cuzk.formats.files import PathLike, atomic_write, map_file

HEADER_BYTES = 12
SECTION_HEADER_BYTES = 12
MAX_SECTIONS = 256  # a fflonk key has 17; more than this is a damaged count, and walking 2^32 of them takes hours


@dataclass(frozen=True)
class Layout:
    """What tells one file type from another, and what its sections are called in messages."""

    magic: bytes
    title: str
    version: int
    sections: dict[int, str]


ZKEY = Layout(
    b"zkey",
    "proving key",
    1,
    {
        1: "protocol",
        2: "header",
        3: "IC points",
        4: "coefficients",
        5: "A points",
        6: "B1 points",
        7: "B2 points",
        8: "C points",
        9: "H points",
        10: "contributions",
    },
)
WTNS = Layout(b"wtns", "witness", 2, {1: "header", 2: "values"})
R1CS = Layout(
    b"r1cs",
    "constraint system",
    1,
    {1: "header", 2: "constraints", 3: "wire map", 4: "custom gates", 5: "custom gate uses"},
)
LAYOUTS = {layout.magic: layout for layout in (ZKEY, WTNS, R1CS)}


@dataclass(frozen=True)
class Section:
    kind: int
    offset: int  # of the content, in the file
    length: int


class BinFile:
    """A mapped container: its sections' places, and checked access to their content.

    Raises CuzkError when magic or version are wrong, a section reaches past the end of the file, a kind
    occurs twice, or bytes follow the last section. A section that is not asked for is not looked at.
    """

    def __init__(self, path: PathLike, layout: Layout) -> None:
        self.path = Path(path)
        self.layout = layout
        self.data: NDArray[np.uint8] = map_file(path)
        self.sections = self._read_table()

    def _read_table(self) -> dict[int, Section]:
        size, layout = len(self.data), self.layout
        if size < HEADER_BYTES:
            raise CuzkError(f"{self.path}: has {size} bytes, a {layout.title} begins with {HEADER_BYTES}")
        magic, version, count = struct.unpack("<4sII", self.data[:HEADER_BYTES].tobytes())
        if magic != layout.magic:
            what = f" (a {LAYOUTS[magic].title})" if magic in LAYOUTS else ""
            raise CuzkError(
                f"{self.path}: magic at offset 0 is {magic!r}{what}, expected {layout.magic!r} (a {layout.title})"
            )
        if version != layout.version:
            raise CuzkError(f"{self.path}: version at offset 4 is {version}, expected {layout.version}")
        if count > MAX_SECTIONS:
            raise CuzkError(f"{self.path}: count at offset 8 says {count} sections, expected at most {MAX_SECTIONS}")

        sections: dict[int, Section] = {}
        offset = HEADER_BYTES
        for i in range(count):
            if offset + SECTION_HEADER_BYTES > size:
                raise CuzkError(
                    f"{self.path}: the file ends at {size}, inside the header of section number {i + 1} of {count} at "
                    f"offset {offset}: truncated?"
                )
            kind, length = struct.unpack("<IQ", self.data[offset : offset + SECTION_HEADER_BYTES].tobytes())
            section = Section(kind, offset + SECTION_HEADER_BYTES, length)
            offset = section.offset + length
            if offset > size:
                raise self.error(
                    section, f"says it has {length} bytes, the file has only {size - section.offset} more: truncated?"
                )
            if kind in sections:
                raise self.error(section, f"is a second one; the first is at offset {sections[kind].offset}")
            sections[kind] = section
        if offset != size:
            raise CuzkError(
                f"{self.path}: {size - offset} bytes follow the last section, which ends at offset {offset}"
            )
        return sections

    def name(self, kind: int) -> str:
        title = self.layout.sections.get(kind)
        return f"section {kind} ({title})" if title else f"section {kind}"

    def error(self, section: Section, message: str, at: int = 0) -> CuzkError:
        """The exception "PATH: section 2 (header) at offset 28: MESSAGE"; `at` counts from the section's content."""
        return CuzkError(f"{self.path}: {self.name(section.kind)} at offset {section.offset + at}: {message}")

    def section(self, kind: int, length: int | None = None, expected: str = "") -> Section:
        """The section of that kind; CuzkError when it is missing or has another length than expected."""
        if kind not in self.sections:
            raise CuzkError(f"{self.path}: {self.name(kind)} is missing: a {self.layout.title} needs it")
        section = self.sections[kind]
        if length is not None and section.length != length:
            why = f" ({expected})" if expected else ""
            raise self.error(section, f"has {section.length} bytes, expected {length}{why}")
        return section

    def array(self, section: Section, dtype: Any, shape: tuple[int, ...], at: int = 0) -> np.ndarray:
        """Content from byte `at` on as an array, read-only and in place; the caller has checked the length."""
        dtype = np.dtype(dtype)
        start = section.offset + at
        size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        raw = self.data[start : start + size]
        # compiled code wants 4-byte alignment; a file with an odd section in front (none is known) costs a copy
        if start % 4:
            raw = raw.copy()
            raw.setflags(write=False)
        return raw.view(dtype).reshape(shape)

    def points(self, kind: int, count: int, shape: tuple[int, ...], why: str) -> np.ndarray:
        """A section that is `count` affine points and nothing else: uint32[count, *shape], in place."""
        size = 4 * int(np.prod(shape))
        section = self.section(kind, count * size, f"{count} points of {size} bytes: {why}")
        return self.array(section, "<u4", (count, *shape))


class Reader:
    """Reads a header section from front to back; reaching past its end is a CuzkError naming the offset."""

    def __init__(self, file: BinFile, section: Section) -> None:
        self.file, self.section, self.position = file, section, 0

    def error(self, message: str, back: int = 0) -> CuzkError:
        return self.file.error(self.section, message, self.position - back)

    def _take(self, size: int, what: str) -> int:
        left = self.section.length - self.position
        if size > left:
            raise self.error(f"{what} needs {size} bytes, {left} are left")
        self.position += size
        return self.position - size

    def uint(self, size: int, what: str) -> int:
        at = self.section.offset + self._take(size, what)
        return int.from_bytes(self.file.data[at : at + size].tobytes(), "little")

    def limbs(self, shape: tuple[int, ...], what: str) -> np.ndarray:
        at = self._take(4 * int(np.prod(shape)), what)
        return self.file.array(self.section, "<u4", shape, at)

    def prime(self, what: str) -> int:
        """A size in bytes and a prime of that size."""
        size = self.uint(4, f"the size of {what}")
        return self.uint(size, what)

    def finish(self) -> None:
        if self.position != self.section.length:
            raise self.error(f"{self.section.length - self.position} bytes more than its fields need")


def read_scalar_field(reader: Reader) -> Curve:
    """Size and prime r of a .wtns or .r1cs header; the curve whose scalar field that is."""
    r = reader.prime("the prime r")
    size = reader.position - 4
    for curve in CURVES.values():
        if curve.fr.modulus == r:
            if curve.fr.bytes != size:
                raise reader.error(f"r of {curve} is given {size} bytes, expected {curve.fr.bytes}", size + 4)
            return curve
    raise reader.error(f"r = {show_prime(r)} is the scalar field of no curve known here ({', '.join(CURVES)})", size)


def show_prime(prime: int) -> str:
    """Hexadecimal, its middle left out where it is long: enough to recognise it by."""
    text = f"{prime:#x}"
    return text if len(text) <= 40 else f"{text[:20]}...{text[-16:]}"


def write_binfile(path: PathLike, layout: Layout, sections: Iterable[tuple[int, Sequence[Any]]]) -> None:
    """Write a container atomically.

    sections: (kind, parts) in the file's order; a part is bytes or an array, written as it lies in memory.
    """
    table = [(kind, [_raw(part) for part in parts]) for kind, parts in sections]
    with atomic_write(path) as file:
        file.write(struct.pack("<4sII", layout.magic, layout.version, len(table)))
        for kind, parts in table:
            file.write(struct.pack("<IQ", kind, sum(part.nbytes for part in parts)))
            for part in parts:
                file.write(part.data)


def _raw(part: Any) -> NDArray[np.uint8]:
    if isinstance(part, bytes | bytearray | memoryview):
        return np.frombuffer(part, dtype=np.uint8)
    return np.ascontiguousarray(part).reshape(-1).view(np.uint8)
