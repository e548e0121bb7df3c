"""What kind of file is this, and what is in it: for `cuzk info` and for error messages."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Any

import numpy as np

from cuzk.errors import CuzkError
from cuzk.field.host import CHUNK, Limbs
from cuzk.field.params import CURVES, Curve
from cuzk.formats.binfile import LAYOUTS, R1CS, WTNS, ZKEY, BinFile
from cuzk.formats.files import PathLike, open_regular
from cuzk.formats.r1cs import read_r1cs
from cuzk.formats.snarkjs_json import Json, proof_from_json, read_json, vkey_from_json
from cuzk.formats.wtns import read_wtns
from cuzk.formats.zkey import read_zkey
from cuzk.groth16.key import ProvingKey

# `describe` reads points and coefficients up to this size; about a second for a file that is not in memory
CHEAP_BYTES = 512 << 20

_FOREIGN = {b"ptau": "a powers-of-tau file (snarkjs)", b"\0asm": "a WebAssembly module", b"PK\x03\x04": "a zip archive"}


def identify(path: PathLike) -> str:
    """One of "zkey", "wtns", "r1cs", "vkey", "proof" and "public", by magic or by the shape of the JSON.

    Raises CuzkError when it is none of them, or cannot be read.
    """
    return _identify(path)[0]


def _identify(path: PathLike) -> tuple[str, Json | None]:
    with open_regular(path) as (descriptor, _):
        try:
            head = os.pread(descriptor, 64, 0)
        except OSError as error:
            raise CuzkError(f"{path}: cannot be read: {error.strerror}") from error
    magic = head[:4]
    if magic in LAYOUTS:
        return magic.decode(), None
    if magic in _FOREIGN:
        raise CuzkError(f"{path}: is {_FOREIGN[magic]}, expected {_KNOWN}")
    if head.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] not in (b"{", b"["):
        raise CuzkError(f"{path}: begins with {head[:8]!r}, expected {_KNOWN}")
    node = read_json(path)
    if isinstance(node.value, list):
        return "public", node
    if "vk_alpha_1" in node.value:
        return "vkey", node
    if "pi_a" in node.value:
        return "proof", node
    raise node.error(f"the keys are those of no verification key (vk_alpha_1) and no proof (pi_a); expected {_KNOWN}")


_KNOWN = "a .zkey, .wtns or .r1cs file, or a verification key, proof or public signals as JSON"


def describe(path: PathLike) -> dict[str, Any]:
    """The facts of a file as plain values, ready for printing or JSON; the file is checked as its loader does.

    Always: file, kind, bytes. Containers: sections (kind, name, offset, length) and curve. A .zkey: protocol,
    n_vars, n_public, domain_size, n_coefficients, and where the file is at most 512 MiB also n_constraints and
    infinities, the share of points at infinity in each point section.
    """
    kind, node = _identify(path)
    facts: dict[str, Any] = {"file": str(path), "kind": kind, "bytes": _size(path)}
    if kind == "zkey":
        file = BinFile(path, ZKEY)
        facts |= _zkey_facts(read_zkey(file), facts["bytes"]) | _section_facts(file)
    elif kind == "wtns":
        file = BinFile(path, WTNS)
        witness = read_wtns(file)
        facts |= {"curve": witness.curve.name, "n_vars": len(witness.values)} | _section_facts(file)
    elif kind == "r1cs":
        file = BinFile(path, R1CS)
        r1cs = read_r1cs(file)
        facts |= {"curve": r1cs.curve.name, "n_constraints": r1cs.n_constraints, "n_vars": r1cs.n_vars}
        facts |= {"n_public_outputs": r1cs.n_public_outputs, "n_public_inputs": r1cs.n_public_inputs}
        facts |= {"n_private_inputs": r1cs.n_private, "n_labels": r1cs.n_labels}
        facts |= {"n_entries": {name: len(getattr(r1cs, name).columns) for name in "abc"}}
        facts |= _section_facts(file)
    elif node is not None and kind == "vkey":
        vkey = vkey_from_json(node)
        facts |= {"curve": vkey.curve.name, "protocol": "groth16", "n_public": vkey.n_public}
    elif node is not None and kind == "proof":
        facts |= {"curve": _proof_curve(node).name, "protocol": "groth16"}
    elif node is not None:
        # the file names no curve, and a smaller field's signals are valid in a larger one
        largest = max(curve.fr.modulus for curve in CURVES.values())
        facts |= {"n_public": len([item.number(largest, "r") for item in node.items("a list of public signals")])}
    return facts


def _proof_curve(node: Json) -> Curve:
    """The curve a proof names; where it names none (some versions of rapidsnark), the one its points lie on."""
    if "curve" in node.value:
        return proof_from_json(node).curve
    for curve in CURVES.values():
        with suppress(CuzkError):
            return proof_from_json(node, curve).curve
    raise node.error(f"names no curve, and is no proof on any known here ({', '.join(CURVES)})")


def _size(path: PathLike) -> int:
    with open_regular(path) as (_, size):
        return size


def _section_facts(file: BinFile) -> dict[str, Any]:
    rows = []
    for s in file.sections.values():
        name = file.layout.sections.get(s.kind, "unknown")
        rows.append({"kind": s.kind, "name": name, "offset": s.offset, "length": s.length})
    return {"sections": rows}


def _zkey_facts(key: ProvingKey, size: int) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "curve": key.curve.name,
        "protocol": "groth16",
        "n_vars": key.n_vars,
        "n_public": key.n_public,
        "domain_size": key.domain_size,
        "n_coefficients": len(key.coefficients),
    }
    if size <= CHEAP_BYTES:
        facts["n_constraints"] = count_constraints(key)
        vectors = ("ic", "a", "b1", "b2", "c", "h")
        facts["infinities"] = {name: share_of_infinities(getattr(key, name)) for name in vectors}
    return facts


def count_constraints(key: ProvingKey) -> int:
    """The circuit's constraints: a key's rows are those and one for each public signal, the leading 1 included.

    The key does not say it. The last of the extra rows always has an entry, so the largest row tells.
    """
    rows = key.coefficients["row"]
    return max(int(rows.max()) - key.n_public, 0) if len(rows) else 0


def share_of_infinities(points: Limbs) -> float:
    """Share of all-zero points in uint32[n, ...]; 0.0 for none. Works in pieces."""
    if not len(points):
        return 0.0
    flat = points.reshape(len(points), -1)
    count = 0
    for start in range(0, len(flat), CHUNK):
        piece = flat[start : start + CHUNK]
        candidates = piece[piece[:, 0] == 0]  # few: one word in 2^32 of the others is zero
        count += int(np.count_nonzero(~candidates.any(axis=1)))
    return count / len(flat)
