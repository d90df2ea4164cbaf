"""One store as the rest of this package sees it: looked up, listed page by page, read, written.

The file systems are ``fsspec``'s. They run their own thread, which a forked child does not have:
a process that forks stages its sources before, and the child converts what lies on local disk.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any as AnyValue, BinaryIO, Final, TypeVar

from serde.core import dataclass, field, is_installed, parse_json, replace, require
from serde.errors import MissingDependency, OptionError, SerdeError, StoreError
from serde.fleet.stores.faults import Retries, is_missing, retrying, store_error
from serde.fleet.stores.urls import Address, safe_text, safe_url

__all__ = ["Entry", "Store", "open_store", "parse_storage_options"]

ResultT = TypeVar("ResultT")

_PACKAGES: Final[dict[str, tuple[str, str]]] = {
    **dict.fromkeys(("abfs", "abfss", "az"), ("adlfs", "az")),
    **dict.fromkeys(("gcs", "gs"), ("gcsfs", "gs")),
    "hf": ("huggingface_hub", "hf"),
    **dict.fromkeys(("http", "https"), ("aiohttp", "stores")),
    **dict.fromkeys(("s3", "s3a"), ("s3fs", "stores")),
}
"""The package that each protocol needs besides ``fsspec``, and the extra that installs it."""

_CHECKSUMS: Final = ("ETag", "etag", "md5Hash", "crc32c", "checksum", "blob_id", "lfs", "sha",
                     "Content-MD5", "generation", "LastModified", "Last-Modified",
                     "last_modified", "mtime", "created")  # fmt: skip
"""What stores say of an object that another content of the same length would change."""

_WHOLE: Final = frozenset(
    {"abfs", "abfss", "adl", "az", "gcs", "gs", "hf", "memory", "oci", "oss", "s3", "s3a"}
)
"""Protocols of stores in which an object is there once its upload is complete, never in part."""

_PAGE: Final = 1000


@dataclass(frozen=True, slots=True)
class Entry:
    """What a store says of one name.

    Attributes:
        path: Its path in the store.
        size: Length in bytes; None where the store does not tell.
        checksum: What changes with the content, such as the ETag; empty where nothing is told.
        is_folder: Whether it stands for a folder.
        ranges: Whether parts can be asked for, as far as the store says.
    """

    path: str
    size: int | None
    checksum: str = ""
    is_folder: bool = False
    ranges: bool = True

    @classmethod
    def of(cls, facts: Mapping[str, AnyValue]) -> Entry:
        """Return what the facts of ``fsspec`` say."""
        size = facts.get("size", facts.get("Size"))
        known = [_as_text(facts[name]) for name in _CHECKSUMS if facts.get(name)]
        return cls(
            str(facts.get("name", facts.get("Key", ""))),
            None if size is None else int(size),
            known[0] if known else "",
            facts.get("type") == "directory",
            facts.get("partial", True) is not False,
        )

    def is_same(self, other: Entry) -> bool:
        """Whether another look at the object gave the same."""
        return (self.size, self.checksum) == (other.size, other.checksum)


def _as_text(value: AnyValue) -> str:
    """Return a fact as text; times are told in two ways by the same store."""
    return str(value.timestamp() if hasattr(value, "timestamp") else value).strip('"')


@dataclass(frozen=True, slots=True)
class Store:
    """A file system of ``fsspec``, and how patiently it is asked.

    Attributes:
        fs: The file system.
        address: Of what was asked for in it.
        retries: How often and after how long what may pass is tried again.
        secrets: Values of storage options, which no message shows.
    """

    fs: AnyValue
    address: Address
    retries: Retries = field(default_factory=Retries)
    secrets: tuple[str, ...] = ()

    def url(self, path: str) -> str:
        """Return the URL of a path of this store."""
        if "://" in path:  # The web's file system has whole URLs as paths.
            return path
        own = path if self.address.path.startswith("/") else path.lstrip("/")
        return str(self.address.with_path(own))

    def ask(self, action: Callable[[], ResultT], path: str) -> ResultT:
        """Return what an action returns, tried again where the fault may pass.

        Raises:
            StoreError: It failed for good.
        """
        return retrying(action, self.url(path), self.retries, self.secrets)

    def look(self, path: str) -> Entry:
        """Return what the store says of a path.

        Raises:
            StoreError: There is nothing, or the store does not answer.
        """

        def ask() -> Entry:
            self.fs.invalidate_cache()
            return Entry.of(self.fs.info(path))

        found = self.ask(ask, path)
        return replace(found, path=path)

    def find(self, path: str) -> Entry | None:
        """Return what the store says of a path, None if there is nothing.

        Raises:
            StoreError: The store does not answer.
        """
        try:
            return self.look(path)
        except StoreError as error:
            if error.__cause__ is not None and is_missing(error.__cause__):
                return None
            raise

    def entries(self, folder: str, start: str = "", *, deep: bool = False) -> Iterator[Entry]:
        """Yield what is in a folder, by name, as the store gives it out.

        Args:
            folder: A path of the store.
            start: What the names begin with.
            deep: Whether what is in its folders is yielded too, and not these themselves.

        Raises:
            StoreError: The store does not answer, or cannot be listed.
        """
        if hasattr(self.fs, "call_s3"):
            return self._pages(folder, start, deep)
        return self._walk(folder, start, deep)

    def _pages(self, folder: str, start: str, deep: bool) -> Iterator[Entry]:
        """List a bucket in pages; no more than one is held."""
        bucket, _, inside = folder.strip("/").partition("/")
        prefix = f"{inside}/{start}" if inside else start
        wanted: dict[str, AnyValue] = {"Bucket": bucket, "Prefix": prefix, "MaxKeys": _PAGE}
        if not deep:
            wanted["Delimiter"] = "/"
        token: str | None = ""
        while token is not None:
            given = {**wanted, "ContinuationToken": token} if token else wanted
            action = partial(self.fs.call_s3, "list_objects_v2", **given)
            page = self.ask(action, f"{bucket}/{prefix}")
            yield from _entries_of_page(bucket, page)
            token = page.get("NextContinuationToken") if page.get("IsTruncated") else None

    def _walk(self, folder: str, start: str, deep: bool) -> Iterator[Entry]:
        """List folder by folder; no more is held than the folders on the way to one."""
        listed = self.ask(lambda: self.fs.ls(folder, detail=True), folder)
        found = [Entry.of(each) for each in listed]
        own = folder.rstrip("/")
        for each in sorted(found, key=lambda entry: entry.path):
            path = each.path.rstrip("/")
            if path == own or not path.rpartition("/")[2].startswith(start):
                continue
            if each.is_folder and deep:
                yield from self._walk(path, "", True)
            else:
                yield replace(each, path=path)

    def read(self, path: str, start: int, stop: int) -> bytes:
        """Return bytes `start` to `stop` of an object in one request.

        Raises:
            Exception: Whatever the library of the store raises.
        """
        return self.fs.cat_file(path, start=start, end=stop)

    def open(self, path: str, piece: int) -> BinaryIO:
        """Open an object so that reads of `piece` bytes are requests for ranges."""
        return self.fs.open(path, "rb", block_size=piece, cache_type="none")

    def stream(self, path: str) -> BinaryIO:
        """Open an object that can be read front to back only."""
        return self.fs.open(path, "rb", block_size=0)

    @property
    def writes_whole(self) -> bool:
        """Whether an upload replaces an object whole, and no reader sees a part of it."""
        return bool(_WHOLE & set(_protocols(self.fs)))

    @property
    def reads_at_once(self) -> bool:
        """Whether several ranges can be asked for at the same time."""
        web = {"http", "https"} & set(_protocols(self.fs))
        return bool(getattr(self.fs, "async_impl", False)) and not web


def _protocols(fs: AnyValue) -> tuple[str, ...]:
    protocol = fs.protocol
    return (protocol,) if isinstance(protocol, str) else tuple(protocol)


def _entries_of_page(bucket: str, page: Mapping[str, AnyValue]) -> Iterator[Entry]:
    keys = [Entry.of(each) for each in page.get("Contents", ())]
    found = [replace(each, path=f"{bucket}/{each.path}") for each in keys]
    prefixes = [each["Prefix"].rstrip("/") for each in page.get("CommonPrefixes", ())]
    found += [Entry(f"{bucket}/{each}", None, is_folder=True) for each in prefixes]
    # A key that ends in a stroke is a mark that some tools leave for a folder.
    yield from sorted((e for e in found if not e.path.endswith("/")), key=lambda e: e.path)


def open_store(
    address: Address,
    storage_options: Mapping[str, AnyValue] | None = None,
    retries: Retries | None = None,
) -> tuple[Store, str]:
    """Return the store of an address, and its path there.

    Args:
        address: Of an object or folder.
        storage_options: What ``fsspec`` gives to the file system; the environment otherwise.
            Those of one protocol alone stand in a mapping under its name.
        retries: How often and after how long what may pass is tried again.

    Raises:
        MissingDependency: The package of the protocol is not installed.
        OptionError: There is no such protocol, or it does not take an option.
        StoreError: The store refuses.
    """
    require("fsspec")
    from fsspec import available_protocols
    from fsspec.core import url_to_fs
    from fsspec.registry import registry

    url = str(address)
    known = {*available_protocols(), *registry}
    options = _options_for(url, storage_options or {}, known)
    secrets = tuple(sorted(_texts(options), key=len, reverse=True))
    for protocol in _schemes(url):
        if protocol not in known:
            raise OptionError(f"{safe_url(url)}: {protocol}:// is no protocol that fsspec knows")
    try:
        fs, path = url_to_fs(url, **options)
    except ImportError as error:
        raise _missing_package(url, error) from error
    except (TypeError, ValueError) as error:
        raise OptionError(f"{safe_url(url)}: {safe_text(str(error), secrets)}") from error
    except Exception as error:
        raise store_error(error, url, secrets=secrets) from error
    return Store(fs, address, retries or Retries(), secrets), path


def _schemes(url: str) -> list[str]:
    return [part.partition("://")[0].lower() for part in url.split("::") if "://" in part]


def _options_for(url: str, given: Mapping[str, AnyValue], known: set[str]) -> dict[str, AnyValue]:
    """Return the options that bear on a URL: those of other protocols are not for it."""
    used = {*_schemes(url)}
    return {
        name: value
        for name, value in given.items()
        if not (name in known and isinstance(value, Mapping)) or name in used
    }


def _texts(value: AnyValue) -> set[str]:
    """Return the texts in options that may be secret: whatever is long enough to be one."""
    if isinstance(value, Mapping):
        return {text for each in value.values() for text in _texts(each)}
    return {value} if isinstance(value, str) and len(value) >= 8 and "://" not in value else set()


def _missing_package(url: str, error: ImportError) -> SerdeError:
    reason = f"for {safe_url(url)}"
    for scheme in _schemes(url):
        package, extra = _PACKAGES.get(scheme, ("", ""))
        if package and not is_installed(package):
            return MissingDependency(package, extra=extra, reason=reason)
    return OptionError(f"{safe_url(url)}: {safe_text(str(error))}")


def parse_storage_options(given: tuple[str, ...]) -> dict[str, AnyValue]:
    """Return storage options from texts ``KEY=VALUE``; dots lead into mappings, values may be JSON.

    Raises:
        OptionError: A text is not of this form.
    """
    options: dict[str, AnyValue] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not all(name.split(".")):
            raise OptionError(f"--storage-option: expected KEY=VALUE, found {name!r}")
        *way, last = name.split(".")
        place = options
        for part in way:
            place = place.setdefault(part, {})
            if not isinstance(place, dict):
                raise OptionError(f"--storage-option: {name}: {part} has a value already")
        place[last] = _value(value)
    return options


def _value(text: str) -> AnyValue:
    """Return JSON where it is of a kind that a text cannot be, else the text."""
    try:
        found = parse_json(text)
    except ValueError:
        return text
    # A key or a secret may well be made of digits alone.
    return text if isinstance(found, (int, float)) and not isinstance(found, bool) else found
