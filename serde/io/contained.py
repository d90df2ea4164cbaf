"""Paths: those that a file names must stay in its directory; and whether something stands at one.

``os.path`` takes what it cannot look at for missing: a file beside a model would then be left out
without a word, and one of others replaced.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from typing import Final

from serde.core.systems import name_fault
from serde.core.weights import OpenFile
from serde.errors import FormatError

__all__ = ["is_file", "is_there", "location_fault", "member_path", "read_small"]

_MISSING: Final = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG, errno.ELOOP})
_DRIVE = re.compile(r"[A-Za-z]:")


def location_fault(location: str, *, on_disk: bool = True) -> str | None:
    """Return what makes a location unusable: it must be a plain relative path.

    Args:
        location: The path.
        on_disk: Whether it is that of a file, which has a name that this system allows.
    """
    parts = re.split(r"[/\\]", location)
    if not location:
        return "is empty"
    if "\0" in location:
        return "contains a null character"
    if not parts[0]:
        return "is an absolute path"
    if _DRIVE.match(location):
        return "names a drive"
    if ".." in parts:
        return "leaves the directory of the model"
    return next(filter(None, map(name_fault, parts)), None) if on_disk else None


def member_path(root: str, location: str) -> str:
    """Return the path of a member of a package, on the way to which there is no link.

    Args:
        root: The package, a directory.
        location: Where in it, as the package's own files say.

    Raises:
        FormatError: It leaves the package, is not there or goes through a symbolic link.
    """
    fault = location_fault(location)
    if fault is not None:
        raise FormatError(f"location {location!r} {fault}", path=root)
    path = root
    for part in location.split("/"):
        path = os.path.join(path, part)
        try:
            mode = os.lstat(path).st_mode
        except OSError as error:
            raise FormatError(f"{location!r}: {error.strerror}", path=root) from None
        if stat.S_ISLNK(mode):
            raise FormatError(f"{location!r} goes through a symbolic link", path=root)
    return path


def read_small(
    path: str | os.PathLike[str] | OpenFile, limit: int, expected: str | None = None
) -> bytes:
    """Return the content of a regular file, which may have `limit` bytes.

    Args:
        path: The file, or what it is open as, which is closed then.
        limit: How many bytes it may have.
        expected: What a refusal says was expected; so many bytes if left out.

    Raises:
        FormatError: It has more, is no regular file or cannot be read.
    """
    with path if isinstance(path, OpenFile) else OpenFile.open(path) as opened:
        if opened.size > limit:
            wanted = expected or f"at most {limit} bytes"
            raise FormatError(f"expected {wanted}, found {opened.size}", path=opened.path)
        buffer = bytearray(opened.size)
        opened.read_into(buffer, 0)
    return bytes(buffer)


def is_there(path: str | os.PathLike[str]) -> bool:
    """Whether there is anything at a path, be it a link that leads nowhere.

    Raises:
        OSError: The system cannot tell.
    """
    return _status(path, follow=False) is not None


def is_file(path: str | os.PathLike[str]) -> bool:
    """Whether there is a regular file at a path, or a link to one.

    Raises:
        OSError: The system cannot tell.
    """
    status = _status(path, follow=True)
    return status is not None and stat.S_ISREG(status.st_mode)


def _status(path: str | os.PathLike[str], *, follow: bool) -> os.stat_result | None:
    try:
        return os.stat(path, follow_symlinks=follow)
    except OSError as error:
        if error.errno not in _MISSING:
            raise
    except ValueError:
        pass  # A null character, which no name has.
    return None
