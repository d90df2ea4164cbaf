"""Archives of unknown origin: chosen members are copied out, nothing is unpacked.

Tar files, plain or gzip-compressed, are read front to back with a reader of
our own: it holds one header at a time, follows no link, makes no path and
stops where an archive claims more than :mod:`serde.core.limits` allows. The
members asked for go into temporary files that have no name, so that weights
in them are ranges of a file like any other.
"""

from __future__ import annotations

import gzip
import os
import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from serde.core import CHUNK_BYTES, MAX_ARCHIVE_MEMBERS, MAX_ARCHIVE_RATIO, FileRange, OpenFile
from serde.core.records import dataclass
from serde.errors import FormatError, OptionError
from serde.io.atomic import write_all
from serde.io.contained import location_fault

__all__ = ["SpooledFile", "is_tar", "spool", "tar_copy", "tar_extract", "tar_names"]

_BLOCK = 512
_GZIP = b"\x1f\x8b"
_MAX_PATH = 4096
_MAX_HEADER = 2**16
# Even an archive of some bytes may unpack to this much.
_FREE_BYTES = 2**20

_FILES = frozenset(b"0\x007")
_LINKS = {ord("1"): "a hard link", ord("2"): "a symbolic link"}
_DEVICES = {ord("3"): "a device", ord("4"): "a device", ord("6"): "a FIFO"}


class SpooledFile(OpenFile):
    """A temporary file without a name; it goes when its last range goes."""

    __slots__ = ()

    def range(self, offset: int, length: int) -> FileRange:
        """Return the range of `length` bytes from `offset` on; it keeps the file alive.

        Raises:
            FormatError: The file is shorter than that.
        """
        found = super().range(offset, length)
        return FileRange(found.path, found.offset, found.length, found.stamp, handle=self)

    def read(self) -> bytes:
        """Return the whole content."""
        buffer = bytearray(self.size)
        self.read_into(buffer, 0)
        return bytes(buffer)

    def close(self) -> None:
        """Close the descriptor, once."""
        if self.fd >= 0:
            super().close()
            self.fd = -1

    def __del__(self) -> None:
        self.close()


@dataclass(frozen=True, slots=True)
class _Member:
    """A file in an archive.

    Attributes:
        name: Its path there, without a leading ``./``.
        size: Length in bytes.
        special: What it is, if it is no plain file.
    """

    name: str
    size: int
    special: str = ""


def is_tar(path: str | os.PathLike[str]) -> bool:
    """Whether the first block of a plain or gzip-compressed file is a tar header."""
    try:
        with _Stream(path) as stream:
            block = stream.read_some(_BLOCK)
    except FormatError:
        return False
    return len(block) == _BLOCK and any(block) and _checksum_fits(block)


def tar_names(path: str | os.PathLike[str]) -> Iterator[str]:
    """Yield the names of the plain files of a tar archive as they come.

    Raises:
        FormatError: It is not one, is damaged or goes beyond the limits.
    """
    with _Stream(path) as stream:
        for member in _members(stream):
            if not member.special:
                yield member.name
            stream.skip(member.size)


def tar_extract(
    path: str | os.PathLike[str], wanted: Callable[[str], bool]
) -> dict[str, SpooledFile]:
    """Return the members of a tar archive whose names are `wanted`, copied out.

    Names that lead out of the archive are never wanted.

    Args:
        path: The archive, plain or gzip-compressed.
        wanted: Chooses members by their name without a leading ``./``.

    Raises:
        FormatError: It is not an archive, is damaged or goes beyond the
            limits; a wanted member is a link or a device, or occurs twice.
    """
    found: dict[str, SpooledFile] = {}
    with _Stream(path) as stream:
        for member in _members(stream):
            if location_fault(member.name, on_disk=False) is not None or not wanted(member.name):
                stream.skip(member.size)
                continue
            if member.special:
                raise stream.error(f"{member.name}: expected a file, found {member.special}")
            if member.name in found:
                raise stream.error(f"{member.name} occurs twice")
            found[member.name] = spool(stream.pieces(member.size), f"{stream.path}:{member.name}")
    return found


def tar_copy(
    path: str | os.PathLike[str], place: Callable[[str, int], Path | None]
) -> dict[str, int]:
    """Copy members of a tar archive to files; return the names and lengths of all there are.

    Names that lead out of the archive, or that no file has here, are left out.

    Args:
        path: The archive, plain or gzip-compressed.
        place: Returns where a member of this name and length goes, None if nowhere; what is
            there must be a new file in a folder that there is.

    Raises:
        FormatError: It is not an archive, is damaged or goes beyond the limits; one that is copied
            occurs twice.
        OSError: A file cannot be written.
    """
    found: dict[str, int] = {}
    with _Stream(path) as stream:
        for member in _members(stream):
            wanted = None
            if not member.special and location_fault(member.name) is None:
                wanted = place(member.name, member.size)
                if wanted is not None and member.name in found:
                    raise stream.error(f"{member.name} occurs twice")
                found[member.name] = member.size
            if wanted is None:
                stream.skip(member.size)
                continue
            with wanted.open("xb", buffering=0) as file:
                for piece in stream.pieces(member.size):
                    write_all(file.fileno(), piece)
    return found


def spool(pieces: Iterable[bytes], name: str) -> SpooledFile:
    """Return a temporary file that holds what the pieces add up to.

    Args:
        pieces: The bytes.
        name: What messages call the file.

    Raises:
        OptionError: There is no room for it among temporary files.
    """
    fd = -1
    try:
        with tempfile.TemporaryFile(buffering=0) as file:
            for piece in pieces:
                write_all(file.fileno(), piece)
            fd = os.dup(file.fileno())
        return SpooledFile(fd, name)
    except OSError as error:
        if fd >= 0:
            os.close(fd)
        where = tempfile.tempdir or "the directory of temporary files"
        raise OptionError(f"{where}: cannot be written to: {error.strerror}") from None


class _Stream:
    """The bytes of an archive in order, unpacked and counted."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        self.at = 0
        self._opened = OpenFile.open(self.path)
        self._limit = MAX_ARCHIVE_RATIO * self._opened.size + _FREE_BYTES
        try:
            self._raw: BinaryIO = os.fdopen(self._opened.fd, "rb", closefd=False)
            packed = self._raw.read(2) == _GZIP
            self._raw.seek(0)
        except OSError as error:
            self._opened.close()
            raise FormatError(f"cannot be read: {error.strerror}", path=self.path) from None
        self._file: BinaryIO | gzip.GzipFile = self._raw
        if packed:
            self._file = gzip.GzipFile(fileobj=self._raw, mode="rb")

    def __enter__(self) -> _Stream:
        return self

    def __exit__(self, *exc: object) -> None:
        self._file.close()
        self._raw.close()
        self._opened.close()

    def read_some(self, count: int) -> bytes:
        """Return up to `count` bytes; fewer only at the end."""
        try:
            data = self._file.read(count)
        except (EOFError, OSError, zlib.error) as error:
            raise self.error(f"damaged compressed data: {error}") from None
        self.at += len(data)
        if self.at > self._limit:
            raise self.error(f"unpacks to more than {MAX_ARCHIVE_RATIO} times its size")
        return data

    def read(self, count: int, what: str) -> bytes:
        """Return `count` bytes."""
        data = self.read_some(count)
        if len(data) < count:
            raise self.error(f"{what}: expected {count} bytes, found {len(data)}")
        return data

    def pieces(self, size: int) -> Iterator[bytes]:
        """Yield a member's bytes, and pass over what fills up its last block."""
        if size > self._limit - self.at:
            raise self.error(f"a member of {size} bytes is out of proportion to the archive")
        left = size
        while left:
            data = self.read(min(left, CHUNK_BYTES), "member")
            left -= len(data)
            yield data
        self.read_some(-size % _BLOCK)

    def skip(self, size: int) -> None:
        """Pass over a member."""
        for _ in self.pieces(size):
            pass

    def error(self, message: str) -> FormatError:
        return FormatError(message, path=self.path, offset=self.at)


def _members(stream: _Stream) -> Iterator[_Member]:
    """Yield the members; the caller reads or skips each one's bytes before the next."""
    count = 0
    extended: dict[str, str] = {}
    while True:
        block = stream.read_some(_BLOCK)
        if not any(block):
            return
        if len(block) < _BLOCK or not _checksum_fits(block):
            raise stream.error("expected a tar header")
        count += 1
        if count > MAX_ARCHIVE_MEMBERS:
            raise stream.error(f"more than {MAX_ARCHIVE_MEMBERS} members")
        size = _number(stream, block[124:136])
        kind = block[156]
        if kind in b"xgLK":
            facts = _extension(stream, kind, size)
            if kind != ord("g"):
                extended.update(facts)
            continue
        yield _member(stream, block, kind, size, extended)
        extended = {}


def _member(
    stream: _Stream, block: bytes, kind: int, size: int, extended: dict[str, str]
) -> _Member:
    name = extended.get("path") or _header_name(stream, block)
    if "size" in extended:
        size = _decimal(stream, extended["size"])
    while name.startswith("./"):
        name = name[2:]
    if kind in _FILES and not name.endswith("/"):
        return _Member(name, size)
    if kind in _LINKS:
        return _Member(name, 0, _LINKS[kind])
    if kind in _DEVICES:
        return _Member(name, 0, _DEVICES[kind])
    if kind == ord("5") or kind in _FILES:
        return _Member(name, size, "a directory")
    return _Member(name, size, f"type {kind:#x}")


def _header_name(stream: _Stream, block: bytes) -> str:
    name = block[:100].partition(b"\0")[0]
    prefix = block[345:500].partition(b"\0")[0]
    # Only ustar keeps a prefix there; GNU's header has times.
    if block[257:263] == b"ustar\0" and prefix:
        name = prefix + b"/" + name
    return _text(stream, name)


def _extension(stream: _Stream, kind: int, size: int) -> dict[str, str]:
    """Return what an extended header says of the member that follows."""
    if size > _MAX_HEADER:
        raise stream.error(f"a header of {size} bytes, at most {_MAX_HEADER}")
    data = b"".join(stream.pieces(size))
    if kind == ord("L"):
        return {"path": _text(stream, data.partition(b"\0")[0])}
    if kind == ord("K"):
        return {}
    return _pax_records(stream, data)


def _pax_records(stream: _Stream, data: bytes) -> dict[str, str]:
    records: dict[str, str] = {}
    at = 0
    while at < len(data):
        digits = data[at : at + 6].partition(b" ")[0]
        length = _decimal(stream, digits.decode("ascii", "replace"))
        record = data[at + len(digits) + 1 : at + length]
        key, equals, value = record.partition(b"=")
        if not equals or not value.endswith(b"\n") or not 0 < length <= len(data) - at:
            raise stream.error("damaged extended header")
        if key in (b"path", b"size"):
            records[key.decode()] = _text(stream, value[:-1])
        elif key.startswith(b"GNU.sparse"):
            raise stream.error("a sparse member, which is not read")
        at += length
    return records


def _text(stream: _Stream, raw: bytes) -> str:
    if len(raw) > _MAX_PATH:
        raise stream.error(f"a member's name of {len(raw)} bytes, at most {_MAX_PATH}")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        raise stream.error(f"a member's name that is not UTF-8: {raw[:60]!r}") from None


def _decimal(stream: _Stream, text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 19:
        raise stream.error(f"expected a number, found {text[:30]!r}")
    return int(text)


def _number(stream: _Stream, raw: bytes) -> int:
    """Read an octal number, or one that GNU tar writes as bytes."""
    if raw[0] == 0x80:
        return int.from_bytes(raw[1:], "big")
    digits = raw.strip(b" \0")
    if any(digit not in b"01234567" for digit in digits):
        raise stream.error(f"expected an octal number, found {raw!r}")
    return int(digits or b"0", 8)


def _checksum_fits(block: bytes) -> bool:
    """Whether a header's sum over its bytes, the sum's own place as blanks, is as noted."""
    digits = block[148:156].strip(b" \0")
    if not digits or any(digit not in b"01234567" for digit in digits):
        return False
    return int(digits, 8) == sum(block[:148]) + sum(block[156:]) + 8 * ord(" ")
