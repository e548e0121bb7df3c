#!/usr/bin/env python3
"""The example circuit: "I know a text whose MiMC hash is h", on BN254, in 3,972 constraints.

    python examples/mimc_chain/make.py --text "..."     writes chain.wtns for another text
    python examples/mimc_chain/make.py --ceremony       makes everything anew: circuit, witness, keys (needs snarkjs)

The hash
--------
A text of at most 12 * 31 bytes is padded with zeros and cut into blocks m_0 .. m_11 of 31 bytes, read
as big-endian numbers below r. The chain is the Miyaguchi-Preneel mode of the MiMC block cipher:

    h_0 = 0,    h_(i+1) = E(h_i, m_i) + h_i + m_i,    the public output is h_12
    E(k, m):    x = m;  110 times  x = (x + k + c_j)^5;  then x + k

MiMC is from M. Albrecht, L. Grassi, C. Rechberger, A. Roy and T. Tiessen, "MiMC: Efficient Encryption
and Cryptographic Hashing with Minimal Multiplicative Complexity" (2016). x^5 is a permutation
of Fr, as 5 does not divide r - 1, and 110 is the smallest number of rounds with 5^rounds > r. The
round constants are nobody's choice: c_j = SHA-512("cuzk example MiMC-5 round constant j") mod r,
j in decimal, the digest read as a big-endian number.

The circuit
-----------
Signals: 1, h_12 (public), m_0 .. m_11, then in order of use. A round is three constraints, with t = x + k + c_j:

    t * t = t2,    t2 * t2 = t4,    t4 * t = the next x

and one more for each link: (x + 2 h_i + m_i) * 1 = h_(i+1).
"""

from __future__ import annotations

import argparse
import hashlib
import os
import secrets
import shlex
import subprocess
import tempfile
from pathlib import Path

import cuzk

FOLDER = Path(__file__).resolve().parent
TEXT = "Nothing in this sentence is in the proof, except that somebody knew it."

R = cuzk.BN254.fr.modulus
LINKS = 12
ROUNDS = 110
BLOCK = 31  # bytes: the most that is always below r
LOG_DOMAIN = 12  # 3,972 constraints and 2 public rows

CONSTANTS = [
    int.from_bytes(hashlib.sha512(f"cuzk example MiMC-5 round constant {j}".encode()).digest(), "big") % R
    for j in range(ROUNDS)
]

Combination = dict[int, int]  # signal -> coefficient


class Circuit:
    """Constraints and signal values, built side by side."""

    def __init__(self, values: list[int]) -> None:
        self.values = values
        self.constraints: list[tuple[Combination, Combination, Combination]] = []

    def value(self, combination: Combination) -> int:
        return sum(c * self.values[s] for s, c in combination.items()) % R

    def multiply(self, a: Combination, b: Combination, to: int | None = None) -> Combination:
        """Constrain a * b = a signal, a new one unless `to` names it; return it as a combination."""
        product = self.value(a) * self.value(b) % R
        if to is None:
            to = len(self.values)
            self.values.append(product)
        else:
            self.values[to] = product
        self.constraints.append((dict(sorted(a.items())), dict(sorted(b.items())), {to: 1}))
        return {to: 1}


def add(*terms: Combination) -> Combination:
    total: Combination = {}
    for term in terms:
        for signal, coefficient in term.items():
            total[signal] = (total.get(signal, 0) + coefficient) % R
    return total


def blocks(text: str) -> list[int]:
    data = text.encode()
    if len(data) > LINKS * BLOCK:
        raise SystemExit(f"the text has {len(data)} bytes: the circuit takes at most {LINKS * BLOCK}")
    data = data.ljust(LINKS * BLOCK, b"\0")
    return [int.from_bytes(data[i : i + BLOCK], "big") for i in range(0, len(data), BLOCK)]


def hash_chain(messages: list[int]) -> int:
    """h_12 of the blocks, computed plainly: what the circuit's output has to be."""
    h = 0
    for m in messages:
        x = m
        for c in CONSTANTS:
            x = pow(x + h + c, 5, R)
        h = (x + h + h + m) % R
    return h


def build(messages: list[int]) -> Circuit:
    one, output = 0, 1
    circuit = Circuit([1, 0, *messages])
    h: Combination = {}
    for i in range(LINKS):
        m = {2 + i: 1}
        x = m
        for c in CONSTANTS:
            t = add(x, h, {one: c})
            t2 = circuit.multiply(t, t)
            t4 = circuit.multiply(t2, t2)
            x = circuit.multiply(t4, t)
        h = circuit.multiply(add(x, h, h, m), {one: 1}, to=output if i == LINKS - 1 else None)
    return circuit


def write_files(folder: Path, circuit: Circuit, *, circuit_too: bool = False) -> None:
    """Write chain.wtns, and chain.r1cs if asked to, into a folder."""
    cuzk.write_wtns(folder / "chain.wtns", cuzk.BN254, circuit.values)
    if circuit_too:
        r1cs = cuzk.R1cs.from_constraints(
            cuzk.BN254, len(circuit.values), circuit.constraints, n_public_outputs=1, n_private=LINKS
        )
        cuzk.write_r1cs(folder / "chain.r1cs", r1cs)


def snarkjs(*arguments: object) -> None:
    command = [*shlex.split(os.environ.get("SNARKJS", "snarkjs")), *map(str, arguments)]
    shown = (a for a in map(str, arguments) if not a.startswith("-e="))  # the entropy is nobody's business
    print("+ snarkjs", *shown, flush=True)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def ceremony() -> None:
    """A key for chain.r1cs from snarkjs's own two-phase ceremony, for this example only.

    One party took part, on one machine, so whoever ran it could have kept the trapdoor. A key that
    protects something needs a public ceremony.
    """
    with tempfile.TemporaryDirectory() as folder:
        tau0, tau1, tau2 = (Path(folder) / f"tau{i}.ptau" for i in range(3))
        key0 = Path(folder) / "key0.zkey"
        # one power more than the circuit needs, as snarkjs's key is short of a power of tau otherwise
        snarkjs("powersoftau", "new", "bn128", LOG_DOMAIN + 1, tau0)
        snarkjs("powersoftau", "contribute", tau0, tau1, "--name=example", f"-e={secrets.token_hex(64)}")
        snarkjs("powersoftau", "prepare", "phase2", tau1, tau2)
        snarkjs("groth16", "setup", FOLDER / "chain.r1cs", tau2, key0)
        snarkjs("zkey", "contribute", key0, FOLDER / "chain.zkey", "--name=example", f"-e={secrets.token_hex(64)}")
    snarkjs("zkey", "export", "verificationkey", FOLDER / "chain.zkey", FOLDER / "verification_key.json")


def main() -> None:
    parser = argparse.ArgumentParser(description="Make the MiMC chain example.")
    parser.add_argument("--text", default=TEXT, help=f"the hashed text, at most {LINKS * BLOCK} bytes")
    parser.add_argument(
        "--ceremony", action="store_true", help="also make circuit and keys; SNARKJS may hold the command to use"
    )
    options = parser.parse_args()

    messages = blocks(options.text)
    circuit = build(messages)
    a_b_c_hold = all(circuit.value(a) * circuit.value(b) % R == circuit.value(c) for a, b, c in circuit.constraints)
    if not a_b_c_hold or circuit.values[1] != hash_chain(messages):
        raise SystemExit("the circuit does not compute the hash: a mistake in this script")

    write_files(FOLDER, circuit, circuit_too=options.ceremony)
    if options.ceremony:
        ceremony()
    print(f"{len(circuit.constraints)} constraints, {len(circuit.values)} signals, hash {circuit.values[1]}")


if __name__ == "__main__":
    main()
