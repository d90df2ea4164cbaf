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
