"""What the owner of a model added to it: texts by name, which formats that have a place keep."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from serde.core.report import Report
from serde.relay.ir.model import METADATA, ModelMeta

__all__ = ["metadata_facts", "note_lost"]

_MOST_ENTRIES: Final = 1000
_MOST_CHARACTERS: Final = 2**20
"""What is kept of a model: class names of a large detector are some ten thousand characters."""

_MOST_NAMED: Final = 10


def metadata_facts(pairs: Iterable[tuple[str, str]], report: Report) -> dict[str, str]:
    """Return texts of a source as facts of a model; what is beyond any use is left, and told."""
    found: dict[str, str] = {}
    left, size = [], 0
    for name, text in pairs:
        length = len(name) + len(text)
        if len(found) >= _MOST_ENTRIES or size + length > _MOST_CHARACTERS:
            left.append(name)
            continue
        found[METADATA + name] = text
        size += length
    if left:
        report.notes.append(
            f"metadata beyond {_MOST_CHARACTERS} characters is left: {_listed(left)}"
        )
    return found


def note_lost(meta: ModelMeta, title: str, report: Report) -> None:
    """Say what a target has no place for."""
    if meta.metadata:
        report.notes.append(f"{title} has no place for metadata: {_listed(list(meta.metadata))}")


def _listed(names: Sequence[str]) -> str:
    more = f", and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return ", ".join(name[:100] for name in names[:_MOST_NAMED]) + more
