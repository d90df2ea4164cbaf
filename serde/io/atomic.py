"""Files that appear whole or not at all, and bytes moved between files.

New files are written in a hidden directory beside the target, under their
final names, and renamed out of it back to back once all are finished. So a
file that refers to another by its bare name can be opened and checked before
either is in place, and the directory goes with whatever is left in it when
anything fails. What stood at the target before is replaced by the rename,
never written into; a symbolic link there is replaced itself.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from serde.core import CHUNK_BYTES, FileRange, OpenFile, Weight, counting
from serde.core.systems import has_owners, name_fault
from serde.errors import FormatError, OptionError
from serde.io.staging import REPEATS, commit, staging_directory

__all__ = [
    "atomic_group", "atomic_write", "check_files", "copy_range", "naming", "staged_text",
    "write_all", "write_text", "write_weight",
]  # fmt: skip

PathLike = str | os.PathLike[str]

_STEP = 64 * 2**20
# Small enough to stay in the processor's cache between reading and writing.
_BUFFER = 2**17
_PAGE = 4096
# What a kernel or file system answers that cannot copy between these two files.
_CANNOT_COPY = frozenset(
    {
        errno.EBADF,
        errno.EINVAL,
        errno.EIO,
        errno.ENOSYS,
        errno.ENOTSOCK,
        errno.EOPNOTSUPP,
        errno.EPERM,
        errno.ETXTBSY,
        errno.EXDEV,
    }
)
# Of the disk, or of how much of it may be used; the call that met it need not name a file.
_DISK_FAULTS = frozenset({errno.EDQUOT, errno.EFBIG, errno.EIO, errno.ENOSPC, errno.EROFS})


@contextmanager
def atomic_group(
    targets: Sequence[PathLike],
    *,
    sources: Iterable[PathLike] = (),
    outdated: Callable[[], Sequence[Path]] = tuple,
    restore: bool = False,
    before_commit: Callable[[tuple[Path, ...]], None] | None = None,
) -> Iterator[tuple[Path, ...]]:
    """Stage several files of one directory and rename them when the body is done.

    Args:
        targets: The files, in the order of the renames: one that refers to others comes last.
        sources: Files that no target may be, under any name.
        outdated: Returns files beside them that nothing refers to once all are in place, and
            which are removed then; called when all are finished. They stay if it cannot tell,
            asked more than once, because files cannot be read.
        restore: Whether a target that was replaced comes back if a later one cannot be.
        before_commit: Called with the finished temporary files, which have their final names
            in a directory of their own; if it raises, nothing stays.

    Yields:
        The paths to write, one a target.

    Raises:
        OptionError: A target cannot be a new file, or is a source.
    """
    finals = _finals(targets, sources)
    parent = finals[0].parent
    with staging_directory(parent) as staging, naming(targets[-1], staging.parent):
        staged = tuple(staging / final.name for final in finals)
        yield staged
        if before_commit is not None:
            before_commit(staged)
        missing = [path.name for path in staged if not path.is_file()]
        if missing:
            raise FileNotFoundError(errno.ENOENT, "was never written", missing[0])
        commit(staged, finals, outdated=_settle(outdated), restore=restore)


def _settle(outdated: Callable[[], Sequence[Path]]) -> Sequence[Path]:
    for _ in range(REPEATS):
        with suppress(OSError):
            return outdated()
    return ()


@contextmanager
def naming(path: PathLike, hidden: Path) -> Iterator[None]:
    """Let errors name `path`, not what is in a directory; so do those of a disk without a name."""
    try:
        yield
    except OSError as error:
        found = error.filename
        if found is None:
            ours = error.errno in _DISK_FAULTS
        else:
            ours = hidden in Path(os.fsdecode(found)).parents
        if not ours:
            raise
        raise OSError(error.errno, error.strerror, os.fspath(path)) from error
    except OptionError as error:
        # Of a file that is made whole within: it will stand beside `path`, as what is hidden does.
        beside = os.path.dirname(os.path.abspath(path))
        told = re.sub(rf"{re.escape(os.fspath(hidden))}[\\/]\w+", lambda _: beside, str(error))
        raise OptionError(told) from error


@contextmanager
def atomic_write(
    path: PathLike,
    *,
    sources: Iterable[PathLike] = (),
    before_commit: Callable[[Path], None] | None = None,
) -> Iterator[BinaryIO]:
    """Yield a binary file that is put at `path` when the body is done, or never.

    Args:
        path: The file to make or replace.
        sources: Files that `path` may not be, under any name.
        before_commit: Called with the finished temporary file; if it raises, nothing stays.

    Raises:
        OptionError: `path` cannot be a new file, or is a source.
    """

    def check(staged: tuple[Path, ...]) -> None:
        if before_commit is not None:
            before_commit(staged[0])

    group = atomic_group([path], sources=sources, before_commit=check)
    with group as (staged,), staged.open("xb") as file:
        yield file


def write_text(path: PathLike, text: str) -> None:
    """Put a text, as UTF-8, at `path`, whole or not at all.

    Raises:
        OptionError: `path` cannot be a new file.
    """
    with staged_text(path, text):
        pass


@contextmanager
def staged_text(path: PathLike, text: str) -> Iterator[None]:
    """Put a text, as UTF-8, at `path` when the body is done, or never.

    It is written beforehand, so that only its rename is left to do then.

    Raises:
        OptionError: `path` cannot be a new file.
    """
    with atomic_group([path]) as (staged,):
        staged.write_bytes(text.encode())
        yield


def check_files(targets: Sequence[PathLike], *, sources: Iterable[PathLike] = ()) -> None:
    """Refuse targets that :func:`atomic_group` could not write, before there is anything.

    Args:
        targets: The files.
        sources: Files that no target may be, under any name.

    Raises:
        OptionError: A target says no file, is something else or a source, or its directory is
            missing or cannot be written to.
    """
    with staging_directory(_finals(targets, sources)[0].parent):
        pass


def _finals(targets: Sequence[PathLike], sources: Iterable[PathLike]) -> list[Path]:
    """Return the absolute paths of targets that can be written together."""
    finals = [Path(os.path.abspath(os.fspath(target))) for target in targets]
    parents = {final.parent for final in finals}
    if len(parents) > 1 or len(set(finals)) != len(finals):
        raise OptionError("files written together must lie in one directory, each once")
    known = list(sources)
    for given, final in zip(targets, finals, strict=True):
        _check_target(given, final, known)
    return finals


def _check_target(given: PathLike, final: Path, sources: Iterable[PathLike]) -> None:
    """Refuse a target that cannot be a new file or that is one of the sources."""
    text = os.fspath(given)
    if not text or text.endswith(("/", os.sep)) or not final.name:
        raise OptionError(f"{text!r}: expected the name of a file")
    if "\0" in text:
        raise OptionError(f"{text!r}: a file name cannot contain a null character")
    fault = name_fault(final.name)
    if fault is not None:
        raise OptionError(f"{text}: its name {fault}")
    if not final.parent.is_dir():
        missing = os.strerror(errno.ENOENT)
        raise OptionError(f"{text}: {missing}: the directory {final.parent} does not exist")
    try:
        status = os.stat(final)
    except FileNotFoundError:
        return
    except OSError as error:
        raise OptionError(f"{text}: cannot be written: {error.strerror}") from None
    if stat.S_ISDIR(status.st_mode):
        raise OptionError(f"{text}: expected a file, found a directory")
    if not stat.S_ISREG(status.st_mode):
        raise OptionError(f"{text}: expected a regular file, found a FIFO, socket or device")
    if not _may_replace(status, os.stat(final.parent)):
        raise OptionError(f"{text}: belongs to another user, in a directory where that counts")
    for source in sources:
        if _is_same(status, source):
            raise OptionError(f"{text}: is the same file as the source {os.fspath(source)}")


def _may_replace(file: os.stat_result, directory: os.stat_result) -> bool:
    """Whether the sticky bit of a directory lets this user rename over a file in it."""
    if not directory.st_mode & stat.S_ISVTX or not has_owners():
        return True
    return os.geteuid() in (0, file.st_uid, directory.st_uid)


def _is_same(status: os.stat_result, source: PathLike) -> bool:
    try:
        return os.path.samestat(status, os.stat(source))
    except (OSError, ValueError):
        return False


def write_all(fd: int, data: bytes | bytearray | memoryview) -> None:
    """Write all of `data` at the position of `fd`."""
    view = memoryview(data).cast("B")
    done = 0
    while done < len(view):
        done += os.write(fd, view[done : done + CHUNK_BYTES])


def copy_range(source: FileRange, fd: int) -> None:
    """Append the bytes of a file range at the position of `fd`.

    The file systems copy them, or share them, where pages fall on pages. Elsewhere that takes
    twice as long as through a small buffer that is written by whole pages.

    Raises:
        FormatError: The file changed or shrank.
    """
    count = counting("bytes")
    with source.open() as opened:
        at, done = _position(fd), 0
        if (at - source.offset) % _PAGE == 0:
            done = _copy_file_range(opened.fd, fd, source.offset, source.length, count)
        _copy_buffered(opened, fd, source.offset + done, source.length - done, at + done, count)
        opened.check_unchanged()


def _position(fd: int) -> int:
    """Return where in a file is written next; of what has no positions, any."""
    try:
        return os.lseek(fd, 0, os.SEEK_CUR)
    except OSError:
        return 0


def write_weight(weight: Weight, fd: int, name: str) -> None:
    """Write the values of a weight; bytes that lie in a file are copied from there.

    Args:
        weight: The weight.
        fd: Where to.
        name: Its name, for messages.

    Raises:
        FormatError: A source file changed or shrank.
    """
    if weight.source is not None:
        copy_range(weight.source, fd)
        written = weight.source.length
    else:
        written, count = 0, counting("bytes")
        for chunk in weight.chunks():
            write_all(fd, chunk)
            written += len(chunk)
            count(len(chunk))
    if written != weight.nbytes:
        raise FormatError(f"parameter {name}: expected {weight.nbytes} bytes, found {written}")


_Count = Callable[[int], None]


def _copy_file_range(source: int, target: int, offset: int, length: int, count: _Count) -> int:
    """Return how many bytes the file systems moved between themselves."""
    done = 0
    while done < length and hasattr(os, "copy_file_range"):
        try:
            copied = os.copy_file_range(source, target, min(_STEP, length - done), offset + done)
        except OSError as error:
            if error.errno in _CANNOT_COPY:
                break
            raise
        if copied == 0:
            break
        done += copied
        count(copied)
    return done


def _copy_buffered(
    opened: OpenFile, fd: int, offset: int, length: int, at: int, count: _Count
) -> None:
    """Copy by a buffer; what is written at `at` ends with a page, but for the last piece."""
    buffer = memoryview(bytearray(min(_BUFFER, length)))
    done = 0
    while done < length:
        part = buffer[: min(_BUFFER - (at + done) % _PAGE, length - done)]
        opened.read_into(part, offset + done)
        write_all(fd, part)
        done += len(part)
        count(len(part))
