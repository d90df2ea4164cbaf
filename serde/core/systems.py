"""What systems differ in: reads at a position, locks, second names of files, names that are none.

POSIX, or Linux alone, has much that Windows, macOS and Python in a browser lack. What does for it
there stands here, so that the rest of serde need not ask where it runs.
"""

from __future__ import annotations

import io
import os
import re
import shutil
import stat
import sys
import tempfile
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any as AnyValue, Final

__all__ = [
    "DEVICES", "c_library", "has_descriptors", "has_fork_server", "has_owners", "ignores_case",
    "is_plain_directory", "keep", "local_path", "name_fault", "open_to_read", "read_at",
    "try_lock",
]  # fmt: skip

DEVICES: Final = re.compile(
    r"(con|prn|aux|nul|conin\$|conout\$|(com|lpt)[1-9¹²³])( *\..*)?", re.IGNORECASE
)
"""Names that Windows has for devices, whatever their suffix."""

_NOT_IN_NAMES: Final = re.compile(r'[\x00-\x1f<>:"|?*]')
_ROOTED_DRIVE: Final = re.compile(r"/[A-Za-z]:(/|$)")
_WINDOWS: Final = os.name == "nt"
_POSITION: Final = threading.Lock()
"""Held while the position of an open file counts, which its duplicates share."""


def open_to_read(path: str | os.PathLike[str]) -> int:
    """Return a descriptor of a file, for its bytes as they are; a FIFO is not waited for.

    Raises:
        OSError: It cannot be opened.
    """
    names = ("O_BINARY", "O_CLOEXEC", "O_NOINHERIT", "O_NONBLOCK")
    flags = [getattr(os, name, 0) for name in names]
    return os.open(path, os.O_RDONLY | sum(flags))


def read_at(fd: int, part: memoryview, offset: int) -> int:
    """Read into `part` from a position of an open file; return how many bytes there were.

    Raises:
        OSError: They cannot be read.
    """
    if hasattr(os, "preadv"):
        return os.preadv(fd, [part], offset)
    if hasattr(os, "pread"):
        data = os.pread(fd, len(part), offset)
        part[: len(data)] = data
        return len(data)
    with _POSITION:
        os.lseek(fd, offset, os.SEEK_SET)
        with io.FileIO(fd, closefd=False) as file:
            return file.readinto(part) or 0


def try_lock(fd: int) -> bool | None:
    """Return whether a file was locked until this process ends or closes it.

    None where there are no locks.
    """
    try:
        import fcntl
    except ImportError:
        return _try_windows_lock(fd)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def _try_windows_lock(fd: int) -> bool | None:
    try:
        import msvcrt
    except ImportError:  # In a browser, where nobody else runs.
        return None
    windows: AnyValue = msvcrt
    try:
        windows.locking(fd, windows.LK_NBLCK, 1)
    except OSError:
        return False
    return True


def has_descriptors() -> bool:
    """Whether directories can be open, and names be taken within them.

    Emscripten has such calls, but not all that goes with them.
    """
    return has_owners() and {os.open, os.stat, os.unlink} <= os.supports_dir_fd


def has_owners() -> bool:
    """Whether files tell which user made them."""
    return hasattr(os, "geteuid")


def is_plain_directory(path: str | os.PathLike[str]) -> bool:
    """Whether a path is that of a directory, and neither a link nor a junction to one.

    Raises:
        OSError: There is nothing.
    """
    status = os.lstat(path)
    return stat.S_ISDIR(status.st_mode) and not getattr(status, "st_reparse_tag", 0)


def keep(path: Path, kept: Path) -> None:
    """Give a file a second name, or make a copy of it where there are no such names.

    Raises:
        OSError: Neither can be.
    """
    with suppress(AttributeError, NotImplementedError, OSError):
        os.link(path, kept, follow_symlinks=False)
        return
    if path.is_symlink() or path.is_file():
        shutil.copy2(path, kept, follow_symlinks=False)


def c_library() -> AnyValue:
    """Return the functions of the C library; None where they cannot be called by their names."""
    with suppress(ImportError, OSError, TypeError):
        import ctypes

        return ctypes.CDLL(None, use_errno=True)
    return None


def has_fork_server() -> bool:
    """Whether processes are forked for models, under limits: on Linux alone that is safe."""
    return sys.platform == "linux" and all(
        hasattr(os, name) for name in ("fork", "memfd_create", "waitid", "killpg")
    )


def local_path(path: str) -> str:
    """Return a path of this machine with slashes between its parts; of a URL, without the first."""
    plain = path.replace(os.sep, "/")
    return plain[1:] if _WINDOWS and _ROOTED_DRIVE.match(plain) else plain


def name_fault(name: str) -> str | None:
    """Return why no file of this system can have a name: one of the parts of a path."""
    if not _WINDOWS:
        return None
    if DEVICES.fullmatch(name):
        return "is a device of Windows"
    if name.endswith((".", " ")) and name not in (os.curdir, os.pardir):
        return "ends in a dot or a blank, which Windows leaves out"
    if _NOT_IN_NAMES.search(name):
        return "has a sign that no name has on Windows"
    return None


def ignores_case(folder: Path) -> bool:
    """Whether names in a directory are the same that differ by upper and lower case alone."""
    with (
        suppress(OSError),
        tempfile.NamedTemporaryFile(prefix=".serde-probe-", dir=folder) as probe,
    ):
        return Path(probe.name).with_name(Path(probe.name).name.upper()).exists()
    return False
