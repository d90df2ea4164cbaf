"""Faults of the operating system: the n-th call of a function that concerns a folder fails.

``faults.c`` beside this file catches every system call of the thread, those of C libraries
included. It needs a compiler, Linux and a processor of the x86-64 family.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

SOURCE: Final = Path(__file__).with_suffix(".c")

_NAMES: Final = {
    0: "read", 1: "write", 2: "open", 3: "close", 4: "stat", 5: "fstat", 6: "lstat", 8: "lseek",
    9: "mmap", 17: "pread", 18: "pwrite", 19: "readv", 20: "writev", 21: "access", 32: "dup",
    40: "sendfile", 72: "fcntl", 73: "flock", 74: "fsync", 75: "fdatasync", 76: "truncate",
    77: "ftruncate", 82: "rename", 83: "mkdir", 84: "rmdir", 85: "creat", 86: "link",
    87: "unlink", 88: "symlink", 89: "readlink", 90: "chmod", 91: "fchmod", 217: "getdents",
    221: "fadvise", 257: "open", 258: "mkdir", 262: "stat", 263: "unlink", 264: "rename",
    265: "link", 266: "symlink", 267: "readlink", 268: "chmod", 269: "access", 285: "fallocate",
    295: "preadv", 296: "pwritev", 316: "rename", 326: "copy_file_range", 327: "preadv",
    328: "pwritev", 332: "stat", 439: "access",
}  # fmt: skip
"""System calls of x86-64, by what they do."""

_MOVING: Final = frozenset(
    ("read", "write", "pread", "pwrite", "readv", "writev", "preadv", "pwritev", "sendfile",
     "copy_file_range")
)  # fmt: skip
_READING: Final = ("EIO", "EINTR")
_WRITING: Final = ("ENOSPC", "EIO", "EINTR")
_CHANGING: Final = ("ENOSPC", "EACCES", "EIO")
_ERRORS: Final = {
    "open": ("EACCES", "EIO", "EINTR", "EMFILE"), "creat": ("EACCES", "ENOSPC"),
    "read": _READING, "pread": _READING, "readv": _READING, "preadv": _READING,
    "write": _WRITING, "pwrite": _WRITING, "writev": _WRITING, "pwritev": _WRITING,
    "sendfile": _WRITING, "copy_file_range": _WRITING,
    "mkdir": _CHANGING, "rename": _CHANGING, "link": _CHANGING, "symlink": _CHANGING,
    "fallocate": _WRITING, "ftruncate": ("EIO", "EINTR"), "truncate": ("EIO", "EINTR"),
    "dup": ("EMFILE",), "fcntl": ("EMFILE",), "flock": ("ENOLCK", "EINTR"), "mmap": ("ENOMEM",),
    "close": ("EIO", "ENOSPC"), "fsync": ("EIO", "ENOSPC"), "fdatasync": ("EIO",),
    "fstat": ("EIO",), "lseek": ("EIO",),
    "getdents": ("EIO",), "fadvise": ("EIO",),
}  # fmt: skip
"""What a call may answer; one that is not named, what concerns permission and the disk."""
_OTHERS: Final = ("EACCES", "EIO")

_ACTIONS: Final = (
    "none", "error", "full", "short", "kill before", "kill after", "shrink",
)  # fmt: skip


@dataclass(frozen=True)
class SystemCall:
    """A call that concerned the folder.

    Attributes:
        name: What it does.
        path: Where.
        fills: Whether it needs room on the disk.
    """

    name: str
    path: str
    fills: bool

    def errors(self) -> tuple[str, ...]:
        """The errors that it may answer with."""
        found = _ERRORS.get(self.name, _OTHERS)
        return (*found, "ENOSPC") if self.fills and "ENOSPC" not in found else found


@dataclass(frozen=True)
class Fault:
    """What happens to a call.

    Attributes:
        action: ``error``: it answers with one; ``full``: it and all that need room on the disk
            answer with one; ``short``: it moves half of what it should; ``kill before`` and
            ``kill after``: the process is killed; ``shrink``: a file is cut to half beforehand.
        at: Which call that concerns the folder.
        error: Name of the error.
        file: The file that shrinks.
    """

    action: str
    at: int
    error: str = ""
    file: str = ""

    def __str__(self) -> str:
        what = self.error or os.path.basename(self.file)
        return f"{self.action} {what}".strip() + f" at call {self.at}"


def can_inject() -> str:
    """Return why faults cannot be made here; nothing if they can."""
    if not sys.platform.startswith("linux") or platform.machine() != "x86_64":
        return "system calls are caught on Linux and x86-64 only"
    return "" if shutil.which("cc") else "there is no C compiler"


class Faults:
    """Runs functions with faults in the calls that concern a folder.

    Args:
        folder: The folder.
        library: Where the library is made.

    Raises:
        OSError: The kernel is one that cannot catch system calls.
    """

    def __init__(self, folder: Path, library: Path) -> None:
        flags = ["-O1", "-fPIC", "-shared", "-fno-stack-protector"]
        subprocess.run(["cc", *flags, "-o", str(library), str(SOURCE)], check=True)
        self._library = ctypes.CDLL(str(library))
        self._library.logged_path.restype = ctypes.c_char_p
        self._lost = ctypes.c_int.in_dll(self._library, "lost")
        self._hit = ctypes.c_int.in_dll(self._library, "hit")
        self._folder = os.fsencode(os.path.realpath(folder))
        self._prepare()

    def _prepare(self) -> None:
        result = self._library.prepare(self._folder)
        if result < 0:
            raise OSError(-result, os.strerror(-result))

    def _arm(self, fault: Fault) -> None:
        number = getattr(errno, fault.error) if fault.error else 0
        if fault.action == "shrink":
            number = os.stat(fault.file).st_size // 2
        file = os.fsencode(fault.file)
        self._library.arm(_ACTIONS.index(fault.action), fault.at, number, file)

    def record(self, function: Callable[[], Any]) -> list[SystemCall]:
        """Return the calls of a function that concern the folder."""
        self._arm(Fault("none", 0))
        try:
            function()
        finally:
            count = self._library.disarm()
        assert not self._lost.value, "a process was started, and calls after it went unseen"
        own = self._library
        return [
            SystemCall(
                _NAMES[own.logged_number(index)],
                os.fsdecode(own.logged_path(index)),
                bool(own.logged_fills(index)),
            )
            for index in range(count)
        ]

    def run(self, fault: Fault, function: Callable[[], Any]) -> bool:
        """Run a function with a fault; return whether it came to that."""
        self._arm(fault)
        try:
            function()
        finally:
            self._library.disarm()
            assert self._hit.value or not self._lost.value, f"{fault}: a process came first"
        return bool(self._hit.value)

    def run_killed(self, fault: Fault, function: Callable[[], Any]) -> bool:
        """Run a function in a process of its own, which a fault kills; return whether it did."""
        child = os.fork()
        if not child:
            code = 0
            try:
                self._prepare()
                self._arm(fault)
                function()
            except BaseException:
                code = 1
            finally:
                self._library.disarm()
                os._exit(code)
        _, status = os.waitpid(child, 0)
        assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0, f"{fault}: failed"
        return os.WIFSIGNALED(status)


def faults_of(calls: Sequence[SystemCall], sources: Sequence[Path]) -> Iterator[Fault]:
    """Yield everything that can go wrong once, the process left alive."""
    for at, call in enumerate(calls):
        for error in call.errors():
            yield Fault("error", at, error)
        if call.name in _MOVING:
            yield Fault("short", at)
        if call.fills:
            yield Fault("full", at, "ENOSPC")
        for source in sources:
            yield Fault("shrink", at, file=os.fspath(source))


def kills_of(calls: Sequence[SystemCall]) -> Iterator[Fault]:
    """Yield every moment at which the process can be killed."""
    for at in range(len(calls)):
        yield Fault("kill after", at)
        if at == 0 or calls[at].name in ("rename", "unlink", "rmdir"):
            yield Fault("kill before", at)


def contents(folder: Path) -> dict[str, tuple[str, bytes, int]]:
    """Return all that is in a folder: its kind, bytes and mode."""
    found = {}
    for root, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = Path(root) / name
            kind = "link" if path.is_symlink() else "folder" if path.is_dir() else "file"
            data = path.read_bytes() if kind == "file" else b""
            found[os.fspath(path.relative_to(folder))] = (kind, data, path.lstat().st_mode)
    return found


def descriptors() -> list[str]:
    """Return what is open, as far as it is a file."""
    found = []
    for each in os.listdir("/proc/self/fd"):
        try:
            found.append(os.readlink(f"/proc/self/fd/{each}"))
        except FileNotFoundError:
            continue  # That of the listing itself.
    return sorted(each for each in found if each.startswith("/") and not each.endswith("/fd"))
