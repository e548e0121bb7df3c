"""Proving keys made from a known trapdoor, for measuring: whoever reads this file can forge proofs under them.

Real keys come from a ceremony whose secrets nobody holds, and making one of 2^18 rows takes hours of
`snarkjs powersoftau`. Here the secrets tau, alpha, beta, gamma, delta are derived from a seed, so every point of the
key is one known multiple of a generator. The result is a .zkey like any other.

J. Groth, "On the size of pairing-based non-interactive arguments" (eprint 2016/260), section 3.2, with
the quotient's points as snarkjs stores them: Lagrange polynomials of the odd coset.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import numpy as np
from fixed_base import batch_inverse, multiples

from cuzk.field.host import ints_to_limbs
from cuzk.field.params import Curve, Field
from cuzk.groth16.key import ProvingKey, coefficient_dtype

SECRETS = ("tau", "alpha", "beta", "gamma", "delta")

Combination = dict[int, int]  # variable -> coefficient
Constraint = tuple[Combination, Combination, Combination]  # (A w) * (B w) = C w


def known_trapdoor_key(
    curve: Curve, n_vars: int, n_public: int, constraints: Iterable[Constraint], log_domain: int, seed: str
) -> ProvingKey:
    """A key for the constraints. Variables: the constant 1, n_public public ones, then the rest.

    Raises ValueError when constraints and public rows do not fit into 2^log_domain rows.
    """
    r, n = curve.fr.modulus, 1 << log_domain
    tau, alpha, beta, gamma, delta = (_secret(curve.fr, seed, name) for name in SECRETS)

    # 1. A_j(tau), B_j(tau), C_j(tau): column j of a matrix, its rows weighted by the Lagrange polynomials of the domain
    rows = _lagrange(curve.fr, log_domain, tau, range(n))
    a, b, c = ([0] * n_vars for _ in range(3))
    entries: list[tuple[int, int, int, int]] = []  # matrix, row, variable, coefficient
    row = -1
    for row, constraint in enumerate(constraints):
        for matrix, combination in enumerate(constraint):
            column = (a, b, c)[matrix]
            for variable, value in combination.items():
                column[variable] = (column[variable] + value * rows[row]) % r
                if matrix < 2:
                    entries.append((matrix, row, variable, value % r))
    for variable in range(n_public + 1):  # makes the public columns independent of the others
        row += 1
        a[variable] = (a[variable] + rows[row]) % r
        entries.append((0, row, variable, 1))
    if row >= n:
        raise ValueError(f"{row + 1} rows do not fit into a domain of 2^{log_domain}")

    # 2. the same numbers as points
    mixed = [(beta * a[j] + alpha * b[j] + c[j]) % r for j in range(n_vars)]
    gamma_inverse, delta_inverse = batch_inverse([gamma, delta], r)
    quotient = _lagrange(curve.fr, log_domain + 1, tau, range(1, 2 * n, 2))
    g1, g2 = curve.g1, curve.g2
    alpha1, beta1, delta1 = multiples(g1, [alpha, beta, delta])
    beta2, gamma2, delta2 = multiples(g2, [beta, gamma, delta])
    return ProvingKey(
        curve=curve,
        n_vars=n_vars,
        n_public=n_public,
        domain_size=n,
        convention="snarkjs",
        alpha1=alpha1,
        beta1=beta1,
        delta1=delta1,
        beta2=beta2,
        gamma2=gamma2,
        delta2=delta2,
        ic=multiples(g1, [x * gamma_inverse for x in mixed[: n_public + 1]]),
        a=multiples(g1, a),
        b1=multiples(g1, b),
        b2=multiples(g2, b),
        c=multiples(g1, [x * delta_inverse for x in mixed[n_public + 1 :]]),
        h=multiples(g1, [x * delta_inverse for x in quotient]),
        coefficients=_coefficients(curve, entries),
    )


def _secret(field: Field, seed: str, name: str) -> int:
    digest = hashlib.sha512(f"cuzk benchmark key, {seed}, {name}".encode()).digest()
    return int.from_bytes(digest, "big") % field.modulus


def _lagrange(field: Field, log_n: int, tau: int, indices: range) -> list[int]:
    """L_i(tau) = w^i (tau^n - 1) / (n (tau - w^i)) for the given i, on the domain of the 2^log_n-th roots of unity."""
    r, n, w = field.modulus, 1 << log_n, field.root_of_unity(log_n)
    powers = []
    power, step = pow(w, indices.start, r), pow(w, indices.step, r)
    for _ in indices:
        powers.append(power)
        power = power * step % r
    factor = (pow(tau, n, r) - 1) * pow(n, -1, r) % r
    inverses = batch_inverse([(tau - x) % r for x in powers], r)
    return [factor * x * inverse % r for x, inverse in zip(powers, inverses, strict=True)]


def _coefficients(curve: Curve, entries: list[tuple[int, int, int, int]]) -> np.ndarray:
    """As a .zkey holds them, values times R^2 (see `coefficient_dtype`)."""
    fr = curve.fr
    array = np.empty(len(entries), coefficient_dtype(curve))
    array["matrix"], array["row"], array["column"] = np.array([e[:3] for e in entries], dtype=np.uint32).T
    array["value"] = ints_to_limbs([value * fr.r2 % fr.modulus for _, _, _, value in entries], fr.limbs)
    return array


def chain(curve: Curve, log_domain: int, start: int = 3, key: int = 5) -> tuple[list[int], list[Constraint]]:
    """The chain x_(i+1) = x_i (x_i + k): witness and 2^log_domain - 4 constraints; almost all values are full-size.

    Variables: 1, the last x (public), k, then x_0, x_1, ...
    """
    r, count = curve.fr.modulus, (1 << log_domain) - 4
    xs = [start]
    for _ in range(count):
        xs.append(xs[-1] * (xs[-1] + key) % r)
    witness = [1, xs[-1], key, *xs[:-1]]
    k, first = 2, 3
    constraints: list[Constraint] = [
        ({first + i: 1}, {k: 1, first + i: 1}, {first + i + 1 if i + 1 < count else 1: 1}) for i in range(count)
    ]
    return witness, constraints
