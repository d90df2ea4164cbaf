"""From files to the model: which files are of this format, alone or in an archive."""

from __future__ import annotations

import os
from pathlib import Path

from serde.core import OpenFile
from serde.errors import FormatError
from serde.tflite.model import TfliteModel

__all__ = ["detect", "load"]


def detect(path: Path) -> bool:
    """Whether a file begins as TFLite models do."""
    try:
        with OpenFile.open(path) as opened:
            head = bytearray(min(opened.size, 8))
            opened.read_into(head, 0)
    except FormatError:
        return False
    return head[4:] == b"TFL3"


def load(source: str | os.PathLike[str] | bytes) -> TfliteModel:
    """Return the model in a file, or in its bytes.

    Raises:
        FormatError: It is not sound.
    """
    from serde.tflite.reader import read_file

    return read_file(bytes(source) if isinstance(source, bytes) else os.fspath(source))
