"""A prover in Python kept running: `python worker.py cuzk|groth16py|zksnake|py_arkworks`.

One JSON object a line in, one out: {"op": NAME, ...} is answered with the operation's result, or with
{"error": ...}. Imports are each operation's own, as an interpreter may have one of the four only.
Times are of the prover's call alone: "seconds" of wall and "cpu" seconds of all its threads.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any


def timed(function: Callable[[], Any]) -> tuple[Any, dict[str, Any]]:
    wall, cpu = time.perf_counter(), time.process_time()
    result = function()
    return result, {"seconds": time.perf_counter() - wall, "cpu": time.process_time() - cpu}


class Cuzk:
    """This project, through its public API."""

    def load(self, key: str, witness: str) -> dict[str, Any]:
        import cuzk

        self.witness = witness
        self.key, times = timed(lambda: cuzk.load_zkey(key))
        return times

    def prove(self, check: bool) -> dict[str, Any]:
        import cuzk

        # the witness is read anew each time, as groth16py does it
        result, times = timed(lambda: cuzk.prove(self.key, cuzk.load_wtns(self.witness), check=check))
        return {**times, "phases": result.phases}

    def msm_load(self, group: str, points: str, scalars: str, **_: Any) -> dict[str, Any]:
        import numpy as np

        from cuzk.field.params import GROUPS

        self.group = GROUPS[group]
        self.points = np.fromfile(points, np.uint32).reshape(-1, *self.group.point_shape)
        self.scalars = np.fromfile(scalars, np.uint32).reshape(len(self.points), -1)
        return {}

    def msm(self) -> dict[str, Any]:
        import cuzk
        from cuzk.field.host import decode

        point, times = timed(lambda: cuzk.msm(self.group, self.points, self.scalars))
        return {**times, "point": [str(x) for x in decode(self.group.base, point)]}


class Groth16py:
    """groth16py (arkworks, one thread), BN254."""

    def load(self, key: str, witness: str) -> dict[str, Any]:
        from groth16py import Verifier, _groth16py  # type: ignore[import-not-found]

        self.library, self.witness = _groth16py, witness
        (self.key, vkey), times = timed(lambda: _groth16py.import_zkey(key))
        self.verifier, self.public = Verifier(vkey), read_public(witness, vkey.n_public)
        return times

    def prove(self, check: bool) -> dict[str, Any]:
        """check: whether the proof is verified after the clock has stopped; groth16py does not verify by itself."""
        proof, times = timed(lambda: self.library.prove_wtns(self.key, self.witness))
        if check and not self.verifier.verify(proof, self.public):
            raise ValueError("groth16py's own proof does not verify")
        return times

    def verify(self, key: str, witness: str, proof: str, public: str) -> dict[str, Any]:
        """Whether a proof in snarkjs's JSON is valid under a .zkey's verifying key."""
        self.load(key, witness)
        with open(proof) as proof_file, open(public) as public_file:
            return {"valid": self.verifier.verify_snarkjs(proof_file.read(), public_file.read())}


class Zksnake:
    """zksnake (arkworks behind Python objects): MSM, BN254 and BLS12-381."""

    def msm_load(self, group: str, points: str, scalars: str, modulus: str, size: int) -> dict[str, Any]:
        from zksnake.ecc import EllipticCurve  # type: ignore[import-not-found]

        self.curve = EllipticCurve({"bn254.g1": "BN254", "bls12_381.g1": "BLS12_381"}[group])
        self.points = [self.curve(x, y) for x, y in read_points(points, int(modulus), size)]
        self.scalars = read_integers(scalars, 32)
        return {}

    def msm(self) -> dict[str, Any]:
        point, times = timed(lambda: self.curve.multiexp(self.points, self.scalars))
        return {**times, "point": [str(point.x), str(point.y)]}


class PyArkworks:
    """py_arkworks_bls12381: MSM and pairing check."""

    def msm_load(self, group: str, points: str, scalars: str, modulus: str, size: int) -> dict[str, Any]:
        from py_arkworks_bls12381 import G1Point, Scalar

        if group != "bls12_381.g1":
            raise ValueError(f"py_arkworks_bls12381 has no {group}")
        self.multiexp = G1Point.multiexp_unchecked
        self.points = [
            G1Point.from_xy_bytes_unchecked_le(x.to_bytes(size, "little") + y.to_bytes(size, "little"))
            for x, y in read_points(points, int(modulus), size)
        ]
        self.scalars = [Scalar.from_le_bytes(s.to_bytes(32, "little")) for s in read_integers(scalars, 32)]
        return {}

    def msm(self) -> dict[str, Any]:
        point, times = timed(lambda: self.multiexp(self.points, self.scalars))
        data = point.to_xy_bytes_le()
        half = len(data) // 2
        return {**times, "point": [str(int.from_bytes(part, "little")) for part in (data[:half], data[half:])]}

    def verify(self, vkey: str, proof: str, public: str) -> dict[str, Any]:
        """e(A, B) = e(alpha, beta) e(IC_0 + sum x_i IC_i, gamma) e(C, delta), from snarkjs's JSON files."""
        from py_arkworks_bls12381 import GT, G1Point, G2Point, Scalar

        def g1(xyz: list[str]) -> G1Point:
            return G1Point.from_xy_bytes_le(b"".join(int(x).to_bytes(48, "little") for x in xyz[:2]))

        def g2(xyz: list[list[str]]) -> G2Point:
            return G2Point.from_xy_bytes_le(b"".join(int(c).to_bytes(48, "little") for x in xyz[:2] for c in x))

        k, p, inputs = (read_json(path) for path in (vkey, proof, public))
        ic = [g1(point) for point in k["IC"]]
        if len(inputs) != len(ic) - 1:
            return {"valid": False}
        x = ic[0]
        for value, point in zip(inputs, ic[1:], strict=True):
            x = x + point * Scalar.from_le_bytes(int(value).to_bytes(32, "little"))
        left = [-g1(p["pi_a"]), g1(k["vk_alpha_1"]), x, g1(p["pi_c"])]
        right = [g2(p["pi_b"]), g2(k["vk_beta_2"]), g2(k["vk_gamma_2"]), g2(k["vk_delta_2"])]
        return {"valid": GT.pairing_check(left, right)}


def read_json(path: str) -> Any:
    with open(path) as file:
        return json.load(file)


def read_integers(path: str, size: int) -> list[int]:
    with open(path, "rb") as file:
        data = file.read()
    return [int.from_bytes(data[i : i + size], "little") for i in range(0, len(data), size)]


def read_points(path: str, modulus: int, size: int) -> list[tuple[int, int]]:
    """Affine points out of Montgomery form."""
    factor = pow(1 << (8 * size), -1, modulus)
    values = [x * factor % modulus for x in read_integers(path, size)]
    return list(zip(values[::2], values[1::2], strict=True))


def read_public(witness: str, n_public: int) -> list[int]:
    """The public values of a .wtns: a header of 76 bytes for 32-byte fields, then the leading 1, then they."""
    with open(witness, "rb") as file:
        data = file.read(76 + 32 * (n_public + 1))[76 + 32 :]
    return [int.from_bytes(data[i : i + 32], "little") for i in range(0, len(data), 32)]


SYSTEMS: dict[str, type] = {"cuzk": Cuzk, "groth16py": Groth16py, "zksnake": Zksnake, "py_arkworks": PyArkworks}


def main() -> None:
    system = SYSTEMS[sys.argv[1]]()
    # answers keep the real stdout; whatever a library prints goes to stderr
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = getattr(system, request.pop("op"))(**request)
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
