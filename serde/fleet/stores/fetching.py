"""Objects of a store fetched into files: in pieces, some at the same time, and whole."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import BinaryIO, Final

from serde.core.progress import counting
from serde.errors import StoreError
from serde.fleet.stores.faults import Truncated
from serde.fleet.stores.store import Entry, Store
from serde.fleet.stores.urls import safe_url
from serde.io.atomic import write_all

__all__ = ["PIECE", "fetch"]

PIECE: Final = 8 * 2**20
"""Bytes of one range that is asked for."""

_STREAMS: Final = 4
"""Ranges that are asked for at the same time."""

_READ: Final = 2**20


def fetch(store: Store, entry: Entry, target: Path) -> str:
    """Fetch an object into a new file; return the digest of its content.

    Raises:
        OSError: The disk does not take it.
        StoreError: The store does not give it whole, or it changed meanwhile.
    """
    with target.open("xb", buffering=0) as file:
        sink = _Sink(file)
        if entry.size is None or not entry.ranges:
            _fetch_stream(store, entry, sink)
        elif store.reads_at_once:
            _fetch_at_once(store, entry, sink, entry.size)
        else:
            _fetch_in_order(store, entry, sink, entry.size)
    whole = store.reads_at_once and entry.size is not None and entry.size <= PIECE
    # What one request gave is of one version.
    if not whole and not store.look(entry.path).is_same(entry) and entry.size is not None:
        raise StoreError(f"{safe_url(store.url(entry.path))}: changed while it was fetched")
    return sink.digest.hexdigest()


class _Sink:
    """A file that is written in order, with a digest of what passes."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._count = counting("bytes")
        self.digest = blake2b(digest_size=32)
        self.at = 0

    def write(self, data: bytes) -> None:
        write_all(self._file.fileno(), data)
        self.digest.update(data)
        self.at += len(data)
        self._count(len(data))

    def restart(self) -> None:
        self._file.seek(0)
        self._file.truncate()
        self.digest = blake2b(digest_size=32)
        self.at = 0


def _ranges(size: int) -> Iterator[tuple[int, int]]:
    for start in range(0, size, PIECE):
        yield start, min(size, start + PIECE)


def _fetch_at_once(store: Store, entry: Entry, sink: _Sink, size: int) -> None:
    """Fetch ranges, a few at the same time, and write them in order."""

    def read(start: int, stop: int) -> bytes:
        action = partial(store.read, entry.path, start, stop)
        return store.ask(lambda: _whole(action(), stop - start), entry.path)

    if size <= PIECE:
        if size:
            sink.write(read(0, size))
        return
    waiting: deque[Future[bytes]] = deque()
    with ThreadPoolExecutor(_STREAMS) as pool:
        try:
            for start, stop in _ranges(size):
                waiting.append(pool.submit(read, start, stop))
                if len(waiting) == _STREAMS:
                    sink.write(waiting.popleft().result())
            while waiting:
                sink.write(waiting.popleft().result())
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _whole(data: bytes, expected: int) -> bytes:
    if len(data) != expected:
        raise Truncated(f"expected {expected} bytes, found {len(data)}")
    return data


def _fetch_in_order(store: Store, entry: Entry, sink: _Sink, size: int) -> None:
    """Read from one open object, which is opened anew at the same place where that breaks."""
    opened: list[BinaryIO] = []

    def read(start: int, stop: int) -> bytes:
        if not opened:
            opened.append(store.open(entry.path, PIECE))
        try:
            opened[0].seek(start)
            return _whole(opened[0].read(stop - start), stop - start)
        except Exception:
            opened.pop().close()
            raise

    try:
        for start, stop in _ranges(size):
            sink.write(store.ask(partial(read, start, stop), entry.path))
    except StoreError as error:
        if not isinstance(error.__cause__, ValueError):
            raise
        sink.restart()  # A web server that gives no ranges.
        _fetch_stream(store, entry, sink)
    finally:
        for each in opened:
            each.close()


def _fetch_stream(store: Store, entry: Entry, sink: _Sink) -> None:
    """Read front to back what has no ranges; a transfer that breaks begins anew."""

    def read() -> None:
        sink.restart()
        with store.stream(entry.path) as file:
            while data := file.read(_READ):
                sink.write(data)
        if entry.size not in (None, sink.at):
            raise Truncated(f"expected {entry.size} bytes, found {sink.at}")

    store.ask(read, entry.path)
