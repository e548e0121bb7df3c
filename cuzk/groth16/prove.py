"""Groth16 proving with a snarkjs key, from a witness to a verified proof.

J. Groth, "On the size of pairing-based non-interactive arguments" (eprint 2016/260), section 3.2:

    A = alpha + sum_i w_i a_i + r delta            in G1
    B = beta  + sum_i w_i b_i + s delta            in G2, and B1 the same in G1
    C = sum_(i private) w_i c_i + sum_j q_j h_j + s A + r B1 - r s delta

q are the quotient's values on the odd coset (`quotient.py`), and r, s are fresh and uniform.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from cuzk.backend import resolve
from cuzk.cpu import jit, pool
from cuzk.cpu.points import linear_combination
from cuzk.errors import CuzkError, ProofError
from cuzk.field.host import Limbs, encode_canonical, limbs_to_ints
from cuzk.field.params import Group
from cuzk.groth16.key import Proof, ProvingKey, Witness
from cuzk.groth16.quotient import quotient_scalars
from cuzk.groth16.verify import verify
from cuzk.msm import prepare

OnPhase = Callable[[str, float], None]
"""Called with a phase's name and the share of it that is done, from 0.0 to 1.0, from any thread."""


@dataclass(frozen=True, eq=False)
class ProveResult:
    """A proof with its public inputs, and how long each phase took in seconds."""

    proof: Proof
    public: list[int]
    backend: str
    phases: dict[str, float] = field(default_factory=dict)


class _Clock:
    """Times the phases and reports them."""

    def __init__(self, on_phase: OnPhase | None) -> None:
        self.phases: dict[str, float] = {}
        self.report: OnPhase = on_phase or (lambda name, share: None)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        self.report(name, 0.0)
        start = time.perf_counter()
        yield
        self.phases[name] = time.perf_counter() - start
        self.report(name, 1.0)


def prove(
    key: ProvingKey | str | os.PathLike[str],
    witness: Witness | str | os.PathLike[str],
    *,
    backend: str = "auto",
    check: bool = True,
    unsafe_fixed_randomness: tuple[int, int] | None = None,
    on_phase: OnPhase | None = None,
) -> ProveResult:
    """Prove that the witness satisfies the key's circuit.

    key, witness: loaded (`load_zkey`, `load_wtns`), or paths of a .zkey and a .wtns.
    backend: "auto", "cpu" or "cuda"; asking for one that is not there raises BackendError.
    check: verify the proof before it is returned; ProofError when it does not verify, which means
        that the witness does not satisfy the circuit.
    unsafe_fixed_randomness: (r, s) instead of fresh ones, for debugging alone: two proofs with the same
        r, s tell an onlooker about the witness.
    on_phase: progress, see `OnPhase`.
    Raises CuzkError when key and witness do not belong together or hold values out of range.
    """
    # formats sits beside groth16; paths are taken here for the callers' convenience
    from cuzk.formats import check_coefficients, check_pair, check_witness, load_wtns, load_zkey

    backend = resolve(backend, ("cpu",))
    clock = _Clock(on_phase)
    with clock.phase("load"):
        if not isinstance(key, ProvingKey):
            key = load_zkey(key)
        if not isinstance(witness, Witness):
            witness = load_wtns(witness)
        check_pair(key, witness)
        check_witness(witness)
        check_coefficients(key)
        r, s = _randomness(key, unsafe_fixed_randomness)
    units = jit.proving_units(key.curve)
    if jit.missing(units):
        with clock.phase("compile"):
            jit.prepare(units)
    with clock.phase("quotient"):
        quotient = quotient_scalars(key, witness)
    with clock.phase("msm"):
        sums = _sums(key, witness, quotient, clock)
    with clock.phase("assemble"):
        proof = _assemble(key, sums, r, s)
    public = limbs_to_ints(witness.values[1 : key.n_public + 1])
    if check:
        with clock.phase("verify"):
            if not verify(key.verifying_key, public, proof):
                raise ProofError(
                    f"the proof does not verify: {witness.path or 'the witness'} does not satisfy the circuit of "
                    f"{key.path or 'the key'}, or one of the two files is damaged"
                )
    return ProveResult(proof, public, backend, clock.phases)


def _randomness(key: ProvingKey, fixed: tuple[int, int] | None) -> tuple[int, int]:
    order = key.curve.fr.modulus
    if fixed is None:
        return secrets.randbelow(order), secrets.randbelow(order)
    if len(fixed) != 2 or not all(0 <= x < order for x in fixed):
        raise CuzkError("unsafe_fixed_randomness: expected two integers (r, s) below the group's order")
    return fixed


@dataclass(frozen=True)
class Sums:
    """The five multi-scalar multiplications of a proof, bare: without alpha, beta or randomness."""

    a: Limbs
    b1: Limbs
    b2: Limbs
    c: Limbs
    h: Limbs


def _sums(key: ProvingKey, witness: Witness, quotient: Limbs, clock: _Clock) -> Sums:
    """All five at once: their tasks share the cores, the long ones of G2 first."""
    curve, values = key.curve, witness.values
    msms = {
        "b2": prepare(curve.g2, key.b2, values),
        "h": prepare(curve.g1, key.h, quotient),
        "a": prepare(curve.g1, key.a, values),
        "b1": prepare(curve.g1, key.b1, values),
        "c": prepare(curve.g1, key.c, values[key.n_public + 1 :]),
    }
    tasks = [task for msm in msms.values() for task in msm.tasks]
    done = iter(range(1, len(tasks) + 1))  # next() on it is atomic under the GIL

    def tracked(task: Callable[[], int]) -> None:
        task()
        clock.report("msm", next(done) / len(tasks))

    pool.run(partial(tracked, task) for task in tasks)
    return Sums(**{name: msm.finish() for name, msm in msms.items()})


def proof_sums(key: ProvingKey, witness: Witness) -> Sums:
    """The five sums of a proof, for study and for tests against a known trapdoor."""
    return _sums(key, witness, quotient_scalars(key, witness), _Clock(None))


def _assemble(key: ProvingKey, sums: Sums, r: int, s: int) -> Proof:
    g1, g2 = key.curve.g1, key.curve.g2
    a = _combine(g1, (1, key.alpha1), (1, sums.a), (r, key.delta1))
    b = _combine(g2, (1, key.beta2), (1, sums.b2), (s, key.delta2))
    b1 = _combine(g1, (1, key.beta1), (1, sums.b1), (s, key.delta1))
    c = _combine(g1, (1, sums.c), (1, sums.h), (s, a), (r, b1), (-r * s, key.delta1))
    return Proof(key.curve, a, b, c)


def _combine(group: Group, *terms: tuple[int, Limbs]) -> Limbs:
    points = np.stack([point for _, point in terms])
    return linear_combination(group, points, encode_canonical(group.scalar, [k for k, _ in terms]))


__all__ = ["OnPhase", "ProveResult", "Sums", "proof_sums", "prove"]
