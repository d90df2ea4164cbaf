"""Writing Core ML packages, weights streamed from where they are."""

from __future__ import annotations

import json
import shutil
import tempfile
import uuid
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any as AnyValue

from serde._optional import require
from serde.coreml.model import CoremlModel
from serde.coreml.reader import MANIFEST
from serde.errors import OptionError
from serde.io.directories import atomic_directory

__all__ = ["complete", "save"]

_AUTHOR = "com.apple.CoreML"
_MODEL = f"{_AUTHOR}/model.mlmodel"
_WEIGHTS = f"{_AUTHOR}/weights"
_NAMESPACE = uuid.UUID("1b1a0b1e-5f0c-5c0a-9a36-0c5e6f6e6d6c")
"""Of the identifiers of a package's items, which are the same in all packages."""


def save(
    model: CoremlModel,
    path: Path,
    *,
    sources: Iterable[Path] = (),
    before_commit: Callable[[Path], None] | None = None,
) -> Path:
    """Write an ML Program as a package; the same model always gives the same bytes.

    Args:
        model: The model.
        path: The package to make or replace.
        sources: Files that may not be replaced.
        before_commit: Called with the finished package before it appears.

    Raises:
        OptionError: The path cannot be used.
        FormatError: A file that weights lie in changed.
    """
    if path.suffix != ".mlpackage":
        raise OptionError(f"{path}: an ML Program is a package, called .mlpackage")
    made = atomic_directory(
        path,
        sources=sources,
        is_package=lambda old: (old / MANIFEST).is_file() or not any(old.iterdir()),
        before_commit=before_commit,
    )
    with made as root:
        items = {_MODEL: ("model.mlmodel", "CoreML Model Specification")}
        (root / "Data" / _AUTHOR).mkdir(parents=True)
        if model.layout is not None and len(model.layout):
            items[_WEIGHTS] = ("weights", "CoreML Model Weights")
            (root / "Data" / _WEIGHTS).mkdir()
            model.layout.write(root / "Data" / _WEIGHTS / "weight.bin")
        message = model.spec.SerializeToString(deterministic=True)
        (root / "Data" / _MODEL).write_bytes(message)
        (root / MANIFEST).write_text(_manifest(items), encoding="utf-8")
    return path


def _manifest(items: dict[str, tuple[str, str]]) -> str:
    identifiers = {location: str(uuid.uuid5(_NAMESPACE, location)) for location in items}
    entries = {
        identifiers[location]: {
            "author": _AUTHOR,
            "description": description,
            "name": name,
            "path": location,
        }
        for location, (name, description) in items.items()
    }
    content = {
        "fileFormatVersion": "1.0.0",
        "itemInfoEntries": dict(sorted(entries.items())),
        "rootModelIdentifier": identifiers[_MODEL],
    }
    return json.dumps(content, indent=4) + "\n"


def complete(model: CoremlModel) -> AnyValue:
    """Return a model as an ``MLModel`` of coremltools, which removes its package in the end.

    Raises:
        MissingDependency: coremltools is not installed.
    """
    tools = require("coremltools")
    path = Path(tempfile.mkdtemp(suffix=".mlpackage"))
    try:
        save(model, path)
        return tools.models.MLModel(str(path), is_temp_package=True, skip_model_load=True)
    except BaseException:
        shutil.rmtree(path, ignore_errors=True)
        raise
