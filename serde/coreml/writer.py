"""Writing Core ML packages and files, weights streamed from where they are."""

from __future__ import annotations

import copy
import json
import os
import shutil
import tempfile
import uuid
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any as AnyValue

from serde.core import MAX_PROTOBUF_BYTES, require
from serde.coreml.model import CoremlModel
from serde.coreml.options import NETWORK_TARGETS, CoremlExportOptions
from serde.coreml.protos import DATA_FIELDS, layout
from serde.coreml.reader import MANIFEST
from serde.errors import OptionError
from serde.io.atomic import atomic_group, check_files
from serde.io.directories import atomic_directory, check_directory
from serde.io.messages import Payload, PieceWriter, Place, place_payloads
from serde.io.wire import Piece, total_length

__all__ = ["check_target", "complete", "save"]

_AUTHOR = "com.apple.CoreML"
_MODEL = f"{_AUTHOR}/model.mlmodel"
_WEIGHTS = f"{_AUTHOR}/weights"
_NAMESPACE = uuid.UUID("1b1a0b1e-5f0c-5c0a-9a36-0c5e6f6e6d6c")
"""Of the identifiers of a package's items, which are the same in all packages."""

_FIELDS = {"float32": 1, "float16": 2, "uint8": 30, "int8": 31}
"""Fields of ``WeightParams`` by the dtype of the values."""

_HALVES = 2
"""The first of these fields that takes bytes, in whose place a mark can stand."""


def check_target(
    path: str | os.PathLike[str], sources: Iterable[Path], options: CoremlExportOptions
) -> None:
    """Refuse a path at which :func:`save` could put no package or file.

    Args:
        path: The package or the file to make or replace.
        sources: Files that may not be replaced.
        options: Whether an ML Program is to be written, or a NeuralNetwork.

    Raises:
        OptionError: The path cannot be used.
    """
    program = options.minimum_deployment_target not in NETWORK_TARGETS
    _check_suffix(Path(path), program=program)
    if program:
        check_directory(path, sources=sources, is_package=_is_package)
    else:
        check_files([path], sources=sources)


def _check_suffix(path: Path, *, program: bool) -> None:
    if program and path.suffix != ".mlpackage":
        raise OptionError(
            f"{path}: an ML Program is a package, called .mlpackage; "
            "minimum_deployment_target=iOS14 and before give an .mlmodel"
        )
    if not program and path.suffix != ".mlmodel":
        raise OptionError(
            f"{path}: a NeuralNetwork is a file, called .mlmodel; "
            "minimum_deployment_target=iOS15 and later give an .mlpackage"
        )


def _is_package(directory: Path) -> bool:
    """Whether a directory may be replaced: a package, or an empty one."""
    return (directory / MANIFEST).is_file() or not any(directory.iterdir())


def save(
    model: CoremlModel,
    path: Path,
    *,
    sources: Iterable[Path] = (),
    before_commit: Callable[[Path], None] | None = None,
) -> Path:
    """Write an ML Program as a package, a NeuralNetwork as a file.

    The same model always gives the same bytes.

    Args:
        model: The model.
        path: The package or the file to make or replace.
        sources: Files that may not be replaced.
        before_commit: Called with the finished package or file before it appears.

    Raises:
        OptionError: The path cannot be used.
        FormatError: A file that weights lie in changed.
    """
    if model.kind != "mlProgram":
        return _save_network(model, path, sources, before_commit)
    _check_suffix(path, program=True)
    made = atomic_directory(
        path, sources=sources, is_package=_is_package, before_commit=before_commit
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


def _save_network(
    model: CoremlModel,
    path: Path,
    sources: Iterable[Path],
    before_commit: Callable[[Path], None] | None,
) -> Path:
    """Write a model that is one message, and return its path."""
    _check_suffix(path, program=False)
    pieces, buffer = _pieces(model)
    if total_length(pieces) > MAX_PROTOBUF_BYTES:
        raise OptionError(
            f"the model has {total_length(pieces)} bytes, more than the {MAX_PROTOBUF_BYTES} that "
            "protobuf reads; minimum_deployment_target=iOS15 keeps weights in a file of their own"
        )

    def check(staged: tuple[Path, ...]) -> None:
        if before_commit is not None:
            before_commit(staged[0])

    ranges = [weight.source for weight in model.arrays.values()]
    known: list[str | Path] = list(sources)
    known += [each.path for each in ranges if each is not None and each.handle is None]
    with (
        atomic_group([path], sources=known, before_commit=check) as staged,
        PieceWriter.open(staged[0]) as writer,
    ):
        writer.put_pieces(pieces, buffer)
    return path


def _pieces(model: CoremlModel) -> tuple[list[Piece], bytes]:
    """Return the bytes of a network, its large values not yet among them."""
    spec = copy.deepcopy(model.spec)
    places = []
    for path, weight in model.arrays.items():
        number = _FIELDS[weight.dtype]
        mark = partial(setattr, _message_at(spec, path), DATA_FIELDS[max(number, _HALVES)])
        payload = Payload(path, weight.nbytes, weight.chunks, weight.source)
        places.append(Place(mark, number, payload))
    return place_payloads(spec, layout(), places)


def _message_at(spec: AnyValue, path: str) -> AnyValue:
    """Return the message at a path such as ``neuralNetwork.layers[3].convolution.weights``."""
    found = spec
    for step in path.split("."):
        name, _, index = step.partition("[")
        found = getattr(found, name)
        if index:
            found = found[int(index[:-1])]
    return found


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
    if model.kind != "mlProgram":
        with tempfile.TemporaryDirectory() as directory:
            file = save(model, Path(directory) / "model.mlmodel")
            return tools.models.MLModel(str(file), skip_model_load=True)
    path = Path(tempfile.mkdtemp(suffix=".mlpackage"))
    try:
        save(model, path)
        return tools.models.MLModel(str(path), is_temp_package=True, skip_model_load=True)
    except BaseException:
        shutil.rmtree(path, ignore_errors=True)
        raise
