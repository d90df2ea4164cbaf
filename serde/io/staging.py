"""Hidden directories in which new files are made, and what killed runs left of them.

A run makes its files in a directory ``.serde-XXXXXXXX`` beside their places and holds a lock in
it. The system gives the lock back however the process ends, so a directory whose lock is free is
that of a run that was killed. The next run that writes beside it finishes the renames which that
run had begun, and removes the directory. Where locks do not work it is left alone; where files do
not tell who made them, as on Windows, no renames are finished.

Anyone may have made such a directory: it comes along with an archive or a repository. So it is
opened by steps that follow no link, and a plan found in it is followed only if no other user can
write there, and for plain files of the directory itself, which it moves beside the directory. It
has to know each of them by the number that the file system gave it, and one in its place already:
a plan that was carried here does not.
"""

from __future__ import annotations

import errno
import json
import os
import re
import stat
import tempfile
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

from serde.core.parsing import parse_json
from serde.core.systems import has_descriptors, has_owners, is_plain_directory, keep, try_lock
from serde.errors import OptionError

__all__ = [
    "REPEATS", "clear_directory", "commit", "files_in", "final_directory", "is_own", "is_staged",
    "pending", "staging_directory", "stored_bytes", "sweep",
]  # fmt: skip

_PREFIX: Final = ".serde-"
_LOCK: Final = "lock"
_PLAN: Final = "plan.json"
_NEW: Final = "new"
_PLAN_BYTES: Final = 2**20
"""Longest plan that is read: one of several thousand files."""
_ATTEMPTS: Final = 100
REPEATS: Final = 3
"""How often what tidies up is tried: what fails once may well succeed then."""
# What `tempfile` calls a directory, and all that a run puts there.
_NAME: Final = re.compile(rf"{re.escape(_PREFIX)}[a-z0-9_]{{8}}")
_CONTENT: Final = re.compile(rf"{_LOCK}|{_NEW}|old\d+|{re.escape(_PLAN)}(\.draft)?")

_ACTIVE: Final = ContextVar[frozenset[str]]("active staging directories", default=frozenset())
"""Directories that files of this run are being made in."""

_FAULTS: Final = (OSError, ValueError, TypeError, KeyError, RecursionError)
"""What a plan raises that is none, or names what is not there."""
_NO_LINK: Final = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)

_Identity = list[int]
_Folder = int | str
"""A directory that is open or, where none can be, its path."""


def files_in(path: Path) -> Iterator[Path]:
    """Yield the files of a package, however deep they lie, or the one file that a path is."""
    if not path.is_dir():
        yield path
        return
    folders = [path]
    while folders:
        with suppress(PermissionError), os.scandir(folders.pop()) as entries:
            for each in entries:
                if each.is_dir(follow_symlinks=False):
                    folders.append(Path(each.path))
                elif each.is_file():
                    yield Path(each.path)


def stored_bytes(path: Path) -> int:
    """Return the bytes of a file, or of all files of a package."""
    return sum(each.stat().st_size for each in files_in(path))


class _Rename(NamedTuple):
    """A rename that is planned.

    Attributes:
        name: Of the file, in both directories.
        new: Identity of what gets the name.
        old: Identity of what has it before, if there is something.
    """

    name: str
    new: _Identity | None
    old: _Identity | None


@contextmanager
def staging_directory(parent: Path) -> Iterator[Path]:
    """Yield an empty directory within a hidden one in `parent`, which goes when the body is done.

    Raises:
        OptionError: Nothing can be made in `parent`.
    """
    sweep(parent)
    try:
        directory, lock = _make(parent)
    except OSError as error:
        raise OptionError(f"{parent}: cannot be written to: {error.strerror}") from None
    active = _ACTIVE.set(_ACTIVE.get() | {os.path.abspath(directory / _NEW)})
    try:
        yield directory / _NEW
    finally:
        _clear(directory, lock)
        with suppress(ValueError):  # Garbage collection may end it elsewhere.
            _ACTIVE.reset(active)


def clear_directory(directory: Path) -> bool:
    """Remove what is in a directory, following no link; return whether it is empty, or gone."""
    return _insist(partial(_remove_contents, directory))


def final_directory(path: str | os.PathLike[str]) -> str | None:
    """Return the directory that a file will be put in which is made just now.

    None for every other file: its name alone must not let it refer to another directory.
    """
    directory = os.path.dirname(os.path.abspath(path))
    if directory not in _ACTIVE.get():
        return None
    return os.path.dirname(os.path.dirname(directory))


def is_staged(path: str | os.PathLike[str]) -> bool:
    """Whether a path leads through such a directory, which goes with the run that made it."""
    return any(map(_NAME.fullmatch, Path(path).parts))


def _make(parent: Path) -> tuple[Path, int]:
    """Return a new directory and the descriptor that holds its lock, if there are locks."""
    for _ in range(_ATTEMPTS):
        directory = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent))
        try:
            lock = os.open(directory / _LOCK, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        except FileNotFoundError:
            continue  # A run that started meanwhile took it for one without an owner.
        except OSError:
            _insist(directory.rmdir)
            raise
        try:
            taken = try_lock(lock)
            if taken is not False and _is_at(lock, directory / _LOCK):
                (directory / _NEW).mkdir()
                if taken is None and has_descriptors():
                    # A run that does get locks must not take it for one that was killed.
                    (directory / _LOCK).unlink()
                return directory, lock
        except OSError:
            _clear(directory, lock)
            raise
        _close(lock)
    raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))


def _is_at(fd: int, path: Path) -> bool:
    """Whether a file that is open still has its name."""
    try:
        return os.path.samestat(os.fstat(fd), os.stat(path))
    except FileNotFoundError:
        return False


def _close(fd: int) -> None:
    """Close a descriptor to which nothing was written, so that nothing can be lost by it."""
    with suppress(OSError):
        os.close(fd)


def _insist(remove: Callable[[], object]) -> bool:
    """Remove something, also if the system fails to at first; return whether it is gone."""
    for _ in range(REPEATS):
        try:
            remove()
        except FileNotFoundError:
            return True
        except (OSError, RecursionError):  # The latter of folders in folders, by the hundred.
            continue
        return True
    return False


def sweep(parent: Path) -> None:
    """Finish and remove what killed runs of this user left in `parent`, as far as it can be."""
    with suppress(OSError), _folder(parent) as opened:
        for name in _hidden_in(opened):
            with suppress(OSError), _folder(name, opened) as hidden:
                _sweep_one(opened, hidden, parent / name)


def pending(final: Path) -> Path | None:
    """Return the finished file that a run was about to rename to `final` when it was killed.

    There is one if that run had renamed others that belong to it, and nothing changed since.
    """
    with suppress(*_FAULTS), _folder(final.parent) as opened:
        for name in _hidden_in(opened):
            with suppress(*_FAULTS), _folder(name, opened) as hidden, _folder(_NEW, hidden) as new:
                _, left = _read_plan(opened, hidden, new)
                if any(each.name == final.name for each in left):
                    return final.parent / name / _NEW / final.name
    return None


@contextmanager
def _folder(path: str | Path, parent: _Folder | None = None) -> Iterator[_Folder]:
    """Yield a directory that is open, or its path; its name within another may be no link."""
    if not has_descriptors():
        path, _ = _within(path, parent)
        if parent is not None and not is_plain_directory(path):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(path))
        yield os.fspath(path)
        return
    flags = os.O_RDONLY | os.O_DIRECTORY | (0 if parent is None else _NO_LINK)
    path, within = _within(path, parent)
    opened = os.open(path, flags, dir_fd=within)
    try:
        yield opened
    finally:
        _close(opened)


def _within(path: str | Path, parent: _Folder | None) -> tuple[str | Path, int | None]:
    """Return what calls take that are given a name within a directory."""
    if isinstance(parent, str):
        return os.path.join(parent, path), None
    return path, parent


def _hidden_in(parent: _Folder) -> list[str]:
    """Return the names of directories that runs may have in another."""
    with os.scandir(parent) as entries:
        return [
            entry.name
            for entry in entries
            if _NAME.fullmatch(entry.name) and entry.is_dir(follow_symlinks=False)
        ]


def _names_in(opened: _Folder) -> list[str]:
    with os.scandir(opened) as entries:
        return [entry.name for entry in entries]


def is_own(status: os.stat_result) -> bool:
    """Whether this user made a file: what others made could name files only this one may remove."""
    return not has_owners() or status.st_uid == os.geteuid()


def _is_file_of_ours(status: os.stat_result) -> bool:
    """Whether something is a plain file of this user that has no other name."""
    return stat.S_ISREG(status.st_mode) and status.st_nlink == 1 and is_own(status)


def _sweep_one(parent: _Folder, hidden: _Folder, directory: Path) -> None:
    if not is_own(os.stat(hidden)) or not all(map(_CONTENT.fullmatch, _names_in(hidden))):
        return
    try:
        path, within = _within(_LOCK, hidden)
        lock = os.open(path, os.O_RDWR | _NO_LINK, dir_fd=within)
    except FileNotFoundError:
        # Fails unless the run was killed before it made anything.
        path, within = _within(directory.name, parent)
        os.rmdir(path, dir_fd=within)
        return
    if not _is_file_of_ours(os.fstat(lock)) or not try_lock(lock):
        _close(lock)
        return
    try:
        with suppress(*_FAULTS), _folder(_NEW, hidden) as new:
            _finish(parent, hidden, new)
    finally:
        _clear(directory, lock)


def _clear(directory: Path, lock: int) -> None:
    """Remove a directory, the lock last: by it the next run knows what may be removed."""
    emptied = _insist(partial(_empty, directory, lock))
    _close(lock)  # On NFS a file that is open keeps its directory.
    if emptied and not has_descriptors():  # There, as on Windows, it cannot go while it is open.
        _insist((directory / _LOCK).unlink)
    if emptied:
        _insist(directory.rmdir)


def _empty(directory: Path, lock: int) -> None:
    """Remove all that is in the directory of a lock, unless another has come to its place."""
    with _folder(directory.parent) as parent, _folder(directory.name, parent) as opened:
        held = os.fstat(lock)
        if held.st_nlink and not os.path.samestat(held, _status(_LOCK, opened)):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        for name in _names_in(opened):
            if name != _LOCK:
                _remove_tree(name, opened)
        if isinstance(opened, int):
            os.unlink(_LOCK, dir_fd=opened)


def _remove_tree(name: str, parent: _Folder) -> None:
    """Remove a file, a link or a directory with what is in it; no link leads out of it."""
    if not stat.S_ISDIR(_status(name, parent).st_mode):
        _unlink(name, parent)
        return
    _remove_contents(name, parent)
    path, within = _within(name, parent)
    os.rmdir(path, dir_fd=within)


def _remove_contents(name: str | Path, parent: _Folder | None = None) -> None:
    with _folder(name, parent) as opened:
        for each in _names_in(opened):
            _remove_tree(each, opened)


def _unlink(name: str | Path, parent: _Folder | None) -> None:
    path, within = _within(name, parent)
    os.unlink(path, dir_fd=within)


def commit(
    staged: Sequence[Path],
    finals: Sequence[Path],
    *,
    outdated: Sequence[Path] = (),
    restore: bool = False,
) -> None:
    """Rename finished files to their places, and then remove what they make outdated.

    Args:
        staged: The files, in a directory of :func:`staging_directory`.
        finals: Their places, in the order of the renames.
        outdated: Files beside them that nothing refers to any more once all is in place.
        restore: Whether what was replaced comes back if a later rename fails.
    """
    directory = staged[0].parent.parent
    renames = [
        _Rename(final.name, _identity(one), _identity(final))
        for one, final in zip(staged, finals, strict=True)
    ]
    removals = [(path.name, _identity(path)) for path in outdated]
    if len(renames) > 1 or removals:
        _note(directory, {"renames": renames, "removals": removals})
    kept = _link_replaced(directory, finals[:-1]) if restore else {}
    sources, targets = [os.fspath(one) for one in staged], [os.fspath(one) for one in finals]
    try:
        # One call that runs no Python between the renames: neither the handler of a signal nor
        # another thread comes between them, and a kill has but microseconds to do so.
        deque(map(os.replace, sources, targets), maxlen=0)
    except OSError:
        _undo(directory, finals[0].parent, renames, kept)
        raise
    _remove(finals[0].parent, removals)


def _status(path: str | Path, parent: _Folder | None = None) -> os.stat_result:
    path, within = _within(path, parent)
    return os.stat(path, dir_fd=within, follow_symlinks=False)


def _identity(path: str | Path, parent: _Folder | None = None) -> _Identity | None:
    """Return what tells a file from any other that may come to its place; None if it is gone."""
    try:
        status = _status(path, parent)
    except FileNotFoundError:
        return None
    return [status.st_ino, status.st_size, status.st_mtime_ns]


def _note(directory: Path, plan: dict[str, Any]) -> None:
    """Write down what is about to be done; the note is there whole or not at all."""
    draft = directory / f"{_PLAN}.draft"
    draft.write_text(json.dumps(plan), encoding="utf-8")
    draft.rename(directory / _PLAN)


def _link_replaced(directory: Path, finals: Sequence[Path]) -> dict[str, Path]:
    """Return second links to files that are about to be replaced, or copies of them."""
    links: dict[str, Path] = {}
    for number, final in enumerate(finals):
        link = directory / f"old{number}"
        with suppress(OSError):
            keep(final, link)
            links[final.name] = link
    return links


def _undo(
    directory: Path, parent: Path, renames: Sequence[_Rename], kept: Mapping[str, Path]
) -> None:
    """Take renames back: a file that was new goes, one that was replaced comes back if kept."""
    for each in renames:
        if os.path.lexists(directory / _NEW / each.name):
            return
        with suppress(OSError):
            if each.old is None:
                (parent / each.name).unlink()
            elif each.name in kept:
                kept[each.name].replace(parent / each.name)


def _finish(parent: _Folder, hidden: _Folder, new: _Folder) -> None:
    """Make the renames that a run left out which had begun with them, and what follows them."""
    plan, left = _read_plan(parent, hidden, new)
    for each in left:
        (source, new_fd), (target, fd) = _within(each.name, new), _within(each.name, parent)
        os.replace(source, target, src_dir_fd=new_fd, dst_dir_fd=fd)
    _remove(Path(), plan["removals"], parent)


def _read_plan(
    parent: _Folder, hidden: _Folder, new: _Folder
) -> tuple[dict[str, Any], list[_Rename]]:
    """Return the plan of a run that had begun with its renames, and those that it left out.

    Args:
        parent: Where the files go.
        hidden: The directory of the run.
        new: The one in it in which its files are.
    """
    status = os.stat(hidden)
    known = has_owners() and is_own(status) and is_own(os.stat(new))
    if not known or status.st_mode & 0o077:
        raise ValueError("others may have written here")
    plan = parse_json(_read_small(_PLAN, hidden))
    renames = [_Rename(_check_name(name), new, old) for name, new, old in plan["renames"]]
    left = []
    for each in renames:
        found, beside = _identity(each.name, new), _identity(each.name, parent)
        if each.new is None or each.new != (beside if found is None else found):
            raise ValueError("changed since")
        if found is None:
            continue  # It was renamed before the kill.
        if each.old != beside or not _is_file_of_ours(_status(each.name, new)):
            raise ValueError("changed since")
        left.append(each)
    if len(left) == len(renames):
        raise ValueError("not begun")
    return plan, left


def _read_small(name: str, parent: _Folder) -> bytes:
    """Return what is in a plain file of this user, at most as much as a plan may have."""

    def opener(path: str, flags: int) -> int:
        place, within = _within(path, parent)
        return os.open(place, flags | _NO_LINK, dir_fd=within)

    with open(name, "rb", opener=opener) as file:
        data = file.read(_PLAN_BYTES + 1) if _is_file_of_ours(os.fstat(file.fileno())) else b""
    if not 0 < len(data) <= _PLAN_BYTES:
        raise ValueError("not a plan")
    return data


def _remove(
    folder: Path, removals: Iterable[tuple[str, _Identity | None]], parent: _Folder | None = None
) -> None:
    for name, identity in removals:
        path = folder / _check_name(name)
        if identity is not None:
            _insist(partial(_remove_known, path, identity, parent))


def _remove_known(path: Path, identity: _Identity, parent: _Folder | None) -> None:
    if _identity(path, parent) == identity:
        _unlink(path, parent)


def _check_name(name: str) -> str:
    """Return a name that leads to no other directory."""
    if not name or os.path.basename(name) != name or name in (os.curdir, os.pardir):
        raise ValueError(f"not the name of a file: {name!r}")
    return name
