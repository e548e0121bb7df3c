"""The one exception family of the project."""

from __future__ import annotations


class CuzkError(Exception):
    """Anything cuzk refuses to do: a malformed file, mismatched inputs, a backend that is missing.

    The message names what is wrong (file, section, offset, size) and what was expected.
    """


class BackendError(CuzkError):
    """A backend was asked for by name and cannot run here; the message says what is missing."""


class ProofError(CuzkError):
    """A proof that was just made does not verify: the witness does not satisfy the circuit."""
