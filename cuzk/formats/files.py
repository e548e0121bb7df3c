"""Files opened, mapped and replaced safely. Every OSError leaves here as a CuzkError naming path and cause.

Only regular files are opened, so a FIFO cannot hang a load and a device cannot be read or replaced by
mistake. Reading maps the file: pages come in when they are touched, so opening costs the same at any
size. A mapped file must not be cut short while it is in use (the kernel then ends the process with
SIGBUS); `atomic_write` never does that to its target, since it replaces the name, not the content.
"""

from __future__ import annotations

import mmap
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, NoReturn

import numpy as np
from numpy.typing import NDArray

from cuzk.errors import CuzkError

PathLike = str | os.PathLike[str]

_KINDS = (
    (stat.S_ISDIR, "a directory"),
    (stat.S_ISFIFO, "a FIFO"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a character device"),
    (stat.S_ISBLK, "a block device"),
)


def _fail(path: Path, what: str, error: OSError | ValueError) -> NoReturn:
    """Raise the CuzkError "PATH: cannot be opened: no such file or directory"."""
    cause = getattr(error, "strerror", None) or str(error) or type(error).__name__
    raise CuzkError(f"{path}: {what}: {cause[0].lower()}{cause[1:]}") from error


def _require_regular(path: Path, mode: int) -> None:
    if not stat.S_ISREG(mode):
        kind = next((name for test, name in _KINDS if test(mode)), "something else")
        raise CuzkError(f"{path}: is {kind}, expected a regular file")


@contextmanager
def open_regular(path: PathLike) -> Iterator[tuple[int, int]]:
    """A descriptor to read from, and the file's size in bytes; closed on leaving.

    Raises CuzkError when the file is missing, unreadable, empty or not a regular file.
    """
    path = Path(path)
    try:
        _require_regular(path, os.stat(path).st_mode)
        # the kind may change between the two calls: without O_NONBLOCK a FIFO would then wait for a writer
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        _fail(path, "cannot be opened", error)
    try:
        status = os.fstat(descriptor)
        _require_regular(path, status.st_mode)
        if status.st_size == 0:
            raise CuzkError(f"{path}: is empty")
        yield descriptor, status.st_size
    finally:
        os.close(descriptor)


def map_file(path: PathLike) -> NDArray[np.uint8]:
    """The whole file as a read-only map, uint8[size]; the map lives as long as an array that looks into it."""
    with open_regular(path) as (descriptor, size):
        try:
            mapped = mmap.mmap(descriptor, size, access=mmap.ACCESS_READ)
        except (OSError, ValueError) as error:  # ValueError: the file has shrunk since its size was asked
            _fail(Path(path), "cannot be mapped", error)
    return np.frombuffer(mapped, dtype=np.uint8)


def read_file(path: PathLike, limit: int, kind: str) -> bytes:
    """All bytes of a small file; CuzkError when there are more than `limit`, or it cannot be read.

    kind: what the file ought to be, for the message.
    """
    with open_regular(path) as (descriptor, size):
        if size > limit:
            raise CuzkError(f"{path}: has {size} bytes, expected at most {limit} for {kind}")
        try:
            with open(descriptor, "rb", closefd=False) as file:
                data = file.read(limit + 1)
        except OSError as error:
            _fail(Path(path), "cannot be read", error)
    if len(data) > limit:
        raise CuzkError(f"{path}: has grown while it was read, expected at most {limit} bytes for {kind}")
    return data


@contextmanager
def atomic_write(path: PathLike) -> Iterator[BinaryIO]:
    """A binary file that takes the name `path` once it is whole and on disk, and never before.

    1. Content goes to a temporary file in the same folder (a rename is atomic inside one file system only).
    2. On leaving, it is flushed to disk and renamed over `path`. A symbolic link is followed, and an
       existing file's permissions are kept.
    3. After any exception, in the body or in step 2, the temporary file is removed and `path` is as before.

    Raises CuzkError for a folder that is missing or not writable, a target that is write-protected or no
    regular file, and any failing write.
    """
    path = Path(path)
    try:
        target = Path(os.path.realpath(path))
        mode = _mode_for(path, target)
        temporary = target.parent / f".cuzk-{secrets.token_hex(8)}.tmp"
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    except (OSError, ValueError) as error:
        _fail(path, "cannot be written", error)
    try:
        try:
            with open(descriptor, "wb") as file:
                if mode is not None:
                    os.fchmod(descriptor, mode)
                yield file
                file.flush()
                os.fsync(descriptor)
            os.replace(temporary, target)
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary)
            raise
    except OSError as error:
        _fail(path, "cannot be written", error)
    _sync_folder(target.parent)


def _mode_for(path: Path, target: Path) -> int | None:
    """Permissions of the file about to be replaced, None where there is none; refuses what must not be replaced."""
    try:
        status = os.stat(target)
    except FileNotFoundError:
        return None
    _require_regular(path, status.st_mode)
    if not os.access(target, os.W_OK):
        raise CuzkError(f"{path}: cannot be written: it exists and is write-protected")
    return stat.S_IMODE(status.st_mode)


def _sync_folder(folder: Path) -> None:
    """Make the rename itself durable, where the file system knows how."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
