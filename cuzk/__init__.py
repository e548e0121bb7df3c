"""Groth16 proofs from Python. The public API, re-exported; nothing else.

A name is imported when it is first used, so that `cuzk --help` need not wait for numpy. Nothing here
imports numba: compiled code comes from the cache on disk, and only a cache that lacks it brings the
compiler in.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cuzk.errors import BackendError as BackendError
    from cuzk.errors import CuzkError as CuzkError
    from cuzk.errors import ProofError as ProofError
    from cuzk.field.params import BLS12_381 as BLS12_381
    from cuzk.field.params import BN254 as BN254
    from cuzk.field.params import Curve as Curve
    from cuzk.field.params import Field as Field
    from cuzk.field.params import Group as Group
    from cuzk.formats import describe as describe
    from cuzk.formats import identify as identify
    from cuzk.formats import load_proof as load_proof
    from cuzk.formats import load_public as load_public
    from cuzk.formats import load_r1cs as load_r1cs
    from cuzk.formats import load_vkey as load_vkey
    from cuzk.formats import load_wtns as load_wtns
    from cuzk.formats import load_zkey as load_zkey
    from cuzk.formats import write_proof as write_proof
    from cuzk.formats import write_public as write_public
    from cuzk.formats import write_r1cs as write_r1cs
    from cuzk.formats import write_vkey as write_vkey
    from cuzk.formats import write_wtns as write_wtns
    from cuzk.gpu.array import DeviceArray as DeviceArray
    from cuzk.gpu.array import to_device as to_device
    from cuzk.gpu.bases import DeviceBases as DeviceBases
    from cuzk.gpu.multiexp import plan_msm as plan_msm
    from cuzk.groth16.key import Proof as Proof
    from cuzk.groth16.key import ProvingKey as ProvingKey
    from cuzk.groth16.key import VerifyingKey as VerifyingKey
    from cuzk.groth16.key import Witness as Witness
    from cuzk.groth16.prove import ProveResult as ProveResult
    from cuzk.groth16.prove import prove as prove
    from cuzk.groth16.r1cs import R1cs as R1cs
    from cuzk.groth16.verify import verify as verify
    from cuzk.msm import msm as msm
    from cuzk.ntt import ntt as ntt

__version__ = "0.1.0"

_NAMES = {
    "cuzk.errors": "BackendError CuzkError ProofError",
    "cuzk.field.params": "BLS12_381 BN254 Curve Field Group",
    "cuzk.formats": (
        "describe identify load_proof load_public load_r1cs load_vkey load_wtns load_zkey "
        "write_proof write_public write_r1cs write_vkey write_wtns"
    ),
    "cuzk.gpu.array": "DeviceArray to_device",
    "cuzk.gpu.bases": "DeviceBases",
    "cuzk.gpu.multiexp": "plan_msm",
    "cuzk.groth16.key": "Proof ProvingKey VerifyingKey Witness",
    "cuzk.groth16.prove": "ProveResult prove",
    "cuzk.groth16.r1cs": "R1cs",
    "cuzk.groth16.verify": "verify",
    "cuzk.msm": "msm",
    "cuzk.ntt": "ntt",
}
_HOME = {name: module for module, names in _NAMES.items() for name in names.split()}

__all__ = ["__version__", *_HOME]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'cuzk' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


class _Package(ModuleType):
    """`cuzk.msm` and `cuzk.ntt` are the functions, though modules of the same names are imported here too."""

    def __setattr__(self, name: str, value: Any) -> None:
        if not (name in _HOME and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
