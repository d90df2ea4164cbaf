"""Model archives of TorchServe: the source of a module, its weights, and what answers requests."""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any as AnyValue, Final

from serde.api import convert
from serde.conversion.prepare import PrepareOptions
from serde.conversion.signature import takes_options
from serde.core import Report
from serde.errors import OptionError
from serde.fleet.serving.handler import HANDLER, handler_text
from serde.fleet.serving.naming import find_format, known_labels, local_folder, served_name, telling
from serde.io.atomic import atomic_write, check_files, naming
from serde.io.staging import staging_directory
from serde.io.zips import write_archive

__all__ = ["write_torchserve"]

_SUFFIX: Final = ".mar"
_MANIFEST: Final = "MAR-INF/MANIFEST.json"
_NAMES: Final = "index_to_name.json"
_REQUIREMENTS: Final = "requirements.txt"
_MARK: Final = b"written by serde"

PathLike = str | os.PathLike[str]


@takes_options(reads="source_format", passes=PrepareOptions)
def write_torchserve(
    source: AnyValue,
    folder: PathLike,
    *,
    source_format: str | None = None,
    model_name: str | None = None,
    class_labels: Sequence[str] | PathLike | None = None,
    version: str = "1.0",
    overwrite: bool = False,
    report: Report | None = None,
    **options: AnyValue,
) -> Path:
    """Convert a model into an archive that TorchServe loads; needs neither it nor PyTorch.

    Args:
        source: A path, several paths, bytes or a live object of a framework.
        folder: Where the archive goes, a model store of TorchServe's.
        source_format: Name of the source's format; recognised by content if left out.
        model_name: What the model, and the archive, is called; as the source's file if left out.
        class_labels: Class labels in the order of the scores, or a file with one on each line; if
            left out, those that the model has, or those of ``synset.txt`` beside it.
        version: What TorchServe calls the version of the model.
        overwrite: Whether an archive of that name is replaced that serde did not write.
        report: Filled with all of it.
        options: What :func:`serde.convert` takes besides, such as ``check=True``.

    Returns:
        The archive.

    Raises:
        CheckError: The check failed; nothing is written.
        FormatError: The bytes are malformed; ParseError where they are Relay's text.
        LimitError: It would take more than `limits` allow.
        MissingDependency: A package that a format needs is not installed.
        OptionError: An option is unknown or cannot be used, or the archive cannot be written.
        UnsupportedModelError: Some nodes cannot be converted; all of them are listed.
    """
    report = Report() if report is None else report
    bridge = find_format("writes_source", None, "TorchServe")
    name = served_name(source, model_name)
    root = local_folder(folder, "an archive")
    if not root.is_dir():
        raise OptionError(f"{root}: expected the folder of a model store, found none")
    target = root / f"{name}{_SUFFIX}"
    check_files([target])
    _check_replaced(target, overwrite)
    with staging_directory(root) as staging, naming(target, staging.parent):
        made = staging / "model_torch"
        with telling(target, made):
            convert(
                source, made, source_format=source_format, target_format=bridge.name,
                report=report, **options,
            )  # fmt: skip
        _add_texts(made, name, version, known_labels(source, class_labels, report.facts))
        with report.stage("pack"), atomic_write(target) as file:
            write_archive(file, made, _MARK)
    report.facts |= {"path": str(target), "bytes": target.stat().st_size}
    return target


def _check_replaced(target: Path, overwrite: bool) -> None:
    """Refuse to replace an archive of others, unless that is asked for."""
    if overwrite or not target.exists():
        return
    try:
        with zipfile.ZipFile(target) as archive:
            ours = archive.comment == _MARK
    except (OSError, zipfile.BadZipFile):
        ours = False
    if not ours:
        raise OptionError(
            f"{target}: would be replaced, but serde did not write what is there; take another "
            "name, or --overwrite (overwrite=True)"
        )


def _add_texts(made: Path, name: str, version: str, labels: Sequence[str]) -> None:
    """Write what a module needs to be served beside its source."""
    (made / _MANIFEST).parent.mkdir()
    (made / _MANIFEST).write_text(_manifest(name, version), encoding="utf-8")
    (made / HANDLER).write_text(handler_text(f"the model {name}"), encoding="utf-8")
    (made / _REQUIREMENTS).write_text("numpy\nsafetensors>=0.5\n", encoding="utf-8")
    if labels:
        table = {str(place): label for place, label in enumerate(labels)}
        text = json.dumps(table, indent=2, ensure_ascii=False) + "\n"
        (made / _NAMES).write_text(text, encoding="utf-8")


def _manifest(name: str, version: str) -> str:
    model = {
        "modelName": name,
        "handler": HANDLER,
        "modelFile": "model.py",
        "modelVersion": version,
        "requirementsFile": _REQUIREMENTS,
    }
    manifest = {"runtime": "python", "model": model, "archiverVersion": "1.0"}
    return json.dumps(manifest, indent=2) + "\n"
