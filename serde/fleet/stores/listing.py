"""Sources found: globs and folders of any store, streamed, never more than a page of them held."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from hashlib import blake2b
from typing import Any as AnyValue, Final

from serde.bridge.contract import AnyBridge
from serde.bridge.formats import format_names, get_bridge
from serde.core.records import dataclass, replace
from serde.core.systems import local_path
from serde.errors import OptionError
from serde.fleet.stores.faults import Retries
from serde.fleet.stores.store import Entry, Store, open_store
from serde.fleet.stores.urls import Address, safe_url

__all__ = [
    "LISTED", "Found", "expand", "is_pattern", "model_suffixes", "package_suffixes",
    "short_digest", "split_pattern", "stem_of",
]  # fmt: skip

LISTED: Final = 1_000_000
"""Names that one pattern may look at unless another limit is given."""

_MAGIC: Final = re.compile(r"[*?\[]")
_MANIFEST: Final = "MAR-INF/MANIFEST.json"
_ARCHIVES: Final = (".mar",)


@dataclass(frozen=True, slots=True)
class Found:
    """A source that was found.

    Attributes:
        url: Its path or URL.
        size: Length in bytes, of a package of all its files; None where it is not told.
        checksum: What changes with the content, as the store says: an ETag, or the identity of
            a local file. Empty where nothing is told.
    """

    url: str
    size: int | None = None
    checksum: str = ""


class _Local:
    """The file system of this machine, asked as a store is."""

    def url(self, path: str) -> str:
        return path

    def find(self, path: str) -> Entry | None:
        with suppress(OSError, ValueError):
            return _local_entry(path, os.stat(path), os.path.isdir(path))
        return None

    def entries(self, folder: str, start: str = "", *, deep: bool = False) -> Iterator[Entry]:
        open_folders = [_scanned(folder, start)]
        while open_folders:
            each = next(open_folders[-1], None)
            if each is None:
                open_folders.pop()
                continue
            path = local_path(each.path)
            path = path if folder else path.removeprefix(f"{os.curdir}/")
            with suppress(OSError):
                if not deep or not each.is_dir():
                    yield _local_entry(path, each.stat(), each.is_dir())
                elif not each.is_symlink() and not each.name.startswith("."):
                    open_folders.append(_scanned(path))


def _scanned(folder: str, start: str = "") -> Iterator[os.DirEntry[str]]:
    """Return what is in a folder, by name; nothing of one that cannot be looked into."""
    with suppress(OSError), os.scandir(folder or os.curdir) as found:
        items = [each for each in found if each.name.startswith(start)]
        return iter(sorted(items, key=lambda item: (item.name != "MAR-INF", item.name)))
    return iter(())


def _local_entry(path: str, status: os.stat_result, is_folder: bool) -> Entry:
    size = None if is_folder else status.st_size
    stamp = f"{status.st_dev:x}-{status.st_ino:x}-{status.st_size:x}-{status.st_mtime_ns:x}"
    return Entry(path, size, stamp, is_folder)


def is_pattern(source: str | os.PathLike[str]) -> bool:
    """Whether a path or URL is a glob; the query of a URL never is."""
    return _MAGIC.search(Address.of(source).path) is not None


def expand(
    pattern: str | os.PathLike[str],
    limit: int = LISTED,
    *,
    storage_options: Mapping[str, AnyValue] | None = None,
    retries: Retries | None = None,
) -> Iterator[Found]:
    """Yield the sources that a path, URL, glob or folder stands for, in the order of their names.

    A glob gives what its names match: files, and folders that are packages of a format; ``**``
    stands for any number of folders. A folder gives all models in it and below: files with a
    suffix of a format that is read, packages as one each, without files that belong to others
    (parameters beside a graph). Names that begin with a dot are passed over unless they are
    asked for. Anything else is yielded as it is, whether it is there or not.

    Args:
        pattern: A path or URL.
        limit: Names that may be looked at.
        storage_options: What ``fsspec`` gives to the file system; the environment otherwise.
        retries: How often and after how long what may pass is tried again.

    Raises:
        OptionError: More names would have to be looked at.
        StoreError: A store does not answer, or refuses.
    """
    address = Address.of(pattern)
    fixed, parts = split_pattern(address.path)
    tree: Store | _Local = _Local()
    if address.protocol:
        # Only what is fixed goes to fsspec, to which braces and brackets have a meaning.
        tree, fixed = open_store(address.with_path(fixed), storage_options, retries)
    counted = _Counted(tree, limit, safe_url(os.fspath(pattern)))
    found = _matches(counted, fixed, parts) if parts else _plain(counted, address, fixed)
    for each in found:
        url = str(address) if each.path == fixed and not parts else tree.url(each.path)
        yield Found(url, each.size, each.checksum)


def split_pattern(path: str) -> tuple[str, list[str]]:
    """Return the folder that a glob is in, and the parts of the glob."""
    parts = path.split("/")
    first = next((i for i, part in enumerate(parts) if _MAGIC.search(part)), len(parts))
    if first == len(parts):
        return path, []
    fixed = "/".join(parts[:first])
    return fixed or ("/" if path.startswith("/") else ""), [each for each in parts[first:] if each]


@dataclass(slots=True)
class _Counted:
    """A tree of which only so many names are looked at."""

    tree: Store | _Local
    limit: int
    shown: str
    looked: int = 0

    def entries(self, folder: str, start: str = "", *, deep: bool = False) -> Iterator[Entry]:
        for entry in self.tree.entries(folder, start, deep=deep):
            self.looked += 1
            if self.looked > self.limit:
                raise OptionError(
                    f"{self.shown}: more than {self.limit:,} names to look at; narrow the "
                    "pattern, or raise the limit (--name-limit, name_limit=)"
                )
            yield entry


def _plain(tree: _Counted, address: Address, path: str) -> Iterator[Entry]:
    """Yield what a path without a glob stands for."""
    given = path.rstrip("/") or path
    found = None if address.protocol in ("http", "https") else tree.tree.find(given)
    if found is None or not found.is_folder:
        yield Entry(path, None) if found is None else replace(found, path=path)
        return
    if _is_package(tree, given):
        yield replace(_package(tree, given), path=path)
        return
    for each in _models(_visible(tree.entries(given, deep=True), given)):
        if _is_model(each):
            yield each


def _is_model(entry: Entry) -> bool:
    return entry.is_folder or entry.path.endswith(model_suffixes())


def _matches(tree: _Counted, folder: str, parts: list[str]) -> Iterator[Entry]:
    """Yield what the parts of a glob match in a folder."""
    first, *rest = parts
    if first == "**":
        wanted = _compiled(parts)
        below = folder.rstrip("/")
        for each in _models(_visible(tree.entries(folder, deep=True), folder)):
            inside = each.path[len(below) :].lstrip("/")
            if wanted.fullmatch(inside) and (parts[-1] != "**" or _is_model(each)):
                yield each
        return
    start = first[: match.start()] if (match := _MAGIC.search(first)) else first
    wanted = _compiled([first])
    for each in tree.entries(folder, start):
        name = each.path.rpartition("/")[2]
        if not wanted.fullmatch(name) or (name.startswith(".") and not first.startswith(".")):
            continue
        if rest and each.is_folder:
            yield from _matches(tree, each.path, rest)
        elif not rest and not each.is_folder:
            yield each
        elif not rest and _is_package(tree, each.path):
            yield _package(tree, each.path)


def _is_package(tree: _Counted, folder: str) -> bool:
    if folder.endswith(package_suffixes()):
        return True
    return any(tree.entries(folder, "MAR-INF"))


def _package(tree: _Counted, folder: str) -> Entry:
    """Return a folder with the size and checksum of all its files."""
    whole = Entry(folder, 0, is_folder=True)
    for each in tree.entries(folder, deep=True):
        whole = _extended(whole, each)
    return whole


def _compiled(parts: Sequence[str]) -> re.Pattern[str]:
    """Return the regular expression of parts of a glob.

    What lies between two asterisks is matched where it comes first, and nowhere else: so a
    pattern takes no longer than its length times that of a name.
    """
    numbers = itertools.count()
    chunks: list[list[str]] = [[]]
    for each in parts:
        if each == "**":
            chunks.append([])
        else:
            chunks[-1].append(_part_pattern(each, numbers))
    text = "/".join(chunks[0])
    if len(chunks) > 1:
        middle = ["".join(f"{part}/" for part in chunk) for chunk in chunks[1:-1]]
        last = "/".join(chunks[-1])
        text = "".join(f"{part}/" for part in chunks[0])
        text += _in_order(middle, "(?:[^/]+/)*", numbers)
        text += f"(?:[^/]+/)*{last}" if last else ".*"
    try:
        return re.compile(text)
    except (re.error, RecursionError) as error:
        raise OptionError(f"{'/'.join(parts)}: no sound pattern: {error}") from None


def _in_order(texts: Iterable[str], between: str, numbers: Iterator[int]) -> str:
    """Return what matches texts with anything between, each where it comes first."""
    named = ((f"s{next(numbers)}", each) for each in texts if each)
    return "".join(f"(?=(?P<{name}>{between}?{each}))(?P={name})" for name, each in named)


def _part_pattern(part: str, numbers: Iterator[int]) -> str:
    """Return the regular expression of one part of a glob."""
    texts, at = [""], 0
    while at < len(part):
        letter = part[at]
        closing = part.find("]", at + 2) if letter == "[" else -1
        if letter == "*":
            texts.append("")
        elif letter == "?":
            texts[-1] += "[^/]"
        elif closing > 0:
            inside = part[at + 1 : closing].replace("\\", r"\\").replace("[", r"\[")
            texts[-1] += f"[^{inside[1:]}]" if inside[0] == "!" else f"[{inside}]"
            at = closing
        else:
            texts[-1] += re.escape(letter)
        at += 1
    if len(texts) == 1:
        return texts[0]
    return f"{texts[0]}{_in_order(texts[1:-1], '[^/]*', numbers)}[^/]*{texts[-1]}"


def _visible(entries: Iterable[Entry], folder: str) -> Iterator[Entry]:
    """Yield those of which no part below the folder begins with a dot."""
    below = len(folder.rstrip("/"))
    for each in entries:
        if "/." not in "/" + each.path[below:].lstrip("/"):
            yield each


def _models(entries: Iterable[Entry]) -> Iterator[Entry]:
    """Yield files as they come, those of a package as one folder: they follow each other."""
    package: Entry | None = None
    for each in entries:
        if package is not None and each.path.startswith(package.path + "/"):
            package = _extended(package, each)
            continue
        if package is not None:
            yield package
        package = _package_of(each)
        if package is None:
            yield each
    if package is not None:
        yield package


def _package_of(entry: Entry) -> Entry | None:
    """Return the package that the first file of one begins."""
    if entry.path.endswith(f"/{_MANIFEST}"):
        root = entry.path.removesuffix(f"/{_MANIFEST}")
        return Entry(root, entry.size, entry.checksum, is_folder=True)
    parts = entry.path.split("/")
    for end in range(1, len(parts)):
        if parts[end - 1].endswith(package_suffixes()):
            return Entry("/".join(parts[:end]), entry.size, entry.checksum, is_folder=True)
    return None


def _extended(package: Entry, entry: Entry) -> Entry:
    """Return a package with one more of its files."""
    size = None if None in (package.size, entry.size) else (package.size or 0) + (entry.size or 0)
    both = f"{package.checksum}+{entry.checksum}" if package.checksum else entry.checksum
    return Entry(package.path, size, short_digest(both) if len(both) > 64 else both, True)


def short_digest(text: str) -> str:
    """Return a short text that changes with a longer one."""
    return blake2b(text.encode(errors="surrogateescape"), digest_size=16).hexdigest()


def _bridges() -> Iterator[AnyBridge]:
    """Yield the formats that are read; one that does not load has no suffixes."""
    for name in format_names():
        with suppress(OptionError):
            bridge = get_bridge(name)
            if bridge.import_options is not None:
                yield bridge


@cache
def model_suffixes() -> tuple[str, ...]:
    """Return the ends of the names of files that are models, or lead to the rest of one."""
    found = {suffix for bridge in _bridges() for suffix in bridge.suffixes}
    beside = {suffix for bridge in _bridges() for suffix in bridge.companion_suffixes}
    return (*sorted(found - beside - {*package_suffixes()}), *_ARCHIVES)


@cache
def package_suffixes() -> tuple[str, ...]:
    """Return the ends of the names of folders that are models."""
    return tuple(sorted({each for bridge in _bridges() for each in bridge.package_suffixes}))


def stem_of(name: str) -> str:
    """Return a name without the longest suffix that some format gives it."""
    ends = (end for end in _all_suffixes() if name.endswith(end) and name != end)
    return name.removesuffix(max(ends, key=len, default=""))


@cache
def _all_suffixes() -> tuple[str, ...]:
    ends = {end for each in _bridges() for end in (*each.suffixes, *each.companion_suffixes)}
    return tuple(sorted({*ends, *_ARCHIVES}))
