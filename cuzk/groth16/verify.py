"""Verify a Groth16 proof with one product of four pairings.

J. Groth, "On the size of pairing-based non-interactive arguments" (eprint 2016/260), section 3.2:

    e(A, B) = e(alpha, beta) e(x, gamma) e(C, delta),   x = ic_0 + sum of x_i ic_i
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from weakref import WeakSet

import numpy as np

from cuzk.cpu import jit, points
from cuzk.errors import CuzkError
from cuzk.field.host import Limbs, ints_to_limbs, limbs_to_ints
from cuzk.field.params import Curve, Group
from cuzk.groth16.key import Proof, VerifyingKey

_checked: WeakSet[VerifyingKey] = WeakSet()


def verify(vkey: VerifyingKey, public: Sequence[int] | Limbs, proof: Proof) -> bool:
    """Whether the proof is valid for these public inputs.

    public: ints, or plain (not Montgomery) limbs uint32[n, L] of Fr.

    False: the equation does not hold, or a point of the proof is not on its curve, not reduced or not
    in the subgroup of order r.
    CuzkError: the question itself is malformed. The number of public inputs is not the key's, one of them is
    not in 0..r-1 (reducing it would let one proof count for several inputs), the proof is for another curve,
    or the key holds a point outside its group (checked once for each key).
    """
    curve = vkey.curve
    if proof.curve != curve:
        raise CuzkError(f"the proof is for {proof.curve} and the verifying key for {curve}")
    scalars = _public_limbs(curve, vkey.n_public, public)
    jit.prepare(jit.verifying_units(curve))
    _check_key(vkey)
    for group, point in ((curve.g1, proof.a), (curve.g2, proof.b), (curve.g1, proof.c)):
        if not _is_member(group, point):
            return False
    inputs = points.linear_combination(curve.g1, vkey.ic, scalars)
    minus = points.negate(curve.g1, np.stack([vkey.alpha1, inputs, proof.c]))
    ps = np.concatenate([proof.a[None], minus])
    qs = np.stack([proof.b, vkey.beta2, vkey.gamma2, vkey.delta2])
    return points.pairing_product(curve, ps, qs)[1]


def _public_limbs(curve: Curve, n_public: int, public: Sequence[int] | Limbs) -> Limbs:
    """uint32[1 + n_public, L]: one, then the public inputs, each checked."""
    if isinstance(public, np.ndarray):
        # a wider type would be cut to its low 32 bits, and so stand for another number
        if public.dtype != np.uint32 or public.ndim != 2 or public.shape[1] != curve.fr.limbs:
            raise CuzkError(
                f"public inputs are {public.dtype}{list(public.shape)}: expected ints, or uint32[n, {curve.fr.limbs}]"
            )
        values = limbs_to_ints(public)
    else:
        try:
            values = [index(x) for x in public]
        except TypeError as error:
            raise CuzkError(f"public inputs: expected a sequence of integers ({error})") from error
    if len(values) != n_public:
        raise CuzkError(f"{len(values)} public inputs: the verifying key takes {n_public}")
    for i, x in enumerate(values):
        if not 0 <= x < curve.fr.modulus:
            raise CuzkError(f"public input {i} is {x}: expected 0 <= value < r of {curve}, {curve.fr.modulus}")
    return ints_to_limbs([1, *values], curve.fr.limbs)


def _is_member(group: Group, point: Limbs) -> bool:
    return points.first_off_curve(group, point) is None and points.first_outside_subgroup(group, point) is None


def _check_key(vkey: VerifyingKey) -> None:
    if vkey in _checked:
        return
    for name in ("alpha1", "beta2", "gamma2", "delta2"):
        if not getattr(vkey, name).any():
            raise CuzkError(f"verifying key, {name}: the point is infinity, with which anything could be proved")
    g1, g2 = vkey.curve.g1, vkey.curve.g2
    points.check_points(g1, vkey.alpha1, "verifying key, alpha1")
    points.check_points(g1, vkey.ic, "verifying key, ic")
    for name in ("beta2", "gamma2", "delta2"):
        points.check_points(g2, getattr(vkey, name), f"verifying key, {name}")
    _checked.add(vkey)
