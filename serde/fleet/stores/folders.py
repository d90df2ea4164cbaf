"""Folders in a store that are replaced: whole, with nothing left of what was there before.

A store changes one object at a time. So a new folder is sent under a hidden name first, which may
take long and fail; only then its files are copied to their places within the store, the one that
refers to the others last, and what the old folder had besides is removed.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Final

from serde.core import MAX_ARCHIVE_MEMBERS, dataclass
from serde.errors import OptionError
from serde.fleet.stores.fetching import fetch
from serde.fleet.stores.store import Entry, Store
from serde.fleet.stores.urls import safe_url
from serde.io.contained import location_fault

__all__ = ["FolderBefore", "look_before", "no_package", "put_folder", "sketch"]

_SKETCHED: Final = 16 * 2**20
"""Largest file at the top of a folder that is fetched to tell what the folder is."""


@dataclass(frozen=True, slots=True)
class FolderBefore:
    """What is in the place of a folder before it is written.

    Attributes:
        files: Files of a folder that is there.
        unfinished: Files of runs that were killed when they had begun to replace it.
        is_object: Whether it is an object and no folder.
    """

    files: tuple[Entry, ...] = ()
    unfinished: tuple[Entry, ...] = ()
    is_object: bool = False


def look_before(store: Store, own: str) -> FolderBefore:
    """Return what is in the place of a folder.

    Raises:
        OptionError: There is far more than any model has.
        StoreError: The store does not answer.
    """
    found = store.find(own)
    if found is not None and not found.is_folder:
        return FolderBefore(is_object=True)
    files = _files_below(store, own) if found is not None else ()
    hidden = _hidden(own)
    begun = store.find(hidden)
    return FolderBefore(files, _files_below(store, hidden) if begun is not None else ())


def _files_below(store: Store, folder: str) -> tuple[Entry, ...]:
    found = tuple(islice(store.entries(folder, deep=True), MAX_ARCHIVE_MEMBERS + 1))
    if len(found) > MAX_ARCHIVE_MEMBERS:
        raise no_package(store, folder)
    return found


def no_package(store: Store, own: str) -> OptionError:
    """Return the error of a place where something is that may not be replaced."""
    return OptionError(f"{safe_url(store.url(own))}: expected a package to replace, or nothing")


def sketch(store: Store, own: str, before: FolderBefore, place: Path) -> None:
    """Make a folder that looks like the one in a store, if there is one, for who writes there.

    Its files have the names of those in the store. The smaller ones at the top, by which formats
    know their folders, have the same content; the others are empty.

    Raises:
        OptionError: It has names that no package has.
        StoreError: The store does not answer.
    """
    if not before.files or before.unfinished:
        return  # Who had begun to replace it was allowed to.
    place.mkdir()
    for each in before.files:
        name = each.path[len(own) :].strip("/")
        if location_fault(name) is not None:
            raise no_package(store, own)
        try:
            _sketch_file(store, each, place / name, is_top="/" not in name)
        except OSError as error:  # Such as a name that is a file's and a folder's.
            raise no_package(store, own) from error


def _sketch_file(store: Store, entry: Entry, path: Path, *, is_top: bool) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if is_top and entry.size is not None and entry.size <= _SKETCHED:
        fetch(store, entry, path)
    else:
        path.touch()


def _hidden(own: str) -> str:
    """Return the folder in which those are that take the place of another."""
    folder, _, name = own.rpartition("/")
    return f"{folder}/.serde-new-{name}"


def put_folder(
    store: Store,
    files: Sequence[tuple[Path, str]],
    own: str,
    before: FolderBefore,
    put: Callable[[Path, str], int],
) -> int:
    """Replace a folder by files; return the bytes sent.

    Args:
        store: The store.
        files: Each with what follows the name of the folder, in the order in which they appear.
        own: The folder.
        before: What was there when it was looked at; nothing else is removed.
        put: Sends a file to a path.

    Raises:
        StoreError: The store does not answer. Before all was sent, the old folder is as it was.
    """
    hidden = f"{_hidden(own)}/{secrets.token_hex(4)}"
    begun: list[str] = []
    sent = 0
    try:
        for file, name in files:
            begun.append(hidden + name)
            sent += put(file, hidden + name)
    except BaseException:
        with suppress(Exception):
            _remove(store, begun, _hidden(own))
        raise
    for _, name in files:
        _move(store, hidden + name, own + name)
    new = {own + name for _, name in files}
    _remove(store, [each.path for each in before.files if each.path not in new], own)
    with suppress(Exception):  # Nobody sees it, and the next run removes it.
        left = [*begun, *(each.path for each in before.unfinished)]
        _remove(store, left, _hidden(own))
    return sent


def _move(store: Store, passing: str, target: str) -> None:
    """Put a file that is in the store in its place."""

    def move() -> None:
        if store.writes_whole:
            store.fs.cp_file(passing, target)
            return
        store.fs.makedirs(target.rpartition("/")[0], exist_ok=True)
        store.fs.mv(passing, target)

    store.ask(move, target)


def _remove(store: Store, paths: Sequence[str], root: str) -> None:
    """Remove files below a folder; those that are gone already do not matter."""
    for path in paths:

        def remove(path: str = path) -> None:
            with suppress(FileNotFoundError):
                store.fs.rm_file(path)

        store.ask(remove, path)
    if not getattr(store.fs, "async_impl", False):  # Where folders are more than parts of names.
        _remove_empty(store, paths, root)


def _remove_empty(store: Store, paths: Sequence[str], root: str) -> None:
    """Remove what has become empty of the folders of files that were removed."""
    folders = {str(each) for path in paths for each in PurePosixPath(path).parents}
    for each in sorted(folders, key=len, reverse=True):
        if each.startswith(root):
            with suppress(Exception):
                store.fs.invalidate_cache()
                if not store.fs.ls(each, detail=False):
                    store.fs.rmdir(each)
