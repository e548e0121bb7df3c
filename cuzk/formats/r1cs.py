"""Constraint systems as circom writes them (.r1cs, version 1): read and written.

Section 1  size and value of the prime r, then u32 n_vars, public outputs, public inputs, private inputs,
           u64 labels, u32 constraints.
        2  for each constraint the combinations A, B and C: u32 count, then count times u32 variable and a
           value (plain, little-endian).
        3  u64 label of each variable.   4 and 5  custom gates, which Groth16 does not have.

Source: iden3/r1csfile, doc/r1cs_bin_format.md.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from cuzk.errors import CuzkError
from cuzk.field.host import first_not_below, limbs_to_ints
from cuzk.field.params import Curve
from cuzk.formats.binfile import R1CS, BinFile, Reader, Section, read_scalar_field, write_binfile
from cuzk.formats.files import PathLike
from cuzk.groth16.r1cs import R1cs, SparseMatrix

CIRCOM_ORDER = (2, 1, 3)  # circom writes the constraints first, while it makes them


def load_r1cs(path: PathLike) -> R1cs:
    """Read a constraint system, about 1.5 s for a million constraints of six entries.

    Raises CuzkError for a wrong magic, version, prime or length, for an entry whose variable does not
    exist or whose value is not below r, and for custom gates.
    """
    return read_r1cs(BinFile(path, R1CS))


def read_r1cs(file: BinFile) -> R1cs:
    """`load_r1cs` for a file that is open already."""
    _refuse_custom_gates(file)
    reader = Reader(file, file.section(1))
    curve = read_scalar_field(reader)
    n_vars = reader.uint(4, "the number of variables")
    outputs = reader.uint(4, "the number of public outputs")
    inputs = reader.uint(4, "the number of public inputs")
    private = reader.uint(4, "the number of private inputs")
    if 1 + outputs + inputs > n_vars:
        raise reader.error(
            f"1 + {outputs} public outputs + {inputs} public inputs are more than the {n_vars} variables", 16
        )
    labels = reader.uint(8, "the number of labels")
    constraints = reader.uint(4, "the number of constraints")
    reader.finish()
    section = file.section(3, 8 * n_vars, f"{n_vars} labels of 8 bytes")
    wire_labels = file.array(section, "<u8", (n_vars,))
    a, b, c = _read_matrices(file, curve, n_vars, constraints)
    return R1cs(curve, n_vars, outputs, inputs, private, labels, a, b, c, wire_labels, file.path)


def _refuse_custom_gates(file: BinFile) -> None:
    for kind in (4, 5):
        section = file.sections.get(kind)
        if section and Reader(file, section).uint(4, "the number of custom gates"):
            raise file.error(section, "the circuit uses custom gates: those are for plonk, groth16 does not have them")


def _read_matrices(file: BinFile, curve: Curve, n_vars: int, constraints: int) -> list[SparseMatrix]:
    """Walk the counts, one after the other, then gather columns and values of each matrix at once."""
    section = file.section(2)
    if section.length % 4 or section.length < 12 * constraints:
        raise file.error(
            section,
            f"has {section.length} bytes, expected a multiple of 4 and at least {12 * constraints} "
            f"for {constraints} constraints",
        )
    words = file.array(section, "<u4", (section.length // 4,))
    starts = _walk(file, section, words, 3 * constraints, 1 + curve.fr.limbs)
    return [_gather(file, section, curve, n_vars, words, starts[k::3]) for k in range(3)]


def _walk(file: BinFile, section: Section, words: np.ndarray, combinations: int, entry: int) -> NDArray[np.int64]:
    """int64[combinations]: the word at which each combination's count stands."""
    view = words.data
    starts = []
    position = 0
    try:
        for _ in range(combinations):
            count = view[position]
            starts.append(position)
            position += 1 + entry * count
    except IndexError:
        which, k = divmod(len(starts), 3)
        raise file.error(
            section,
            f"combination {'ABC'[k]} of constraint {which} would begin at byte {4 * position} "
            f"of the section's {section.length}: a count before it is wrong, or the number of constraints",
            4 * (starts[-1] if starts else 0),
        ) from None
    if position != len(words):
        raise file.error(
            section,
            f"the last combination ends at byte {4 * position} of the section's {section.length}",
            4 * (starts[-1] if starts else 0),
        )
    return np.array(starts, dtype=np.int64)


def _gather(
    file: BinFile, section: Section, curve: Curve, n_vars: int, words: np.ndarray, starts: NDArray[np.int64]
) -> SparseMatrix:
    entry = 1 + curve.fr.limbs
    counts = words[starts].astype(np.int64)
    offsets = np.zeros(len(counts) + 1, dtype=np.int64)
    np.cumsum(counts, out=offsets[1:])
    # entry e of row i begins at starts[i] + 1 + entry * (e - offsets[i])
    at = np.repeat(starts + 1 - entry * offsets[:-1], counts) + entry * np.arange(offsets[-1])
    if not len(at):
        return SparseMatrix(offsets, np.empty(0, np.uint32), np.empty((0, curve.fr.limbs), np.uint32))
    entries = sliding_window_view(words, entry)[at]
    columns, values = entries[:, 0].copy(), entries[:, 1:].copy()
    if columns.max() >= n_vars:
        bad = int(np.argmax(columns >= n_vars))
        raise file.error(section, f"variable {columns[bad]}, expected less than {n_vars}", 4 * int(at[bad]))
    large = first_not_below(values, curve.fr.modulus)
    if large is not None:
        (value,) = limbs_to_ints(values[large])
        raise file.error(section, f"value {value}, expected less than r of {curve}", 4 * int(at[large]) + 4)
    return SparseMatrix(offsets, columns, values)


def write_r1cs(path: PathLike, r1cs: R1cs, order: Sequence[int] = CIRCOM_ORDER) -> None:
    """Write a constraint system; snarkjs can make a key from it.

    order: the sections' order in the file, a permutation of 1, 2, 3; circom's is the default.
    Raises CuzkError for matrices of different heights, and for a path that cannot be written.
    """
    fr, matrices = r1cs.curve.fr, (r1cs.a, r1cs.b, r1cs.c)
    heights = [len(m) for m in matrices]
    if len(set(heights)) != 1 or len(r1cs.wire_labels) != r1cs.n_vars:
        raise CuzkError(
            f"{path}: cannot be written: A, B and C have {heights} rows, and {len(r1cs.wire_labels)} labels "
            f"are given for {r1cs.n_vars} variables"
        )
    if sorted(order) != [1, 2, 3]:
        raise CuzkError(f"{path}: cannot be written: order is {tuple(order)}, expected a permutation of 1, 2, 3")
    numbers = [(fr.bytes, 4), (fr.modulus, fr.bytes), (r1cs.n_vars, 4), (r1cs.n_public_outputs, 4)]
    numbers += [(r1cs.n_public_inputs, 4), (r1cs.n_private, 4), (r1cs.n_labels, 8), (r1cs.n_constraints, 4)]
    sections = {
        1: b"".join(number.to_bytes(size, "little") for number, size in numbers),
        2: _scatter(fr.limbs, matrices),
        3: r1cs.wire_labels.astype("<u8"),
    }
    write_binfile(path, R1CS, [(kind, [sections[kind]]) for kind in order])


def _scatter(limbs: int, matrices: Sequence[SparseMatrix]) -> np.ndarray:
    """Section 2: the inverse of `_walk` and `_gather`."""
    entry = 1 + limbs
    counts = np.stack([np.diff(m.offsets) for m in matrices], axis=1)  # [constraint, A B C]
    lengths = 1 + entry * counts.reshape(-1)
    ends = np.cumsum(lengths)
    starts = (ends - lengths).reshape(-1, 3)
    words = np.zeros(int(lengths.sum()), dtype="<u4")
    words[starts] = counts
    for k, matrix in enumerate(matrices):
        first = starts[:, k] + 1 - entry * matrix.offsets[:-1]
        at = np.repeat(first, counts[:, k]) + entry * np.arange(matrix.offsets[-1])
        words[at] = matrix.columns
        words[at[:, None] + np.arange(1, entry)] = matrix.values
    return words
