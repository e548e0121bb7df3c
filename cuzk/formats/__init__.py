"""Files in and out. Each loader checks what it reads and raises CuzkError; each writer replaces its file atomically."""

from __future__ import annotations

from cuzk.formats.snarkjs import *  # noqa: F403
from cuzk.formats.snarkjs import __all__ as __all__
