"""From files to the model: which files are of this format, alone or in an archive."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from serde.core.limits import CHUNK_BYTES
from serde.core.weights import OpenFile
from serde.errors import FormatError
from serde.io.archives import spool
from serde.io.zips import is_zip, zip_copy
from serde.tflite.model import TfliteModel

__all__ = ["detect", "load", "plain_file"]


def detect(path: Path) -> bool:
    """Whether a file begins as TFLite models do, or is an archive of such."""
    try:
        if is_zip(path):
            return bool(_members(path))
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

    if isinstance(source, bytes):
        return read_file(source)
    if not is_zip(source):
        return read_file(os.fspath(source))
    with plain_file(Path(source)) as plain, open(plain, "rb") as file:
        return read_file(spool(iter(lambda: file.read(CHUNK_BYTES), b""), os.fspath(source)))


@contextmanager
def plain_file(path: Path) -> Iterator[Path]:
    """Yield the file of a model, which is a copy where that lies in an archive.

    Raises:
        FormatError: The archive is not sound, or holds several models.
    """
    if not is_zip(path):
        yield path
        return
    members = _members(path)
    if len(members) != 1:
        found = ", ".join(members) or "none"
        raise FormatError(f"expected one .tflite in the archive, found {found}", path=path)
    with TemporaryDirectory() as folder:
        copy = Path(folder) / "model.tflite"
        zip_copy(path, lambda name, _size: copy if name == members[0] else None)
        yield copy


def _members(path: Path) -> list[str]:
    names = zip_copy(path, lambda _name, _size: None)
    return [name for name in names if name.endswith(".tflite")]
