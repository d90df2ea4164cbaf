"""Directories that appear whole or not at all.

A new package is made in a hidden directory beside its place. Where the system can exchange
two directories in one call, it does; elsewhere the old one steps aside under a name that the
next run recognises, and comes back if the new one never arrived.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from serde.core.systems import c_library
from serde.errors import OptionError
from serde.io.atomic import naming
from serde.io.staging import is_own, staging_directory

__all__ = ["atomic_directory", "check_directory"]

_ASIDE = ".serde-old-"
_AT_FDCWD = -100
_EXCHANGE = 2
"""``RENAME_EXCHANGE`` of Linux and ``RENAME_SWAP`` of macOS."""


@contextmanager
def atomic_directory(
    path: str | os.PathLike[str],
    *,
    sources: Iterable[str | os.PathLike[str]] = (),
    is_package: Callable[[Path], bool],
    before_commit: Callable[[Path], None] | None = None,
) -> Iterator[Path]:
    """Yield a new directory that is put at `path` when the body is done, or never.

    Args:
        path: The directory to make or replace.
        sources: Files that must not lie in the directory that is replaced.
        is_package: Whether a directory that is there may be replaced.
        before_commit: Called with the finished directory, which has its final name; if it
            raises, nothing stays.

    Raises:
        OptionError: `path` cannot be such a directory, or a source lies in it.
    """
    final = Path(os.path.abspath(os.fspath(path)))
    aside = _prepare(final, sources, is_package)
    with staging_directory(final.parent) as staging, naming(path, staging.parent):
        staged = staging / final.name
        staged.mkdir()
        yield staged
        if before_commit is not None:
            before_commit(staged)
        _move_into_place(staged, final, aside)


def check_directory(
    path: str | os.PathLike[str],
    *,
    sources: Iterable[str | os.PathLike[str]] = (),
    is_package: Callable[[Path], bool],
) -> None:
    """Refuse a path at which no such directory can be put, before there is one.

    Args:
        path: The directory to make or replace.
        sources: Files that must not lie in the directory that is replaced.
        is_package: Whether a directory that is there may be replaced.

    Raises:
        OptionError: `path` cannot be such a directory, or a source lies in it.
    """
    final = Path(os.path.abspath(os.fspath(path)))
    _prepare(final, sources, is_package)
    with staging_directory(final.parent):
        pass


def _prepare(
    final: Path, sources: Iterable[str | os.PathLike[str]], is_package: Callable[[Path], bool]
) -> Path:
    """Return the name under which the old directory steps aside, if it may be replaced."""
    if not final.parent.is_dir():
        raise OptionError(f"{final}: the directory {final.parent} does not exist")
    aside = final.parent / f"{_ASIDE}{final.name}"
    try:
        _recover(final, aside)
        _check(final, sources, is_package)
    except OSError as error:
        raise OptionError(f"{final}: cannot be written: {error.strerror}") from None
    return aside


def _recover(final: Path, aside: Path) -> None:
    """Undo or finish what a run before this one left half done."""
    if not aside.is_dir() or aside.is_symlink() or not is_own(aside.lstat()):
        return
    if os.path.lexists(final):
        with suppress(RecursionError):  # Of folders in folders, by the hundred.
            shutil.rmtree(aside, ignore_errors=True)
    else:
        aside.rename(final)


def _check(
    final: Path, sources: Iterable[str | os.PathLike[str]], is_package: Callable[[Path], bool]
) -> None:
    if not os.path.lexists(final):
        return
    if final.is_symlink() or not final.is_dir() or not is_package(final):
        raise OptionError(f"{final}: expected a package to replace, or nothing")
    inside = os.path.realpath(final)
    for source in sources:
        real = os.path.realpath(source)
        if real == inside or real.startswith(inside + os.sep):
            raise OptionError(f"{final}: holds the source {os.fspath(source)}")


def _move_into_place(staged: Path, final: Path, aside: Path) -> None:
    """Put a finished directory in its place; the staging directory gets what was there."""
    if not final.exists():
        staged.rename(final)
    elif not _exchange(staged, final):
        final.rename(aside)
        try:
            staged.rename(final)
        finally:
            _recover(final, aside)


def _exchange(one: Path, other: Path) -> bool:
    """Exchange two directories in one call; return whether the system did it."""
    libc = c_library()
    try:
        names = os.fsencode(one), os.fsencode(other)
        if sys.platform == "darwin":
            return libc.renamex_np(*names, ctypes.c_uint(_EXCHANGE)) == 0
        flag = ctypes.c_uint(_EXCHANGE)
        return libc.renameat2(_AT_FDCWD, names[0], _AT_FDCWD, names[1], flag) == 0
    except (AttributeError, OSError):
        return False
