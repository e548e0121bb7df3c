"""Groth16 proofs from Python. The public API, re-exported; nothing else."""

from __future__ import annotations

from cuzk.errors import BackendError, CuzkError, ProofError
from cuzk.field.params import BLS12_381, BN254

__version__ = "0.1.0"

__all__ = ["BLS12_381", "BN254", "BackendError", "CuzkError", "ProofError", "__version__"]
