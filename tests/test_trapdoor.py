"""Keys whose trapdoor is known: each sum of a proof is one scalar multiplication that the trapdoor predicts."""

from __future__ import annotations

import json
from functools import cache

import numpy as np
import pytest

import cuzk
from cuzk.curve import host
from cuzk.field.host import limbs_to_ints
from cuzk.field.params import Group
from cuzk.groth16.prove import Sums, proof_sums
from helpers import CASES, needs_cases

pytestmark = needs_cases
CASE_NAMES = ["bn254/chain8", "bn254/chain12", "bls12381/chain8", "bls12381/chain12"]


def lagrange_at(r: int, root: int, n: int, tau: int) -> list[int]:
    """L_j(tau) = (tau^n - 1)/n * w^j / (tau - w^j) for j < n."""
    scale = (pow(tau, n, r) - 1) * pow(n, -1, r) % r
    values, power = [], 1
    for _ in range(n):
        values.append(scale * power % r * pow(tau - power, -1, r) % r)
        power = power * root % r
    return values


@cache
def prediction(name: str) -> tuple[dict[str, int], Sums, cuzk.ProvingKey]:
    """(the logarithm of each sum, the sums themselves, the key)."""
    folder, circuit = (CASES / name).parent, (CASES / name).name
    key = cuzk.load_zkey(folder / f"{circuit}_kt.zkey")
    witness = cuzk.load_wtns(folder / f"{circuit}.wtns")
    r1cs = cuzk.load_r1cs(folder / f"{circuit}.r1cs")
    trapdoor = {k: int(v) for k, v in json.loads((folder / f"{circuit}_kt.trapdoor.json").read_text()).items()
                if k in ("tau", "alpha", "beta", "gamma", "delta")}  # fmt: skip
    field = key.curve.fr
    r, n = field.modulus, key.domain_size
    values = limbs_to_ints(witness.values)
    lagrange = lagrange_at(r, field.root_of_unity(n.bit_length() - 1), n, trapdoor["tau"])

    # each variable's polynomials at tau, from the matrices of the circuit and snarkjs's rows for the public signals
    a, b, c = ([0] * key.n_vars for _ in range(3))
    for matrix, out in ((r1cs.a, a), (r1cs.b, b), (r1cs.c, c)):
        for i in range(r1cs.n_constraints):
            for variable, coefficient in matrix.row(i):
                out[variable] += coefficient * lagrange[i]
    for s in range(key.n_public + 1):
        a[s] += lagrange[r1cs.n_constraints + s]

    total = {k: sum(w * x for w, x in zip(values, xs, strict=True)) % r for k, xs in (("a", a), ("b", b), ("c", c))}
    private = range(key.n_public + 1, key.n_vars)
    inverse_delta = pow(trapdoor["delta"], -1, r)
    c_sum = sum(values[i] * (trapdoor["beta"] * a[i] + trapdoor["alpha"] * b[i] + c[i]) for i in private)
    expected = {
        "a": total["a"],
        "b1": total["b"],
        "b2": total["b"],
        "c": c_sum * inverse_delta % r,
        # h(tau) Z(tau) = A(tau) B(tau) - C(tau)
        "h": (total["a"] * total["b"] - total["c"]) * inverse_delta % r,
    }
    return expected, proof_sums(key, witness), key


@pytest.mark.parametrize("part", ["a", "b1", "b2", "c", "h"])
@pytest.mark.parametrize("name", CASE_NAMES)
def test_each_sum_is_what_the_trapdoor_predicts(name: str, part: str) -> None:
    expected, sums, key = prediction(name)
    group: Group = key.curve.g2 if part == "b2" else key.curve.g1
    predicted = host.multiply(group, expected[part], group.generator)
    assert host.from_limbs(group, getattr(sums, part)) == predicted


@pytest.mark.parametrize("name", CASE_NAMES)
def test_the_prediction_depends_on_the_trapdoor(name: str) -> None:
    # the test above could not fail if every sum were the same, or infinity
    _, sums, _ = prediction(name)
    parts = [getattr(sums, part) for part in ("a", "b1", "c", "h")]
    assert all(point.any() for point in parts)
    assert all(not np.array_equal(x, y) for i, x in enumerate(parts) for y in parts[:i])
