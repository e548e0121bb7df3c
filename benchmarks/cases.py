"""What is measured: real circuits from the folder of shared cases, the shipped example, and chains made here.

The chains' keys are too big to ship; they are made once into `benchmarks/.cache` (see trapdoor.py).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random

import numpy as np
from fixed_base import multiples
from trapdoor import chain, known_trapdoor_key

from cuzk.field.host import ints_to_limbs
from cuzk.field.params import BLS12_381, BN254, CURVES, Curve, Group
from cuzk.formats import write_vkey, write_wtns, write_zkey

HERE = Path(__file__).resolve().parent
CACHE = HERE / ".cache"
CASES = Path(os.environ.get("CUZK_CASES", HERE.parents[1] / "shared" / "cases"))
EXAMPLE = HERE.parent / "examples" / "mimc_chain"

# curve, case, whose witness. `_kt` keys are other keys of the same circuit.
SHARED = (
    (BN254, "chain8_kt", "chain8"),
    (BN254, "unirep_epochKeyLite", "unirep_epochKeyLite"),
    (BN254, "rs1000", "rs1000"),
    (BN254, "chain12_kt", "chain12"),
    (BN254, "semaphore20", "semaphore20"),
    (BLS12_381, "chain8", "chain8"),
    (BLS12_381, "chain8_kt", "chain8"),
    (BLS12_381, "chain12", "chain12"),
    (BLS12_381, "chain12_kt", "chain12"),
)
FOLDERS = {"bn254": "bn254", "bls12_381": "bls12381"}


@dataclass(frozen=True)
class Case:
    """One key with a witness. `name` is "bn254/semaphore20"."""

    name: str
    curve: Curve
    key: Path
    witness: Path
    vkey: Path
    make: Callable[[], None] | None = None  # what writes the three files, where they do not come with the project

    @property
    def there(self) -> bool:
        return all(path.is_file() for path in (self.key, self.witness, self.vkey))

    @property
    def input_bytes(self) -> int:
        """Size of key and witness: what a prover has to hold at least."""
        return self.key.stat().st_size + self.witness.stat().st_size


@dataclass(frozen=True)
class MsmCase:
    """n points with full-size scalars, whose sum is known: the points are known multiples of the generator."""

    name: str
    group: Group
    log_n: int

    @property
    def points(self) -> Path:
        """A file of n affine points in Montgomery form, as a .zkey holds them."""
        return CACHE / f"{self.group.name}_{self.log_n}.points"

    @property
    def scalars(self) -> Path:
        """A file of n plain 32-byte integers."""
        return CACHE / f"{self.group.name}_{self.log_n}.scalars"

    def make(self) -> np.ndarray:
        """Write the two files where they are not there yet; returns the expected sum, as `cuzk.msm` would."""
        order, n = self.group.scalar.modulus, 1 << self.log_n
        random = Random(f"cuzk benchmark, {self.name}")
        logarithms = [random.randrange(1, order) for _ in range(n)]
        scalars = [random.randrange(order) for _ in range(n)]
        if not self.points.is_file():
            CACHE.mkdir(exist_ok=True)
            _write(self.points, multiples(self.group, logarithms))
        _write(self.scalars, ints_to_limbs(scalars, self.group.scalar.limbs))
        return multiples(self.group, [sum(k * s for k, s in zip(logarithms, scalars, strict=True))])[0]


def _write(path: Path, array: np.ndarray) -> None:
    temporary = path.with_suffix(".new")
    array.tofile(temporary)
    temporary.replace(path)


def chain_case(curve: Curve, log_domain: int) -> Case:
    name = f"chain{log_domain}_full"
    key, witness, vkey = (CACHE / f"{curve.name}_{name}{end}" for end in (".zkey", ".wtns", ".vkey.json"))

    def make() -> None:
        CACHE.mkdir(exist_ok=True)
        values, constraints = chain(curve, log_domain)
        made = known_trapdoor_key(curve, len(values), 1, constraints, log_domain, name)
        write_wtns(witness, curve, values)
        write_vkey(vkey, made.verifying_key)
        write_zkey(key, made)

    return Case(f"{curve.name}/{name}", curve, key, witness, vkey, make)


CHAIN = chain_case(BN254, 15)  # the targets' 2^15 chain of full-size scalars
LARGE = chain_case(BN254, 17)  # for memory and loading only: 400 times the smallest key

MSMS = (
    MsmCase("msm/bls12_381.g1/2^14", BLS12_381.g1, 14),
    MsmCase("msm/bls12_381.g1/2^16", BLS12_381.g1, 16),
    MsmCase("msm/bn254.g1/2^16", BN254.g1, 16),
)


def example_case() -> Case:
    return Case(
        "bn254/example", BN254, EXAMPLE / "chain.zkey", EXAMPLE / "chain.wtns", EXAMPLE / "verification_key.json"
    )


def shared_cases() -> list[Case]:
    """Every key with a witness in the folder of shared cases, smallest first on each curve."""
    cases = []
    for curve, name, witness in SHARED:
        folder = CASES / FOLDERS[curve.name]
        files = folder / f"{name}.zkey", folder / f"{witness}.wtns", folder / f"{name}.vkey.json"
        cases.append(Case(f"{curve.name}/{name}", curve, *files))
    return cases


assert set(FOLDERS) == set(CURVES), "a curve without a folder of cases"
