"""Keeps the process of a model to its sources and its target, by Landlock of Linux 5.13 and newer.

What a process may do to files and the network is narrowed for it and all that it starts, and no
one can widen it again: it needs no rights and no package. The system calls and the layout of what
they are given are those of linux/landlock.h; a kernel says which version of them it has.
"""

from __future__ import annotations

import ctypes
import os
import stat
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any as AnyValue, Final

from serde.core.systems import c_library

__all__ = ["has_landlock", "needed", "restrict_model", "restrict_to"]

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION: Final = 1
_BENEATH: Final = 1
_NO_NEW_PRIVILEGES: Final = 38

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1, 1 << 1, 1 << 2, 1 << 3
_REFER, _TRUNCATE, _IOCTL = 1 << 13, 1 << 14, 1 << 15
_SINCE: Final = {_REFER: 2, _TRUNCATE: 3, _IOCTL: 5}
_READS: Final = _EXECUTE | _READ_FILE | _READ_DIR
_WRITES: Final = _READS | _WRITE_FILE | _REFER | _TRUNCATE | 0b1_1011_0000
"""Also to make and remove files and directories."""
_OF_FILES: Final = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL
_ALL: Final = (1 << 16) - 1
_TCP: Final = 0b11
_SIGNALS_AND_SOCKETS: Final = 0b11

_SYSTEM: Final = (
    *("/usr", "/lib", "/lib64", "/bin", "/sbin", "/proc", "/sys/devices/system", "/dev/urandom"),
    *("/etc/ld.so.cache", "/etc/localtime", "/etc/alternatives"),
)
_DEVICES: Final = ("/dev/null", "/dev/zero", "/dev/full")


def has_landlock() -> bool:
    """Whether the kernel can keep a process to some files."""
    return _version() > 0


def restrict_model(request: Mapping[str, AnyValue]) -> None:
    """Keep this process to what the conversion of a model needs, as a request of a batch has it.

    It may read the system's and Python's own files, the folders of its sources and what its options
    name; write in the folder of its target and in ``scratch``, which is its folder for temporary
    files from here on; and reach no network. Models that need the same may follow.
    """
    os.environ["TMPDIR"] = tempfile.tempdir = request["scratch"]
    Path(request["folder"], request["target"]).parent.mkdir(parents=True, exist_ok=True)
    _restrict_once(request["folder"], *needed(request))


def needed(request: Mapping[str, AnyValue]) -> tuple[tuple[Path, ...], tuple[Path, ...]]:
    """Return what a model needs to read, besides Python and the system, and where to write."""
    base = Path(request["folder"])
    sources = [base / each for each in request["sources"]]
    sources += [Path(os.path.realpath(each)) for each in sources]
    folders = dict.fromkeys(each if each.is_dir() else each.parent for each in sources)
    options = [base / each for each in _paths_in(request["options"])]
    return (*folders, *options), ((base / request["target"]).parent, Path(request["scratch"]))


@cache
def _restrict_once(folder: str, reads: tuple[Path, ...], writes: tuple[Path, ...]) -> None:
    """Keep this process to some places, for which the kernel needs to be asked but once."""
    restrict_to([*_own_places(Path(folder)), *reads], writes)


def restrict_to(reads: Iterable[str | Path], writes: Iterable[str | Path]) -> None:
    """Keep this thread, and what it starts, to places of the file system, and off the network.

    Args:
        reads: What may be read and run; of a directory, all beneath it. What is not there is none.
        writes: Directories and files that may be written, too.

    Raises:
        OSError: The kernel refuses.
    """
    version = _version()
    known = _ALL & ~sum(right for right, since in _SINCE.items() if version < since)
    sizes = ((6, 3), (4, 2), (0, 1))
    words = next(count for least, count in sizes if version >= least)
    attributes = (ctypes.c_uint64 * words)(*(known, _TCP, _SIGNALS_AND_SOCKETS)[:words])
    rules = _call(_CREATE_RULESET, attributes, ctypes.sizeof(attributes), 0)
    try:
        for place in reads:
            _allow(rules, place, _READS & known)
        for place in (*writes, *_DEVICES):
            _allow(rules, place, _WRITES & known)
        if c_library().prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0):
            raise OSError(ctypes.get_errno(), "prctl")
        _call(_RESTRICT_SELF, rules, 0)
    finally:
        os.close(rules)


def _version() -> int:
    """Return the version of Landlock's system calls; 0 where there are none."""
    if sys.platform != "linux" or c_library() is None:
        return 0
    try:
        return _call(_CREATE_RULESET, None, 0, _VERSION)
    except OSError:
        return 0


def _call(number: int, *arguments: AnyValue) -> int:
    longs = [ctypes.c_long(each) if isinstance(each, int) else each for each in arguments]
    result = int(c_library().syscall(ctypes.c_long(number), *longs))
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def _allow(rules: int, place: str | Path, rights: int) -> None:
    try:
        opened = os.open(place, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        if not stat.S_ISDIR(os.fstat(opened).st_mode):
            rights &= _OF_FILES
        rule = rights.to_bytes(8, sys.byteorder) + opened.to_bytes(4, sys.byteorder)
        _call(_ADD_RULE, rules, _BENEATH, ctypes.create_string_buffer(rule, 12), 0)
    finally:
        os.close(opened)


def _own_places(base: Path) -> Iterator[str]:
    """Yield what Python and the system need, but not the folder that relative paths start from."""
    yield from _SYSTEM
    yield from (sys.prefix, sys.base_prefix, str(Path(__file__).parents[3]))
    yield from (each for each in sys.path if os.path.isabs(each) and Path(each) != base)


def _paths_in(value: AnyValue) -> Iterator[str]:
    """Yield the texts in options: any may name a file."""
    if isinstance(value, str):
        if value and "\0" not in value:
            yield value
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from _paths_in(each)
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from _paths_in(each)
