"""Other people's verifiers, behind one signature: (vkey, public, proof) -> bool, from our JSON files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

Point = Any


def _read(path: Path) -> Any:
    return json.loads(path.read_text())


def _g1(point: list[str]) -> tuple[int, int]:
    return int(point[0]), int(point[1])


def _g2(point: list[list[str]]) -> tuple[tuple[int, int], tuple[int, int]]:
    return tuple((int(a), int(b)) for a, b in point[:2])  # type: ignore[return-value]


def zksnake_accepts(vkey_path: Path, public_path: Path, proof_path: Path) -> bool:
    """e(A, B) = e(alpha, beta) e(x, gamma) e(C, delta) by zksnake's arkworks, on either curve."""
    ecc = pytest.importorskip("zksnake.ecc")
    vkey, public, proof = map(_read, (vkey_path, public_path, proof_path))
    curve = ecc.EllipticCurve("BLS12_381" if vkey["curve"].startswith("bls") else "BN254")
    inputs = curve(*_g1(vkey["IC"][0]))
    for value, point in zip(public, vkey["IC"][1:], strict=True):
        inputs = inputs + curve(*_g1(point)) * int(value)
    left = [curve(*_g1(proof["pi_a"])), -curve(*_g1(vkey["vk_alpha_1"])), -inputs, -curve(*_g1(proof["pi_c"]))]
    right = [curve(*_g2(point)) for point in (proof["pi_b"], vkey["vk_beta_2"], vkey["vk_gamma_2"], vkey["vk_delta_2"])]
    # a product of pairings is one exactly when it equals that of a pair and its opposite
    one = curve.multi_pairing([curve.G1(), -curve.G1()], [curve.G2(), curve.G2()])
    return bool(curve.multi_pairing(left, right) == one)


def py_ecc_accepts(vkey_path: Path, public_path: Path, proof_path: Path) -> bool:
    """The same equation in pure Python: seconds a proof."""
    pytest.importorskip("py_ecc")
    vkey, public, proof = map(_read, (vkey_path, public_path, proof_path))
    if vkey["curve"].startswith("bls"):
        from py_ecc import optimized_bls12_381 as ecc
    else:
        from py_ecc import optimized_bn128 as ecc

    def g1(point: list[str]) -> Point:
        x, y = _g1(point)
        return ecc.FQ(x), ecc.FQ(y), ecc.FQ.one()

    def g2(point: list[list[str]]) -> Point:
        x, y = _g2(point)
        return ecc.FQ2(x), ecc.FQ2(y), ecc.FQ2.one()

    inputs = g1(vkey["IC"][0])
    for value, point in zip(public, vkey["IC"][1:], strict=True):
        inputs = ecc.add(inputs, ecc.multiply(g1(point), int(value)))
    left = ecc.pairing(g2(proof["pi_b"]), g1(proof["pi_a"]))
    right = ecc.pairing(g2(vkey["vk_beta_2"]), g1(vkey["vk_alpha_1"]))
    right *= ecc.pairing(g2(vkey["vk_gamma_2"]), inputs)
    right *= ecc.pairing(g2(vkey["vk_delta_2"]), g1(proof["pi_c"]))
    return bool(left == right)
