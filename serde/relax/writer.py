"""Folders of TVMScript and parameters, written whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from serde.io.directories import atomic_directory, check_directory
from serde.relax.folder import PARAMS, SCRIPT, write_weights
from serde.relax.model import RelaxModel

__all__ = ["check_target", "save"]


def check_target(path: str | os.PathLike[str], sources: Sequence[Path] = ()) -> None:
    """Refuse a path at which no folder can be written.

    Raises:
        OptionError: Something else is there, or it holds a source.
    """
    check_directory(path, sources=sources, is_package=is_replaceable)


def is_replaceable(path: Path) -> bool:
    """Whether a directory holds a module and its parameters, and nothing else."""
    return {each.name for each in path.iterdir()} == {SCRIPT, PARAMS}


def save(
    model: RelaxModel,
    path: Path,
    sources: Sequence[Path] = (),
    before_commit: Callable[[Path], None] | None = None,
) -> Path:
    """Write a model; the same one always gives the same bytes."""
    with atomic_directory(
        path, sources=sources, is_package=is_replaceable, before_commit=before_commit
    ) as root:
        (root / SCRIPT).write_bytes(model.module.script(show_meta=True).encode())
        write_weights(model.weights, root)
    return path
