"""Reading Core ML models: the message becomes a protobuf, the weights stay where they are."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
from google.protobuf.message import DecodeError

from serde.core import OpenFile, Weight, parse_json
from serde.core.limits import MAX_MANIFEST_BYTES, MAX_RANK
from serde.coreml.blobs import BlobFile
from serde.coreml.elements import BY_MIL
from serde.coreml.model import CoremlModel, blob_values, kind_of
from serde.coreml.protos import layout, message_class
from serde.coreml.versions import NEWEST_SPECIFICATION
from serde.errors import FormatError, OptionError
from serde.io.contained import member_path
from serde.io.messages import FileSource, MemorySource, cut_data
from serde.io.wire import LENGTH, VARINT, Cut, Scanner

__all__ = ["detect", "load", "parse", "value_shape"]

MANIFEST = "Manifest.json"
ROOT = "@model_path/"
"""What the names of files begin with in a program: the directory of its message."""

_KINDS_FROM = 200
"""Number of the first field of a ``Model`` that is a kind of model."""

_DTYPES = {"floatValue": "float32", "float16Value": "float16", "int8RawValue": "int8"}


def detect(path: str | os.PathLike[str]) -> bool:
    """Whether `path` is a package or a file with a Core ML model."""
    file = Path(path)
    if file.is_dir():
        return file.suffix == ".mlpackage" or (file / MANIFEST).is_file()
    if not file.is_file():
        return False
    if file.suffix == ".mlmodel":
        return True
    try:
        with OpenFile.open(file) as opened:
            return _has_fields(FileSource(opened))
    except FormatError:
        return False


def _has_fields(source: FileSource | MemorySource) -> bool:
    """Whether a message has a version, a description and a kind of model, none of them again.

    Several versions in a row are one, as for protobuf.
    """
    seen = set[int]()
    try:
        for item in Scanner(source).fields(0, source.size):
            wanted = VARINT if item.number in (1, 10) else LENGTH
            number = min(item.number, _KINDS_FROM)
            known = number in (1, 2, 10, _KINDS_FROM)
            if item.wire != wanted or not known or number in seen:
                return False
            seen.add(number)
    except FormatError:
        return False
    return {1, 2, _KINDS_FROM} <= seen


def load(source: Any) -> CoremlModel:
    """Return the model in a package, in a file or in bytes, or that an object holds.

    Args:
        source: A path, bytes of a ``Model``, such a message, or an ``MLModel`` of coremltools.

    Raises:
        FormatError: It is not a sound Core ML model.
    """
    if isinstance(source, (bytes, bytearray, memoryview)):
        return parse(MemorySource(memoryview(source).cast("B")), None, None)
    if isinstance(source, (str, os.PathLike)):
        path = os.path.abspath(os.fspath(source))
        return _load_package(path) if os.path.isdir(path) else _load_file(path, None)
    if hasattr(source, "get_spec"):
        weights = getattr(source, "weights_dir", None)
        data = source.get_spec().SerializeToString()
        directory = None if weights is None else os.path.dirname(os.path.abspath(weights))
        return parse(MemorySource(memoryview(data)), directory, None)
    if hasattr(source, "SerializeToString"):
        return parse(MemorySource(memoryview(source.SerializeToString())), None, None)
    raise OptionError(f"expected a path, bytes or a Core ML model, found {type(source).__name__}")


def _load_package(root: str) -> CoremlModel:
    """Return the model of a package, by what its manifest says."""
    manifest = member_path(root, MANIFEST)
    with OpenFile.open(manifest) as opened:
        if opened.size > MAX_MANIFEST_BYTES:
            raise FormatError(f"a manifest of {opened.size} bytes is too long", path=manifest)
        buffer = bytearray(opened.size)
        opened.read_into(buffer, 0)
    try:
        content = parse_json(buffer)
        items, identifier = content["itemInfoEntries"], content["rootModelIdentifier"]
        location = items[identifier]["path"]
    except (ValueError, KeyError, TypeError) as error:
        found = f"{type(error).__name__}: {error}"
        raise FormatError(
            f"expected a manifest that names a model; {found}", path=manifest
        ) from None
    if not isinstance(location, str):
        raise FormatError(f"expected a path, found {location!r:.100}", path=manifest)
    return _load_file(member_path(root, f"Data/{location}"), root)


def _load_file(path: str, package: str | None) -> CoremlModel:
    with OpenFile.open(path) as opened:
        directory = os.path.dirname(path) if package is not None else None
        return parse(FileSource(opened), directory, path)


def parse(
    source: FileSource | MemorySource, directory: str | None, path: str | None
) -> CoremlModel:
    """Return the model that bytes hold.

    Args:
        source: The bytes of the message.
        directory: What a program's files lie in; None where there is no such directory.
        path: The file of the message.

    Raises:
        FormatError: It is not a sound Core ML model.
    """
    skeleton, cuts = cut_data(source, layout())
    spec = message_class("Model.Model")()
    try:
        spec.ParseFromString(skeleton)
    except DecodeError as error:
        raise FormatError(f"expected a Core ML model; protobuf says: {error}", path=path) from None
    version = spec.specificationVersion
    if not 1 <= version <= NEWEST_SPECIFICATION:
        raise FormatError(
            f"specification version {version}: expected 1 to {NEWEST_SPECIFICATION}, the newest",
            path=path,
        )
    files = () if path is None else (path,)
    model = CoremlModel(spec, source=path, files=files)
    kind_of(spec, path)
    model.arrays = {where: _array(cut, source.weight, path) for where, cut in cuts.items()}
    _find_blobs(model, directory)
    return model


def _array(cut: Cut, weight: Callable[..., Weight], path: str | None) -> Weight:
    """Return the values of a field of ``WeightParams``."""
    dtype = _DTYPES.get(cut.field, "uint8")
    width = {"float32": 4, "float16": 2}.get(dtype, 1)
    count, rest = divmod(cut.stop - cut.start, width)
    if rest:
        raise FormatError(
            f"{cut.path}: {cut.stop - cut.start} bytes are no values of {dtype}",
            path=path,
            offset=cut.start,
        )
    return weight(cut.start, cut.stop, (count,), dtype)


def _find_blobs(model: CoremlModel, directory: str | None) -> None:
    """Look up the constants that a program keeps in other files."""
    with ExitStack() as stack:
        opened: dict[str, BlobFile] = {}
        for op, value in blob_values(model.spec):
            blob = value.blobFileValue
            if blob.fileName not in opened:
                path = _blob_path(blob.fileName, directory, model.source)
                file = stack.enter_context(OpenFile.open(path))
                opened[blob.fileName] = BlobFile(file)
                model.files += (path,)
            shape = value_shape(value, model.source)
            element = BY_MIL.get(value.type.tensorType.dataType)
            if element is None:
                raise FormatError(f"{op.type}: a constant of no number", path=model.source)
            found = opened[blob.fileName].weight(blob.offset, shape, element)
            model.blobs[blob.fileName, blob.offset] = found


def _blob_path(name: str, directory: str | None, source: str | None) -> str:
    if not name.startswith(ROOT):
        raise FormatError(f"weight file {name!r}: expected it below {ROOT}", path=source)
    if directory is None:
        raise FormatError(f"its weights lie in {name!r}, and only the model is here", path=source)
    return member_path(directory, name.removeprefix(ROOT))


def value_shape(value: Any, source: str | None) -> tuple[int, ...]:
    """Return the shape of a constant of an ML Program.

    Raises:
        FormatError: It has no fixed shape.
    """
    type_ = value.type.tensorType
    if value.type.WhichOneof("type") != "tensorType" or type_.rank > MAX_RANK:
        raise FormatError("expected a tensor as constant", path=source)
    dims = [
        dim.constant.size if dim.WhichOneof("dimension") == "constant" else -1
        for dim in type_.dimensions
    ]
    if len(dims) != type_.rank or any(dim < 0 or dim >= 2**63 for dim in dims):
        raise FormatError(f"a constant of shape {dims}", path=source)
    if np.prod(dims, dtype=object) >= 2**63:
        raise FormatError(f"a constant of shape {dims}", path=source)
    return tuple(dims)
