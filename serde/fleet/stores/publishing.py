"""Results put into a store: each object whole or not at all, the one that refers to others last."""

from __future__ import annotations

import os
import secrets
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import Any as AnyValue, BinaryIO, Final

from serde.core import Report, counting, expect
from serde.errors import OptionError, StoreError
from serde.fleet.stores.faults import Retries
from serde.fleet.stores.folders import FolderBefore, look_before, no_package, put_folder, sketch
from serde.fleet.stores.listing import model_suffixes
from serde.fleet.stores.staging import telling
from serde.fleet.stores.store import Store, open_store
from serde.fleet.stores.urls import Address, is_url, safe_url
from serde.io.staging import files_in, staging_directory

__all__ = ["publish", "published"]

_PART: Final = 16 * 2**20
"""Bytes of one part of an upload; what is not larger goes in one request."""

_READ: Final = 2**20

# Where the first part of a path is a bucket.
_BUCKETS: Final = frozenset({"abfs", "abfss", "az", "gcs", "gs", "s3", "s3a"})


@contextmanager
def published(
    target: str | os.PathLike[str],
    folder: str | os.PathLike[str] | None = None,
    *,
    overwrite: bool = True,
    storage_options: Mapping[str, AnyValue] | None = None,
    retries: Retries | None = None,
    report: Report | None = None,
) -> Iterator[Path]:
    """Yield the local path at which a target is made, and publish it if the body succeeds.

    A local target is its own path. For a URL it lies in a hidden folder: all that is there
    afterwards is published, the target last. Where a folder is at the URL, one that looks like it
    is at the path beforehand, so that who writes there can tell whether it may be replaced.

    Args:
        target: A path or URL.
        folder: Where it is made; the directory of temporary files if left out.
        overwrite: Whether objects beside the target may be replaced, which nobody named.
        storage_options: What ``fsspec`` gives to the file system; the environment otherwise.
        retries: How often and after how long what may pass is tried again.
        report: Gets a stage.

    Raises:
        MissingDependency: The package of the protocol is not installed.
        OptionError: The URL names no object, or cannot be written, or there is something beside
            or in its place that may not be replaced.
        StoreError: The store does not answer, or refuses.
    """
    address = Address.of(target)
    if not address.protocol:
        yield Path(address.path)
        return
    url = os.fspath(target)
    name = _checked_name(url)
    # Says what is wrong before there is work.
    store, own = open_store(address, storage_options, retries)
    own = own.rstrip("/")
    before = FolderBefore() if name.endswith(model_suffixes()) else look_before(store, own)
    with staging_directory(Path(tempfile.gettempdir() if folder is None else folder)) as hidden:
        place = hidden / name
        with telling({f"{hidden}{os.sep}": safe_url(str(address.beside("")))}):
            sketch(store, own, before, place)
            yield place
        beside = sorted(each for each in hidden.iterdir() if each != place)
        if not overwrite:
            _check_free(store, own, beside)
        with nullcontext() if report is None else report.stage("publish"):
            _publish(store, own, place, beside, before)


def _check_free(store: Store, own: str, beside: Sequence[Path]) -> None:
    """Refuse to replace what lies beside the target, of which nobody knows who wrote it."""
    folder = own.rpartition("/")[0]
    for each in beside:
        path = f"{folder}/{each.name}"
        if store.find(path) is not None:
            raise OptionError(
                f"{safe_url(store.url(path))}: would be replaced, though it was not named; take "
                "another name, or --overwrite (overwrite=True)"
            )


def _checked_name(url: str) -> str:
    """Return the name of the object that a URL stands for, if one can be written there."""
    address = Address.of(url)
    if address.protocol in ("http", "https") or address.rest:
        raise OptionError(f"{safe_url(url)}: nothing can be written there")
    no_object = address.protocol in _BUCKETS and not address.parent
    if no_object or address.name in ("", ".", "..") or "\\" in address.name:
        raise OptionError(f"{safe_url(url)}: expected the name of an object")
    return address.name


def publish(
    path: str | os.PathLike[str],
    url: str,
    *,
    beside: Sequence[str | os.PathLike[str]] = (),
    storage_options: Mapping[str, AnyValue] | None = None,
    retries: Retries | None = None,
) -> int:
    """Put a local file or folder into a store; return the bytes sent.

    A folder replaces the one that is there, whatever that holds.

    Args:
        path: The file or folder.
        url: Its place, whatever it is called here.
        beside: Files that it refers to, which go beside it under their own names, and first.
        storage_options: What ``fsspec`` gives to the file system; the environment otherwise.
        retries: How often and after how long what may pass is tried again.

    Raises:
        MissingDependency: The package of the protocol is not installed.
        OptionError: `url` is none of a store, or cannot be written.
        StoreError: The store does not answer, refuses, or does not keep what it was sent.
    """
    if not is_url(url) or not Address.of(url).protocol:
        raise OptionError(f"{safe_url(os.fspath(url))}: expected the URL of a store")
    _checked_name(url)
    address = Address.of(url)
    store, own = open_store(address, storage_options, retries)
    own = own.rstrip("/")
    before = look_before(store, own) if Path(path).is_dir() else FolderBefore()
    return _publish(store, own, Path(path), [Path(each) for each in beside], before)


def _publish(
    store: Store, own: str, path: Path, beside: Sequence[Path], before: FolderBefore
) -> int:
    folder = own.rpartition("/")[0]
    if path.is_dir() and before.is_object:
        raise no_package(store, own)
    sizes = (file.stat().st_size for each in (path, *beside) for file, _ in _files(each))
    expect("bytes", sum(sizes))
    sent = 0
    for each in beside:
        for file, name in _files(each):
            sent += _put(store, file, f"{folder}/{each.name}{name}")
    if path.is_dir():
        return sent + put_folder(store, _files(path), own, before, partial(_put, store))
    return sent + _put(store, path, own)


def _files(path: Path) -> list[tuple[Path, str]]:
    """Return the files of a file or folder and what follows its own name, in order of upload.

    In a folder those at the top come last, and of them a file with a format's suffix, then small
    ones: readers begin with a graph, a program or a manifest.
    """
    if not path.is_dir():
        return [(path, "")]

    def rank(file: Path) -> tuple[int, bool, int, str]:
        depth = len(file.relative_to(path).parts)
        return -depth, file.name.endswith(model_suffixes()), -file.stat().st_size, file.name

    inside = sorted(files_in(path), key=rank)
    return [(each, "/" + each.relative_to(path).as_posix()) for each in inside]


def _put(store: Store, path: Path, target: str) -> int:
    """Upload a file; return its length."""
    size = path.stat().st_size
    if store.writes_whole:
        store.ask(lambda: _send(store, path, target), target)
        _verify(store, target, size)
        return size
    folder, _, name = target.rpartition("/")
    passing = f"{folder}/.serde-{secrets.token_hex(4)}-{name}"
    try:
        store.ask(lambda: _send(store, path, passing), target)
        _verify(store, passing, size)
        store.ask(lambda: store.fs.mv(passing, target), target)
    except BaseException:
        with suppress(Exception):
            store.fs.rm_file(passing)
        raise
    return size


def _send(store: Store, path: Path, target: str) -> None:
    """Upload a file in parts; a transfer that breaks leaves nothing."""
    folder = target.rpartition("/")[0]
    if not getattr(store.fs, "async_impl", False):
        store.fs.makedirs(folder, exist_ok=True)
    size = path.stat().st_size
    if size <= _PART:
        store.fs.pipe_file(target, path.read_bytes())
        return
    remote = store.fs.open(target, "wb", block_size=_PART)
    try:
        with path.open("rb") as file:
            _copy(file, remote)
    except BaseException:
        # Closing it would complete the upload with what is there so far.
        with suppress(Exception):
            remote.discard()
        remote.closed = True
        raise
    remote.close()


def _copy(source: BinaryIO, target: BinaryIO) -> None:
    count = counting("bytes")
    while data := source.read(_READ):
        target.write(data)
        count(len(data))


def _verify(store: Store, target: str, size: int) -> None:
    found = store.look(target)
    if found.size is not None and found.size != size:
        raise StoreError(
            f"{safe_url(store.url(target))}: expected {size} bytes after the upload, found "
            f"{found.size}"
        )
