"""What a source or target looks like from outside, to tell whether it has to be read again."""

from __future__ import annotations

import bisect
import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any as AnyValue

__all__ = ["Looks", "identity", "seal"]


class Looks:
    """What files look like; each directory is listed once in a run.

    Beside what the system says of each file it is kept which names there are beside the first
    that begin as it does, since a format may find more files of a model by their names.
    """

    def __init__(self) -> None:
        self._names: dict[str, list[str]] = {}

    def of(self, sources: Sequence[str], files: Sequence[Sequence[AnyValue]]) -> str:
        """Return what a source looks like.

        Args:
            sources: Its paths.
            files: Path, size, time of change and number of each of its files, as they were
                before they were read.
        """
        if not files:
            return ""
        return json.dumps({"files": files, "beside": self._beside(sources[0])})

    def holds(self, look: str, sources: Sequence[str]) -> bool:
        """Whether a source still looks as it did."""
        if not look:
            return False
        known = json.loads(look)
        return all(identity(each[0]) == each for each in known["files"]) and known[
            "beside"
        ] == self._beside(sources[0])

    def _beside(self, path: str) -> str:
        """Return a digest of the names in the folder of a path that begin as it does."""
        folder, name = os.path.split(path.rstrip("/"))
        if folder not in self._names:
            with suppress(OSError):
                self._names[folder] = sorted(os.listdir(folder or os.curdir))
        names = self._names.get(folder, [])
        stem = name.partition(".")[0].rpartition("-")[0] or name.partition(".")[0]
        found = hashlib.blake2b(digest_size=8)
        for each in _starting(names, stem):
            found.update(each.encode(errors="surrogateescape") + b"\0")
        return found.hexdigest()


def _starting(names: list[str], stem: str) -> Iterator[str]:
    """Yield the names that begin so, of names in order."""
    for index in range(bisect.bisect_left(names, stem), len(names)):
        if not names[index].startswith(stem):
            return
        yield names[index]


def identity(path: str) -> list[AnyValue] | None:
    """Return what changes with a file, None if there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return [path, found.st_size, found.st_mtime_ns, found.st_ino]


def seal(target: str) -> str:
    """Return what a target looks like, empty if it is not there."""
    files = [target]
    if os.path.isdir(target):
        found = os.walk(target)
        files = sorted(os.path.join(folder, name) for folder, _, names in found for name in names)
    known = [identity(each) for each in files]
    return (
        ""
        if None in known or not known
        else hashlib.blake2b(json.dumps(known).encode(), digest_size=16).hexdigest()
    )
