"""Damaged and mismatched binary files: always one CuzkError that says where and what, never another exception."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuzk.errors import CuzkError
from cuzk.field.params import BLS12_381, BN254
from cuzk.formats import (
    check_coefficients,
    check_witness,
    describe,
    identify,
    load_r1cs,
    load_wtns,
    load_zkey,
    read_section,
)
from formats_samples import (
    CURVE_LIST,
    DOMAIN,
    N_PUBLIC,
    N_VARS,
    container,
    contents,
    patched,
    sections_of,
    write_sample,
)
from helpers import CASES, needs_cases

KINDS = ["zkey", "wtns", "r1cs"]
LOADERS = {"zkey": load_zkey, "wtns": load_wtns, "r1cs": load_r1cs}


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("malformed")


@pytest.fixture(scope="module")
def samples(folder) -> dict:
    return {(kind, c.name): write_sample(kind, folder / "sample", c) for kind in KINDS for c in CURVE_LIST}


def load(kind: str, path: Path, data: bytes):
    """Load and run the content checks too."""
    path.write_bytes(data)
    loaded = LOADERS[kind](path)
    if kind == "zkey":
        check_coefficients(loaded)
    elif kind == "wtns":
        check_witness(loaded)
    return loaded


def refused(kind: str, path: Path, data: bytes) -> str:
    """The message, without the file's name, of the CuzkError that loading gives."""
    with pytest.raises(CuzkError) as caught:
        load(kind, path, data)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    return message.removeprefix(f"{path}: ")


# Truncation and damage


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("curve", CURVE_LIST, ids=str)
def test_file_cut_anywhere_is_refused(kind, curve, samples, folder):
    data = samples[kind, curve.name]
    borders = {12}
    for offset, length in sections_of(data).values():
        borders |= {offset - 12, offset, offset + length}
    cuts = {border + d for border in borders for d in (-1, 0, 1)} | set(range(0, len(data), 97)) | {1, 4, 8}
    for cut in sorted(cut for cut in cuts if 0 < cut < len(data)):
        message = refused(kind, folder / "cut", data[:cut])
        assert "truncated" in message or "begins with 12" in message


@needs_cases
@pytest.mark.parametrize(
    "name", ["bn254/rs1000.zkey", "bls12381/chain8.zkey", "bls12381/chain8.wtns", "bn254/chain8.r1cs"]
)
def test_real_file_cut_at_a_section_border_is_refused(name, folder):
    data = (CASES / name).read_bytes()
    kind = name.rsplit(".", 1)[1]
    for offset, length in sections_of(data).values():
        for border in (offset - 12, offset, offset + length):
            for cut in {border - 1, border, border + 1} & set(range(1, len(data))):
                refused(kind, folder / "cut", data[:cut])


@pytest.mark.parametrize("kind", KINDS)
@given(choice=st.data())
def test_flipped_bytes_give_a_cuzk_error_or_a_whole_file(kind, choice, samples, folder):
    """Of the container's and the header's bytes; then every array still lies inside the file."""
    curve = choice.draw(st.sampled_from(CURVE_LIST))
    data = samples[kind, curve.name]
    spans = sections_of(data)
    small = [k for k in spans if spans[k][1] < 1200]
    places = [*range(12), *(i for offset, _ in spans.values() for i in range(offset - 12, offset))]
    places += [i for k in small for i in range(spans[k][0], sum(spans[k]))]
    for _ in range(choice.draw(st.integers(1, 3))):
        at = choice.draw(st.sampled_from(places))
        data = patched(data, at, bytes([data[at] ^ choice.draw(st.integers(1, 255))]))
    try:
        loaded = load(kind, folder / "flipped", data)
    except CuzkError:
        return
    assert loaded.curve in CURVE_LIST
    describe(folder / "flipped")


@pytest.mark.parametrize("kind", KINDS)
@given(content=st.binary(max_size=300))
def test_noise_behind_a_right_magic_is_refused(kind, content, folder):
    version = {"zkey": 1, "wtns": 2, "r1cs": 1}[kind]
    refused(kind, folder / "noise", struct.pack("<4sI", kind.encode(), version) + content)


@given(content=st.binary(max_size=200))
def test_r1cs_constraints_of_noise_are_refused_or_sound(content, samples, folder):
    data = samples["r1cs", "bn254"]
    sections = [(kind, content if kind == 2 else body) for kind, body in contents(data)]
    try:
        loaded = load("r1cs", folder / "noise", container(b"r1cs", 1, sections))
    except CuzkError:
        return
    assert loaded.n_constraints == 3


# The container


@pytest.mark.parametrize("kind", KINDS)
def test_wrong_magic_version_and_count(kind, samples, folder):
    data, path = samples[kind, "bn254"], folder / "container"
    assert "magic at offset 0 is b'abcd', expected" in refused(kind, path, patched(data, 0, b"abcd"))
    other = "wtns" if kind == "zkey" else "zkey"
    title = {"wtns": "a witness", "zkey": "a proving key"}[other]
    assert f"magic at offset 0 is b'{other}' ({title})" in refused(kind, path, samples[other, "bn254"])
    assert "version at offset 4 is 9, expected" in refused(kind, path, patched(data, 4, struct.pack("<I", 9)))
    assert "says 4294967295 sections" in refused(kind, path, patched(data, 8, b"\xff" * 4))
    assert refused(kind, path, data + b"more").startswith("4 bytes follow the last section")
    (count,) = struct.unpack_from("<I", data, 8)
    assert "bytes follow the last section" in refused(kind, path, patched(data, 8, struct.pack("<I", count - 1)))


@pytest.mark.parametrize("kind", KINDS)
def test_missing_and_repeated_sections_are_named(kind, samples, folder):
    data, path = samples[kind, "bls12_381"], folder / "sections"
    (version,) = struct.unpack_from("<I", data, 4)
    sections = contents(data)
    for missing, _ in sections:
        if missing == 10:
            continue  # contributions are not needed
        left = [section for section in sections if section[0] != missing]
        message = refused(kind, path, container(kind.encode(), version, left))
        assert message.startswith(f"section {missing} (")
        assert "is missing" in message
    for twice in sections:
        message = refused(kind, path, container(kind.encode(), version, [*sections, twice]))
        assert message.startswith(f"section {twice[0]} (")
        assert "is a second one" in message


@pytest.mark.parametrize("kind", KINDS)
def test_a_section_of_another_length_is_named_with_what_was_expected(kind, samples, folder):
    data, path = samples[kind, "bn254"], folder / "lengths"
    (version,) = struct.unpack_from("<I", data, 4)
    sections = contents(data)
    for i, (number, body) in enumerate(sections):
        if (kind, number) == ("zkey", 10):
            continue
        for changed in (body + b"\0" * 4, body[:-4], b"", body + b"\0"):
            message = refused(
                kind, path, container(kind.encode(), version, [*sections[:i], (number, changed), *sections[i + 1 :]])
            )
            assert message.startswith(f"section {number} (")
            assert "at offset " in message


def test_contributions_are_optional_and_never_looked_at(samples, folder):
    sections = [s for s in contents(samples["zkey", "bn254"]) if s[0] != 10]
    load("zkey", folder / "short", container(b"zkey", 1, sections))
    load("zkey", folder / "short", container(b"zkey", 1, [*sections, (10, b"\xff" * 5)]))
    with pytest.raises(CuzkError, match="section 77 is missing"):
        read_section(folder / "short", 77)


# Keys

HEADER_FIELDS = {"n8q": 0, "q": 4, "n8r": 36, "r": 40, "n_vars": 72, "n_public": 76, "domain": 80}  # of BN254


def with_header(data: bytes, **fields: bytes | int) -> bytes:
    begin = sections_of(data)[2][0]
    for name, value in fields.items():
        data = patched(
            data, begin + HEADER_FIELDS[name], value if isinstance(value, bytes) else struct.pack("<I", value)
        )
    return data


@pytest.mark.parametrize(("protocol", "name"), [(2, "plonk"), (10, "fflonk"), (3, "unknown"), (0, "unknown")])
def test_key_of_another_protocol_is_named(protocol, name, samples, folder):
    # a plonk key has other sections behind the protocol, so it has to be looked at first
    data = container(b"zkey", 1, [(1, struct.pack("<I", protocol)), (2, b"\0" * 80), (14, b"")])
    message = refused("zkey", folder / "plonk", data)
    assert message == f"section 1 (protocol) at offset 24: protocol is {protocol} ({name}), expected 1 (groth16)"


def test_primes_of_a_key(samples, folder):
    data, path = samples["zkey", "bn254"], folder / "primes"
    prime = (2**255 - 19).to_bytes(32, "little")
    begin = sections_of(data)[2][0]
    message = refused("zkey", path, with_header(data, q=prime))
    assert message.startswith(f"section 2 (header) at offset {begin + 4}: q = 0x7fff")
    assert "no curve known here (bn254, bls12_381)" in message
    message = refused("zkey", path, with_header(data, r=prime))
    assert message.startswith(f"section 2 (header) at offset {begin + 40}: r = 0x7fff")
    bls_r = BLS12_381.fr.modulus.to_bytes(32, "little")
    assert "of Fr[bn254]" in refused("zkey", path, with_header(data, r=bls_r))
    assert "needs 4294967295 bytes" in refused("zkey", path, with_header(data, n8q=0xFFFFFFFF))
    wide = (36).to_bytes(4, "little") + BN254.fp.modulus.to_bytes(36, "little")
    sections = [(k, wide + body[36:] if k == 2 else body) for k, body in contents(data)]
    assert "q is given 36 bytes, expected 32" in refused("zkey", path, container(b"zkey", 1, sections))


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"n_public": N_VARS}, "n_public is 6, expected less than n_vars = 6"),
        ({"n_vars": N_VARS + 1}, "expected 448 (7 points of 64 bytes: n_vars is 7)"),
        ({"n_public": N_PUBLIC - 1}, "expected 128 (2 points of 64 bytes: n_public is 1, and one more)"),
        ({"domain": 2 * DOMAIN}, "expected 1024 (16 points of 64 bytes: the domain is 16)"),
        ({"domain": 0}, "the domain size is 0, expected a power of two"),
        ({"domain": 12}, "the domain size is 12, expected a power of two"),
        ({"domain": 1 << 29}, "the domain size is 536870912, bn254 has at most 2^28"),
        ({"domain": 2}, "the domain size is 2, expected a row for each of the 3 public signals"),
    ],
)
def test_sizes_of_a_key(fields, expected, samples, folder):
    message = refused("zkey", folder / "sizes", with_header(samples["zkey", "bn254"], **fields))
    assert expected in message
    assert message.startswith("section ")
    assert " at offset " in message


def test_count_of_coefficients(samples, folder):
    data = samples["zkey", "bn254"]
    begin = sections_of(data)[4][0]
    message = refused("zkey", folder / "count", patched(data, begin, struct.pack("<I", 13)))
    assert message.startswith(f"section 4 (coefficients) at offset {begin}: has 532 bytes, expected 576")


# Witnesses


def test_prime_and_length_of_a_witness(samples, folder):
    data, path = samples["wtns", "bn254"], folder / "witness"
    begin = sections_of(data)[1][0]
    goldilocks = struct.pack("<IQI", 8, 2**64 - 2**32 + 1, 6)
    message = refused("wtns", path, container(b"wtns", 2, [(1, goldilocks), (2, bytes(48))]))
    assert message.startswith("section 1 (header) at offset 28: r = 0xffffffff00000001 is the scalar field of no curve")
    message = refused("wtns", path, patched(data, begin + 36, struct.pack("<I", 7)))
    assert "has 192 bytes, expected 224 (7 values of 32 bytes)" in message
    assert "expected at least the leading 1" in refused("wtns", path, patched(data, begin + 36, bytes(4)))
    wide = struct.pack("<I", 36) + BN254.fr.modulus.to_bytes(36, "little") + struct.pack("<I", 6)
    assert "r of bn254 is given 36 bytes, expected 32" in refused(
        "wtns", path, container(b"wtns", 2, [(1, wide), (2, b"")])
    )


# Constraint systems


def test_r1cs_content(samples, folder):
    data, path = samples["r1cs", "bn254"], folder / "r1cs"
    spans = sections_of(data)
    constraints, header = spans[2][0], spans[1][0]
    message = refused("r1cs", path, patched(data, constraints + 4, struct.pack("<I", 4)))
    assert message == f"section 2 (constraints) at offset {constraints + 4}: variable 4, expected less than 4"
    message = refused("r1cs", path, patched(data, constraints + 8, BN254.fr.modulus.to_bytes(32, "little")))
    assert message.startswith(f"section 2 (constraints) at offset {constraints + 8}: value {BN254.fr.modulus}")
    message = refused("r1cs", path, patched(data, constraints, b"\xff" * 4))
    assert "combination B of constraint 0 would begin at byte" in message
    assert f"at offset {constraints}:" in message
    # the very last combination, 4 bytes of a zero count, is made to claim an entry
    last = constraints + spans[2][1] - 4
    assert "the last combination ends at byte" in refused("r1cs", path, patched(data, last, struct.pack("<I", 1)))
    # one constraint more than there are begins exactly at the end
    more = patched(data, header + 60, struct.pack("<I", 4))
    assert "combination A of constraint 3 would begin" in refused("r1cs", path, more)
    fewer = patched(data, header + 60, struct.pack("<I", 2))
    assert "the last combination ends at byte" in refused("r1cs", path, fewer)
    outputs = patched(data, header + 40, struct.pack("<I", 4))
    assert "more than the 4 variables" in refused("r1cs", path, outputs)


def test_custom_gates_are_refused_unless_there_are_none(samples, folder):
    sections = contents(samples["r1cs", "bn254"])
    none = [(4, bytes(4)), (5, bytes(4))]
    assert load("r1cs", folder / "gates", container(b"r1cs", 1, sections + none)).n_constraints == 3
    for kind in (4, 5):
        gates = [(kind, struct.pack("<I", 1) + bytes(20))]
        message = refused("r1cs", folder / "gates", container(b"r1cs", 1, sections + gates))
        assert message.startswith(f"section {kind} (custom gate")
        assert "groth16 does not have them" in message


# identify


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"ptau" + bytes(60), "a powers-of-tau file"),
        (b"\0asm\1\0\0\0", "a WebAssembly module"),
        (b"hello", "begins with b'hello'"),
        (b"{}", "keys are those of no verification key"),
        (b"{", "is not JSON"),
        (np.arange(40, dtype=np.uint8).tobytes(), "begins with"),
    ],
)
def test_other_files_are_not_identified(content, expected, folder):
    (folder / "other").write_bytes(content)
    with pytest.raises(CuzkError, match=expected) as caught:
        identify(folder / "other")
    assert str(folder / "other") in str(caught.value)
    with pytest.raises(CuzkError):
        describe(folder / "other")
