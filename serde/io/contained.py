"""Paths that a file names: they must stay in the directory that it is in."""

from __future__ import annotations

import os
import re
import stat

from serde.errors import FormatError

__all__ = ["location_fault", "member_path"]

_DRIVE = re.compile(r"[A-Za-z]:")


def location_fault(location: str) -> str | None:
    """Return what makes a location unusable: it must be a plain relative path."""
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
    return None


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
