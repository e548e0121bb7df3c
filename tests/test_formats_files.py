"""Opening what cannot be opened, and writing so that nothing is half-written or lost."""

from __future__ import annotations

import errno
import os
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from cuzk.errors import CuzkError
from cuzk.field.params import BN254
from cuzk.formats import (
    atomic_write,
    describe,
    identify,
    load_proof,
    load_public,
    load_r1cs,
    load_vkey,
    load_wtns,
    load_zkey,
    write_proof,
    write_public,
    write_zkey,
)
from cuzk.formats import files as module
from formats_samples import sample_key, sample_proof, write_sample
from helpers import ROOT

LOADERS = [load_zkey, load_wtns, load_r1cs, load_vkey, load_proof, lambda p: load_public(p, BN254), identify, describe]
LOADER_IDS = ["zkey", "wtns", "r1cs", "vkey", "proof", "public", "identify", "describe"]


def make(kind: str, folder: Path) -> Path:
    path = folder / kind
    if kind == "empty":
        path.touch()
    elif kind == "directory":
        path.mkdir()
    elif kind == "FIFO":
        os.mkfifo(path)
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as s:
            s.bind(str(path))
    elif kind == "dangling":
        path.symlink_to(folder / "nowhere")
    elif kind == "loop":
        path.symlink_to(path)
    elif kind == "device":
        path = Path("/dev/zero")
    elif kind == "below a file":
        (folder / "file").touch()
        path = folder / "file" / "below"
    elif kind == "NUL":
        path = folder / "nul\0nul"
    elif kind == "long":
        path = folder / ("x" * 300)
    return path


UNREADABLE = {
    "missing": "cannot be opened: no such file or directory",
    "empty": "is empty",
    "directory": "is a directory, expected a regular file",
    "FIFO": "is a FIFO, expected a regular file",
    "socket": "is a socket, expected a regular file",
    "device": "is a character device, expected a regular file",
    "dangling": "cannot be opened: no such file or directory",
    "loop": "cannot be opened: too many levels of symbolic links",
    "below a file": "cannot be opened: not a directory",
    "NUL": "cannot be opened: embedded null",
    "long": "cannot be opened: file name too long",
}


@pytest.mark.parametrize("load", LOADERS, ids=LOADER_IDS)
@pytest.mark.parametrize(("kind", "expected"), UNREADABLE.items(), ids=UNREADABLE)
def test_what_cannot_be_opened_is_named_and_nothing_hangs(load, kind, expected, tmp_path):
    path = make(kind, tmp_path)
    with pytest.raises(CuzkError) as caught:
        load(path)
    assert str(caught.value).startswith(f"{path}: {expected}")


@pytest.mark.parametrize("load", LOADERS, ids=LOADER_IDS)
@pytest.mark.parametrize("call", ["stat", "open"])
def test_permission_denied(load, call, tmp_path, monkeypatch):
    """By a failing call, since nothing is unreadable to root."""
    path = tmp_path / "key"
    path.write_bytes(b"zkey")
    original = getattr(os, call)

    def denied(name, *args, **kwargs):
        if Path(name) == path:
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return original(name, *args, **kwargs)

    monkeypatch.setattr(module.os, call, denied)
    with pytest.raises(CuzkError) as caught:
        load(path)
    assert str(caught.value) == f"{path}: cannot be opened: permission denied"


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_file_without_read_permission(tmp_path):
    path = tmp_path / "key"
    write_sample("zkey", path, BN254)
    path.chmod(0)
    with pytest.raises(CuzkError, match="cannot be opened: permission denied"):
        load_zkey(path)


def test_a_fifo_that_takes_the_files_place_after_the_first_look(tmp_path, monkeypatch):
    path = tmp_path / "key"
    path.write_bytes(b"zkey")
    status = os.stat(path)
    path.unlink()
    os.mkfifo(path)
    monkeypatch.setattr(module.os, "stat", lambda *_: status)
    with pytest.raises(CuzkError, match="is a FIFO"):
        load_zkey(path)


def test_map_and_read_errors_are_named(tmp_path, monkeypatch):
    path = tmp_path / "key"
    write_sample("zkey", path, BN254)
    monkeypatch.setattr(module.mmap, "mmap", _raise(OSError(errno.ENODEV, "No such device")))
    with pytest.raises(CuzkError) as caught:
        load_zkey(path)
    assert str(caught.value) == f"{path}: cannot be mapped: no such device"
    monkeypatch.setattr(os, "pread", _raise(OSError(errno.EIO, "Input/output error")))
    with pytest.raises(CuzkError, match="key: cannot be read: Input/output error"):
        identify(path)


def _raise(error: BaseException):
    def fail(*_args, **_kwargs):
        raise error

    return fail


def test_no_descriptor_is_left_open(tmp_path):
    write_sample("zkey", tmp_path / "key", BN254)
    (tmp_path / "bad").write_bytes(b"bad")
    before = len(os.listdir("/proc/self/fd"))
    key = load_zkey(tmp_path / "key")
    for load in LOADERS:
        with pytest.raises(CuzkError):
            load(tmp_path / "bad")
    # mmap keeps a descriptor of its own for as long as the key lives
    assert len(os.listdir("/proc/self/fd")) <= before + 1
    assert key.n_vars


# Writing


def names(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.iterdir())


def test_new_file_has_the_usual_permissions_and_a_replaced_one_keeps_its_own(tmp_path):
    path = tmp_path / "out"
    mask = os.umask(0o027)
    try:
        with atomic_write(path) as file:
            file.write(b"one")
    finally:
        os.umask(mask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    path.chmod(0o604)
    with atomic_write(path) as file:
        file.write(b"two")
    assert stat.S_IMODE(path.stat().st_mode) == 0o604
    assert path.read_bytes() == b"two"
    assert names(tmp_path) == ["out"]


def test_nothing_shows_before_the_end(tmp_path):
    path = tmp_path / "out"
    path.write_bytes(b"old")
    with atomic_write(path) as file:
        file.write(b"new" * 100_000)
        file.flush()
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new" * 100_000


@pytest.mark.parametrize("error", [RuntimeError("body"), KeyboardInterrupt(), SystemExit(1)], ids=repr)
@pytest.mark.parametrize("existing", [False, True])
def test_an_exception_in_the_body_leaves_everything_as_it_was(error, existing, tmp_path):
    path = tmp_path / "out"
    if existing:
        path.write_bytes(b"old")

    def write():
        with atomic_write(path) as file:
            file.write(b"half")
            raise error

    with pytest.raises(type(error)):
        write()
    assert names(tmp_path) == (["out"] if existing else [])
    assert not existing or path.read_bytes() == b"old"


@pytest.mark.parametrize("call", ["fsync", "replace", "fchmod"])
def test_a_failing_step_leaves_everything_as_it_was(call, tmp_path, monkeypatch):
    path = tmp_path / "proof.json"
    path.write_bytes(b"old")
    monkeypatch.setattr(module.os, call, _raise(OSError(errno.ENOSPC, "No space left on device")))
    with pytest.raises(CuzkError) as caught:
        write_proof(path, sample_proof(BN254))
    assert str(caught.value) == f"{path}: cannot be written: no space left on device"
    monkeypatch.undo()
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["proof.json"]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
def test_a_full_disk_leaves_the_old_key(tmp_path, monkeypatch):
    path = tmp_path / "key"
    data = write_sample("zkey", path, BN254)
    original = os.open

    def full(name, flags, *args, **kwargs):
        descriptor = original(name, flags, *args, **kwargs)
        if flags & os.O_WRONLY:
            device = original("/dev/full", os.O_WRONLY)
            os.dup2(device, descriptor)
            os.close(device)
        return descriptor

    monkeypatch.setattr(module.os, "open", full)
    monkeypatch.setattr(module.os, "fchmod", lambda *_: None)
    with pytest.raises(CuzkError, match="key: cannot be written: no space left on device"):
        write_zkey(path, sample_key(BN254, seed=2))
    monkeypatch.undo()
    assert path.read_bytes() == data
    assert names(tmp_path) == ["key"]


def test_a_process_killed_while_writing_leaves_the_old_file(tmp_path):
    path = tmp_path / "out"
    path.write_bytes(b"old")
    code = (
        "import os, signal, sys\n"
        "from cuzk.formats import atomic_write\n"
        "with atomic_write(sys.argv[1]) as file:\n"
        "    file.write(b'half' * 100000)\n"
        "    file.flush()\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", code, str(path)], env={**os.environ, "PYTHONPATH": str(ROOT)}, check=False, timeout=60
    )
    assert result.returncode == -9
    assert path.read_bytes() == b"old"


def test_a_mapped_key_can_be_replaced_by_itself(tmp_path):
    path = tmp_path / "key"
    data = write_sample("zkey", path, BN254)
    key = load_zkey(path)
    write_zkey(path, key)
    assert path.read_bytes() == data
    write_public(path, BN254, [1])  # the name now belongs to another file, the map to the old one
    assert key.h.sum() == sample_key(BN254).h.sum()


def test_a_symbolic_link_is_followed(tmp_path):
    (tmp_path / "real").mkdir()
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "real" / "file")
    for content in (b"one", b"two"):
        with atomic_write(link) as file:
            file.write(content)
        assert link.is_symlink()
        assert (tmp_path / "real" / "file").read_bytes() == content


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("directory", "is a directory, expected a regular file"),
        ("FIFO", "is a FIFO, expected a regular file"),
        ("socket", "is a socket, expected a regular file"),
        ("device", "is a character device, expected a regular file"),
        ("below a file", "cannot be written: not a directory"),
        ("missing folder", "cannot be written: no such file or directory"),
        ("NUL", "cannot be written: embedded null"),
        ("long", "cannot be written: file name too long"),
    ],
)
def test_what_cannot_be_written_is_named_and_kept(kind, expected, tmp_path):
    path = tmp_path / "none" / "out" if kind == "missing folder" else make(kind, tmp_path)
    before = names(tmp_path)
    with pytest.raises(CuzkError) as caught:
        write_proof(path, sample_proof(BN254))
    assert str(caught.value).startswith(f"{path}: {expected}")
    assert names(tmp_path) == before
    if kind == "device":
        assert stat.S_ISCHR(os.stat(path).st_mode)


def test_a_write_protected_file_is_kept(tmp_path, monkeypatch):
    path = tmp_path / "proof.json"
    path.write_bytes(b"old")
    path.chmod(0o444)
    if os.geteuid() == 0:  # root may write to it all the same, so the question is answered for it
        monkeypatch.setattr(module.os, "access", lambda name, mode: not (Path(name) == path and mode == os.W_OK))
    with pytest.raises(CuzkError, match=r"proof.json: cannot be written: it exists and is write-protected"):
        write_proof(path, sample_proof(BN254))
    assert path.read_bytes() == b"old"


def test_a_folder_that_is_not_writable(tmp_path, monkeypatch):
    original = os.open

    def denied(name, flags, *args, **kwargs):
        if flags & os.O_CREAT:
            raise PermissionError(errno.EACCES, "Permission denied", name)
        return original(name, flags, *args, **kwargs)

    monkeypatch.setattr(module.os, "open", denied)
    with pytest.raises(CuzkError) as caught:
        write_proof(tmp_path / "proof.json", sample_proof(BN254))
    assert str(caught.value) == f"{tmp_path / 'proof.json'}: cannot be written: permission denied"
    assert names(tmp_path) == []
