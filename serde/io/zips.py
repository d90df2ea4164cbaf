"""Zip archives of unknown origin: chosen members are copied out, nothing is unpacked by itself."""

from __future__ import annotations

import os
import stat
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from serde.core.limits import CHUNK_BYTES, MAX_ARCHIVE_MEMBERS, MAX_ARCHIVE_RATIO
from serde.errors import FormatError
from serde.io.atomic import write_all
from serde.io.contained import location_fault

try:
    from lzma import LZMAError
except ImportError:  # Python in a browser is built without it.
    LZMAError = zlib.error  # type: ignore[misc, assignment]

__all__ = ["ZIP_FAULTS", "is_zip", "zip_copy"]

_MARK: Final = b"PK\x03\x04"
_ENCRYPTED: Final = 1
# Even an archive of some bytes may unpack to this much.
_FREE_BYTES: Final = 2**20
# What a member takes in the directory at the end of an archive, its name and facts included.
_MAX_DIRECTORY: Final = 1024 * MAX_ARCHIVE_MEMBERS
_END: Final = struct.Struct("<4s4H2LH")

ZIP_FAULTS: Final = (
    zipfile.BadZipFile, zlib.error, LZMAError, struct.error, EOFError, LookupError,
    NotImplementedError, OverflowError, RuntimeError, ValueError,
)  # fmt: skip
"""What ``zipfile`` raises for archives that are damaged or not as it knows them."""


def is_zip(path: str | os.PathLike[str]) -> bool:
    """Whether a file begins as a zip archive does."""
    try:
        with open(path, "rb") as file:
            return file.read(len(_MARK)) == _MARK
    except OSError:
        return False


def zip_copy(
    path: str | os.PathLike[str], place: Callable[[str, int], Path | None]
) -> dict[str, int]:
    """Copy members of a zip archive to files; return the names and lengths of all there are.

    Links, and names that lead out of the archive or that no file has here, are left out. The
    checksum of what is copied is compared.

    Args:
        path: The archive.
        place: Returns where a member of this name and length goes, None if nowhere; what is
            there must be a new file in a folder that there is.

    Raises:
        FormatError: It is not an archive, is damaged or goes beyond the limits; one that is copied
            occurs twice.
        OSError: A file cannot be written.
    """
    found: dict[str, int] = {}
    with _opened(path) as archive:
        budget = MAX_ARCHIVE_RATIO * os.path.getsize(path) + _FREE_BYTES
        for member in archive.infolist():
            name = member.filename.removeprefix("./")
            if not _is_plain(member) or location_fault(name) is not None:
                continue
            wanted = place(name, member.file_size)
            if wanted is not None and name in found:
                raise FormatError(f"{name[:200]} occurs twice", path=path)
            found[name] = member.file_size
            if wanted is None:
                continue
            budget -= member.file_size
            if budget < 0:
                message = f"unpacks to more than {MAX_ARCHIVE_RATIO} times its size"
                raise FormatError(message, path=path)
            _copy(archive, member, wanted, path)
    return found


def _is_plain(member: zipfile.ZipInfo) -> bool:
    kind = stat.S_IFMT(member.external_attr >> 16)
    return not member.filename.endswith("/") and kind in (0, stat.S_IFREG)


@contextmanager
def _opened(path: str | os.PathLike[str]) -> Iterator[zipfile.ZipFile]:
    _check_directory(path)
    try:
        archive = zipfile.ZipFile(path)
    except ZIP_FAULTS as error:
        raise FormatError(f"no sound zip archive: {error}", path=path) from None
    except OSError as error:
        raise FormatError(f"cannot be read: {error.strerror}", path=path) from None
    with archive:
        count = len(archive.infolist())
        if count > MAX_ARCHIVE_MEMBERS:
            raise FormatError(f"{count} members, at most {MAX_ARCHIVE_MEMBERS}", path=path)
        yield archive


def _check_directory(path: str | os.PathLike[str]) -> None:
    """Refuse an archive whose directory, which is read whole, is larger than members take."""
    try:
        size = os.path.getsize(path)
        with open(path, "rb") as file:
            file.seek(max(0, size - 2**16 - _END.size))
            tail = file.read()
    except OSError as error:
        raise FormatError(f"cannot be read: {error.strerror}", path=path) from None
    at = tail.rfind(b"PK\x05\x06")
    if at < 0 or len(tail) - at < _END.size:
        raise FormatError("no sound zip archive: it has no directory", path=path)
    length = _END.unpack_from(tail, at)[5]
    if length != 0xFFFFFFFF and length > _MAX_DIRECTORY:
        raise FormatError(f"a directory of {length} bytes, at most {_MAX_DIRECTORY}", path=path)


def _copy(
    archive: zipfile.ZipFile, member: zipfile.ZipInfo, target: Path, path: str | os.PathLike[str]
) -> None:
    what = f"the member {member.filename[:200]!r}"
    if member.flag_bits & _ENCRYPTED:
        raise FormatError(f"{what} is encrypted", path=path)
    done = 0
    with target.open("xb", buffering=0) as file:
        try:
            with archive.open(member) as stream:
                while piece := stream.read(CHUNK_BYTES):
                    done += len(piece)
                    if done > member.file_size:
                        raise FormatError(f"{what} is longer than it says", path=path)
                    write_all(file.fileno(), piece)
        except ZIP_FAULTS as error:
            raise FormatError(f"{what}: {error}", path=path) from None
    if done != member.file_size:
        raise FormatError(f"{what}: expected {member.file_size} bytes, found {done}", path=path)
