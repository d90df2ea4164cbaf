"""Hidden directories in which new files are made, and what killed runs left of them.

A run makes its files in a directory ``.serde-XXXXXXXX`` beside their places and holds a lock in
it. The system gives the lock back however the process ends, so a directory whose lock is free is
that of a run that was killed. The next run that writes beside it finishes the renames which that
run had begun, and removes the directory. Where locks do not work it is left alone.
"""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import tempfile
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

from serde.errors import OptionError

try:
    import fcntl
except ImportError:  # Not on Windows, where nothing is ever swept.
    fcntl = None  # type: ignore[assignment]

__all__ = [
    "REPEATS",
    "commit",
    "files_in",
    "final_directory",
    "is_staged",
    "pending",
    "staging_directory",
    "stored_bytes",
    "sweep",
]

_PREFIX: Final = ".serde-"
_LOCK: Final = "lock"
_PLAN: Final = "plan.json"
_NEW: Final = "new"
_ATTEMPTS: Final = 100
REPEATS: Final = 3
"""How often what tidies up is tried: what fails once may well succeed then."""
# What `tempfile` calls a directory, and all that a run puts there.
_NAME: Final = re.compile(rf"{re.escape(_PREFIX)}[a-z0-9_]{{8}}")
_CONTENT: Final = re.compile(rf"{_LOCK}|{_NEW}|old\d+|{re.escape(_PLAN)}(\.draft)?")

_ACTIVE: Final = ContextVar[frozenset[str]]("active staging directories", default=frozenset())
"""Directories that files of this run are being made in."""

_Identity = list[int]


def files_in(path: Path) -> Iterator[Path]:
    """Yield the files of a package, or the one file that a path is."""
    yield from (each for each in path.rglob("*") if each.is_file()) if path.is_dir() else (path,)


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
            taken = _try_lock(lock)
            if taken is not False and _is_at(lock, directory / _LOCK):
                (directory / _NEW).mkdir()
                if taken is None and fcntl is not None:
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
        except OSError:
            continue
        return True
    return False


def _try_lock(fd: int) -> bool | None:
    """Return whether the lock was taken; None where there are no locks."""
    if fcntl is None:
        return None
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def sweep(parent: Path) -> None:
    """Finish and remove what killed runs of this user left in `parent`, as far as it can be."""
    with suppress(OSError):
        for directory in _hidden_in(parent):
            with suppress(OSError):
                _sweep_one(parent, directory)


def pending(final: Path) -> Path | None:
    """Return the finished file that a run was about to rename to `final` when it was killed.

    There is one if that run had renamed others that belong to it, and nothing changed since.
    """
    with suppress(OSError, ValueError, TypeError, KeyError):
        for directory in _hidden_in(final.parent):
            _, left = _read_plan(final.parent, directory)
            if any(each.name == final.name for each in left):
                return directory / _NEW / final.name
    return None


def _hidden_in(parent: Path) -> list[Path]:
    """Return the directories that runs of this user have in another."""
    with os.scandir(parent) as entries:
        found = [
            Path(entry.path)
            for entry in entries
            if _NAME.fullmatch(entry.name) and entry.is_dir(follow_symlinks=False)
        ]
    # Another user's plan could name files that only this user may remove.
    return [
        each for each in found if not hasattr(os, "geteuid") or each.stat().st_uid == os.geteuid()
    ]


def _sweep_one(parent: Path, directory: Path) -> None:
    if not all(map(_CONTENT.fullmatch, os.listdir(directory))):
        return
    try:
        lock = os.open(directory / _LOCK, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0))
    except FileNotFoundError:
        directory.rmdir()  # Fails unless the run was killed before it made anything.
        return
    if not _try_lock(lock):
        _close(lock)
        return
    try:
        with suppress(OSError, ValueError, TypeError, KeyError):
            _finish(parent, directory)
    finally:
        _clear(directory, lock)


def _clear(directory: Path, lock: int) -> None:
    """Remove a directory, the lock last: by it the next run knows what may be removed."""
    emptied = _insist(lambda: _empty(directory))
    if emptied:
        _insist(lambda: os.unlink(directory / _LOCK))
    _close(lock)  # On NFS a file that is open keeps its directory.
    if emptied:
        _insist(directory.rmdir)


def _empty(directory: Path) -> None:
    """Remove all that is in a directory but the lock."""
    with os.scandir(directory) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry.path)
            elif entry.name != _LOCK:
                os.unlink(entry.path)


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


def _identity(path: Path) -> _Identity | None:
    """Return what tells a file from any other that may come to its place; None if it is gone."""
    try:
        status = os.lstat(path)
    except FileNotFoundError:
        return None
    return [status.st_ino, status.st_size, status.st_mtime_ns]


def _note(directory: Path, plan: dict[str, Any]) -> None:
    """Write down what is about to be done; the note is there whole or not at all."""
    draft = directory / f"{_PLAN}.draft"
    draft.write_text(json.dumps(plan), encoding="utf-8")
    draft.rename(directory / _PLAN)


def _link_replaced(directory: Path, finals: Sequence[Path]) -> dict[str, Path]:
    """Return second links to files that are about to be replaced, where there can be such."""
    links: dict[str, Path] = {}
    for number, final in enumerate(finals):
        link = directory / f"old{number}"
        with suppress(OSError):
            os.link(final, link, follow_symlinks=False)
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


def _finish(parent: Path, directory: Path) -> None:
    """Make the renames that a run left out which had begun with them, and what follows them."""
    plan, left = _read_plan(parent, directory)
    for each in left:
        os.replace(directory / _NEW / each.name, parent / each.name)
    _remove(parent, plan["removals"])


def _read_plan(parent: Path, directory: Path) -> tuple[dict[str, Any], list[_Rename]]:
    """Return the plan of a run that had begun with its renames, and those that it left out.

    Raises:
        FileNotFoundError: There is no plan.
        ValueError: It had not begun with them, or a file is not the one that it saw.
    """
    plan = json.loads((directory / _PLAN).read_bytes())
    renames = [_Rename(_check_name(name), new, old) for name, new, old in plan["renames"]]
    left = [each for each in renames if os.path.lexists(directory / _NEW / each.name)]
    done = [each for each in renames if each not in left]
    same = all(_identity(parent / each.name) == each.new for each in done)
    same &= all(_identity(parent / each.name) == each.old for each in left)
    if not done or not same:
        raise ValueError("nothing to be finished")
    return plan, left


def _remove(parent: Path, removals: Iterable[tuple[str, _Identity | None]]) -> None:
    for name, identity in removals:
        path = parent / _check_name(name)
        if identity is not None:
            _insist(partial(_remove_known, path, identity))


def _remove_known(path: Path, identity: _Identity) -> None:
    if _identity(path) == identity:
        path.unlink()


def _check_name(name: str) -> str:
    """Return a name that leads to no other directory."""
    if not name or os.path.basename(name) != name or name in (os.curdir, os.pardir):
        raise ValueError(f"not the name of a file: {name!r}")
    return name
