"""Files beside a target that a command writes: what they may not be."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from serde.errors import FormatError, OptionError

__all__ = ["check_apart", "check_written"]


def check_written(path: Path, paths: Sequence[str], flag: str, suffixes: Sequence[str]) -> None:
    """Refuse a file beside the target that cannot be written, or that would replace a model."""
    if path.suffix not in suffixes:
        raise OptionError(f"{flag} {path}: expected a name ending in {' or '.join(suffixes)}")
    if any(path.absolute() == Path(other).absolute() for other in paths):
        raise OptionError(f"{flag} {path}: is also the source or the target")
    if not path.absolute().parent.is_dir():
        raise OptionError(f"{flag} {path}: there is no directory {path.parent}")
    from serde.io.atomic import check_files

    check_files([path])
    if not path.exists():
        return
    from serde.bridge.formats import source_bridge

    if any(os.path.exists(other) and path.samefile(other) for other in paths):
        raise OptionError(f"{flag} {path}: is also the source or the target")
    try:
        bridge = source_bridge(path)
    except (FormatError, OptionError):
        return
    raise OptionError(f"{flag} {path}: is a model (format {bridge.name})")


def check_apart(mapping: Path, report: Path | None) -> None:
    """Refuse one file for the tensor mapping and the report, of which the first would be lost."""
    if report is not None and os.path.realpath(mapping) == os.path.realpath(report):
        raise OptionError(f"--tensor-mapping {mapping}: is also --report")
