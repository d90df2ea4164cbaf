"""Sources brought to local disk: by ranges, checked, with what belongs to them.

Local files are used where they lie. Objects of a store are fetched in pieces into a hidden folder
(:mod:`serde.io.staging`) which goes with the run, and with the next run if this one was killed.

Libraries of stores run threads, which a forked child does not have: a process that converts in
children stages first, forks then, and lets the child touch no URL.
"""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any as AnyValue, Final

from serde.bridge.formats import source_bridge
from serde.bridge.options import bind_options
from serde.core import MAX_ARCHIVE_MEMBERS, dataclass, expect, field
from serde.errors import FormatError, OptionError, SerdeError, StoreError
from serde.fleet.stores.archives import is_archive, unpack
from serde.fleet.stores.faults import Retries
from serde.fleet.stores.fetching import fetch
from serde.fleet.stores.listing import Found
from serde.fleet.stores.store import Entry, Store, open_store
from serde.fleet.stores.urls import Address, safe_url
from serde.io.contained import location_fault
from serde.io.staging import files_in, staging_directory

__all__ = ["Staged", "stage", "telling", "told"]

_READ: Final = 2**20
_DISK: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})

Source = str | os.PathLike[str] | Found


@dataclass(frozen=True)
class Staged:
    """A model on local disk.

    Attributes:
        paths: What was named, in order: a file or folder each.
        names: The path or URL of each, as it may be printed.
        files: All files that the model is known to lie in, with what it calls each: the number
            of the source, or the name relative to it.
        nbytes: Bytes of all of them.
        options: What an archive says of the model, as options of a conversion: ``input_shapes``,
            ``input_dtypes``, ``labels``.
        facts: What was done: bytes fetched, seconds that took, names that came along.
        notes: What people should know of how the model was found.
        fetched: Digests of the files that were fetched.
        places: Folders of this run, and what stands for each in a message.
        packed: Whether it is an archive, out of which nothing was taken because nobody wanted it.
        missing: What a local model names that is not there.
    """

    paths: tuple[Path, ...]
    names: tuple[str, ...]
    files: tuple[tuple[str, Path], ...]
    nbytes: int
    options: Mapping[str, AnyValue] = field(default_factory=dict)
    facts: Mapping[str, AnyValue] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    fetched: Mapping[Path, str] = field(default_factory=dict, repr=False)
    places: Mapping[str, str] = field(default_factory=dict, repr=False)
    packed: bool = False
    missing: tuple[str, ...] = ()

    @property
    def source(self) -> str | list[str]:
        """What the public functions take as the source."""
        paths = [os.fspath(path) for path in self.paths]
        return paths[0] if len(paths) == 1 else paths

    @cached_property
    def digest(self) -> str:
        """A digest of the content of all files; read now, unless they were fetched.

        It is the same wherever they lie, and under whatever names a model and the one file that
        belongs to it are. The file of an archive counts, not what was taken out of it.

        Raises:
            FormatError: A file cannot be read.
        """
        known = {name: self.fetched.get(path) or digest_file(path) for name, path in self.files}
        others = [name for name in known if not name.isdecimal()]
        if len(others) == 1:
            known["beside"] = known.pop(others[0])
        whole = blake2b(digest_size=32)
        for name in sorted(known):
            whole.update(f"{len(name)}:{name}={known[name]}\n".encode())
        return whole.hexdigest()

    def told(self, text: str) -> str:
        """Return a text in which files of this run are called as their sources are."""
        return told(text, self.places)


def digest_file(path: Path) -> str:
    """Return the digest of the content of a file.

    Raises:
        FormatError: It cannot be read.
    """
    found = blake2b(digest_size=32)
    buffer = memoryview(bytearray(_READ))
    try:
        with path.open("rb", buffering=0) as file:
            while count := file.readinto(buffer):
                found.update(buffer[:count])
    except OSError as error:
        raise FormatError(f"cannot be read: {error.strerror}", path=path) from error
    return found.hexdigest()


@contextmanager
def stage(
    sources: Source | Sequence[Source],
    folder: str | os.PathLike[str] | None = None,
    *,
    format: str | None = None,
    options: Mapping[str, AnyValue] | None = None,
    storage_options: Mapping[str, AnyValue] | None = None,
    retries: Retries | None = None,
    opens: bool = True,
    alone: bool = False,
    along: Sequence[str] = (),
) -> Iterator[Staged]:
    """Yield a model on local disk, with all that belongs to it; what was fetched goes afterwards.

    Args:
        sources: A path or URL, or several that make one model. What
            :func:`serde.fleet.stores.listing.expand` found is not looked up again.
        folder: Where what is fetched lies; the directory of temporary files if left out.
        format: Name of the format; recognised by content if left out.
        options: Options of the conversion, of which an epoch chooses among parameters.
        storage_options: What ``fsspec`` gives to the file system; the environment otherwise.
        retries: How often and after how long what may pass is tried again.
        opens: Whether archives are unpacked, and models in a store read that name themselves what
            belongs to them; who may not trust them leaves that to another process.
        alone: Whether what belongs to a model, and was not named, stays where it is.
        along: What belongs to a model in a store if it is not opened: names relative to it.

    Raises:
        FormatError: An archive or model is malformed.
        MissingDependency: The package of a protocol is not installed.
        OptionError: There is no room, or no such protocol.
        StoreError: A store does not answer, refuses, or does not hold what it should.
    """
    listed = [sources] if isinstance(sources, (str, os.PathLike, Found)) else list(sources)
    parent = Path(tempfile.gettempdir() if folder is None else folder)
    with ExitStack() as stack:
        run = _Run(
            stack, parent, storage_options or {}, retries or Retries(), None if opens else along
        )
        with telling(run.places):
            yield run.bring(listed, format, options or {}, alone=alone)


@contextmanager
def telling(places: Mapping[str, str]) -> Iterator[None]:
    """Let errors call files in folders of a run as people know them.

    Args:
        places: What stands for each folder; more may be added meanwhile.
    """
    try:
        yield
    except SerdeError as error:
        error.args = tuple(
            told(each, places) if isinstance(each, str) else each for each in error.args
        )
        if isinstance(error, FormatError) and error.path is not None:
            error.path = told(error.path, places)
        raise


def told(text: str, places: Mapping[str, str]) -> str:
    """Return a text in which folders of a run are called as people know them."""
    for place, name in places.items():
        text = text.replace(place, name)
    return text


@dataclass(slots=True)
class _Run:
    """One model while it is brought to local disk.

    Attributes:
        _stack: Ends what is opened.
        _parent: Where what is fetched lies.
        _storage_options: What ``fsspec`` gives to the file system.
        _retries: How often and after how long what may pass is tried again.
        _along: What belongs to a model that is not opened; None if models are opened.
    """

    _stack: ExitStack
    _parent: Path
    _storage_options: Mapping[str, AnyValue]
    _retries: Retries
    _along: Sequence[str] | None
    _hidden: Path | None = None
    _digests: dict[Path, str] = field(default_factory=dict)
    places: dict[str, str] = field(default_factory=dict)
    _fetched: int = 0
    _missing: list[str] = field(default_factory=list)

    def bring(
        self,
        sources: Sequence[Source],
        format: str | None,
        options: Mapping[str, AnyValue],
        *,
        alone: bool,
    ) -> Staged:
        start = time.perf_counter()
        found = [self._fetch_or_find(source, number) for number, source in enumerate(sources)]
        names = [safe_url(_url(source)) for source in sources]
        paths = [path for path, _ in found]
        files = [each for _, own in found for each in own]
        along: list[str] = []
        packed = len(paths) == 1 and is_archive(paths[0])
        unpacked = None
        if packed and self._along is None:
            unpacked = unpack(paths[0], lambda: self._new_folder(f"{names[0]}:"), options, format)
            packed = False
        is_one = len(sources) == 1 and paths[0].is_file()
        if is_one and unpacked is None and not (packed or alone):
            along = self._companions(sources[0], paths[0], files, format, options)
        facts: dict[str, AnyValue] = {}
        if self._digests:
            facts |= {"fetched": self._fetched, "seconds": time.perf_counter() - start}
        if along:
            facts["companions"] = along
        nbytes = sum(_size(path) for _, path in files)
        if unpacked is not None:
            if paths[0] in self._digests:
                paths[0].unlink()
            paths[0] = unpacked.path
        return Staged(
            tuple(paths), tuple(names), tuple(files), nbytes,
            options={} if unpacked is None else unpacked.options, facts=facts,
            notes=() if unpacked is None else unpacked.notes, fetched=self._digests,
            places=self.places, packed=packed, missing=tuple(self._missing),
        )  # fmt: skip

    def _fetch_or_find(self, source: Source, number: int) -> tuple[Path, list[tuple[str, Path]]]:
        """Return the place of a source on local disk, and its files."""
        address = Address.of(_url(source))
        if not address.protocol:
            return _local_files(Path(address.path), number)
        known = source if isinstance(source, Found) else None
        return self._fetch_source(address, known, number)

    def _new_folder(self, shown: Address | str) -> Path:
        """Return a new folder of the hidden one, and note what it stands for."""
        if self._hidden is None:  # It is made when it is first needed.
            self._hidden = self._stack.enter_context(staging_directory(self._parent))
        folder = self._hidden / str(len(self.places))
        folder.mkdir()
        self.places[f"{folder}{os.sep}"] = safe_url(str(shown))
        return folder

    def _open(self, address: Address) -> tuple[Store, str]:
        return open_store(address, self._storage_options, self._retries)

    def _fetch_source(
        self, address: Address, known: Found | None, number: int
    ) -> tuple[Path, list[tuple[str, Path]]]:
        """Fetch an object or all that is in a folder; return its place, and its files."""
        store, path = self._open(address)
        place = self._new_folder(address.beside(""))
        if location_fault(address.name) is not None or address.name in (".", ""):
            raise OptionError(f"{safe_url(str(address))}: expected the name of a file")
        target = place / address.name
        entry = _known_entry(known, path) or store.look(path)
        if not entry.is_folder:
            self._fetch(store, entry, target)
            return target, [(str(number), target)]
        target.mkdir()
        files = []
        for each in self._members(store, entry.path):
            name = each.path[len(entry.path.rstrip("/")) + 1 :]
            file = _member(target, name, store.url(entry.path))
            self._fetch(store, each, file)
            files.append((name, file))
        return target, files

    def _members(self, store: Store, folder: str) -> list[Entry]:
        found: list[Entry] = []
        for each in store.entries(folder, deep=True):
            found.append(each)
            if len(found) > MAX_ARCHIVE_MEMBERS:
                shown = safe_url(store.url(folder))
                raise OptionError(f"{shown}: more than {MAX_ARCHIVE_MEMBERS:,} files are no model")
        if not found:
            raise StoreError(f"{safe_url(store.url(folder))}: the folder is empty")
        return found

    def _fetch(self, store: Store, entry: Entry, target: Path) -> None:
        url = safe_url(store.url(entry.path))
        free = shutil.disk_usage(target.parent).free
        if entry.size is not None and entry.size > free:
            raise OptionError(
                f"{self._parent}: no room for {url}, which has {entry.size:,} bytes; "
                f"{free:,} are free"
            )
        expect("bytes", entry.size or 0)
        try:
            self._digests[target] = fetch(store, entry, target)
        except OSError as error:
            if error.errno not in _DISK:
                raise
            message = f"{self._parent}: no room for {url}: {error.strerror}"
            raise OptionError(message) from error
        self._fetched += _size(target)

    def _companions(
        self,
        source: Source,
        path: Path,
        files: list[tuple[str, Path]],
        format: str | None,
        options: Mapping[str, AnyValue],
    ) -> list[str]:
        """Bring what belongs to a model and was not named; return the names."""
        bridge = None
        with suppress(SerdeError):  # What no format recognises is told when it is read.
            bridge = source_bridge(path, format)
        if bridge is None or bridge.import_options is None:
            return []
        bound, _ = bind_options(bridge.import_options, options)
        address = Address.of(_url(source))
        if not address.protocol:
            local = _LocalNeighbours(path.parent)
            found = [str(each) for each in bridge.companions(path, bound, local)]
            there = [(name, path.parent / name) for name in found]
            files += [each for each in there if each[1].is_file()]
            self._missing += [name for name, file in there if not file.is_file()]
            return []
        store, own = self._open(address)
        beside = _StoreNeighbours(store, own)
        if bridge.names_companions and self._along is not None:
            found = list(self._along)
        else:
            found = list(bridge.companions(path, bound, beside))
        for name in found:
            file = _member(path.parent, name, safe_url(str(address)))
            self._fetch(store, store.look(beside.path(name)), file)
            files.append((name, file))
        return found


def _url(source: Source) -> str:
    return source.url if isinstance(source, Found) else os.fspath(source)


def _local_files(path: Path, number: int) -> tuple[Path, list[tuple[str, Path]]]:
    """Return a local source and its files; whether it is there is for its format to say."""
    if not path.is_dir():
        return path, [(str(number), path)] if path.is_file() else []
    inside = sorted(files_in(path))
    return path, [(each.relative_to(path).as_posix(), each) for each in inside]


def _known_entry(known: Found | None, path: str) -> Entry | None:
    """Return what a listing said of a file, if it said enough."""
    if known is None or known.size is None or not known.checksum or "+" in known.checksum:
        return None
    return Entry(path, known.size, known.checksum)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _member(folder: Path, name: str, shown: str) -> Path:
    """Return where a file goes whose name a store or a model gives, its folders made."""
    fault = location_fault(name)
    if fault is not None:
        raise FormatError(f"the name {name!r} {fault}", path=shown)
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


@dataclass(frozen=True, slots=True)
class _LocalNeighbours:
    """Files beside one on local disk."""

    folder: Path

    def names(self, start: str) -> Sequence[str]:
        if not start:
            inside = files_in(self.folder)
            return sorted(each.relative_to(self.folder).as_posix() for each in inside)
        head, slash, own = start.rpartition("/")
        with os.scandir(self.folder / head) as entries:  # Which may be many thousands.
            near = [each for each in entries if each.name.startswith(own)]
        return sorted(head + slash + each.name for each in near if each.is_file())

    def has(self, name: str) -> bool:
        return (self.folder / name).is_file()


@dataclass(frozen=True, slots=True)
class _StoreNeighbours:
    """Objects beside one in a store."""

    store: Store
    own: str

    def path(self, name: str) -> str:
        """Return the path of another object in the store."""
        folder = self.own.partition("?")[0].rpartition("/")[0]
        return f"{folder}/{name}"

    def names(self, start: str) -> Sequence[str]:
        folder = self.path("").rstrip("/")
        try:
            found = self.store.entries(folder, start, deep=True)
            paths = [each.path for _, each in zip(range(MAX_ARCHIVE_MEMBERS), found, strict=False)]
        except StoreError:
            return ()  # On the web, few places can be listed.
        return [path[len(folder) :].lstrip("/") for path in paths]

    def has(self, name: str) -> bool:
        return self.store.find(self.path(name)) is not None
