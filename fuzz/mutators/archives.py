"""Archives: zip and tar, whose members are files of their own, plain and compressed."""

from __future__ import annotations

import gzip
import io
import lzma
import tarfile
import zipfile
import zlib

__all__ = ["is_tar", "is_zip", "read_tar", "read_zip", "write_tar", "write_zip"]

Members = list[tuple[str, bytes]]

_MOST_BYTES = 2**22
"""Archives that hold more are bombs, and mutated as bytes."""

_DAMAGED = (
    zipfile.BadZipFile, zlib.error, lzma.LZMAError, ValueError, EOFError, OSError, RuntimeError,
)  # fmt: skip
"""What reading a damaged archive raises; a RuntimeError where it wants a password."""


def is_zip(data: bytes) -> bool:
    """Whether some bytes begin like a zip archive."""
    return data[:4] == b"PK\x03\x04"


def is_tar(data: bytes) -> bool:
    """Whether some bytes begin like a tar archive, compressed or not."""
    return data[:2] == b"\x1f\x8b" or data[257:262] == b"ustar"


def read_zip(data: bytes) -> Members | None:
    """Return the members of an archive, or None where it is none."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            if sum(each.file_size for each in archive.infolist()) > _MOST_BYTES:
                return None
            return [(each.filename, archive.read(each)) for each in archive.infolist()]
    except _DAMAGED:
        return None


def write_zip(members: Members, like: bytes) -> bytes:
    """Return an archive of some members, whose contents begin where PyTorch has them begin."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_STORED) as archive:
        for name, content in members:
            info = zipfile.ZipInfo(name.replace("\0", "_") or "_")
            start = made.tell() + 30 + len(info.filename.encode())
            info.extra = (
                b"FB" + (-(start + 4) % 64).to_bytes(2, "little") + bytes(-(start + 4) % 64)
            )
            archive.writestr(info, content)
    return made.getvalue()


def read_tar(data: bytes) -> Members | None:
    """Return the files of an archive, or None where it is none."""
    try:
        with tarfile.open(fileobj=io.BytesIO(data)) as archive:
            found = []
            for info in archive:
                small = info.isreg() and info.size <= _MOST_BYTES
                file = archive.extractfile(info) if small else None
                if file is not None:
                    found.append((info.name, file.read()))
            return found
    except (tarfile.TarError, *_DAMAGED):
        return None


def write_tar(members: Members, like: bytes) -> bytes:
    """Return an archive of some members, compressed as another one is."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        for name, content in members:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    packed = made.getvalue()
    return gzip.compress(packed, mtime=0) if like[:2] == b"\x1f\x8b" else packed
