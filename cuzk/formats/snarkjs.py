"""The files of circom and snarkjs, all in one place: .zkey, .wtns, .r1cs and the JSON files."""

from __future__ import annotations

from cuzk.formats.checks import check_coefficients, check_pair, check_witness
from cuzk.formats.files import atomic_write
from cuzk.formats.info import describe, identify
from cuzk.formats.r1cs import load_r1cs, write_r1cs
from cuzk.formats.snarkjs_json import (
    load_proof,
    load_public,
    load_vkey,
    on_curve,
    proof_to_json,
    vkey_to_json,
    write_proof,
    write_public,
    write_vkey,
)
from cuzk.formats.wtns import load_wtns, write_wtns
from cuzk.formats.zkey import NO_CONTRIBUTIONS, load_zkey, read_section, write_zkey

__all__ = [
    "NO_CONTRIBUTIONS",
    "atomic_write",
    "check_coefficients",
    "check_pair",
    "check_witness",
    "describe",
    "identify",
    "load_proof",
    "load_public",
    "load_r1cs",
    "load_vkey",
    "load_wtns",
    "load_zkey",
    "on_curve",
    "proof_to_json",
    "read_section",
    "vkey_to_json",
    "write_proof",
    "write_public",
    "write_r1cs",
    "write_vkey",
    "write_wtns",
    "write_zkey",
]
