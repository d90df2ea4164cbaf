"""Zip archives of unknown origin: members are copied out, or read where they lie; and writing such.

Members of PyTorch's archives, and of ours, are stored uncompressed, so that weights are ranges of
the archive. A compressed one is unpacked into a temporary file. Nothing is written under a name
that the archive gives.
"""

from __future__ import annotations

import io
import os
import stat
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from shutil import copyfileobj
from typing import TYPE_CHECKING, BinaryIO, Final

from serde.core.limits import (
    CHUNK_BYTES,
    MAX_ARCHIVE_MEMBERS,
    MAX_ARCHIVE_RATIO,
    MAX_TORCH_ARCHIVE_MEMBERS,
)
from serde.core.progress import counting, expect
from serde.core.weights import FileRange, OpenFile
from serde.errors import FormatError
from serde.io.archives import SpooledFile, spool
from serde.io.atomic import write_all
from serde.io.contained import location_fault

if TYPE_CHECKING:
    from typing_extensions import Self

try:
    from lzma import LZMAError
except ImportError:  # Python in a browser is built without it.
    LZMAError = zlib.error  # type: ignore[misc, assignment]

__all__ = ["ZIP_FAULTS", "Archive", "is_zip", "write_archive", "zip_copy"]

_MARK: Final = b"PK\x03\x04"
_ENCRYPTED: Final = 1
# Even an archive of some bytes may unpack to this much.
_FREE_BYTES: Final = 2**20
_LOCAL: Final = struct.Struct("<4s22x2H")
"""A member's own header: its mark, and the lengths of its name and of an extra field."""

ZIP_FAULTS: Final = (
    zipfile.BadZipFile, zlib.error, LZMAError, struct.error, EOFError, LookupError,
    NotImplementedError, OverflowError, RuntimeError, ValueError,
)  # fmt: skip
"""What ``zipfile`` raises for archives that are damaged or not as it knows them."""


def is_zip(path: str | os.PathLike[str]) -> bool:
    """Whether a file begins as a zip archive does."""
    with suppress(FormatError), OpenFile.open(path) as opened:
        head = bytearray(min(len(_MARK), opened.size))
        opened.read_into(head, 0)
        return head == _MARK
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
    with OpenFile.open(path) as opened, _open(opened) as archive:
        members = archive.infolist()
        if len(members) > MAX_ARCHIVE_MEMBERS:
            raise FormatError(f"{len(members)} members, at most {MAX_ARCHIVE_MEMBERS}", path=path)
        budget = MAX_ARCHIVE_RATIO * opened.size + _FREE_BYTES
        for member in members:
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
            with wanted.open("xb", buffering=0) as file:
                for piece in _pieces(archive, member, path):
                    write_all(file.fileno(), piece)
                if file.tell() != member.file_size:
                    raise FormatError(f"{name[:200]}: found {file.tell()} bytes", path=path)
    return found


def _is_plain(member: zipfile.ZipInfo) -> bool:
    kind = stat.S_IFMT(member.external_attr >> 16)
    return not member.filename.endswith("/") and kind in (0, stat.S_IFREG)


def _pieces(
    archive: zipfile.ZipFile, member: zipfile.ZipInfo, path: str | os.PathLike[str]
) -> Iterator[bytes]:
    """Yield the bytes of a member, at most as many as it says, and compare their checksum."""
    with _faults(path, f"the member {member.filename[:200]!r}"), archive.open(member) as stream:
        while piece := stream.read(CHUNK_BYTES):
            yield piece


class _BoundedFile(io.FileIO):
    """A file, of which nobody reads more at once than a directory may have."""

    def __init__(self, opened: OpenFile) -> None:
        super().__init__(opened.fd, closefd=False)
        self._start = opened.within.offset if opened.within else 0
        self._end = self._start + opened.size
        self.seek(0)

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        """Go to a place of the range."""
        if whence != os.SEEK_CUR:
            offset += self._start if whence == os.SEEK_SET else self._end
            if offset < self._start:
                raise OSError("a place before the beginning")
        # What counts from the end counts from the file's beginning now.
        return super().seek(offset, whence % os.SEEK_END) - self._start

    def tell(self) -> int:
        """Return the place in the range."""
        return super().tell() - self._start

    def read(self, size: int | None = -1) -> bytes:
        """Return bytes from where the file is."""
        length = max(0, self._end - super().tell())
        wanted = length if size is None or size < 0 else min(size, length)
        if wanted > max(CHUNK_BYTES, 256 * MAX_TORCH_ARCHIVE_MEMBERS):
            raise ValueError(f"a directory of {wanted} bytes")
        return super().read(wanted) or b""


@contextmanager
def _faults(path: str | os.PathLike[str], what: str) -> Iterator[None]:
    """Let what ``zipfile`` raises name the archive."""
    try:
        yield
    except (*ZIP_FAULTS, OSError) as error:
        raise FormatError(f"{what}: {error}", path=path) from None


def _open(opened: OpenFile) -> zipfile.ZipFile:
    with _faults(opened.path, "no sound zip archive"):
        return zipfile.ZipFile(_BoundedFile(opened))


class Archive:
    """A zip archive of which the directory was read; a context that closes it.

    Args:
        path: The file.
        within: Which part of it is the archive, if not all.

    Attributes:
        path: The file.
        members: What it holds, by the names without the folder that all of them are in.

    Raises:
        FormatError: It is no zip archive, or a damaged one.
    """

    def __init__(self, path: str | os.PathLike[str], within: FileRange | None = None) -> None:
        self.path = os.fspath(path)
        self._opened = within.window() if within else OpenFile.open(path)
        self._budget = MAX_ARCHIVE_RATIO * self._opened.size + _FREE_BYTES
        self._spooled: dict[str, SpooledFile] = {}
        self._nested: list[Archive] = []
        try:
            self._zip = _open(self._opened)
            self.members = self._by_name(self._zip.infolist())
        except FormatError:
            self._opened.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        for each in self._nested:
            each.__exit__()
        self._zip.close()
        self._opened.close()

    def nested(self, name: str) -> Archive:
        """Return an archive that a member is, open as long as this one.

        Raises:
            FormatError: It is missing, or no sound zip archive.
        """
        self._nested.append(Archive(self.path, self.range(name)))
        return self._nested[-1]

    def error(self, message: str) -> FormatError:
        """Return a fault of the archive."""
        return FormatError(message, path=self.path)

    def _by_name(self, found: list[zipfile.ZipInfo]) -> Mapping[str, zipfile.ZipInfo]:
        if len(found) > MAX_TORCH_ARCHIVE_MEMBERS:
            raise self.error(f"{len(found)} members, at most {MAX_TORCH_ARCHIVE_MEMBERS}")
        files = [each for each in found if not each.filename.endswith("/")]
        roots = {each.filename.partition("/")[0] for each in files}
        inside = len(roots) == 1 and all("/" in each.filename for each in files)
        skipped = len(roots.pop()) + 1 if inside else 0
        members: dict[str, zipfile.ZipInfo] = {}
        for each in files:
            fault = location_fault(each.orig_filename, on_disk=False) or _fault(each)
            if fault is not None:
                raise self.error(f"the member {each.orig_filename[:200]!r} {fault}")
            if members.setdefault(each.filename[skipped:], each) is not each:
                raise self.error(f"the member {each.filename[:200]!r} occurs twice")
        return members

    def read(self, name: str, limit: int) -> bytes:
        """Return the content of a member, whose checksum is compared.

        Raises:
            FormatError: It is missing, damaged, or longer than `limit` bytes.
        """
        where = self.range(name)
        if where.length > limit:
            raise self.error(f"{name}: expected at most {limit} bytes, found {where.length}")
        data = bytes(where.read(0, where.length))
        if zlib.crc32(data) != self.members[name].CRC:
            raise self.error(f"{name}: the checksum is not that of its content")
        return data

    def range(self, name: str) -> FileRange:
        """Return where the content of a member is: in the archive, or unpacked.

        Raises:
            FormatError: It is missing or damaged, or beyond the limits.
        """
        member = self.members.get(name)
        if member is None:
            raise self.error(f"the member {name[:200]!r} is missing")
        if member.compress_type == zipfile.ZIP_STORED:
            return self._opened.range(self._content(member), member.file_size)
        if name not in self._spooled:
            self._spooled[name] = self._unpack(member)
        return self._spooled[name].range(0, member.file_size)

    def _content(self, member: zipfile.ZipInfo) -> int:
        """Return where the content of a stored member begins, which its own header says."""
        with _faults(self.path, f"the member {member.filename[:200]!r}"):
            self._zip.open(member).close()  # compares the header with the directory
        raw = bytearray(_LOCAL.size)
        self._opened.read_into(raw, member.header_offset)
        _, name_length, extra_length = _LOCAL.unpack(raw)
        return member.header_offset + _LOCAL.size + int(name_length) + int(extra_length)

    def _unpack(self, member: zipfile.ZipInfo) -> SpooledFile:
        self._budget -= member.file_size
        if self._budget < 0:
            raise self.error(f"unpacks to more than {MAX_ARCHIVE_RATIO} times its size")
        return spool(_pieces(self._zip, member, self.path), f"{self.path}:{member.filename}")


def _fault(member: zipfile.ZipInfo) -> str | None:
    """Return what makes a member one that is not read."""
    if member.flag_bits & _ENCRYPTED:
        return "is encrypted"
    if stat.S_ISLNK(member.external_attr >> 16):
        return "is a link"
    if member.compress_type == zipfile.ZIP_STORED:
        return None if member.compress_size == member.file_size else "has two lengths"
    if member.compress_type != zipfile.ZIP_DEFLATED:
        return f"is compressed by method {member.compress_type}"
    return None


_TIME: Final = (1980, 1, 1, 0, 0, 0)
"""Of every member, so that the same files give the same bytes."""


def write_archive(file: BinaryIO, folder: Path, comment: bytes = b"") -> None:
    """Write the files of a folder as they are: weights do not become smaller."""
    members = [(each, each.stat().st_size) for each in sorted(folder.rglob("*")) if each.is_file()]
    expect("bytes", sum(size for _, size in members))
    count = counting("bytes")
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
        archive.comment = comment
        for each, size in members:
            info = zipfile.ZipInfo(each.relative_to(folder).as_posix(), _TIME)
            info.create_system, info.external_attr, info.file_size = 3, 0o644 << 16, size
            with each.open("rb") as content, archive.open(info, "w") as packed:
                copyfileobj(content, packed, CHUNK_BYTES)
            count(size)
