"""Files that appear whole or not at all, and bytes moved between files.

New files are written in a hidden directory beside the target, under their
final names, and renamed out of it one after the other once all are finished.
So a file that refers to another by its bare name can be opened and checked
before either is in place, and the directory goes with whatever is left in it
when anything fails. What stood at the target before is replaced by the
rename, never written into; a symbolic link there is replaced itself.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from serde.errors import FormatError, OptionError
from serde.limits import CHUNK_BYTES
from serde.weights import FileRange, OpenFile, Weight

__all__ = ["atomic_group", "atomic_write", "copy_range", "write_all", "write_weight"]

PathLike = str | os.PathLike[str]

_STEP = 64 * 2**20
# Small enough to stay in the processor's cache between reading and writing.
_BUFFER = 2**20
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
# Of the disk, or of how much of it may be used; the call that met it names no file.
_DISK_FAULTS = frozenset({errno.EDQUOT, errno.EFBIG, errno.EIO, errno.ENOSPC, errno.EROFS})


@contextmanager
def atomic_group(
    targets: Sequence[PathLike],
    *,
    sources: Iterable[PathLike] = (),
    before_commit: Callable[[tuple[Path, ...]], None] | None = None,
    sync: bool = False,
) -> Iterator[tuple[Path, ...]]:
    """Stage several files of one directory and rename them when the body is done.

    Args:
        targets: The files, in the order of the renames: one that refers to others comes last.
        sources: Files that no target may be, under any name.
        before_commit: Called with the finished temporary files, which have their final names
            in a directory of their own; if it raises, nothing stays.
        sync: Whether the bytes are forced to the disk before the renames, and these after.

    Yields:
        The paths to write, one a target.

    Raises:
        OptionError: A target cannot be a new file, or is a source.
    """
    finals = [Path(os.path.abspath(os.fspath(target))) for target in targets]
    parent = finals[0].parent
    if any(final.parent != parent for final in finals) or len(set(finals)) != len(finals):
        raise OptionError("files written together must lie in one directory, each once")
    known = list(sources)
    for given, final in zip(targets, finals, strict=True):
        _check_target(given, final, known)
    staging = _staging_directory(parent)
    try:
        staged = tuple(staging / final.name for final in finals)
        yield staged
        if before_commit is not None:
            before_commit(staged)
        if sync:
            _sync(staged)
        _commit(staged, finals)
        if sync:
            _sync([parent])
    except OSError as error:
        if error.errno not in _DISK_FAULTS or error.filename is not None:
            raise
        raise OSError(error.errno, error.strerror, os.fspath(targets[-1])) from error
    finally:
        shutil.rmtree(staging, ignore_errors=True)


@contextmanager
def atomic_write(
    path: PathLike,
    *,
    sources: Iterable[PathLike] = (),
    before_commit: Callable[[Path], None] | None = None,
    sync: bool = False,
) -> Iterator[BinaryIO]:
    """Yield a binary file that is put at `path` when the body is done, or never.

    Args:
        path: The file to make or replace.
        sources: Files that `path` may not be, under any name.
        before_commit: Called with the finished temporary file; if it raises, nothing stays.
        sync: Whether the bytes are forced to the disk before the rename, and it after.

    Raises:
        OptionError: `path` cannot be a new file, or is a source.
    """

    def check(staged: tuple[Path, ...]) -> None:
        if before_commit is not None:
            before_commit(staged[0])

    group = atomic_group([path], sources=sources, before_commit=check, sync=sync)
    with group as (staged,), staged.open("xb") as file:
        yield file


def _check_target(given: PathLike, final: Path, sources: Iterable[PathLike]) -> None:
    """Refuse a target that cannot be a new file or that is one of the sources."""
    text = os.fspath(given)
    if not text or text.endswith(("/", os.sep)) or not final.name:
        raise OptionError(f"{text!r}: expected the name of a file")
    if "\0" in text:
        raise OptionError(f"{text!r}: a file name cannot contain a null character")
    if not final.parent.is_dir():
        raise OptionError(f"{text}: the directory {final.parent} does not exist")
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
    for source in sources:
        if _is_same(status, source):
            raise OptionError(f"{text}: is the same file as the source {os.fspath(source)}")


def _is_same(status: os.stat_result, source: PathLike) -> bool:
    try:
        return os.path.samestat(status, os.stat(source))
    except (OSError, ValueError):
        return False


def _staging_directory(parent: Path) -> Path:
    try:
        return Path(tempfile.mkdtemp(prefix=".serde-", dir=parent))
    except OSError as error:
        raise OptionError(f"{parent}: cannot be written to: {error.strerror}") from None


def _commit(staged: Sequence[Path], finals: Sequence[Path]) -> None:
    missing = [path.name for path in staged if not path.is_file()]
    if missing:
        raise FileNotFoundError(errno.ENOENT, "was never written", missing[0])
    for source, final in zip(staged, finals, strict=True):
        os.replace(source, final)


def _sync(paths: Iterable[Path]) -> None:
    for path in paths:
        fd = os.open(path, os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


def write_all(fd: int, data: bytes | bytearray | memoryview) -> None:
    """Write all of `data` at the position of `fd`."""
    view = memoryview(data).cast("B")
    done = 0
    while done < len(view):
        done += os.write(fd, view[done : done + CHUNK_BYTES])


def copy_range(source: FileRange, fd: int) -> None:
    """Append the bytes of a file range at the position of `fd`.

    The kernel copies them where it can, else they pass through a small
    buffer.

    Raises:
        FormatError: The file changed or shrank.
    """
    with source.open() as opened:
        done = 0
        for copy in (_copy_file_range, _sendfile):
            done += copy(opened.fd, fd, source.offset + done, source.length - done)
        _copy_buffered(opened, fd, source.offset + done, source.length - done)
        status = os.fstat(opened.fd)
        if (status.st_size, status.st_mtime_ns) != opened.stamp[2:]:
            raise FormatError("the file changed while it was being read", path=source.path)


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
        written = 0
        for chunk in weight.chunks():
            write_all(fd, chunk)
            written += len(chunk)
    if written != weight.nbytes:
        raise FormatError(f"parameter {name}: expected {weight.nbytes} bytes, found {written}")


def _copy_file_range(source: int, target: int, offset: int, length: int) -> int:
    """Return how many bytes the file systems moved between themselves."""
    if not hasattr(os, "copy_file_range"):
        return 0
    return _by_kernel(
        lambda start, count: os.copy_file_range(source, target, count, start), offset, length
    )


def _sendfile(source: int, target: int, offset: int, length: int) -> int:
    """Return how many bytes the kernel moved through its page cache."""
    if not hasattr(os, "sendfile"):
        return 0
    return _by_kernel(
        lambda start, count: os.sendfile(target, source, start, count), offset, length
    )


def _by_kernel(copy: Callable[[int, int], int], offset: int, length: int) -> int:
    done = 0
    while done < length:
        try:
            count = copy(offset + done, min(_STEP, length - done))
        except OSError as error:
            if error.errno in _CANNOT_COPY:
                break
            raise
        if count == 0:
            break
        done += count
    return done


def _copy_buffered(opened: OpenFile, fd: int, offset: int, length: int) -> None:
    buffer = memoryview(bytearray(min(_BUFFER, length)))
    done = 0
    while done < length:
        part = buffer[: min(len(buffer), length - done)]
        opened.read_into(part, offset + done)
        write_all(fd, part)
        done += len(part)
