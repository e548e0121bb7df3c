"""What a prover and a verifier hold: keys, witness, proof. Plain data over limb arrays.

Points are affine, Montgomery, uint32[..., 2, L] in G1 and uint32[..., 2, 2, L] in G2 (x then y, Fp2 as
c0 then c1); all zeros is infinity. L = 8 on BN254 and 12 on BLS12-381. Arrays may be read-only
maps of a file: nothing here copies or changes them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np

from cuzk.field.host import Limbs
from cuzk.field.params import Curve


def coefficient_dtype(curve: Curve) -> np.dtype:
    """One entry of the constraint matrices as a .zkey stores it (44 bytes, packed).

    matrix 0 is A and 1 is B; value is times R^2, so that its Montgomery product with a plain
    witness value is in Montgomery form.
    """
    return np.dtype([("matrix", "<u4"), ("row", "<u4"), ("column", "<u4"), ("value", "<u4", (curve.fr.limbs,))])


@dataclass(frozen=True, eq=False)
class VerifyingKey:
    curve: Curve
    alpha1: Limbs  # uint32[2, L]
    beta2: Limbs  # uint32[2, 2, L]
    gamma2: Limbs
    delta2: Limbs
    ic: Limbs  # uint32[n_public + 1, 2, L]

    @property
    def n_public(self) -> int:
        return len(self.ic) - 1


@dataclass(frozen=True, eq=False)
class ProvingKey:
    curve: Curve
    n_vars: int  # witness length, the leading 1 included
    n_public: int  # public inputs and outputs, the leading 1 not included
    domain_size: int  # n, a power of two
    convention: Literal["snarkjs"]  # which quotient and which root of unity
    alpha1: Limbs
    beta1: Limbs
    delta1: Limbs
    beta2: Limbs
    gamma2: Limbs
    delta2: Limbs
    ic: Limbs
    a: Limbs  # uint32[n_vars, 2, L]
    b1: Limbs
    b2: Limbs  # uint32[n_vars, 2, 2, L]
    c: Limbs  # uint32[n_vars - n_public - 1, 2, L]
    h: Limbs  # uint32[n, 2, L]
    coefficients: np.ndarray  # coefficient_dtype(curve)[n_coefficients]
    path: Path | None = None

    @cached_property
    def verifying_key(self) -> VerifyingKey:
        return VerifyingKey(self.curve, self.alpha1, self.beta2, self.gamma2, self.delta2, self.ic)


@dataclass(frozen=True, eq=False)
class Witness:
    curve: Curve
    values: Limbs  # uint32[n_vars, limbs of Fr], plain (not Montgomery); the first is 1
    path: Path | None = None


@dataclass(frozen=True, eq=False)
class Proof:
    curve: Curve
    a: Limbs  # uint32[2, L]
    b: Limbs  # uint32[2, 2, L]
    c: Limbs  # uint32[2, L]
