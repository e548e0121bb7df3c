"""A rank-1 constraint system: rows of (A w) * (B w) = C w over Fr, as three sparse matrices."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cuzk.field.host import Limbs, encode_canonical, limbs_to_ints
from cuzk.field.params import Curve, Field

Combination = Mapping[int, int]  # variable -> coefficient


@dataclass(frozen=True, eq=False)
class SparseMatrix:
    """Compressed rows: entries of row i are offsets[i] .. offsets[i + 1] - 1, in the file's order.

    offsets: int64[m + 1].   columns: uint32[nnz].   values: uint32[nnz, limbs of Fr], plain (not Montgomery).
    """

    offsets: NDArray[np.int64]
    columns: NDArray[np.uint32]
    values: Limbs

    @staticmethod
    def from_rows(field: Field, rows: Sequence[Combination]) -> SparseMatrix:
        """From dicts of variable -> coefficient; coefficients are reduced modulo r."""
        offsets = np.zeros(len(rows) + 1, dtype=np.int64)
        np.cumsum([len(row) for row in rows], out=offsets[1:])
        columns = np.array([column for row in rows for column in row], dtype=np.uint32)
        values = encode_canonical(field, [value for row in rows for value in row.values()])
        return SparseMatrix(offsets, columns, values)

    def row(self, i: int) -> list[tuple[int, int]]:
        """(variable, coefficient) of one row, as ints."""
        entries = slice(int(self.offsets[i]), int(self.offsets[i + 1]))
        return list(zip(self.columns[entries].tolist(), limbs_to_ints(self.values[entries]), strict=True))

    def __len__(self) -> int:
        return len(self.offsets) - 1


@dataclass(frozen=True, eq=False)
class R1cs:
    """Variables are ordered: the constant 1, public outputs, public inputs, private inputs, then the rest."""

    curve: Curve
    n_vars: int  # the leading 1 included
    n_public_outputs: int
    n_public_inputs: int
    n_private: int  # private inputs; intermediate variables are not counted
    n_labels: int  # signals before the compiler merged them
    a: SparseMatrix
    b: SparseMatrix
    c: SparseMatrix
    wire_labels: NDArray[np.uint64]  # uint64[n_vars]: the label of each variable, for a .sym file
    path: Path | None = None

    @property
    def n_constraints(self) -> int:
        return len(self.a)

    @property
    def n_public(self) -> int:
        return self.n_public_outputs + self.n_public_inputs

    @staticmethod
    def from_constraints(
        curve: Curve,
        n_vars: int,
        constraints: Iterable[tuple[Combination, Combination, Combination]],
        *,
        n_public_outputs: int = 0,
        n_public_inputs: int = 0,
        n_private: int = 0,
    ) -> R1cs:
        """From constraints as triples of dicts variable -> coefficient; every variable is its own label."""
        rows = list(constraints)
        a, b, c = (SparseMatrix.from_rows(curve.fr, [row[k] for row in rows]) for k in range(3))
        labels = np.arange(n_vars, dtype=np.uint64)
        return R1cs(curve, n_vars, n_public_outputs, n_public_inputs, n_private, n_vars, a, b, c, labels)
