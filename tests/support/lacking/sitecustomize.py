"""Takes from Python what POSIX or Linux alone has, and lets files behave as on Windows.

A folder of its own, which stands first in PYTHONPATH: so every interpreter that is started begins
with it, those that serde starts as well, before anything else is imported. ``SERDE_LACKING`` says
as where it is: "windows", or "browser", where there are neither locks, threads nor processes.
"""

import builtins
import os
import signal
import subprocess
import sys
import threading
import types
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import wraps
from typing import Any

FUNCTIONS = (
    *("preadv", "pread", "pwritev", "pwrite", "readv", "writev", "link", "fork", "forkpty"),
    *("copy_file_range", "sendfile", "splice", "memfd_create", "eventfd", "killpg", "setsid"),
    *("geteuid", "getuid", "getegid", "getgid", "getpgid", "setpgid", "sched_getaffinity"),
    *("waitid", "wait3", "wait4", "fchmod", "fchown", "chown", "lchown", "mkfifo", "mknod"),
    *("posix_fallocate", "posix_fadvise", "fdatasync", "getloadavg", "sysconf"),
)
FLAGS = ("O_NOFOLLOW", "O_DIRECTORY", "O_CLOEXEC", "O_NONBLOCK", "O_PATH", "O_SYNC", "O_DSYNC")
SIGNALS = (
    *("SIGKILL", "SIGCHLD", "SIGPROF", "SIGALRM", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGPIPE"),
    *("SIGBUS", "SIGSTOP", "SIGCONT", "setitimer", "alarm", "pthread_sigmask"),
)
MODULES = ("resource", "termios", "pwd", "grp", "fcntl")
NOT_IN_A_BROWSER = (
    *(
        "lzma",
        "_lzma",
        "ssl",
        "_ssl",
        "sqlite3",
        "_sqlite3",
        "_multiprocessing",
        "_posixsubprocess",
    ),
    *("click", "rich", "onnxruntime", "coremltools", "nnef", "mxnet", "torch", "tvm"),
)
WITHIN = ("open", "stat", "unlink", "remove", "rmdir", "mkdir", "rename", "replace", "readlink")
TEXT_MODE = 1 << 29
"""What Windows calls ``O_BINARY``; without it the bytes of a file are not what they are."""

real_open = open
real = types.SimpleNamespace(
    **{name: getattr(os, name) for name in (*WITHIN, "scandir", "listdir", "kill", "fstat")}
)


def main() -> None:
    where = os.environ["SERDE_LACKING"]
    locks = _locks()
    for name in FUNCTIONS + FLAGS:
        delattr(os, name)
    for name in SIGNALS:
        delattr(signal, name)
    for name in MODULES:
        sys.modules[name] = None  # type: ignore[assignment]
    if where == "windows":
        sys.modules["msvcrt"] = locks
    else:
        assert where == "browser"
        _take_what_no_browser_has()
    os.O_BINARY = TEXT_MODE  # type: ignore[attr-defined]
    os.process_cpu_count = os.cpu_count  # type: ignore[attr-defined]
    for kinds in (os.supports_dir_fd, os.supports_fd):
        kinds.clear()
    for name in WITHIN:
        setattr(os, name, _without_descriptors(getattr(real, name)))
    os.open = _opening_in_text_mode(os.open)
    os.scandir = _by_path(os.scandir)
    os.listdir = _by_path(os.listdir)
    for name in ("unlink", "remove", "rmdir", "rename", "replace"):
        setattr(os, name, _refusing_open_files(getattr(os, name)))
    builtins.open = _without_proc(builtins.open)
    # TerminateProcess, which needs no signal.
    subprocess.Popen.kill = lambda self: None if self.poll() is not None else real.kill(self.pid, 9)
    _take_from_ctypes()


def _take_what_no_browser_has() -> None:
    for name in NOT_IN_A_BROWSER:
        sys.modules[name] = None  # type: ignore[assignment]

    def start(_self: object) -> None:
        raise RuntimeError("can't start new thread")

    def run(_self: object, *_args: object, **_given: object) -> None:
        raise OSError(138, "emscripten does not support processes.")

    threading.Thread.start = start  # type: ignore[method-assign]
    subprocess.Popen.__init__ = run  # type: ignore[method-assign]


def _locks() -> types.ModuleType:
    """Windows' locks, made of those of POSIX, which behave alike for who holds none for itself."""
    import fcntl

    flock, mode = fcntl.flock, fcntl.LOCK_EX | fcntl.LOCK_NB

    def locking(fd: int, kind: int, count: int) -> None:
        assert (kind, count) == (2, 1)
        try:
            flock(fd, mode)
        except BlockingIOError:
            raise PermissionError(13, "Permission denied") from None

    module = types.ModuleType("msvcrt")
    module.LK_NBLCK, module.locking = 2, locking  # type: ignore[attr-defined]
    return module


def _without_descriptors(call: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(call)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        if any(kwargs.get(name) is not None for name in ("dir_fd", "src_dir_fd", "dst_dir_fd")):
            raise NotImplementedError("dir_fd unavailable on this platform")
        return call(*args, **kwargs)

    return wrapped


def _opening_in_text_mode(call: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(call)
    def wrapped(path: Any, flags: int, *args: Any, **kwargs: Any) -> Any:
        if os.path.isdir(path):
            raise PermissionError(13, "Permission denied", path)
        opened = call(path, flags & ~TEXT_MODE, *args, **kwargs)
        if not flags & (TEXT_MODE | os.O_WRONLY | os.O_RDWR):
            os.close(opened)
            raise AssertionError(f"{path}: is read without O_BINARY")
        return opened

    return wrapped


def _by_path(call: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(call)
    def wrapped(path: Any = ".") -> Any:
        if isinstance(path, int):
            raise TypeError("path should be string, bytes, os.PathLike or None, not int")
        return call(path)

    return wrapped


def _refusing_open_files(call: Callable[..., Any]) -> Callable[..., Any]:
    """Neither a file that this process or one of its own has open, nor a folder of one, goes.

    What tempfile removes at once is removed by Windows when it is closed.
    """

    @wraps(call)
    def wrapped(*paths: Any, **kwargs: Any) -> Any:
        asked = sys._getframe(1).f_globals.get("__name__")
        for path in paths if asked != "tempfile" else ():
            if _is_open(os.path.abspath(os.fspath(path))):
                raise PermissionError(13, "is being used by another process", os.fspath(path))
        return call(*paths, **kwargs)

    return wrapped


def _is_open(path: str) -> bool:
    folder = os.path.realpath(os.path.dirname(path))
    place = os.path.join(folder, os.path.basename(path))
    for process in ("self", *_processes_of("self")):
        for target in _files_of(process):
            if target == place or target.startswith(f"{place}/"):
                return True
    return False


def _processes_of(process: str) -> Iterator[str]:
    """Yield the numbers of the processes that one has started, and those of these."""
    with suppress(OSError):
        for thread in real.listdir(f"/proc/{process}/task"):
            with real_open(f"/proc/{process}/task/{thread}/children") as file:
                for each in file.read().split():
                    yield each
                    yield from _processes_of(each)


def _files_of(process: str) -> Iterator[str]:
    """Yield the files that a process has open, or mapped into memory."""
    with suppress(OSError):
        for number in real.listdir(f"/proc/{process}/fd"):
            with suppress(OSError):
                yield real.readlink(f"/proc/{process}/fd/{number}")
        with real_open(f"/proc/{process}/maps") as file:
            for line in file:
                yield line.rstrip("\n").split(maxsplit=5)[-1]


def _without_proc(call: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(call)
    def wrapped(file: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(file, (str, os.PathLike)) and os.fspath(file).startswith("/proc"):
            raise FileNotFoundError(2, "No such file or directory", os.fspath(file))
        return call(file, *args, **kwargs)

    return wrapped


def _take_from_ctypes() -> None:
    """No functions of the process itself, as Windows has none: prctl and Landlock with them."""
    import ctypes

    class Library(ctypes.CDLL):
        def __init__(self, name: Any, *args: Any, **kwargs: Any) -> None:
            if name is None:
                raise TypeError("argument of type 'NoneType' is not iterable")
            super().__init__(name, *args, **kwargs)

    ctypes.CDLL = Library  # type: ignore[misc]


main()
