"""Where the sources of a batch come from: local disk, or a store that they are fetched from."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any as AnyValue

__all__ = ["Local", "stage_locally"]


@dataclass
class Local:
    source: str | list[str]
    files: list[Path]
    nbytes: int
    digest: str
    options: Mapping[str, AnyValue] = field(default_factory=dict)
    notes: Sequence[str] = ()


@contextmanager
def stage_locally(
    sources: Sequence[str], folder: str, options: Mapping[str, AnyValue]
) -> Iterator[Local]:
    files = [Path(each) for each in sources if os.path.isfile(each)]
    first = sources[0]
    if len(sources) == 1 and first.endswith("-symbol.json"):
        files += sorted(Path(first).parent.glob(Path(first).name[:-12] + "-*.params"))
    found = hashlib.blake2b(digest_size=32)
    for path in files:
        found.update(path.read_bytes())
    size = sum(path.stat().st_size for path in files)
    yield Local(first if len(sources) == 1 else list(sources), files, size, found.hexdigest())


def is_url(text: str) -> bool:
    return "://" in text


def is_pattern(text: str) -> bool:
    return any(sign in text for sign in "*?[")


def root_of(pattern: str) -> str:
    """Return the folder that a pattern looks in."""
    if not is_pattern(pattern):
        return pattern.rstrip("/") if os.path.isdir(pattern) else pattern.rpartition("/")[0]
    parts = pattern.split("/")
    first = next(i for i, part in enumerate(parts) if is_pattern(part))
    return "/".join(parts[:first])


def expand(pattern: str, _storage: Mapping[str, AnyValue]) -> Iterator[str]:
    import glob

    if is_pattern(pattern):
        found = sorted(glob.glob(pattern, recursive=True))
        yield from (each for each in found if not each.endswith(".params"))
    else:
        yield pattern


def source_suffixes() -> tuple[str, ...]:
    """Return the ends of the names of models of all formats that are read."""
    from serde.bridge import format_names, get_bridge

    bridges = [get_bridge(name) for name in format_names()]
    return tuple(s for b in bridges if b.import_options is not None for s in b.suffixes)
