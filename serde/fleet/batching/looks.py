"""What sources and targets look like from outside, to tell whether they have to be read again.

Files of this machine are told apart by size, time of change and number, objects of stores by size
and checksum. With them goes what else there is beside the first whose name begins as its does,
for a format may find more files of a model by their names.
"""

from __future__ import annotations

import bisect
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any as AnyValue

from serde.core.parsing import parse_json
from serde.errors import SerdeError
from serde.fleet.stores.listing import expand, short_digest, stem_of
from serde.fleet.stores.store import open_store
from serde.fleet.stores.urls import Address
from serde.io.staging import files_in

__all__ = ["Looks", "identity"]

Identity = list[AnyValue]
"""A path or URL, its size, and what changes with its content."""


def identity(path: str) -> Identity | None:
    """Return what changes with a file of this machine; None if there is none."""
    try:
        found = os.stat(path)
    except (OSError, ValueError):  # The latter of what can be no path.
        return None
    return [path, found.st_size, f"{found.st_mtime_ns:x}-{found.st_ino:x}"]


class Looks:
    """What files and objects look like; a local directory is listed once.

    Args:
        storage: What ``fsspec`` is given.
    """

    def __init__(self, storage: Mapping[str, AnyValue]) -> None:
        self._storage = storage
        self._names: dict[str, list[str]] = {}

    def of(self, sources: Sequence[str], files: Iterable[str | Identity | None]) -> str:
        """Return what a source looks like, empty where that cannot be told.

        Args:
            sources: Its paths or URLs.
            files: The same of all its files, or what they looked like before they were read.
        """
        known = [self._identity(each) if isinstance(each, str) else each for each in files]
        if not known or None in known:
            return ""
        return json.dumps({"files": known, "beside": self._beside(sources[0])})

    def holds(self, look: str, sources: Sequence[str]) -> bool:
        """Whether a source still looks as it did."""
        try:
            known = [each[0] for each in parse_json(look)["files"]]
        except (ValueError, LookupError, TypeError):
            return False  # Whoever made the ledger wrote it; empty where it is not known.
        return _are_beside(known, sources) and self.of(sources, known) == look

    def seal(self, target: str) -> str:
        """Return what a target looks like, empty if it is not there."""
        if Address.of(target).protocol:
            return json.dumps(self._identity(target) or "").strip('"')
        files = [target]
        if os.path.isdir(target):
            files = sorted(map(os.fspath, files_in(Path(target))))
        known = [identity(each) for each in files]
        return "" if None in known or not known else short_digest(json.dumps(known))

    def _identity(self, path: str) -> Identity | None:
        if not Address.of(path).protocol:
            return identity(path)
        with suppress(SerdeError):
            for found in expand(path, storage_options=self._storage):
                return [path, found.size, found.checksum] if found.checksum else None
        return None

    def _beside(self, path: str) -> str:
        """Return a digest of the names in the folder of a source that begin as its own does."""
        address = Address.of(path.rstrip("/"))
        stem = stem_of(address.name)
        if address.protocol:
            return short_digest("\n".join(self._beside_object(address, stem)))
        folder = address.parent or ("/" if address.path.startswith("/") else os.curdir)
        if folder not in self._names:
            with suppress(OSError):
                self._names[folder] = sorted(os.listdir(folder))
        return short_digest("\n".join(_starting(self._names.get(folder, []), stem)))

    def _beside_object(self, address: Address, stem: str) -> list[str]:
        with suppress(SerdeError):
            store, folder = open_store(address.with_path(address.parent), self._storage)
            return [each.path for each in store.entries(folder, stem)]
        return []


def _are_beside(files: Sequence[AnyValue], sources: Sequence[str]) -> bool:
    """Whether files are local, or beside a source in its store: nothing else is asked for them."""
    stores = [Address.of(source) for source in sources]
    places = {each.with_path(f"{each.parent or each.path.rstrip('/')}/") for each in stores}
    for each in files:
        if not isinstance(each, str):
            return False
        own = Address.of(each)
        near = any(own.path.startswith(p.path) and own.with_path(p.path) == p for p in places)
        if own.protocol and (not near or ".." in own.path.split("/")):
            return False
    return True


def _starting(names: list[str], stem: str) -> Iterator[str]:
    """Yield the names that begin so, of names in order."""
    for index in range(bisect.bisect_left(names, stem), len(names)):
        if not names[index].startswith(stem):
            return
        yield names[index]
