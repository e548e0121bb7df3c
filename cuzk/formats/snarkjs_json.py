"""Verification keys, proofs and public signals in the JSON that snarkjs reads and writes.

Numbers are decimal strings. A point is a projective triple [x, y, z]; a coordinate in G2 is a pair [c0, c1]. As
in ffjavascript the triple is Jacobian (x/z^2, y/z^3), z = 1 is an affine point and z = 0 is infinity,
written ["0", "1", "0"]. BN254 is called "bn128", BLS12-381 "bls12381". Every point read is checked to be on its curve;
whether it is in the right subgroup is for the curve layer to say.

`*_to_json` and `*_from_json` work on what json.loads returns; the rest read and write files.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cuzk.errors import CuzkError
from cuzk.field.host import Limbs, decode, encode
from cuzk.field.params import CURVES, Curve, Fp2Int, Group, fp2_inverse, fp2_mul
from cuzk.formats.files import PathLike, atomic_write, read_file
from cuzk.groth16.key import Proof, VerifyingKey

MAX_BYTES = 64 << 20  # a verification key with 250,000 public signals; the parser needs some ten times as much memory
MAX_DIGITS = 200  # of a number; the longest coordinate has 115
_DECIMAL = re.compile(r"0|[1-9][0-9]*")


@dataclass(frozen=True)
class Json:
    """A value and where it stands: file and path of keys, as in "proof.json: $.pi_b[0][1]"."""

    value: Any
    source: str
    where: str = "$"

    def error(self, message: str) -> CuzkError:
        return CuzkError(f"{self.source}: {self.where}: {message}")

    def expected(self, what: str) -> CuzkError:
        return self.error(f"found {_show(self.value)}, expected {what}")

    def key(self, name: str) -> Json:
        if not isinstance(self.value, dict):
            raise self.expected(f'an object with the key "{name}"')
        if name not in self.value:
            raise self.error(f'the key "{name}" is missing')
        return Json(self.value[name], self.source, f"{self.where}.{name}")

    def items(self, what: str, length: int | None = None) -> list[Json]:
        if not isinstance(self.value, list):
            raise self.expected(what)
        if length is not None and len(self.value) != length:
            raise self.error(f"has {len(self.value)} elements, expected {what}")
        return [Json(v, self.source, f"{self.where}[{i}]") for i, v in enumerate(self.value)]

    def number(self, modulus: int, name: str) -> int:
        """A decimal string below the modulus."""
        text = self.value
        if not isinstance(text, str) or len(text) > MAX_DIGITS or not _DECIMAL.fullmatch(text):
            raise self.expected("a number as a decimal string")
        number = int(text)
        if number >= modulus:
            raise self.error(f"{number} is not below {name} = {modulus}")
        return number


def _show(value: Any) -> str:
    """A JSON value as it stands in the file, shortened."""
    if isinstance(value, dict | list):
        return f"{'an object' if isinstance(value, dict) else 'a list'} of {len(value)}"
    text = json.dumps(value if not isinstance(value, str) else value[:100])
    return text if len(text) <= 60 else f"{text[:57]}..."


def read_json(path: PathLike) -> Json:
    """Any JSON file as a `Json`; CuzkError where it is no strict JSON, or has a key twice."""
    data = read_file(path, MAX_BYTES, "a JSON file")
    try:
        value = json.loads(data, object_pairs_hook=_unique, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        raise CuzkError(f"{path}: is not JSON: line {error.lineno}, column {error.colno}: {error.msg}") from error
    except (ValueError, RecursionError) as error:  # not UTF-8, a number of thousands of digits, a million brackets
        raise CuzkError(f"{path}: is not JSON that can be read: {error}") from error
    return Json(value, str(path))


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"the key {_show(next(n for n in names if names.count(n) > 1))} occurs twice")
    return result


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON number")


# Points


def _pair(value: Sequence[int]) -> Fp2Int:
    """An element of Fp as one of Fp2, so that both groups share the formulas below."""
    return value[0], (value[1] if len(value) == 2 else 0)


def on_curve(group: Group, x: Sequence[int], y: Sequence[int]) -> bool:
    """Whether y^2 = x^3 + b; coordinates are `degree` ints each."""
    p, u, v, b = group.base.modulus, _pair(x), _pair(y), _pair(group.b)
    cube = fp2_mul(fp2_mul(u, u, p), u, p)
    return fp2_mul(v, v, p) == ((cube[0] + b[0]) % p, (cube[1] + b[1]) % p)


def point_from_json(node: Json, group: Group) -> Limbs:
    """A triple as an affine Montgomery point, uint32[2, L] or [2, 2, L]; CuzkError when it is not on the curve."""
    p = group.base.modulus
    x, y, z = (_coordinate(item, group) for item in node.items("a point [x, y, z]", 3))
    if not any(z):
        return encode(group.base, [[0] * group.degree] * 2).reshape(group.point_shape)
    if _pair(z) != (1, 0):
        inverse = fp2_inverse(_pair(z), p)
        square = fp2_mul(inverse, inverse, p)
        x = fp2_mul(_pair(x), square, p)[: group.degree]
        y = fp2_mul(_pair(y), fp2_mul(square, inverse, p), p)[: group.degree]
    if not on_curve(group, x, y):
        raise node.error(f"the point is not on the curve {group}")
    return encode(group.base, [x, y]).reshape(group.point_shape)


def _coordinate(node: Json, group: Group) -> tuple[int, ...]:
    items = [node] if group.degree == 1 else node.items("a pair [c0, c1]", 2)
    return tuple(item.number(group.base.modulus, "p") for item in items)


def point_to_json(group: Group, point: Limbs) -> list[Any]:
    """An affine Montgomery point as the triple that snarkjs writes."""
    zero, one = (0,) * group.degree, (1,) + (0,) * (group.degree - 1)
    coordinates = decode(group.base, point.reshape(2, group.degree, group.base.limbs))
    triple = [*coordinates, one] if point.any() else [zero, one, zero]
    strings = [[str(c) for c in coordinate] for coordinate in triple]
    return strings if group.degree == 2 else [s[0] for s in strings]


# Curve and protocol


def _normal(name: str) -> str:
    """snarkjs ignores case and punctuation in curve names."""
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _curve(node: Json, expected: Curve | None = None) -> Curve:
    """The curve that a file names; without a name it is the expected one, where the caller knows it."""
    if expected is not None and isinstance(node.value, dict) and "curve" not in node.value:
        return expected
    name = node.key("curve")
    known = {_normal(alias): curve for curve in CURVES.values() for alias in curve.json_names}
    curve = known.get(_normal(name.value)) if isinstance(name.value, str) else None
    if curve is None:
        raise name.expected(" or ".join(f'"{c.json_names[0]}"' for c in CURVES.values()))
    if expected is not None and curve is not expected:
        raise name.error(f"is for {curve}, expected {expected}")
    return curve


def _check_protocol(node: Json) -> None:
    protocol = node.key("protocol")
    if protocol.value != "groth16":
        raise protocol.expected('"groth16"')


# Verification keys


def vkey_from_json(node: Json) -> VerifyingKey:
    _check_protocol(node)
    curve = _curve(node)
    n_public = node.key("nPublic")
    if type(n_public.value) is not int or not 0 <= n_public.value < 1 << 32:  # a bool is an int as well
        raise n_public.expected("a number of public signals")
    count = n_public.value + 1
    items = node.key("IC").items(f"{count} points, one more than nPublic says", count)
    return VerifyingKey(
        curve=curve,
        alpha1=point_from_json(node.key("vk_alpha_1"), curve.g1),
        beta2=point_from_json(node.key("vk_beta_2"), curve.g2),
        gamma2=point_from_json(node.key("vk_gamma_2"), curve.g2),
        delta2=point_from_json(node.key("vk_delta_2"), curve.g2),
        ic=np.stack([point_from_json(item, curve.g1) for item in items]),
    )


def vkey_to_json(vkey: VerifyingKey, alphabeta12: Any = None) -> dict[str, Any]:
    """The object that json.dump writes.

    alphabeta12: e(alpha1, beta2) as ints [2][3][2]. snarkjs writes it but does not read it, so it may be left out.
    """
    curve = vkey.curve
    result: dict[str, Any] = {
        "protocol": "groth16",
        "curve": curve.json_names[0],
        "nPublic": vkey.n_public,
        "vk_alpha_1": point_to_json(curve.g1, vkey.alpha1),
        "vk_beta_2": point_to_json(curve.g2, vkey.beta2),
        "vk_gamma_2": point_to_json(curve.g2, vkey.gamma2),
        "vk_delta_2": point_to_json(curve.g2, vkey.delta2),
    }
    if alphabeta12 is not None:
        result["vk_alphabeta_12"] = [[[str(c) for c in fp2] for fp2 in fp6] for fp6 in alphabeta12]
    result["IC"] = [point_to_json(curve.g1, point) for point in vkey.ic]
    return result


def load_vkey(path: PathLike) -> VerifyingKey:
    """Read a verification_key.json. Its vk_alphabeta_12 is ignored, as snarkjs does.

    Raises CuzkError naming file and key path for anything but a groth16 key with points on a known curve.
    """
    return vkey_from_json(read_json(path))


def write_vkey(path: PathLike, vkey: VerifyingKey, alphabeta12: Any = None) -> None:
    """Write a verification_key.json; see `vkey_to_json` for `alphabeta12`."""
    _write(path, vkey_to_json(vkey, alphabeta12))


# Proofs


def proof_from_json(node: Json, curve: Curve | None = None) -> Proof:
    _check_protocol(node)
    curve = _curve(node, curve)
    return Proof(
        curve=curve,
        a=point_from_json(node.key("pi_a"), curve.g1),
        b=point_from_json(node.key("pi_b"), curve.g2),
        c=point_from_json(node.key("pi_c"), curve.g1),
    )


def proof_to_json(proof: Proof) -> dict[str, Any]:
    curve = proof.curve
    return {
        "pi_a": point_to_json(curve.g1, proof.a),
        "pi_b": point_to_json(curve.g2, proof.b),
        "pi_c": point_to_json(curve.g1, proof.c),
        "protocol": "groth16",
        "curve": curve.json_names[0],
    }


def load_proof(path: PathLike, curve: Curve | None = None) -> Proof:
    """Read a proof.json.

    curve: that of the verification key, where it is known. A proof that names another one is refused, and
    one that names none, as some versions of rapidsnark write it, is taken to be on this one.
    Raises CuzkError naming file and key path for anything but a groth16 proof with points on its curve.
    """
    return proof_from_json(read_json(path), curve)


def write_proof(path: PathLike, proof: Proof) -> None:
    _write(path, proof_to_json(proof))


# Public signals


def public_from_json(node: Json, curve: Curve) -> list[int]:
    return [item.number(curve.fr.modulus, "r") for item in node.items("a list of public signals")]


def load_public(path: PathLike, curve: Curve) -> list[int]:
    """Read a public.json: the public outputs and inputs, without the leading 1.

    Raises CuzkError naming file and index for anything but decimal strings below r. A value that was
    reduced silently would let one proof pass for several statements.
    """
    return public_from_json(read_json(path), curve)


def write_public(path: PathLike, curve: Curve, values: Sequence[int]) -> None:
    """Write a public.json; CuzkError for a value below 0 or not below r, which `load_public` would refuse."""
    for i, value in enumerate(values):
        if not 0 <= value < curve.fr.modulus:
            raise CuzkError(f"{path}: cannot be written: value {i} is {value}, expected 0 to r - 1 of {curve}")
    _write(path, [str(int(value)) for value in values])


def _write(path: PathLike, value: Any) -> None:
    # an indent of one and no newline at the end: what snarkjs writes, so equal content is equal bytes
    data = json.dumps(value, indent=1).encode()
    with atomic_write(path) as file:
        file.write(data)
