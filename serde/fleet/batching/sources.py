"""Sources of a batch: what a path, glob or URL stands for, and how a target is called after one."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterator, Mapping
from typing import Any as AnyValue

from serde.bridge.contract import AnyBridge
from serde.bridge.formats import get_bridge
from serde.bridge.options import bind_options
from serde.errors import OptionError
from serde.fleet.stores.listing import (
    LISTED,
    expand,
    is_pattern,
    model_suffixes,
    package_suffixes,
    split_pattern,
    stem_of,
)
from serde.fleet.stores.urls import Address, is_url
from serde.io.other_files import describe_content

__all__ = ["find_sources", "join", "own_target", "target_name", "written_suffix"]


def find_sources(
    given: str, storage: Mapping[str, AnyValue], limit: int = LISTED
) -> Iterator[tuple[str, str]]:
    """Yield the sources that a path, URL, glob or folder stands for, each with a name for it.

    A name is relative to the folder that was named, or that the glob looks in.

    Args:
        given: A path or URL.
        storage: What ``fsspec`` is given.
        limit: Names that may be looked at.

    Raises:
        FileNotFoundError: It stands for none.
        OptionError: More names would have to be looked at.
        StoreError: A store does not answer, or refuses.
    """
    pattern, found = is_pattern(given), False
    ends = (*model_suffixes(), *package_suffixes()) if pattern and given.endswith("*") else None
    root = split_pattern(Address.of(given).path)[0].strip("/")
    for each in expand(given, limit, storage_options=storage):
        if ends is not None and not each.url.endswith(ends):
            continue
        found = True
        path = Address.of(each.url).path.strip("/")
        if path == root and not pattern:
            yield each.url, path.rpartition("/")[2]
        else:
            yield each.url, posixpath.normpath(path.removeprefix(root).strip("/"))
    if not found:
        kind = "match of the pattern is a model" if pattern else "model is in the folder"
        described = None if pattern or is_url(given) else describe_content(given)
        what = "" if described is None else f", which is {described}"
        raise FileNotFoundError(0, f"no {kind}{what}", given)


def join(out: str, target: str) -> str:
    """Return where a target is written: in `out`, unless it says a place of its own."""
    if is_url(target) or os.path.isabs(target):
        return target
    if is_url(out):
        return str(Address.of(out).within(target))
    return os.path.normpath(os.path.join(Address.of(out).path, target))


def target_name(name: str, suffix: str) -> str:
    """Return the name of a source with the suffix of the target in place of its own."""
    return stem_of(name.rstrip("/")) + suffix


def own_target(
    source: str, to: str, options: Mapping[str, AnyValue], *, overwrite: bool = False
) -> str:
    """Return a name in the working directory for the target of a source, as a batch would give it.

    Raises:
        OptionError: There is such a file, unless `overwrite` allows it, or the format is not
            written with these options.
    """
    writer = get_bridge(to)
    if writer.export_options is None:
        raise OptionError(f"format {writer.name} cannot be written")
    name = Address.of(source).name if is_url(source) else os.path.basename(os.path.abspath(source))
    stem = stem_of(name.rstrip("/")) or "model"
    target = stem + written_suffix(writer, stem, bind_options(writer.export_options, options)[0])
    is_source = os.path.abspath(target) == os.path.abspath(source)  # Which is told by the writer.
    if os.path.lexists(target) and not overwrite and not is_source:
        raise OptionError(f"{target}: is there already; name a target, or --overwrite it")
    return target


def written_suffix(writer: AnyBridge, stem: str | os.PathLike[str], options: AnyValue) -> str:
    """Return the first suffix of a format that it writes.

    Raises:
        OptionError: It writes none, or not with these options.
    """
    faults: list[OptionError] = []
    for suffix in writer.suffixes:
        try:
            writer.check_target(f"{os.fspath(stem)}{suffix}", options)
        except OptionError as error:
            faults.append(error)
        else:
            return suffix
    raise faults[0] if faults else OptionError(f"format {writer.name} has no suffix")
