"""Folders of models that belong together: each is converted by itself, all appear at once."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any as AnyValue

from serde.bridge.contract import AnyBridge
from serde.bridge.formats import facts_of
from serde.bridge.parts import Parts
from serde.core import Report
from serde.io.directories import atomic_directory
from serde.io.staging import stored_bytes

__all__ = ["convert_parts", "wants_folder"]


def wants_folder(parts: Parts | None, writer: AnyBridge, target: AnyValue) -> bool:
    """Whether a target is a folder for models that belong together, and no model's own name."""
    name = os.path.basename(os.path.normpath(os.fspath(target)))
    return parts is not None and not name.endswith(tuple(writer.suffixes))


def convert_parts(
    convert: Callable[[Path, str], object],
    parts: Parts,
    writer: AnyBridge,
    target: Path,
    sources: Sequence[Path],
    report: Report,
) -> None:
    """Convert all parts of a source into a folder.

    Args:
        convert: Writes the part of a name to a path, and fills the report with it.
        parts: What belong together.
        writer: The format of the models.
        target: The folder.
        sources: Files that must not lie in it.
        report: Gets what is to be said of the folder.
    """
    suffix = facts_of(writer)["of_targets"][0]
    interfaces: dict[str, Mapping[str, AnyValue]] = {}
    runtime = writer.runtime_files
    own = {f"{part}{suffix}{end}" for part in parts.names for end in ("", ".data")}
    own |= {*parts.files, *runtime(parts, None)}

    def is_own(folder: Path) -> bool:
        files = (each for each in folder.rglob("*") if not each.is_dir())
        return all(each.relative_to(folder).as_posix() in own for each in files)

    operators = report.after
    with atomic_directory(target, sources=sources, is_package=is_own) as folder:
        for part in parts.names:
            (folder / part).parent.mkdir(exist_ok=True)
            convert(folder / f"{part}{suffix}", part)
            interfaces[f"{part}{suffix}"] = dict(report.facts)
            operators = operators + report.after
        for name, content in {**parts.files, **runtime(parts, interfaces)}.items():
            (folder / name).parent.mkdir(exist_ok=True)
            if isinstance(content, Path):
                shutil.copyfile(content, folder / name)
            else:
                (folder / name).write_text(content, encoding="utf-8")
        nbytes = stored_bytes(folder)
    report.after = operators
    report.facts |= {"path": str(target), "bytes": nbytes, "parts": list(interfaces)}
